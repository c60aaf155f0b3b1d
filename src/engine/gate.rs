//! The gate of an origin: while a server does not answer, one intent asks for all.
//!
//! A network failure, a timeout, 429, 502, 503 and 504 close it; any other answer opens it. A closed gate lets one
//! attempt pass when its time has come, the probe, and everything else that is due to that origin waits and spends
//! nothing. It is a record of the store, so that a page that dies with the probe leaves the rest of them a deadline.

use super::backoff;
use super::env::{Env, Millis, Wall};
use super::op::{Applied, Op};
use super::policy::Policy;
use super::record::{Deadline, Reason, Record, State};
use super::retry_after::Floor;
use super::shape::{Shape, Visitor};
use super::verdict::{server_floor, Answer};
use std::rc::Rc;

/// How long the probe may be overdue before the failures until then are forgotten, if it was not waited longer itself.
const LATELY: Millis = 60_000;

/// The closed gate of an origin. An open one has no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// The origin.
    pub id: String,
    /// How many probes in a row failed.
    pub failures: u32,
    /// When it closed, or was last found closed.
    pub since: Wall,
    /// When the next attempt may pass.
    pub probe: Deadline,
    /// The server's own floor: nothing passes before it.
    pub not_before: Option<Deadline>,
    /// Whether reconnecting may bring the probe forward. Cleared when it did.
    pub cuttable: bool,
}

impl Default for Gate {
    fn default() -> Self {
        Gate {
            id: String::new(),
            failures: 0,
            since: 0,
            probe: Deadline::default(),
            not_before: None,
            cuttable: true,
        }
    }
}

impl Shape for Gate {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        visitor.require(&["id", "probe"]);
        visitor.field("id", &mut self.id);
        visitor.field("failures", &mut self.failures);
        visitor.field("since", &mut self.since);
        visitor.object("probe", &mut self.probe);
        visitor.optional("notBefore", &mut self.not_before);
        visitor.field("cuttable", &mut self.cuttable);
    }
}

impl Gate {
    /// Whether an attempt may pass. What a clock ahead of its time wrote stops nobody.
    pub fn lets_pass(&self, now: Wall) -> bool {
        self.probe.at() <= now || self.probe.is_from_the_future(now)
    }

    /// Whether a new submission may be the probe before its time: a person waits for it. Once the first delay of its policy
    /// has passed since the gate was last found closed, so that a thousand at once are no storm, and never inside the
    /// server's floor.
    pub fn lets_new_pass(&self, policy: &Policy, now: Wall) -> bool {
        let floor = self.not_before.map_or(0, |floor| floor.anchored(now).at());
        now >= floor && now.abs_diff(self.since) >= backoff::bound(policy, 0)
    }

    /// Takes the probe: nobody else passes before this claim's lease is over. Where nobody was there to take it when its time
    /// had come, the failures of that time say nothing about now: a week later one would otherwise wait as long as after
    /// the last of them.
    pub(super) fn take(&mut self, now: Wall, lease: Millis) {
        if now.saturating_sub(self.probe.at()) > self.probe.length_ms.max(LATELY) {
            self.failures = 0;
        }
        self.probe = Deadline::after(now, lease);
    }

    /// Lets the next one pass now: nothing was sent, or a person asks. The server's floor stands.
    pub(super) fn release(&mut self, now: Wall) {
        // (One that a clock ahead of its time wrote is waited again from now.)
        let floor = self
            .not_before
            .map_or(now, |floor| floor.anchored(now).at());
        self.probe = Deadline::after(now, floor.saturating_sub(now));
    }

    /// Brings the probe forward to within the spread, because the network is back: once, never before the floor.
    pub(super) fn bring_forward(&mut self, spread: Millis, env: &mut Env) -> bool {
        let cuttable = std::mem::take(&mut self.cuttable);
        let soon = Deadline::after(env.wall, env.random.up_to(spread));
        if cuttable && self.not_before.is_none() && soon.at() < self.probe.at() {
            self.probe = soon;
        }
        cuttable
    }
}

/// Runs a transaction on a row whose origin may have a closed gate. What it makes of the gate is in [`Applied::gate`].
pub(super) fn apply(
    op: &Op,
    gate: Option<Gate>,
    row: Option<Rc<Record>>,
    env: &mut Env,
) -> Applied {
    let now = env.wall;
    match (op, gate, row) {
        (Op::Store(record), Some(gate), None) if record.state == State::Sending => {
            take(gate, op.apply(None, env), now)
        }
        (Op::Claim(_), Some(gate), Some(row)) if row.limit_met(now).is_none() => {
            if gate.lets_pass(now) {
                return take(gate, op.apply(Some(row), env), now);
            }
            Applied {
                record: Some(row),
                gate: Some(Some(gate)),
                ..Applied::default()
            }
        }
        (Op::Settle(_, _, answer), gate, Some(row)) => {
            let claimed = row.lease.map_or(now, |lease| lease.written_at);
            let mut applied = op.apply(Some(row), env);
            if let (true, Some(row)) = (applied.accepted, &applied.record) {
                let after = after(gate.clone(), answer, claimed, row, env);
                applied.gate = (after != gate).then_some(after);
            }
            applied
        }
        (Op::Retry { .. }, Some(mut gate), row) => {
            let mut applied = op.apply(row, env);
            if applied.accepted {
                gate.release(now);
                applied.gate = Some(Some(gate));
            }
            applied
        }
        (Op::BringForward(_), Some(mut gate), Some(row)) => {
            let spread = row.policy.reconnect_spread_ms;
            let mut applied = op.apply(Some(row), env);
            if gate.bring_forward(spread, env) {
                applied.gate = Some(Some(gate));
            }
            applied
        }
        (_, _, row) => op.apply(row, env),
    }
}

fn take(mut gate: Gate, mut applied: Applied, now: Wall) -> Applied {
    let lease = applied.record.as_ref().and_then(|row| row.lease);
    if let Some(lease) = lease.filter(|_| applied.accepted) {
        gate.take(now, lease.length_ms);
    }
    applied.gate = Some(Some(gate));
    applied
}

/// What the end of an attempt makes of the gate of its origin. `claimed`: when the attempt was claimed; `row`: as the
/// verdict left it.
fn after(
    gate: Option<Gate>,
    answer: &Answer,
    claimed: Wall,
    row: &Record,
    env: &mut Env,
) -> Option<Gate> {
    let now = env.wall;
    let (closes, floor) = match answer {
        Answer::NotSent | Answer::Abandoned => {
            return gate.map(|mut gate| {
                gate.release(now);
                gate
            });
        }
        Answer::Failure(failure) => (!failure.blocked_by_csp, None),
        Answer::Response(head) => (
            matches!(head.status, 429 | 502 | 503 | 504),
            server_floor(head, now),
        ),
    };
    if !closes {
        return None;
    }
    let mut gate = gate.unwrap_or_else(|| Gate {
        id: row.origin.clone(),
        ..Gate::default()
    });
    // (A wait may be no time at all, so one claimed in that very millisecond is another; and a clock set back tells nothing.)
    let known = gate.failures > 0 && claimed < gate.since && gate.since <= now;
    // What was on its way when it closed tells nothing new, except how long to wait.
    // Offline, nothing was heard of the server: there is one probe for all, as often as for one intent.
    let offline = row.reason == Some(Reason::Offline);
    if !known {
        if !offline || gate.failures == 0 {
            gate.failures = gate.failures.saturating_add(1);
        }
        gate.cuttable = !matches!(answer, Answer::Response(head) if head.status == 429);
    }
    let floor = floor.map(|Floor { ms, .. }| ms.min(row.policy.max_retry_after_ms));
    let n = gate.failures - 1;
    // An intent that waits as long by itself is the next probe: two draws would make the longer of them the delay.
    let own = row
        .schedule
        .filter(|_| row.state == State::Pending && (offline || row.spent >= gate.failures));
    let probe = own.unwrap_or_else(|| {
        let delay = match floor {
            Some(floor) => backoff::delay_over_floor(&row.policy, n, floor, &mut env.random),
            None => backoff::delay(&row.policy, n, &mut env.random),
        };
        Deadline::after(now, delay)
    });
    if !known || probe.at() > gate.probe.at() {
        gate.probe = probe;
    }
    if let Some(floor) = floor {
        gate.not_before = Some(Deadline::after(now, floor));
    } else if !known {
        gate.not_before = None;
    }
    if !known {
        gate.since = now;
    }
    Some(gate)
}
