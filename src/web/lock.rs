//! Locks that all pages of a site share: Web Locks.

use super::global::{global, LockManager};
use js_sys::futures::JsFuture;
use js_sys::{Array, Function, Promise};
use wasm_bindgen::prelude::*;

/// A lock that is held, or asked for, until this is dropped.
pub struct Lock(Function);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.call0(&JsValue::UNDEFINED);
    }
}

/// Waits for a lock. Without one where the browser has none (an insecure page) or refuses it (an opaque origin).
pub async fn lock(name: &str) -> Option<Lock> {
    let locks: LockManager = global().navigator()?.locks()?;
    let (held, release) = promise();
    // From here on: a future that is dropped while it waits gives the lock back as soon as it is granted.
    let lock = Lock(release);
    let (granted, grant) = promise();
    let on_grant = Closure::once_into_js(move || -> Promise {
        let _ = grant.call0(&JsValue::UNDEFINED);
        held
    });
    let refused = locks.request(name, &on_grant);
    let either = Promise::race(&Array::of2(&granted, &refused));
    JsFuture::from(either).await.ok()?;
    Some(lock)
}

/// A promise, and what resolves it.
fn promise() -> (Promise, Function) {
    let mut resolve = JsValue::UNDEFINED;
    let promise = Promise::new(&mut |function, _| resolve = function.into());
    (promise, resolve.unchecked_into())
}
