//! The crate outside a browser: the same names, so that server-rendered front ends need no `cfg`; nothing is stored
//! or sent.

use crate::engine::{Code, Error, Intent, Key, OutboxOptions, Owner, Policy, SubmitOptions};
use crate::hooks::Hooks;
use crate::notice::{Notice, Stored};
use crate::outcome::Outcome;
use futures_core::Stream;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

fn no_browser() -> Error {
    Error::new(
        Code::NoBrowser,
        "there is no browser here: nothing is stored or sent",
    )
}

/// A request to submit. Inert outside a browser.
#[derive(Debug, Clone)]
pub struct Request(());

impl Request {
    /// A POST without a body.
    ///
    /// # Errors
    /// None here.
    pub fn post(_url: &str) -> Result<Self, Error> {
        Ok(Request(()))
    }

    /// A POST of JSON text.
    ///
    /// # Errors
    /// None here.
    pub fn json(_url: &str, _json: &str) -> Result<Self, Error> {
        Ok(Request(()))
    }

    /// A request of any method, with headers and a body.
    ///
    /// # Errors
    /// None here.
    pub fn build(
        _method: &str,
        _url: &str,
        _headers: &[(&str, &str)],
        _body: Option<&[u8]>,
    ) -> Result<Self, Error> {
        Ok(Request(()))
    }

    /// The browser's own `Request`, which there is none of here.
    pub fn from_browser<R>(_request: R, _named: Vec<String>) -> Self {
        Request(())
    }
}

/// The retry loop without storage. Nothing is sent here.
///
/// # Errors
/// `no-browser`.
pub async fn submit_with_retry<F>(_send: F, _key: Key, _policy: Policy) -> Result<Outcome, Error> {
    Err(no_browser())
}

/// An outbox. Inert outside a browser: it opens, and every submission ends with `no-browser`.
#[derive(Debug, Clone)]
pub struct Outbox(Rc<OutboxOptions>);

impl Outbox {
    /// Opens an outbox that does nothing.
    ///
    /// # Errors
    /// None here, so that a component may open it while it is rendered on a server.
    pub fn open(options: OutboxOptions) -> Result<Self, Error> {
        Ok(Outbox(Rc::new(options)))
    }

    /// Opens an outbox that has hooks; they are never called.
    ///
    /// # Errors
    /// As [`Outbox::open`].
    pub fn open_with(options: OutboxOptions, _hooks: Hooks) -> Result<Self, Error> {
        Outbox::open(options)
    }

    /// Nothing waits here.
    pub fn resume(&self) {}

    /// There is no storage here.
    pub async fn ready(&self) -> Stored {
        Stored::NotDurable("no-browser")
    }

    /// Nothing is submitted here.
    ///
    /// # Errors
    /// `no-browser`.
    pub fn submit(&self, _request: Request, _options: SubmitOptions) -> Result<Submission, Error> {
        Err(no_browser())
    }

    /// Follows nothing.
    pub fn submission(&self, key: Key) -> Submission {
        Submission { key }
    }

    /// Nothing is retried here.
    ///
    /// # Errors
    /// `no-browser`.
    pub async fn retry(&self, _key: Key, _may_repeat: bool) -> Result<Submission, Error> {
        Err(no_browser())
    }

    /// Nothing is known here that could be retried.
    ///
    /// # Errors
    /// `no-browser`.
    pub async fn retry_all(&self) -> Result<Vec<Submission>, Error> {
        Err(no_browser())
    }

    /// Nothing is deleted here.
    ///
    /// # Errors
    /// `no-browser`.
    pub async fn discard(&self, _key: Key) -> Result<(), Error> {
        Err(no_browser())
    }

    /// Nothing is acknowledged here.
    ///
    /// # Errors
    /// `no-browser`.
    pub async fn acknowledge(&self, _key: Key) -> Result<(), Error> {
        Err(no_browser())
    }

    /// Nobody is signed in or out here.
    ///
    /// # Errors
    /// `no-browser`.
    pub async fn set_owner(&self, _owner: Owner) -> Result<(), Error> {
        Err(no_browser())
    }

    /// Nothing is deleted here.
    ///
    /// # Errors
    /// `no-browser`.
    pub async fn clear(&self, _owner: &str) -> Result<(), Error> {
        Err(no_browser())
    }

    /// There are none here.
    pub fn current_intents(&self) -> Vec<Rc<Intent>> {
        Vec::new()
    }

    /// There are none here.
    pub fn unreadable(&self) -> u32 {
        0
    }

    /// There are none here: the stream yields the empty list once.
    pub fn intents(&self) -> Intents {
        Intents(false)
    }

    /// Nothing happens here.
    pub fn observe(&self, _observer: impl Fn(&Notice) + 'static) -> Observer {
        Observer(())
    }

    /// The options it was opened with.
    pub fn options(&self) -> &OutboxOptions {
        &self.0
    }

    /// Nothing is to be ended here.
    pub fn close(&self) {}
}

/// Keeps an observer called; nothing calls it here.
#[must_use = "the observer is called until this is dropped"]
#[derive(Debug)]
pub struct Observer(());

/// The stream of an outbox's intents: here the empty list, once.
#[derive(Debug)]
pub struct Intents(bool);

impl Stream for Intents {
    type Item = Vec<Rc<Intent>>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::replace(&mut self.0, true) {
            Poll::Pending
        } else {
            Poll::Ready(Some(Vec::new()))
        }
    }
}

/// One submission. Outside a browser there is none.
#[derive(Debug, Clone)]
pub struct Submission {
    key: Key,
}

impl Submission {
    /// The idempotency key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Nothing is stored here.
    ///
    /// # Errors
    /// `no-browser`.
    pub async fn stored(&self) -> Result<Stored, Error> {
        Err(no_browser())
    }

    /// Nothing is sent here.
    ///
    /// # Errors
    /// `no-browser`.
    pub async fn outcome(&self) -> Result<Outcome, Error> {
        Err(no_browser())
    }

    /// Nothing is to be given up here.
    ///
    /// # Errors
    /// `no-browser`.
    pub async fn cancel(&self) -> Result<(bool, bool), Error> {
        Err(no_browser())
    }
}
