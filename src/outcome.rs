//! How a submission ended.

use crate::engine::{Evidence, Key, Reason, Receipt, Record, State};

#[cfg(target_arch = "wasm32")]
pub use web_sys::Response;

/// The browser's response. Outside a browser there is none.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone)]
pub enum Response {}

/// How a submission ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The idempotency key.
    pub key: Key,
    /// How many attempts were begun.
    pub attempts: u32,
    /// Whether nothing proves that the server did not act. Always true once delivered.
    pub maybe_delivered: bool,
    /// What it came to.
    pub status: Status,
}

/// What a submission came to.
#[derive(Debug, Clone)]
pub enum Status {
    /// The server acted.
    Delivered {
        /// The browser's own response, unread; `None` where another page has it.
        response: Option<Response>,
        /// What is kept of it.
        receipt: Receipt,
    },
    /// The server refused, and did not act.
    Refused {
        /// Why.
        reason: Reason,
        /// The browser's own response, unread; `None` where another page has it.
        response: Option<Response>,
        /// What is kept of it.
        evidence: Evidence,
    },
    /// A person has to decide.
    Parked {
        /// Why.
        reason: Reason,
        /// The last answer.
        evidence: Option<Evidence>,
    },
    /// It was given up.
    Cancelled {
        /// Why.
        reason: Reason,
    },
}

impl Outcome {
    /// The outcome of a settled row; `None` if it is not settled.
    #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
    pub(crate) fn of(record: &Record, response: Option<Response>) -> Option<Self> {
        let reason = record.reason.unwrap_or(Reason::OutcomeUnknown);
        let status = match record.state {
            State::Pending | State::Sending => return None,
            State::Delivered => Status::Delivered {
                response,
                receipt: record.receipt.clone().unwrap_or_default(),
            },
            State::Refused => Status::Refused {
                reason,
                response,
                evidence: record.evidence.clone().unwrap_or_default(),
            },
            State::Parked => Status::Parked {
                reason,
                evidence: record.evidence.clone(),
            },
            State::Cancelled => Status::Cancelled { reason },
        };
        Some(Outcome {
            key: record.key.clone(),
            attempts: record.attempts,
            maybe_delivered: record.maybe_delivered,
            status,
        })
    }
}
