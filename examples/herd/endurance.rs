//! How long each preset bears a server that fails every attempt, before it parks the intent.

use crate::SEED;
use resubmit::engine::transition::Claim;
use resubmit::engine::{
    Answer, Env, Failure, Head, Key, Millis, Policy, Random, Record, RequestHead,
};

/// The presets, by name.
pub const PRESETS: [&str; 3] = ["interactive", "background", "patient"];

/// How a server fails.
#[derive(Debug, Clone, Copy)]
pub enum Fails {
    /// It answers 503 at once.
    AtOnce,
    /// It never answers: every attempt takes its whole time limit.
    Never,
}

/// From the submission until no further attempt follows, over many intents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Endurance {
    pub mean_ms: f64,
    /// One intent in twenty is parked sooner.
    pub percentile_5_ms: Millis,
}

/// Submits `intents` intents to a server that fails that way, each until it is parked.
pub fn endurance(policy: &Policy, fails: Fails, intents: u32) -> Endurance {
    let mut random = Random::new(SEED);
    let mut borne: Vec<Millis> = (0..intents)
        .map(|_| until_parked(policy, fails, &mut random))
        .collect();
    borne.sort_unstable();
    Endurance {
        mean_ms: borne.iter().sum::<Millis>() as f64 / f64::from(intents),
        percentile_5_ms: borne[borne.len() / 20],
    }
}

fn until_parked(policy: &Policy, fails: Fails, random: &mut Random) -> Millis {
    let key = Key::from_random([0; 16]);
    let mut row = Record::new("", key, RequestHead::default(), policy.clone(), 0);
    let mut env = Env {
        wall: 0,
        mono: 0,
        random: Random::new(random.up_to(u64::MAX - 1)),
    };
    while let Some(due) = row.next_attempt_at {
        env.wall = due;
        if row.claim(&mut env) == Claim::Granted {
            let answer = match fails {
                Fails::AtOnce => Answer::Response(Head {
                    status: 503,
                    ..Head::default()
                }),
                Fails::Never => {
                    env.wall += policy.attempt_timeout(0);
                    Answer::Failure(Failure {
                        timed_out: true,
                        ..Failure::default()
                    })
                }
            };
            row.settle(row.fence, &answer, &mut env);
        }
    }
    row.settled_at.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use resubmit::engine::Jitter;

    #[test]
    fn without_jitter_it_is_the_sum_of_the_table() {
        let policy = Policy {
            jitter: Jitter::None,
            ..Policy::background()
        };
        let borne = endurance(&policy, Fails::AtOnce, 20);
        assert_eq!(borne.percentile_5_ms, 200_000);
        let borne = endurance(&policy, Fails::Never, 20);
        assert_eq!(borne.percentile_5_ms, 350_000);
    }

    #[test]
    fn full_jitter_bears_half_of_that_on_average() {
        let borne = endurance(&Policy::background(), Fails::AtOnce, 2_000);
        assert!((95_000.0..105_000.0).contains(&borne.mean_ms), "{borne:?}");
        assert!(borne.percentile_5_ms < 60_000);
    }
}
