//! The stored form of an intent: one row, which only ever changes its state.

use super::acknowledgement::Acknowledgement;
use super::decode::{Fields, Source};
use super::env::{Millis, Wall};
use super::error::Error;
use super::key::{Key, KeyPlace};
use super::policy::Policy;
use super::shape::{Shape, Visitor};
use super::words::words;

/// The version of the rows that this build writes. It never rewrites a row of a higher one.
pub const VERSION: u32 = 1;

words! {
    /// Where an intent stands.
    pub enum State: "expected a state" {
        /// Waits for its next attempt.
        Pending = "pending",
        /// Claimed, with a lease.
        Sending = "sending",
        /// Settled: the server acted.
        Delivered = "delivered",
        /// Settled: the server refused, and did not act.
        Refused = "refused",
        /// Settled until a person decides: no further automatic attempt, the evidence is kept.
        Parked = "parked",
        /// Settled: given up by the caller.
        Cancelled = "cancelled",
    }
}

impl State {
    /// Whether no attempt follows by itself.
    pub fn is_settled(self) -> bool {
        !matches!(self, State::Pending | State::Sending)
    }

    /// Whether nobody is left to decide anything.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, State::Delivered | State::Cancelled)
    }
}

words! {
    /// Why an intent is in its state. A closed list; which reasons go with which state is said at each.
    pub enum Reason: "expected a reason" {
        /// Pending: `fetch` was rejected.
        NetworkFailure = "network-failure",
        /// Pending: the attempt took longer than its timeout.
        AttemptTimeout = "attempt-timeout",
        /// Pending: the browser says that there is no network.
        Offline = "offline",
        /// Pending: the server answered that it cannot now (408, 413, 425, 429, 5xx).
        ServerBusy = "server-busy",
        /// Pending: 409, an earlier attempt under this key is still being processed.
        StillRunning = "still-running",
        /// Pending: a 2xx came without the acknowledgement that the application demands.
        NotAcknowledged = "not-acknowledged",
        /// Pending behind the sign-in gate, or parked alone: the server wants other credentials.
        Unauthorized = "unauthorized",
        /// Pending: a claim was given back, nothing was sent.
        NotSent = "not-sent",
        /// Pending: others of its lane come before it.
        Queued = "queued",

        /// Refused: 400, 422 and every 4xx without a meaning of its own, 501, 505.
        Invalid = "invalid",
        /// Refused: 403.
        Forbidden = "forbidden",
        /// Refused: 409 that is not about the key, or 412. Reconciliation is the application's.
        Conflict = "conflict",

        /// Parked: as many attempts were spent as the policy allows.
        AttemptsExhausted = "attempts-exhausted",
        /// Parked: `maxAgeMs` passed since the submission.
        MaxAge = "max-age",
        /// Parked: may have been delivered, and the server may have forgotten the key since.
        KeyExpired = "key-expired",
        /// Parked: the server asked for a longer wait than the key, the policy or sense allow.
        RetryAfterTooLong = "retry-after-too-long",
        /// Parked: the server may have acted, and no answer can be had that would tell.
        OutcomeUnknown = "outcome-unknown",
        /// Parked: a redirect took the request elsewhere.
        Redirected = "redirected",
        /// Parked: an answer that means nothing here (3xx, status 0).
        Unexpected = "unexpected",
        /// Parked: the server stored a failure under this key and will answer it again.
        ReplayedFailure = "replayed-failure",
        /// Parked: the page's Content-Security-Policy forbids the URL, or where it redirects to.
        BlockedByCsp = "blocked-by-csp",
        /// Parked: the browser's storage lost its body.
        BodyLost = "body-lost",
        /// Parked: the application's hook threw or hung over a 2xx.
        HookFailed = "hook-failed",

        /// Cancelled: by the person or the application.
        Discarded = "discarded",
        /// Cancelled: a newer intent took its place.
        Superseded = "superseded",
        /// Cancelled: everything of its owner was deleted.
        Cleared = "cleared",
        /// Cancelled: nobody came back to it within `retentionMs`. Its key and the time are all that is left.
        Expired = "expired",
    }
}

words! {
    /// Whether an intent that is parked holds its lane.
    pub enum OnParked: "expected \"hold\" or \"skip\"" {
        /// Nothing behind it is sent before a person has decided.
        Hold = "hold",
        /// It leaves the lane.
        Skip = "skip",
    }
}

words! {
    /// What may be behind failures that a page cannot tell apart.
    pub enum Hint: "expected a hint" {
        /// Every attempt fails at once although the page is online and other requests succeed: an extension, a proxy
        /// or a missing CORS header.
        BlockedOrCors = "blocked-or-cors",
    }
}

/// How long what is kept of a settled row stays by default: 30 days, in milliseconds.
pub const RETENTION_MS: Millis = 30 * 24 * 60 * 60 * 1_000;

/// A moment in the future, kept as when it was written and how long was to be waited. A moment alone could not be told
/// from one that a wrong clock wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deadline {
    /// The wall clock when it was written.
    pub written_at: Wall,
    /// How long from then.
    pub length_ms: Millis,
}

impl Deadline {
    /// The deadline `length_ms` from `now`.
    pub fn after(now: Wall, length_ms: Millis) -> Self {
        Deadline {
            written_at: now,
            length_ms,
        }
    }

    /// The moment itself.
    pub fn at(self) -> Wall {
        self.written_at.saturating_add(self.length_ms)
    }

    /// Whether a clock that was ahead wrote it: it is to be waited from now instead.
    pub fn is_from_the_future(self, now: Wall) -> bool {
        self.written_at > now
    }

    pub(super) fn anchored(self, now: Wall) -> Self {
        Deadline {
            written_at: self.written_at.min(now),
            ..self
        }
    }
}

/// A claim's hold on an intent: nobody else may make an attempt until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lease {
    /// The wall clock when it was taken.
    pub written_at: Wall,
    /// How long it holds: the attempt's timeout and twice the grace.
    pub length_ms: Millis,
    /// Whether it was taken under the intent's Web Lock: if that lock is free, its holder is gone.
    pub locked: bool,
}

impl Lease {
    /// How long it still holds. (One that a clock ahead of its time wrote holds for its length from now.)
    pub(super) fn left(&self, now: Wall) -> Millis {
        let from = self.written_at.min(now);
        from.saturating_add(self.length_ms).saturating_sub(now)
    }
}

/// The frozen request. Its body lies in a store of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestHead {
    /// The method, as `Request.method` has it.
    pub method: String,
    /// The absolute URL, fragment included.
    pub url: String,
    /// The headers that may be stored, in order, names in lower case. The exact `content-type` is among them.
    pub headers: Vec<(String, String)>,
    /// What else `fetch` is to be told: `mode`, `credentials`, `redirect`, `referrerPolicy`, `cache` and `integrity`, by
    /// these names, where they are not the default.
    pub settings: Vec<(String, String)>,
    /// The length of the body in bytes.
    pub body_bytes: u64,
}

/// What the last answer was, for a person to judge by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// When it came.
    pub at: Wall,
    /// The status, unless there was no answer.
    pub status: Option<u16>,
    /// The URL that answered.
    pub url: String,
    /// Whether that is another than was asked.
    pub redirected: bool,
    /// The headers that matter for the verdict, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The first 4 KiB of the body, if it is text.
    pub excerpt: Option<String>,
    /// What may be behind a failure.
    pub hint: Option<Hint>,
}

/// What is kept of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receipt {
    /// When the answer came.
    pub at: Wall,
    /// The status.
    pub status: u16,
    /// The URL that answered.
    pub url: String,
    /// The `Location` header.
    pub location: Option<String>,
    /// The first 4 KiB of the body, if it is text.
    pub excerpt: Option<String>,
}

/// One intent as it is stored. The database's indexes read `owner`, `origin`, `needs`, `createdAt`, `nextAttemptAt`,
/// `lane`, `laneSeq`, `coalesceKey`, `formKey` and `forgetAt`; a row without the property is not in that index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The version of the row.
    pub v: u32,
    /// Whose intent it is.
    pub owner: String,
    /// Its idempotency key.
    pub key: Key,
    /// How the key goes into the request.
    pub key_place: KeyPlace,
    /// When it was submitted.
    pub created_at: Wall,
    /// Since when `maxAgeMs` counts: the submission, or a person's last `retry`.
    pub budget_from: Wall,
    /// Where it stands.
    pub state: State,
    /// Why.
    pub reason: Option<Reason>,
    /// What is sent.
    pub request: RequestHead,
    /// The origin that it is sent to.
    pub origin: String,
    /// What a page must have to make an attempt: `left_out` and `hooks` as one word. Empty: any page can.
    pub needs: String,
    /// The names of headers that were sent but must not be stored, in lower case.
    pub left_out: Vec<String>,
    /// The names of the hooks it was submitted with.
    pub hooks: Vec<String>,
    /// What a 2xx must be to count as delivered.
    pub is_delivered: Option<Acknowledgement>,
    /// The schedule it follows.
    pub policy: Policy,
    /// The application's own JSON text.
    pub meta: Option<String>,
    /// The form it came from.
    pub form_key: Option<String>,
    /// The order it keeps with others.
    pub lane: Option<String>,
    /// Its place in the lane, until it leaves it.
    pub lane_seq: Option<u64>,
    /// Whether it holds the lane while it is parked.
    pub on_parked: OnParked,
    /// What it stands for, so that a newer one may take its place.
    pub coalesce_key: Option<String>,
    /// The intent that this one was made from under a new key.
    pub replaces: Option<Key>,
    /// A print of the request, where the application brought its own key.
    pub fingerprint: Option<String>,

    /// How often it was claimed. Never goes down.
    pub attempts: u32,
    /// How many of those count against the budget.
    pub spent: u32,
    /// When it is due. Absent on settled rows, so that the index of due work cannot hold them.
    pub next_attempt_at: Option<Wall>,
    /// `next_attempt_at` as it was written.
    pub schedule: Option<Deadline>,
    /// The server's floor: no attempt before it.
    pub not_before: Option<Deadline>,
    /// Whether reconnecting may cut this wait short. Cleared when it did: once per wait.
    pub cuttable: bool,

    /// Counts the claims, so that a late answer can be told from a current one.
    pub fence: u64,
    /// The current claim's hold.
    pub lease: Option<Lease>,
    /// Whether nothing proves that the server did not act. Set in the claim.
    pub maybe_delivered: bool,
    /// What that was before the current claim.
    pub maybe_delivered_before: bool,
    /// Whether a person allowed one more attempt although it may be done twice. Cleared by the claim that uses it.
    pub may_repeat: bool,
    /// When the key was first used.
    pub key_used_at: Option<Wall>,
    /// How many 409s came in a row.
    pub conflicts: u32,
    /// Whether the first of them can only be a twin that the browser itself sent, or another's conflict.
    pub conflict_is_twin: bool,
    /// How often in a row credentials were refused.
    pub refused_credentials: u32,

    /// The last answer.
    pub evidence: Option<Evidence>,
    /// What is kept of the delivery.
    pub receipt: Option<Receipt>,
    /// When it settled.
    pub settled_at: Option<Wall>,
    /// How long what is kept of a settled row may stay.
    pub retention_ms: Millis,
    /// When what is kept of a settled row is to go.
    pub forget_at: Option<Wall>,
}

impl RequestHead {
    /// Whether a redirect is an error to `fetch`.
    pub fn refuses_redirects(&self) -> bool {
        let mut settings = self.settings.iter();
        settings.any(|(name, value)| name == "redirect" && value == "error")
    }
}

impl Record {
    /// A new intent, due at once.
    pub fn new(owner: &str, key: Key, request: RequestHead, policy: Policy, now: Wall) -> Self {
        let mut record = Record {
            v: VERSION,
            owner: owner.to_owned(),
            key,
            key_place: KeyPlace::default(),
            created_at: now,
            budget_from: now,
            state: State::Pending,
            reason: None,
            origin: super::verdict::origin_of(&request.url).to_owned(),
            needs: String::new(),
            request,
            left_out: Vec::new(),
            hooks: Vec::new(),
            is_delivered: None,
            policy,
            meta: None,
            form_key: None,
            lane: None,
            lane_seq: None,
            on_parked: OnParked::Hold,
            coalesce_key: None,
            replaces: None,
            fingerprint: None,
            attempts: 0,
            spent: 0,
            next_attempt_at: None,
            schedule: None,
            not_before: None,
            cuttable: false,
            fence: 0,
            lease: None,
            maybe_delivered: false,
            maybe_delivered_before: false,
            may_repeat: false,
            key_used_at: None,
            conflicts: 0,
            conflict_is_twin: false,
            refused_credentials: 0,
            evidence: None,
            receipt: None,
            settled_at: None,
            retention_ms: RETENTION_MS,
            forget_at: None,
        };
        record.schedule(Deadline::after(now, 0));
        record
    }

    /// Says what a page must have to make an attempt: headers that are not stored, and hooks.
    pub fn require(&mut self, left_out: Vec<String>, hooks: Vec<String>) {
        self.needs = [left_out.join(" "), hooks.join(" ")].join("/");
        if left_out.is_empty() && hooks.is_empty() {
            self.needs.clear();
        }
        self.left_out = left_out;
        self.hooks = hooks;
    }

    /// Sets when the next attempt is due.
    pub(crate) fn schedule(&mut self, deadline: Deadline) {
        self.next_attempt_at = Some(deadline.at());
        self.schedule = Some(deadline);
    }

    /// Whether a clock that was ahead wrote one of its deadlines.
    pub fn is_from_the_future(&self, now: Wall) -> bool {
        self.schedule
            .is_some_and(|deadline| deadline.is_from_the_future(now))
    }

    /// Waits every length again from now where a clock that was ahead wrote the deadline.
    pub(crate) fn anchor(&mut self, now: Wall) {
        if let Some(deadline) = self.schedule {
            self.schedule(deadline.anchored(now));
        }
        self.not_before = self.not_before.map(|deadline| deadline.anchored(now));
        if let Some(lease) = &mut self.lease {
            lease.written_at = lease.written_at.min(now);
        }
    }

    /// Reads a stored row.
    ///
    /// # Errors
    /// An error that names the field if the row is not of a shape that this build writes: [`Unreadable`].
    pub fn read<S: Source>(source: &S) -> Result<Self, Unreadable> {
        let mut fields = Fields::of(source, "row");
        let mut version = 0;
        fields.field("v", &mut version);
        if version > VERSION {
            return Err(Unreadable::Newer);
        }
        let mut row = Record::new(
            "",
            Key::unread(),
            RequestHead::default(),
            Policy::patient(),
            0,
        );
        row.next_attempt_at = None;
        row.schedule = None;
        row.fields(&mut fields);
        Ok(fields.finish(row)?)
    }
}

/// Why a row could not be read. Such a row is left alone and counted.
#[derive(Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// A newer build wrote it.
    Newer,
    /// It is damaged; the error names the field.
    Damaged(Error),
}

impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        Unreadable::Damaged(error)
    }
}

impl Shape for Record {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        visitor.require(&[
            "v",
            "owner",
            "key",
            "createdAt",
            "budgetFrom",
            "state",
            "request",
            "origin",
            "needs",
        ]);
        visitor.field("v", &mut self.v);
        visitor.field("owner", &mut self.owner);
        visitor.field("key", &mut self.key);
        visitor.object("keyPlace", &mut self.key_place);
        visitor.field("createdAt", &mut self.created_at);
        visitor.field("budgetFrom", &mut self.budget_from);
        visitor.field("state", &mut self.state);
        visitor.field("reason", &mut self.reason);
        visitor.object("request", &mut self.request);
        visitor.field("origin", &mut self.origin);
        visitor.field("needs", &mut self.needs);
        visitor.field("leftOut", &mut self.left_out);
        visitor.field("hooks", &mut self.hooks);
        visitor.optional("isDelivered", &mut self.is_delivered);
        visitor.object("policy", &mut self.policy);
        visitor.field("meta", &mut self.meta);
        visitor.field("formKey", &mut self.form_key);
        visitor.field("lane", &mut self.lane);
        visitor.field("laneSeq", &mut self.lane_seq);
        visitor.field("onParked", &mut self.on_parked);
        visitor.field("coalesceKey", &mut self.coalesce_key);
        visitor.field("replaces", &mut self.replaces);
        visitor.field("fingerprint", &mut self.fingerprint);
        visitor.field("attempts", &mut self.attempts);
        visitor.field("spent", &mut self.spent);
        visitor.field("nextAttemptAt", &mut self.next_attempt_at);
        visitor.optional("schedule", &mut self.schedule);
        visitor.optional("notBefore", &mut self.not_before);
        visitor.field("cuttable", &mut self.cuttable);
        visitor.field("fence", &mut self.fence);
        visitor.optional("lease", &mut self.lease);
        visitor.field("maybeDelivered", &mut self.maybe_delivered);
        visitor.field("maybeDeliveredBefore", &mut self.maybe_delivered_before);
        visitor.field("mayRepeat", &mut self.may_repeat);
        visitor.field("keyUsedAt", &mut self.key_used_at);
        visitor.field("conflicts", &mut self.conflicts);
        visitor.field("conflictIsTwin", &mut self.conflict_is_twin);
        visitor.field("refusedCredentials", &mut self.refused_credentials);
        visitor.optional("evidence", &mut self.evidence);
        visitor.optional("receipt", &mut self.receipt);
        visitor.field("settledAt", &mut self.settled_at);
        visitor.millis("retentionMs", &mut self.retention_ms);
        visitor.field("forgetAt", &mut self.forget_at);
    }
}

impl Shape for RequestHead {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        visitor.require(&["method", "url"]);
        visitor.field("method", &mut self.method);
        visitor.field("url", &mut self.url);
        visitor.field("headers", &mut self.headers);
        visitor.field("settings", &mut self.settings);
        visitor.field("bodyBytes", &mut self.body_bytes);
    }
}

impl Shape for Deadline {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        visitor.require(&["writtenAt", "lengthMs"]);
        visitor.field("writtenAt", &mut self.written_at);
        visitor.field("lengthMs", &mut self.length_ms);
    }
}

impl Shape for Lease {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        visitor.require(&["writtenAt", "lengthMs"]);
        visitor.field("writtenAt", &mut self.written_at);
        visitor.field("lengthMs", &mut self.length_ms);
        visitor.field("locked", &mut self.locked);
    }
}

impl Shape for Evidence {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        visitor.field("at", &mut self.at);
        visitor.field("status", &mut self.status);
        visitor.field("url", &mut self.url);
        visitor.field("redirected", &mut self.redirected);
        visitor.field("headers", &mut self.headers);
        visitor.field("excerpt", &mut self.excerpt);
        visitor.field("hint", &mut self.hint);
    }
}

impl Shape for Receipt {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        visitor.field("at", &mut self.at);
        visitor.field("status", &mut self.status);
        visitor.field("url", &mut self.url);
        visitor.field("location", &mut self.location);
        visitor.field("excerpt", &mut self.excerpt);
    }
}
