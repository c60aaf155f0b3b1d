//! The engine: everything that decides, and nothing that acts.
//!
//! No clock, no socket, no storage, no randomness, no JavaScript inside. The browser shell hands in [`Event`]s with the
//! [`Env`] they happened in, drains the [`Effect`]s, and asks for the next deadline; see [`Queue`].

pub mod acknowledgement;
pub mod backoff;
pub mod decode;
pub mod encode;
pub mod env;
pub mod error;
pub mod fingerprint;
pub mod gate;
pub mod intent;
pub mod key;
pub mod key_field;
pub mod lane;
pub mod op;
pub mod options;
pub mod owner;
pub mod policy;
pub mod queue;
pub mod record;
pub mod retry_after;
pub mod shape;
pub mod sign_in;
pub mod table;
pub(crate) mod text;
pub mod transition;
pub mod verdict;
mod words;

pub use acknowledgement::Acknowledgement;
pub use env::{Clocks, Env, Millis, Random, Wall};
pub use error::{Code, Error};
pub use gate::Gate;
pub use intent::Intent;
pub use key::{Key, KeyFormat, KeyPlace};
pub use op::{Applied, Beside, Op, Write};
pub use options::{OutboxOptions, SubmitOptions};
pub use owner::Owner;
pub use policy::{Jitter, OnMaybeDelivered, Policy};
pub use queue::{Effect, Event, Queue, Report, Supplies};
pub use record::{Evidence, OnParked, Reason, Receipt, Record, RequestHead, State};
pub use sign_in::{Credentials, Why};
pub use verdict::{Answer, Classified, Failure, Head, Verdict};
