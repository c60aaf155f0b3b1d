//! What the engine may know of the world: two clocks and one random number, handed in with every call.

/// Milliseconds since the Unix epoch, as `Date.now()` gives them. It may jump either way.
pub type Wall = u64;

/// A span of time in milliseconds.
pub type Millis = u64;

/// The surroundings of one call. The same list of `(Env, Event)` gives the same effects.
#[derive(Debug, Clone)]
pub struct Env {
    /// The wall clock.
    pub wall: Wall,
    /// A clock that never runs backwards, as `performance.now()` gives it. It may stop while the machine sleeps.
    pub mono: Millis,
    /// Randomness for this call.
    pub random: Random,
}

impl Env {
    /// Both clocks as they stand.
    pub fn clocks(&self) -> Clocks {
        Clocks {
            wall: self.wall,
            mono: self.mono,
        }
    }
}

/// Both clocks at one moment. Either may be wrong; they are compared, never added to one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// The wall clock.
    pub wall: Wall,
    /// The clock that never runs backwards.
    pub mono: Millis,
}

impl Clocks {
    /// The longest time that may have passed since `earlier`, going by either clock. A wall clock that was set back
    /// counts by how far it was set: time is then unknown, and unknown is treated as long.
    pub fn longest_since(&self, earlier: Clocks) -> Millis {
        self.wall
            .abs_diff(earlier.wall)
            .max(self.mono.saturating_sub(earlier.mono))
    }

    /// How far the two clocks disagree about the time since `earlier`: above a few seconds the machine slept, or the
    /// wall clock was set.
    pub fn disagreement_since(&self, earlier: Clocks) -> Millis {
        let by_wall = i128::from(self.wall) - i128::from(earlier.wall);
        let by_mono = i128::from(self.mono) - i128::from(earlier.mono);
        u64::try_from((by_wall - by_mono).unsigned_abs()).unwrap_or(u64::MAX)
    }
}

/// A stream of random numbers that starts from 64 bits of the shell's entropy (`getrandom`), so that a recorded call
/// can be played again.
///
/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). Keys are not made of
/// it: they come from `getrandom` directly.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts a stream.
    pub fn new(entropy: u64) -> Self {
        Random(entropy)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `0` to `bound`, both included. The bias of the multiplication is below 2⁻⁶⁴ · `bound`.
    pub fn up_to(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next()) * (u128::from(bound) + 1);
        (wide >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_reaches_both_ends_and_never_beyond() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..1000).map(|_| random.up_to(3)).collect();
        for n in 0..=3 {
            assert!(drawn.contains(&n));
        }
        assert!(drawn.iter().all(|n| *n <= 3));
        assert_eq!(random.up_to(0), 0);
        random.up_to(u64::MAX);
    }

    #[test]
    fn the_mean_of_a_draw_is_half_its_bound() {
        let mut random = Random::new(1);
        let sum: u64 = (0..10_000).map(|_| random.up_to(1000)).sum();
        assert!((480..520).contains(&(sum / 10_000)));
    }

    #[test]
    fn clocks_that_agree_and_clocks_that_do_not() {
        let start = Clocks {
            wall: 1_000_000,
            mono: 50,
        };
        let later = Clocks {
            wall: 1_002_000,
            mono: 2_050,
        };
        assert_eq!(later.disagreement_since(start), 0);
        assert_eq!(later.longest_since(start), 2_000);
        // Asleep: the monotonic clock stood still.
        let woken = Clocks {
            wall: 1_000_000 + 28_800_000,
            mono: 50,
        };
        assert_eq!(woken.disagreement_since(start), 28_800_000);
        assert_eq!(woken.longest_since(start), 28_800_000);
        // Set back.
        let set_back = Clocks {
            wall: 0,
            mono: 10_050,
        };
        assert_eq!(set_back.disagreement_since(start), 1_010_000);
        assert_eq!(set_back.longest_since(start), 1_000_000);
    }
}
