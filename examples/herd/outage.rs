//! The outage model: what is simulated, and what it came to. The simulation is in [`crate::fleet`].
//!
//! A sale opens at zero: every browser submits within a second, and the server is down for the first minute. Half of the
//! fleet sits behind one network that is down as long; at its end one `online` wakes that half in the same instant.
//! A server that is up does so many requests a second, keeps a second's worth waiting, and answers 503 to the rest, at no
//! cost to itself. The stores answer at once: they are not what is measured.

use crate::algorithm::Algorithm;
use resubmit::engine::{Millis, Policy};

/// The width of the finest count of arrivals.
pub const BIN: Millis = 10;

/// What is simulated.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub algorithm: Algorithm,
    pub browsers: usize,
    /// How many requests a second the server can do.
    pub per_second: u64,
    pub down_for: Millis,
    /// Within how long of `online` the next attempt comes; `None`: as the policy of the outbox has it.
    pub spread: Option<Millis>,
    pub seed: u64,
}

impl Setting {
    /// 10,000 browsers, 500 requests a second, a minute: the outbox's default policy.
    pub fn of(algorithm: Algorithm, seed: u64) -> Self {
        Setting {
            algorithm,
            browsers: 10_000,
            per_second: 500,
            down_for: 60_000,
            spread: None,
            seed,
        }
    }

    /// The policy of the outbox. Without a backoff its 40 attempts would be over long before the outage, so there the
    /// budget is lifted: nobody is to be spared the work by giving up.
    pub fn policy(&self) -> Policy {
        let patient = Policy::patient();
        Policy {
            reconnect_spread_ms: self.spread.unwrap_or(patient.reconnect_spread_ms),
            max_attempts: match self.algorithm {
                Algorithm::None => u32::MAX,
                _ => patient.max_attempts,
            },
            ..patient
        }
    }
}

/// What it came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Requests that arrived at the server, by when, per [`BIN`].
    pub arrivals: Vec<u32>,
    /// How often the server acted, by browser.
    pub orders: Vec<u32>,
    /// When the browsers knew of their delivery, in order.
    pub delivered_at: Vec<Millis>,
    /// Browsers whose intent was parked.
    pub parked: u64,
}

impl Outcome {
    /// Requests that arrived at the server.
    pub fn calls(&self) -> u64 {
        self.arrivals.iter().map(|n| u64::from(*n)).sum()
    }

    /// The most requests in any span of `width` (a multiple of [`BIN`]), among those that begin in that time.
    pub fn peak(&self, width: Millis, during: std::ops::Range<Millis>) -> u64 {
        let bin = |ms: Millis| usize::try_from(ms / BIN).unwrap_or(usize::MAX);
        let until = bin(during.end).min(self.arrivals.len());
        let from = bin(during.start).min(until);
        (from..until)
            .map(|at| {
                let span = self.arrivals[at..].iter().take(bin(width));
                span.map(|n| u64::from(*n)).sum()
            })
            .max()
            .unwrap_or(0)
    }

    /// When that share of the deliveries was known.
    pub fn quantile(&self, share: f64) -> Millis {
        let last = self.delivered_at.len().saturating_sub(1);
        let at = (share * last as f64).round() as usize;
        self.delivered_at.get(at).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::run;

    fn small(algorithm: Algorithm) -> Setting {
        Setting {
            browsers: 200,
            per_second: 10,
            down_for: 5_000,
            ..Setting::of(algorithm, 1)
        }
    }

    #[test]
    fn every_browser_delivers_once_and_the_same_seed_gives_the_same_run() {
        for algorithm in Algorithm::ALL {
            let outcome = run(small(algorithm));
            let name = algorithm.name();
            assert!(outcome.orders.iter().all(|orders| *orders == 1), "{name}");
            assert_eq!(outcome.delivered_at.len(), 200, "{name}");
            assert_eq!(outcome.parked, 0, "{name}");
            assert_eq!(outcome, run(small(algorithm)), "{name}");
        }
    }

    #[test]
    fn nothing_is_delivered_while_the_server_is_down_nor_faster_than_it_can() {
        for algorithm in Algorithm::ALL {
            let outcome = run(small(algorithm));
            assert!(outcome.quantile(0.0) > 5_000);
            assert!(outcome.quantile(1.0) >= 5_000 + 200 * 100);
        }
    }

    #[test]
    fn full_jitter_needs_fewer_calls_than_no_backoff() {
        let calls = |algorithm| run(small(algorithm)).calls();
        assert!(5 * calls(Algorithm::Full) < calls(Algorithm::None));
    }

    #[test]
    fn the_spread_halves_the_peak_of_reconnecting_at_least() {
        let peak = |spread| {
            let setting = Setting {
                spread: Some(spread),
                ..small(Algorithm::Full)
            };
            run(setting).peak(50, 5_000..5_700)
        };
        let (at_once, spread) = (peak(0), peak(500));
        assert!(at_once >= 100 && 2 * spread < at_once, "{at_once} {spread}");
    }

    #[test]
    fn a_peak_is_of_any_span() {
        let outcome = Outcome {
            arrivals: vec![1, 0, 5, 6, 2],
            orders: Vec::new(),
            delivered_at: vec![3, 4, 9],
            parked: 0,
        };
        assert_eq!(outcome.peak(20, 0..50), 11);
        assert_eq!(outcome.peak(20, 30..50), 8);
        assert_eq!(outcome.peak(BIN, 0..20), 1);
        assert_eq!(outcome.quantile(0.5), 4);
    }
}
