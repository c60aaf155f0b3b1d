//! Freezing a request to bytes, and building the request of an attempt from them.

use super::global::is_https;
use super::source::{get, set};
use crate::engine::key_field::with_key_field;
use crate::engine::options::is_forbidden_header;
use crate::engine::text::cut;
use crate::engine::{Code, Error, OutboxOptions, Record, RequestHead};
use js_sys::futures::JsFuture;
use js_sys::{Array, Object, Uint8Array};
use wasm_bindgen::prelude::*;
#[cfg(feature = "js")]
use {
    super::source::Js,
    crate::engine::{decode::Source, shape::Value},
};

/// A request to submit. Made like the argument of `fetch`; what `fetch` would refuse is refused here.
#[derive(Debug, Clone)]
pub struct Request {
    request: web_sys::Request,
    /// The names of the headers that the caller set: `Request` drops forbidden ones in silence.
    named: Vec<String>,
    /// A body that a `Request` cannot take everywhere: a stream.
    body: Option<web_sys::Response>,
}

impl Request {
    /// A POST without a body.
    ///
    /// # Errors
    /// `bad-request` for a URL that cannot be sent to.
    pub fn post(url: &str) -> Result<Self, Error> {
        Request::build("POST", url, &[], None)
    }

    /// A POST of JSON text.
    ///
    /// # Errors
    /// `bad-request` for a URL that cannot be sent to.
    pub fn json(url: &str, json: &str) -> Result<Self, Error> {
        let body = json.as_bytes();
        Request::build(
            "POST",
            url,
            &[("content-type", "application/json")],
            Some(body),
        )
    }

    /// A request of any method, with headers and a body.
    ///
    /// # Errors
    /// `bad-request` for what `new Request` throws on.
    pub fn build(
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Self, Error> {
        let init = Object::new();
        set(&init, "method", &method.into());
        let pairs: Array = headers
            .iter()
            .map(|(name, value)| pair(name, value))
            .collect();
        set(&init, "headers", &pairs);
        if let Some(body) = body {
            set(&init, "body", &Uint8Array::from(body));
        }
        let request = web_sys::Request::new_with_str_and_init(url, init.unchecked_ref())
            .map_err(|_| Error::about(Code::BadRequest, "request", "fetch refuses it"))?;
        Ok(Request {
            request,
            named: headers
                .iter()
                .map(|(name, _)| name.to_ascii_lowercase())
                .collect(),
            body: None,
        })
    }

    /// The browser's own `Request`, unused, with the names of the headers that the caller set (lower case).
    pub fn from_browser(request: web_sys::Request, named: Vec<String>) -> Self {
        Request {
            request,
            named,
            body: None,
        }
    }

    /// What the face hands over: the browser's own `Request`, unused, the names of the headers that the caller set, in
    /// lower case, and as `body` a `Response` around a stream.
    #[cfg(feature = "js")]
    pub(crate) fn read(from: &Js) -> Self {
        Request {
            request: get(&from.0, "request").unchecked_into(),
            named: from
                .get("named")
                .and_then(|named| Vec::read(&named))
                .unwrap_or_default(),
            body: from.get("body").map(|body| body.0.unchecked_into()),
        }
    }
}

fn pair(name: &str, value: &str) -> JsValue {
    Array::of2(&name.into(), &value.into()).into()
}

/// The settings of a `Request` that are kept, and what they are unless a page says otherwise.
const SETTINGS: [(&str, &str); 6] = [
    ("mode", "cors"),
    ("credentials", "same-origin"),
    ("redirect", "follow"),
    ("referrerPolicy", ""),
    ("cache", "default"),
    ("integrity", ""),
];

/// A request as bytes.
pub struct Frozen {
    /// What is stored.
    pub head: RequestHead,
    /// The headers that are sent but must not be stored.
    pub left_out: Vec<(String, String)>,
    /// The body.
    pub body: Uint8Array,
}

/// Checks a request and reads it to bytes, once: every attempt sends these.
///
/// # Errors
/// `bad-request` for what cannot or must not be sent, `too-large` above `max_body_bytes`.
pub async fn freeze(request: Request, options: &OutboxOptions) -> Result<Frozen, Error> {
    let Request {
        request,
        named,
        body,
    } = request;
    let setting = |name: &str| get(&request, name).as_string().unwrap_or_default();
    let url = setting("url");
    check(&url, &setting("mode"), &named)?;
    let mut head = RequestHead {
        method: setting("method"),
        url,
        ..RequestHead::default()
    };
    for (name, default) in SETTINGS {
        let value = setting(name);
        if value != default {
            head.settings.push((name.to_owned(), value));
        }
    }
    let mut left_out = Vec::new();
    for entry in Array::from(&request.headers()).iter() {
        let entry: Array = entry.unchecked_into();
        if let (Some(name), Some(value)) = (entry.get(0).as_string(), entry.get(1).as_string()) {
            let place = &options.key_place;
            if place.field.is_none() && place.header.eq_ignore_ascii_case(&name) {
                return Err(Error::about(
                    Code::BadRequest,
                    &name,
                    "this header is the library's: a key of your own is options.key",
                ));
            }
            let list = if options.may_persist(&name) {
                &mut head.headers
            } else {
                &mut left_out
            };
            list.push((name, value));
        }
    }
    let unreadable = |_| Error::about(Code::BadRequest, "body", "it could not be read");
    let buffer = match body {
        Some(body) => body.array_buffer(),
        None => request.array_buffer(),
    };
    let buffer = buffer.map_err(unreadable)?;
    let body = Uint8Array::new(&JsFuture::from(buffer).await.map_err(unreadable)?);
    head.body_bytes = u64::from(body.length());
    if head.body_bytes > options.max_body_bytes {
        return Err(Error::about(
            Code::TooLarge,
            "body",
            "it has more bytes than maxBodyBytes",
        ));
    }
    if let Some(field) = &options.key_place.field {
        // Tried now, so that a body that cannot carry the key is an error before anything is stored.
        with_key_field(content_type(&head), &body.to_vec(), field, "0")
            .map_err(|error| Error::about(Code::BadOption, "options.keyField", error.as_str()))?;
    }
    Ok(Frozen {
        head,
        left_out,
        body,
    })
}

fn check(url: &str, mode: &str, named: &[String]) -> Result<(), Error> {
    if mode == "no-cors" || mode == "navigate" {
        return Err(Error::about(
            Code::BadRequest,
            "mode",
            "expected one whose answer can be read",
        ));
    }
    if let Some(name) = named.iter().find(|name| is_forbidden_header(name)) {
        return Err(Error::about(
            Code::BadRequest,
            name,
            "the browser does not let a page set this header",
        ));
    }
    let insecure = url.strip_prefix("http://");
    if insecure.is_none() && !url.starts_with("https://") {
        return Err(Error::about(
            Code::BadRequest,
            "url",
            "expected http or https",
        ));
    }
    if insecure.is_some_and(|rest| is_https() && !is_loopback(rest)) {
        return Err(Error::about(
            Code::BadRequest,
            "url",
            "expected https: the browser blocks http from a page that came over https",
        ));
    }
    Ok(())
}

/// Whether browsers treat the host as trustworthy without TLS.
fn is_loopback(rest: &str) -> bool {
    let (host, _) = cut(rest, b"/?#:");
    host == "localhost"
        || host.ends_with(".localhost")
        || host.starts_with("127.")
        || rest.starts_with("[::1]")
}

fn content_type(head: &RequestHead) -> &str {
    head.headers
        .iter()
        .find(|(name, _)| name == "content-type")
        .map_or("", |(_, value)| value)
}

/// What `fetch` is called with besides the URL: built anew from the frozen bytes for every attempt. `headers`: those that
/// are not stored, and those of `authorize`, which take the place of others of their name.
///
/// # Errors
/// A body that cannot carry the key, which it could at the submit.
pub fn thaw(
    record: &Record,
    [left_out, authorized]: [&[(String, String)]; 2],
    body: &Uint8Array,
    signal: &web_sys::AbortSignal,
) -> Result<Object, JsValue> {
    let head = &record.request;
    let init = Object::new();
    set(&init, "method", &head.method.as_str().into());
    set(&init, "signal", signal);
    for (name, value) in &head.settings {
        set(&init, name, &value.as_str().into());
    }
    let headers = Array::new();
    let key = record.key_place.header(&record.key);
    // Set anew: two headers of a name would become one list.
    let is_key = |name: &str| {
        key.as_ref()
            .is_some_and(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    let is_new = |name: &str| authorized.iter().any(|(new, _)| new == name) && !is_key(name);
    let kept = head.headers.iter().chain(left_out);
    for (name, value) in kept.filter(|(name, _)| !is_new(name)).chain(authorized) {
        if !is_key(name) {
            headers.push(&pair(name, value));
        }
    }
    if let Some((name, value)) = &key {
        headers.push(&pair(name, value));
    }
    set(&init, "headers", &headers);
    if !matches!(head.method.as_str(), "GET" | "HEAD") {
        match &record.key_place.field {
            None => set(&init, "body", body),
            Some(field) => {
                let key = record.key.as_str();
                let bytes = with_key_field(content_type(head), &body.to_vec(), field, key)
                    .map_err(|error| JsValue::from_str(error.as_str()))?;
                set(&init, "body", &Uint8Array::from(bytes.as_slice()));
            }
        }
    }
    Ok(init)
}
