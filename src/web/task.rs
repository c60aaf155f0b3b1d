//! Running futures. Boxed first, so that js-sys's scheduler is compiled once and not for every future.

#[cfg(feature = "js")]
use js_sys::Promise;
use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "js")]
use wasm_bindgen::JsValue;

/// Runs a future, from the next microtask on.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    let boxed: Pin<Box<dyn Future<Output = ()>>> = Box::pin(future);
    js_sys::futures::spawn_local(boxed);
}

/// Runs a future for JavaScript.
#[cfg(feature = "js")]
pub fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    let boxed: Pin<Box<dyn Future<Output = Result<JsValue, JsValue>>>> = Box::pin(future);
    js_sys::futures::future_to_promise(boxed)
}
