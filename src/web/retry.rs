//! The loop without the storage, for code that owns its `send`.

use super::driver::{Driver, Watch};
use crate::engine::{Error, Key, OutboxOptions, Policy};
use crate::hooks::Hooks;
use crate::outcome::Outcome;
use js_sys::Function;
use std::future::Future;
use std::rc::{Rc, Weak};

/// A loop that runs. It ends when it is dropped.
pub struct RetryLoop {
    driver: Rc<Driver>,
    watch: Watch,
}

impl RetryLoop {
    /// Starts the loop around a JavaScript function `send({ key, attempt, signal })` that returns a promise of a
    /// `Response`.
    pub fn start(send: Function, key: Key, policy: Policy) -> Self {
        let options = OutboxOptions {
            policy,
            durable: false,
            ..OutboxOptions::default()
        };
        let driver = Driver::start(options, Hooks::default(), Some(send), Weak::new());
        let watch = driver.submit_own(key);
        RetryLoop { driver, watch }
    }

    /// How it ended. Its timers and listeners are gone by then.
    pub fn outcome(&self) -> impl Future<Output = Result<Outcome, Error>> {
        let (driver, watch) = (self.driver.clone(), self.watch.clone());
        async move {
            let outcome = watch.outcome.wait().await;
            driver.close();
            outcome
        }
    }

    /// Ends it: no timer, listener or request of it is left.
    pub fn abort(&self) {
        self.driver.close();
    }
}

impl Drop for RetryLoop {
    fn drop(&mut self) {
        self.abort();
    }
}

/// Runs the retry loop around a JavaScript function `send({ key, attempt, signal })` that returns a promise of a
/// `Response`. Nothing is stored. Dropping the future ends the loop and aborts its attempt.
///
/// # Errors
/// `closed` only.
pub async fn submit_with_retry(send: Function, key: Key, policy: Policy) -> Result<Outcome, Error> {
    let running = RetryLoop::start(send, key, policy);
    running.outcome().await
}
