//! The contention model of the AWS study, on the engine's own backoff.
//!
//! N clients each read one row and write it back; a write succeeds if nobody wrote between. After the study's simulator
//! (github.com/aws-samples/aws-arch-backoff-simulator): only writes are counted as calls, every message travels on its own,
//! the wait begins when the refusal has arrived, and the end is the last answer.

use crate::algorithm::{Algorithm, Backoff};
use resubmit::engine::{Policy, Random};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Microseconds: a network's delay is no whole number of milliseconds, and ties would decide who wins.
type Micros = u64;

/// The network's delay each way.
const MEAN: f64 = 10_000.0;
const DEVIATION: f64 = 2_000.0;

/// The study's base: the shortest delay of decorrelated jitter.
const BASE_MS: u64 = 5;

/// The study's policy. It counts failures from 1, so its first bound is twice the base.
pub fn policy() -> Policy {
    Policy {
        base_ms: 2 * BASE_MS,
        ceiling_ms: 2_000,
        delays_ms: Vec::new(),
        ..Policy::patient()
    }
}

/// What a number of clients came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Writes that were tried.
    pub calls: u64,
    /// Until the last client knew that its write succeeded.
    pub time: Micros,
    /// Clients whose write succeeded.
    pub delivered: u64,
}

/// What is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    Read,
    /// The row's version, as it was read.
    ReadAnswer(u64),
    Write(u64),
    WriteAnswer(bool),
}

/// One run.
pub fn run(algorithm: Algorithm, clients: usize, seed: u64) -> Outcome {
    let policy = policy();
    let mut random = Random::new(seed);
    let mut waits = vec![(0u32, Backoff::new(algorithm, &policy, BASE_MS)); clients];
    let mut version = 0;
    let mut outcome = Outcome {
        calls: 0,
        time: 0,
        delivered: 0,
    };
    let mut under_way: BinaryHeap<_> = (0..clients)
        .map(|client| Reverse((network(&mut random), client, Message::Read)))
        .collect();
    while let Some(Reverse((now, client, message))) = under_way.pop() {
        outcome.time = now;
        let (wait, next) = match message {
            Message::Read => (0, Message::ReadAnswer(version)),
            Message::ReadAnswer(seen) => (0, Message::Write(seen)),
            Message::Write(seen) => {
                outcome.calls += 1;
                let succeeds = seen == version;
                version += u64::from(succeeds);
                (0, Message::WriteAnswer(succeeds))
            }
            Message::WriteAnswer(false) => {
                let (failures, backoff) = &mut waits[client];
                let delay = backoff.delay(*failures, &mut random);
                *failures += 1;
                (1_000 * delay, Message::Read)
            }
            Message::WriteAnswer(true) => {
                outcome.delivered += 1;
                continue;
            }
        };
        under_way.push(Reverse((now + wait + network(&mut random), client, next)));
    }
    outcome
}

/// The network's delay: normal, by the polar method (Marsaglia and Bray, 1964), in whole microseconds, so that the last
/// bits of a machine's logarithm do not matter.
fn network(random: &mut Random) -> Micros {
    const HALF: u64 = 1 << 52;
    let mut draw = || random.up_to(2 * HALF) as f64 / HALF as f64 - 1.0;
    loop {
        let (u, v) = (draw(), draw());
        let s = u * u + v * v;
        if s > 0.0 && s < 1.0 {
            let normal = u * (-2.0 * s.ln() / s).sqrt();
            return (MEAN + DEVIATION * normal).abs().round() as Micros;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resubmit::engine::{backoff, Millis};

    #[test]
    fn the_bounds_are_those_of_the_study() {
        let bounds: Vec<Millis> = (0..10).map(|n| backoff::bound(&policy(), n)).collect();
        let study: Vec<Millis> = (1..=10).map(|k| 2_000.min(5 << k)).collect();
        assert_eq!(bounds, study);
    }

    #[test]
    fn the_network_is_normal() {
        let mut random = Random::new(4);
        let drawn: Vec<f64> = (0..40_000).map(|_| network(&mut random) as f64).collect();
        let mean = drawn.iter().sum::<f64>() / 40_000.0;
        let variance = drawn.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 40_000.0;
        assert!((mean - MEAN).abs() < 50.0, "{mean}");
        assert!((variance.sqrt() - DEVIATION).abs() < 50.0, "{variance}");
        let within = drawn.iter().filter(|d| (**d - MEAN).abs() < DEVIATION);
        assert!((26_900..27_700).contains(&within.count()));
    }

    #[test]
    fn every_client_writes_once_and_the_same_seed_gives_the_same_run() {
        for algorithm in Algorithm::ALL {
            let outcome = run(algorithm, 50, 3);
            assert_eq!(outcome.delivered, 50, "{}", algorithm.name());
            assert_eq!(outcome, run(algorithm, 50, 3));
        }
    }

    #[test]
    fn one_client_alone_needs_one_call_and_four_ways() {
        let outcome = run(Algorithm::Full, 1, 8);
        assert_eq!(outcome.calls, 1);
        assert!((20_000..60_000).contains(&outcome.time), "{outcome:?}");
    }

    #[test]
    fn jitter_saves_calls() {
        let calls = |algorithm| -> u64 { (0..5).map(|seed| run(algorithm, 100, seed).calls).sum() };
        let full = calls(Algorithm::Full);
        let exponential = calls(Algorithm::Exponential);
        assert!(2 * full < exponential && exponential < calls(Algorithm::None));
    }
}
