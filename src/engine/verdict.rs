//! What an answer means for the intent: the table of the contract's §3, a line each.

use super::acknowledgement::Acknowledgement;
use super::env::{Millis, Wall};
use super::record::{Hint, Reason};
use super::retry_after::{floor, Floor};
use super::text::cut;
use super::words::words;

/// The floor under the wait after a 429 or 503 of another origin whose `Retry-After` cannot be read: CORS hides the
/// header unless the server exposes it.
pub const HIDDEN_FLOOR: Millis = 10_000;

/// How soon a failure must come for it to be one that never left the machine.
pub const AT_ONCE: Millis = 100;

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The head of a response arrived.
    Response(Head),
    /// No response.
    Failure(Failure),
    /// The attempt was not made after all: nothing was sent.
    NotSent,
    /// The page ended the attempt, because it is another owner's turn. What the server did is not known.
    Abandoned,
}

/// The head of a response, and the excerpt of its body where one was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The status; 0 for an opaque response.
    pub status: u16,
    /// `Response.redirected`.
    pub redirected: bool,
    /// `Response.url`: the final one.
    pub url: String,
    /// Whether CORS filtered the headers (`Response.type` is `cors`).
    pub filtered: bool,
    /// The `Retry-After` header.
    pub retry_after: Option<String>,
    /// The `Date` header.
    pub date: Option<String>,
    /// The `Location` header.
    pub location: Option<String>,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// Whether `Idempotent-Replayed: true` marks it as the stored answer of this key.
    pub replayed: bool,
    /// The first 4 KiB of the body, if it is text.
    pub excerpt: Option<String>,
    /// The header that the intent's [`Acknowledgement`] asks for.
    pub asked: Option<String>,
    /// What the application's hooks said.
    pub ruling: Ruling,
}

/// What the application's hooks say of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ruling {
    /// Nothing: the table decides.
    #[default]
    None,
    /// `isDelivered` is false: a 2xx is no acknowledgement.
    NotAcknowledged,
    /// `classify` overrides the table.
    Classified(Classified),
    /// A hook threw or hung.
    Failed,
}

words! {
    /// What `classify` may say of a response.
    pub enum Classified: "expected \"delivered\", \"retry\", \"refused\", \"parked\" or \"unauthorized\"" {
        /// The server acted.
        Delivered = "delivered",
        /// It did not: try again under the same key, not before what `Retry-After` says.
        Retry = "retry",
        /// It refused, and a repetition would not help.
        Refused = "refused",
        /// A person has to decide.
        Parked = "parked",
        /// It wants other credentials.
        Unauthorized = "unauthorized",
    }
}

/// How an attempt failed without a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// The attempt's timeout ended it.
    pub timed_out: bool,
    /// How long it took.
    pub elapsed: Millis,
    /// `navigator.onLine` was false before the attempt.
    pub offline_before: bool,
    /// `navigator.onLine` was false after it.
    pub offline_after: bool,
    /// In this page an answer once came although `navigator.onLine` said false: it lies here.
    pub offline_is_a_lie: bool,
    /// Other requests of this page are answered meanwhile.
    pub others_succeed: bool,
    /// A `securitypolicyviolation` of `connect-src` named this URL.
    pub blocked_by_csp: bool,
}

/// What the table needs to know of the intent.
#[derive(Debug, Clone, Copy, Default)]
pub struct About<'a> {
    /// The URL that was asked.
    pub url: &'a str,
    /// Whether it was maybe delivered before this attempt.
    pub maybe_delivered_before: bool,
    /// Whether a header had to be left out of this intent.
    pub left_out: bool,
    /// How many 409s in a row came before.
    pub conflicts: u32,
    /// Whether the first of them can only be a browser's twin or another's conflict.
    pub conflict_is_twin: bool,
    /// What a 2xx has to be.
    pub acknowledgement: Option<&'a Acknowledgement>,
    /// `redirect: "error"`: a redirect cannot be told from a network failure.
    pub redirect_is_error: bool,
    /// The wall clock.
    pub now: Wall,
}

/// What an answer means for the intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The server acted.
    Delivered,
    /// Other credentials are wanted.
    Unauthorized,
    /// Another attempt may help; this one is spent.
    Retry {
        /// Why.
        reason: Reason,
        /// The server's floor under the wait.
        floor: Option<Floor>,
    },
    /// The browser is offline: another attempt may help, this one is not spent.
    Offline {
        /// Whether it is certain that nothing left the machine.
        never_left: bool,
    },
    /// 409: an earlier attempt is being processed; the same key again, not spent.
    StillRunning {
        /// The server's floor under the wait.
        floor: Option<Floor>,
        /// Whether one more 409 would be the server's last word.
        twin: bool,
    },
    /// The server refused, and a repetition would not help.
    Refused(Reason),
    /// A person has to decide.
    Parked(Reason),
    /// Nothing was sent.
    NotSent,
    /// The page ended the attempt itself: another may be made at once, this one is not spent.
    Abandoned,
}

/// How often a 409 is answered by waiting for the first attempt's answer.
pub const MAX_CONFLICTS: u32 = 5;

/// The verdict of the contract's §3.
pub fn verdict(answer: &Answer, about: &About<'_>) -> Verdict {
    match answer {
        Answer::NotSent => Verdict::NotSent,
        Answer::Abandoned => Verdict::Abandoned,
        Answer::Failure(failure) => failed(failure, about),
        Answer::Response(head) => match head.ruling {
            Ruling::Classified(classified) => ruled(classified, head, about),
            Ruling::Failed if is_success(head.status) => Verdict::Parked(Reason::HookFailed),
            _ => match answered(head, about) {
                Verdict::Delivered if !is_acknowledged(head, about) => {
                    ruled(Classified::Retry, head, about)
                }
                verdict => verdict,
            },
        },
    }
}

fn ruled(classified: Classified, head: &Head, about: &About<'_>) -> Verdict {
    match classified {
        Classified::Delivered => Verdict::Delivered,
        Classified::Retry => Verdict::Retry {
            reason: Reason::NotAcknowledged,
            floor: server_floor(head, about.now),
        },
        Classified::Refused => Verdict::Refused(Reason::Invalid),
        Classified::Parked => Verdict::Parked(Reason::Unexpected),
        Classified::Unauthorized => Verdict::Unauthorized,
    }
}

/// Whether what the table takes for a delivery is one to the application.
fn is_acknowledged(head: &Head, about: &About<'_>) -> bool {
    head.ruling != Ruling::NotAcknowledged && about.acknowledgement.is_none_or(|it| it.is(head))
}

fn failed(failure: &Failure, about: &About<'_>) -> Verdict {
    if failure.blocked_by_csp {
        return Verdict::Parked(Reason::BlockedByCsp);
    }
    if failure.offline_before && failure.offline_after {
        return Verdict::Offline {
            never_left: !failure.timed_out
                && failure.elapsed < AT_ONCE
                && !failure.offline_is_a_lie,
        };
    }
    if about.redirect_is_error && !failure.timed_out {
        return Verdict::Parked(Reason::OutcomeUnknown);
    }
    Verdict::Retry {
        reason: if failure.timed_out {
            Reason::AttemptTimeout
        } else {
            Reason::NetworkFailure
        },
        floor: None,
    }
}

/// The hint that an extension, a proxy or a missing CORS header may be behind a failure.
pub fn hint(answer: &Answer) -> Option<Hint> {
    match answer {
        Answer::Failure(failure)
            if !failure.timed_out
                && failure.elapsed < AT_ONCE
                && !failure.offline_before
                && !failure.offline_after
                && failure.others_succeed =>
        {
            Some(Hint::BlockedOrCors)
        }
        _ => None,
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

fn answered(head: &Head, about: &About<'_>) -> Verdict {
    let status = head.status;
    if is_success(status) {
        return succeeded(head, about);
    }
    if matches!(status, 401 | 419) {
        return Verdict::Unauthorized;
    }
    if status >= 500 && head.replayed {
        return Verdict::Parked(Reason::ReplayedFailure);
    }
    let floor = server_floor(head, about.now);
    let retryable = match status {
        408 | 425 | 429 => true,
        // A header that means nothing is as good as none.
        413 => floor.is_some(),
        501 | 505 => false,
        _ => status >= 500,
    };
    if retryable {
        return Verdict::Retry {
            reason: Reason::ServerBusy,
            floor,
        };
    }
    if head.redirected {
        return Verdict::Parked(Reason::Redirected);
    }
    let refused = match status {
        0..400 => return Verdict::Parked(Reason::Unexpected),
        403 if about.left_out => return Verdict::Unauthorized,
        403 => Reason::Forbidden,
        409 if !head.replayed => match conflict(floor, about) {
            Some(verdict) => return verdict,
            // The twin's conflict: what was maybe delivered before is told apart by the first of the row.
            None => return Verdict::Refused(Reason::Conflict),
        },
        409 | 412 => Reason::Conflict,
        _ => Reason::Invalid,
    };
    if about.maybe_delivered_before && status != 422 && !head.replayed {
        // Our own first attempt may have caused this answer.
        return Verdict::Parked(Reason::OutcomeUnknown);
    }
    Verdict::Refused(refused)
}

fn succeeded(head: &Head, about: &About<'_>) -> Verdict {
    if !head.redirected {
        return Verdict::Delivered;
    }
    let (asked, answered) = (Address::of(about.url), Address::of(&head.url));
    if answered.is_sign_in() {
        Verdict::Unauthorized
    } else if asked.origin != answered.origin || asked.differs_by_slash(&answered) {
        Verdict::Parked(Reason::Redirected)
    } else {
        Verdict::Delivered
    }
}

/// 409 without the mark. `None`: the server's last word.
fn conflict(floor: Option<Floor>, about: &About<'_>) -> Option<Verdict> {
    let first = about.conflicts == 0;
    let twin = if first {
        !about.maybe_delivered_before && floor.is_none()
    } else {
        about.conflict_is_twin && floor.is_none()
    };
    match (first, twin) {
        (false, true) => None,
        _ if about.conflicts >= MAX_CONFLICTS => Some(Verdict::Parked(Reason::OutcomeUnknown)),
        _ => Some(Verdict::StillRunning { floor, twin }),
    }
}

pub(super) fn server_floor(head: &Head, now: Wall) -> Option<Floor> {
    if !matches!(head.status, 408 | 409 | 413 | 425 | 429 | 500..) {
        return None;
    }
    let hidden = head.filtered && head.retry_after.is_none() && matches!(head.status, 429 | 503);
    if hidden {
        return Some(Floor {
            ms: HIDDEN_FLOOR,
            by_local_clock: true,
        });
    }
    floor(head.retry_after.as_deref(), head.date.as_deref(), now)
}

/// Scheme, host and port of an absolute URL.
pub(super) fn origin_of(url: &str) -> &str {
    Address::of(url).origin
}

/// The parts of an absolute URL that a redirect is judged by. Both come from the browser, normalised.
struct Address<'a> {
    /// Scheme, host and port.
    origin: &'a str,
    /// Path and query.
    path: &'a str,
}

impl<'a> Address<'a> {
    fn of(url: &'a str) -> Self {
        let (url, _) = cut(url, b"#");
        let (scheme, _) = cut(url, b":");
        let host = url.get(scheme.len() + "://".len()..).unwrap_or("");
        let (_, path) = cut(host, b"/?");
        let origin = url.strip_suffix(path).unwrap_or(url);
        Address { origin, path }
    }

    /// Whether a segment of the path is one that sign-in pages have.
    fn is_sign_in(&self) -> bool {
        const SEGMENTS: [&str; 7] = [
            "login", "log-in", "signin", "sign-in", "sso", "auth", "session",
        ];
        let (path, _) = cut(self.path, b"?");
        path.as_bytes().split(|byte| *byte == b'/').any(|segment| {
            SEGMENTS
                .iter()
                .any(|known| segment.eq_ignore_ascii_case(known.as_bytes()))
        })
    }

    /// Whether only a trailing slash was added or taken: the server normalised the URL, and the POST became a GET.
    /// (Another scheme or `www.` is another origin.)
    fn differs_by_slash(&self, other: &Address<'_>) -> bool {
        self.path != other.path && without_slash(self.path) == without_slash(other.path)
    }
}

/// A path without a trailing slash, and its query.
fn without_slash(path: &str) -> (&str, &str) {
    let (path, query) = cut(path, b"?");
    (path.strip_suffix('/').unwrap_or(path), query)
}
