//! One attempt: a `fetch`, and what its answer says.

use super::global::offline;
use super::source::{get, set, Js};
use super::task::spawn;
use crate::engine::decode::Source;
use crate::engine::text::cut;
use crate::engine::verdict::AT_ONCE;
use crate::engine::{Answer, Failure, Head, Record};
use gloo_timers::future::TimeoutFuture;
use js_sys::futures::JsFuture;
use js_sys::{Object, Promise, Uint8Array};
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::task::Poll;
use wasm_bindgen::prelude::*;
use web_sys::{ReadableStreamDefaultReader, Response};

#[wasm_bindgen]
extern "C" {
    type TextDecoder;
    #[wasm_bindgen(constructor)]
    fn new() -> TextDecoder;
    /// What is no UTF-8 becomes U+FFFD.
    #[wasm_bindgen(method)]
    fn decode(this: &TextDecoder, bytes: &[u8]) -> String;
}

/// How much of a body is kept as an excerpt, in bytes.
const EXCERPT_BYTES: usize = 4 * 1024;

/// How long reading it may hold up the verdict, in milliseconds.
const EXCERPT_MS: u32 = 2_000;

/// What came of an attempt, and the response if there is one, its body unread.
pub struct Ended {
    /// For the engine.
    pub answer: Answer,
    /// For the caller.
    pub response: Option<Response>,
}

impl Default for Ended {
    fn default() -> Self {
        Ended {
            answer: Answer::Failure(Failure::default()),
            response: None,
        }
    }
}

/// Follows a `fetch` that was called to its end. `excerpt_always`: also of a success, for its receipt. `asked`: a header that the
/// verdict needs. `timeout`: when
/// the attempt ends; a head that came before that is an answer, however long its body takes. `None` if what came is no
/// response.
pub async fn follow(
    promise: Promise,
    excerpt_always: bool,
    asked: Option<&str>,
    timeout: u64,
    blocked_by_csp: impl Fn() -> bool,
    elapsed: impl Fn() -> u64,
) -> Option<Ended> {
    let offline_before = offline();
    let ended = match JsFuture::from(promise).await {
        Ok(response) => {
            // (One of another realm is no instance of ours.)
            get(&response, "redirected").as_bool()?;
            let response: Response = response.unchecked_into();
            let patience = patience(timeout, elapsed(), EXCERPT_MS);
            let head = head(&response, excerpt_always, asked, patience).await;
            Ended {
                answer: Answer::Response(head),
                response: Some(response),
            }
        }
        Err(_) => {
            let elapsed = elapsed();
            let offline_after = offline();
            if elapsed < AT_ONCE {
                // A violation of the page's policy is reported in a task of its own, after the rejection.
                TimeoutFuture::new(0).await;
            }
            Ended {
                answer: Answer::Failure(Failure {
                    elapsed,
                    offline_before,
                    offline_after,
                    blocked_by_csp: blocked_by_csp(),
                    ..Failure::default()
                }),
                response: None,
            }
        }
    };
    Some(ended)
}

/// How long what comes after the head may take: half of the time that is left of the attempt, up to a limit. All in
/// milliseconds.
pub fn patience(timeout: u64, elapsed: u64, limit: u32) -> u32 {
    let left = timeout.saturating_sub(elapsed) / 2;
    u32::try_from(left).unwrap_or(limit).min(limit)
}

async fn head(
    response: &Response,
    excerpt_always: bool,
    asked: Option<&str>,
    patience: u32,
) -> Head {
    let headers = response.headers();
    let header = |name: &str| headers.get(name).ok().flatten();
    let status = response.status();
    let content_type = header("content-type");
    let wanted = excerpt_always || !response.ok();
    let excerpt = if wanted && content_type.as_deref().is_some_and(is_text) {
        within(patience, excerpt(response)).await.flatten()
    } else {
        None
    };
    Head {
        status,
        redirected: response.redirected(),
        url: response.url(),
        filtered: get(response, "type").as_string().as_deref() == Some("cors"),
        retry_after: header("retry-after"),
        date: header("date"),
        location: header("location"),
        replayed: header("idempotent-replayed")
            .is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case("true")),
        content_type,
        excerpt,
        asked: asked.and_then(header),
        ..Head::default()
    }
}

fn is_text(content_type: &str) -> bool {
    let kind = cut(content_type, b";").0.trim_ascii();
    kind.starts_with("text/")
        || kind.ends_with("json")
        || kind.ends_with("xml")
        || kind == "application/x-www-form-urlencoded"
}

/// The first bytes of a copy of the body. The response itself stays unread; what cannot be read is no fault of the
/// answer's.
async fn excerpt(response: &Response) -> Option<String> {
    let copy = response.clone().ok()?;
    let reader: ReadableStreamDefaultReader = copy.body()?.get_reader().unchecked_into();
    let mut bytes = Vec::new();
    while bytes.len() < EXCERPT_BYTES {
        let chunk = Js(JsFuture::from(reader.read()).await.ok()?);
        if Source::get(&chunk, "done").and_then(|done| done.boolean()) == Some(true) {
            break;
        }
        let chunk: Uint8Array = get(&chunk.0, "value").dyn_into().ok()?;
        bytes.extend(chunk.to_vec());
    }
    bytes.truncate(EXCERPT_BYTES);
    // The rest of the copy is not wanted; without this it would be buffered in full.
    let cancelled = reader.cancel();
    spawn(async move {
        let _ = JsFuture::from(cancelled).await;
    });
    Some(TextDecoder::new().decode(&bytes))
}

/// The output of a future, unless it takes longer.
pub async fn within<T>(ms: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut timeout = pin!(TimeoutFuture::new(ms));
    poll_fn(move |context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        timeout.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// Calls the application's own `send` in place of `fetch` (`submitWithRetry`).
pub fn send_by(send: &js_sys::Function, record: &Record, signal: &web_sys::AbortSignal) -> Promise {
    let attempt = Object::new();
    set(&attempt, "key", &record.key.as_str().into());
    set(&attempt, "attempt", &f64::from(record.attempts).into());
    set(&attempt, "signal", signal);
    match send.call1(&JsValue::UNDEFINED, &attempt) {
        Ok(value) => Promise::resolve(&value),
        Err(thrown) => Promise::reject(&thrown),
    }
}
