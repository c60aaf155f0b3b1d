//! What the native tests share: a moment, a row, answers, and JSON as a [`Source`].
#![allow(dead_code)]

pub mod simulation;

use resubmit::engine::decode::Source;
use resubmit::engine::encode::{write, Sink};
use resubmit::engine::lane::{promote, Around};
use resubmit::engine::queue::{Due, Line};
use resubmit::engine::transition::Claim;
use resubmit::engine::{
    Answer, Applied, Beside, Env, Failure, Head, Key, Millis, Op, Policy, Random, Record,
    RequestHead, Wall, Write,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

/// 14 November 2023, when these tests begin.
pub const NOW: Wall = 1_700_000_000_000;

/// Where these tests submit to.
pub const URL: &str = "https://shop.test/orders";

pub const SECOND: Millis = 1_000;
pub const MINUTE: Millis = 60 * SECOND;
pub const HOUR: Millis = 60 * MINUTE;
pub const DAY: Millis = 24 * HOUR;

/// The surroundings at `wall`, with one fixed stream of random numbers.
pub fn env(wall: Wall) -> Env {
    seeded(wall, 0x5eed)
}

/// The surroundings at `wall`, with randomness of one's own.
pub fn seeded(wall: Wall, seed: u64) -> Env {
    Env {
        wall,
        mono: wall.saturating_sub(NOW),
        random: Random::new(seed),
    }
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// A POST of 11 bytes to [`URL`], submitted at [`NOW`].
pub fn record(policy: Policy) -> Record {
    named("intent-1", policy)
}

pub fn named(name: &str, policy: Policy) -> Record {
    let request = RequestHead {
        method: "POST".into(),
        url: URL.into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body_bytes: 11,
        ..RequestHead::default()
    };
    Record::new("anonymous", key(name), request, policy, NOW)
}

/// A row that one attempt was made for, and nobody knows what came of it.
pub fn maybe_delivered(policy: Policy) -> Record {
    let mut row = record(policy);
    attempt(&mut row, &network_failure());
    row
}

/// The head of an answer from [`URL`], of the page's own origin.
pub fn head(status: u16) -> Head {
    Head {
        status,
        url: URL.into(),
        ..Head::default()
    }
}

pub fn status(status: u16) -> Answer {
    Answer::Response(head(status))
}

pub fn status_after(status: u16, retry_after: &str) -> Answer {
    Answer::Response(Head {
        retry_after: Some(retry_after.into()),
        ..head(status)
    })
}

pub fn replayed(status: u16) -> Answer {
    Answer::Response(Head {
        replayed: true,
        ..head(status)
    })
}

pub fn redirected(status: u16, url: &str) -> Answer {
    Answer::Response(Head {
        redirected: true,
        url: url.into(),
        ..head(status)
    })
}

/// `fetch` was rejected after two seconds, online.
pub fn network_failure() -> Answer {
    Answer::Failure(Failure {
        elapsed: 2_000,
        ..Failure::default()
    })
}

pub fn timeout() -> Answer {
    Answer::Failure(Failure {
        timed_out: true,
        elapsed: 30_000,
        ..Failure::default()
    })
}

/// `fetch` was rejected at once, the browser being offline all the while.
pub fn offline() -> Failure {
    Failure {
        elapsed: 3,
        offline_before: true,
        offline_after: true,
        ..Failure::default()
    }
}

/// Claims the row when it is due; says what came of that, and when.
pub fn claim(row: &mut Record) -> (Claim, Wall) {
    let due = row.next_attempt_at.expect("a row that waits");
    (row.claim(&mut env(due)), due)
}

/// Makes one attempt when it is due, answered at once. Returns when that was.
pub fn attempt(row: &mut Record, answer: &Answer) -> Wall {
    let (claimed, now) = claim(row);
    assert_eq!(claimed, Claim::Granted, "{:?}", row.reason);
    assert!(row.settle(row.fence, answer, &mut env(now)));
    now
}

/// Makes attempts with that answer, each when it is due, until the row settles. Returns how many.
pub fn attempts_until_settled(row: &mut Record, answer: &Answer) -> u32 {
    let mut made = 0;
    while !row.state.is_settled() {
        if claim(row).0 == Claim::Granted {
            let now = row.schedule.expect("claimed").written_at;
            row.settle(row.fence, answer, &mut env(now));
            made += 1;
        }
        assert!(made < 10_000, "no end");
    }
    made
}

/// The row as it is stored.
pub fn stored(row: &Record) -> Value {
    write::<Json>(row).0
}

/// A JSON value to read from and to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Json(pub Value);

impl Source for Json {
    fn get(&self, name: &str) -> Option<Self> {
        self.0
            .get(name)
            .filter(|value| !value.is_null())
            .cloned()
            .map(Json)
    }

    fn is_null(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Value::is_null)
    }

    fn string(&self) -> Option<String> {
        self.0.as_str().map(str::to_owned)
    }

    fn number(&self) -> Option<f64> {
        self.0.as_f64()
    }

    fn boolean(&self) -> Option<bool> {
        self.0.as_bool()
    }

    fn items(&self) -> Option<Vec<Self>> {
        Some(self.0.as_array()?.iter().cloned().map(Json).collect())
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(self.0.as_object()?.keys().cloned().collect())
    }
}

impl Sink for Json {
    fn string(text: &str) -> Self {
        Json(text.into())
    }

    fn number(number: f64) -> Self {
        // Whole ones alone are written; JSON would tell 1.0 from 1.
        Json((number as u64).into())
    }

    fn boolean(boolean: bool) -> Self {
        Json(boolean.into())
    }

    fn list(items: Vec<Self>) -> Self {
        Json(items.into_iter().map(|item| item.0).collect())
    }

    fn null() -> Self {
        Json(Value::Null)
    }

    fn object() -> Self {
        Json(Value::Object(Default::default()))
    }

    fn set(&mut self, name: &str, value: Self) {
        self.0[name] = value.0;
    }
}

/// What a store finds among its rows: the lines, of each up to `limit` rows that are due.
pub fn lines(rows: impl IntoIterator<Item = Record>, now: u64, limit: usize) -> Due {
    let mut lines: BTreeMap<(String, String), Vec<Rc<Record>>> = BTreeMap::new();
    for row in rows {
        if row.next_attempt_at.is_some() {
            let line = lines.entry((row.origin.clone(), row.needs.clone()));
            line.or_default().push(Rc::new(row));
        }
    }
    let lines = lines
        .into_values()
        .map(|mut rows| {
            rows.sort_by_key(|row| row.next_attempt_at);
            let later = rows.partition_point(|row| row.next_attempt_at.is_some_and(|at| at <= now));
            let mut later = rows.split_off(later).into_iter();
            rows.truncate(limit);
            let next = later.next();
            Line {
                due: rows,
                last: later.next_back().or_else(|| next.clone()),
                next,
            }
        })
        .collect();
    Due {
        lines,
        ..Due::default()
    }
}

/// Runs a transaction as a store does, on `rows`: what it reads of lanes first, what it promotes last. Returns the
/// promoted rows among what it came to, and in `writes`.
pub fn transact(
    rows: impl IntoIterator<Item = Record>,
    op: &Op,
    mut beside: Beside,
    env: &mut Env,
) -> Applied {
    let mut rows: BTreeMap<Key, Rc<Record>> = rows
        .into_iter()
        .map(|row| (row.key.clone(), Rc::new(row)))
        .collect();
    let row = rows.get(op.key()).cloned();
    let around = Around::of(op, row.as_deref());
    let theirs = |other: &&Rc<Record>| other.owner == around.owner;
    if around.lane.is_some() {
        let lane = rows
            .values()
            .filter(theirs)
            .filter(|other| other.lane == around.lane);
        beside.lane_end = lane.filter_map(|other| other.lane_seq).max().unwrap_or(0);
    }
    if around.coalesce_key.is_some() {
        let twins = rows.values().filter(theirs);
        let twins = twins
            .filter(|other| other.coalesce_key == around.coalesce_key && other.key != *op.key());
        beside.twins = twins.cloned().collect();
    }
    let mut applied = op.run(row, beside, env);
    for write in &applied.writes {
        match write {
            Write::Put(row) => drop(rows.insert(row.key.clone(), row.clone())),
            Write::Delete(key) => drop(rows.remove(key)),
            _ => {}
        }
    }
    if let Some(vacated) = &applied.vacated {
        let lane = rows
            .values()
            .filter(|row| row.owner == vacated.owner && row.lane_seq.is_some());
        let lane = lane.filter(|row| row.lane.as_ref() == Some(&vacated.lane));
        let first = lane.min_by_key(|row| row.lane_seq).cloned();
        if let Some(first) = first.and_then(|first| promote(first, vacated, env.wall)) {
            applied.writes.push(Write::Put(first.clone()));
            applied.also.push(first);
        }
    }
    applied
}
