//! The transactions on stored rows, as data: what to do, and what that comes to for the row that is there.
//!
//! A store runs one [`Op`] as one transaction: it reads the row, calls [`Op::apply`], and writes what that returns.
//! IndexedDB, the memory of a page without storage and the tests all run the same function.

use super::env::Env;
use super::error::{Code, Error};
use super::gate::Gate;
use super::key::Key;
use super::lane::Vacated;
use super::owner::{self, Owner};
use super::record::{Reason, Record};
use super::transition::Claim;
use super::verdict::Answer;
use std::rc::Rc;

/// One transaction on one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Writes a new intent with its body, already claimed if it goes out at once.
    Store(Rc<Record>),
    /// Takes back an [`Op::Store`] that was not answered in time, if the row is still as that wrote it.
    Unstore(Rc<Record>),
    /// Takes it for one attempt.
    Claim(Key),
    /// Lets it wait behind the sign-in gate.
    Deny {
        /// The intent.
        key: Key,
        /// Whether that closes the gate: there are no credentials for it now. Else it waits only if the gate is closed.
        closes: bool,
    },
    /// Parks it: its body is not what was stored, and nothing else may be sent under its key.
    Spoil(Key),
    /// Ends the attempt of that fence.
    Settle(Key, u64, Rc<Answer>),
    /// Gives it up.
    Cancel(Key),
    /// A person's fresh intent, under the same key or the one given.
    Retry {
        /// The intent.
        key: Key,
        /// The key to use if a new one is needed.
        new_key: Key,
        /// Whether it may be done twice.
        may_repeat: bool,
    },
    /// Deletes it, whatever its state.
    Discard(Key),
    /// Deletes it if it is settled for good: a page has shown how it ended.
    Forget(Key),
    /// Deletes it when its time is over, or what is kept of it besides its key if nobody was shown how it ended.
    Expire(Key),
    /// Mends deadlines that a clock ahead of its time wrote.
    Reanchor(Key),
    /// Brings its next attempt forward: the network is back.
    BringForward(Key),
}

/// What a transaction writes.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// The row.
    Put(Rc<Record>),
    /// The body that came with the new intent.
    PutBody(Key),
    /// A copy of a body under another key.
    CopyBody(Key, Key),
    /// Deletes the body.
    DropBody(Key),
    /// Deletes the row.
    Delete(Key),
}

/// What a transaction came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Applied {
    /// The row as it is now (after a [`Op::Discard`]: as it was last).
    pub record: Option<Rc<Record>>,
    /// Whether what was asked was done.
    pub accepted: bool,
    /// Whether this transaction is the one that settled the intent.
    pub settled: bool,
    /// What to write, in order.
    pub writes: Vec<Write>,
    /// The gate of its origin, where it was looked at: `None` is open.
    pub gate: Option<Option<Gate>>,
    /// Whether the sign-in gate of its owner and origin is closed from now on, where that was decided.
    pub sign_in: Option<bool>,
    /// The other rows that it changed; they are among the writes.
    pub also: Vec<Rc<Record>>,
    /// The lane whose first row is to be looked at when all is written ([`lane::promote`]).
    pub vacated: Option<Vacated>,
    /// Whose turn the store says it is, where that is why it was not taken for an attempt.
    pub owner: Option<Owner>,
    /// Why it was not done, where the caller is to know.
    pub error: Option<Error>,
}

/// What a transaction goes by besides its row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Beside {
    /// The gate of the row's origin, if it is closed.
    pub gate: Option<Gate>,
    /// Whether the sign-in gate of its owner and origin is closed.
    pub signed_out: bool,
    /// The attempt of that fence, if there was one, was ended by this page.
    pub ended: Option<u64>,
    /// The place of the last in the row's lane; 0 if it is empty.
    pub lane_end: u64,
    /// The other rows of its `coalesceKey` that are not over.
    pub twins: Vec<Rc<Record>>,
    /// The current owner, as the store has it. `None`: nobody ever said.
    pub owner: Option<Owner>,
}

impl Op {
    /// The key of the row that it reads.
    pub fn key(&self) -> &Key {
        match self {
            Op::Store(record) | Op::Unstore(record) => &record.key,
            Op::Claim(key)
            | Op::Deny { key, .. }
            | Op::Spoil(key)
            | Op::Settle(key, ..)
            | Op::Cancel(key)
            | Op::Retry { key, .. }
            | Op::Discard(key)
            | Op::Forget(key)
            | Op::Expire(key)
            | Op::Reanchor(key)
            | Op::BringForward(key) => key,
        }
    }

    /// Whether it goes by the sign-in gate: an answer that is no plain success, and what is to wait for it.
    pub fn reads_sign_in(&self) -> bool {
        match self {
            Op::Deny { .. } => true,
            Op::Settle(_, _, answer) => match &**answer {
                Answer::Response(head) => head.redirected || head.status >= 400,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the transaction must be on the disk, not only on its way there, when it is complete: what was promised
    /// to a person, and what keeps something from being sent twice.
    pub fn is_strict(&self) -> bool {
        !matches!(
            self,
            Op::Deny { .. } | Op::Forget(_) | Op::Expire(_) | Op::Reanchor(_) | Op::BringForward(_)
        )
    }

    /// What it comes to for the row that is there, and for what stands around it.
    pub fn run(&self, row: Option<Rc<Record>>, beside: Beside, env: &mut Env) -> Applied {
        owner::apply(self, beside, row, env)
    }

    /// What it comes to for the row that is there.
    pub fn apply(&self, row: Option<Rc<Record>>, env: &mut Env) -> Applied {
        let mut applied = Applied::default();
        match (self, row) {
            (_, Some(row)) => self.change(row, env, &mut applied),
            (Op::Store(record), None) => {
                applied.accepted = true;
                applied.writes.push(Write::PutBody(record.key.clone()));
                applied.writes.push(Write::Put(record.clone()));
                applied.record = Some(record.clone());
            }
            (_, None) => {
                applied.error = Some(Error::about(
                    Code::UnknownKey,
                    self.key().as_str(),
                    "no intent of that key is known here",
                ));
            }
        }
        applied
    }

    fn change(&self, mut shared: Rc<Record>, env: &mut Env, applied: &mut Applied) {
        let row = Rc::make_mut(&mut shared);
        let now = env.wall;
        let before = row.state;
        let changed = match self {
            // A key that is known is no new intent: the same bytes are the same submission, other bytes the caller's
            // mistake.
            Op::Store(record) => {
                // (What has expired keeps no print: it ended, whatever it was.)
                let expired = row.reason == Some(Reason::Expired);
                if row.fingerprint != record.fingerprint && !expired {
                    applied.error = Some(Error::new(
                        Code::KeyReused,
                        "options.key: known with another method, URL, type or body",
                    ));
                }
                false
            }
            Op::Unstore(record) => {
                applied.accepted = row.is_unchanged_since(record);
                if applied.accepted {
                    applied.delete(&row.key);
                }
                false
            }
            Op::Claim(_) => {
                let mended = row.reanchor(now);
                let claim = row.claim(env);
                applied.accepted = claim == Claim::Granted;
                mended || claim != Claim::NotNow
            }
            Op::Deny { .. } => {
                applied.accepted = row.deny(now);
                applied.accepted
            }
            Op::Spoil(_) => {
                row.spoil(now);
                row.state != before
            }
            Op::Settle(_, fence, answer) => {
                applied.accepted = row.settle(*fence, answer, env);
                applied.accepted
            }
            Op::Cancel(_) => {
                applied.accepted = row.cancel(now);
                row.state != before
            }
            Op::Reanchor(_) => {
                applied.accepted = row.reanchor(now);
                applied.accepted
            }
            Op::BringForward(_) => {
                applied.accepted = row.bring_forward(env);
                applied.accepted
            }
            Op::Retry {
                new_key,
                may_repeat,
                ..
            } => match row.retry_needs_new_key(*may_repeat, now) {
                Ok(needed) => {
                    applied.accepted = true;
                    if needed {
                        let renewed = Rc::new(row.renewed(new_key.clone(), now));
                        let copy = Write::CopyBody(row.key.clone(), new_key.clone());
                        applied.writes.push(copy);
                        applied.writes.push(Write::Put(renewed.clone()));
                        applied.delete(&row.key);
                        applied.record = Some(renewed);
                        return;
                    }
                    row.retry(*may_repeat, now);
                    true
                }
                Err(error) => {
                    applied.error = Some(error);
                    false
                }
            },
            Op::Discard(key) => {
                applied.accepted = true;
                applied.settled = !before.is_over();
                if applied.settled {
                    row.give_up(now);
                }
                applied.delete(key);
                false
            }
            Op::Expire(key) => {
                applied.accepted = row.is_old(now);
                if applied.accepted && before.is_over() {
                    applied.delete(key);
                } else if applied.accepted {
                    applied.vacated = row.lane.clone().map(|lane| Vacated {
                        owner: row.owner.clone(),
                        lane,
                        wait: 0,
                    });
                    row.expire(now);
                }
                row.anchor_retention(now) || applied.accepted && !before.is_over()
            }
            Op::Forget(key) => {
                applied.accepted = before.is_over();
                if applied.accepted {
                    applied.delete(key);
                }
                false
            }
        };
        if changed {
            applied.settled = row.state != before && row.state.is_settled();
            applied.writes.push(Write::Put(shared.clone()));
            if shared.state.is_over() {
                applied.writes.push(Write::DropBody(shared.key.clone()));
            }
        }
        applied.record = Some(shared);
    }
}

impl Applied {
    /// What came of an [`Op::Cancel`]: whether the intent is cancelled, and whether it may have been delivered all the
    /// same.
    pub fn cancelled(&self) -> (bool, bool) {
        let maybe = self.record.as_ref().map(|record| record.maybe_delivered);
        (self.accepted, maybe.unwrap_or(false))
    }

    /// Writes the row otherwise than it was going to.
    pub(super) fn replace(&mut self, record: Record) {
        let record = Rc::new(record);
        for write in &mut self.writes {
            match write {
                Write::Put(row) if row.key == record.key => *row = record.clone(),
                _ => {}
            }
        }
        self.record = Some(record);
    }

    fn delete(&mut self, key: &Key) {
        self.writes.push(Write::Delete(key.clone()));
        self.writes.push(Write::DropBody(key.clone()));
    }
}
