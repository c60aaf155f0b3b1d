//! The outbox in a real browser, through the crate's Rust API: real IndexedDB, real `fetch`.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod web;

use futures_core::Stream;
use resubmit::{
    Code, Key, Notice, Outbox, OutboxOptions, Reason, Request, State, Status, Stored, SubmitOptions,
};
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};
use web::{outbox, until, NOBODY};

wasm_bindgen_test_configure!(run_in_browser);

fn order() -> Request {
    Request::json(NOBODY, r#"{"item":"tea"}"#).unwrap()
}

/// Nothing is in the store but an intent that is stored now, to see the end of the list by.
async fn assert_only_stored(outbox: &Outbox, key: &str) {
    let small = Request::build("POST", NOBODY, &[], Some(b"small")).unwrap();
    let last = outbox.submit(small, with_key(key)).unwrap();
    assert_eq!(last.stored().await, Ok(Stored::Durable));
    until(|| !outbox.current_intents().is_empty()).await;
    let keys: Vec<String> = outbox
        .current_intents()
        .iter()
        .map(|intent| intent.key.as_str().to_owned())
        .collect();
    assert_eq!(keys, [key]);
    outbox.discard(last.key().clone()).await.unwrap();
}

fn with_key(key: &str) -> SubmitOptions {
    SubmitOptions {
        key: Some(Key::parse(key).unwrap()),
        ..SubmitOptions::default()
    }
}

#[wasm_bindgen_test]
async fn what_is_stored_is_there_for_the_next_page() {
    let first = outbox("next-page");
    let submission = first.submit(order(), SubmitOptions::default()).unwrap();
    assert_eq!(submission.stored().await, Ok(Stored::Durable));
    first.close();

    let second = outbox("next-page");
    assert_eq!(second.ready().await, Stored::Durable);
    until(|| !second.current_intents().is_empty()).await;
    let intents = second.current_intents();
    assert_eq!(intents.len(), 1);
    assert_eq!(intents[0].key, *submission.key());
    assert!(intents[0].durable && intents[0].attempt >= 1);
    assert_eq!(intents[0].method, "POST");
    second.discard(submission.key().clone()).await.unwrap();
    assert!(second.current_intents().is_empty());
}

#[wasm_bindgen_test]
async fn the_row_is_committed_before_the_attempt_begins() {
    let outbox = outbox("write-ahead");
    let told = Rc::new(RefCell::new(Vec::new()));
    let seen = told.clone();
    let _observer = outbox.observe(move |notice| match notice {
        Notice::Stored(_, intent, stored) => {
            assert_eq!(*stored, Stored::Durable);
            assert_eq!((intent.state, intent.attempt), (State::Sending, 1));
            seen.borrow_mut().push("stored");
        }
        Notice::Attempted(..) => seen.borrow_mut().push("attempted"),
        _ => {}
    });
    let submission = outbox.submit(order(), SubmitOptions::default()).unwrap();
    until(|| told.borrow().len() >= 2).await;
    assert_eq!(told.borrow()[..2], ["stored", "attempted"]);
    outbox.discard(submission.key().clone()).await.unwrap();
}

#[wasm_bindgen_test]
async fn an_answer_settles_it() {
    // The runner's own server answers a POST to a page that is not there with an error that no repetition mends.
    let outbox = outbox("answered");
    let request = Request::build("GET", "/", &[], None).unwrap();
    let outcome = outbox
        .submit(request, SubmitOptions::default())
        .unwrap()
        .outcome()
        .await
        .unwrap();
    let Status::Delivered { response, receipt } = outcome.status else {
        panic!("{outcome:?}");
    };
    assert_eq!((outcome.attempts, receipt.status), (1, 200));
    assert_eq!(response.unwrap().status(), 200);
    // Its outcome was seen: the receipt goes.
    until(|| outbox.current_intents().is_empty()).await;

    let request = Request::build("GET", "/not-there", &[], None).unwrap();
    let outcome = outbox
        .submit(request, SubmitOptions::default())
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert!(
        matches!(&outcome.status, Status::Refused { reason: Reason::Invalid, evidence, .. } if evidence.status == Some(404)),
        "{outcome:?}"
    );
}

#[wasm_bindgen_test]
async fn a_network_failure_is_retried_under_the_same_key_until_the_budget_ends() {
    let outbox = outbox("budget");
    let mut policy = web::quick();
    policy.delays_ms = vec![5];
    policy.max_attempts = 3;
    let options = SubmitOptions {
        policy: Some(policy),
        ..with_key("budget-1")
    };
    let outcome = outbox
        .submit(order(), options)
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert_eq!((outcome.key.as_str(), outcome.attempts), ("budget-1", 3));
    assert!(outcome.maybe_delivered);
    assert!(
        matches!(
            outcome.status,
            Status::Parked {
                reason: Reason::AttemptsExhausted,
                ..
            }
        ),
        "{outcome:?}"
    );
    // Parked rows stay, with their evidence, until a person decides.
    until(|| !outbox.current_intents().is_empty()).await;
    assert_eq!(outbox.current_intents()[0].state, State::Parked);
    let submission = outbox
        .retry(Key::parse("budget-1").unwrap(), false)
        .await
        .unwrap();
    assert_eq!(submission.key().as_str(), "budget-1");
    let (cancelled, maybe) = submission.cancel().await.unwrap();
    assert!(cancelled && maybe);
    outbox
        .discard(Key::parse("budget-1").unwrap())
        .await
        .unwrap();
}

#[wasm_bindgen_test]
async fn a_known_key_is_the_same_submission_and_other_bytes_are_an_error() {
    let outbox = outbox("known");
    let first = outbox.submit(order(), with_key("known-1")).unwrap();
    first.stored().await.unwrap();
    let again = outbox.submit(order(), with_key("known-1")).unwrap();
    assert_eq!(again.stored().await, Ok(Stored::Durable));
    let other = Request::json(NOBODY, r#"{"item":"coffee"}"#).unwrap();
    let error = outbox
        .submit(other, with_key("known-1"))
        .unwrap()
        .outcome()
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::KeyReused);
    until(|| !outbox.current_intents().is_empty()).await;
    assert_eq!(outbox.current_intents().len(), 1);
    outbox.discard(first.key().clone()).await.unwrap();
}

#[wasm_bindgen_test]
async fn cancelling_in_every_phase_tells_the_truth() {
    let outbox = outbox("cancel");
    // Before the request is read: nothing ever was.
    let submission = outbox.submit(order(), SubmitOptions::default()).unwrap();
    assert_eq!(submission.cancel().await, Ok((true, false)));
    assert!(matches!(
        submission.outcome().await.unwrap().status,
        Status::Cancelled {
            reason: Reason::Discarded
        }
    ));
    // While it waits: attempts were made.
    let submission = outbox.submit(order(), with_key("cancel-2")).unwrap();
    let waits = Rc::new(RefCell::new(0));
    let counted = waits.clone();
    let _observer = outbox.observe(move |notice| {
        if let Notice::Waiting(key, _) = notice {
            if key.as_str() == "cancel-2" {
                *counted.borrow_mut() += 1;
            }
        }
    });
    until(|| *waits.borrow() >= 3).await;
    assert_eq!(submission.cancel().await, Ok((true, true)));
    // Twice is the same truth.
    assert_eq!(submission.cancel().await, Ok((true, true)));
}

#[wasm_bindgen_test]
async fn what_cannot_be_sent_is_the_callers_error_and_never_an_intent() {
    let outbox = outbox("refused-first");
    assert_eq!(
        Request::post("http://user:password@127.0.0.1/")
            .unwrap_err()
            .code(),
        Code::BadRequest
    );
    assert_eq!(
        Request::build("GET", "/", &[], Some(b"body"))
            .unwrap_err()
            .code(),
        Code::BadRequest
    );
    assert_eq!(
        Request::build("POST", "/", &[("x", "a\nb")], None)
            .unwrap_err()
            .code(),
        Code::BadRequest
    );
    let forbidden = Request::build("POST", "/", &[("Host", "example.org")], None).unwrap();
    let error = outbox
        .submit(forbidden, SubmitOptions::default())
        .unwrap()
        .stored()
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::BadRequest);
    assert!(error.message().starts_with("host:"), "{error}");
    assert_only_stored(&outbox, "refused-first-1").await;
}

#[wasm_bindgen_test]
async fn a_body_above_the_limit_is_refused_before_anything_is_stored() {
    let outbox = Outbox::open(OutboxOptions {
        name: "too-large".into(),
        max_body_bytes: 10,
        ..OutboxOptions::default()
    })
    .unwrap();
    let submission = outbox.submit(order(), SubmitOptions::default()).unwrap();
    assert_eq!(
        submission.stored().await.unwrap_err().code(),
        Code::TooLarge
    );
    assert!(outbox.current_intents().is_empty());
}

#[wasm_bindgen_test]
async fn memory_alone_is_said_and_kept() {
    let outbox = Outbox::open(OutboxOptions {
        name: "memory".into(),
        durable: false,
        policy: web::quick(),
        ..OutboxOptions::default()
    })
    .unwrap();
    assert_eq!(outbox.ready().await, Stored::NotDurable("asked"));
    let submission = outbox.submit(order(), SubmitOptions::default()).unwrap();
    assert_eq!(submission.stored().await, Ok(Stored::NotDurable("asked")));
    let intents = outbox.current_intents();
    assert_eq!((intents.len(), intents[0].durable), (1, false));
    let (cancelled, _) = submission.cancel().await.unwrap();
    assert!(cancelled);
}

#[wasm_bindgen_test]
async fn the_stream_of_intents_yields_now_and_at_every_change() {
    let outbox = outbox("stream");
    let mut intents = pin!(outbox.intents());
    let mut lists = Vec::new();
    let submission = outbox.submit(order(), with_key("stream-1")).unwrap();
    while lists.len() < 4 {
        let list = poll_fn(|context| intents.as_mut().poll_next(context))
            .await
            .unwrap();
        lists.push(list);
    }
    assert!(lists[0].is_empty());
    assert_eq!(lists[1][0].key.as_str(), "stream-1");
    assert_ne!(lists[3][0], lists[1][0]);
    submission.cancel().await.unwrap();
    let last = poll_fn(|context| intents.as_mut().poll_next(context))
        .await
        .unwrap();
    assert_eq!(last.len(), 1);
}
