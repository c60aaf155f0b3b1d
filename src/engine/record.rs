//! The stored form of an intent: one row, which only ever changes its state.

use super::decode::{Fields, Source};
use super::env::{Millis, Wall};
use super::error::Error;
use super::key::{Key, KeyPlace};
use super::policy::Policy;
use super::words::words;
use serde::Serialize;

/// The version of the rows that this build writes. It never rewrites a row of a higher one.
pub const VERSION: u32 = 1;

words! {
    /// Where an intent stands.
    pub enum State {
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
}

words! {
    /// Why an intent is in its state. A closed list; which reasons go with which state is said at each.
    pub enum Reason {
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
        /// Parked: the page's Content-Security-Policy forbids the URL. Nothing was sent.
        BlockedByCsp = "blocked-by-csp",
        /// Parked: the application's hook threw or hung over a 2xx.
        HookFailed = "hook-failed",

        /// Cancelled: by the person or the application.
        Discarded = "discarded",
        /// Cancelled: a newer intent took its place.
        Superseded = "superseded",
        /// Cancelled: everything of its owner was deleted.
        Cleared = "cleared",
    }
}

words! {
    /// What may be behind failures that a page cannot tell apart.
    pub enum Hint {
        /// Every attempt fails at once although the page is online and other requests succeed: an extension, a proxy
        /// or a missing CORS header.
        BlockedOrCors = "blocked-or-cors",
    }
}

/// A moment in the future, kept as when it was written and how long was to be waited. A moment alone could not be told
/// from one that a wrong clock wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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

    fn anchored(self, now: Wall) -> Self {
        Deadline {
            written_at: self.written_at.min(now),
            ..self
        }
    }
}

/// A claim's hold on an intent: nobody else may make an attempt until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// The wall clock when it was taken.
    pub written_at: Wall,
    /// How long it holds: the attempt's timeout and twice the grace.
    pub length_ms: Millis,
    /// Whether it was taken under the intent's Web Lock: if that lock is free, its holder is gone.
    pub locked: bool,
}

/// The frozen request. Its body lies in a store of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestHead {
    /// The method, as `Request.method` has it.
    pub method: String,
    /// The absolute URL, fragment included.
    pub url: String,
    /// The headers that may be stored, in order, names in lower case. The exact `content-type` is among them.
    pub headers: Vec<(String, String)>,
    /// `Request.mode`, and so on for those below. Empty: the default.
    pub mode: String,
    /// `Request.credentials`.
    pub credentials: String,
    /// `Request.redirect`.
    pub redirect: String,
    /// `Request.referrerPolicy`.
    pub referrer_policy: String,
    /// `Request.cache`.
    pub cache: String,
    /// `Request.integrity`.
    pub integrity: String,
    /// The length of the body in bytes.
    pub body_bytes: u64,
}

/// What the last answer was, for a person to judge by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// When it came.
    pub at: Wall,
    /// The status, unless there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The URL that answered.
    pub url: String,
    /// Whether that is another than was asked.
    pub redirected: bool,
    /// The headers that matter for the verdict, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The first 4 KiB of the body, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// What may be behind a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
}

/// What is kept of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// When the answer came.
    pub at: Wall,
    /// The status.
    pub status: u16,
    /// The URL that answered.
    pub url: String,
    /// The `Location` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The first 4 KiB of the body, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

/// One intent as it is stored. The database's indexes read `owner`, `createdAt`, `nextAttemptAt`, `lane`, `laneSeq`,
/// `coalesceKey`, `formKey` and `forgetAt`; a row without the property is not in that index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What is sent.
    pub request: RequestHead,
    /// The names of headers that were sent but must not be stored, in lower case.
    pub left_out: Vec<String>,
    /// The names of the hooks it was submitted with.
    pub hooks: Vec<String>,
    /// The schedule it follows.
    pub policy: Policy,
    /// The application's own JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<String>,
    /// The form it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_key: Option<String>,
    /// The order it keeps with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Its place in the lane, until it leaves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane_seq: Option<u64>,
    /// What it stands for, so that a newer one may take its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coalesce_key: Option<String>,
    /// The intent that this one was made from under a new key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Key>,
    /// A print of the request, where the application brought its own key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,

    /// How often it was claimed. Never goes down.
    pub attempts: u32,
    /// How many of those count against the budget.
    pub spent: u32,
    /// When it is due. Absent on settled rows, so that the index of due work cannot hold them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Wall>,
    /// `next_attempt_at` as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Deadline>,
    /// The server's floor: no attempt before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Deadline>,
    /// Whether reconnecting may cut this wait short. Cleared when it did: once per wait.
    pub cuttable: bool,

    /// Counts the claims, so that a late answer can be told from a current one.
    pub fence: u64,
    /// The current claim's hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// Whether nothing proves that the server did not act. Set in the claim.
    pub maybe_delivered: bool,
    /// What that was before the current claim.
    pub maybe_delivered_before: bool,
    /// Whether a person allowed one more attempt although it may be done twice. Cleared by the claim that uses it.
    pub may_repeat: bool,
    /// When the key was first used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_used_at: Option<Wall>,
    /// How many 409s came in a row.
    pub conflicts: u32,
    /// Whether the first of them can only be a twin that the browser itself sent, or another's conflict.
    pub conflict_is_twin: bool,
    /// How often in a row credentials were refused.
    pub refused_credentials: u32,

    /// The last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What is kept of the delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// When it settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<Wall>,
    /// When what is kept of a settled row is to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget_at: Option<Wall>,
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
            request,
            left_out: Vec::new(),
            hooks: Vec::new(),
            policy,
            meta: None,
            form_key: None,
            lane: None,
            lane_seq: None,
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
            forget_at: None,
        };
        record.schedule(Deadline::after(now, 0));
        record
    }

    /// The origin that it is sent to.
    pub fn origin(&self) -> &str {
        super::verdict::origin_of(&self.request.url)
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
        let fields = Fields::of(source, "row")?;
        let version = fields.required("v", fields.count("v")?)?;
        if version > VERSION {
            return Err(Unreadable::Newer);
        }
        Ok(read_record(&fields, version)?)
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

fn read_record<S: Source>(fields: &Fields<'_, S>, v: u32) -> Result<Record, Error> {
    let text = |name: &str| fields.required(name, fields.string(name)?);
    let flag = |name: &str| Ok::<_, Error>(fields.boolean(name)?.unwrap_or(false));
    let number = |name: &str| Ok::<_, Error>(fields.count(name)?.unwrap_or(0));
    let key = |name: &str| fields.string(name)?.map(|key| Key::parse(&key)).transpose();
    Ok(Record {
        v,
        owner: text("owner")?,
        key: fields.required("key", key("key")?)?,
        key_place: nested(fields, "keyPlace", KeyPlace::read)?.unwrap_or_default(),
        created_at: fields.required("createdAt", fields.whole("createdAt")?)?,
        budget_from: fields.required("budgetFrom", fields.whole("budgetFrom")?)?,
        state: fields.required("state", fields.word("state", "a state", State::parse)?)?,
        reason: fields.word("reason", "a reason", Reason::parse)?,
        request: fields.required("request", nested(fields, "request", read_request)?)?,
        left_out: fields.strings("leftOut")?.unwrap_or_default(),
        hooks: fields.strings("hooks")?.unwrap_or_default(),
        policy: nested(fields, "policy", |policy| {
            let mut read = Policy::patient();
            read.read_fields(policy)?;
            Ok(read)
        })?
        .unwrap_or_else(Policy::patient),
        meta: fields.string("meta")?,
        form_key: fields.string("formKey")?,
        lane: fields.string("lane")?,
        lane_seq: fields.whole("laneSeq")?,
        coalesce_key: fields.string("coalesceKey")?,
        replaces: key("replaces")?,
        fingerprint: fields.string("fingerprint")?,
        attempts: number("attempts")?,
        spent: number("spent")?,
        next_attempt_at: fields.whole("nextAttemptAt")?,
        schedule: nested(fields, "schedule", read_deadline)?,
        not_before: nested(fields, "notBefore", read_deadline)?,
        cuttable: flag("cuttable")?,
        fence: fields.whole("fence")?.unwrap_or(0),
        lease: nested(fields, "lease", |lease| {
            let Deadline {
                written_at,
                length_ms,
            } = read_deadline(lease)?;
            Ok(Lease {
                written_at,
                length_ms,
                locked: lease.boolean("locked")?.unwrap_or(false),
            })
        })?,
        maybe_delivered: flag("maybeDelivered")?,
        maybe_delivered_before: flag("maybeDeliveredBefore")?,
        may_repeat: flag("mayRepeat")?,
        key_used_at: fields.whole("keyUsedAt")?,
        conflicts: number("conflicts")?,
        conflict_is_twin: flag("conflictIsTwin")?,
        refused_credentials: number("refusedCredentials")?,
        evidence: nested(fields, "evidence", read_evidence)?,
        receipt: nested(fields, "receipt", |receipt| {
            Ok(Receipt {
                at: receipt.whole("at")?.unwrap_or(0),
                status: read_status(receipt)?.unwrap_or(0),
                url: receipt.string("url")?.unwrap_or_default(),
                location: receipt.string("location")?,
                excerpt: receipt.string("excerpt")?,
            })
        })?,
        settled_at: fields.whole("settledAt")?,
        forget_at: fields.whole("forgetAt")?,
    })
}

/// Reads the object under `name`, if it is there.
fn nested<S: Source, T>(
    fields: &Fields<'_, S>,
    name: &str,
    read: impl FnOnce(&Fields<'_, S>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    match fields.get(name) {
        None => Ok(None),
        Some(object) => read(&Fields::of(&object, name)?).map(Some),
    }
}

fn read_request<S: Source>(fields: &Fields<'_, S>) -> Result<RequestHead, Error> {
    let setting = |name: &str| Ok::<_, Error>(fields.string(name)?.unwrap_or_default());
    Ok(RequestHead {
        method: fields.required("method", fields.string("method")?)?,
        url: fields.required("url", fields.string("url")?)?,
        headers: fields.pairs("headers")?.unwrap_or_default(),
        mode: setting("mode")?,
        credentials: setting("credentials")?,
        redirect: setting("redirect")?,
        referrer_policy: setting("referrerPolicy")?,
        cache: setting("cache")?,
        integrity: setting("integrity")?,
        body_bytes: fields.whole("bodyBytes")?.unwrap_or(0),
    })
}

fn read_deadline<S: Source>(fields: &Fields<'_, S>) -> Result<Deadline, Error> {
    Ok(Deadline {
        written_at: fields.required("writtenAt", fields.whole("writtenAt")?)?,
        length_ms: fields.required("lengthMs", fields.whole("lengthMs")?)?,
    })
}

fn read_evidence<S: Source>(fields: &Fields<'_, S>) -> Result<Evidence, Error> {
    Ok(Evidence {
        at: fields.whole("at")?.unwrap_or(0),
        status: read_status(fields)?,
        url: fields.string("url")?.unwrap_or_default(),
        redirected: fields.boolean("redirected")?.unwrap_or(false),
        headers: fields.pairs("headers")?.unwrap_or_default(),
        excerpt: fields.string("excerpt")?,
        hint: fields.word("hint", "a hint", Hint::parse)?,
    })
}

fn read_status<S: Source>(fields: &Fields<'_, S>) -> Result<Option<u16>, Error> {
    Ok(fields
        .whole("status")?
        .map(|status| u16::try_from(status).unwrap_or(0)))
}
