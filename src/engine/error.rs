//! The errors of the caller's making, and of the surroundings: one closed list of codes.

use std::borrow::Cow;
use std::fmt;

/// Why a call could not be done. The list is closed; each code is stable and is what JavaScript sees as
/// `ResubmitError.code`. (`outbox.fetch` of the JavaScript API has one more, `not-delivered`.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// An option is missing, of the wrong type, out of range or unknown; the message names it.
    BadOption,
    /// The request is one that `fetch` would refuse, or that must not be stored; the message says which part.
    BadRequest,
    /// The body is above `maxBodyBytes`. Nothing was stored.
    TooLarge,
    /// The application's key is known with other bytes.
    KeyReused,
    /// No intent of that key is known to this outbox and owner.
    UnknownKey,
    /// Nobody is signed in, so that it would be nobody's: nothing was stored or sent.
    NoOwner,
    /// What was asked does not go with the state that the intent is in; the message says which states it goes with.
    BadState,
    /// It may already have been received, so that a retry may do it twice: `mayRepeat` says that this is all right.
    NeedsMayRepeat,
    /// The browser's storage failed, or did not answer in time: it may be done yet.
    StorageFailed,
    /// The reporting ended by `detach`; the intent goes on.
    Detached,
    /// The answer was read by another page.
    AnsweredElsewhere,
    /// The outbox was closed by `close`.
    Closed,
    /// There is no browser here (a server, a build): nothing is stored or sent.
    NoBrowser,
    /// The module could not be loaded or compiled (blocked by a policy, missing, cut short).
    LoadFailed,
    /// The module trapped. What was stored is safe and goes on with the next instance.
    Panicked,
}

impl Code {
    /// The code as JavaScript sees it.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::BadOption => "bad-option",
            Code::BadRequest => "bad-request",
            Code::TooLarge => "too-large",
            Code::KeyReused => "key-reused",
            Code::UnknownKey => "unknown-key",
            Code::NoOwner => "no-owner",
            Code::BadState => "bad-state",
            Code::NeedsMayRepeat => "needs-may-repeat",
            Code::StorageFailed => "storage-failed",
            Code::Detached => "detached",
            Code::AnsweredElsewhere => "answered-elsewhere",
            Code::Closed => "closed",
            Code::NoBrowser => "no-browser",
            Code::LoadFailed => "load-failed",
            Code::Panicked => "panicked",
        }
    }
}

/// A call that could not be done: a stable code, and a sentence for the developer that names the field and what was
/// expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: Cow<'static, str>,
}

impl Error {
    /// An error with a fixed sentence.
    pub const fn new(code: Code, message: &'static str) -> Self {
        Error {
            code,
            message: Cow::Borrowed(message),
        }
    }

    /// An error whose sentence is put together, first the field, then what was expected of it.
    pub fn about(code: Code, field: &str, expected: &str) -> Self {
        let mut message = String::with_capacity(field.len() + expected.len() + 2);
        message.push_str(field);
        message.push_str(": ");
        message.push_str(expected);
        Error {
            code,
            message: Cow::Owned(message),
        }
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The sentence for the developer.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.as_str())?;
        f.write_str(": ")?;
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
