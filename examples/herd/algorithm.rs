//! The ways of waiting that are compared: the engine's own, and the foils that exist here alone.

use resubmit::engine::{backoff, Jitter, Millis, Policy, Random};

/// A way of waiting after a failure. Exponential and full are the engine's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Not at all.
    None,
    /// The engine's `jitter: "none"`: the bound itself.
    Exponential,
    /// Half the bound, and up to its other half.
    Equal,
    /// Up to three times the last delay.
    Decorrelated,
    /// The engine's full jitter: anything up to the bound.
    Full,
}

impl Algorithm {
    pub const ALL: [Algorithm; 5] = [
        Algorithm::None,
        Algorithm::Exponential,
        Algorithm::Equal,
        Algorithm::Decorrelated,
        Algorithm::Full,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::None => "none",
            Algorithm::Exponential => "exponential",
            Algorithm::Equal => "equal",
            Algorithm::Decorrelated => "decorrelated",
            Algorithm::Full => "full",
        }
    }

    /// Whether the engine does not have it.
    pub fn is_foil(self) -> bool {
        !matches!(self, Algorithm::Exponential | Algorithm::Full)
    }
}

/// The backoff of one client.
#[derive(Debug, Clone)]
pub struct Backoff {
    algorithm: Algorithm,
    policy: Policy,
    /// Decorrelated jitter: the shortest delay, the longest, and the last.
    least: Millis,
    most: Millis,
    last: Millis,
}

impl Backoff {
    /// With the bounds of that policy. `least`: the base of decorrelated jitter, which has no bounds of its own.
    pub fn new(algorithm: Algorithm, policy: &Policy, least: Millis) -> Self {
        let jitter = match algorithm {
            Algorithm::Exponential => Jitter::None,
            _ => Jitter::Full,
        };
        Backoff {
            algorithm,
            policy: Policy {
                jitter,
                ..policy.clone()
            },
            least,
            most: policy
                .delays_ms
                .last()
                .copied()
                .unwrap_or(policy.ceiling_ms),
            last: least,
        }
    }

    /// The policy that the bounds are from, with the jitter of this algorithm if the engine has it.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The delay before retry `n` (0 is the first). The foils are written from their published definitions: Brooker,
    /// "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    pub fn delay(&mut self, n: u32, random: &mut Random) -> Millis {
        match self.algorithm {
            Algorithm::None => 0,
            Algorithm::Exponential | Algorithm::Full => backoff::delay(&self.policy, n, random),
            Algorithm::Equal => {
                let bound = backoff::bound(&self.policy, n);
                bound / 2 + random.up_to(bound - bound / 2)
            }
            Algorithm::Decorrelated => {
                let drawn = self.least + random.up_to(3 * self.last - self.least);
                self.last = drawn.min(self.most);
                self.last
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(algorithm: Algorithm, n: u32) -> Vec<Millis> {
        let policy = Policy {
            base_ms: 10,
            ceiling_ms: 2_000,
            delays_ms: Vec::new(),
            ..Policy::interactive()
        };
        let mut random = Random::new(9);
        (0..5_000)
            .map(|_| Backoff::new(algorithm, &policy, 5).delay(n, &mut random))
            .collect()
    }

    #[test]
    fn each_stays_within_its_definition_and_reaches_both_ends() {
        for (algorithm, n, least, most) in [
            (Algorithm::None, 4, 0, 0),
            (Algorithm::Exponential, 4, 160, 160),
            (Algorithm::Equal, 4, 80, 160),
            (Algorithm::Decorrelated, 4, 5, 15),
            (Algorithm::Full, 4, 0, 160),
            (Algorithm::Full, 40, 0, 2_000),
        ] {
            let delays = delays(algorithm, n);
            let name = algorithm.name();
            assert!(delays.iter().all(|d| (least..=most).contains(d)), "{name}");
            let slack = (most - least) / 100;
            assert!(delays.iter().any(|d| *d <= least + slack), "{name}");
            assert!(delays.iter().any(|d| *d >= most - slack), "{name}");
        }
    }

    #[test]
    fn decorrelated_jitter_grows_from_its_last_delay_up_to_the_ceiling() {
        let mut backoff = Backoff::new(Algorithm::Decorrelated, &Policy::patient(), 500);
        let mut random = Random::new(1);
        let mut last = 500;
        let mut longest = 0;
        for n in 0..1_000 {
            let delay = backoff.delay(n, &mut random);
            assert!((500..=(3 * last).min(1_800_000)).contains(&delay));
            longest = longest.max(delay);
            last = delay;
        }
        assert_eq!(longest, 1_800_000);
    }
}
