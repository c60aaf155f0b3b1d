//! The table of the contract's §3: a row here for each of its lines and each of its exceptions.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use resubmit::engine::record::Hint;
use resubmit::engine::retry_after::Floor;
use resubmit::engine::verdict::{hint, verdict, About, Ruling, AT_ONCE, HIDDEN_FLOOR};
use resubmit::engine::{Acknowledgement, Classified};
use resubmit::engine::{Answer, Failure, Head, Policy, Reason, Record, State, Verdict};

/// A row of the table: a sentence, an answer, what was known of the intent, and the verdict.
type Row = (&'static str, Answer, About<'static>, Verdict);

fn check(rows: Vec<Row>) {
    let wrong: Vec<String> = rows
        .into_iter()
        .filter_map(|(sentence, answer, about, expected)| {
            let got = verdict(&answer, &about);
            (got != expected).then(|| format!("{sentence}: {got:?}, not {expected:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A first attempt, nothing left out.
fn first() -> About<'static> {
    About {
        url: URL,
        now: NOW,
        ..About::default()
    }
}

/// A later attempt: an earlier one may have been delivered.
fn later() -> About<'static> {
    About {
        maybe_delivered_before: true,
        ..first()
    }
}

fn left_out() -> About<'static> {
    About {
        left_out: true,
        ..first()
    }
}

fn busy() -> Verdict {
    Verdict::Retry {
        reason: Reason::ServerBusy,
        floor: None,
    }
}

fn floor(ms: u64) -> Option<Floor> {
    Some(Floor {
        ms,
        by_local_clock: false,
    })
}

fn busy_for(ms: u64) -> Verdict {
    Verdict::Retry {
        reason: Reason::ServerBusy,
        floor: floor(ms),
    }
}

fn refused(reason: Reason) -> Verdict {
    Verdict::Refused(reason)
}

fn parked(reason: Reason) -> Verdict {
    Verdict::Parked(reason)
}

fn failed(reason: Reason) -> Verdict {
    Verdict::Retry {
        reason,
        floor: None,
    }
}

fn ruled(status: u16, ruling: Ruling) -> Answer {
    Answer::Response(Head {
        ruling,
        ..head(status)
    })
}

#[test]
fn a_2xx_is_delivered() {
    let mut rows: Vec<Row> = (200..300)
        .map(|code| ("any 2xx", status(code), first(), Verdict::Delivered))
        .collect();
    rows.push((
        "a 2xx on what was maybe delivered",
        status(200),
        later(),
        Verdict::Delivered,
    ));
    rows.push((
        "a stored 2xx that is replayed",
        replayed(201),
        later(),
        Verdict::Delivered,
    ));
    rows.push((
        "a 2xx whose body could not be read, or is no text",
        Answer::Response(Head {
            content_type: Some("application/pdf".into()),
            excerpt: None,
            ..head(200)
        }),
        first(),
        Verdict::Delivered,
    ));
    rows.push((
        "a 2xx with Retry-After",
        status_after(202, "120"),
        first(),
        Verdict::Delivered,
    ));
    check(rows);
}

#[test]
fn a_redirected_2xx_on_a_sign_in_page_is_unauthorized() {
    let mut rows = Vec::new();
    for url in [
        "https://shop.test/login",
        "https://shop.test/log-in",
        "https://shop.test/signin",
        "https://shop.test/sign-in",
        "https://shop.test/sso",
        "https://shop.test/auth",
        "https://shop.test/session",
        "https://shop.test/account/login/",
        "https://shop.test/auth/realms/shop",
        "https://shop.test/LogIn?next=/orders",
        "https://shop.test/login#top",
        "https://accounts.test/login",
        "https://accounts.test/sso",
    ] {
        rows.push((
            "a sign-in page, here or at another origin",
            redirected(200, url),
            first(),
            Verdict::Unauthorized,
        ));
    }
    for url in [
        "https://shop.test/blogin",
        "https://shop.test/authors",
        "https://shop.test/sessions",
        "https://shop.test/orders/7?from=login",
        "https://shop.test/orders/7?from=/login",
        "https://shop.test/orders/7#/login",
    ] {
        rows.push((
            "a page whose address only contains the word",
            redirected(200, url),
            first(),
            Verdict::Delivered,
        ));
    }
    rows.push((
        "a sign-in page that was asked for itself",
        Answer::Response(Head {
            url: "https://shop.test/login".into(),
            ..head(200)
        }),
        About {
            url: "https://shop.test/login",
            ..first()
        },
        Verdict::Delivered,
    ));
    check(rows);
}

#[test]
fn a_redirected_2xx_elsewhere_or_of_the_same_page_is_parked() {
    let orders_slash = About {
        url: "https://shop.test/orders/",
        ..first()
    };
    let query = About {
        url: "https://shop.test/orders?a=1",
        ..first()
    };
    let plain = About {
        url: "http://shop.test/orders",
        ..first()
    };
    check(vec![
        (
            "a slash was added: the POST became a GET",
            redirected(200, "https://shop.test/orders/"),
            first(),
            parked(Reason::Redirected),
        ),
        (
            "a slash was taken",
            redirected(200, "https://shop.test/orders"),
            orders_slash,
            parked(Reason::Redirected),
        ),
        (
            "a slash was added before the query",
            redirected(200, "https://shop.test/orders/?a=1"),
            query,
            parked(Reason::Redirected),
        ),
        (
            "another scheme",
            redirected(200, "https://shop.test/orders"),
            plain,
            parked(Reason::Redirected),
        ),
        (
            "www. was added",
            redirected(200, "https://www.shop.test/orders"),
            first(),
            parked(Reason::Redirected),
        ),
        (
            "scheme, www. and slash together",
            redirected(200, "https://www.shop.test/orders/"),
            plain,
            parked(Reason::Redirected),
        ),
        (
            "another origin",
            redirected(200, "https://portal.test/welcome"),
            first(),
            parked(Reason::Redirected),
        ),
        (
            "another port",
            redirected(200, "https://shop.test:8443/orders/7"),
            first(),
            parked(Reason::Redirected),
        ),
        (
            "post, redirect, get: another page of the site",
            redirected(200, "https://shop.test/orders/7"),
            first(),
            Verdict::Delivered,
        ),
        (
            "post, redirect, get: another query of the same page",
            redirected(200, "https://shop.test/orders?done"),
            first(),
            Verdict::Delivered,
        ),
        (
            "post, redirect, get: the page itself",
            redirected(200, URL),
            first(),
            Verdict::Delivered,
        ),
    ]);
}

#[test]
fn a_redirected_answer_that_is_no_2xx_is_never_refused() {
    let there = "https://shop.test/orders/7";
    let mut rows = vec![
        (
            "401",
            redirected(401, there),
            first(),
            Verdict::Unauthorized,
        ),
        (
            "419",
            redirected(419, there),
            first(),
            Verdict::Unauthorized,
        ),
        ("503", redirected(503, there), first(), busy()),
        ("429", redirected(429, there), first(), busy()),
        ("408", redirected(408, there), first(), busy()),
    ];
    for code in [
        0, 302, 400, 403, 404, 405, 409, 410, 412, 413, 422, 501, 505,
    ] {
        for about in [first(), later(), left_out()] {
            rows.push((
                "the page after the POST failed",
                redirected(code, there),
                about,
                parked(Reason::Redirected),
            ));
        }
    }
    check(rows);
}

#[test]
fn what_the_server_cannot_do_now_is_tried_again() {
    let mut rows = Vec::new();
    for code in [408, 425, 429] {
        for about in [first(), later(), left_out()] {
            rows.push(("408, 425 and 429", status(code), about, busy()));
        }
    }
    for code in (500..600).filter(|code| !matches!(code, 501 | 505)) {
        for about in [first(), later()] {
            rows.push(("any 5xx but 501 and 505", status(code), about, busy()));
        }
    }
    for code in [408, 413, 425, 429, 500, 502, 503, 504, 599] {
        rows.push((
            "with Retry-After",
            status_after(code, "7"),
            first(),
            busy_for(7_000),
        ));
    }
    rows.push((
        "413 without Retry-After",
        status(413),
        first(),
        refused(Reason::Invalid),
    ));
    for junk in ["", "soon", "-3", "5, 10", "1e3", "2023-11-14T22:13:20Z"] {
        rows.push((
            "413 with a Retry-After that means nothing",
            status_after(413, junk),
            first(),
            refused(Reason::Invalid),
        ));
        rows.push((
            "503 with a Retry-After that means nothing",
            status_after(503, junk),
            first(),
            busy(),
        ));
    }
    for code in [501, 505] {
        rows.push((
            "501 and 505",
            status(code),
            first(),
            refused(Reason::Invalid),
        ));
        rows.push((
            "501 and 505 with Retry-After",
            status_after(code, "7"),
            first(),
            refused(Reason::Invalid),
        ));
    }
    check(rows);
}

#[test]
fn a_hidden_retry_after_gets_a_larger_floor() {
    let filtered = |status, retry_after: Option<&str>| {
        Answer::Response(Head {
            filtered: true,
            retry_after: retry_after.map(str::to_owned),
            ..head(status)
        })
    };
    let hidden = Verdict::Retry {
        reason: Reason::ServerBusy,
        floor: Some(Floor {
            ms: HIDDEN_FLOOR,
            by_local_clock: true,
        }),
    };
    check(vec![
        ("429", filtered(429, None), first(), hidden.clone()),
        ("503", filtered(503, None), first(), hidden),
        (
            "an exposed header",
            filtered(429, Some("2")),
            first(),
            busy_for(2_000),
        ),
        ("502", filtered(502, None), first(), busy()),
        ("500", filtered(500, None), first(), busy()),
        ("our own origin", status(429), first(), busy()),
    ]);
    const { assert!(HIDDEN_FLOOR >= 5_000) };
}

#[test]
fn a_stored_failure_that_is_replayed_is_parked() {
    let mut rows = Vec::new();
    for code in [500, 502, 503, 504] {
        for about in [first(), later()] {
            rows.push((
                "a replayed 5xx: the server will answer it again",
                replayed(code),
                about,
                parked(Reason::ReplayedFailure),
            ));
        }
    }
    check(rows);
}

#[test]
fn a_409_by_what_is_known_before_it() {
    let still = |twin| Verdict::StillRunning { floor: None, twin };
    let counted = |conflicts, conflict_is_twin| About {
        conflicts,
        conflict_is_twin,
        ..later()
    };
    check(vec![
        (
            "maybe delivered before: the first is still running",
            status(409),
            later(),
            still(false),
        ),
        (
            "with Retry-After: the first is still running",
            status_after(409, "3"),
            first(),
            Verdict::StillRunning {
                floor: floor(3_000),
                twin: false,
            },
        ),
        (
            "with a Retry-After that means nothing",
            status_after(409, "junk"),
            first(),
            still(true),
        ),
        (
            "otherwise once more: the browser may have sent a twin",
            status(409),
            first(),
            still(true),
        ),
        (
            "the same again: another's conflict",
            status(409),
            counted(1, true),
            refused(Reason::Conflict),
        ),
        (
            "the second with Retry-After: it runs after all",
            status_after(409, "3"),
            counted(1, true),
            Verdict::StillRunning {
                floor: floor(3_000),
                twin: false,
            },
        ),
        (
            "the fifth of a first that is running",
            status(409),
            counted(4, false),
            still(false),
        ),
        (
            "the sixth",
            status(409),
            counted(5, false),
            parked(Reason::OutcomeUnknown),
        ),
        (
            "the sixth, with Retry-After",
            status_after(409, "3"),
            counted(5, false),
            parked(Reason::OutcomeUnknown),
        ),
        (
            "409 with the mark",
            replayed(409),
            first(),
            refused(Reason::Conflict),
        ),
        (
            "409 with the mark, on what was maybe delivered",
            replayed(409),
            later(),
            refused(Reason::Conflict),
        ),
        ("412", status(412), first(), refused(Reason::Conflict)),
        (
            "412 on what was maybe delivered",
            status(412),
            later(),
            parked(Reason::OutcomeUnknown),
        ),
    ]);
}

#[test]
fn credentials() {
    check(vec![
        ("401", status(401), first(), Verdict::Unauthorized),
        ("419", status(419), first(), Verdict::Unauthorized),
        (
            "401 on what was maybe delivered",
            status(401),
            later(),
            Verdict::Unauthorized,
        ),
        (
            "403 where a header had to be left out",
            status(403),
            left_out(),
            Verdict::Unauthorized,
        ),
        (
            "403 otherwise",
            status(403),
            first(),
            refused(Reason::Forbidden),
        ),
        (
            "403 otherwise, on what was maybe delivered",
            status(403),
            later(),
            parked(Reason::OutcomeUnknown),
        ),
        (
            "403 otherwise, replayed, on what was maybe delivered",
            replayed(403),
            later(),
            refused(Reason::Forbidden),
        ),
    ]);
}

#[test]
fn every_other_4xx_is_refused_at_once() {
    let mut rows = Vec::new();
    for code in
        (400..500).filter(|code| !matches!(code, 401 | 403 | 408 | 409 | 412 | 419 | 425 | 429))
    {
        for about in [first(), left_out()] {
            rows.push((
                "a 4xx on what was never sent before",
                status(code),
                about,
                refused(Reason::Invalid),
            ));
        }
        rows.push((
            "a replayed 4xx on what was maybe delivered",
            replayed(code),
            later(),
            refused(Reason::Invalid),
        ));
        rows.push((
            "a 4xx on what was maybe delivered: our own first attempt may have caused it; 422 says it did not",
            status(code),
            later(),
            if code == 422 {
                refused(Reason::Invalid)
            } else {
                parked(Reason::OutcomeUnknown)
            },
        ));
    }
    check(rows);
}

#[test]
fn a_3xx_or_an_opaque_answer_is_parked() {
    let rows = [0, 100, 199, 300, 301, 302, 303, 304, 307, 308, 399]
        .into_iter()
        .flat_map(|code| {
            [first(), later()].map(|about| {
                (
                    "no status that means anything here",
                    status(code),
                    about,
                    parked(Reason::Unexpected),
                )
            })
        })
        .collect();
    check(rows);
}

#[test]
fn failures() {
    let failure = |change: fn(&mut Failure)| {
        let mut failure = offline();
        change(&mut failure);
        Answer::Failure(failure)
    };
    let offline_and = |never_left| Verdict::Offline { never_left };
    let redirect_is_error = About {
        redirect_is_error: true,
        ..first()
    };
    check(vec![
        (
            "fetch was rejected",
            network_failure(),
            first(),
            failed(Reason::NetworkFailure),
        ),
        (
            "the attempt took too long",
            timeout(),
            first(),
            failed(Reason::AttemptTimeout),
        ),
        (
            "fetch was rejected on what was maybe delivered",
            network_failure(),
            later(),
            failed(Reason::NetworkFailure),
        ),
        (
            "offline before and after, and at once: nothing left",
            Answer::Failure(offline()),
            first(),
            offline_and(true),
        ),
        (
            "just within the limit",
            failure(|f| f.elapsed = AT_ONCE - 1),
            first(),
            offline_and(true),
        ),
        (
            "offline, but not at once",
            failure(|f| f.elapsed = AT_ONCE),
            first(),
            offline_and(false),
        ),
        (
            "offline, but answers came while the browser said so",
            failure(|f| f.offline_is_a_lie = true),
            first(),
            offline_and(false),
        ),
        (
            "offline, but timed out",
            failure(|f| f.timed_out = true),
            first(),
            offline_and(false),
        ),
        (
            "offline only before",
            failure(|f| f.offline_after = false),
            first(),
            failed(Reason::NetworkFailure),
        ),
        (
            "offline only after",
            failure(|f| f.offline_before = false),
            first(),
            failed(Reason::NetworkFailure),
        ),
        (
            "the page's policy forbids the address",
            failure(|f| {
                *f = Failure {
                    blocked_by_csp: true,
                    ..Failure::default()
                }
            }),
            first(),
            parked(Reason::BlockedByCsp),
        ),
        (
            "the page's policy forbids it, offline",
            failure(|f| f.blocked_by_csp = true),
            first(),
            parked(Reason::BlockedByCsp),
        ),
        (
            "redirect: error can't be told from a network failure",
            network_failure(),
            redirect_is_error,
            parked(Reason::OutcomeUnknown),
        ),
        (
            "redirect: error, but it was the timeout",
            timeout(),
            redirect_is_error,
            failed(Reason::AttemptTimeout),
        ),
        (
            "redirect: error, but offline",
            Answer::Failure(offline()),
            redirect_is_error,
            offline_and(true),
        ),
        ("not sent", Answer::NotSent, first(), Verdict::NotSent),
    ]);
}

#[test]
fn where_everything_fails_at_once_while_online_there_is_a_hint() {
    let at_once = Failure {
        elapsed: 1,
        others_succeed: true,
        ..Failure::default()
    };
    let of = |change: fn(&mut Failure)| {
        let mut failure = at_once.clone();
        change(&mut failure);
        hint(&Answer::Failure(failure))
    };
    assert_eq!(of(|_| ()), Some(Hint::BlockedOrCors));
    assert_eq!(of(|f| f.elapsed = AT_ONCE), None, "not at once");
    assert_eq!(of(|f| f.others_succeed = false), None, "nothing else works");
    assert_eq!(of(|f| f.offline_before = true), None, "offline before");
    assert_eq!(of(|f| f.offline_after = true), None, "offline after");
    assert_eq!(of(|f| f.timed_out = true), None, "a timeout");
    assert_eq!(hint(&status(500)), None, "an answer");

    let mut row = record(Policy::patient());
    attempt(&mut row, &Answer::Failure(at_once));
    assert_eq!(row.reason, Some(Reason::NetworkFailure));
    assert_eq!(row.evidence.unwrap().hint, Some(Hint::BlockedOrCors));
}

#[test]
fn hooks() {
    let mut rows = vec![
        (
            "isDelivered said no to a 2xx",
            ruled(200, Ruling::NotAcknowledged),
            first(),
            failed(Reason::NotAcknowledged),
        ),
        (
            "isDelivered has no say in a 422",
            ruled(422, Ruling::NotAcknowledged),
            first(),
            refused(Reason::Invalid),
        ),
        (
            "isDelivered has no say in a 503",
            ruled(503, Ruling::NotAcknowledged),
            first(),
            busy(),
        ),
        (
            "a hook threw or hung over a 2xx",
            ruled(201, Ruling::Failed),
            first(),
            parked(Reason::HookFailed),
        ),
        (
            "a hook threw over a 503: the table decides",
            ruled(503, Ruling::Failed),
            first(),
            busy(),
        ),
        (
            "a hook threw over a 422: the table decides",
            ruled(422, Ruling::Failed),
            first(),
            refused(Reason::Invalid),
        ),
    ];
    for code in [0, 200, 302, 401, 409, 422, 501, 503] {
        for (said, verdict) in [
            (Classified::Delivered, Verdict::Delivered),
            (Classified::Retry, failed(Reason::NotAcknowledged)),
            (Classified::Refused, refused(Reason::Invalid)),
            (Classified::Parked, parked(Reason::Unexpected)),
            (Classified::Unauthorized, Verdict::Unauthorized),
        ] {
            rows.push((
                "classify overrides any row",
                ruled(code, Ruling::Classified(said)),
                first(),
                verdict,
            ));
        }
    }
    rows.push((
        "isDelivered has no say in a sign-in page",
        Answer::Response(Head {
            ruling: Ruling::NotAcknowledged,
            redirected: true,
            url: "https://shop.test/login".into(),
            ..head(200)
        }),
        first(),
        Verdict::Unauthorized,
    ));
    rows.push((
        "classify says to try again, and the server when",
        Answer::Response(Head {
            ruling: Ruling::Classified(Classified::Retry),
            retry_after: Some("9".into()),
            ..head(503)
        }),
        first(),
        Verdict::Retry {
            reason: Reason::NotAcknowledged,
            floor: Some(Floor {
                ms: 9_000,
                by_local_clock: false,
            }),
        },
    ));
    check(rows);
}

#[test]
fn what_counts_as_an_acknowledgement_may_be_data() {
    let asks = |change: fn(&mut Acknowledgement)| {
        let mut asked = Acknowledgement::default();
        change(&mut asked);
        asked
    };
    let statuses = asks(|it| it.statuses = vec![201, 202]);
    let json = asks(|it| it.content_type = Some("application/json".into()));
    let there = asks(|it| it.header = Some("X-Order".into()));
    let equal = asks(|it| it.header = Some("X-Order : taken".into()));
    assert_eq!(equal.header_name(), Some("X-Order"));
    let all = Acknowledgement {
        content_type: json.content_type.clone(),
        header: equal.header.clone(),
        ..statuses.clone()
    };
    let head = |status, content_type: &str, asked: Option<&str>| Head {
        status,
        content_type: Some(content_type.into()),
        asked: asked.map(str::to_owned),
        ..Head::default()
    };
    for (acknowledgement, head, is_one) in [
        (&statuses, head(201, "text/html", None), true),
        (&statuses, head(200, "text/html", None), false),
        (
            &json,
            head(200, "Application/JSON; charset=utf-8", None),
            true,
        ),
        (&json, head(200, "text/html", None), false),
        (
            &json,
            Head {
                content_type: None,
                ..head(200, "", None)
            },
            false,
        ),
        (&there, head(200, "text/html", Some("")), true),
        (&there, head(200, "text/html", None), false),
        (&equal, head(200, "text/html", Some(" taken ")), true),
        (&equal, head(200, "text/html", Some("later")), false),
        (&all, head(202, "application/json", Some("taken")), true),
        (&all, head(202, "application/json", None), false),
        (&all, head(422, "application/json", None), false),
    ] {
        let about = About {
            acknowledgement: Some(acknowledgement),
            ..first()
        };
        let status = head.status;
        let expected = match (is_one, status) {
            (true, _) => Verdict::Delivered,
            (_, 422) => refused(Reason::Invalid),
            _ => failed(Reason::NotAcknowledged),
        };
        let shown = format!("{acknowledgement:?} {head:?}");
        assert_eq!(
            verdict(&Answer::Response(head), &about),
            expected,
            "{shown}"
        );
    }
}

// What the verdicts do to the row.

/// How a row stands after an answer.
#[derive(Debug, PartialEq)]
struct Stands {
    state: State,
    reason: Option<Reason>,
    maybe_delivered: bool,
    spent: u32,
}

fn stands(row: &Record) -> Stands {
    Stands {
        state: row.state,
        reason: row.reason,
        maybe_delivered: row.maybe_delivered,
        spent: row.spent,
    }
}

/// Answers the first attempt of a new intent, and the second of one whose first was lost; checks how both stand.
fn answers(sentence: &str, answer: &Answer, first: Stands, second: Stands) {
    let mut row = record(Policy::patient());
    attempt(&mut row, answer);
    assert_eq!(row.attempts, 1, "{sentence}: every claim counts");
    assert_eq!(stands(&row), first, "{sentence}, at once");
    well_formed(&row);
    let mut row = maybe_delivered(Policy::patient());
    attempt(&mut row, answer);
    assert_eq!(row.attempts, 2, "{sentence}: every claim counts");
    assert_eq!(stands(&row), second, "{sentence}, after a lost attempt");
    well_formed(&row);
}

/// What holds of every row whose attempt ended.
fn well_formed(row: &Record) {
    assert_eq!(
        row.next_attempt_at.is_some(),
        !row.state.is_settled(),
        "only what waits is in the index of due work"
    );
    assert_eq!(
        row.next_attempt_at,
        row.schedule.map(|deadline| deadline.at())
    );
    assert_eq!(row.lease, None, "the attempt's hold ended with it");
    assert_eq!(row.settled_at.is_some(), row.state.is_settled());
    assert_eq!(row.receipt.is_some(), row.state == State::Delivered);
}

fn at(state: State, reason: Reason, maybe_delivered: bool, spent: u32) -> Stands {
    Stands {
        state,
        reason: Some(reason),
        maybe_delivered,
        spent,
    }
}

#[test]
fn what_each_answer_makes_of_the_row() {
    use Reason::*;
    use State::{Delivered, Parked, Pending, Refused};
    let delivered = |spent| Stands {
        state: Delivered,
        reason: None,
        maybe_delivered: true,
        spent,
    };
    answers("a 2xx", &status(201), delivered(1), delivered(2));

    // Spent, and nothing proves that the server did not act.
    for code in [408, 500, 502, 503, 504] {
        answers(
            "408 and 5xx",
            &status(code),
            at(Pending, ServerBusy, true, 1),
            at(Pending, ServerBusy, true, 2),
        );
    }
    answers(
        "a network failure",
        &network_failure(),
        at(Pending, NetworkFailure, true, 1),
        at(Pending, NetworkFailure, true, 2),
    );
    answers(
        "a timeout",
        &timeout(),
        at(Pending, AttemptTimeout, true, 1),
        at(Pending, AttemptTimeout, true, 2),
    );
    answers(
        "a 2xx that is no acknowledgement",
        &ruled(200, Ruling::NotAcknowledged),
        at(Pending, NotAcknowledged, true, 1),
        at(Pending, NotAcknowledged, true, 2),
    );

    // Spent, and put back to what it was before.
    for answer in [status(425), status(429), status_after(413, "1")] {
        answers(
            "425, 429 and 413 with Retry-After",
            &answer,
            at(Pending, ServerBusy, false, 1),
            at(Pending, ServerBusy, true, 2),
        );
    }

    // Not spent.
    for code in [401, 419] {
        answers(
            "401 and 419",
            &status(code),
            at(Pending, Unauthorized, false, 0),
            at(Pending, Unauthorized, true, 1),
        );
    }
    answers(
        "a sign-in page: the request may have got through before it",
        &redirected(200, "https://shop.test/login"),
        at(Pending, Unauthorized, true, 0),
        at(Pending, Unauthorized, true, 1),
    );
    answers(
        "409",
        &status(409),
        at(Pending, StillRunning, true, 0),
        at(Pending, StillRunning, true, 1),
    );
    answers(
        "offline, nothing left",
        &Answer::Failure(offline()),
        at(Pending, Offline, false, 0),
        at(Pending, Offline, true, 1),
    );
    answers(
        "offline, but not for certain",
        &Answer::Failure(Failure {
            elapsed: 5_000,
            ..offline()
        }),
        at(Pending, Offline, true, 0),
        at(Pending, Offline, true, 1),
    );
    answers(
        "not sent",
        &Answer::NotSent,
        at(Pending, NotSent, false, 0),
        at(Pending, NotSent, true, 1),
    );

    // Settled.
    answers(
        "422",
        &status(422),
        at(Refused, Invalid, false, 1),
        at(Refused, Invalid, true, 2),
    );
    answers(
        "400",
        &status(400),
        at(Refused, Invalid, false, 1),
        at(Parked, OutcomeUnknown, true, 2),
    );
    answers(
        "403",
        &status(403),
        at(Refused, Forbidden, false, 1),
        at(Parked, OutcomeUnknown, true, 2),
    );
    answers(
        "412",
        &status(412),
        at(Refused, Conflict, false, 1),
        at(Parked, OutcomeUnknown, true, 2),
    );
    answers(
        "409 with the mark (409 never puts back)",
        &replayed(409),
        at(Refused, Conflict, true, 1),
        at(Refused, Conflict, true, 2),
    );
    answers(
        "a replayed 5xx",
        &replayed(500),
        at(Parked, ReplayedFailure, true, 1),
        at(Parked, ReplayedFailure, true, 2),
    );
    answers(
        "304",
        &status(304),
        at(Parked, Unexpected, true, 1),
        at(Parked, Unexpected, true, 2),
    );
    answers(
        "another origin",
        &redirected(200, "https://portal.test/"),
        at(Parked, Redirected, true, 1),
        at(Parked, Redirected, true, 2),
    );
    answers(
        "a hook that threw over a 2xx",
        &ruled(200, Ruling::Failed),
        at(Parked, HookFailed, true, 1),
        at(Parked, HookFailed, true, 2),
    );
    answers(
        "blocked by the page's policy: a redirect that it forbids looks the same",
        &Answer::Failure(Failure {
            blocked_by_csp: true,
            ..Failure::default()
        }),
        at(Parked, BlockedByCsp, true, 1),
        at(Parked, BlockedByCsp, true, 2),
    );
}

#[test]
fn a_4xx_of_the_page_after_the_post_says_nothing_about_the_post() {
    // The POST was answered with a redirect; the 4xx is the GET's.
    let there = "https://shop.test/orders/7";
    for code in [401, 404, 419, 422, 429] {
        let mut row = record(Policy::patient());
        attempt(&mut row, &redirected(code, there));
        assert!(row.maybe_delivered, "{code}");
        assert_ne!(row.state, State::Refused, "{code}");
    }
}

#[test]
fn a_first_that_is_still_running_is_asked_for_five_times() {
    let mut row = maybe_delivered(Policy::patient());
    for n in 1..=5 {
        attempt(&mut row, &status(409));
        assert_eq!(
            stands(&row),
            at(State::Pending, Reason::StillRunning, true, 1)
        );
        assert_eq!(row.conflicts, n);
    }
    attempt(&mut row, &status(409));
    assert_eq!(
        (row.state, row.reason),
        (State::Parked, Some(Reason::OutcomeUnknown))
    );
    assert_eq!(row.attempts, 7);
    assert_eq!(row.evidence.unwrap().status, Some(409));
}

#[test]
fn the_same_on_the_first_attempt_with_retry_after() {
    let mut row = record(Policy::patient());
    for _ in 0..5 {
        let now = attempt(&mut row, &status_after(409, "4"));
        assert_eq!(
            stands(&row),
            at(State::Pending, Reason::StillRunning, true, 0)
        );
        assert!(row.next_attempt_at.unwrap() >= now + 4_000, "its floor");
        assert!(!row.cuttable);
    }
    attempt(&mut row, &status_after(409, "4"));
    assert_eq!(
        (row.state, row.reason),
        (State::Parked, Some(Reason::OutcomeUnknown))
    );
}

#[test]
fn a_409_of_a_twin_is_asked_once_more_and_then_a_conflict() {
    let mut row = record(Policy::patient());
    attempt(&mut row, &status(409));
    assert_eq!(
        stands(&row),
        at(State::Pending, Reason::StillRunning, true, 0)
    );
    attempt(&mut row, &status(409));
    assert_eq!(
        (row.state, row.reason),
        (State::Refused, Some(Reason::Conflict))
    );
    assert_eq!(row.attempts, 2);
    assert_eq!(row.evidence.unwrap().status, Some(409));
}

#[test]
fn a_409_of_a_twin_may_end_in_the_twins_answer() {
    let mut row = record(Policy::patient());
    attempt(&mut row, &status(409));
    attempt(&mut row, &replayed(201));
    assert_eq!(row.state, State::Delivered);
}

#[test]
fn between_two_409s_an_attempt_that_was_not_sent_changes_nothing() {
    let mut row = record(Policy::patient());
    attempt(&mut row, &status(409));
    attempt(&mut row, &Answer::NotSent);
    attempt(&mut row, &status(409));
    assert_eq!(
        (row.state, row.reason),
        (State::Refused, Some(Reason::Conflict))
    );
}

#[test]
fn between_two_409s_a_lost_attempt_may_be_what_the_second_is_about() {
    for lost in [network_failure(), timeout(), status(502)] {
        let mut row = record(Policy::patient());
        attempt(&mut row, &status(409));
        attempt(&mut row, &lost);
        attempt(&mut row, &status(409));
        assert_eq!(
            (row.state, row.reason),
            (State::Pending, Some(Reason::StillRunning))
        );
    }
    // The same where the page died: the row was never settled, and the next claim finds it as it was.
    let mut row = record(Policy::patient());
    attempt(&mut row, &status(409));
    claim(&mut row);
    attempt(&mut row, &status(409));
    assert_eq!(
        (row.state, row.reason),
        (State::Pending, Some(Reason::StillRunning))
    );
}

#[test]
fn waits_of_a_409_grow_on_their_own_and_not_with_the_budget() {
    let policy = Policy {
        jitter: resubmit::engine::Jitter::None,
        ..Policy::patient()
    };
    let mut row = maybe_delivered(policy.clone());
    let mut waits = Vec::new();
    for _ in 0..5 {
        let now = attempt(&mut row, &status(409));
        waits.push(row.next_attempt_at.unwrap() - now);
    }
    assert_eq!(waits, policy.delays_ms[..5]);
}

#[test]
fn refused_credentials_are_counted_in_a_row() {
    let mut row = record(Policy::patient());
    attempt(&mut row, &status(401));
    attempt(&mut row, &status(401));
    assert_eq!(row.refused_credentials, 2);
    attempt(&mut row, &status(503));
    assert_eq!(row.refused_credentials, 0);
}

#[test]
fn a_left_out_header_makes_a_403_a_question_of_credentials() {
    let mut row = record(Policy::patient());
    row.require(vec!["authorization".into()], Vec::new());
    attempt(&mut row, &status(403));
    assert_eq!(
        stands(&row),
        at(State::Pending, Reason::Unauthorized, false, 0)
    );
}

#[test]
fn a_redirect_that_is_an_error_parks_the_row() {
    let mut row = record(Policy::patient());
    row.request.settings = vec![("redirect".into(), "error".into())];
    attempt(&mut row, &network_failure());
    assert_eq!(
        stands(&row),
        at(State::Parked, Reason::OutcomeUnknown, true, 1)
    );
}

#[test]
fn the_evidence_of_a_refusal() {
    let mut row = record(Policy::patient());
    let now = attempt(
        &mut row,
        &Answer::Response(Head {
            content_type: Some("application/problem+json".into()),
            location: Some("/help".into()),
            excerpt: Some("{\"title\":\"no\"}".into()),
            ..head(422)
        }),
    );
    let evidence = row.evidence.unwrap();
    assert_eq!(evidence.at, now);
    assert_eq!(evidence.status, Some(422));
    assert_eq!(evidence.url, URL);
    assert_eq!(evidence.excerpt.as_deref(), Some("{\"title\":\"no\"}"));
    assert_eq!(
        evidence.headers,
        [
            (
                "content-type".to_owned(),
                "application/problem+json".to_owned()
            ),
            ("location".to_owned(), "/help".to_owned()),
        ]
    );
}

#[test]
fn the_receipt_of_a_delivery() {
    let mut row = maybe_delivered(Policy::patient());
    let now = attempt(
        &mut row,
        &Answer::Response(Head {
            location: Some("/orders/7".into()),
            excerpt: Some("thanks".into()),
            ..head(201)
        }),
    );
    let receipt = row.receipt.as_ref().unwrap();
    assert_eq!((receipt.at, receipt.status), (now, 201));
    assert_eq!(receipt.location.as_deref(), Some("/orders/7"));
    assert_eq!(receipt.excerpt.as_deref(), Some("thanks"));
    assert_eq!(row.evidence, None);
    assert_eq!(row.reason, None);
    assert_eq!(row.forget_at, Some(now + row.policy.max_age_ms));
}
