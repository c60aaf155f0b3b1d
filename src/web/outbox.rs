//! The outbox as a Rust front end uses it.

use super::driver::{Driver, Observe, Reply, Watch};
use super::request::Request;
use super::task::spawn;
use crate::engine::{Code, Error, Event, Intent, Key, Op, OutboxOptions, SubmitOptions};
use crate::hooks::Hooks;
use crate::outcome::Outcome;
use futures_core::Stream;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub use crate::notice::{Notice, Stored};

/// Handles are printed by name: what they lead to is a page's whole state.
macro_rules! debug_by_name {
    ($($name:ident)+) => {
        $(impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        })+
    };
}

debug_by_name!(Outbox Submission Observer Intents);

/// An outbox: hands over submissions, and resumes those of earlier pages. A handle; clones are the same outbox.
#[derive(Clone)]
pub struct Outbox(Rc<Driver>);

impl Outbox {
    /// Opens an outbox, at once; what is submitted before its storage is open waits for it.
    ///
    /// # Errors
    /// None yet; options that cannot be had are to be one.
    pub fn open(options: OutboxOptions) -> Result<Self, Error> {
        Outbox::open_with(options, Hooks::default())
    }

    /// Opens an outbox that has hooks.
    ///
    /// # Errors
    /// As [`Outbox::open`].
    pub fn open_with(options: OutboxOptions, hooks: Hooks) -> Result<Self, Error> {
        Ok(Outbox(Driver::start(options, hooks, None)))
    }

    /// Whether there is storage, once that is known.
    pub async fn ready(&self) -> Stored {
        self.0.ready.wait().await
    }

    /// Submits a request.
    ///
    /// # Errors
    /// `no-browser` where there is no source of randomness to make a key from. What is wrong with the request comes from
    /// [`Submission::stored`] and [`Submission::outcome`].
    pub fn submit(&self, request: Request, options: SubmitOptions) -> Result<Submission, Error> {
        let key = match &options.key {
            Some(key) => key.clone(),
            None => mint()?,
        };
        Ok(self.submit_as(key, request, options, || true))
    }

    /// Submits under a key that was minted already. `joins` is called when the request was read, and says whether it
    /// is wanted still.
    pub(crate) fn submit_as(
        &self,
        key: Key,
        request: Request,
        options: SubmitOptions,
        joins: impl FnOnce() -> bool + 'static,
    ) -> Submission {
        let watch = self.0.submit(key.clone(), request, options, joins);
        self.submission_of(key, watch)
    }

    fn submission_of(&self, key: Key, watch: Watch) -> Submission {
        Submission {
            driver: self.0.clone(),
            key,
            watch,
        }
    }

    /// Follows an intent of this outbox, whichever page submitted it.
    pub fn submission(&self, key: Key) -> Submission {
        let watch = self.0.watch_known(key.clone());
        self.submission_of(key, watch)
    }

    /// A person's fresh intent: at once, but never before the time that the server named, and with a full new budget.
    /// Where that needs a new key, the submission has it.
    ///
    /// # Errors
    /// `unknown-key`; `bad-state` if it is delivered, cancelled or being sent; `needs-may-repeat` if it may be done twice
    /// and `may_repeat` does not allow that; `storage-failed`.
    pub async fn retry(&self, key: Key, may_repeat: bool) -> Result<Submission, Error> {
        let applied = self
            .0
            .ask(Op::Retry {
                key: key.clone(),
                new_key: mint()?,
                may_repeat,
            })
            .await?;
        let key = applied.record.map_or(key, |record| record.key.clone());
        let watch = self.0.watch(&key);
        watch.stored.set(Ok(self.0.stored(&key)));
        Ok(self.submission_of(key, watch))
    }

    /// A person's fresh intent for everything that is parked, oldest first, except what may then be done twice: that is
    /// for [`Outbox::retry`], one by one. Returns what was retried.
    ///
    /// # Errors
    /// `storage-failed`: some may have been retried.
    pub async fn retry_all(&self) -> Result<Vec<Submission>, Error> {
        let keys = self.0.retry_all().await?;
        let follow = |key| {
            let watch = self.0.watch(&key);
            watch.stored.set(Ok(self.0.stored(&key)));
            self.submission_of(key, watch)
        };
        Ok(keys.into_iter().map(follow).collect())
    }

    /// Says that the person may have signed in: what waits for that is tried.
    pub fn resume(&self) {
        self.0.input(Event::SignedIn);
    }

    /// Deletes an intent, whatever its state.
    ///
    /// # Errors
    /// `unknown-key`, `storage-failed`.
    pub async fn discard(&self, key: Key) -> Result<(), Error> {
        self.0.ask(Op::Discard(key)).await.map(|_| ())
    }

    /// Says that a person has seen how it ended: what is kept of it goes.
    ///
    /// # Errors
    /// `storage-failed`. An unknown key is no error: it was acknowledged before.
    pub async fn acknowledge(&self, key: Key) -> Result<(), Error> {
        acknowledged(self.0.ask(Op::Forget(key)).await)
    }

    /// Runs a transaction.
    #[cfg(feature = "js")]
    pub(crate) async fn ask(&self, op: Op) -> Reply {
        self.0.ask(op).await
    }

    /// This owner's intents, newest first, as far as they were read; the first call begins to read them, and
    /// [`Notice::Listed`] says when there is more to see. An entry is the same `Rc` while nothing about it changed.
    pub fn current_intents(&self) -> Vec<Rc<Intent>> {
        self.0.intents()
    }

    /// How many stored rows this build cannot read; they are left alone.
    pub fn unreadable(&self) -> u32 {
        self.0.unreadable()
    }

    /// This owner's intents, newest first: now, and again whenever something about them changed.
    pub fn intents(&self) -> Intents {
        let state = Rc::new(Changes {
            changed: Cell::new(true),
            waker: RefCell::new(None),
        });
        let changes = state.clone();
        let observer = self.observe(move |notice| {
            if let Notice::Listed = notice {
                changes.changed.set(true);
                if let Some(waker) = changes.waker.take() {
                    waker.wake();
                }
            }
        });
        Intents {
            outbox: self.clone(),
            state,
            _observer: observer,
        }
    }

    /// Calls back with everything that happens, until what this returns is dropped.
    pub fn observe(&self, observer: impl Fn(&Notice) + 'static) -> Observer {
        let observer: Rc<Observe> = Rc::new(observer);
        self.0.observe(&observer);
        Observer(observer)
    }

    /// The options it was opened with.
    pub fn options(&self) -> &OutboxOptions {
        &self.0.options
    }

    /// Ends this page's part: timers, listeners, requests. What is stored goes on in another page.
    pub fn close(&self) {
        self.0.close();
    }
}

/// Keeps an observer called. Dropping it ends that.
#[must_use = "the observer is called until this is dropped"]
pub struct Observer(#[allow(dead_code)] Rc<Observe>);

struct Changes {
    changed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The stream of an outbox's intents. Entries that did not change are the same `Rc` from one list to the next. It ends
/// with the outbox's last handle only, that is never by itself.
pub struct Intents {
    outbox: Outbox,
    state: Rc<Changes>,
    _observer: Observer,
}

impl Stream for Intents {
    type Item = Vec<Rc<Intent>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.state.changed.replace(false) {
            return Poll::Ready(Some(self.outbox.current_intents()));
        }
        self.state.waker.replace(Some(context.waker().clone()));
        Poll::Pending
    }
}

/// How an [`Op::Forget`] ended: an unknown key was acknowledged before.
pub(crate) fn acknowledged(reply: Reply) -> Result<(), Error> {
    match reply {
        Err(error) if error.code() != Code::UnknownKey => Err(error),
        _ => Ok(()),
    }
}

/// A fresh key.
pub(crate) fn mint() -> Result<Key, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::new(Code::NoBrowser, "there is no source of randomness here"))?;
    Ok(Key::from_random(bytes))
}

/// One submission, as this page follows it. A handle; dropping it detaches, never cancels.
#[derive(Clone)]
pub struct Submission {
    driver: Rc<Driver>,
    key: Key,
    watch: Watch,
}

impl Submission {
    /// The idempotency key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whether it is on the disk, once that is known.
    ///
    /// # Errors
    /// What was wrong with the request.
    pub async fn stored(&self) -> Result<Stored, Error> {
        self.watch.stored.wait().await
    }

    /// How it ended, without saying that it was shown.
    #[cfg(feature = "js")]
    pub(crate) async fn ended(&self) -> Result<Outcome, Error> {
        self.watch.outcome.wait().await
    }

    /// How it ended. Once this resolved, the receipt counts as shown and goes.
    ///
    /// # Errors
    /// What was wrong with the request, or `closed`.
    pub async fn outcome(&self) -> Result<Outcome, Error> {
        let outcome = self.watch.outcome.wait().await?;
        let (driver, key) = (self.driver.clone(), self.key.clone());
        spawn(async move {
            let _ = driver.ask(Op::Forget(key)).await;
        });
        Ok(outcome)
    }

    /// Gives it up. An answer that was first wins. Returns whether it is cancelled, and whether it may have been
    /// delivered all the same.
    ///
    /// # Errors
    /// `unknown-key`, `storage-failed`, `closed`.
    pub async fn cancel(&self) -> Result<(bool, bool), Error> {
        let applied = self.driver.ask(Op::Cancel(self.key.clone())).await?;
        Ok(applied.cancelled())
    }
}
