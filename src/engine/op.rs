//! The transactions on stored rows, as data: what to do, and what that comes to for the row that is there.
//!
//! A store runs one [`Op`] as one transaction: it reads the row, calls [`Op::apply`], and writes what that returns.
//! IndexedDB, the memory of a page without storage and the tests all run the same function.

use super::env::{Env, Wall};
use super::error::{Code, Error};
use super::key::Key;
use super::record::{Record, State};
use super::transition::Claim;
use super::verdict::Answer;

/// One transaction on one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Writes a new intent with its body, already claimed if it goes out at once.
    Store(Box<Record>),
    /// Takes it for one attempt.
    Claim(Key),
    /// Ends the attempt of that fence.
    Settle(Key, u64, Box<Answer>),
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
    /// Mends deadlines that a clock ahead of its time wrote.
    Reanchor(Key),
    /// Brings its next attempt forward: the network is back.
    BringForward(Key),
}

/// What a transaction writes.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// The row.
    Put(Box<Record>),
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
    pub record: Option<Box<Record>>,
    /// Whether what was asked was done.
    pub accepted: bool,
    /// Whether this transaction is the one that settled the intent.
    pub settled: bool,
    /// What to write, in order.
    pub writes: Vec<Write>,
    /// Why it was not done, where the caller is to know.
    pub error: Option<Error>,
}

impl Op {
    /// The key of the row that it reads.
    pub fn key(&self) -> &Key {
        match self {
            Op::Store(record) => &record.key,
            Op::Claim(key)
            | Op::Settle(key, ..)
            | Op::Cancel(key)
            | Op::Retry { key, .. }
            | Op::Discard(key)
            | Op::Forget(key)
            | Op::Reanchor(key)
            | Op::BringForward(key) => key,
        }
    }

    /// Whether the transaction must be on the disk, not only on its way there, when it is complete: what was promised
    /// to a person, and what keeps something from being sent twice.
    pub fn is_strict(&self) -> bool {
        !matches!(self, Op::Forget(_) | Op::Reanchor(_) | Op::BringForward(_))
    }

    /// What it comes to for the row that is there.
    pub fn apply(&self, row: Option<Record>, env: &mut Env) -> Applied {
        if let Op::Store(record) = self {
            return store(record, row);
        }
        let Some(row) = row else {
            return Applied {
                error: Some(Error::about(
                    Code::UnknownKey,
                    self.key().as_str(),
                    "no intent of that key is known here",
                )),
                ..Applied::default()
            };
        };
        let now = env.wall;
        match self {
            Op::Store(_) => Applied::default(),
            Op::Claim(_) => changed(row, |row| {
                row.reanchor(now);
                row.claim(env) == Claim::Granted
            }),
            Op::Settle(_, fence, answer) => changed(row, |row| row.settle(*fence, answer, env)),
            Op::Cancel(_) => changed(row, |row| row.cancel(now)),
            Op::Reanchor(_) => changed(row, |row| row.reanchor(now)),
            Op::BringForward(_) => changed(row, |row| row.bring_forward(env)),
            Op::Retry {
                new_key,
                may_repeat,
                ..
            } => retry(row, new_key, *may_repeat, now),
            Op::Discard(key) => {
                let settled = !matches!(row.state, State::Delivered | State::Cancelled);
                Applied {
                    accepted: true,
                    settled,
                    writes: delete(key),
                    record: Some(Box::new(if settled { discarded(row, now) } else { row })),
                    error: None,
                }
            }
            Op::Forget(key) => {
                let shown = matches!(row.state, State::Delivered | State::Cancelled);
                Applied {
                    accepted: shown,
                    writes: if shown { delete(key) } else { Vec::new() },
                    record: Some(Box::new(row)),
                    ..Applied::default()
                }
            }
        }
    }
}

fn delete(key: &Key) -> Vec<Write> {
    vec![Write::Delete(key.clone()), Write::DropBody(key.clone())]
}

/// Gives an intent up that may be refused already: then there is no answer left to win over it.
fn discarded(mut row: Record, now: Wall) -> Record {
    if row.state == State::Refused {
        row.state = State::Parked;
    }
    row.cancel(now);
    row
}

/// A key that is known is no new intent: the same bytes are the same submission, other bytes the caller's mistake.
fn store(record: &Record, row: Option<Record>) -> Applied {
    match row {
        None => Applied {
            record: Some(Box::new(record.clone())),
            accepted: true,
            writes: vec![
                Write::PutBody(record.key.clone()),
                Write::Put(Box::new(record.clone())),
            ],
            ..Applied::default()
        },
        Some(known) => Applied {
            error: (known.fingerprint != record.fingerprint).then(|| {
                Error::new(
                    Code::KeyReused,
                    "options.key: known with another method, URL, type or body",
                )
            }),
            record: Some(Box::new(known)),
            ..Applied::default()
        },
    }
}

/// Runs a change and writes the row if there was one.
fn changed(mut row: Record, change: impl FnOnce(&mut Record) -> bool) -> Applied {
    let before = row.clone();
    let accepted = change(&mut row);
    let mut writes = Vec::new();
    if row != before {
        writes.push(Write::Put(Box::new(row.clone())));
        if matches!(row.state, State::Delivered | State::Cancelled) {
            writes.push(Write::DropBody(row.key.clone()));
        }
    }
    Applied {
        settled: row.state != before.state && row.state.is_settled(),
        record: Some(Box::new(row)),
        accepted,
        writes,
        error: None,
    }
}

fn retry(mut row: Record, new_key: &Key, may_repeat: bool, now: Wall) -> Applied {
    match row.retry_needs_new_key(may_repeat, now) {
        Err(error) => Applied {
            record: Some(Box::new(row)),
            error: Some(error),
            ..Applied::default()
        },
        Ok(false) => {
            row.retry(may_repeat, now);
            Applied {
                writes: vec![Write::Put(Box::new(row.clone()))],
                record: Some(Box::new(row)),
                accepted: true,
                ..Applied::default()
            }
        }
        Ok(true) => {
            let renewed = row.renewed(new_key.clone(), now);
            let mut writes = vec![
                Write::CopyBody(row.key.clone(), new_key.clone()),
                Write::Put(Box::new(renewed.clone())),
            ];
            writes.extend(delete(&row.key));
            Applied {
                writes,
                record: Some(Box::new(renewed)),
                accepted: true,
                ..Applied::default()
            }
        }
    }
}
