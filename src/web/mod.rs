//! The browser shell: it runs what the engine decides, and is the only place that names the browser.

mod attempt;
mod driver;
mod global;
mod latch;
mod listen;
mod listing;
mod lock;
mod outbox;
mod owners;
mod request;
mod retry;
mod source;
mod store;
mod task;

pub use outbox::{Intents, Observer, Outbox, Submission};
pub use request::Request;
pub use retry::submit_with_retry;
#[cfg(feature = "js")]
pub(crate) use {
    driver::{Driver, Reply},
    global::json_parse,
    outbox::{acknowledged, mint},
    retry::RetryLoop,
    source::{set, Js},
    task::promise,
};
