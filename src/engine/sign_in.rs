//! The sign-in gate of an origin: while the server wants other credentials, no more of an owner's intents are sent there.
//!
//! The first refusal asks the application's `authorize` for fresh credentials, and one more attempt is made; the second
//! closes the gate. (Where there is no such hook the first does.) Closed, it is a record of the store; what waits behind it
//! stays due and spends nothing. A delivery opens it. Besides, every page tries one intent whenever there is reason to
//! believe that the person has signed in: the page is new, a person submits or retries, the owner changed, or the
//! application says so.

use super::env::Env;
use super::gate;
use super::op::{Applied, Beside, Op};
use super::record::{Reason, Record, State};
use super::words::words;
use std::rc::Rc;

/// The name of the hook that supplies credentials, as rows have it.
pub const AUTHORIZE: &str = "authorize";

words! {
    /// Why `authorize` is asked.
    pub enum Why: "expected a reason to ask for credentials" {
        /// For the intent's first attempt in this page.
        First = "first",
        /// The server refused what it was sent.
        Unauthorized = "unauthorized",
    }
}

/// What came of asking `authorize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// There are some.
    Granted,
    /// Not now: the person has to sign in.
    NotNow,
    /// It threw, or did not answer in time: to be asked again.
    Failed,
}

impl Record {
    /// Whether its credentials come from the application's hook.
    pub fn asks_authorize(&self) -> bool {
        self.hooks.iter().any(|hook| hook == AUTHORIZE)
    }

    /// How many refusals in a row close the gate.
    fn refusals(&self) -> u32 {
        1 + u32::from(self.asks_authorize())
    }
}

/// Runs a transaction on a row whose owner may have to sign in. What it makes of the gate is in [`Applied::sign_in`].
pub(super) fn apply(op: &Op, beside: Beside, row: Option<Rc<Record>>, env: &mut Env) -> Applied {
    if let (Op::Deny { closes: false, .. }, false) = (op, beside.signed_out) {
        // It was opened since this page looked.
        return Applied {
            record: row,
            sign_in: Some(false),
            ..Applied::default()
        };
    }
    let before = row.as_ref().map_or(0, |row| row.refused_credentials);
    let mut applied = gate::apply(op, beside.gate, row, env);
    let Some(record) = applied.record.clone().filter(|_| applied.accepted) else {
        return applied;
    };
    let refused = record.state == State::Pending && record.reason == Some(Reason::Unauthorized);
    match op {
        Op::Settle(..) if record.state == State::Delivered => applied.sign_in = Some(false),
        Op::Settle(..) if refused && record.refused_credentials >= record.refusals() => {
            if before >= record.refusals() && !beside.signed_out {
                // Another's success opened the gate since it was refused last: it is this one alone.
                let mut record = (*record).clone();
                record.park(Reason::Unauthorized, env.wall);
                applied.replace(record);
                applied.settled = true;
            } else {
                applied.sign_in = Some(true);
            }
        }
        Op::Deny { closes: true, .. } => applied.sign_in = Some(true),
        _ => {}
    }
    applied
}
