//! The state machine against the nine invariants, in a simulated world: random schedules, a crash after every effect,
//! and a restart from the rows that were stored. The invariants are asserted in `common/simulation.rs`, by name.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::simulation::*;
use common::{DAY, HOUR, MINUTE};
use proptest::prelude::*;
use resubmit::engine::verdict::Ruling;
use resubmit::engine::{Classified, Jitter, OnMaybeDelivered, Policy};

/// As many cases as `PROPTEST_CASES` says, else `default`.
fn cases(default: u32) -> ProptestConfig {
    let set = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: set.and_then(|cases| cases.parse().ok()).unwrap_or(default),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..ProptestConfig::default()
    }
}

fn policy() -> impl Strategy<Value = Policy> {
    let preset = prop_oneof![
        Just(Policy::patient()),
        Just(Policy::background()),
        Just(Policy::interactive()),
    ];
    (preset, 2..7u32, any::<bool>()).prop_map(|(policy, max_attempts, jitter)| Policy {
        max_attempts,
        jitter: if jitter { Jitter::Full } else { Jitter::None },
        ..policy
    })
}

fn fault() -> impl Strategy<Value = Fault> {
    let busy = prop::sample::select(vec![408u16, 425, 429, 413, 500, 502, 503, 504]);
    let last = prop::sample::select(vec![400u16, 401, 403, 404, 409, 412, 419, 422, 501, 302, 0]);
    let retry_after = prop::option::of(prop_oneof![0..5u32, 0..120u32, 0..8_000u32]);
    prop_oneof![
        1 => Just(Fault::None),
        2 => Just(Fault::DropBefore),
        3 => Just(Fault::DropAfter),
        4 => (busy, retry_after.clone()).prop_map(|(code, after)| Fault::Status(code, after)),
        2 => (last, retry_after).prop_map(|(code, after)| Fault::Status(code, after)),
        2 => prop::sample::select(vec![408u16, 500, 502, 504]).prop_map(Fault::ActsThen),
        1 => Just(Fault::StoresFailure),
        2 => (0..45_000u32).prop_map(Fault::Slow),
        1 => Just(Fault::Silent),
        1 => Just(Fault::Twin),
        1 => Just(Fault::SignIn),
        2 => ruling().prop_map(Fault::Judged),
    ]
}

fn ruling() -> impl Strategy<Value = Ruling> {
    prop::sample::select(vec![
        Ruling::NotAcknowledged,
        Ruling::Failed,
        // (Not `Delivered`: that it was is the application's word.)
        Ruling::Classified(Classified::Retry),
        Ruling::Classified(Classified::Refused),
        Ruling::Classified(Classified::Parked),
        Ruling::Classified(Classified::Unauthorized),
    ])
}

fn wait() -> impl Strategy<Value = u32> {
    prop_oneof![0..50u32, 0..1_000u32, 0..40_000u32, 0..600_000u32]
}

/// What people and networks do.
fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => prop::bool::weighted(0.85).prop_map(|durable| Step::Submit { durable }),
        3 => (0..2u8, any::<bool>(), prop::bool::weighted(0.3), prop::bool::weighted(0.85)).prop_map(
            |(lane, skips, coalesces, durable)| Step::Laned { lane, skips, coalesces, durable }
        ),
        2 => Just(Step::Asking),
        1 => Just(Step::SignIn),
        1 => Just(Step::Sweep),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(theirs, heard)| Step::Owner { theirs, heard }),
        1 => (0..8usize).prop_map(Step::Again),
        8 => wait().prop_map(Step::Wait),
        3 => (any::<bool>(), prop::bool::weighted(0.7))
            .prop_map(|(on, heard)| Step::Network { on, heard }),
        8 => fault().prop_map(Step::Fault),
        1 => (1..4u8).prop_map(|times| Step::Store(StoreFault::Fails, times)),
        1 => (prop_oneof![0..3_000u32, 0..20_000u32], 1..4u8)
            .prop_map(|(ms, times)| Step::Store(StoreFault::Slow(ms), times)),
        1 => Just(Step::Crash),
        3 => (0..12u8).prop_map(Step::CrashAfter),
        2 => Just(Step::Open),
        1 => Just(Step::Leave),
        1 => Just(Step::Return),
        1 => Just(Step::Look),
        2 => (0..8usize).prop_map(Step::Cancel),
        1 => (0..8usize).prop_map(Step::Discard),
        2 => (0..8usize).prop_map(Step::Retry),
        1 => (0..8usize).prop_map(Step::Forget),
    ]
}

/// What clocks do besides.
fn clock() -> impl Strategy<Value = Step> {
    let far = 400 * DAY as i64;
    let near = 2 * HOUR as i64;
    prop_oneof![
        (-near..near).prop_map(Step::Jump),
        (-far..far).prop_map(Step::Jump),
        (0..8 * HOUR as u32).prop_map(Step::Sleep),
    ]
}

fn schedule(step: impl Strategy<Value = Step>) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step, 1..24)
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn every_invariant_holds_at_a_server_that_knows_the_key(
        seed in any::<u64>(),
        policy in policy(),
        steps in schedule(step()),
    ) {
        World::run(Setting { seed, policy, server_knows_key: true }, &steps);
    }

    #[test]
    fn every_invariant_holds_whatever_the_clocks_do(
        seed in any::<u64>(),
        policy in policy(),
        steps in schedule(prop_oneof![6 => step(), 1 => clock()]),
    ) {
        World::run(Setting { seed, policy, server_knows_key: true }, &steps);
    }

    #[test]
    fn parking_what_may_have_arrived_never_makes_two_orders_at_a_server_that_ignores_the_key(
        seed in any::<u64>(),
        policy in policy(),
        steps in schedule(prop_oneof![12 => step(), 1 => clock()]),
    ) {
        let policy = Policy { on_maybe_delivered: OnMaybeDelivered::Park, ..policy };
        World::run(Setting { seed, policy, server_knows_key: false }, &steps);
    }
}

/// Schedules in which every effect of the machine occurs, short enough to crash after each.
fn scripts() -> Vec<Vec<Step>> {
    let submit = || Step::Submit { durable: true };
    let wait = |ms: u64| Step::Wait(ms as u32);
    let laned = |coalesces| Step::Laned {
        lane: 0,
        skips: true,
        coalesces,
        durable: true,
    };
    let network = |on| Step::Network { on, heard: true };
    vec![
        vec![submit(), wait(MINUTE)],
        vec![
            Step::Fault(Fault::Status(503, None)),
            Step::Fault(Fault::DropAfter),
            submit(),
            wait(10 * MINUTE),
        ],
        vec![
            Step::Fault(Fault::Status(429, Some(30))),
            Step::Fault(Fault::Slow(40_000)),
            submit(),
            submit(),
            wait(10 * MINUTE),
        ],
        vec![
            network(false),
            submit(),
            wait(2_000),
            submit(),
            wait(MINUTE),
            network(true),
            wait(10 * MINUTE),
        ],
        vec![
            submit(),
            submit(),
            submit(),
            submit(),
            submit(),
            submit(),
            Step::Cancel(5),
            wait(300),
            Step::Cancel(0),
            wait(MINUTE),
        ],
        vec![
            Step::Fault(Fault::Silent),
            Step::Fault(Fault::Twin),
            submit(),
            wait(10 * MINUTE),
            Step::Retry(0),
            wait(MINUTE),
        ],
        vec![
            Step::Fault(Fault::DropAfter),
            laned(false),
            laned(false),
            laned(true),
            laned(true),
            wait(10 * MINUTE),
            Step::Cancel(2),
            wait(10 * MINUTE),
        ],
        vec![
            Step::Fault(Fault::Status(422, None)),
            submit(),
            wait(MINUTE),
            Step::Retry(0),
            wait(MINUTE),
            Step::Forget(1),
            Step::Discard(0),
            wait(MINUTE),
        ],
    ]
}

#[test]
fn every_invariant_holds_with_a_crash_after_every_effect() {
    let mut runs = 0;
    for parks in [false, true] {
        for steps in scripts() {
            for seed in 0..3 {
                let mut policy = Policy::background();
                if parks {
                    policy.on_maybe_delivered = OnMaybeDelivered::Park;
                }
                let setting = Setting {
                    seed,
                    policy,
                    server_knows_key: !parks,
                };
                let effects = World::run(setting.clone(), &steps).effects();
                assert!(effects >= 5, "a schedule in which something happens");
                for n in 0..effects {
                    World::run_with_crash(setting.clone(), &steps, n);
                    runs += 1;
                }
            }
        }
    }
    assert!(runs > 500, "{runs}");
}

#[test]
fn the_world_is_no_friendlier_than_it_says() {
    // Without a schedule that fails there would be no proof in one that does not: these are what the world does.
    let run = |server_knows_key, faults: Vec<Fault>| {
        let mut steps: Vec<Step> = faults.into_iter().map(Step::Fault).collect();
        steps.push(Step::Submit { durable: true });
        steps.push(Step::Wait(30 * MINUTE as u32));
        let setting = Setting {
            seed: 1,
            policy: Policy::background(),
            server_knows_key,
        };
        let mut world = World::new(setting);
        for step in &steps {
            world.step(step);
        }
        (world.orders(), world.sends())
    };
    assert_eq!(run(true, vec![]), (1, 1));
    assert_eq!(run(true, vec![Fault::DropBefore]), (1, 2));
    assert_eq!(run(true, vec![Fault::DropAfter, Fault::DropAfter]), (1, 3));
    assert_eq!(run(true, vec![Fault::Silent]), (1, 2));
    assert_eq!(run(true, vec![Fault::Twin]), (1, 2));
    assert_eq!(run(true, vec![Fault::Status(422, None)]), (0, 1));
    assert_eq!(run(true, vec![Fault::StoresFailure]), (0, 2));
    assert_eq!(run(true, vec![Fault::Slow(40_000)]).0, 1);
}
