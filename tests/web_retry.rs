//! The loop without the storage, in a real browser: timers, abort, and what is left behind.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod web;

use js_sys::{Function, Promise};
use resubmit::{submit_with_retry, Key, Policy, Status};
use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};
use web::until;

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen]
extern "C" {
    /// A response made by the page.
    #[wasm_bindgen(extends = js_sys::Object, js_name = Response)]
    type Answer;
    #[wasm_bindgen(constructor, js_class = "Response")]
    fn new(body: &JsValue, init: &JsValue) -> Answer;
}

/// What a `send` saw, and the function itself.
type Seen = Rc<RefCell<Vec<(String, f64)>>>;

/// A `send` that answers the attempts with these statuses, the last repeated; 0 rejects.
fn send(statuses: &'static [u16]) -> (Function, Seen) {
    let seen: Seen = Rc::default();
    let log = seen.clone();
    let function = Closure::<dyn FnMut(JsValue) -> Promise>::new(move |attempt: JsValue| {
        let read = |name: &str| js_sys::Reflect::get(&attempt, &name.into()).unwrap();
        log.borrow_mut().push((
            read("key").as_string().unwrap(),
            read("attempt").as_f64().unwrap(),
        ));
        let at = (log.borrow().len() - 1).min(statuses.len() - 1);
        match statuses[at] {
            0 => Promise::reject(&"no network".into()),
            status => {
                let init = js_sys::Object::new();
                js_sys::Reflect::set(&init, &"status".into(), &status.into()).unwrap();
                Promise::resolve(&JsValue::from(Answer::new(&JsValue::NULL, &init)))
            }
        }
    });
    (function.into_js_value().unchecked_into(), seen)
}

fn policy() -> Policy {
    Policy {
        base_ms: 2,
        ceiling_ms: 4,
        ..Policy::interactive()
    }
}

#[wasm_bindgen_test]
async fn it_retries_under_one_key_until_it_is_delivered() {
    let (send, seen) = send(&[503, 0, 201]);
    let outcome = submit_with_retry(send, Key::parse("mine").unwrap(), policy())
        .await
        .unwrap();
    assert!(
        matches!(outcome.status, Status::Delivered { .. }),
        "{outcome:?}"
    );
    let expected = [1.0, 2.0, 3.0].map(|n| ("mine".to_owned(), n));
    assert_eq!(*seen.borrow(), expected);
}

#[wasm_bindgen_test]
async fn four_attempts_are_all_that_interactive_spends() {
    let (send, seen) = send(&[500]);
    let outcome = submit_with_retry(send, Key::parse("k").unwrap(), policy())
        .await
        .unwrap();
    assert!(
        matches!(outcome.status, Status::Parked { .. }),
        "{outcome:?}"
    );
    assert_eq!((outcome.attempts, seen.borrow().len()), (4, 4));
}

#[wasm_bindgen_test]
async fn what_the_server_refuses_is_not_repeated() {
    let (send, seen) = send(&[422]);
    let outcome = submit_with_retry(send, Key::parse("k").unwrap(), policy())
        .await
        .unwrap();
    assert!(
        matches!(outcome.status, Status::Refused { .. }),
        "{outcome:?}"
    );
    assert_eq!(seen.borrow().len(), 1);
}

/// Polls a future once and drops it.
async fn drop_after_first_poll(future: impl Future) {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[wasm_bindgen_test]
async fn dropping_it_in_the_wait_ends_it() {
    let (send, seen) = send(&[503]);
    let slow = Policy {
        jitter: resubmit::engine::Jitter::None,
        base_ms: 30,
        ceiling_ms: 30,
        ..Policy::interactive()
    };
    let mut running = Box::pin(submit_with_retry(send, Key::parse("k").unwrap(), slow));
    // Until its first attempt was answered.
    std::future::poll_fn(|context| {
        assert!(running.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
    until(|| seen.borrow().len() == 1).await;
    gloo_timers::future::TimeoutFuture::new(0).await;
    drop(running);
    // Longer than its wait was: a timer left behind would have sent again.
    gloo_timers::future::TimeoutFuture::new(90).await;
    assert_eq!(seen.borrow().len(), 1);
}

#[wasm_bindgen_test]
async fn dropping_it_aborts_the_attempt() {
    let aborted = Rc::new(RefCell::new(None));
    let signal = aborted.clone();
    let never = Closure::<dyn FnMut(JsValue) -> Promise>::new(move |attempt: JsValue| {
        *signal.borrow_mut() = Some(js_sys::Reflect::get(&attempt, &"signal".into()).unwrap());
        Promise::new(&mut |_, _| {})
    });
    let never: Function = never.into_js_value().unchecked_into();
    drop_after_first_poll(submit_with_retry(never, Key::parse("k").unwrap(), policy())).await;
    let signal: web_sys::AbortSignal = aborted.borrow_mut().take().unwrap().unchecked_into();
    assert!(signal.aborted());
}
