//! Hands over a form submission and knows that it will arrive, once.
//!
//! A retry loop around `fetch` with one idempotency key per intent, every pending intent mirrored into IndexedDB
//! before its first byte leaves, so that a reload, a crash or another page resumes it. The server decides what "once"
//! means: it has to honour the `Idempotency-Key` header (draft-ietf-httpapi-idempotency-key-header).
//!
//! ```no_run
//! use resubmit::{Outbox, OutboxOptions, Request, SubmitOptions};
//!
//! # async fn example() -> Result<(), resubmit::Error> {
//! let outbox = Outbox::open(OutboxOptions::default())?;
//! let order = Request::json("/orders", r#"{"item":"tea"}"#)?;
//! let submission = outbox.submit(order, SubmitOptions::default())?;
//! submission.stored().await?; // it survives a reload from here on
//! let outcome = submission.outcome().await?;
//! # Ok(()) }
//! ```
//!
//! Outside a browser everything compiles and is inert: [`Outbox::submit`] returns [`Code::NoBrowser`].

#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
compile_error!(
    "resubmit drives IndexedDB from the page's one thread: with +atomics the wake-ups come too late and transactions are lost"
);

pub mod engine;
mod hooks;
mod notice;
mod outcome;

#[cfg(not(target_arch = "wasm32"))]
mod inert;
#[cfg(target_arch = "wasm32")]
mod web;

#[cfg(all(target_arch = "wasm32", feature = "js"))]
mod js;

#[cfg(not(target_arch = "wasm32"))]
pub use inert::{submit_with_retry, Intents, Observer, Outbox, Request, Submission};
#[cfg(target_arch = "wasm32")]
pub use web::{submit_with_retry, Intents, Observer, Outbox, Request, Submission};

pub use engine::{
    Acknowledgement, Classified, Code, Error, Evidence, Intent, Key, OutboxOptions, Owner, Policy,
    Reason, Receipt, State, SubmitOptions, Why,
};
pub use hooks::{Headers, Hooks};
pub use notice::{Notice, Stored};
pub use outcome::{Outcome, Response, Status};

/// The README's Rust compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
