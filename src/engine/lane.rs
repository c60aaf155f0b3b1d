//! Lanes: intents that must reach the server in order, and intents of which only the newest counts.
//!
//! Only the head of a lane is due. Who enters a lane that is not empty goes to its end and has no deadline; and after every
//! transaction that may have freed a lane, the first that is left in it is looked at ([`promote`]). So no transaction
//! reads more of a lane than its two ends, however long it is.

use super::env::{Env, Millis, Wall};
use super::error::{Code, Error};
use super::op::{Applied, Beside, Op, Write};
use super::record::{Deadline, Reason, Record, State};
use super::sign_in;
use std::rc::Rc;

/// A lane whose first intent is to be looked at, since the one before it may have gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vacated {
    /// Whose lane it is.
    pub owner: String,
    /// The lane.
    pub lane: String,
    /// How long its first has to wait: an attempt of the one before may run on elsewhere.
    pub wait: Millis,
}

/// What a transaction reads of lanes: the place of the last in a lane, and the rows of a `coalesceKey`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Around {
    /// Whose.
    pub owner: String,
    /// The lane.
    pub lane: Option<String>,
    /// The `coalesceKey`.
    pub coalesce_key: Option<String>,
}

impl Around {
    /// What `op` reads, `row` being what it found.
    pub fn of(op: &Op, row: Option<&Record>) -> Self {
        let (about, enters) = match (op, row) {
            (Op::Store(new), None) => (&**new, true),
            (Op::Retry { .. }, Some(row)) => (row, true),
            (Op::Settle(..), Some(row)) => (row, false),
            _ => return Around::default(),
        };
        Around {
            owner: about.owner.clone(),
            lane: about.lane.clone().filter(|_| enters),
            coalesce_key: about.coalesce_key.clone(),
        }
    }
}

impl Record {
    /// Whether it is the first of its lane: it is due, or holds the lane until a person decides.
    pub fn heads_lane(&self) -> bool {
        self.lane_seq.is_some() && (self.next_attempt_at.is_some() || self.state.is_settled())
    }

    /// Takes its place in the lane.
    fn enter_lane(&mut self, place: u64, free: bool) {
        self.lane_seq = Some(place);
        if !free {
            // It was written as claimed, in the hope that the lane is free.
            self.unclaim();
            self.wait_behind();
        }
    }

    /// Waits for those before it in its lane.
    fn wait_behind(&mut self) {
        self.state = State::Pending;
        self.reason = Some(Reason::Queued);
        self.leave_schedule();
    }

    fn is_never_sent(&self) -> bool {
        self.state == State::Pending && !self.maybe_delivered
    }
}

/// Runs a transaction on a row that may have others before it and behind it.
pub(super) fn apply(
    op: &Op,
    mut beside: Beside,
    row: Option<Rc<Record>>,
    env: &mut Env,
) -> Applied {
    let now = env.wall;
    let Beside {
        ended,
        lane_end,
        ref mut twins,
        ..
    } = beside;
    let twins = std::mem::take(twins);
    let headed = row.as_deref().is_some_and(Record::heads_lane);
    let runs_on = row
        .as_deref()
        .filter(|row| ended != Some(row.fence))
        .and_then(|row| row.lease)
        .map_or(0, |lease| lease.left(now));
    let mut over: Vec<Rc<Record>> = Vec::new();
    let mut applied = match (op, &row) {
        (Op::Store(new), None) if new.lane.is_some() => {
            over = twins;
            over.retain(|twin| twin.is_never_sent());
            // (Nobody is behind the last, and nobody before the head.)
            let replaces_all = over
                .iter()
                .any(|twin| twin.lane_seq == Some(lane_end) && twin.heads_lane());
            let mut new = new.clone();
            Rc::make_mut(&mut new).enter_lane(lane_end + 1, lane_end == 0 || replaces_all);
            sign_in::apply(&Op::Store(new), beside, None, env)
        }
        (Op::Retry { .. }, Some(row)) if twins.iter().any(|twin| twin.will_replace(row)) => {
            Applied {
                error: Some(Error::about(
                    Code::BadState,
                    "retry",
                    "a newer submission of its coalesceKey is on its way",
                )),
                record: Some(row.clone()),
                ..Applied::default()
            }
        }
        (Op::Settle(..), Some(_)) => {
            let applied = sign_in::apply(op, beside, row, env);
            if let Some(new) = applied.record.as_deref().filter(|_| applied.settled) {
                over = twins;
                over.retain(|old| old.is_replaced_by(new));
            }
            applied
        }
        _ => sign_in::apply(op, beside, row, env),
    };
    let Some(mut record) = applied.record.clone() else {
        return applied;
    };
    if let (Op::Retry { .. }, true, Some(_), false) = (op, applied.accepted, &record.lane, headed) {
        let record = Rc::make_mut(&mut record);
        record.lane_seq.get_or_insert(lane_end + 1);
        record.wait_behind();
        applied.replace(record.clone());
    }
    for mut twin in over {
        Rc::make_mut(&mut twin).supersede(now);
        applied.writes.push(Write::Put(twin.clone()));
        applied.writes.push(Write::DropBody(twin.key.clone()));
        applied.also.push(twin);
    }
    let stays = record.heads_lane() && !applied.writes.contains(&Write::Delete(record.key.clone()));
    if let (Some(lane), false, false) = (&record.lane, stays, applied.writes.is_empty()) {
        let gives_up = matches!(op, Op::Cancel(_) | Op::Discard(_));
        applied.vacated = Some(Vacated {
            owner: record.owner.clone(),
            lane: lane.clone(),
            wait: if gives_up { runs_on } else { 0 },
        });
    }
    applied
}

impl Record {
    /// Whether it is newer than `old`, of its `coalesceKey`, and still to come.
    fn will_replace(&self, old: &Record) -> bool {
        self.created_at > old.created_at && !self.state.is_settled()
    }

    /// Whether it is parked, and `new`, which was delivered, is newer: what it said is out of date.
    fn is_replaced_by(&self, new: &Record) -> bool {
        new.state == State::Delivered
            && self.state == State::Parked
            && self.created_at <= new.created_at
    }
}

/// Gives the first of a lane its deadline, unless it has one or holds the lane. Returns what changed.
pub fn promote(mut first: Rc<Record>, vacated: &Vacated, now: Wall) -> Option<Rc<Record>> {
    if first.heads_lane() {
        return None;
    }
    let row = Rc::make_mut(&mut first);
    row.reason = None;
    row.schedule(Deadline::after(now, vacated.wait));
    Some(first)
}
