//! The options of an outbox and of a submission: defaults, and reading them from what a developer wrote.

use super::acknowledgement::Acknowledgement;
use super::decode::{Fields, Source};
use super::env::Millis;
use super::error::Error;
use super::key::{Key, KeyPlace};
use super::owner::Owner;
use super::policy::{OnMaybeDelivered, Policy};
use super::record::{OnParked, Record, RETENTION_MS};
use super::shape::Visitor;
use super::words::words;

/// The largest body by default, in bytes: 25 MiB.
pub const MAX_BODY_BYTES: u64 = 25 * 1024 * 1024;

/// The longest `meta`, in bytes of JSON text: 4 KiB.
pub const MAX_META_BYTES: usize = 4 * 1024;

/// Headers that are always stored.
const PERSISTED: [&str; 4] = [
    "accept",
    "accept-language",
    "content-language",
    "content-type",
];

/// Headers that are never stored, whatever an application names: credentials, and tokens that are stale by the time
/// they would be used again.
const SECRET: [&str; 10] = [
    "authorization",
    "cookie",
    "cookie2",
    "set-cookie",
    "proxy-authorization",
    "x-csrf-token",
    "x-csrftoken",
    "x-xsrf-token",
    "x-api-key",
    "x-auth-token",
];

words! {
    /// Where the rows are kept.
    enum Storage: "expected \"indexeddb\" or \"memory\"" {
        /// In the browser's database.
        IndexedDb = "indexeddb",
        /// In this page.
        Memory = "memory",
    }
}

/// Options of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxOptions {
    /// The name of the outbox and of its database. Default `resubmit`.
    pub name: String,
    /// The current owner, as [`Outbox::set_owner`](crate::Outbox::set_owner) would set it; `Some(None)`: nobody. Default:
    /// whoever the database says is current, at first [`anonymous`](super::owner::ANONYMOUS).
    pub owner: Option<Owner>,
    /// The schedule of submissions that bring none. Default [`Policy::patient`].
    pub policy: Policy,
    /// How the key goes into the request. Default: bare, in `Idempotency-Key`.
    pub key_place: KeyPlace,
    /// Names of further headers that may be stored, in lower case.
    pub persist_headers: Vec<String>,
    /// What a 2xx must be to count as delivered, for submissions that do not say. Default: any.
    pub is_delivered: Option<Acknowledgement>,
    /// How long a settled row may keep body, evidence and receipt, in milliseconds. Default 30 days.
    pub retention_ms: Millis,
    /// The largest body, in bytes.
    pub max_body_bytes: u64,
    /// Whether to use IndexedDB; otherwise everything stays in this page.
    pub durable: bool,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        OutboxOptions {
            name: "resubmit".into(),
            owner: None,
            policy: Policy::patient(),
            key_place: KeyPlace::default(),
            persist_headers: Vec::new(),
            is_delivered: None,
            retention_ms: RETENTION_MS,
            max_body_bytes: MAX_BODY_BYTES,
            durable: true,
        }
    }
}

impl OutboxOptions {
    /// Reads the options of `createOutbox`.
    ///
    /// # Errors
    /// `bad-option`, naming the field and what was expected.
    pub fn read<S: Source>(source: &S) -> Result<Self, Error> {
        let mut fields = Fields::of(source, "options");
        fields.only(&[
            "name",
            "owner",
            "policy",
            "keyFormat",
            "keyHeader",
            "keyField",
            "persistHeaders",
            "isDelivered",
            "retentionMs",
            "maxBodyBytes",
            "storage",
            "onMaybeDelivered",
            // Read by the JavaScript face.
            "onAbort",
            "wasm",
        ]);
        let mut options = OutboxOptions::default();
        let mut storage = Storage::IndexedDb;
        fields.field("name", &mut options.name);
        options.owner = read_owner(&mut fields);
        if let Some(policy) = read_policy(&mut fields, &options.policy) {
            options.policy = policy;
        }
        fields.field("onMaybeDelivered", &mut options.policy.on_maybe_delivered);
        options
            .key_place
            .named(&mut fields, ["keyFormat", "keyHeader", "keyField"]);
        fields.field("persistHeaders", &mut options.persist_headers);
        options.is_delivered = Acknowledgement::read(&mut fields);
        fields.millis("retentionMs", &mut options.retention_ms);
        fields.field("maxBodyBytes", &mut options.max_body_bytes);
        fields.field("storage", &mut storage);
        options.durable = storage == Storage::IndexedDb;
        for name in &mut options.persist_headers {
            name.make_ascii_lowercase();
            if SECRET.contains(&name.as_str()) {
                fields.refuse(
                    "persistHeaders",
                    "credentials and CSRF tokens are never stored",
                );
            }
        }
        let header = &options.key_place.header;
        if header.is_empty() || !header.bytes().all(is_token) {
            fields.refuse("keyHeader", "expected a header name");
        }
        if options.name.is_empty() {
            fields.refuse("name", "expected a name that is not empty");
        }
        fields.finish(options)
    }

    /// Whether a header may be stored; `name` in lower case, as `Headers` gives it. Credentials and CSRF tokens never
    /// are, whatever the options say.
    pub fn may_persist(&self, name: &str) -> bool {
        let mut asked = self.persist_headers.iter();
        PERSISTED.contains(&name)
            || asked.any(|known| known.eq_ignore_ascii_case(name)) && !SECRET.contains(&name)
    }
}

/// Options of one submission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmitOptions {
    /// The application's own key.
    pub key: Option<Key>,
    /// The application's own JSON text.
    pub meta: Option<String>,
    /// Names the form.
    pub form_key: Option<String>,
    /// The order to keep: an intent goes when those of its lane that were submitted before it have settled. Default: the
    /// `coalesce_key`.
    pub lane: Option<String>,
    /// Whether it holds its lane while it is parked. Default: [`OnParked::Hold`]; of one that has a `coalesce_key` alone
    /// [`OnParked::Skip`], since a newer one brings what it would have said.
    pub on_parked: Option<OnParked>,
    /// What it stands for: a newer one takes the place of an older one that was never sent.
    pub coalesce_key: Option<String>,
    /// The schedule. Default: the outbox's.
    pub policy: Option<Policy>,
    /// What to do with what may have been delivered. Default: the outbox's.
    pub on_maybe_delivered: Option<OnMaybeDelivered>,
    /// What a 2xx must be to count as delivered. Default: the outbox's.
    pub is_delivered: Option<Acknowledgement>,
    /// Keep the disk out of it.
    pub in_memory: bool,
}

impl SubmitOptions {
    /// Reads the options of `submit`; `default` is the outbox's policy. `meta` comes as JSON text.
    ///
    /// # Errors
    /// `bad-option`, naming the field and what was expected.
    pub fn read<S: Source>(source: &S, default: &Policy) -> Result<Self, Error> {
        let mut fields = Fields::of(source, "options");
        fields.only(&[
            "key",
            "meta",
            "formKey",
            "lane",
            "onParked",
            "coalesceKey",
            "policy",
            "durable",
            "onMaybeDelivered",
            "isDelivered",
            // Read by the JavaScript face.
            "signal",
            "onAbort",
        ]);
        let mut options = SubmitOptions::default();
        let mut durable = true;
        fields.field("key", &mut options.key);
        fields.field("meta", &mut options.meta);
        fields.field("formKey", &mut options.form_key);
        fields.field("lane", &mut options.lane);
        fields.field("onParked", &mut options.on_parked);
        fields.field("coalesceKey", &mut options.coalesce_key);
        options.policy = read_policy(&mut fields, default);
        fields.field("onMaybeDelivered", &mut options.on_maybe_delivered);
        options.is_delivered = Acknowledgement::read(&mut fields);
        fields.field("durable", &mut durable);
        options.in_memory = !durable;
        for (name, value) in [
            ("lane", &options.lane),
            ("coalesceKey", &options.coalesce_key),
        ] {
            if value.as_deref() == Some("") {
                fields.refuse(name, "expected a name that is not empty");
            }
        }
        if options.meta.as_ref().map_or(0, String::len) > MAX_META_BYTES {
            fields.refuse("meta", "expected up to 4 KiB of JSON");
        }
        fields.finish(options)
    }

    /// Puts what the options say into a new row.
    pub fn apply(self, record: &mut Record) {
        record.meta = self.meta;
        record.form_key = self.form_key;
        record.on_parked = self
            .on_parked
            .unwrap_or(match (&self.lane, &self.coalesce_key) {
                (None, Some(_)) => OnParked::Skip,
                _ => OnParked::Hold,
            });
        record.lane = self.lane.or_else(|| self.coalesce_key.clone());
        record.coalesce_key = self.coalesce_key;
        record.is_delivered = self.is_delivered.or(record.is_delivered.take());
        if let Some(policy) = self.policy {
            let on_maybe_delivered = record.policy.on_maybe_delivered;
            record.policy = policy;
            record.policy.on_maybe_delivered = on_maybe_delivered;
        }
        if let Some(on_maybe_delivered) = self.on_maybe_delivered {
            record.policy.on_maybe_delivered = on_maybe_delivered;
        }
    }
}

/// The owner that was named. `null` is nobody, and not the same as none named.
fn read_owner<S: Source>(fields: &mut Fields<'_, S>) -> Option<Owner> {
    if fields.is_null("owner") {
        return Some(None);
    }
    let mut owner = None;
    fields.field("owner", &mut owner);
    owner.map(Some)
}

fn read_policy<S: Source>(fields: &mut Fields<'_, S>, default: &Policy) -> Option<Policy> {
    let policy = fields.get("policy")?;
    fields.keep(default.clone().read(&policy, "options.policy"))
}

/// A character of a `token` (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether `fetch` would drop a header of that name in silence (the *forbidden request-headers* of the Fetch standard).
pub fn is_forbidden_header(name: &str) -> bool {
    const FORBIDDEN: [&str; 21] = [
        "accept-charset",
        "accept-encoding",
        "access-control-request-headers",
        "access-control-request-method",
        "access-control-request-private-network",
        "connection",
        "content-length",
        "cookie",
        "cookie2",
        "date",
        "dnt",
        "expect",
        "host",
        "keep-alive",
        "origin",
        "referer",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    FORBIDDEN.contains(&name)
        || name == "via"
        || name.starts_with("proxy-")
        || name.starts_with("sec-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_never_stored() {
        let asked = SECRET.iter().copied().chain(["X-Tenant"]);
        let options = OutboxOptions {
            persist_headers: asked.map(String::from).collect(),
            ..OutboxOptions::default()
        };
        for stored in ["content-type", "accept", "x-tenant"] {
            assert!(options.may_persist(stored));
        }
        for secret in SECRET {
            assert!(!options.may_persist(secret));
        }
        assert!(!options.may_persist("x-other"));
    }

    #[test]
    fn headers_that_fetch_drops() {
        for name in ["cookie", "host", "sec-fetch-mode", "proxy-x", "via"] {
            assert!(is_forbidden_header(name));
        }
        assert!(!is_forbidden_header("x-cookie"));
    }
}
