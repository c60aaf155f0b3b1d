//! What a page shows of an intent.

use super::encode::{write, Sink};
use super::env::Wall;
use super::key::Key;
use super::record::{Evidence, Reason, Receipt, Record, State};
use super::shape::Value;

/// One intent, as a page may list it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The idempotency key.
    pub key: Key,
    /// Where it stands.
    pub state: State,
    /// Why.
    pub reason: Option<Reason>,
    /// How often an attempt was begun.
    pub attempt: u32,
    /// Which attempt will be the last, as far as is known: a person's retry brings a full new budget, and an attempt
    /// that is not spent moves the end by one.
    pub max_attempts: u32,
    /// When the next attempt is due, if one is.
    pub next_attempt_at: Option<Wall>,
    /// When it was submitted.
    pub created_at: Wall,
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The application's own JSON text.
    pub meta: Option<String>,
    /// The form it came from.
    pub form_key: Option<String>,
    /// The lane it keeps its order in.
    pub lane: Option<String>,
    /// Whether it is on the disk.
    pub durable: bool,
    /// Whether nothing proves that the server did not act.
    pub maybe_delivered: bool,
    /// The last answer.
    pub evidence: Option<Evidence>,
    /// What is kept of the delivery.
    pub receipt: Option<Receipt>,
}

impl Intent {
    /// The view of a row. `durable`: whether that row is on the disk.
    pub fn of(record: &Record, durable: bool) -> Self {
        Intent {
            key: record.key.clone(),
            state: record.state,
            reason: record.reason,
            attempt: record.attempts,
            max_attempts: record
                .policy
                .max_attempts
                .saturating_sub(record.spent)
                .saturating_add(record.attempts),
            // A claimed row's deadline is for whoever finds it after a crash; the person waits for the answer.
            next_attempt_at: record
                .next_attempt_at
                .filter(|_| record.state == State::Pending),
            created_at: record.created_at,
            method: record.request.method.clone(),
            url: record.request.url.clone(),
            meta: record.meta.clone(),
            form_key: record.form_key.clone(),
            lane: record.lane.clone(),
            durable,
            maybe_delivered: record.maybe_delivered,
            evidence: record.evidence.clone(),
            receipt: record.receipt.clone(),
        }
    }

    /// The view as JavaScript has it, `meta` aside: `null` for what is absent.
    pub fn write<S: Sink>(&self) -> S {
        let mut view = S::object();
        let mut put = |name: &str, value: Option<S>| view.set(name, value.unwrap_or_else(S::null));
        put("key", self.key.write());
        put("state", self.state.write());
        put("reason", self.reason.write());
        put("attempt", self.attempt.write());
        put("maxAttempts", self.max_attempts.write());
        put("nextAttemptAt", self.next_attempt_at.write());
        put("createdAt", self.created_at.write());
        put("method", self.method.write());
        put("url", self.url.write());
        put("formKey", self.form_key.write());
        put("lane", self.lane.write());
        put("durable", self.durable.write());
        put("maybeDelivered", self.maybe_delivered.write());
        put("evidence", self.evidence.as_ref().map(write));
        put("receipt", self.receipt.as_ref().map(write));
        view
    }
}
