//! The options of an outbox and of a submission: defaults, and reading them from what a developer wrote.

use super::decode::{Fields, Source};
use super::error::{Code, Error};
use super::key::{Key, KeyPlace};
use super::policy::{OnMaybeDelivered, Policy};
use super::record::Record;

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

/// Options of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxOptions {
    /// The name of the outbox and of its database. Default `resubmit`.
    pub name: String,
    /// Whose intents these are. Default `anonymous`.
    pub owner: String,
    /// The schedule of submissions that bring none. Default [`Policy::patient`].
    pub policy: Policy,
    /// How the key goes into the request. Default: bare, in `Idempotency-Key`.
    pub key_place: KeyPlace,
    /// Names of further headers that may be stored, in lower case.
    pub persist_headers: Vec<String>,
    /// The largest body, in bytes.
    pub max_body_bytes: u64,
    /// Whether to use IndexedDB; otherwise everything stays in this page.
    pub durable: bool,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        OutboxOptions {
            name: "resubmit".into(),
            owner: "anonymous".into(),
            policy: Policy::patient(),
            key_place: KeyPlace::default(),
            persist_headers: Vec::new(),
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
        let fields = Fields::of(source, "options")?;
        fields.only(&[
            "name",
            "owner",
            "policy",
            "keyFormat",
            "keyHeader",
            "keyField",
            "persistHeaders",
            "maxBodyBytes",
            "storage",
            "onMaybeDelivered",
            // Read by the JavaScript face.
            "onAbort",
            "wasm",
        ])?;
        let default = OutboxOptions::default();
        let mut policy = read_policy(&fields, default.policy)?;
        read_on_maybe_delivered(&fields, &mut policy)?;
        let storage =
            fields.word(
                "storage",
                "expected \"indexeddb\" or \"memory\"",
                |word| match word {
                    "indexeddb" => Some(true),
                    "memory" => Some(false),
                    _ => None,
                },
            )?;
        let options = OutboxOptions {
            name: fields.string("name")?.unwrap_or(default.name),
            owner: fields.string("owner")?.unwrap_or(default.owner),
            policy,
            key_place: KeyPlace::read_named(&fields, "keyFormat", "keyHeader", "keyField")?,
            persist_headers: lower_case(fields.strings("persistHeaders")?.unwrap_or_default()),
            max_body_bytes: fields.whole("maxBodyBytes")?.unwrap_or(MAX_BODY_BYTES),
            durable: storage.unwrap_or(true),
        };
        for secret in SECRET {
            if options.persist_headers.iter().any(|name| name == secret) {
                return Err(fields.error(
                    "persistHeaders",
                    "credentials and CSRF tokens are never stored",
                ));
            }
        }
        let header = &options.key_place.header;
        if header.is_empty() || !header.bytes().all(is_token) {
            return Err(fields.error("keyHeader", "expected a header name"));
        }
        if options.name.is_empty() {
            return Err(fields.error("name", "expected a name that is not empty"));
        }
        Ok(options)
    }

    /// Whether a header may be stored. Names are compared in lower case, as `Headers` gives them.
    pub fn may_persist(&self, name: &str) -> bool {
        PERSISTED.contains(&name) || self.persist_headers.iter().any(|known| known == name)
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
    /// The schedule. Default: the outbox's.
    pub policy: Option<Policy>,
    /// What to do with what may have been delivered. Default: the outbox's.
    pub on_maybe_delivered: Option<OnMaybeDelivered>,
    /// Keep the disk out of it.
    pub in_memory: bool,
}

impl SubmitOptions {
    /// Reads the options of `submit`; `default` is the outbox's policy. `meta` comes as JSON text.
    ///
    /// # Errors
    /// `bad-option`, naming the field and what was expected.
    pub fn read<S: Source>(source: &S, default: &Policy) -> Result<Self, Error> {
        let fields = Fields::of(source, "options")?;
        fields.only(&[
            "key",
            "meta",
            "formKey",
            "policy",
            "durable",
            "onMaybeDelivered",
            // Read by the JavaScript face.
            "signal",
            "onAbort",
        ])?;
        let policy = match fields.get("policy") {
            Some(policy) => Some(default.clone().read(&policy, "options.policy")?),
            None => None,
        };
        let options = SubmitOptions {
            key: fields
                .string("key")?
                .map(|key| Key::parse(&key))
                .transpose()?,
            meta: fields.string("meta")?,
            form_key: fields.string("formKey")?,
            policy,
            on_maybe_delivered: fields.word(
                "onMaybeDelivered",
                ON_MAYBE_DELIVERED,
                OnMaybeDelivered::parse,
            )?,
            in_memory: fields.boolean("durable")? == Some(false),
        };
        if options
            .meta
            .as_ref()
            .is_some_and(|meta| meta.len() > MAX_META_BYTES)
        {
            return Err(Error::new(
                Code::BadOption,
                "options.meta: expected up to 4 KiB of JSON",
            ));
        }
        Ok(options)
    }

    /// Puts what the options say into a new row.
    pub fn apply(self, record: &mut Record) {
        record.meta = self.meta;
        record.form_key = self.form_key;
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

const ON_MAYBE_DELIVERED: &str = "expected \"resend\" or \"park\"";

fn read_policy<S: Source>(fields: &Fields<'_, S>, default: Policy) -> Result<Policy, Error> {
    match fields.get("policy") {
        Some(policy) => default.read(&policy, "options.policy"),
        None => Ok(default),
    }
}

fn read_on_maybe_delivered<S: Source>(
    fields: &Fields<'_, S>,
    policy: &mut Policy,
) -> Result<(), Error> {
    if let Some(choice) = fields.word(
        "onMaybeDelivered",
        ON_MAYBE_DELIVERED,
        OnMaybeDelivered::parse,
    )? {
        policy.on_maybe_delivered = choice;
    }
    Ok(())
}

fn lower_case(names: Vec<String>) -> Vec<String> {
    names
        .into_iter()
        .map(|name| name.to_ascii_lowercase())
        .collect()
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
    fn secrets_are_never_stored_by_default_and_names_are_compared_in_lower_case() {
        let options = OutboxOptions {
            persist_headers: lower_case(vec!["X-Tenant".into()]),
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
