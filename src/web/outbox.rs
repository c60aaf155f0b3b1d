//! The outbox as a Rust front end uses it.

use super::driver::{Driver, Observe, Reply, Watch};
use super::owners::Owners;
use super::request::Request;
use super::task::spawn;
use crate::engine::{Code, Error, Event, Intent, Key, Op, OutboxOptions, Owner, SubmitOptions};
use crate::hooks::Hooks;
use crate::outcome::Outcome;
use futures_core::Stream;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
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
pub struct Outbox(Rc<Owners>);

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
        Ok(Outbox(Owners::start(options, hooks)))
    }

    /// Whether there is storage, once that is known.
    pub async fn ready(&self) -> Stored {
        let ready = self.0.current().ready.clone();
        ready.wait().await
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
        Ok(self.submit_as(key, request, options, |_| true))
    }

    /// Submits under a key that was minted already. `joins` is called when the request was read, and says whether it
    /// is wanted still; it is told whose it is.
    pub(crate) fn submit_as(
        &self,
        key: Key,
        request: Request,
        options: SubmitOptions,
        joins: impl FnOnce(&Owner) -> bool + 'static,
    ) -> Submission {
        let driver = self.0.current();
        let watch = driver.submit(key.clone(), request, options, joins);
        self.submission_of(driver, key, watch)
    }

    fn submission_of(&self, driver: Rc<Driver>, key: Key, watch: Watch) -> Submission {
        Submission {
            _owners: self.0.clone(),
            driver,
            key,
            watch,
        }
    }

    /// Follows an intent of this outbox, whichever page submitted it.
    pub fn submission(&self, key: Key) -> Submission {
        self.follow(key, |_| {})
    }

    /// Follows an intent of this outbox. `joins` is called when it is known whose.
    pub(crate) fn follow(&self, key: Key, joins: impl FnOnce(&Owner) + 'static) -> Submission {
        let driver = self.0.current();
        let watch = driver.watch_known(key.clone(), joins);
        self.submission_of(driver, key, watch)
    }

    /// A person's fresh intent: at once, but never before the time that the server named, and with a full new budget.
    /// Where that needs a new key, the submission has it.
    ///
    /// # Errors
    /// `unknown-key`; `bad-state` if it is delivered, cancelled or being sent; `needs-may-repeat` if it may be done twice
    /// and `may_repeat` does not allow that; `storage-failed`.
    pub async fn retry(&self, key: Key, may_repeat: bool) -> Result<Submission, Error> {
        let driver = self.0.current();
        let applied = driver
            .ask(Op::Retry {
                key: key.clone(),
                new_key: mint()?,
                may_repeat,
            })
            .await?;
        let key = applied.record.map_or(key, |record| record.key.clone());
        let watch = driver.watch(&key);
        watch.stored.set(Ok(driver.stored(&key)));
        Ok(self.submission_of(driver, key, watch))
    }

    /// A person's fresh intent for everything that is parked, oldest first, except what may then be done twice: that is
    /// for [`Outbox::retry`], one by one. Returns what was retried.
    ///
    /// # Errors
    /// `storage-failed`: some may have been retried.
    pub async fn retry_all(&self) -> Result<Vec<Submission>, Error> {
        let driver = self.0.current();
        let keys = driver.retry_all().await?;
        let follow = |key| {
            let watch = driver.watch(&key);
            watch.stored.set(Ok(driver.stored(&key)));
            self.submission_of(driver.clone(), key, watch)
        };
        Ok(keys.into_iter().map(follow).collect())
    }

    /// Says that the person may have signed in: what waits for that is tried.
    pub fn resume(&self) {
        self.0.current().input(Event::SignedIn);
    }

    /// Deletes an intent, whatever its state.
    ///
    /// # Errors
    /// `unknown-key`, `storage-failed`.
    pub async fn discard(&self, key: Key) -> Result<(), Error> {
        self.0.current().ask(Op::Discard(key)).await.map(|_| ())
    }

    /// Says that a person has seen how it ended: what is kept of it goes.
    ///
    /// # Errors
    /// `storage-failed`. An unknown key is no error: it was acknowledged before.
    pub async fn acknowledge(&self, key: Key) -> Result<(), Error> {
        acknowledged(self.0.current().ask(Op::Forget(key)).await)
    }

    /// Makes an owner the current one (`None`: nobody), in this page at once, in others as soon as they look. The former
    /// owner's attempts are aborted; what they were for stays, and goes on when that owner returns. Call it with `None`
    /// before a request that signs somebody in or out, and await it.
    ///
    /// # Errors
    /// `storage-failed`: this page goes by it and tells the storage again, other pages have yet to hear.
    pub fn set_owner(&self, owner: Owner) -> impl Future<Output = Result<(), Error>> {
        self.0.set_owner(owner).wait()
    }

    /// Deletes everything of an owner, whoever is current. What this page follows of it ends as cancelled.
    ///
    /// # Errors
    /// `storage-failed`: it may be done yet.
    pub async fn clear(&self, owner: &str) -> Result<(), Error> {
        self.0.clear(Some(owner.to_owned())).await
    }

    /// Runs a transaction for the current owner, or for the one that is named.
    #[cfg(feature = "js")]
    pub(crate) async fn ask(&self, owner: Option<String>, op: Op) -> Reply {
        let driver = match owner {
            Some(_) => self.0.driver_of(&owner),
            None => self.0.current(),
        };
        driver.ask(op).await
    }

    /// Calls back with everything that happens, to whomever.
    #[cfg(feature = "js")]
    pub(crate) fn observe_all(&self, observer: Rc<Observe>) -> Observer {
        self.0.current().observe(&observer);
        Observer(observer)
    }

    /// This owner's intents, newest first, as far as they were read; the first call begins to read them, and
    /// [`Notice::Listed`] says when there is more to see. An entry is the same `Rc` while nothing about it changed.
    pub fn current_intents(&self) -> Vec<Rc<Intent>> {
        self.0.current().intents()
    }

    /// How many stored rows this build cannot read; they are left alone.
    pub fn unreadable(&self) -> u32 {
        self.0.current().unreadable()
    }

    /// This owner's intents, newest first: now, and again whenever something about them changed.
    pub fn intents(&self) -> Intents {
        let state = Rc::new(Changes {
            changed: Cell::new(true),
            waker: RefCell::new(None),
        });
        let changes = state.clone();
        let observer = self.observe(move |notice| {
            if let Notice::Listed | Notice::OwnerChanged(_) = notice {
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

    /// Calls back with everything that happens to the current owner's intents, until what this returns is dropped.
    pub fn observe(&self, observer: impl Fn(&Notice) + 'static) -> Observer {
        let observer: Rc<Observe> = Rc::new(move |notice: &Notice, driver: &Driver| {
            if driver.is_current() {
                observer(notice);
            }
        });
        self.0.current().observe(&observer);
        Observer(observer)
    }

    /// The options it was opened with.
    pub fn options(&self) -> &OutboxOptions {
        self.0.options()
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
    /// Without them a driver would not know whose turn it is.
    _owners: Rc<Owners>,
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
