//! How long to wait before the next attempt: a bound per retry, full jitter under it, a server's floor below it.

use super::env::{Millis, Random};
use super::policy::{Jitter, Policy};

/// The bound of retry `n` (0 is the first): `min(ceiling, base · 2ⁿ)`, or the table's entry, its last repeated.
pub fn bound(policy: &Policy, n: u32) -> Millis {
    let index = usize::try_from(n).unwrap_or(usize::MAX);
    match policy.delays_ms.get(index).or(policy.delays_ms.last()) {
        Some(delay) => *delay,
        None => 1u64
            .checked_shl(n)
            .map_or(u64::MAX, |factor| policy.base_ms.saturating_mul(factor))
            .min(policy.ceiling_ms),
    }
}

/// The delay before retry `n`, without a floor: uniform from 0 to the bound, capped before the draw, or the bound.
pub fn delay(policy: &Policy, n: u32, random: &mut Random) -> Millis {
    let bound = bound(policy, n);
    match policy.jitter {
        Jitter::Full => random.up_to(bound),
        Jitter::None => bound,
    }
}

/// The largest jitter on top of a server's floor: the bound, a tenth of the floor or a second, whichever is largest.
/// Everybody who was told the same floor would otherwise come back in the same instant.
pub fn spread_over_floor(bound: Millis, floor: Millis) -> Millis {
    bound.max(floor / 10).max(1_000)
}

/// The delay before retry `n` when the server gave a floor: never below it, and jittered also under
/// [`Jitter::None`].
pub fn delay_over_floor(policy: &Policy, n: u32, floor: Millis, random: &mut Random) -> Millis {
    floor.saturating_add(random.up_to(spread_over_floor(bound(policy, n), floor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(policy: &Policy, count: u32) -> Vec<Millis> {
        (0..count).map(|n| bound(policy, n)).collect()
    }

    #[test]
    fn the_tables_of_the_presets() {
        assert_eq!(
            all(&Policy::background(), 7),
            [5_000, 15_000, 45_000, 135_000, 405_000, 405_000, 405_000]
        );
        assert_eq!(
            all(&Policy::patient(), 10),
            [500, 1_000, 2_000, 5_000, 15_000, 45_000, 135_000, 405_000, 1_800_000, 1_800_000]
        );
        assert_eq!(
            all(&Policy::interactive(), 8),
            [500, 1_000, 2_000, 4_000, 8_000, 16_000, 20_000, 20_000]
        );
    }

    #[test]
    fn without_jitter_the_delay_is_the_bound_exactly() {
        let policy = Policy {
            jitter: Jitter::None,
            ..Policy::background()
        };
        let mut random = Random::new(3);
        let delays: Vec<Millis> = (0..5).map(|n| delay(&policy, n, &mut random)).collect();
        assert_eq!(delays, [5_000, 15_000, 45_000, 135_000, 405_000]);
    }

    #[test]
    fn arithmetic_saturates() {
        let policy = Policy {
            base_ms: 500,
            ceiling_ms: 20_000,
            delays_ms: Vec::new(),
            ..Policy::interactive()
        };
        for n in [63, 64, 80, u32::MAX] {
            assert_eq!(bound(&policy, n), 20_000);
        }
        let endless = Policy {
            ceiling_ms: u64::MAX,
            ..policy
        };
        assert_eq!(bound(&endless, 80), u64::MAX);
        assert_eq!(
            delay_over_floor(&endless, 80, u64::MAX, &mut Random::new(1)),
            u64::MAX
        );
        assert_eq!(endless.attempt_timeout(u64::MAX) / 1_000_000, 1_125_899_906);
    }

    #[test]
    fn jitter_is_there_and_fills_the_window() {
        let policy = Policy::background();
        let mut random = Random::new(11);
        let delays: Vec<Millis> = (0..2_000).map(|_| delay(&policy, 0, &mut random)).collect();
        assert!(delays.iter().all(|d| *d <= 5_000));
        assert!(delays.iter().any(|d| *d < 100) && delays.iter().any(|d| *d > 4_900));
        let mean = delays.iter().sum::<u64>() / 2_000;
        assert!((2_400..2_600).contains(&mean), "{mean}");
    }

    #[test]
    fn a_floor_is_never_undercut_and_always_spread() {
        let policy = Policy {
            jitter: Jitter::None,
            ..Policy::background()
        };
        let mut random = Random::new(5);
        let delays: Vec<Millis> = (0..500)
            .map(|_| delay_over_floor(&policy, 0, 600_000, &mut random))
            .collect();
        assert!(delays.iter().all(|d| (600_000..=660_000).contains(d)));
        assert!(delays.iter().any(|d| *d > 640_000));
        // A floor of nothing still gets a second, so that a crowd told "0" does not come back as one.
        assert_eq!(spread_over_floor(0, 0), 1_000);
    }
}
