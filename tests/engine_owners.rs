//! Owners: two queues of a page, one owner's turn at a time, over a store that other pages use too.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use resubmit::engine::error::Code;
use resubmit::engine::gate::Gate;
use resubmit::engine::queue::{Due, Ticket};
use resubmit::engine::transition::GRACE;
use resubmit::engine::{
    Answer, Applied, Beside, Clocks, Credentials, Effect, Env, Error, Event, Jitter, Key,
    OnMaybeDelivered, Op, Owner, Policy, Queue, Random, Reason, Record, Report, State, Supplies,
    Write,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What all pages share: the clock, the rows of all owners, the closed gates, and who is current.
#[derive(Default)]
struct Disk {
    now: u64,
    seed: u64,
    rows: BTreeMap<(String, Key), Record>,
    gates: BTreeMap<String, Gate>,
    owner: Option<Owner>,
}

impl Disk {
    fn env(&mut self) -> Env {
        self.seed += 1;
        Env {
            wall: NOW + self.now,
            mono: self.now,
            random: Random::new(self.seed),
        }
    }

    fn row(&self, owner: &str, key: &Key) -> Option<&Record> {
        self.rows.get(&(owner.to_owned(), key.clone()))
    }

    fn run(&mut self, op: &Op, owner: &str) -> Applied {
        let id = |key: &Key| (owner.to_owned(), key.clone());
        let row = self.rows.get(&id(op.key())).cloned();
        let origin = match (op, &row) {
            (Op::Store(record), None) => record.origin.clone(),
            (_, row) => row
                .as_ref()
                .map_or_else(String::new, |row| row.origin.clone()),
        };
        let beside = Beside {
            gate: self.gates.get(&origin).cloned(),
            owner: match op {
                Op::Store(_) | Op::Claim(_) => self.owner.clone(),
                _ => None,
            },
            ..Beside::default()
        };
        let applied = op.run(row.map(Rc::new), beside, &mut self.env());
        match &applied.gate {
            Some(Some(gate)) => drop(self.gates.insert(origin, gate.clone())),
            Some(None) => drop(self.gates.remove(&origin)),
            None => {}
        }
        for write in &applied.writes {
            match write {
                Write::Put(record) => {
                    assert_eq!(record.owner, owner, "a row of its own owner");
                    self.rows.insert(id(&record.key), (**record).clone());
                }
                Write::Delete(key) => drop(self.rows.remove(&id(key))),
                _ => {}
            }
        }
        applied
    }
}

/// One owner's queue in a page.
struct Part {
    disk: Rc<RefCell<Disk>>,
    queue: Queue,
    waiting: Vec<Effect>,
    sent: Vec<Record>,
    aborted: Vec<(Key, u64)>,
    reports: Vec<Report>,
    replies: Vec<(Ticket, Result<Box<Applied>, Error>)>,
    changes_over: usize,
    asked: Vec<Key>,
    tickets: Ticket,
}

impl Part {
    fn new(disk: &Rc<RefCell<Disk>>, owner: Option<&str>) -> Self {
        let mut queue = Queue::new(false, supplies());
        queue.belong_to(owner.map(str::to_owned));
        let mut part = Part {
            disk: disk.clone(),
            queue,
            waiting: Vec::new(),
            sent: Vec::new(),
            aborted: Vec::new(),
            reports: Vec::new(),
            replies: Vec::new(),
            changes_over: 0,
            asked: Vec::new(),
            tickets: 100,
        };
        part.tell(Event::Opened);
        part
    }

    fn owner(&self) -> String {
        self.queue.owner().clone().unwrap_or_default()
    }

    fn tell(&mut self, event: Event) {
        let mut env = self.disk.borrow_mut().env();
        self.queue.handle(event, &mut env);
        while let Some(effect) = self.queue.poll_effect() {
            match effect {
                Effect::Transact(..) | Effect::Query | Effect::Clear(_) => {
                    self.waiting.push(effect);
                }
                Effect::Send(record) => {
                    let disk = self.disk.borrow();
                    let current = disk
                        .owner
                        .as_ref()
                        .is_none_or(|it| it == self.queue.owner());
                    assert!(
                        current || self.queue.in_memory(&record.key),
                        "another's session"
                    );
                    self.sent.push((*record).clone());
                }
                Effect::Abort(key, fence) => self.aborted.push((key, fence)),
                Effect::Report(report) => self.reports.push(report),
                Effect::Reply(ticket, reply) => self.replies.push((ticket, reply)),
                Effect::ChangeOver => self.changes_over += 1,
                Effect::Authorize(record, _) => self.asked.push(record.key.clone()),
                Effect::BringForward | Effect::Renew(..) => {}
            }
        }
    }

    /// The store does the oldest thing that waits.
    fn commit(&mut self) {
        let owner = self.owner();
        let event = match self.waiting.remove(0) {
            Effect::Transact(ticket, op) => {
                let applied = self.disk.borrow_mut().run(&op, &owner);
                Event::Committed(ticket, op, Box::new(applied))
            }
            Effect::Query => {
                let disk = self.disk.borrow();
                let rows = disk.rows.values().filter(|row| row.owner == owner).cloned();
                Event::Queried(Due {
                    gates: disk.gates.values().cloned().collect(),
                    owner: disk.owner.clone(),
                    ..lines(rows, NOW + disk.now, 16)
                })
            }
            Effect::Clear(ticket) => {
                let mut disk = self.disk.borrow_mut();
                let (gone, rest) = std::mem::take(&mut disk.rows)
                    .into_iter()
                    .partition::<BTreeMap<_, _>, _>(|((of, _), _)| *of == owner);
                disk.rows = rest;
                // As if somebody followed all of them.
                Event::Cleared(ticket, gone.into_values().map(Rc::new).collect())
            }
            other => panic!("{other:?}"),
        };
        self.tell(event);
    }

    fn settle_down(&mut self) {
        for _ in 0..1_000 {
            if self.waiting.is_empty() {
                return;
            }
            self.commit();
        }
        panic!("no end");
    }

    fn submit(&mut self, name: &str, durable: bool) -> Key {
        self.submit_with(named(name, policy()), durable)
    }

    fn submit_with(&mut self, mut record: Record, durable: bool) -> Key {
        record.owner = self.owner();
        record.created_at = NOW + self.disk.borrow().now;
        let key = record.key.clone();
        self.tell(Event::Submit {
            record: Rc::new(record),
            durable,
        });
        key
    }

    fn answer(&mut self, key: &Key, answer: Answer) {
        let sent = self.sent.iter().rev().find(|sent| sent.key == *key);
        let fence = sent.expect("sent").fence;
        self.tell(Event::Answered(key.clone(), fence, Box::new(answer)));
    }

    fn turn(&mut self, owner: Option<&str>) {
        self.tell(Event::Turn(owner.map(str::to_owned)));
    }

    fn clear(&mut self) -> Ticket {
        self.tickets += 2;
        self.tell(Event::Clear(self.tickets));
        self.tickets
    }

    fn sends(&self, key: &Key) -> usize {
        self.sent.iter().filter(|sent| sent.key == *key).count()
    }

    fn settled(&self, key: &Key) -> Vec<(State, Option<Reason>)> {
        let of = |report: &Report| match report {
            Report::Settled(record, _) if record.key == *key => Some((record.state, record.reason)),
            _ => None,
        };
        self.reports.iter().filter_map(of).collect()
    }

    /// Lets time pass, with a tick whenever one is due, and a store that answers at once.
    fn pass(&mut self, ms: u64) {
        let until = self.disk.borrow().now + ms;
        self.settle_down();
        loop {
            let now = self.disk.borrow().now;
            let clocks = Clocks {
                wall: NOW + now,
                mono: now,
            };
            let next = self.queue.next_deadline(clocks).map(|ms| now + ms);
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            self.disk.borrow_mut().now = next;
            self.tell(Event::Tick);
            self.settle_down();
        }
        self.disk.borrow_mut().now = until;
    }
}

fn supplies() -> Supplies {
    Supplies {
        headers: true,
        hooks: vec!["authorize".into()],
    }
}

fn policy() -> Policy {
    Policy {
        jitter: Jitter::None,
        ..Policy::background()
    }
}

fn disk() -> Rc<RefCell<Disk>> {
    let disk = Disk {
        owner: Some(Some("a".into())),
        ..Disk::default()
    };
    Rc::new(RefCell::new(disk))
}

/// A page whose owner is `a`, as the store has it.
fn page(disk: &Rc<RefCell<Disk>>) -> Part {
    let mut part = Part::new(disk, Some("a"));
    part.settle_down();
    part
}

/// The page signs `a` out: what is on its way first, then the transaction that says so.
fn sign_out(part: &mut Part) {
    part.turn(None);
    part.settle_down();
    part.disk.borrow_mut().owner = Some(None);
}

fn sign_in(part: &mut Part) {
    part.disk.borrow_mut().owner = Some(Some("a".into()));
    part.turn(Some("a"));
    part.settle_down();
}

fn state(disk: &Rc<RefCell<Disk>>, key: &Key) -> (State, u32, bool) {
    let disk = disk.borrow();
    let row = disk.row("a", key).expect("a row");
    (row.state, row.spent, row.maybe_delivered)
}

#[test]
fn signing_out_while_it_is_sent_aborts_it_and_it_goes_on_when_its_owner_returns() {
    let disk = disk();
    let mut a = page(&disk);
    let key = a.submit("one", true);
    a.settle_down();
    assert_eq!(a.sends(&key), 1);
    sign_out(&mut a);
    assert_eq!(a.aborted.len(), 1);
    assert_eq!(state(&disk, &key), (State::Pending, 0, true));
    // The abort is no failure of the server's.
    assert!(disk.borrow().gates.is_empty());
    a.answer(&key, network_failure());
    a.pass(HOUR);
    assert_eq!((a.sends(&key), a.settled(&key)), (1, vec![]));
    sign_in(&mut a);
    assert_eq!(a.sends(&key), 2);
    a.answer(&key, status(201));
    a.settle_down();
    assert_eq!(a.settled(&key), [(State::Delivered, None)]);
    let row = disk.borrow().row("a", &key).cloned().unwrap();
    assert_eq!((row.attempts, row.spent), (2, 1));
}

#[test]
fn signing_out_between_a_claim_and_its_attempt_sends_nothing() {
    // The write-ahead.
    let disk = disk();
    let mut a = page(&disk);
    let key = a.submit("one", true);
    a.turn(None);
    a.settle_down();
    assert_eq!(
        (a.sends(&key), state(&disk, &key)),
        (0, (State::Pending, 0, false))
    );
    assert!(a.reports.contains(&Report::Stored(key.clone(), true)));
    sign_in(&mut a);
    a.pass(2_000);
    assert_eq!(a.sends(&key), 1);

    // A later claim.
    a.answer(&key, status(503));
    a.settle_down();
    let due = disk
        .borrow()
        .row("a", &key)
        .unwrap()
        .next_attempt_at
        .unwrap();
    disk.borrow_mut().now = due - NOW;
    a.tell(Event::Tick);
    while !matches!(a.waiting[0], Effect::Transact(_, Op::Claim(_))) {
        a.commit();
    }
    a.turn(None);
    a.settle_down();
    assert_eq!(
        (a.sends(&key), state(&disk, &key)),
        (1, (State::Pending, 1, true))
    );
}

#[test]
fn an_answer_that_came_first_counts() {
    let disk = disk();
    let mut a = page(&disk);
    let key = a.submit("one", true);
    a.settle_down();
    a.answer(&key, status(201));
    a.turn(None);
    a.settle_down();
    assert_eq!((a.aborted.len(), a.settled(&key).len()), (0, 1));
    assert_eq!(state(&disk, &key).0, State::Delivered);
}

#[test]
fn a_delivery_that_is_late_is_recorded_and_another_late_answer_is_not() {
    let disk = disk();
    let mut a = page(&disk);
    let [first, second] = ["one", "two"].map(|name| a.submit(name, true));
    a.settle_down();
    sign_out(&mut a);
    a.answer(&first, status(201));
    a.answer(&second, status(422));
    a.settle_down();
    assert_eq!(state(&disk, &first).0, State::Delivered);
    assert_eq!(state(&disk, &second).0, State::Pending);
    assert_eq!(a.settled(&first).len(), 1);
}

#[test]
fn what_waits_for_its_owner_stays_whatever_happens_meanwhile() {
    let disk = disk();
    let mut a = page(&disk);
    let key = a.submit("one", true);
    let unsaved = a.submit("two", false);
    a.settle_down();
    assert_eq!((a.sends(&key), a.sends(&unsaved)), (1, 1));
    sign_out(&mut a);
    for event in [
        Event::Look,
        Event::Offline,
        Event::Online,
        Event::Leaving,
        Event::Returned,
    ] {
        a.tell(event);
    }
    a.pass(12 * HOUR);
    assert_eq!((a.sends(&key), a.sends(&unsaved)), (1, 1));
    sign_in(&mut a);
    assert_eq!((a.sends(&key), a.sends(&unsaved)), (2, 2));
}

#[test]
fn an_abandoned_probe_leaves_its_gate_to_the_next() {
    let disk = disk();
    let mut a = page(&disk);
    let key = a.submit("one", true);
    a.settle_down();
    a.answer(&key, status(503));
    a.pass(5_000);
    assert_eq!(a.sends(&key), 2);
    let failures = disk.borrow().gates[&named("x", policy()).origin].failures;
    sign_out(&mut a);
    let gate = disk.borrow().gates[&named("x", policy()).origin].clone();
    assert_eq!(gate.failures, failures);
    assert!(gate.lets_pass(NOW + disk.borrow().now));
}

#[test]
fn who_parks_what_may_have_arrived_parks_what_was_aborted() {
    let disk = disk();
    let mut a = page(&disk);
    let policy = Policy {
        on_maybe_delivered: OnMaybeDelivered::Park,
        ..policy()
    };
    let key = a.submit_with(named("one", policy), true);
    a.settle_down();
    sign_out(&mut a);
    assert_eq!(
        a.settled(&key),
        [(State::Parked, Some(Reason::OutcomeUnknown))]
    );
}

#[test]
fn a_page_that_has_not_heard_sends_nothing_and_changes_over() {
    let disk = disk();
    let mut a = page(&disk);
    let waits = a.submit("waits", true);
    a.settle_down();
    a.answer(&waits, status(500));
    a.settle_down();
    disk.borrow_mut().owner = Some(Some("b".into()));

    // It is stored for whom the page took to be current, unclaimed.
    let key = a.submit("one", true);
    a.settle_down();
    assert_eq!((a.sends(&key), a.changes_over), (0, 1));
    assert_eq!(state(&disk, &key), (State::Pending, 0, false));
    assert!(a.reports.contains(&Report::Stored(key.clone(), true)));
    assert!(a.queue.is_away());
    a.pass(HOUR);
    assert_eq!((a.sends(&waits), a.changes_over), (1, 1));

    // So it is with a claim, and with a look.
    for look in [Event::Look, Event::Tick] {
        sign_in(&mut a);
        let sent = a.sent.len();
        a.pass(GRACE);
        let on_their_way: Vec<Key> = a.sent[sent..].iter().map(|row| row.key.clone()).collect();
        for key in on_their_way {
            a.answer(&key, status(500));
        }
        a.settle_down();
        let sent = a.sent.len();
        disk.borrow_mut().owner = Some(None);
        let changes = a.changes_over;
        disk.borrow_mut().now += HOUR;
        a.tell(look);
        a.settle_down();
        assert_eq!((a.sent.len(), a.changes_over), (sent, changes + 1));
    }
    sign_in(&mut a);
    assert!(a.sends(&key) > 0, "it was lost");
}

#[test]
fn two_owners_of_one_page_may_use_one_key() {
    let disk = disk();
    let (mut a, mut b) = (page(&disk), Part::new(&disk, Some("b")));
    b.turn(Some("a"));
    let key = a.submit("cart", true);
    a.settle_down();
    a.turn(Some("b"));
    a.settle_down();
    disk.borrow_mut().owner = Some(Some("b".into()));
    b.turn(Some("b"));
    assert_eq!(b.submit("cart", true), key);
    b.settle_down();
    b.answer(&key, status(201));
    b.settle_down();
    assert_eq!(b.settled(&key), [(State::Delivered, None)]);
    assert_eq!(
        (state(&disk, &key).0, a.settled(&key)),
        (State::Pending, vec![])
    );
}

#[test]
fn nobody_submits_nothing() {
    let disk = disk();
    disk.borrow_mut().owner = Some(None);
    let mut nobody = Part::new(&disk, None);
    nobody.settle_down();
    for durable in [true, false] {
        let key = nobody.submit("one", durable);
        nobody.settle_down();
        let rejected = nobody.reports.pop();
        assert!(
            matches!(&rejected, Some(Report::Rejected(of, None, error)) if *of == key && error.code() == Code::NoOwner),
            "{rejected:?}"
        );
    }
    nobody.tell(Event::Asked(8, Op::Discard(key("one"))));
    let (_, reply) = nobody.replies.pop().unwrap();
    assert_eq!(reply.unwrap_err().code(), Code::UnknownKey);
    assert!(nobody.sent.is_empty() && disk.borrow().rows.is_empty());
    // It finds out by itself that somebody signed in elsewhere.
    disk.borrow_mut().owner = Some(Some("a".into()));
    nobody.tell(Event::Look);
    nobody.settle_down();
    assert_eq!(nobody.changes_over, 1);
}

#[test]
fn clearing_deletes_everything_and_nothing_is_recorded_afterwards() {
    let disk = disk();
    let mut a = page(&disk);
    let sending = a.submit("sending", true);
    let unsaved = a.submit("unsaved", false);
    a.settle_down();
    let storing = a.submit("storing", true);
    let ticket = a.clear();
    assert_eq!(a.aborted.len(), 2);
    // Between the two, and afterwards.
    a.answer(&unsaved, status(201));
    a.settle_down();
    a.answer(&sending, status(201));
    a.settle_down();
    assert!(disk.borrow().rows.is_empty());
    assert!(a
        .replies
        .iter()
        .any(|(of, reply)| *of == ticket && reply.is_ok()));
    for key in [&sending, &unsaved, &storing] {
        assert_eq!(a.settled(key), [(State::Cancelled, Some(Reason::Cleared))]);
    }
    assert_eq!(a.sends(&storing), 0);
    assert!(a.queue.is_empty());

    // What comes after is new.
    let key = a.submit("sending", true);
    a.settle_down();
    assert_eq!(a.sends(&key), 2);
}

#[test]
fn what_is_submitted_while_it_is_cleared_stays() {
    let disk = disk();
    let mut a = page(&disk);
    a.clear();
    let key = a.submit("new", true);
    a.settle_down();
    assert_eq!((a.sends(&key), a.settled(&key)), (1, vec![]));
}

#[test]
fn an_answer_that_came_before_it_was_cleared_is_told_once() {
    let disk = disk();
    let mut a = page(&disk);
    let key = a.submit("one", true);
    a.settle_down();
    a.answer(&key, status(201));
    a.clear();
    a.settle_down();
    assert_eq!(a.settled(&key), [(State::Delivered, None)]);
    assert!(disk.borrow().rows.is_empty());
}

#[test]
fn what_could_not_be_cleared_goes_on() {
    let disk = disk();
    let mut a = page(&disk);
    let key = a.submit("one", true);
    a.settle_down();
    let ticket = a.clear();
    a.waiting.clear();
    a.tell(Event::NotCleared(ticket));
    let (_, reply) = a.replies.pop().unwrap();
    assert_eq!(reply.unwrap_err().code(), Code::StorageFailed);
    a.pass(MINUTE);
    assert_eq!(a.sends(&key), 2);
}

#[test]
fn one_owner_is_cleared_and_another_not() {
    let disk = disk();
    let (mut a, mut b) = (page(&disk), Part::new(&disk, Some("b")));
    b.turn(Some("a"));
    let ours = b.submit("of-b", true);
    b.settle_down();
    let theirs = a.submit("of-a", true);
    a.settle_down();
    a.clear();
    a.settle_down();
    let disk = disk.borrow();
    assert!(disk.row("a", &theirs).is_none() && disk.row("b", &ours).is_some());
}

#[test]
fn what_was_asked_for_one_owner_is_not_sent_when_another_came_meanwhile() {
    let disk = disk();
    let mut a = page(&disk);
    let mut record = named("one", policy());
    record.require(Vec::new(), vec!["authorize".into()]);
    let key = a.submit_with(record, true);
    a.settle_down();
    assert_eq!(a.asked, std::slice::from_ref(&key));
    sign_out(&mut a);
    a.settle_down();
    assert!(!a.queue.is_authorizing(&key), "the shell drops what comes");
    a.tell(Event::Authorized(key.clone(), Credentials::Granted));
    a.settle_down();
    assert!(a.sent.is_empty());
    sign_in(&mut a);
    a.settle_down();
    assert_eq!(a.asked, [key.clone(), key.clone()], "asked anew");
    a.tell(Event::Authorized(key.clone(), Credentials::Granted));
    a.settle_down();
    assert_eq!(a.sends(&key), 1);
}
