//! The policy of a submission: how long to wait, how often to try, when to stop. Data only, stored in the row.

use super::decode::{Fields, Source};
use super::env::Millis;
use super::error::{Code, Error};
use super::shape::{Shape, Value, Visitor};
use super::words::words;

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60 * SECOND;
const HOUR: Millis = 60 * MINUTE;
const DAY: Millis = 24 * HOUR;

/// The longest delay that a policy may ask for, a year: beyond it lies a mistake in the unit.
const LONGEST_DELAY: Millis = 365 * DAY;

words! {
    /// Whether the delay is drawn at random.
    pub enum Jitter: "expected \"full\" or \"none\"" {
        /// Uniformly from 0 to the bound ("full jitter", Brooker, "Exponential Backoff And Jitter", AWS Architecture
        /// Blog, 2015).
        Full = "full",
        /// The bound itself.
        None = "none",
    }
}

words! {
    /// What to do with an intent that may have been delivered, when its next attempt is due.
    pub enum OnMaybeDelivered: "expected \"resend\" or \"park\"" {
        /// Send it again under the same key: the server knows the key.
        Resend = "resend",
        /// Park it for a person to decide: the server does not know the key.
        Park = "park",
    }
}

words! {
    /// The policies that have a name.
    enum Preset: "expected \"interactive\", \"background\" or \"patient\"" {
        /// [`Policy::interactive`].
        Interactive = "interactive",
        /// [`Policy::background`].
        Background = "background",
        /// [`Policy::patient`].
        Patient = "patient",
    }
}

impl Preset {
    fn policy(self) -> Policy {
        match self {
            Preset::Interactive => Policy::interactive(),
            Preset::Background => Policy::background(),
            Preset::Patient => Policy::patient(),
        }
    }
}

/// The policy of a submission. All times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How many attempts may be spent. Default 40 (`patient`), 5 (`background`), 4 (`interactive`).
    pub max_attempts: u32,
    /// The bound of the first retry, when there is no table. Doubles with each retry.
    pub base_ms: Millis,
    /// The largest bound, when there is no table.
    pub ceiling_ms: Millis,
    /// A table of bounds, one per retry, the last repeated. Empty: `base_ms · 2ⁿ` up to `ceiling_ms`.
    pub delays_ms: Vec<Millis>,
    /// Whether the delay is drawn from 0 to the bound, or is the bound.
    pub jitter: Jitter,
    /// How long one attempt may take, before the allowance for its body. Default 30 s.
    pub attempt_timeout_ms: Millis,
    /// How long after the submission the last attempt may begin, sleep and reloads included. Default 7 days.
    pub max_age_ms: Millis,
    /// How long after its first use a key may be sent again: the server's memory of keys, less a margin. Default 23 h.
    pub key_ttl_ms: Millis,
    /// The longest `Retry-After` that is taken seriously. Default 24 h, 1 min for `interactive`.
    pub max_retry_after_ms: Millis,
    /// Within how long of reconnecting the next attempt comes. Default 500 ms.
    pub reconnect_spread_ms: Millis,
    /// What to do with what may have been delivered. Default: send it again.
    pub on_maybe_delivered: OnMaybeDelivered,
}

impl Policy {
    /// A person waits: 4 attempts, 500 ms doubling up to 20 s, no `Retry-After` above a minute.
    pub fn interactive() -> Self {
        Policy {
            max_attempts: 4,
            base_ms: 500,
            ceiling_ms: 20 * SECOND,
            delays_ms: Vec::new(),
            max_retry_after_ms: MINUTE,
            ..Policy::patient()
        }
    }

    /// Nobody waits: 5 attempts, after 5, 15, 45, 135 and 405 s at most.
    pub fn background() -> Self {
        Policy {
            max_attempts: 5,
            delays_ms: [5, 15, 45, 135, 405].map(|s| s * SECOND).to_vec(),
            ..Policy::patient()
        }
    }

    /// It has to arrive: 40 attempts, soon at first, in the end every half hour at most. The default of the outbox.
    pub fn patient() -> Self {
        Policy {
            max_attempts: 40,
            base_ms: 500,
            ceiling_ms: 30 * MINUTE,
            delays_ms: vec![
                500,
                SECOND,
                2 * SECOND,
                5 * SECOND,
                15 * SECOND,
                45 * SECOND,
                135 * SECOND,
                405 * SECOND,
                30 * MINUTE,
            ],
            jitter: Jitter::Full,
            attempt_timeout_ms: 30 * SECOND,
            max_age_ms: 7 * DAY,
            key_ttl_ms: 23 * HOUR,
            max_retry_after_ms: DAY,
            reconnect_spread_ms: 500,
            on_maybe_delivered: OnMaybeDelivered::Resend,
        }
    }

    /// The preset of that name.
    pub fn preset(name: &str) -> Option<Self> {
        Preset::parse(name).map(Preset::policy)
    }

    /// Reads a policy: the name of a preset, or an object whose fields replace those of `preset` (default: `self`).
    /// `maxElapsedMs` is another name of `maxAgeMs`, the one that `submitWithRetry` uses.
    ///
    /// # Errors
    /// `bad-option`, naming the field and what was expected.
    pub fn read<S: Source>(mut self, source: &S, path: &str) -> Result<Self, Error> {
        if let Some(name) = source.string() {
            return Policy::preset(&name)
                .ok_or_else(|| Error::about(Code::BadOption, path, Preset::EXPECTED));
        }
        let mut fields = Fields::of(source, path);
        fields.only(&[
            "preset",
            "maxAttempts",
            "baseMs",
            "ceilingMs",
            "delaysMs",
            "jitter",
            "attemptTimeoutMs",
            "maxAgeMs",
            "maxElapsedMs",
            "keyTtlMs",
            "maxRetryAfterMs",
            "reconnectSpreadMs",
        ]);
        let mut preset: Option<Preset> = None;
        fields.field("preset", &mut preset);
        if let Some(preset) = preset {
            self = preset.policy();
        }
        self.fields(&mut fields);
        fields.millis("maxElapsedMs", &mut self.max_age_ms);
        self.check(&mut fields);
        fields.finish(self)
    }

    fn check<S: Source>(&self, fields: &mut Fields<'_, S>) {
        let at_least_one = "expected 1 or more";
        if self.max_attempts == 0 {
            fields.refuse("maxAttempts", at_least_one);
        }
        if self.attempt_timeout_ms == 0 {
            fields.refuse("attemptTimeoutMs", at_least_one);
        }
        let longest = self.delays_ms.iter().copied().max().unwrap_or(0);
        for (name, value) in [
            ("baseMs", self.base_ms),
            ("ceilingMs", self.ceiling_ms),
            ("delaysMs", longest),
            ("attemptTimeoutMs", self.attempt_timeout_ms),
            ("maxRetryAfterMs", self.max_retry_after_ms),
            ("reconnectSpreadMs", self.reconnect_spread_ms),
        ] {
            if value > LONGEST_DELAY {
                fields.refuse(name, "expected milliseconds, a year at most");
            }
        }
    }

    /// The time that one attempt may take: `attempt_timeout_ms`, and what the body needs at 16 KiB/s.
    pub fn attempt_timeout(&self, body_bytes: u64) -> Millis {
        let allowance = body_bytes.saturating_mul(SECOND) / (16 * 1024);
        self.attempt_timeout_ms.saturating_add(allowance)
    }

    /// The longest wait that this policy can lead to: the larger of its longest backoff and the longest `Retry-After`,
    /// each with the jitter on top.
    pub fn horizon(&self) -> Millis {
        let backoff = match self.delays_ms.iter().max() {
            Some(longest) => *longest,
            None => self.ceiling_ms,
        };
        let floor = self.max_retry_after_ms;
        floor
            .saturating_add(super::backoff::spread_over_floor(backoff, floor))
            .max(backoff)
    }
}

/// What is read is not checked for sense.
impl Shape for Policy {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        if visitor.has("baseMs") || visitor.has("ceilingMs") {
            // Without a table of their own they mean the formula, not the table of a preset.
            self.delays_ms.clear();
        }
        visitor.field("delaysMs", &mut self.delays_ms);
        visitor.millis("baseMs", &mut self.base_ms);
        visitor.millis("ceilingMs", &mut self.ceiling_ms);
        visitor.field("maxAttempts", &mut self.max_attempts);
        visitor.field("jitter", &mut self.jitter);
        visitor.millis("attemptTimeoutMs", &mut self.attempt_timeout_ms);
        visitor.millis("maxAgeMs", &mut self.max_age_ms);
        visitor.millis("keyTtlMs", &mut self.key_ttl_ms);
        visitor.millis("maxRetryAfterMs", &mut self.max_retry_after_ms);
        visitor.millis("reconnectSpreadMs", &mut self.reconnect_spread_ms);
        visitor.field("onMaybeDelivered", &mut self.on_maybe_delivered);
    }
}
