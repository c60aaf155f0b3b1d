//! One page's queue, event by event: what it does, in which order, and what it does not do.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use resubmit::engine::error::Code;
use resubmit::engine::gate::Gate;
use resubmit::engine::queue::{Due, Ticket, PER_ORIGIN, RECHECK};
use resubmit::engine::transition::{Claim, GRACE};
use resubmit::engine::{
    Answer, Applied, Beside, Clocks, Effect, Env, Error, Event, Failure, Jitter, Key, Op, Policy,
    Queue, Random, Reason, Record, Report, State, Why, Write,
};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A page, a clock that both of its clocks agree with, and the rows of a store.
struct Page {
    queue: Queue,
    now: u64,
    /// How far the wall clock is from the other.
    skew: i64,
    seed: u64,
    rows: BTreeMap<Key, Record>,
    /// The closed gates, by origin.
    gates: BTreeMap<String, Gate>,
    /// The origins at which the owner has to sign in.
    signed_out: BTreeSet<String>,
    /// What the application was asked for.
    asked: Vec<(Key, Why)>,
    /// Transactions that the store has yet to run.
    waiting: Vec<(Ticket, Op)>,
    sent: Vec<Record>,
    aborted: Vec<(Key, u64)>,
    reports: Vec<Report>,
    replies: Vec<(Ticket, Result<Box<Applied>, Error>)>,
    queries: usize,
    brought_forward: usize,
}

impl Page {
    fn new() -> Self {
        let mut page = Page {
            queue: Queue::default(),
            now: 0,
            skew: 0,
            seed: 1,
            rows: BTreeMap::new(),
            gates: BTreeMap::new(),
            signed_out: BTreeSet::new(),
            asked: Vec::new(),
            waiting: Vec::new(),
            sent: Vec::new(),
            aborted: Vec::new(),
            reports: Vec::new(),
            replies: Vec::new(),
            queries: 0,
            brought_forward: 0,
        };
        page.tell(Event::Opened);
        page.tell(Event::Queried(Due::default()));
        page.queries = 0;
        page
    }

    fn wall(&self) -> u64 {
        (NOW + self.now).saturating_add_signed(self.skew)
    }

    fn env(&mut self) -> Env {
        self.seed += 1;
        Env {
            wall: self.wall(),
            mono: self.now,
            random: Random::new(self.seed),
        }
    }

    fn tell(&mut self, event: Event) {
        let mut env = self.env();
        self.queue.handle(event, &mut env);
        while let Some(effect) = self.queue.poll_effect() {
            match effect {
                Effect::Transact(ticket, op) => self.waiting.push((ticket, op)),
                Effect::Query => self.queries += 1,
                Effect::BringForward => self.brought_forward += 1,
                Effect::Send(record) => self.sent.push((*record).clone()),
                Effect::Abort(key, fence) => self.aborted.push((key, fence)),
                Effect::Authorize(record, why) => self.asked.push((record.key.clone(), why)),
                Effect::Renew(..) | Effect::Clear(_) | Effect::ChangeOver => {}
                Effect::Report(report) => self.reports.push(report),
                Effect::Reply(ticket, reply) => self.replies.push((ticket, reply)),
            }
        }
    }

    /// The store commits the oldest transaction that waits.
    fn commit(&mut self) -> Op {
        let (ticket, op) = self.waiting.remove(0);
        let row = self.rows.get(op.key()).cloned().map(Rc::new);
        let origin = match (&op, &row) {
            (_, Some(row)) => row.origin.clone(),
            (Op::Store(record), None) => record.origin.clone(),
            _ => String::new(),
        };
        let beside = Beside {
            gate: self.gates.get(&origin).cloned(),
            signed_out: self.signed_out.contains(&origin),
            ..self.queue.beside(&op)
        };
        let mut env = self.env();
        let applied = transact(self.rows.values().cloned(), &op, beside, &mut env);
        match &applied.gate {
            Some(Some(gate)) => drop(self.gates.insert(origin.clone(), gate.clone())),
            Some(None) => drop(self.gates.remove(&origin)),
            None => {}
        }
        match applied.sign_in {
            Some(true) => drop(self.signed_out.insert(origin)),
            Some(false) => drop(self.signed_out.remove(&origin)),
            None => {}
        }
        for write in &applied.writes {
            match write {
                Write::Put(record) => {
                    drop(self.rows.insert(record.key.clone(), (**record).clone()))
                }
                Write::Delete(key) => drop(self.rows.remove(key)),
                _ => {}
            }
        }
        self.tell(Event::Committed(ticket, op.clone(), Box::new(applied)));
        op
    }

    fn commit_all(&mut self) {
        while !self.waiting.is_empty() {
            self.commit();
        }
    }

    /// The store fails the oldest transaction that waits.
    fn fail(&mut self) -> Op {
        let (ticket, op) = self.waiting.remove(0);
        self.tell(Event::Failed(ticket, op.clone()));
        op
    }

    /// The store answers the query that waits.
    fn answer_query(&mut self) {
        let due = Due {
            gates: self.gates.values().cloned().collect(),
            signed_out: self.signed_out.iter().cloned().collect(),
            ..lines(self.rows.values().cloned(), self.wall(), usize::MAX)
        };
        self.queries -= 1;
        self.tell(Event::Queried(due));
    }

    /// Queries and transactions, until the store has nothing to do.
    fn settle_down(&mut self) {
        for _ in 0..1_000 {
            if !self.waiting.is_empty() {
                self.commit();
            } else if self.queries > 0 {
                self.answer_query();
            } else {
                return;
            }
        }
        panic!("no end of queries and transactions at one instant");
    }

    fn submit(&mut self, name: &str) -> Key {
        self.submit_with(named(name, patient()), true)
    }

    fn submit_with(&mut self, mut record: Record, durable: bool) -> Key {
        record.created_at = self.wall();
        let key = record.key.clone();
        self.tell(Event::Submit {
            record: Rc::new(record),
            durable,
        });
        key
    }

    fn answer(&mut self, key: &Key, answer: Answer) {
        let fence = self.sent.iter().rev().find(|sent| sent.key == *key);
        let fence = fence.expect("sent").fence;
        self.tell(Event::Answered(key.clone(), fence, Box::new(answer)));
    }

    fn ask(&mut self, op: Op) -> Ticket {
        let ticket = 2 * (self.replies.len() as u64 + 50);
        self.tell(Event::Asked(ticket, op));
        ticket
    }

    fn deadline(&self) -> Option<u64> {
        self.queue.next_deadline(Clocks {
            wall: self.wall(),
            mono: self.now,
        })
    }

    /// Lets time pass, with a tick whenever one is due, and a store that answers at once.
    fn pass(&mut self, ms: u64) {
        let until = self.now + ms;
        let mut ticks_at_once = 0;
        while let Some(next) = self.deadline().filter(|next| self.now + next <= until) {
            ticks_at_once = if next == 0 { ticks_at_once + 1 } else { 0 };
            assert!(ticks_at_once < 4, "a busy loop");
            self.now += next;
            self.tell(Event::Tick);
            self.settle_down();
        }
        self.now = until;
    }

    fn settled(&self, key: &Key) -> Vec<&Record> {
        self.reports
            .iter()
            .filter_map(|report| match report {
                Report::Settled(record, _) if record.key == *key => Some(&**record),
                _ => None,
            })
            .collect()
    }

    fn stored(&self, key: &Key) -> Option<bool> {
        self.reports.iter().find_map(|report| match report {
            Report::Stored(stored, durable) if stored == key => Some(*durable),
            _ => None,
        })
    }

    fn sends(&self, key: &Key) -> usize {
        self.sent.iter().filter(|sent| sent.key == *key).count()
    }

    fn reply(&self, ticket: Ticket) -> &Result<Box<Applied>, Error> {
        let reply = self.replies.iter().find(|(of, _)| *of == ticket);
        &reply.expect("a reply").1
    }
}

fn patient() -> Policy {
    Policy {
        jitter: Jitter::None,
        ..Policy::background()
    }
}

/// To an origin of its own: what becomes of another's attempts is no matter to it.
fn elsewhere(name: &str) -> Record {
    let mut record = named(name, patient());
    record.origin = format!("https://{name}.test");
    record.request.url = format!("https://{name}.test/orders");
    record
}

/// A page whose first intent was stored and is being sent.
fn sending() -> (Page, Key) {
    let mut page = Page::new();
    let key = page.submit("a");
    page.commit();
    assert_eq!(page.sends(&key), 1);
    (page, key)
}

/// A page whose first intent waits for its second attempt.
fn waiting() -> (Page, Key) {
    let (mut page, key) = sending();
    page.answer(&key, status(503));
    page.settle_down();
    assert_eq!(page.rows[&key].state, State::Pending);
    (page, key)
}

// Submitting

#[test]
fn nothing_is_sent_before_the_row_is_committed() {
    let mut page = Page::new();
    let key = page.submit("a");
    assert!(page.sent.is_empty(), "no send before the write-ahead");
    assert_eq!(page.stored(&key), None);
    let Op::Store(record) = &page.waiting[0].1 else {
        panic!("{:?}", page.waiting);
    };
    assert_eq!(record.state, State::Sending, "written already claimed");
    assert!(record.lease.is_some());
    assert_eq!((record.attempts, record.fence), (1, 1));
    page.now += 5;
    page.commit();
    assert_eq!(page.stored(&key), Some(true));
    assert_eq!(page.sends(&key), 1);
    assert_eq!(
        page.waiting.len(),
        0,
        "one transaction before the first byte"
    );
    let stored = page
        .reports
        .iter()
        .position(|r| matches!(r, Report::Stored(..)));
    let attempted = page
        .reports
        .iter()
        .position(|r| matches!(r, Report::Attempted(_)));
    assert!(stored < attempted);
}

#[test]
fn a_delivery_is_told_when_it_is_written() {
    let (mut page, key) = sending();
    page.answer(&key, status(201));
    assert!(page.settled(&key).is_empty());
    page.commit();
    assert_eq!(page.settled(&key)[0].state, State::Delivered);
    assert_eq!(page.rows[&key].state, State::Delivered);
    assert!(page
        .reports
        .iter()
        .any(|report| matches!(report, Report::Settled(_, Some(1)))));
    assert!(page.queue.record(&key).is_none(), "the page lets go of it");
    page.pass(HOUR);
    assert_eq!(page.sends(&key), 1);
}

#[test]
fn at_most_four_attempts_run_at_once_to_one_origin() {
    let mut page = Page::new();
    let keys: Vec<Key> = (0..7).map(|n| page.submit(&format!("a{n}"))).collect();
    page.settle_down();
    assert_eq!(page.sent.len(), PER_ORIGIN);
    assert!(
        keys.iter().all(|key| page.stored(key) == Some(true)),
        "all are on the disk"
    );
    // Another origin is not held up.
    let other = page.submit_with(elsewhere("b"), true);
    page.settle_down();
    assert_eq!(page.sends(&other), 1);
    // As one ends, the next begins, without a tick.
    for (n, key) in keys.iter().enumerate() {
        page.answer(key, status(201));
        page.settle_down();
        assert_eq!(page.sent.len(), (PER_ORIGIN + 2 + n).min(8));
    }
    assert!(keys.iter().all(|key| page.sends(key) == 1));
}

#[test]
fn what_waits_for_a_slot_comes_on_after_a_claim_that_parks() {
    let mut page = Page::new();
    for n in 0..6 {
        let mut row = named(&format!("a{n}"), patient());
        attempt(&mut row, &network_failure());
        page.rows.insert(row.key.clone(), row);
    }
    page.now = 24 * HOUR;
    page.tell(Event::Look);
    page.settle_down();
    let parked = |row: &Record| row.reason == Some(Reason::KeyExpired);
    assert!(page.rows.values().all(parked), "every key is too old");
}

#[test]
fn a_submission_without_storage_is_announced_and_sent() {
    let mut page = Page::new();
    let key = page.submit_with(named("a", patient()), false);
    assert_eq!(page.stored(&key), Some(false));
    assert!(page.waiting.is_empty(), "the disk is kept out of it");
    assert_eq!(page.sends(&key), 1);
    assert!(page.queue.in_memory(&key));
    page.answer(&key, status(503));
    page.pass(5_000);
    assert_eq!(page.sends(&key), 2);
    page.answer(&key, status(201));
    assert_eq!(page.settled(&key)[0].state, State::Delivered);
    assert!(page.rows.is_empty());
    assert!(page.waiting.is_empty());
}

#[test]
fn a_write_ahead_that_fails_is_announced_before_anything_is_sent() {
    let mut page = Page::new();
    let key = page.submit("a");
    page.fail();
    assert_eq!(page.stored(&key), Some(false));
    assert_eq!(page.sends(&key), 1);
    let stored = page
        .reports
        .iter()
        .position(|r| matches!(r, Report::Stored(..)));
    let attempted = page
        .reports
        .iter()
        .position(|r| matches!(r, Report::Attempted(_)));
    assert!(stored < attempted);
    page.answer(&key, status(201));
    assert_eq!(page.settled(&key).len(), 1);
}

#[test]
fn a_claim_that_took_longer_than_the_grace_sends_nothing() {
    for (mono, wall) in [
        (GRACE + 1, 0),
        (0, GRACE as i64 + 1),
        (0, -(GRACE as i64) - 1),
    ] {
        let mut page = Page::new();
        let key = page.submit("a");
        page.now += mono;
        page.skew += wall;
        page.commit();
        assert!(page.sent.is_empty(), "by either clock");
        assert!(
            matches!(&page.waiting[0].1, Op::Settle(_, 1, answer) if **answer == Answer::NotSent),
            "given back"
        );
        page.settle_down();
        let row = &page.rows[&key];
        assert_eq!(
            (row.state, row.reason),
            (State::Pending, Some(Reason::NotSent))
        );
        assert_eq!(
            (row.attempts, row.spent, row.maybe_delivered),
            (1, 0, false)
        );
        page.pass(2_000);
        assert_eq!(page.sends(&key), 1, "soon again");
    }
    let mut page = Page::new();
    page.submit("a");
    page.now += GRACE;
    page.commit();
    assert_eq!(page.sent.len(), 1, "within the grace");
}

#[test]
fn a_known_key_with_the_same_bytes_is_the_same_submission() {
    let with = |print: &str| {
        let mut record = named("a", patient());
        record.fingerprint = Some(print.into());
        record
    };
    // Held by this page.
    let mut page = Page::new();
    let key = page.submit_with(with("same"), true);
    page.commit();
    page.submit_with(with("same"), true);
    assert!(matches!(page.reports.last(), Some(Report::Known(record)) if record.attempts == 1));
    page.submit_with(with("other"), true);
    let Some(Report::Rejected(rejected, Some(_), error)) = page.reports.last() else {
        panic!("{:?}", page.reports);
    };
    assert_eq!((rejected, error.code()), (&key, Code::KeyReused));
    assert_eq!(page.sent.len(), 1);
    // Known to the store alone.
    let mut other = Page::new();
    other.rows = page.rows.clone();
    other.submit_with(with("same"), true);
    other.commit();
    assert!(matches!(other.reports.last(), Some(Report::Known(_))));
    assert!(other.sent.is_empty(), "its lease runs");
    other.submit_with(with("other"), true);
    other.commit();
    assert!(matches!(other.reports.last(), Some(Report::Rejected(..))));
    assert!(other.sent.is_empty());
    assert_eq!(other.rows, page.rows);
}

#[test]
fn a_known_key_that_was_due_meanwhile_is_not_forgotten() {
    let mut record = named("a", patient());
    record.fingerprint = Some("same".into());
    let mut page = Page::new();
    let mut row = record.clone();
    attempt(&mut row, &network_failure());
    page.now = MINUTE;
    page.rows.insert(row.key.clone(), row);
    // The query meets the row while its key is being stored again, and passes over it.
    let key = page.submit_with(record, true);
    page.tell(Event::Look);
    page.answer_query();
    page.settle_down();
    assert!(page
        .reports
        .iter()
        .any(|report| matches!(report, Report::Known(_))));
    page.pass(20_000);
    assert_eq!(page.sends(&key), 1);
}

#[test]
fn a_key_that_was_discarded_may_be_submitted_anew_at_once() {
    let (mut page, key) = sending();
    page.answer(&key, status(201));
    page.commit();
    page.ask(Op::Discard(key.clone()));
    page.submit("a");
    page.settle_down();
    assert_eq!(page.sends(&key), 2);
    page.answer(&key, status(201));
    page.settle_down();
    assert_eq!(page.rows[&key].state, State::Delivered);
}

// Restart

#[test]
fn a_restart_goes_on_from_what_is_stored_and_not_earlier() {
    let (page, key) = sending();
    let mut next = Page::new();
    next.rows = page.rows;
    next.tell(Event::Look);
    next.settle_down();
    assert!(
        next.sent.is_empty(),
        "the page is new, and that is no reason"
    );
    let due = next.rows[&key].next_attempt_at.unwrap() - NOW;
    next.pass(due - 1);
    assert!(next.sent.is_empty());
    next.pass(1);
    assert_eq!(next.sends(&key), 1);
    assert_eq!(next.sent[0].fence, 2);
    assert_eq!(next.sent[0].key, key);
}

#[test]
fn a_row_whose_left_out_headers_this_page_has_not_is_not_claimed() {
    let mut page = Page::new();
    let mut row = named("a", patient());
    row.require(vec!["authorization".into()], Vec::new());
    page.rows.insert(row.key.clone(), row);
    page.tell(Event::Look);
    page.settle_down();
    page.pass(HOUR);
    assert!(page.sent.is_empty());
    assert_eq!(page.rows.values().next().unwrap().attempts, 0);
}

/// A page goes on by itself with what it alone can send, whatever else waits in the store.
#[test]
fn what_needs_a_header_is_sent_by_the_page_that_has_it() {
    let mut page = Page::new();
    let mut row = named("a", patient());
    row.require(vec!["authorization".into()], Vec::new());
    let key = page.submit_with(row, true);
    page.settle_down();
    page.answer(&key, status(503));
    page.settle_down();
    page.pass(6 * SECOND);
    assert_eq!(page.sends(&key), 2);
}

/// It was passed over for ever once, and stayed pending beyond its age.
#[test]
fn what_needs_a_header_that_is_gone_is_parked_at_its_age() {
    let mut page = Page::new();
    let mut row = named("a", patient());
    row.require(vec!["authorization".into()], Vec::new());
    let key = row.key.clone();
    page.rows.insert(key.clone(), row);
    page.pass(8 * DAY);
    page.tell(Event::Look);
    page.settle_down();
    assert_eq!(page.sends(&key), 0);
    assert_eq!(page.rows[&key].reason, Some(Reason::MaxAge));
}

/// The store reads lines apart: what this page cannot send does not fill the answer.
#[test]
fn what_cannot_be_sent_starves_nobody() {
    let mut rows = Vec::new();
    for n in 0..100 {
        let mut row = named(&format!("stuck-{n}"), patient());
        row.require(vec!["authorization".into()], Vec::new());
        rows.push(row);
    }
    rows.push(named("free", patient()));
    let mut page = Page::new();
    page.tell(Event::Look);
    page.queries -= 1;
    page.tell(Event::Queried(lines(rows.clone(), NOW, 16)));
    for row in rows {
        page.rows.insert(row.key.clone(), row);
    }
    page.settle_down();
    assert_eq!(page.sent.len(), 1);
    assert_eq!(page.sent[0].key, key("free"));
}

#[test]
fn what_another_page_claimed_is_looked_for_when_its_lease_ends() {
    let mut page = Page::new();
    let row = named("a", patient());
    let key = row.key.clone();
    page.rows.insert(key.clone(), row.clone());
    page.tell(Event::Look);
    page.answer_query();
    // Between the query and the claim, another page takes it, and dies.
    let mut taken = row;
    assert_eq!(taken.claim(&mut env(NOW)), Claim::Granted);
    page.rows.insert(key.clone(), taken);
    page.settle_down();
    assert!(page.sent.is_empty());
    assert!(
        page.deadline().is_some(),
        "it waits, so the page looks again"
    );
    page.pass(35_000);
    assert_eq!(page.sends(&key), 1);
}

// Attempts

#[test]
fn an_attempt_that_takes_too_long_is_aborted_and_tried_again() {
    let (mut page, key) = sending();
    assert_eq!(page.deadline(), Some(30_000));
    page.pass(29_999);
    assert!(page.aborted.is_empty());
    page.pass(1);
    assert_eq!(page.aborted, [(key.clone(), 1)]);
    let row = &page.rows[&key];
    assert_eq!(
        (row.state, row.reason),
        (State::Pending, Some(Reason::AttemptTimeout))
    );
    assert!(row.maybe_delivered);
    // What the aborted fetch says is no news.
    page.tell(Event::Answered(key.clone(), 1, Box::new(network_failure())));
    assert!(page.waiting.is_empty());
    page.pass(5_000);
    assert_eq!(page.sends(&key), 2);
}

#[test]
fn a_late_delivery_is_recorded_after_the_timeout() {
    let (mut page, key) = sending();
    page.pass(30_000);
    page.tell(Event::Answered(key.clone(), 1, Box::new(status(201))));
    page.settle_down();
    assert_eq!(page.rows[&key].state, State::Delivered);
    assert_eq!(page.settled(&key).len(), 1);
    page.pass(HOUR);
    assert_eq!(page.sends(&key), 1);
}

#[test]
fn a_late_refusal_changes_nothing_after_the_timeout() {
    let (mut page, key) = sending();
    page.pass(30_000);
    let row = page.rows[&key].clone();
    page.tell(Event::Answered(key.clone(), 1, Box::new(status(422))));
    page.settle_down();
    assert_eq!(page.rows[&key], row);
    assert!(page.settled(&key).is_empty());
}

#[test]
fn offline_marks_what_fails_at_once_as_never_sent() {
    let (mut page, key) = sending();
    page.tell(Event::Offline);
    page.answer(&key, Answer::Failure(offline()));
    page.settle_down();
    let row = &page.rows[&key];
    assert_eq!(
        (row.reason, row.spent, row.maybe_delivered),
        (Some(Reason::Offline), 0, false)
    );
    // Until an answer comes although the browser says so: then it lies.
    let (mut page, key) = sending();
    let other = page.submit("b");
    page.commit();
    page.tell(Event::Offline);
    page.answer(&other, status(201));
    page.commit();
    page.answer(&key, Answer::Failure(offline()));
    page.settle_down();
    let row = &page.rows[&key];
    assert_eq!(
        (row.reason, row.spent, row.maybe_delivered),
        (Some(Reason::Offline), 0, true)
    );
}

#[test]
fn the_hint_needs_another_request_that_succeeds() {
    let at_once = || {
        Answer::Failure(Failure {
            elapsed: 1,
            ..Failure::default()
        })
    };
    let (mut page, key) = sending();
    page.answer(&key, at_once());
    page.commit();
    assert_eq!(page.rows[&key].evidence.as_ref().unwrap().hint, None);
    let other = page.submit_with(elsewhere("b"), true);
    page.commit();
    page.answer(&other, status(200));
    page.commit();
    page.pass(5_000);
    page.answer(&key, at_once());
    page.commit();
    assert!(page.rows[&key].evidence.as_ref().unwrap().hint.is_some());
}

#[test]
fn online_ends_what_hangs_and_brings_forward_what_waits() {
    let (mut page, key) = waiting();
    let other = page.submit_with(elsewhere("b"), true);
    page.commit();
    page.tell(Event::Offline);
    page.now += 1_000;
    page.tell(Event::Online);
    assert_eq!(page.aborted, [(other, 1)], "a connection that is no more");
    assert_eq!(page.brought_forward, 1);
    // The shell brings the rows forward, and says so.
    let op = Op::BringForward(key.clone());
    let origin = &page.rows[&key].origin.clone();
    let (gate, row) = (
        page.gates.get(origin).cloned(),
        page.rows.get(&key).cloned(),
    );
    let beside = Beside {
        gate,
        ..Beside::default()
    };
    let applied = op.run(row.map(Rc::new), beside, &mut page.env());
    let gate = applied.gate.clone().flatten().unwrap();
    page.gates.insert(origin.clone(), gate);
    page.rows
        .insert(key.clone(), (**applied.record.as_ref().unwrap()).clone());
    page.tell(Event::Committed(1, op, Box::new(applied)));
    page.tell(Event::Look);
    page.settle_down();
    page.pass(500);
    assert_eq!(page.sends(&key), 2);
}

#[test]
fn an_attempt_that_began_online_is_left_alone_by_online() {
    let (mut page, _) = sending();
    page.tell(Event::Online);
    assert!(page.aborted.is_empty());
}

#[test]
fn in_memory_online_cuts_the_wait_once_and_never_before_a_floor() {
    let mut page = Page::new();
    let plain = page.submit_with(elsewhere("plain"), false);
    let floored = page.submit_with(elsewhere("floored"), false);
    page.answer(&plain, status(503));
    page.answer(&floored, status_after(503, "600"));
    page.now += 1_000;
    page.tell(Event::Online);
    page.pass(500);
    assert_eq!((page.sends(&plain), page.sends(&floored)), (2, 1));
    page.pass(590_000);
    assert_eq!(page.sends(&floored), 1);
    page.pass(70_000);
    assert!(page.sends(&floored) >= 2);
}

#[test]
fn waking_from_sleep_counts_as_reconnecting() {
    let mut page = Page::new();
    let key = page.submit_with(named("a", patient()), false);
    for _ in 0..3 {
        page.answer(&key, status(503));
        let wait = page.queue.record(&key).unwrap().next_attempt_at.unwrap() - page.wall();
        page.pass(wait);
    }
    page.answer(&key, status(503));
    let sends = page.sends(&key);
    // Twenty seconds of sleep: the one clock went on, the other stood still.
    page.skew += 20_000;
    page.tell(Event::Look);
    page.pass(500);
    assert_eq!(page.sends(&key), sends + 1);
    assert!(page.brought_forward > 0);
}

#[test]
fn a_page_that_is_left_takes_failures_for_no_news() {
    let (mut page, key) = sending();
    let row = page.rows[&key].clone();
    page.tell(Event::Leaving);
    page.answer(&key, network_failure());
    assert!(page.waiting.is_empty());
    assert_eq!(
        page.rows[&key], row,
        "the claim scheduled already what follows"
    );
    // It begins nothing either, until it is shown again.
    page.now += MINUTE;
    page.tell(Event::Tick);
    assert_eq!(page.queries, 0);
    page.tell(Event::Returned);
    page.settle_down();
    assert_eq!(page.sends(&key), 2);
    // An answer is news.
    let (mut page, key) = sending();
    page.tell(Event::Leaving);
    page.answer(&key, status(201));
    page.commit();
    assert_eq!(page.rows[&key].state, State::Delivered);
}

#[test]
fn a_page_that_is_left_claims_nothing_that_its_last_query_finds() {
    let (mut page, key) = waiting();
    page.now += 5_000;
    page.tell(Event::Tick);
    page.tell(Event::Leaving);
    page.answer_query();
    assert!(page.waiting.is_empty());
    page.tell(Event::Returned);
    page.settle_down();
    assert_eq!(page.sends(&key), 2);
}

// Cancelling

/// Cancels, and checks what everybody is told.
fn cancelled(page: &mut Page, key: &Key) -> Record {
    let sent = page.sends(key);
    let ticket = page.ask(Op::Cancel(key.clone()));
    page.settle_down();
    let applied = page.reply(ticket).as_ref().unwrap();
    assert!(applied.accepted, "cancelled");
    let record = (**applied.record.as_ref().unwrap()).clone();
    assert_eq!(
        (record.state, record.reason),
        (State::Cancelled, Some(Reason::Discarded))
    );
    let told: Vec<State> = page
        .settled(key)
        .iter()
        .map(|record| record.state)
        .collect();
    assert_eq!(told, [State::Cancelled], "once");
    page.pass(DAY);
    assert_eq!(page.sends(key), sent, "never again");
    record
}

#[test]
fn cancelled_while_storing_is_never_sent() {
    let mut page = Page::new();
    let key = page.submit("a");
    cancelled(&mut page, &key);
    assert_eq!(page.sends(&key), 0);
}

#[test]
fn cancelled_while_storing_fails_is_never_sent() {
    for cancel_fails in [false, true] {
        let mut page = Page::new();
        let key = page.submit("a");
        let ticket = page.ask(Op::Cancel(key.clone()));
        page.fail();
        assert_eq!(page.stored(&key), Some(false));
        assert_eq!(page.sends(&key), 0, "aborted before it was sent");
        if cancel_fails {
            page.fail();
        } else {
            page.commit();
        }
        assert!(page.reply(ticket).as_ref().unwrap().accepted);
        assert_eq!(page.settled(&key)[0].state, State::Cancelled);
        page.pass(DAY);
        assert_eq!(page.sends(&key), 0);
    }
}

#[test]
fn cancelled_while_it_waits_for_a_slot_was_never_sent() {
    let mut page = Page::new();
    for n in 0..PER_ORIGIN {
        page.submit(&format!("a{n}"));
    }
    let key = page.submit("last");
    page.settle_down();
    let record = cancelled(&mut page, &key);
    assert!(!record.maybe_delivered, "the truth");
    assert_eq!(record.attempts, 0);
}

#[test]
fn cancelled_while_claiming_is_never_sent() {
    let (mut page, key) = waiting();
    page.now += 5_000;
    page.tell(Event::Tick);
    page.answer_query();
    assert!(matches!(page.waiting[0].1, Op::Claim(_)));
    cancelled(&mut page, &key);
    assert_eq!(page.sends(&key), 1);
}

#[test]
fn cancelled_while_sending_is_aborted_and_says_that_it_may_have_arrived() {
    let (mut page, key) = sending();
    let ticket = page.ask(Op::Cancel(key.clone()));
    assert_eq!(page.aborted, [(key.clone(), 1)], "at once");
    assert!(page.replies.is_empty(), "and told when it is written");
    page.tell(Event::Answered(key.clone(), 1, Box::new(network_failure())));
    page.commit_all();
    let applied = page.reply(ticket).as_ref().unwrap();
    assert!(applied.accepted && applied.record.as_ref().unwrap().maybe_delivered);
    assert_eq!(page.settled(&key).len(), 1);
}

#[test]
fn a_delivery_that_comes_while_cancelling_leaves_a_receipt() {
    let (mut page, key) = sending();
    let ticket = page.ask(Op::Cancel(key.clone()));
    page.answer(&key, status(201));
    page.settle_down();
    assert!(page.reply(ticket).as_ref().unwrap().accepted);
    let row = &page.rows[&key];
    assert_eq!(row.state, State::Cancelled);
    assert_eq!(row.receipt.as_ref().unwrap().status, 201);
    assert_eq!(page.settled(&key).len(), 1, "told once");
    assert!(!page
        .reports
        .iter()
        .any(|report| matches!(report, Report::Waiting(_))));
}

#[test]
fn cancelled_while_settling_loses_to_a_finished_answer() {
    let (mut page, key) = sending();
    page.answer(&key, status(201));
    let ticket = page.ask(Op::Cancel(key.clone()));
    page.settle_down();
    assert!(!page.reply(ticket).as_ref().unwrap().accepted);
    let told: Vec<State> = page
        .settled(&key)
        .iter()
        .map(|record| record.state)
        .collect();
    assert_eq!(told, [State::Delivered]);
}

#[test]
fn cancelled_while_settling_wins_over_a_retry() {
    let (mut page, key) = sending();
    page.answer(&key, status(503));
    let record = cancelled(&mut page, &key);
    assert!(record.maybe_delivered);
}

#[test]
fn cancelled_while_waiting() {
    let (mut page, key) = waiting();
    let record = cancelled(&mut page, &key);
    assert!(record.maybe_delivered);
    // What never left says so.
    let (mut page, key) = sending();
    page.answer(&key, status(429));
    page.settle_down();
    let record = cancelled(&mut page, &key);
    assert!(!record.maybe_delivered);
}

#[test]
fn cancelled_in_memory_in_every_phase() {
    for answered in [None, Some(status(503))] {
        let mut page = Page::new();
        let key = page.submit_with(named("a", patient()), false);
        let sending = answered.is_none();
        if let Some(answer) = answered {
            page.answer(&key, answer);
        }
        cancelled(&mut page, &key);
        assert_eq!(page.aborted.len(), usize::from(sending));
    }
}

#[test]
fn a_failed_retry_does_not_undo_a_cancel_that_runs() {
    let mut page = Page::new();
    let key = page.submit("a");
    page.ask(Op::Cancel(key.clone()));
    page.tell(Event::Asked(
        4,
        Op::Retry {
            key: key.clone(),
            new_key: common::key("new"),
            may_repeat: false,
        },
    ));
    page.fail();
    let retry = page.waiting.remove(1);
    page.tell(Event::Failed(retry.0, retry.1));
    // Before the store says what came of the cancel, the clock jumps, and the intent would be due.
    page.skew += HOUR as i64;
    page.tell(Event::Look);
    page.commit_all();
    assert_eq!(page.settled(&key)[0].state, State::Cancelled);
    page.pass(DAY);
    assert_eq!(page.sends(&key), 0);
}

#[test]
fn discarding_removes_the_row_whatever_it_is() {
    for setup in [sending, waiting] {
        let (mut page, key) = setup();
        let ticket = page.ask(Op::Discard(key.clone()));
        page.settle_down();
        assert!(page.reply(ticket).as_ref().unwrap().accepted);
        assert!(page.rows.is_empty());
        assert!(page.reports.contains(&Report::Removed(key.clone())));
        assert_eq!(page.settled(&key).len(), 1);
        page.pass(DAY);
        assert_eq!(page.sends(&key), 1);
    }
}

/// What was kept of the first goes while the second is stored: the second went with it once, and its row stayed claimed
/// on the disk.
#[test]
fn a_key_that_is_submitted_again_while_its_receipt_goes_is_a_new_intent() {
    let (mut page, key) = sending();
    page.answer(&key, status(201));
    page.settle_down();
    page.ask(Op::Forget(key.clone()));
    page.submit("a");
    page.settle_down();
    assert_eq!(page.sends(&key), 2);
    page.answer(&key, status(201));
    page.settle_down();
    assert_eq!(page.settled(&key).len(), 2);
}

/// The person was told that nothing more is sent, though the store failed: it was delivered seconds later once.
#[test]
fn what_was_given_up_in_vain_is_not_sent_and_is_given_up_again() {
    let (mut page, key) = waiting();
    let ticket = page.ask(Op::Cancel(key.clone()));
    page.fail();
    let error = page.reply(ticket).as_ref().unwrap_err();
    assert_eq!(error.code(), Code::StorageFailed);
    page.pass(MINUTE);
    assert_eq!(page.sends(&key), 1);
    assert_eq!(page.settled(&key)[0].state, State::Cancelled);
    assert_eq!(page.rows[&key].state, State::Cancelled);
}

/// What the store does after all is told after all.
#[test]
fn a_transaction_that_was_given_up_and_is_committed_late_is_told() {
    for end in [Op::Cancel as fn(Key) -> Op, Op::Discard] {
        let (mut page, key) = waiting();
        page.ask(end(key.clone()));
        let (ticket, op) = page.waiting.remove(0);
        page.tell(Event::Failed(ticket, op.clone()));
        let applied = op.apply(page.rows.remove(&key).map(Rc::new), &mut page.env());
        page.tell(Event::CommittedLate(op, Box::new(applied)));
        assert_eq!(page.settled(&key).len(), 1);
        page.pass(DAY);
        assert_eq!(page.settled(&key).len(), 1);
        assert_eq!(page.sends(&key), 1);
    }
    let (mut page, key) = sending();
    page.answer(&key, status(422));
    page.settle_down();
    let retry = Op::Retry {
        key: key.clone(),
        new_key: Key::parse("new").unwrap(),
        may_repeat: false,
    };
    page.ask(retry.clone());
    let (ticket, op) = page.waiting.remove(0);
    page.tell(Event::Failed(ticket, op.clone()));
    let applied = Box::new(op.apply(page.rows.remove(&key).map(Rc::new), &mut page.env()));
    let renewed = (**applied.record.as_ref().unwrap()).clone();
    page.rows.insert(renewed.key.clone(), renewed.clone());
    page.tell(Event::CommittedLate(op, applied));
    page.settle_down();
    assert_eq!(page.sends(&renewed.key), 1);
}

/// An answer is a fact, and an end that came elsewhere is one too: neither promise of the page stays open.
#[test]
fn an_intent_that_ended_elsewhere_ends_here() {
    let (mut page, key) = sending();
    page.rows.clear();
    page.answer(&key, status(201));
    page.settle_down();
    assert_eq!(page.settled(&key)[0].state, State::Delivered);

    let (mut page, key) = sending();
    page.rows.clear();
    page.answer(&key, status(503));
    page.settle_down();
    assert_eq!(page.settled(&key)[0].state, State::Cancelled);

    let (mut page, key) = waiting();
    page.rows.clear();
    page.tell(Event::Look);
    page.queries -= 1;
    // Found before it was discarded elsewhere.
    let found = page.queue.record(&key).unwrap().clone();
    page.now += MINUTE;
    page.tell(Event::Queried(lines([(*found).clone()], page.wall(), 16)));
    page.settle_down();
    assert_eq!(page.settled(&key)[0].state, State::Cancelled);
    assert!(page.reports.contains(&Report::Removed(key.clone())));

    let (mut page, key) = sending();
    page.rows.get_mut(&key).unwrap().cancel(NOW);
    page.answer(&key, status(503));
    page.settle_down();
    assert_eq!(page.settled(&key)[0].state, State::Cancelled);
    page.pass(DAY);
    assert_eq!(page.settled(&key).len(), 1);
}

/// Who is told of the attempt may take a minute: the attempt does not wait for it.
#[test]
fn the_attempt_begins_before_anybody_hears_of_it() {
    let mut queue = Queue::default();
    let record = Rc::new(named("a", patient()));
    let mut env = env(NOW);
    queue.handle(
        Event::Submit {
            record,
            durable: false,
        },
        &mut env,
    );
    let effects: Vec<Effect> = std::iter::from_fn(|| queue.poll_effect()).collect();
    let at = |is: fn(&Effect) -> bool| effects.iter().position(is).unwrap();
    let sent = at(|effect| matches!(effect, Effect::Send(_)));
    assert!(sent < at(|effect| matches!(effect, Effect::Report(Report::Attempted(_)))));
}

/// It was retried with no body once: the bytes were let go with the old key.
#[test]
fn what_this_page_holds_goes_over_to_the_new_key() {
    let mut page = Page::new();
    let key = page.submit_with(named("a", patient()), false);
    page.answer(&key, status(422));
    let new_key = Key::parse("new").unwrap();
    let retry = Op::Retry {
        key: key.clone(),
        new_key: new_key.clone(),
        may_repeat: false,
    };
    let mut env = page.env();
    page.queue.handle(Event::Asked(2, retry), &mut env);
    let effects: Vec<Effect> = std::iter::from_fn(|| page.queue.poll_effect()).collect();
    let at = |is: &dyn Fn(&Effect) -> bool| effects.iter().position(is).unwrap();
    let renewed = at(&|effect| *effect == Effect::Renew(key.clone(), new_key.clone(), NOW));
    assert!(renewed < at(&|effect| *effect == Effect::Report(Report::Removed(key.clone()))));
    assert!(
        renewed < at(&|effect| matches!(effect, Effect::Send(record) if record.key == new_key))
    );
}

/// Its headers are nowhere else, so the page keeps it: it stayed pending for ever after a retry.
#[test]
fn what_needs_a_header_can_be_retried_by_the_page_that_has_it() {
    let mut page = Page::new();
    let mut row = named("a", patient());
    row.require(vec!["authorization".into()], Vec::new());
    let key = page.submit_with(row, true);
    page.settle_down();
    page.answer(&key, status(302));
    page.settle_down();
    page.ask(Op::Retry {
        key: key.clone(),
        new_key: Key::parse("new").unwrap(),
        may_repeat: true,
    });
    page.settle_down();
    assert_eq!(page.sends(&key), 2);
}

// Retrying by hand

#[test]
fn a_persons_retry_goes_out_at_once() {
    let (mut page, key) = sending();
    page.answer(&key, status(302));
    page.settle_down();
    assert_eq!(page.rows[&key].state, State::Parked);
    let ticket = page.ask(Op::Retry {
        key: key.clone(),
        new_key: common::key("new"),
        may_repeat: false,
    });
    page.settle_down();
    assert!(page.reply(ticket).as_ref().unwrap().accepted);
    assert_eq!(page.sends(&key), 2, "under the same key");
}

#[test]
fn a_persons_retry_of_what_was_refused_goes_out_under_a_new_key() {
    let (mut page, key) = sending();
    page.answer(&key, status(422));
    page.settle_down();
    page.ask(Op::Retry {
        key: key.clone(),
        new_key: common::key("new"),
        may_repeat: false,
    });
    page.settle_down();
    assert_eq!((page.sends(&key), page.sends(&common::key("new"))), (1, 1));
    assert!(!page.rows.contains_key(&key));
    assert_eq!(page.rows[&common::key("new")].replaces, Some(key));
}

// A store that fails

#[test]
fn an_answer_that_cannot_be_written_is_told_now_and_written_later() {
    let (mut page, key) = sending();
    page.answer(&key, status(201));
    page.fail();
    assert_eq!(page.settled(&key)[0].state, State::Delivered);
    assert_eq!(page.rows[&key].state, State::Sending);
    assert!(page.deadline().is_some_and(|ms| ms <= RECHECK));
    // And again, as often as it takes; nobody hears of it twice.
    page.now += RECHECK;
    page.tell(Event::Tick);
    page.fail();
    page.now += RECHECK;
    page.tell(Event::Tick);
    page.settle_down();
    assert_eq!(page.rows[&key].state, State::Delivered);
    assert_eq!(page.settled(&key).len(), 1);
    assert_eq!(page.sends(&key), 1);
    assert_eq!(page.deadline(), None, "nothing waits any more");
}

#[test]
fn what_is_known_to_be_delivered_is_not_sent_again_while_the_store_does_not_know() {
    let (mut page, key) = sending();
    page.answer(&key, status(201));
    page.fail();
    page.now += 2 * MINUTE;
    page.tell(Event::Tick);
    // The row is due in the store, and the late write fails again.
    page.fail();
    page.answer_query();
    page.commit_all();
    assert_eq!(page.sends(&key), 1, "never knowingly twice");
    page.pass(MINUTE);
    assert_eq!(page.rows[&key].state, State::Delivered);
    assert_eq!(page.sends(&key), 1);
    assert_eq!(page.settled(&key).len(), 1);
}

#[test]
fn a_cancel_loses_to_an_answer_that_could_not_be_written() {
    let (mut page, key) = sending();
    page.answer(&key, status(201));
    let ticket = page.ask(Op::Cancel(key.clone()));
    page.fail();
    page.commit();
    let applied = page.reply(ticket).as_ref().unwrap();
    assert!(!applied.accepted);
    assert_eq!(applied.record.as_ref().unwrap().state, State::Delivered);
    let told: Vec<State> = page
        .settled(&key)
        .iter()
        .map(|record| record.state)
        .collect();
    assert_eq!(told, [State::Delivered]);
}

#[test]
fn what_was_told_is_written_before_what_is_asked() {
    let (mut page, key) = sending();
    page.answer(&key, status(201));
    page.fail();
    let ticket = page.ask(Op::Cancel(key.clone()));
    assert!(matches!(page.waiting[0].1, Op::Settle(..)));
    assert!(matches!(page.waiting[1].1, Op::Cancel(_)));
    page.commit_all();
    assert!(!page.reply(ticket).as_ref().unwrap().accepted);
    assert_eq!(page.rows[&key].state, State::Delivered);
}

#[test]
fn a_claim_that_fails_is_tried_again_later_and_not_in_a_loop() {
    let (mut page, key) = waiting();
    page.now += 5_000;
    page.tell(Event::Tick);
    page.answer_query();
    page.fail();
    assert_eq!((page.queries, page.waiting.len()), (0, 0), "not at once");
    assert!(page.deadline().is_some_and(|ms| ms > 1_000));
    page.pass(MINUTE);
    assert_eq!(page.sends(&key), 2);
}

// Time

#[test]
fn there_is_no_busy_loop_over_due_work_that_cannot_be_taken() {
    let mut page = Page::new();
    for n in 0..10 {
        page.submit(&format!("a{n}"));
        page.submit_with(named(&format!("m{n}"), patient()), false);
    }
    page.settle_down();
    assert_eq!(page.sent.len(), PER_ORIGIN);
    assert_ne!(page.deadline(), Some(0));
    // Every deadline is followed by progress; `pass` counts.
    page.pass(20_000);
    assert_eq!(page.sent.len(), PER_ORIGIN);
}

#[test]
fn a_page_with_nothing_to_wait_for_sets_no_timer() {
    let mut page = Page::new();
    assert_eq!(page.deadline(), None);
    let key = page.submit("a");
    page.commit();
    page.answer(&key, status(201));
    page.settle_down();
    assert_eq!(page.deadline(), None);
}

#[test]
fn a_wait_is_waited_in_parts_so_that_a_missed_event_costs_half_a_minute() {
    let (mut page, key) = sending();
    page.answer(&key, status_after(503, "7200"));
    page.settle_down();
    let mut ticks = 0;
    while page.sends(&key) == 1 {
        let next = page.deadline().unwrap();
        assert!((1..=RECHECK).contains(&next));
        page.now += next;
        page.tell(Event::Tick);
        page.settle_down();
        ticks += 1;
    }
    assert!((240..330).contains(&ticks), "{ticks}");
}

#[test]
fn a_clock_that_was_ahead_costs_no_more_than_the_wait_itself() {
    for durable in [true, false] {
        let mut page = Page::new();
        page.skew = 365 * DAY as i64;
        let mut keys = Vec::new();
        for n in 0..PER_ORIGIN {
            let mut record = elsewhere(&format!("a{n}"));
            record.budget_from = page.wall();
            let key = page.submit_with(record, durable);
            page.settle_down();
            page.answer(&key, status(429));
            page.settle_down();
            keys.push(key);
        }
        page.skew = 0;
        page.pass(2 * RECHECK);
        for key in &keys {
            assert!(page.sends(key) >= 2, "durable: {durable}");
        }
    }
}

#[test]
fn reconnecting_brings_nobody_back_in_the_same_instant() {
    let mut page = Page::new();
    for n in 0..40 {
        let key = page.submit_with(elsewhere(&format!("m{n}")), false);
        page.answer(&key, network_failure());
    }
    page.now += 1_000;
    page.tell(Event::Online);
    let mut due: Vec<u64> = page
        .queue
        .memory()
        .map(|record| record.next_attempt_at.unwrap() - page.wall())
        .collect();
    assert!(due.iter().all(|wait| *wait <= 500));
    due.sort_unstable();
    due.dedup();
    assert!(due.len() > 25, "{due:?}");
}

#[test]
fn the_same_events_give_the_same_effects() {
    let run = || {
        let mut page = Page::new();
        for n in 0..6 {
            page.submit_with(named(&format!("a{n}"), Policy::patient()), n % 2 == 0);
        }
        page.settle_down();
        for sent in page.sent.clone() {
            page.answer(&sent.key, status(503));
        }
        page.pass(10 * MINUTE);
        (page.sent, page.reports)
    };
    assert_eq!(run(), run());
}

// The gate of an origin

#[test]
fn a_thousand_due_intents_over_a_dead_server_send_no_more_than_the_probes() {
    let mut page = Page::new();
    for n in 0..1_000 {
        let row = named(&format!("a{n}"), patient());
        page.rows.insert(row.key.clone(), row);
    }
    page.tell(Event::Look);
    page.settle_down();
    // Four were on their way when it was not known yet.
    assert_eq!(page.sent.len(), PER_ORIGIN);
    let mut probes = 0;
    for _ in 0..2_000 {
        let sent = page.sent.len();
        for record in page.sent.clone().iter().rev().take(PER_ORIGIN) {
            page.answer(&record.key, network_failure());
        }
        page.settle_down();
        page.pass(1_000);
        let more = page.sent.len() - sent;
        assert!(more <= 1, "one at a time");
        probes += more;
    }
    // 5, 15, 45, 135 and then every 405 s, in some 2,000 s.
    assert!((5..=9).contains(&probes), "{probes}");
    let spent: u32 = page.rows.values().map(|row| row.spent).sum();
    assert_eq!(
        spent as usize,
        PER_ORIGIN + probes,
        "waiting at a gate spends nothing"
    );
    // It is back: the probe opens the gate, and all go.
    let sending = |page: &Page| {
        let mut rows = page.rows.values();
        rows.find(|row| row.state == State::Sending)
            .map(|row| row.key.clone())
    };
    while sending(&page).is_none() {
        page.pass(1_000);
    }
    while let Some(key) = sending(&page) {
        page.answer(&key, status(201));
        page.settle_down();
    }
    let delivered = |row: &Record| row.state == State::Delivered;
    assert!(page.rows.values().all(delivered));
}

#[test]
fn nothing_passes_inside_the_servers_floor() {
    let mut page = Page::new();
    let key = page.submit("a");
    page.settle_down();
    page.answer(&key, status_after(503, "600"));
    page.settle_down();
    for n in 0..50 {
        page.submit(&format!("b{n}"));
        page.settle_down();
        page.pass(11_000);
    }
    assert_eq!(page.sent.len(), 1);
    // What was stored at the gate says so, and when it will be tried.
    let waits = &page.rows[&common::key("b0")];
    assert_eq!(
        (waits.state, waits.reason, waits.attempts),
        (State::Pending, Some(Reason::ServerBusy), 0)
    );
    assert!(!waits.maybe_delivered);
    // A person's retry does not undercut it either.
    page.ask(Op::Retry {
        key: key.clone(),
        new_key: Key::parse("new").unwrap(),
        may_repeat: false,
    });
    page.settle_down();
    assert_eq!(page.sent.len(), 1);
    page.pass(3 * MINUTE);
    assert!(page.sent.len() > 1);
}

#[test]
fn another_origin_goes_on_and_an_answer_opens_the_gate() {
    let mut page = Page::new();
    let key = page.submit("a");
    page.settle_down();
    page.answer(&key, network_failure());
    page.settle_down();
    let held = page.submit("b");
    let other = page.submit_with(elsewhere("c"), true);
    page.settle_down();
    assert_eq!((page.sends(&held), page.sends(&other)), (0, 1));
    page.pass(6 * SECOND);
    page.answer(&key, status(422));
    page.settle_down();
    assert_eq!(page.sends(&held), 1);
}

/// The page that took the probe dies with it: its lease is the deadline of the rest.
#[test]
fn a_dead_prober_holds_nobody_up_for_longer_than_its_lease() {
    let mut page = Page::new();
    let key = page.submit("a");
    page.settle_down();
    page.answer(&key, network_failure());
    page.settle_down();
    page.submit("b");
    page.settle_down();
    page.pass(6 * SECOND);
    assert_eq!(page.sent.len(), 2);
    let mut next = Page {
        rows: page.rows,
        gates: page.gates,
        now: page.now,
        ..Page::new()
    };
    next.tell(Event::Look);
    next.settle_down();
    assert!(next.sent.is_empty());
    next.pass(MINUTE);
    assert_eq!(next.sent.len(), 1);
}

#[test]
fn a_retry_by_a_person_is_a_probe() {
    let mut page = Page::new();
    let key = page.submit("a");
    page.settle_down();
    page.answer(&key, network_failure());
    page.settle_down();
    page.ask(Op::Retry {
        key: key.clone(),
        new_key: Key::parse("new").unwrap(),
        may_repeat: false,
    });
    page.settle_down();
    assert_eq!(page.sends(&key), 2);
}

/// A server may have been down for hours, with half an hour between the probes, and be back: a person who submits now does
/// not wait for the next.
#[test]
fn a_new_submission_may_be_the_probe() {
    let mut page = Page::new();
    let key = page.submit("a");
    page.settle_down();
    for n in 1..5 {
        page.answer(&key, network_failure());
        page.settle_down();
        while page.sends(&key) == n {
            page.pass(SECOND);
        }
    }
    let sent = page.sent.len();
    page.answer(&key, network_failure());
    page.settle_down();
    let at_once = page.submit("b");
    page.settle_down();
    assert_eq!(page.sends(&at_once), 0, "no storm");
    page.pass(6 * SECOND);
    let later = page.submit("c");
    page.settle_down();
    assert_eq!((page.sends(&later), page.sent.len()), (1, sent + 1));
    let behind = page.submit("d");
    page.settle_down();
    assert_eq!(page.sends(&behind), 0, "one at a time");
}

/// Full jitter may draw no delay at all. The probe of the same millisecond once passed for an attempt that was on its way
/// when the gate closed, and its failure left the gate to its lease: 34 s instead of 5 ms. The same with a clock set back.
#[test]
fn a_probe_that_fails_brings_the_next_however_soon_it_was_made() {
    for skew in [0, -5_000] {
        let mut page = Page::new();
        let policy = Policy {
            delays_ms: vec![0],
            ..patient()
        };
        let key = page.submit_with(named("a", policy), true);
        page.settle_down();
        page.answer(&key, network_failure());
        page.settle_down();
        page.tell(Event::Tick);
        page.settle_down();
        assert_eq!(page.sends(&key), 2, "{skew}");
        page.skew = skew;
        page.answer(&key, network_failure());
        page.settle_down();
        let gate = page.gates.values().next().expect("closed");
        assert_eq!(gate.failures, 2, "{skew}");
    }
}

#[test]
fn failures_of_long_ago_do_not_lengthen_the_wait_of_today() {
    let mut page = Page::new();
    let key = page.submit("a");
    page.settle_down();
    for n in 1..5 {
        page.answer(&key, network_failure());
        page.settle_down();
        while page.sends(&key) == n {
            page.pass(SECOND);
        }
    }
    page.answer(&key, network_failure());
    page.settle_down();
    assert_eq!(page.rows[&key].state, State::Parked);
    page.now += 24 * HOUR;
    let today = page.submit("b");
    page.settle_down();
    page.answer(&today, network_failure());
    page.settle_down();
    page.pass(6 * SECOND);
    assert_eq!(page.sends(&today), 2, "5 s, as after any first failure");
}

/// Nothing was heard of the server, so its gate is no reason to wait longer than the five minutes between two probes.
#[test]
fn a_page_that_is_offline_probes_every_five_minutes_for_all() {
    let mut page = Page::new();
    page.tell(Event::Offline);
    for n in 0..20 {
        page.submit(&format!("a{n}"));
        page.settle_down();
    }
    let offline = Answer::Failure(Failure {
        offline_before: true,
        offline_after: true,
        elapsed: 5,
        ..Failure::default()
    });
    let mut probes = Vec::new();
    let mut answered = 0;
    for second in 0..3_600 {
        while answered < page.sent.len() {
            let key = page.sent[answered].key.clone();
            answered += 1;
            probes.push(second);
            page.answer(&key, offline.clone());
            page.settle_down();
        }
        page.pass(SECOND);
    }
    assert_eq!(probes.len(), PER_ORIGIN + 11, "{probes:?}");
}

#[test]
fn what_was_stored_at_a_closed_gate_goes_as_soon_as_it_opens() {
    let mut page = Page::new();
    let key = page.submit("a");
    page.settle_down();
    for n in 1..4 {
        page.answer(&key, network_failure());
        page.settle_down();
        while page.sends(&key) == n {
            page.pass(SECOND);
        }
    }
    page.answer(&key, network_failure());
    page.settle_down();
    let held = page.submit("b");
    page.settle_down();
    assert_eq!(page.sends(&held), 0, "the next probe is due in 135 s");
    page.ask(Op::Retry {
        key: key.clone(),
        new_key: Key::parse("new").unwrap(),
        may_repeat: false,
    });
    page.settle_down();
    page.answer(&key, status(201));
    page.settle_down();
    assert_eq!(page.sends(&held), 1);
}
