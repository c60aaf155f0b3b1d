//! Credentials: who is asked for them, how often, and what waits until the person has signed in.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use resubmit::engine::queue::{Due, Ticket, PER_ORIGIN, RECHECK};
use resubmit::engine::{
    Answer, Beside, Credentials, Effect, Event, Key, Op, Policy, Queue, Reason, Record, Report,
    State, Supplies, Why, Write,
};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Where all of it goes.
const ORIGIN: &str = "https://shop.test";

/// A store, and whether the sign-in gate is closed in it.
#[derive(Default)]
struct Disk {
    rows: BTreeMap<Key, Record>,
    closed: bool,
}

/// A page over a store, in which transactions and queries are answered at once.
struct Page {
    queue: Queue,
    now: u64,
    sent: Vec<Key>,
    asked: Vec<(Key, Why)>,
    reports: Vec<Report>,
}

impl Page {
    fn open(disk: &mut Disk, now: u64) -> Self {
        let supplies = Supplies {
            headers: true,
            hooks: vec!["authorize".into()],
        };
        let mut page = Page {
            queue: Queue::new(false, supplies),
            now,
            sent: Vec::new(),
            asked: Vec::new(),
            reports: Vec::new(),
        };
        page.tell(disk, Event::Opened);
        page
    }

    fn tell(&mut self, disk: &mut Disk, event: Event) {
        let mut events = vec![event];
        while !events.is_empty() {
            let event = events.remove(0);
            self.queue.handle(event, &mut env(NOW + self.now));
            while let Some(effect) = self.queue.poll_effect() {
                match effect {
                    Effect::Transact(ticket, op) => events.push(self.transact(disk, ticket, op)),
                    Effect::Query => {
                        let rows = disk.rows.values().cloned();
                        events.push(Event::Queried(Due {
                            signed_out: disk
                                .closed
                                .then(|| ORIGIN.to_owned())
                                .into_iter()
                                .collect(),
                            ..lines(rows, NOW + self.now, 16)
                        }));
                    }
                    Effect::Send(record) => self.sent.push(record.key.clone()),
                    Effect::Authorize(record, why) => self.asked.push((record.key.clone(), why)),
                    Effect::Report(report) => self.reports.push(report),
                    _ => {}
                }
            }
        }
    }

    fn transact(&mut self, disk: &mut Disk, ticket: Ticket, op: Op) -> Event {
        let beside = Beside {
            signed_out: disk.closed,
            ..self.queue.beside(&op)
        };
        let rows = disk.rows.values().cloned();
        let applied = transact(rows, &op, beside, &mut env(NOW + self.now));
        for write in &applied.writes {
            match write {
                Write::Put(row) => drop(disk.rows.insert(row.key.clone(), (**row).clone())),
                Write::Delete(key) => drop(disk.rows.remove(key)),
                _ => {}
            }
        }
        disk.closed = applied.sign_in.unwrap_or(disk.closed);
        Event::Committed(ticket, op, Box::new(applied))
    }

    fn submit(&mut self, disk: &mut Disk, name: &str, change: impl FnOnce(&mut Record)) {
        let mut record = named(name, Policy::patient());
        record.created_at = NOW + self.now;
        change(&mut record);
        let record = Rc::new(record);
        self.tell(
            disk,
            Event::Submit {
                record,
                durable: true,
            },
        );
    }

    fn answer(&mut self, disk: &mut Disk, name: &str, answer: Answer) {
        self.now += 10;
        let fence = self.queue.record(&key(name)).unwrap().fence;
        self.tell(disk, Event::Answered(key(name), fence, Box::new(answer)));
    }

    fn credentials(&mut self, disk: &mut Disk, name: &str, credentials: Credentials) {
        self.now += 10;
        self.tell(disk, Event::Authorized(key(name), credentials));
    }

    fn pass(&mut self, disk: &mut Disk, ms: u64) {
        self.now += ms;
        self.tell(disk, Event::Tick);
    }

    fn sent(&mut self) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent);
        sent.iter().map(|key| key.as_str().to_owned()).collect()
    }

    fn asked(&mut self) -> Vec<(String, Why)> {
        let asked = std::mem::take(&mut self.asked);
        let asked = asked.into_iter();
        asked
            .map(|(key, why)| (key.as_str().to_owned(), why))
            .collect()
    }
}

/// Its credentials come from the hook.
fn asks(record: &mut Record) {
    record.require(Vec::new(), vec!["authorize".into()]);
}

/// It came with a header that is not stored.
fn brings_its_own(record: &mut Record) {
    record.require(vec!["authorization".into()], vec!["authorize".into()]);
}

fn cookie(_: &mut Record) {}

fn row<'a>(disk: &'a Disk, name: &str) -> &'a Record {
    &disk.rows[&key(name)]
}

fn waits(disk: &Disk, name: &str) -> bool {
    let row = row(disk, name);
    (row.state, row.reason) == (State::Pending, Some(Reason::Unauthorized))
}

fn asked(name: &str, why: Why) -> Vec<(String, Why)> {
    vec![(name.to_owned(), why)]
}

#[test]
fn it_is_on_the_disk_before_credentials_are_asked_for_and_claimed_after() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", asks);
    assert_eq!(page.asked(), asked("a", Why::First));
    assert_eq!(row(&disk, "a").attempts, 0);
    assert!(page.sent().is_empty());
    page.credentials(&mut disk, "a", Credentials::Granted);
    assert_eq!(page.sent(), ["a"]);
    assert_eq!(row(&disk, "a").attempts, 1);
    // The next attempt goes with the same.
    page.answer(&mut disk, "a", status(500));
    page.pass(&mut disk, MINUTE);
    assert_eq!(page.sent(), ["a"]);
    assert!(page.asked().is_empty());
}

#[test]
fn what_brings_its_own_headers_goes_at_once_and_asks_after_a_reload() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", brings_its_own);
    assert_eq!(page.sent(), ["a"]);
    page.answer(&mut disk, "a", status(500));
    let mut next = Page::open(&mut disk, HOUR);
    assert_eq!(next.asked(), asked("a", Why::First));
    next.credentials(&mut disk, "a", Credentials::Granted);
    assert_eq!(next.sent(), ["a"]);
}

#[test]
fn a_refusal_asks_for_fresh_credentials_and_makes_one_more_attempt_that_is_not_spent() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", brings_its_own);
    page.answer(&mut disk, "a", status(401));
    assert!(!disk.closed);
    assert_eq!(page.asked(), asked("a", Why::Unauthorized));
    page.credentials(&mut disk, "a", Credentials::Granted);
    assert_eq!(page.sent(), ["a", "a"]);
    page.answer(&mut disk, "a", status(201));
    let a = row(&disk, "a");
    assert_eq!((a.state, a.attempts, a.spent), (State::Delivered, 2, 1));
}

#[test]
fn refused_again_it_waits_and_nothing_more_is_sent_until_there_is_reason_to() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", brings_its_own);
    page.answer(&mut disk, "a", status(401));
    page.credentials(&mut disk, "a", Credentials::Granted);
    page.answer(&mut disk, "a", status(419));
    assert!(disk.closed && waits(&disk, "a"));
    assert_eq!(row(&disk, "a").spent, 0);
    page.sent();
    page.asked();
    page.pass(&mut disk, 6 * HOUR);
    assert!(page.sent().is_empty() && page.asked().is_empty());
    // (It looks now and then: another page may hear first.)
    assert!(page
        .queue
        .next_deadline(env(NOW + page.now).clocks())
        .is_some());

    page.tell(&mut disk, Event::SignedIn);
    assert_eq!(page.asked(), asked("a", Why::Unauthorized));
    page.credentials(&mut disk, "a", Credentials::Granted);
    page.answer(&mut disk, "a", status(201));
    assert!(!disk.closed);
}

#[test]
fn without_a_hook_the_first_refusal_closes_the_gate() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", cookie);
    page.answer(&mut disk, "a", status(401));
    assert!(disk.closed && waits(&disk, "a"));
    // What is due by itself waits too; another origin's does not.
    for (name, url) in [("b", URL), ("c", "https://other.test/orders")] {
        let mut record = named(name, Policy::patient());
        record.request.url = url.into();
        record.origin = url.trim_end_matches("/orders").into();
        disk.rows.insert(record.key.clone(), record);
    }
    page.sent();
    page.tell(&mut disk, Event::Look);
    assert_eq!(page.sent(), ["c"]);
}

#[test]
fn a_new_page_tries_one_and_a_success_lets_all_of_them_go() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    for name in ["a", "b", "c"] {
        page.submit(&mut disk, name, cookie);
    }
    for name in ["a", "b", "c"] {
        page.answer(&mut disk, name, status(401));
    }
    let mut next = Page::open(&mut disk, HOUR);
    assert_eq!(next.sent(), ["a"]);
    next.answer(&mut disk, "a", status(401));
    assert!(next.sent().is_empty(), "one try");
    let mut last = Page::open(&mut disk, 2 * HOUR);
    assert_eq!(last.sent(), ["b"]);
    last.answer(&mut disk, "b", status(201));
    assert_eq!(last.sent(), ["c", "a"]);
    // The page before hears of it when it looks.
    let mut disk_later = disk;
    next.now = 2 * HOUR;
    disk_later
        .rows
        .insert(key("d"), named("d", Policy::patient()));
    next.pass(&mut disk_later, RECHECK);
    assert_eq!(next.sent(), ["d"]);
}

#[test]
fn a_new_submission_and_a_persons_retry_are_reasons_to_try() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", cookie);
    page.answer(&mut disk, "a", status(401));
    page.sent();
    page.submit(&mut disk, "b", cookie);
    assert_eq!(page.sent(), ["b"]);
    // Beside it nothing goes.
    page.submit(&mut disk, "c", cookie);
    assert!(page.sent().is_empty() && waits(&disk, "c"));
    page.answer(&mut disk, "b", status(401));
    let retry = Op::Retry {
        key: key("a"),
        new_key: key("new"),
        may_repeat: false,
    };
    page.sent();
    page.tell(&mut disk, Event::Asked(2, retry));
    assert_eq!(page.sent().len(), 1);
}

#[test]
fn one_that_is_refused_after_another_succeeded_is_parked_alone() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", cookie);
    page.submit(&mut disk, "b", cookie);
    page.answer(&mut disk, "a", status(401));
    page.answer(&mut disk, "b", status(201));
    assert!(!disk.closed);
    page.answer(&mut disk, "a", status(401));
    let a = row(&disk, "a");
    assert_eq!(
        (a.state, a.reason),
        (State::Parked, Some(Reason::Unauthorized))
    );
    assert!(!disk.closed, "the others go on");
    let told = page.reports.iter().any(|report| match report {
        Report::Settled(record, fence) => record.key == key("a") && fence.is_some(),
        _ => false,
    });
    assert!(told);
}

#[test]
fn no_credentials_now_closes_the_gate_without_an_attempt() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", asks);
    page.submit(&mut disk, "b", asks);
    page.asked();
    page.credentials(&mut disk, "a", Credentials::NotNow);
    assert!(disk.closed && waits(&disk, "a"));
    assert_eq!(row(&disk, "a").attempts, 0);
    page.credentials(&mut disk, "b", Credentials::NotNow);
    page.asked();
    page.pass(&mut disk, HOUR);
    assert!(page.asked().is_empty());
    page.tell(&mut disk, Event::SignedIn);
    assert_eq!(page.asked().len(), 1);
}

#[test]
fn a_hook_that_fails_is_asked_again_later() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", asks);
    page.asked();
    page.credentials(&mut disk, "a", Credentials::Failed);
    assert!(!disk.closed && page.asked().is_empty());
    page.pass(&mut disk, RECHECK - 100);
    assert!(page.asked().is_empty());
    page.pass(&mut disk, 200);
    assert_eq!(page.asked(), asked("a", Why::First));
    page.credentials(&mut disk, "a", Credentials::Failed);
    // It may have been the network.
    page.tell(&mut disk, Event::Online);
    page.tell(&mut disk, Event::Look);
    assert_eq!(page.asked(), asked("a", Why::First));
}

#[test]
fn one_refresh_serves_all_that_were_refused_before_it() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    for name in ["a", "b"] {
        page.submit(&mut disk, name, brings_its_own);
    }
    page.answer(&mut disk, "a", status(401));
    page.answer(&mut disk, "b", status(401));
    assert_eq!(page.asked(), asked("a", Why::Unauthorized));
    page.credentials(&mut disk, "a", Credentials::Granted);
    // Those of the hook are fresh by now.
    assert_eq!(page.asked(), asked("b", Why::First));
    page.credentials(&mut disk, "b", Credentials::Granted);
    assert_eq!(page.sent(), ["a", "b", "a", "b"]);
}

#[test]
fn what_is_given_up_while_the_hook_thinks_is_not_sent() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", asks);
    page.tell(&mut disk, Event::Asked(2, Op::Cancel(key("a"))));
    page.credentials(&mut disk, "a", Credentials::Granted);
    assert!(page.sent().is_empty());
    assert_eq!(row(&disk, "a").state, State::Cancelled);
}

#[test]
fn a_limit_that_is_met_behind_the_gate_parks() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", cookie);
    page.answer(&mut disk, "a", status(401));
    page.pass(&mut disk, 8 * DAY);
    assert_eq!(row(&disk, "a").reason, Some(Reason::MaxAge));
}

#[test]
fn a_page_without_the_hook_leaves_it_to_another() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", asks);
    let mut other = Page::open(&mut disk, 0);
    other.queue = Queue::default();
    other.asked();
    other.tell(&mut disk, Event::Opened);
    assert!(other.asked().is_empty() && other.sent().is_empty());
}

#[test]
fn no_more_hooks_run_at_once_than_attempts() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    for at in 0..10 {
        page.submit(&mut disk, &format!("i{at}"), asks);
    }
    assert_eq!(page.asked().len(), PER_ORIGIN);
}

/// A page keeps what it alone can send, also when it has settled. Looked for before that and found after it, its end was told
/// a second time.
#[test]
fn an_end_is_told_once_however_late_the_look_that_finds_it_due() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", asks);
    page.credentials(&mut disk, "a", Credentials::Failed);
    page.now += 8 * DAY;
    let looked = lines(disk.rows.values().cloned(), NOW + page.now, 16);
    page.tell(&mut disk, Event::Tick);
    assert_eq!(row(&disk, "a").state, State::Parked);
    page.tell(&mut disk, Event::Queried(looked));
    let ends = page.reports.iter();
    let ends = ends.filter(|report| matches!(report, Report::Settled(..)));
    assert_eq!(ends.count(), 1);
    assert!(page.queue.record(&key("a")).is_some(), "it is kept");
}

/// The person signed in while the store kept silent about the gate: what it wrote at last is no reason to wait.
#[test]
fn a_gate_that_is_written_too_late_is_tried_once() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", asks);
    page.submit(&mut disk, "b", asks);
    let op = Op::Deny {
        key: key("b"),
        closes: true,
    };
    page.queue.handle(
        Event::Authorized(key("b"), Credentials::NotNow),
        &mut env(NOW),
    );
    let Some(Effect::Transact(ticket, _)) = page.queue.poll_effect() else {
        panic!("the gate is to be written");
    };
    page.tell(&mut disk, Event::Failed(ticket, op.clone()));
    page.credentials(&mut disk, "b", Credentials::Failed);
    page.credentials(&mut disk, "a", Credentials::Granted);
    page.answer(&mut disk, "a", status(201));
    page.asked();
    page.now += RECHECK;
    let Event::Committed(_, op, applied) = page.transact(&mut disk, 1, op) else {
        unreachable!();
    };
    page.tell(&mut disk, Event::CommittedLate(op, applied));
    assert!(disk.closed);
    assert_eq!(page.asked(), asked("b", Why::First));
}

/// It had waited the second that the server asked for; then the clock was set back into it.
#[test]
fn a_floor_that_has_passed_is_not_waited_again_behind_the_gate() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", cookie);
    page.answer(&mut disk, "a", status_after(503, "1"));
    let floor = row(&disk, "a").not_before.unwrap();
    page.now = row(&disk, "a").next_attempt_at.unwrap() - NOW;
    let op = Op::Deny {
        key: key("a"),
        closes: true,
    };
    page.transact(&mut disk, 1, op);
    let row = row(&disk, "a");
    assert!(floor.at() <= NOW + page.now && row.not_before.is_none());
    assert_eq!(row.next_attempt_at, Some(NOW + page.now));
}

/// A person retried and gave it up at once: the retry that was committed in between made the page forget that, and it was
/// claimed and sent.
#[test]
fn what_is_given_up_right_after_a_retry_is_not_sent() {
    let mut disk = Disk::default();
    let mut page = Page::open(&mut disk, 0);
    page.submit(&mut disk, "a", asks);
    page.asked();
    let retry = Op::Retry {
        key: key("a"),
        new_key: key("b"),
        may_repeat: false,
    };
    for (ticket, op) in [(2, retry), (4, Op::Cancel(key("a")))] {
        page.queue
            .handle(Event::Asked(ticket, op), &mut env(NOW + 10));
    }
    let mut asked = Vec::new();
    while let Some(effect) = page.queue.poll_effect() {
        if let Effect::Transact(ticket, op) = effect {
            asked.push((ticket, op));
        }
    }
    assert_eq!(asked.len(), 2);
    let (ticket, op) = asked.remove(0);
    let committed = page.transact(&mut disk, ticket, op);
    page.tell(&mut disk, committed);
    page.credentials(&mut disk, "a", Credentials::Granted);
    assert!(page.asked().is_empty() && page.sent().is_empty());
    let (ticket, op) = asked.remove(0);
    let committed = page.transact(&mut disk, ticket, op);
    page.tell(&mut disk, committed);
    assert_eq!(row(&disk, "a").state, State::Cancelled);
}
