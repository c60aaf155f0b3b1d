//! The life of one row: when its attempts are due, what ends them, what a person may do, and how it is stored.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use proptest::prelude::*;
use resubmit::engine::backoff::spread_over_floor;
use resubmit::engine::error::Code;
use resubmit::engine::record::{Deadline, Hint, Lease, Unreadable, VERSION};
use resubmit::engine::transition::{Claim, GRACE, OFFLINE_PROBE};
use resubmit::engine::{
    Acknowledgement, Answer, Evidence, Head, Intent, Jitter, Key, KeyFormat, KeyPlace,
    OnMaybeDelivered, OnParked, Op, Policy, Reason, Receipt, Record, RequestHead, State, Write,
};
use serde_json::{json, Value};
use std::rc::Rc;

fn without_jitter(policy: Policy) -> Policy {
    Policy {
        jitter: Jitter::None,
        ..policy
    }
}

fn parking(policy: Policy) -> Policy {
    Policy {
        on_maybe_delivered: OnMaybeDelivered::Park,
        ..policy
    }
}

/// How long the row waits after an attempt that was answered so, for many draws.
fn waits(policy: &Policy, answer: &Answer) -> Vec<u64> {
    (0..2_000)
        .map(|seed| {
            let mut row = record(policy.clone());
            assert_eq!(row.claim(&mut seeded(NOW, seed)), Claim::Granted);
            row.settle(1, answer, &mut seeded(NOW, seed.wrapping_mul(7919) + 1));
            row.next_attempt_at.unwrap() - NOW
        })
        .collect()
}

// The basics.

#[test]
fn the_first_delay_lies_inside_the_window_of_the_tables_first_entry() {
    for policy in [
        Policy::patient(),
        Policy::background(),
        Policy::interactive(),
    ] {
        let bound = policy.delays_ms.first().copied().unwrap_or(policy.base_ms);
        let waits = waits(&policy, &network_failure());
        assert!(waits.iter().all(|wait| *wait <= bound));
        assert!(waits.iter().any(|wait| *wait > bound * 9 / 10));
        assert!(waits.iter().any(|wait| *wait < bound / 10));
    }
}

#[test]
fn the_windows_that_follow_are_those_of_the_table() {
    let policy = without_jitter(Policy::background());
    let mut row = record(policy);
    let mut waits = Vec::new();
    for _ in 0..4 {
        let now = attempt(&mut row, &status(503));
        waits.push(row.next_attempt_at.unwrap() - now);
    }
    assert_eq!(waits, [5_000, 15_000, 45_000, 135_000]);
}

#[test]
fn a_future_deadline_is_never_due() {
    let mut row = record(without_jitter(Policy::background()));
    attempt(&mut row, &status(503));
    let due = row.next_attempt_at.unwrap();
    assert_eq!(due, NOW + 5_000);
    for now in [NOW, NOW + 1, due - 1] {
        let before = row.clone();
        assert_eq!(row.claim(&mut env(now)), Claim::NotNow);
        assert_eq!(row, before, "a claim that is not granted changes nothing");
    }
    assert_eq!(row.claim(&mut env(due)), Claim::Granted);
}

#[test]
fn a_claimed_row_is_not_due_before_its_lease_ends() {
    for policy in [Policy::patient(), without_jitter(Policy::background())] {
        for seed in 0..200 {
            let mut row = record(policy.clone());
            row.claim(&mut seeded(NOW, seed));
            let lease = row.lease.unwrap();
            assert_eq!(lease.length_ms, 30_000 + 2 * GRACE);
            let due = row.next_attempt_at.unwrap();
            assert!(due >= NOW + lease.length_ms);
            assert!(due <= NOW + (30_000 + policy.delays_ms[0]).max(lease.length_ms));
            assert_eq!(row.claim(&mut env(due - 1)), Claim::NotNow);
            // A crash needs no repair: the next claim is the one that was scheduled.
            assert_eq!(row.claim(&mut env(due)), Claim::Granted);
            assert_eq!((row.attempts, row.spent, row.fence), (2, 2, 2));
            assert!(row.maybe_delivered_before);
        }
    }
}

#[test]
fn the_lease_covers_what_a_large_body_takes() {
    let mut row = record(Policy::patient());
    row.request.body_bytes = 16 * 1024 * 100;
    row.claim(&mut env(NOW));
    assert_eq!(row.lease.unwrap().length_ms, 130_000 + 2 * GRACE);
    assert!(row.next_attempt_at.unwrap() >= NOW + 130_000 + 2 * GRACE);
}

#[test]
fn exhausted_means_no_deadline() {
    for policy in [
        Policy::patient(),
        Policy::background(),
        Policy::interactive(),
    ] {
        let most = policy.max_attempts;
        let mut row = record(policy);
        assert_eq!(attempts_until_settled(&mut row, &status(503)), most);
        assert_eq!(row.state, State::Parked);
        assert_eq!(row.reason, Some(Reason::AttemptsExhausted));
        assert_eq!(row.next_attempt_at, None);
        assert_eq!(row.schedule, None);
        let settled_at = row.settled_at.unwrap();
        assert_eq!(row.claim(&mut env(settled_at + 1_000 * DAY)), Claim::NotNow);
    }
}

#[test]
fn the_same_key_is_on_every_attempt() {
    let mut row = record(Policy::background());
    let (minted, request, place) = (row.key.clone(), row.request.clone(), row.key_place.clone());
    while !row.state.is_settled() {
        attempt(&mut row, &network_failure());
        // As another page would read it.
        row = Record::read(&Json(stored(&row))).unwrap();
        assert_eq!(row.key, minted);
        assert_eq!(row.request, request);
        assert_eq!(row.key_place.header(&row.key), place.header(&minted));
    }
    assert_eq!(row.attempts, 5);
}

#[test]
fn a_422_ends_it_at_once() {
    let mut row = record(Policy::patient());
    assert_eq!(attempts_until_settled(&mut row, &status(422)), 1);
    assert_eq!(
        (row.state, row.reason),
        (State::Refused, Some(Reason::Invalid))
    );
    assert_eq!(row.next_attempt_at, None);
}

#[test]
fn a_409_goes_to_reconciliation() {
    let mut row = record(Policy::patient());
    assert_eq!(attempts_until_settled(&mut row, &status(409)), 2);
    assert_eq!(
        (row.state, row.reason),
        (State::Refused, Some(Reason::Conflict))
    );
    assert_eq!(row.evidence.unwrap().status, Some(409));
    let mut row = record(Policy::patient());
    assert_eq!(attempts_until_settled(&mut row, &replayed(409)), 1);
    assert_eq!(
        (row.state, row.reason),
        (State::Refused, Some(Reason::Conflict))
    );
}

#[test]
fn retry_after_in_seconds_is_honoured() {
    for policy in [Policy::patient(), without_jitter(Policy::background())] {
        let spread = spread_over_floor(policy.delays_ms[0], 600_000);
        let waits = waits(&policy, &status_after(503, "600"));
        assert!(waits
            .iter()
            .all(|wait| (600_000..=600_000 + spread).contains(wait)));
        assert!(
            waits.iter().any(|wait| *wait > 600_000 + spread * 9 / 10),
            "spread"
        );
    }
    let mut row = record(Policy::patient());
    attempt(&mut row, &status_after(429, "600"));
    assert_eq!(row.not_before, Some(Deadline::after(NOW, 600_000)));
    assert_eq!(row.claim(&mut env(NOW + 599_999)), Claim::NotNow);
}

#[test]
fn retry_after_as_a_date_is_compared_with_the_servers_clock() {
    // The server's clock is a day behind ours.
    let dated = |date: Option<&str>| {
        Answer::Response(Head {
            retry_after: Some("Mon, 13 Nov 2023 22:15:20 GMT".into()),
            date: date.map(str::to_owned),
            ..head(503)
        })
    };
    let mut row = record(Policy::patient());
    attempt(&mut row, &dated(Some("Mon, 13 Nov 2023 22:13:20 GMT")));
    assert_eq!(row.not_before, Some(Deadline::after(NOW, 120_000)));
    // Without a Date that can be read, our own clock has to do: that moment is past.
    for date in [None, Some("yesterday")] {
        let mut row = record(Policy::patient());
        attempt(&mut row, &dated(date));
        assert_eq!(row.not_before, Some(Deadline::after(NOW, 0)));
    }
}

#[test]
fn a_date_by_our_own_clock_is_cut_to_the_longest_sensible_wait() {
    let mut row = record(Policy::patient());
    attempt(
        &mut row,
        &status_after(429, "Wed, 14 Nov 2040 22:13:20 GMT"),
    );
    assert_eq!(row.state, State::Pending);
    assert_eq!(row.not_before, Some(Deadline::after(NOW, DAY)));
}

#[test]
fn a_retry_after_that_is_too_long_parks_at_once() {
    let parked = |policy: Policy, answer: &Answer| {
        let mut row = record(policy);
        attempt(&mut row, answer);
        row.state == State::Parked && row.reason == Some(Reason::RetryAfterTooLong)
    };
    let patient = Policy::patient;
    // Sense: a day.
    assert!(parked(patient(), &status_after(429, "86401")));
    assert!(!parked(patient(), &status_after(429, "86400")));
    assert!(parked(
        patient(),
        &status_after(429, "99999999999999999999999")
    ));
    assert!(parked(Policy::interactive(), &status_after(503, "61")));
    assert!(!parked(Policy::interactive(), &status_after(503, "60")));
    // The key's age, where it may have been delivered.
    assert!(parked(patient(), &status_after(503, "82801")));
    assert!(!parked(patient(), &status_after(503, "82800")));
    // A 429 proves that it was not.
    assert!(!parked(patient(), &status_after(429, "82801")));
    // The policy's age.
    let short = Policy {
        max_age_ms: MINUTE,
        ..patient()
    };
    assert!(parked(short.clone(), &status_after(429, "61")));
    assert!(!parked(short, &status_after(429, "60")));
}

#[test]
fn jitter_is_present() {
    let mut waits = waits(&Policy::background(), &status(503));
    let mean = waits.iter().sum::<u64>() / waits.len() as u64;
    assert!((2_300..2_700).contains(&mean), "{mean}");
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 1_000, "no two alike, nearly");
}

#[test]
fn attempts_and_elapsed_are_both_capped() {
    // Attempts: see `exhausted_means_no_deadline`. Elapsed, however many attempts are left:
    let policy = Policy {
        max_age_ms: 10 * MINUTE,
        max_attempts: 1_000,
        ..without_jitter(Policy::background())
    };
    let mut row = record(policy);
    let made = attempts_until_settled(&mut row, &network_failure());
    assert_eq!(
        (row.state, row.reason),
        (State::Parked, Some(Reason::MaxAge))
    );
    // After 0, 5, 20, 65, 200, 605 s: the last would be too late, which is said as soon as it is known.
    assert_eq!(made, 5);
    assert_eq!(row.settled_at, Some(NOW + 200_000));
    // The last moment is still in time.
    let mut row = record(Policy {
        max_age_ms: 5_000,
        ..without_jitter(Policy::background())
    });
    attempt(&mut row, &network_failure());
    assert_eq!(claim(&mut row).0, Claim::Granted);
}

#[test]
fn what_sleeps_longer_than_its_age_is_not_sent_when_it_wakes() {
    let mut row = record(Policy::patient());
    attempt(&mut row, &status(429));
    assert_eq!(row.claim(&mut env(NOW + 8 * DAY)), Claim::Parked);
    assert_eq!(row.reason, Some(Reason::MaxAge));
    assert_eq!(row.attempts, 1);
}

#[test]
fn reconnecting_cuts_the_wait_once() {
    for lost in [network_failure(), timeout(), status(503), status(500)] {
        let mut row = record(without_jitter(Policy::background()));
        for _ in 0..3 {
            attempt(&mut row, &lost);
        }
        let now = row.schedule.unwrap().written_at;
        assert_eq!(row.next_attempt_at, Some(now + 45_000));
        let now = now + 1_000;
        assert!(row.bring_forward(&mut env(now)));
        let due = row.next_attempt_at.unwrap();
        assert!((now..=now + 500).contains(&due), "{lost:?}");
        let spent = row.spent;
        // The network flaps: nothing more is won.
        for more in 1..10 {
            assert!(!row.bring_forward(&mut env(now + more)));
            assert_eq!(row.next_attempt_at, Some(due));
        }
        attempt(&mut row, &lost);
        assert_eq!(row.spent, spent + 1, "it counts like any other");
    }
}

#[test]
fn reconnecting_brings_nobody_back_in_the_same_instant() {
    let mut found: Vec<u64> = (0..300)
        .map(|seed| {
            let mut row = maybe_delivered(without_jitter(Policy::background()));
            row.bring_forward(&mut seeded(NOW + 10, seed));
            row.next_attempt_at.unwrap() - NOW - 10
        })
        .collect();
    assert!(found.iter().all(|wait| *wait <= 500));
    found.sort_unstable();
    found.dedup();
    assert!(found.len() > 150);
}

#[test]
fn reconnecting_never_undercuts_a_floor() {
    for code in [408, 429, 503] {
        let mut row = record(Policy::patient());
        let now = attempt(&mut row, &status_after(code, "600"));
        let due = row.next_attempt_at;
        assert!(!row.bring_forward(&mut env(now + 1)), "{code}");
        assert_eq!(row.next_attempt_at, due);
    }
    // Nor does it when the row was marked as one that may be cut.
    let mut row = record(Policy::patient());
    let now = attempt(&mut row, &status_after(503, "600"));
    row.cuttable = true;
    row.bring_forward(&mut env(now + 1));
    assert!(row.next_attempt_at.unwrap() >= now + 600_000);
}

#[test]
fn reconnecting_never_puts_off() {
    let mut row = maybe_delivered(without_jitter(Policy::patient()));
    let due = row.next_attempt_at.unwrap();
    row.bring_forward(&mut env(due - 1));
    assert!(row.next_attempt_at.unwrap() <= due);
}

#[test]
fn reconnecting_is_no_news_for_other_waits() {
    for answer in [
        status(429),
        status(408),
        status(409),
        status(401),
        Answer::NotSent,
    ] {
        let mut row = record(Policy::patient());
        attempt(&mut row, &answer);
        assert!(!row.bring_forward(&mut env(NOW + 1)), "{answer:?}");
    }
    let mut row = record(Policy::patient());
    claim(&mut row);
    assert!(
        !row.bring_forward(&mut env(NOW + 1)),
        "an attempt in flight"
    );
}

#[test]
fn while_offline_nothing_is_spent_and_a_probe_is_made() {
    let mut row = record(Policy::interactive());
    let mut last = None;
    for n in 1..=20 {
        let now = attempt(&mut row, &Answer::Failure(offline()));
        assert_eq!((row.attempts, row.spent), (n, 0));
        assert_eq!(row.next_attempt_at, Some(now + OFFLINE_PROBE));
        assert!(last.is_none_or(|last| now == last + OFFLINE_PROBE));
        last = Some(now);
    }
    let now = last.unwrap() + 1_000;
    assert!(
        row.bring_forward(&mut env(now)),
        "until the network is back"
    );
    assert!(row.next_attempt_at.unwrap() <= now + 500);
}

#[test]
fn abort_ends_the_loop() {
    // In whatever phase: waiting for the first attempt, sending, waiting for the next, parked.
    let new = record(Policy::patient());
    let mut sending = new.clone();
    claim(&mut sending);
    let waiting = maybe_delivered(Policy::patient());
    let mut parked = new.clone();
    attempt(&mut parked, &status(302));
    for (row, maybe_delivered) in [
        (new, false),
        (sending, true),
        (waiting, true),
        (parked, true),
    ] {
        let mut row = row;
        assert!(row.cancel(NOW + 5));
        assert_eq!(
            (row.state, row.reason),
            (State::Cancelled, Some(Reason::Discarded))
        );
        assert_eq!(row.next_attempt_at, None);
        assert_eq!(row.lease, None);
        assert_eq!(row.maybe_delivered, maybe_delivered, "the truth about it");
        assert_eq!(row.settled_at, Some(NOW + 5));
        assert_eq!(row.claim(&mut env(NOW + DAY)), Claim::NotNow);
        assert!(row.cancel(NOW + 6), "again: it is");
        assert_eq!(row.settled_at, Some(NOW + 5));
    }
}

#[test]
fn a_finished_answer_wins_over_abort() {
    for answer in [status(201), status(422)] {
        let mut row = record(Policy::patient());
        attempt(&mut row, &answer);
        let before = row.clone();
        assert!(!row.cancel(NOW + 5));
        assert_eq!(row, before);
    }
}

#[test]
fn abort_wins_over_a_retry() {
    let mut row = record(Policy::patient());
    claim(&mut row);
    row.cancel(NOW + 5);
    let before = row.clone();
    for late in [status(503), network_failure(), status(422), Answer::NotSent] {
        assert!(!row.settle(1, &late, &mut env(NOW + 6)));
        assert_eq!(row, before);
    }
    // A delivery is a fact about the key: it leaves a receipt.
    assert!(row.settle(1, &status(201), &mut env(NOW + 7)));
    assert_eq!(
        (row.state, row.reason),
        (State::Cancelled, Some(Reason::Discarded))
    );
    assert_eq!(
        row.receipt.as_ref().map(|receipt| receipt.status),
        Some(201)
    );
    assert_eq!(row.settled_at, before.settled_at, "it settled once");
    assert!(row.maybe_delivered);
    // It is written once, however often the transaction is tried.
    let before = row.clone();
    assert!(!row.settle(1, &status(201), &mut env(NOW + MINUTE)));
    assert_eq!(row, before);
}

// Fences.

#[test]
fn a_late_answer_with_an_old_fence_changes_nothing_unless_it_is_a_delivery() {
    let mut row = record(Policy::patient());
    claim(&mut row);
    claim(&mut row);
    assert_eq!(row.fence, 2);
    let before = row.clone();
    for late in [
        status(503),
        status(422),
        status(401),
        status(302),
        timeout(),
        Answer::NotSent,
    ] {
        assert!(!row.settle(1, &late, &mut env(NOW + MINUTE)));
        assert_eq!(row, before, "{late:?}");
    }
    assert!(row.settle(1, &status(201), &mut env(NOW + MINUTE)));
    assert_eq!(row.state, State::Delivered);
    assert_eq!(row.next_attempt_at, None);
    assert!(
        !row.settle(2, &status(201), &mut env(NOW + MINUTE)),
        "it is already"
    );
    assert!(
        !row.settle(2, &status(503), &mut env(NOW + MINUTE)),
        "it stays so"
    );
}

#[test]
fn a_late_delivery_is_recorded_over_every_state() {
    let of = |answer: &Answer| {
        let mut row = record(Policy::patient());
        attempt(&mut row, answer);
        row
    };
    for mut row in [
        of(&status(503)),
        of(&status(429)),
        of(&status(302)),
        of(&status(422)),
    ] {
        assert!(row.settle(1, &status(201), &mut env(NOW + MINUTE)));
        assert_eq!(row.state, State::Delivered);
        assert_eq!((row.reason, row.evidence.clone()), (None, None));
        assert_eq!((row.next_attempt_at, row.not_before), (None, None));
        assert!(
            row.maybe_delivered,
            "what was delivered was maybe delivered"
        );
        assert_eq!(row.settled_at, Some(NOW + MINUTE));
    }
}

// The age of a key.

#[test]
fn a_key_that_may_be_forgotten_is_not_sent_again() {
    let mut row = maybe_delivered(Policy::patient());
    let mut early = row.clone();
    assert_eq!(early.claim(&mut env(NOW + 23 * HOUR)), Claim::Granted);
    assert_eq!(row.claim(&mut env(NOW + 23 * HOUR + 1)), Claim::Parked);
    assert_eq!(
        (row.state, row.reason),
        (State::Parked, Some(Reason::KeyExpired))
    );
    assert_eq!(row.attempts, 1);
}

#[test]
fn a_key_of_a_negative_age_counts_as_too_old() {
    let mut row = maybe_delivered(Policy::patient());
    row.schedule = Some(Deadline::after(0, 0));
    row.next_attempt_at = Some(0);
    assert_eq!(row.claim(&mut env(NOW - 1)), Claim::Parked);
    assert_eq!(row.reason, Some(Reason::KeyExpired));
}

#[test]
fn what_was_never_sent_may_still_go_whatever_the_age_of_its_key() {
    let mut row = record(Policy::patient());
    attempt(&mut row, &status(429));
    assert!(!row.maybe_delivered);
    assert_eq!(row.claim(&mut env(NOW + 3 * DAY)), Claim::Granted);
    let mut row = record(Policy::patient());
    attempt(&mut row, &Answer::Failure(offline()));
    assert_eq!(row.claim(&mut env(NOW + 3 * DAY)), Claim::Granted);
}

#[test]
fn the_age_of_a_key_runs_from_its_first_claim() {
    let mut row = record(Policy::patient());
    assert_eq!(row.claim(&mut env(NOW + 20 * HOUR)), Claim::Granted);
    assert_eq!(row.key_used_at, Some(NOW + 20 * HOUR));
    row.settle(1, &status(503), &mut env(NOW + 20 * HOUR));
    let mut again = row.clone();
    assert_eq!(again.claim(&mut env(NOW + 42 * HOUR)), Claim::Granted);
    assert_eq!(again.key_used_at, row.key_used_at, "no retry resets it");
    assert_eq!(row.claim(&mut env(NOW + 43 * HOUR + 1)), Claim::Parked);
}

#[test]
fn the_age_of_a_key_outranks_every_other_limit() {
    let mut row = maybe_delivered(Policy {
        max_attempts: 2,
        max_age_ms: HOUR,
        ..parking(Policy::patient())
    });
    row.spent = 2;
    assert_eq!(row.limit_met(NOW + 2 * DAY), Some(Reason::KeyExpired));
    assert_eq!(row.limit_met(NOW + 2 * HOUR), Some(Reason::OutcomeUnknown));
    row.maybe_delivered = false;
    assert_eq!(row.limit_met(NOW + 2 * DAY), Some(Reason::MaxAge));
    assert_eq!(row.limit_met(NOW), Some(Reason::AttemptsExhausted));
}

// A server that does not know the key.

#[test]
fn on_maybe_delivered_park_shows_at_once_what_may_have_arrived() {
    for answer in [
        network_failure(),
        timeout(),
        status(503),
        status(408),
        status(409),
    ] {
        let mut row = record(parking(Policy::patient()));
        attempt(&mut row, &answer);
        assert_eq!(
            (row.state, row.reason),
            (State::Parked, Some(Reason::OutcomeUnknown)),
            "{answer:?}"
        );
        assert_eq!(row.attempts, 1);
    }
}

#[test]
fn on_maybe_delivered_park_retries_what_never_left() {
    for answer in [status(429), Answer::Failure(offline()), Answer::NotSent] {
        let mut row = record(parking(Policy::patient()));
        attempt(&mut row, &answer);
        assert_eq!(row.state, State::Pending, "{answer:?}");
        assert_eq!(claim(&mut row).0, Claim::Granted);
    }
}

#[test]
fn on_maybe_delivered_park_does_not_resend_after_a_crash() {
    let mut row = record(parking(Policy::patient()));
    claim(&mut row);
    assert_eq!(claim(&mut row).0, Claim::Parked);
    assert_eq!(
        (row.reason, row.attempts),
        (Some(Reason::OutcomeUnknown), 1)
    );
}

// Clocks.

#[test]
fn a_deadline_from_the_future_is_waited_again_from_now_once() {
    // Written by a clock a year ahead; then the clock is put right.
    let ahead = NOW + 365 * DAY;
    let mut row = record(Policy::patient());
    row.created_at = ahead;
    row.budget_from = ahead;
    row.schedule = Some(Deadline::after(ahead, 45_000));
    row.next_attempt_at = Some(ahead + 45_000);
    row.not_before = Some(Deadline::after(ahead, 30_000));
    assert!(row.is_from_the_future(NOW));
    assert!(row.reanchor(NOW));
    assert_eq!(row.next_attempt_at, Some(NOW + 45_000));
    assert_eq!(row.not_before, Some(Deadline::after(NOW, 30_000)));
    assert!(!row.reanchor(NOW), "once");
    assert!(!row.reanchor(NOW + 1_000));
    assert_eq!(row.next_attempt_at, Some(NOW + 45_000));
}

#[test]
fn a_claim_re_anchors_first() {
    let ahead = NOW + DAY;
    let mut row = record(Policy::patient());
    row.schedule = Some(Deadline::after(ahead, 0));
    row.next_attempt_at = Some(ahead);
    let applied = Op::Claim(row.key.clone()).apply(Some(Rc::new(row)), &mut env(NOW));
    assert!(applied.accepted);
    let row = applied.record.unwrap();
    assert_eq!(row.state, State::Sending);
    assert!(row.next_attempt_at.unwrap() < NOW + DAY);
}

#[test]
fn a_lease_from_the_future_is_re_anchored_with_the_schedule() {
    let mut row = record(Policy::patient());
    let ahead = NOW + DAY;
    row.claim(&mut env(ahead));
    let length = row.lease.unwrap().length_ms;
    assert!(row.reanchor(NOW));
    assert_eq!(row.lease.unwrap().written_at, NOW);
    assert!(
        row.next_attempt_at.unwrap() >= NOW + length,
        "the holder may still send"
    );
}

#[test]
fn a_deadline_of_the_past_is_due_and_stays_as_it_is() {
    let mut row = maybe_delivered(Policy::patient());
    let before = row.clone();
    assert!(!row.reanchor(NOW + 10 * HOUR));
    assert_eq!(row, before);
    assert_eq!(row.claim(&mut env(NOW + 10 * HOUR)), Claim::Granted);
}

// A person's retry.

fn refusal(answer: &Answer) -> Record {
    let mut row = record(Policy::patient());
    attempt(&mut row, answer);
    assert!(row.state.is_settled());
    row
}

#[test]
fn retry_keeps_the_key_where_it_may_still_decide() {
    let mut exhausted = record(Policy::background());
    attempts_until_settled(&mut exhausted, &status(503));
    assert_eq!(exhausted.retry_needs_new_key(false, NOW), Ok(false));
    let now = exhausted.settled_at.unwrap() + HOUR;
    assert_eq!(exhausted.retry_needs_new_key(false, now), Ok(false));
    exhausted.retry(false, now);
    assert_eq!((exhausted.state, exhausted.reason), (State::Pending, None));
    assert_eq!(
        (exhausted.spent, exhausted.attempts),
        (0, 5),
        "a full new budget"
    );
    assert_eq!(exhausted.next_attempt_at, Some(now));
    assert_eq!(exhausted.settled_at, None);
    assert_eq!(attempts_until_settled(&mut exhausted, &status(503)), 5);
    assert_eq!(exhausted.attempts, 10, "counts claims, never goes down");

    for answer in [status(302), redirected(200, "https://portal.test/")] {
        assert_eq!(refusal(&answer).retry_needs_new_key(false, NOW), Ok(false));
    }
}

#[test]
fn retry_gives_the_age_a_new_start_too() {
    let mut row = record(Policy::patient());
    attempt(&mut row, &status(429));
    row.claim(&mut env(NOW + 8 * DAY));
    assert_eq!(row.reason, Some(Reason::MaxAge));
    let now = NOW + 9 * DAY;
    row.retry(false, now);
    assert_eq!(row.claim(&mut env(now)), Claim::Granted);
    assert_eq!(row.limit_met(now + 7 * DAY + 1), Some(Reason::KeyExpired));
    row.maybe_delivered = false;
    assert_eq!(row.limit_met(now + 7 * DAY), None);
    assert_eq!(row.limit_met(now + 7 * DAY + 1), Some(Reason::MaxAge));
}

#[test]
fn retry_needs_a_new_key_where_the_old_one_cannot_help() {
    // Refused, and not maybe delivered.
    let row = refusal(&status(422));
    assert_eq!(row.retry_needs_new_key(false, NOW), Ok(true));
    // The server stored a failure under this key: a new one may repeat what was done.
    let row = refusal(&replayed(500));
    assert_eq!(
        row.retry_needs_new_key(false, NOW).unwrap_err().code(),
        Code::NeedsMayRepeat
    );
    assert_eq!(row.retry_needs_new_key(true, NOW), Ok(true));
    // The key aged out.
    let mut row = maybe_delivered(Policy::patient());
    row.claim(&mut env(NOW + 24 * HOUR));
    assert_eq!(row.reason, Some(Reason::KeyExpired));
    let now = NOW + 25 * HOUR;
    assert_eq!(
        row.retry_needs_new_key(false, now).unwrap_err().code(),
        Code::NeedsMayRepeat
    );
    assert_eq!(row.retry_needs_new_key(true, now), Ok(true));
    // It ages in whatever state it is parked, and also backwards.
    let row = refusal(&status(302));
    assert!(row.retry_needs_new_key(false, NOW + 24 * HOUR).is_err());
    assert_eq!(row.retry_needs_new_key(true, NOW + 24 * HOUR), Ok(true));
    assert!(row.retry_needs_new_key(false, NOW - 1).is_err());
    // Refused, but maybe delivered: the key may still decide.
    let mut row = maybe_delivered(Policy::patient());
    attempt(&mut row, &status(422));
    assert_eq!(row.state, State::Refused);
    assert_eq!(row.retry_needs_new_key(false, NOW), Ok(false));
}

#[test]
fn retry_at_a_server_that_does_not_know_the_key_needs_a_word() {
    let mut row = record(parking(Policy::patient()));
    attempt(&mut row, &timeout());
    let error = row.retry_needs_new_key(false, NOW + 1).unwrap_err();
    assert_eq!(error.code(), Code::NeedsMayRepeat);
    assert!(error.message().contains("mayRepeat"), "{error}");
    assert_eq!(row.retry_needs_new_key(true, NOW + 1), Ok(false));
    row.retry(true, NOW + 1);
    assert!(row.may_repeat);
    assert_eq!(
        Intent::of(&row, true).max_attempts,
        row.policy.max_attempts + 1
    );
    attempt(&mut row, &timeout());
    assert_eq!(row.attempts, 2);
    assert!(!row.may_repeat, "one word, one attempt");
    assert_eq!(
        (row.state, row.reason),
        (State::Parked, Some(Reason::OutcomeUnknown))
    );
    // What never left needs no word.
    let mut row = record(Policy {
        max_age_ms: MINUTE,
        ..parking(Policy::patient())
    });
    attempt(&mut row, &status_after(429, "61"));
    assert_eq!(row.state, State::Parked);
    assert_eq!(row.retry_needs_new_key(false, NOW + 1), Ok(false));
}

#[test]
fn retry_is_for_what_is_parked_refused_or_waiting() {
    let waiting = maybe_delivered(Policy::patient());
    assert_eq!(waiting.retry_needs_new_key(false, NOW), Ok(false));
    let mut sending = waiting.clone();
    claim(&mut sending);
    let mut cancelled = waiting.clone();
    cancelled.cancel(NOW);
    for row in [sending, cancelled, refusal(&status(200))] {
        let error = row.retry_needs_new_key(true, NOW).unwrap_err();
        assert_eq!(error.code(), Code::BadState, "{:?}", row.state);
    }
}

#[test]
fn retry_of_what_waits_keeps_the_servers_floor() {
    let mut row = record(Policy::patient());
    attempt(&mut row, &status_after(429, "600"));
    row.retry(false, NOW + 1_000);
    assert_eq!(row.next_attempt_at, Some(NOW + 600_000));
    // Also where the clock is set back afterwards.
    row.reanchor(NOW + 500);
    assert!(row.next_attempt_at >= row.not_before.map(Deadline::at));
    let mut row = maybe_delivered(without_jitter(Policy::background()));
    row.retry(false, NOW + 1_000);
    assert_eq!(row.next_attempt_at, Some(NOW + 1_000));
}

#[test]
fn retry_does_not_wait_for_a_floor_that_a_clock_ahead_of_its_time_wrote() {
    let ahead = NOW + DAY;
    let mut row = record(Policy::patient());
    row.next_attempt_at = Some(NOW);
    row.claim(&mut env(ahead));
    row.settle(1, &status_after(429, "10"), &mut env(ahead));
    row.retry(false, NOW);
    assert_eq!(row.next_attempt_at, Some(NOW + 10_000));
}

#[test]
fn a_renewed_intent_begins_anew_and_says_what_it_replaces() {
    let mut row = refusal(&status(422));
    row.meta = Some("{\"cart\":7}".into());
    row.form_key = Some("checkout".into());
    row.fingerprint = Some("print".into());
    let now = NOW + HOUR;
    let op = Op::Retry {
        key: row.key.clone(),
        new_key: key("intent-2"),
        may_repeat: false,
    };
    let applied = op.apply(Some(Rc::new(row.clone())), &mut env(now));
    assert!(applied.accepted);
    let renewed = applied.record.unwrap();
    assert_eq!(renewed.key, key("intent-2"));
    assert_eq!(renewed.replaces, Some(row.key.clone()));
    assert_eq!(
        (renewed.request.clone(), renewed.meta.clone()),
        (row.request, row.meta)
    );
    assert_eq!(renewed.form_key, row.form_key);
    assert_eq!((renewed.state, renewed.reason), (State::Pending, None));
    assert_eq!((renewed.attempts, renewed.spent, renewed.fence), (0, 0, 0));
    assert_eq!(
        (renewed.maybe_delivered, renewed.key_used_at),
        (false, None)
    );
    assert_eq!((&renewed.evidence, renewed.settled_at), (&None, None));
    assert_eq!((renewed.created_at, renewed.budget_from), (now, now));
    assert_eq!(renewed.next_attempt_at, Some(now));
    let written: Vec<String> = applied
        .writes
        .iter()
        .map(|write| format!("{write:?}"))
        .collect();
    assert!(
        matches!(
            applied.writes.as_slice(),
            [Write::CopyBody(from, to), Write::Put(_), Write::Delete(old), Write::DropBody(body)]
                if *from == row.key && to.as_str() == "intent-2" && *old == row.key && *body == row.key
        ),
        "one transaction: {written:?}"
    );
}

// Transactions.

#[test]
fn a_known_key_is_the_same_submission_or_a_mistake() {
    let mut row = record(Policy::patient());
    row.fingerprint = Some("print".into());
    let applied = Op::Store(Rc::new(row.clone())).apply(None, &mut env(NOW));
    assert!(applied.accepted);
    assert!(matches!(
        applied.writes.as_slice(),
        [Write::PutBody(_), Write::Put(_)]
    ));

    let mut known = row.clone();
    attempt(&mut known, &status(503));
    let applied =
        Op::Store(Rc::new(row.clone())).apply(Some(Rc::new(known.clone())), &mut env(NOW));
    assert!(!applied.accepted && applied.error.is_none() && applied.writes.is_empty());
    assert_eq!(applied.record.as_deref(), Some(&known));

    row.fingerprint = Some("other bytes".into());
    let applied = Op::Store(Rc::new(row)).apply(Some(Rc::new(known)), &mut env(NOW));
    assert_eq!(applied.error.unwrap().code(), Code::KeyReused);
    assert!(applied.writes.is_empty());
}

/// It was sent without its body once, and the receipt said delivered.
#[test]
fn what_has_lost_its_body_is_parked() {
    let mut row = record(Policy::patient());
    row.request.body_bytes = 11;
    let applied = Op::Spoil(row.key.clone()).apply(Some(Rc::new(row)), &mut env(NOW));
    let row = applied.record.unwrap();
    assert!(applied.settled);
    assert_eq!(
        (row.state, row.reason),
        (State::Parked, Some(Reason::BodyLost))
    );
    assert!(!row.maybe_delivered && row.attempts == 0);
}

/// A write-ahead that came too late is taken back, and nothing else that has its key: once another page's intent of an
/// application's key was deleted with it.
#[test]
fn what_was_stored_too_late_is_taken_back_only_while_it_is_as_it_was_written() {
    let row = record(Policy::patient());
    let undo = Op::Unstore(Rc::new(row.clone()));
    let applied = undo.apply(Some(Rc::new(row.clone())), &mut env(NOW));
    let [deleted, dropped] = [
        Write::Delete(row.key.clone()),
        Write::DropBody(row.key.clone()),
    ];
    assert_eq!(applied.writes, [deleted, dropped]);
    let mut older = row.clone();
    older.created_at -= 1;
    let mut claimed = row.clone();
    claimed.claim(&mut env(NOW));
    for other in [older, claimed] {
        let applied = undo.apply(Some(Rc::new(other)), &mut env(NOW));
        assert!(!applied.accepted && applied.writes.is_empty());
    }
}

#[test]
fn a_transaction_on_a_row_that_is_gone_says_so() {
    for op in [
        Op::Unstore(Rc::new(record(Policy::patient()))),
        Op::Spoil(key("gone")),
        Op::Claim(key("gone")),
        Op::Settle(key("gone"), 1, Rc::new(status(200))),
        Op::Cancel(key("gone")),
        Op::Discard(key("gone")),
        Op::Forget(key("gone")),
        Op::Reanchor(key("gone")),
        Op::BringForward(key("gone")),
    ] {
        let applied = op.apply(None, &mut env(NOW));
        assert_eq!(applied.error.unwrap().code(), Code::UnknownKey);
        assert!(!applied.accepted && applied.writes.is_empty() && applied.record.is_none());
    }
}

#[test]
fn the_body_goes_when_no_attempt_can_follow_and_not_before() {
    let drops = |op: &Op, row: &Record| {
        let applied = op.apply(Some(Rc::new(row.clone())), &mut env(NOW));
        applied.writes.contains(&Write::DropBody(row.key.clone()))
    };
    let mut row = record(Policy::patient());
    row.claim(&mut env(NOW));
    let settle = |answer: Answer| Op::Settle(row.key.clone(), 1, Rc::new(answer));
    assert!(drops(&settle(status(201)), &row));
    assert!(drops(&Op::Cancel(row.key.clone()), &row));
    assert!(drops(&Op::Discard(row.key.clone()), &row));
    for kept in [status(503), status(422), status(302), replayed(500)] {
        assert!(
            !drops(&settle(kept.clone()), &row),
            "{kept:?}: retry needs it"
        );
    }
}

#[test]
fn a_row_is_forgotten_only_after_its_end() {
    let forget = Op::Forget(key("intent-1"));
    let mut cancelled = record(Policy::patient());
    cancelled.cancel(NOW);
    for (row, goes) in [
        (record(Policy::patient()), false),
        (maybe_delivered(Policy::patient()), false),
        (refusal(&status(302)), false),
        (refusal(&status(422)), false),
        (refusal(&status(200)), true),
        (cancelled, true),
    ] {
        let state = row.state;
        let applied = forget.apply(Some(Rc::new(row)), &mut env(NOW));
        assert_eq!(applied.accepted, goes, "{state:?}");
        assert_eq!(applied.writes.is_empty(), !goes, "{state:?}");
    }
}

/// A row that is about somebody, with a retention of ten days.
fn personal() -> Record {
    let mut row = record(Policy::patient());
    row.meta = Some("\"for Ada\"".into());
    row.form_key = Some("application".into());
    row.request.headers = vec![("x-name".into(), "Ada".into())];
    row.request.url = "https://shop.test/people/ada".into();
    row.retention_ms = 10 * DAY;
    row
}

#[test]
fn what_nobody_came_back_to_is_forgotten_but_for_its_key_and_time() {
    for end in [status(302), status(422)] {
        let mut row = personal();
        row.claim(&mut env(NOW));
        row.settle(row.fence, &end, &mut env(NOW + 5));
        assert!(row.evidence.is_some() && row.state.is_settled());
        let expire = Op::Expire(row.key.clone());
        let early = expire.apply(Some(Rc::new(row.clone())), &mut env(NOW + 10 * DAY));
        assert!(!early.accepted && early.writes.is_empty());
        let now = NOW + 5 + 10 * DAY;
        let applied = expire.apply(Some(Rc::new(row.clone())), &mut env(now));
        assert!(applied.accepted && applied.settled);
        let left = applied.record.unwrap();
        let mut expected = Record::new(
            &row.owner,
            row.key.clone(),
            RequestHead::default(),
            Policy::patient(),
            row.created_at,
        );
        expected.attempts = 1;
        expected.fence = row.fence;
        expected.maybe_delivered = row.maybe_delivered;
        expected.state = State::Cancelled;
        expected.reason = Some(Reason::Expired);
        expected.settled_at = Some(now);
        expected.forget_at = Some(now + 7 * DAY);
        expected.next_attempt_at = None;
        expected.schedule = None;
        assert_eq!(*left, expected);
        let writes = [Write::Put(left.clone()), Write::DropBody(left.key.clone())];
        assert_eq!(applied.writes, writes);
        // It ended, whatever is submitted under its key.
        let again = Op::Store(Rc::new(personal())).apply(Some(left.clone()), &mut env(now));
        assert!(again.error.is_none() && !again.accepted);
        let retry = Op::Retry {
            key: left.key.clone(),
            new_key: key("new"),
            may_repeat: true,
        };
        let retried = retry.apply(Some(left.clone()), &mut env(now));
        assert_eq!(retried.error.unwrap().code(), Code::BadState);
        // Shown to nobody, it goes too.
        let gone = expire.apply(Some(left.clone()), &mut env(now + 7 * DAY));
        let writes = [
            Write::Delete(left.key.clone()),
            Write::DropBody(left.key.clone()),
        ];
        assert_eq!(gone.writes, writes);
    }
}

#[test]
fn what_waits_is_never_forgotten_and_a_receipt_no_later_than_its_retention() {
    let waiting = Rc::new(personal());
    let expire = Op::Expire(waiting.key.clone());
    let applied = expire.apply(Some(waiting), &mut env(NOW + 400 * DAY));
    assert!(!applied.accepted && applied.writes.is_empty());
    let mut delivered = personal();
    delivered.retention_ms = DAY;
    delivered.claim(&mut env(NOW));
    delivered.settle(delivered.fence, &status(201), &mut env(NOW));
    assert_eq!(delivered.forget_at, Some(NOW + DAY));
    // A person's retry begins anew.
    let mut parked = personal();
    parked.claim(&mut env(NOW));
    parked.settle(parked.fence, &status(302), &mut env(NOW));
    assert_eq!(parked.forget_at, Some(NOW + 10 * DAY));
    parked.retry(true, NOW + DAY);
    assert_eq!(parked.forget_at, None);
}

#[test]
fn a_clock_that_was_ahead_when_it_settled_does_not_keep_it_for_years() {
    let ahead = NOW + 400 * DAY;
    let mut row = personal();
    row.claim(&mut env(ahead));
    row.settle(row.fence, &status(422), &mut env(ahead));
    let expire = Op::Expire(row.key.clone());
    let applied = expire.apply(Some(Rc::new(row)), &mut env(NOW));
    assert!(!applied.accepted && !applied.settled);
    let row = applied.record.unwrap();
    assert_eq!(row.settled_at, Some(NOW));
    assert_eq!(row.forget_at, Some(NOW + 10 * DAY));
    assert_eq!(applied.writes, [Write::Put(row)]);
}

#[test]
fn what_was_promised_is_written_strictly() {
    let row = Rc::new(record(Policy::patient()));
    let of = || key("intent-1");
    for op in [
        Op::Store(row),
        Op::Claim(of()),
        Op::Settle(of(), 1, Rc::new(status(200))),
        Op::Cancel(of()),
        Op::Discard(of()),
        Op::Unstore(Rc::new(record(Policy::patient()))),
    ] {
        assert!(op.is_strict(), "{op:?}");
    }
}

// Policies from outside.

fn read_policy(value: Value) -> Result<Policy, String> {
    Policy::patient()
        .read(&Json(value), "options.policy")
        .map_err(|error| {
            assert_eq!(error.code(), Code::BadOption);
            error.message().to_owned()
        })
}

#[test]
fn a_bad_policy_names_the_field() {
    for (value, field) in [
        (json!({ "maxAttempts": 0 }), "maxAttempts"),
        (json!({ "maxAttempts": -1 }), "maxAttempts"),
        (json!({ "maxAttempts": 1.5 }), "maxAttempts"),
        (json!({ "maxAttempts": "3" }), "maxAttempts"),
        (json!({ "baseMs": -5 }), "baseMs"),
        (json!({ "baseMs": true }), "baseMs"),
        (json!({ "baseMs": 40_000_000_000u64 }), "baseMs"),
        (json!({ "ceilingMs": "1 s" }), "ceilingMs"),
        (json!({ "ceilingMs": 1e300 }), "ceilingMs"),
        (json!({ "delaysMs": 500 }), "delaysMs"),
        (json!({ "delaysMs": [500, -1] }), "delaysMs"),
        (json!({ "delaysMs": ["500"] }), "delaysMs"),
        (json!({ "delaysMs": [1, 40_000_000_000u64] }), "delaysMs"),
        (json!({ "jitter": "some" }), "jitter"),
        (json!({ "jitter": false }), "jitter"),
        (json!({ "attemptTimeoutMs": 0 }), "attemptTimeoutMs"),
        (json!({ "maxAgeMs": 0.5 }), "maxAgeMs"),
        (json!({ "maxElapsedMs": [] }), "maxElapsedMs"),
        (json!({ "keyTtlMs": {} }), "keyTtlMs"),
        (json!({ "maxRetryAfterMs": -0.1 }), "maxRetryAfterMs"),
        (json!({ "reconnectSpreadMs": "fast" }), "reconnectSpreadMs"),
        (json!({ "preset": "hasty" }), "preset"),
        (json!({ "maxAttemps": 3 }), "maxAttemps"),
    ] {
        let error = read_policy(value.clone()).unwrap_err();
        assert!(
            error.starts_with(&format!("options.policy.{field}: ")),
            "{value}: {error}"
        );
    }
    for value in [json!("hasty"), json!(3), json!([]), json!(true)] {
        let error = read_policy(value).unwrap_err();
        assert!(error.starts_with("options.policy: "), "{error}");
    }
}

#[test]
fn a_good_policy_replaces_what_it_names() {
    assert_eq!(read_policy(json!({})), Ok(Policy::patient()));
    assert_eq!(read_policy(json!("background")), Ok(Policy::background()));
    assert_eq!(
        read_policy(json!({ "preset": "interactive", "maxAttempts": 9, "jitter": "none" })),
        Ok(Policy {
            max_attempts: 9,
            jitter: Jitter::None,
            ..Policy::interactive()
        })
    );
    assert_eq!(
        read_policy(json!({ "delaysMs": [1, 2], "maxElapsedMs": 60_000, "keyTtlMs": null })),
        Ok(Policy {
            delays_ms: vec![1, 2],
            max_age_ms: MINUTE,
            ..Policy::patient()
        })
    );
    // A base over a preset that has a table means the formula.
    let formula = read_policy(json!({ "baseMs": 100, "ceilingMs": 250 })).unwrap();
    let mut row = record(without_jitter(formula));
    let mut waits = Vec::new();
    for _ in 0..4 {
        let now = attempt(&mut row, &status(503));
        waits.push(row.next_attempt_at.unwrap() - now);
    }
    assert_eq!(waits, [100, 200, 250, 250]);
}

// Rows on the disk.

#[test]
fn a_row_of_a_newer_version_is_not_read() {
    let mut row = stored(&record(Policy::patient()));
    row["v"] = json!(VERSION + 1);
    assert_eq!(Record::read(&Json(row.clone())), Err(Unreadable::Newer));
    // Whatever else is in it.
    let row = json!({ "v": VERSION + 1, "owner": 5 });
    assert_eq!(Record::read(&Json(row)), Err(Unreadable::Newer));
}

#[test]
fn a_damaged_row_names_the_field() {
    let good = stored(&maybe_delivered(Policy::patient()));
    assert!(Record::read(&Json(good.clone())).is_ok());
    for (path, bad, named) in [
        ("/v", Value::Null, "row.v"),
        ("/v", json!("1"), "row.v"),
        ("/owner", Value::Null, "row.owner"),
        ("/key", json!(7), "row.key"),
        ("/key", json!("a b"), "key"),
        ("/createdAt", json!("today"), "row.createdAt"),
        ("/budgetFrom", Value::Null, "row.budgetFrom"),
        ("/state", json!("lost"), "row.state"),
        ("/reason", json!("whim"), "row.reason"),
        ("/request", Value::Null, "row.request"),
        ("/request/method", Value::Null, "request.method"),
        ("/request/url", json!(1), "request.url"),
        ("/request/headers", json!([["a"]]), "request.headers"),
        ("/attempts", json!(-1), "row.attempts"),
        ("/spent", json!(0.5), "row.spent"),
        ("/nextAttemptAt", json!(true), "row.nextAttemptAt"),
        ("/schedule/writtenAt", Value::Null, "schedule.writtenAt"),
        ("/fence", json!("2"), "row.fence"),
        ("/maybeDelivered", json!("yes"), "row.maybeDelivered"),
        ("/policy/jitter", json!("odd"), "policy.jitter"),
        ("/keyUsedAt", json!(-5), "row.keyUsedAt"),
        ("/evidence/headers", json!("none"), "evidence.headers"),
    ] {
        let mut row = good.clone();
        *row.pointer_mut(path).expect(path) = bad;
        match Record::read(&Json(row)) {
            Err(Unreadable::Damaged(error)) => assert!(
                error.message().contains(named),
                "{path}: {error} does not name {named}"
            ),
            other => panic!("{path}: {other:?}"),
        }
    }
    assert!(matches!(
        Record::read(&Json(json!("row"))),
        Err(Unreadable::Damaged(_))
    ));
}

#[test]
fn settled_rows_are_not_in_the_index_of_due_work() {
    for answer in [status(200), status(422), status(302)] {
        assert_eq!(stored(&refusal(&answer)).get("nextAttemptAt"), None);
    }
    assert_eq!(
        stored(&record(Policy::patient()))["nextAttemptAt"],
        json!(NOW)
    );
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,12}"
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..10u64, 0..=(1u64 << 53) - 1, Just(NOW)]
}

fn any_key() -> impl Strategy<Value = Key> {
    "[A-Za-z0-9_-]{1,40}".prop_map(|text| key(&text))
}

fn word<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((text(), text()), 0..3)
}

fn optional<S: Strategy>(strategy: S) -> impl Strategy<Value = Option<S::Value>> {
    prop::option::of(strategy)
}

fn deadline() -> impl Strategy<Value = Deadline> {
    (number(), number()).prop_map(|(written_at, length_ms)| Deadline {
        written_at,
        length_ms,
    })
}

prop_compose! {
    fn any_request()(
        (method, url, headers, body_bytes) in (text(), text(), pairs(), number()),
        settings in pairs(),
    ) -> RequestHead {
        RequestHead {
            method, url, headers, settings, body_bytes,
        }
    }
}

prop_compose! {
    fn any_policy()(
        (max_attempts, base_ms, ceiling_ms) in (any::<u32>(), number(), number()),
        delays_ms in prop::collection::vec(number(), 0..4),
        jitter in word(Jitter::ALL),
        (attempt_timeout_ms, max_age_ms, key_ttl_ms) in (number(), number(), number()),
        (max_retry_after_ms, reconnect_spread_ms) in (number(), number()),
        on_maybe_delivered in word(OnMaybeDelivered::ALL),
    ) -> Policy {
        Policy {
            max_attempts, base_ms, ceiling_ms, delays_ms, jitter, attempt_timeout_ms, max_age_ms, key_ttl_ms,
            max_retry_after_ms, reconnect_spread_ms, on_maybe_delivered,
        }
    }
}

prop_compose! {
    fn any_evidence()(
        (at, status, url) in (number(), optional(any::<u16>()), text()),
        (redirected, headers, excerpt) in (any::<bool>(), pairs(), optional(text())),
        hint in optional(word(Hint::ALL)),
    ) -> Evidence {
        Evidence { at, status, url, redirected, headers, excerpt, hint }
    }
}

prop_compose! {
    fn any_receipt()(
        (at, status, url) in (number(), any::<u16>(), text()),
        (location, excerpt) in (optional(text()), optional(text())),
    ) -> Receipt {
        Receipt { at, status, url, location, excerpt }
    }
}

fn any_acknowledgement() -> BoxedStrategy<Acknowledgement> {
    let any = (optional(text()), optional(text()));
    any.prop_map(|(content_type, header)| Acknowledgement {
        statuses: vec![200],
        content_type,
        header,
    })
    .boxed()
}

prop_compose! {
    fn any_record()(
        (owner, key, request, policy) in (text(), any_key(), any_request(), any_policy()),
        (format, header, field) in (word(KeyFormat::ALL), text(), optional(text())),
        (created_at, budget_from) in (number(), number()),
        (state, reason) in (word(State::ALL), optional(word(Reason::ALL))),
        (left_out, hooks) in (prop::collection::vec(text(), 0..3), prop::collection::vec(text(), 0..3)),
        (origin, needs) in (text(), text()),
        (meta, form_key, lane, lane_seq) in
            (optional(text()), optional(text()), optional(text()), optional(number())).boxed(),
        (coalesce_key, replaces, fingerprint) in (optional(text()), optional(any_key()), optional(text())).boxed(),
        is_delivered in optional(any_acknowledgement()),
        (attempts, spent, conflicts, refused_credentials) in
            (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>()),
        (schedule, not_before, lease) in
            (optional(deadline()), optional(deadline()), optional((deadline(), any::<bool>()))),
        (next_attempt_at, fence, key_used_at) in (optional(number()), number(), optional(number())),
        flags in any::<[bool; 5]>(),
        (evidence, receipt) in (optional(any_evidence()), optional(any_receipt())).boxed(),
        (settled_at, retention_ms, forget_at) in (optional(number()), number(), optional(number())),
    ) -> Record {
        let [cuttable, maybe_delivered, maybe_delivered_before, may_repeat, conflict_is_twin] = flags;
        Record {
            v: VERSION,
            owner, key, created_at, budget_from, state, reason, request, origin, needs, left_out, hooks, is_delivered, policy, meta, form_key,
            lane, lane_seq, on_parked: OnParked::Skip, coalesce_key, replaces, fingerprint, attempts, spent, next_attempt_at, schedule,
            not_before, cuttable, fence, maybe_delivered, maybe_delivered_before, may_repeat, key_used_at,
            conflicts, conflict_is_twin, refused_credentials, evidence, receipt, settled_at, retention_ms, forget_at,
            key_place: KeyPlace { format, header, field },
            lease: lease.map(|(deadline, locked)| Lease {
                written_at: deadline.written_at,
                length_ms: deadline.length_ms,
                locked,
            }),
        }
    }
}

proptest! {
    #[test]
    fn a_row_goes_round(row in any_record()) {
        prop_assert_eq!(Record::read(&Json(stored(&row))), Ok(row));
    }

    #[test]
    fn no_deadline_lies_beyond_the_longest_wait(
        seed in any::<u64>(),
        seconds in 0..200_000u64,
        spent in 0..50u32,
        code in prop::sample::select(vec![408u16, 409, 429, 500, 503]),
        preset in 0..3usize,
    ) {
        let policy = [Policy::patient(), Policy::background(), Policy::interactive()][preset].clone();
        let horizon = policy.horizon();
        let mut row = record(policy);
        row.claim(&mut seeded(NOW, seed));
        row.spent = spent;
        row.settle(1, &status_after(code, &seconds.to_string()), &mut seeded(NOW, seed ^ 1));
        match row.next_attempt_at {
            Some(due) => {
                prop_assert!(due >= NOW + seconds * 1_000, "below the floor");
                prop_assert!(due <= NOW + horizon, "beyond the cap");
            }
            None => prop_assert_eq!(row.state, State::Parked),
        }
    }
}
