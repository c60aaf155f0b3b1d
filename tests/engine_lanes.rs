//! Lanes and coalescing, a transaction at a time, and in a page's memory.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use resubmit::engine::error::Code;
use resubmit::engine::{
    Answer, Applied, Beside, Effect, Event, Jitter, Key, OnParked, Op, Policy, Queue, Reason,
    Record, Report, State, Write,
};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A store that runs one transaction after another.
struct Disk {
    now: u64,
    rows: BTreeMap<Key, Record>,
}

impl Disk {
    fn new() -> Self {
        Disk {
            now: NOW,
            rows: BTreeMap::new(),
        }
    }

    fn run(&mut self, op: Op) -> Applied {
        self.run_beside(op, Beside::default())
    }

    fn run_beside(&mut self, op: Op, beside: Beside) -> Applied {
        self.now += 1;
        let rows = self.rows.values().cloned();
        let applied = transact(rows, &op, beside, &mut env(self.now));
        for write in &applied.writes {
            match write {
                Write::Put(row) => drop(self.rows.insert(row.key.clone(), (**row).clone())),
                Write::Delete(key) => drop(self.rows.remove(key)),
                _ => {}
            }
        }
        applied
    }

    /// Submits as a page does: in the hope that it may go at once.
    fn submit(&mut self, name: &str, change: impl FnOnce(&mut Record)) -> Applied {
        let mut record = named(name, Policy::patient());
        record.created_at = self.now + 1;
        change(&mut record);
        record.claim(&mut env(self.now + 1));
        self.run(Op::Store(Rc::new(record)))
    }

    /// Claims it when it is due, and answers.
    fn attempt(&mut self, name: &str, answer: Answer) -> Applied {
        let due = self.row(name).next_attempt_at.expect("due");
        if self.row(name).state != State::Sending {
            self.now = self.now.max(due);
            assert!(self.run(Op::Claim(key(name))).accepted, "{name} is not due");
        }
        let fence = self.row(name).fence;
        self.run(Op::Settle(key(name), fence, Rc::new(answer)))
    }

    fn row(&self, name: &str) -> &Record {
        &self.rows[&key(name)]
    }

    /// The names of what is due or being sent.
    fn due(&self) -> Vec<&str> {
        let due = self
            .rows
            .values()
            .filter(|row| row.next_attempt_at.is_some());
        due.map(|row| row.key.as_str()).collect()
    }

    fn state(&self, name: &str) -> (State, Option<Reason>) {
        (self.row(name).state, self.row(name).reason)
    }
}

fn laned(record: &mut Record) {
    record.lane = Some("account".into());
}

fn skipping(record: &mut Record) {
    laned(record);
    record.on_parked = OnParked::Skip;
}

/// As `coalesceKey` alone makes it.
fn coalescing(record: &mut Record) {
    record.coalesce_key = Some("draft".into());
    record.lane = Some("draft".into());
    record.on_parked = OnParked::Skip;
}

const QUEUED: (State, Option<Reason>) = (State::Pending, Some(Reason::Queued));

#[test]
fn only_the_head_of_a_lane_is_due_and_the_next_follows_when_it_settled() {
    let mut disk = Disk::new();
    for name in ["a", "b", "c"] {
        disk.submit(name, laned);
    }
    assert_eq!(disk.due(), ["a"]);
    assert_eq!(disk.state("b"), QUEUED);
    let b = disk.row("b");
    assert_eq!((b.attempts, b.spent, b.maybe_delivered), (0, 0, false));
    assert!(b.lease.is_none() && b.key_used_at.is_none());

    // A failure keeps the lane.
    disk.attempt("a", status(503));
    assert_eq!(disk.due(), ["a"]);
    let settled = disk.attempt("a", status(201));
    assert_eq!(settled.also.len(), 1);
    assert_eq!(disk.due(), ["b"]);
    assert_eq!(disk.state("b"), (State::Pending, None));
    assert_eq!(disk.row("b").next_attempt_at, Some(disk.now));
    disk.attempt("b", status(422));
    assert_eq!(disk.due(), ["c"]);
    disk.attempt("c", status(201));
    assert!(disk.rows.values().all(|row| row.lane_seq.is_none()));
}

#[test]
fn lanes_and_owners_do_not_wait_for_one_another() {
    let mut disk = Disk::new();
    disk.submit("a", laned);
    disk.submit("b", |record| record.lane = Some("other".into()));
    disk.submit("c", |_| {});
    disk.submit("d", |record| {
        laned(record);
        record.owner = "somebody".into();
    });
    assert_eq!(disk.due(), ["a", "b", "c", "d"]);
    disk.submit("e", laned);
    disk.attempt("b", status(201));
    disk.attempt("d", status(201));
    assert_eq!(disk.state("e"), QUEUED);
}

#[test]
fn a_parked_intent_holds_its_lane_until_a_person_decides() {
    let mut disk = Disk::new();
    disk.submit("a", laned);
    disk.submit("b", laned);
    disk.attempt("a", status(302));
    assert_eq!(disk.row("a").state, State::Parked);
    assert!(disk.due().is_empty());
    // A fresh intent, and still the first.
    let retry = Op::Retry {
        key: key("a"),
        new_key: key("new"),
        may_repeat: false,
    };
    assert!(disk.run(retry).accepted);
    assert_eq!(disk.due(), ["a"]);
    disk.attempt("a", status(302));
    disk.run(Op::Discard(key("a")));
    assert_eq!(disk.due(), ["b"]);
}

#[test]
fn one_that_skips_leaves_the_lane_and_comes_back_at_its_end() {
    let mut disk = Disk::new();
    disk.submit("a", skipping);
    disk.submit("b", laned);
    disk.attempt("a", status(302));
    assert_eq!(disk.due(), ["b"]);
    let retry = || Op::Retry {
        key: key("a"),
        new_key: key("new"),
        may_repeat: false,
    };
    let retried = disk.run(retry());
    assert_eq!(retried.record.unwrap().reason, Some(Reason::Queued));
    assert_eq!(disk.due(), ["b"]);
    // A person who asks again does not overtake.
    assert!(disk.run(retry()).accepted);
    assert_eq!(disk.state("a"), QUEUED);
    disk.attempt("b", status(201));
    assert_eq!(disk.due(), ["a"]);
    // Into an empty lane it goes at once.
    disk.attempt("a", status(302));
    disk.run(retry());
    assert_eq!(disk.due(), ["a"]);
}

#[test]
fn a_new_key_keeps_the_place_that_the_old_one_held() {
    let mut disk = Disk::new();
    disk.submit("a", laned);
    disk.submit("b", laned);
    let replayed = replayed(500);
    disk.attempt("a", replayed);
    let retried = disk.run(Op::Retry {
        key: key("a"),
        new_key: key("new"),
        may_repeat: true,
    });
    assert!(retried.accepted, "{:?}", retried.error);
    assert_eq!(disk.due(), ["new"]);
    disk.attempt("new", status(201));
    assert_eq!(disk.due(), ["b"]);
}

#[test]
fn a_limit_that_is_met_in_the_claim_frees_the_lane_too() {
    let mut disk = Disk::new();
    disk.submit("a", skipping);
    disk.submit("b", laned);
    disk.attempt("a", status(503));
    disk.now += 8 * DAY;
    assert!(!disk.run(Op::Claim(key("a"))).accepted);
    assert_eq!(disk.row("a").state, State::Parked);
    assert_eq!(disk.due(), ["b"]);
}

#[test]
fn giving_up_one_in_the_middle_leaves_the_others_as_they_were() {
    let mut disk = Disk::new();
    for name in ["a", "b", "c"] {
        disk.submit(name, laned);
    }
    disk.run(Op::Cancel(key("b")));
    assert_eq!(disk.due(), ["a"]);
    assert_eq!(disk.state("c"), QUEUED);
    disk.attempt("a", status(201));
    assert_eq!(disk.due(), ["c"]);
}

#[test]
fn what_is_given_up_while_another_page_sends_it_keeps_its_lane_until_that_lease_ends() {
    for discards in [false, true] {
        for ours in [false, true] {
            let mut disk = Disk::new();
            disk.submit("a", laned);
            disk.submit("b", laned);
            let lease = disk.row("a").lease.unwrap();
            let until = lease.written_at + lease.length_ms;
            let beside = Beside {
                ended: Some(disk.row("a").fence).filter(|_| ours),
                ..Beside::default()
            };
            let op = if discards {
                Op::Discard(key("a"))
            } else {
                Op::Cancel(key("a"))
            };
            disk.run_beside(op, beside);
            let free = if ours { disk.now } else { until };
            assert_eq!(disk.row("b").next_attempt_at, Some(free));
        }
    }
}

#[test]
fn a_late_delivery_frees_the_lane_that_was_held() {
    let mut disk = Disk::new();
    disk.submit("a", laned);
    disk.submit("b", laned);
    let fence = disk.row("a").fence;
    disk.attempt("a", status(302));
    assert!(disk.due().is_empty());
    let late = Op::Settle(key("a"), fence, Rc::new(status(201)));
    assert!(disk.run(late).settled);
    assert_eq!(disk.due(), ["b"]);
}

#[test]
fn a_write_ahead_that_came_too_late_is_taken_back_from_its_lane() {
    let mut disk = Disk::new();
    disk.submit("a", laned);
    let mut b = named("b", Policy::patient());
    laned(&mut b);
    b.claim(&mut env(disk.now));
    let b = Rc::new(b);
    disk.run(Op::Store(b.clone()));
    disk.submit("c", laned);
    assert!(disk.run(Op::Unstore(b)).accepted);
    assert!(!disk.rows.contains_key(&key("b")));
    disk.attempt("a", status(201));
    assert_eq!(disk.due(), ["c"]);
}

#[test]
fn a_newer_one_replaces_what_was_never_sent() {
    let mut disk = Disk::new();
    disk.submit("a", coalescing);
    disk.attempt("a", Answer::Failure(offline()));
    assert!(!disk.row("a").maybe_delivered);
    let stored = disk.submit("b", coalescing);
    assert_eq!(
        disk.state("a"),
        (State::Cancelled, Some(Reason::Superseded))
    );
    assert!(stored.writes.contains(&Write::DropBody(key("a"))));
    // The lane was that one's alone: the newer goes at once.
    assert_eq!(disk.row("b").state, State::Sending);
    assert_eq!(disk.due(), ["b"]);
}

#[test]
fn a_newer_one_queues_behind_what_may_have_been_sent_and_replaces_what_waits_there() {
    let mut disk = Disk::new();
    disk.submit("a", coalescing);
    disk.submit("b", coalescing);
    assert_eq!(disk.state("b"), QUEUED);
    disk.submit("c", coalescing);
    assert_eq!(
        disk.state("b"),
        (State::Cancelled, Some(Reason::Superseded))
    );
    assert_eq!(disk.state("c"), QUEUED);
    disk.attempt("a", status(503));
    assert_eq!(disk.due(), ["a"]);
    disk.attempt("a", status(201));
    assert_eq!(disk.due(), ["c"]);
}

#[test]
fn in_a_lane_with_others_the_newer_one_goes_to_the_end() {
    let mut disk = Disk::new();
    let named = |record: &mut Record| {
        laned(record);
        record.coalesce_key = Some("draft".into());
    };
    disk.submit("a", named);
    disk.attempt("a", Answer::Failure(offline()));
    disk.submit("b", laned);
    disk.submit("c", named);
    assert_eq!(
        disk.state("a"),
        (State::Cancelled, Some(Reason::Superseded))
    );
    assert_eq!(disk.due(), ["b"]);
    assert_eq!(disk.state("c"), QUEUED);
}

#[test]
fn a_parked_older_one_is_superseded_when_the_newer_is_delivered() {
    let mut disk = Disk::new();
    disk.submit("a", coalescing);
    disk.attempt("a", status(302));
    assert_eq!(disk.row("a").state, State::Parked);
    disk.submit("b", coalescing);
    assert_eq!(disk.row("b").state, State::Sending);
    disk.attempt("b", status(503));
    assert_eq!(disk.row("a").state, State::Parked);

    // What a newer one will replace is not sent behind it.
    let refused = disk.run(Op::Retry {
        key: key("a"),
        new_key: key("new"),
        may_repeat: true,
    });
    assert_eq!(refused.error.unwrap().code(), Code::BadState);
    let delivered = disk.attempt("b", status(201));
    assert_eq!(delivered.also.len(), 1);
    assert_eq!(
        disk.state("a"),
        (State::Cancelled, Some(Reason::Superseded))
    );
}

/// Submits from memory, and says what became of it.
fn submit(queue: &mut Queue, now: u64, name: &str, change: fn(&mut Record)) -> Vec<Effect> {
    let policy = Policy {
        jitter: Jitter::None,
        ..Policy::patient()
    };
    let mut record = named(name, policy);
    record.created_at = NOW + now;
    change(&mut record);
    let event = Event::Submit {
        record: Rc::new(record),
        durable: false,
    };
    tell(queue, now, event)
}

fn tell(queue: &mut Queue, now: u64, event: Event) -> Vec<Effect> {
    queue.handle(event, &mut env(NOW + now));
    std::iter::from_fn(|| queue.poll_effect()).collect()
}

fn sent(effects: &[Effect]) -> Vec<&str> {
    let sends = effects.iter().filter_map(|effect| match effect {
        Effect::Send(record) => Some(record.key.as_str()),
        _ => None,
    });
    sends.collect()
}

#[test]
fn what_lives_in_memory_keeps_its_order_too() {
    let mut queue = Queue::default();
    assert_eq!(sent(&submit(&mut queue, 0, "a", laned)), ["a"]);
    let b = submit(&mut queue, 1, "b", laned);
    assert!(sent(&b).is_empty());
    let waits = |effect: &Effect| matches!(effect, Effect::Report(Report::Waiting(_)));
    assert!(b.iter().any(waits));
    assert_eq!(sent(&submit(&mut queue, 2, "x", |_| {})), ["x"]);
    let fence = queue.record(&key("a")).unwrap().fence;
    let answered = Event::Answered(key("a"), fence, Box::new(status(201)));
    assert_eq!(sent(&tell(&mut queue, 10, answered)), ["b"]);
    // Given up, the next follows at once.
    assert!(sent(&submit(&mut queue, 11, "c", laned)).is_empty());
    let given_up = Event::Asked(2, Op::Cancel(key("b")));
    assert_eq!(sent(&tell(&mut queue, 12, given_up)), ["c"]);
}

#[test]
fn what_lives_in_memory_coalesces_too() {
    let mut queue = Queue::default();
    submit(&mut queue, 0, "a", coalescing);
    submit(&mut queue, 1, "b", coalescing);
    let c = submit(&mut queue, 2, "c", coalescing);
    let ended = c.iter().any(|effect| match effect {
        Effect::Report(Report::Settled(record, None)) => {
            record.key == key("b") && record.reason == Some(Reason::Superseded)
        }
        _ => false,
    });
    assert!(ended);
}

#[test]
fn a_parked_head_that_is_forgotten_lets_the_next_go() {
    let mut disk = Disk::new();
    for name in ["a", "b"] {
        disk.submit(name, |row| row.lane = Some("cart".into()));
    }
    disk.attempt("a", status(302));
    assert_eq!(disk.row("b").next_attempt_at, None);
    disk.now = disk.row("a").forget_at.unwrap();
    let applied = disk.run(Op::Expire(key("a")));
    assert_eq!(disk.row("a").reason, Some(Reason::Expired));
    assert_eq!(disk.row("a").lane, None);
    assert_eq!(disk.row("b").next_attempt_at, Some(disk.now));
    assert_eq!(applied.also.len(), 1);
}
