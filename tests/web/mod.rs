//! What the browser tests share.
#![allow(dead_code)]

use gloo_timers::future::TimeoutFuture;
use resubmit::{Outbox, OutboxOptions, Policy};

/// A port that nothing listens on: `fetch` is refused at once.
pub const NOBODY: &str = "http://127.0.0.1:47/orders";

/// An outbox with a database of its own and a schedule quick enough for a test.
pub fn outbox(name: &str) -> Outbox {
    Outbox::open(OutboxOptions {
        name: name.to_owned(),
        policy: quick(),
        ..OutboxOptions::default()
    })
    .unwrap()
}

/// Waits that a test can see the end of.
pub fn quick() -> Policy {
    Policy {
        delays_ms: vec![20, 40, 60_000],
        attempt_timeout_ms: 300,
        max_attempts: 5,
        ..Policy::patient()
    }
}

/// Looks until it is so. How long that takes decides nothing: a test that waits in vain is ended by the runner.
pub async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        TimeoutFuture::new(2).await;
    }
}
