//! What an outbox tells those who listen.

use crate::engine::{Intent, Key, Owner};
use crate::outcome::Outcome;
use std::rc::Rc;

/// Whether something is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The transaction is complete.
    Durable,
    /// It won't be; the word says why (`NotDurableReason` of the JavaScript API, and `no-browser` outside a browser).
    NotDurable(&'static str),
}

/// What happened.
#[derive(Debug, Clone)]
pub enum Notice {
    /// It is known whether the intent is on the disk.
    Stored(Key, Rc<Intent>, Stored),
    /// An intent that was known already is followed anew: what is known of it, and how it ended if it did.
    Known(Key, Rc<Intent>, Stored, Option<Outcome>),
    /// An attempt began.
    Attempted(Key, Rc<Intent>),
    /// It waits for its next attempt.
    Waiting(Key, Rc<Intent>),
    /// It settled.
    Settled(Key, Rc<Intent>, Outcome),
    /// The list of intents changed.
    Listed,
    /// Another owner's turn began, in this page or in another.
    OwnerChanged(Owner),
    /// The storage failed; the word says how.
    Degraded(&'static str),
}
