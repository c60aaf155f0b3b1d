//! The global scope: a window or a worker, asked by name, so that neither is taken for granted.

use crate::engine::{Clocks, Env, Random};
use js_sys::{Object, Promise};
use wasm_bindgen::prelude::*;
use web_sys::EventTarget;

#[wasm_bindgen]
extern "C" {
    /// The global object, with the few properties that are read.
    pub type Global;
    #[wasm_bindgen(method, getter)]
    pub fn navigator(this: &Global) -> Option<Navigator>;
    #[wasm_bindgen(method, getter)]
    fn document(this: &Global) -> Option<EventTarget>;
    #[wasm_bindgen(method, getter)]
    fn location(this: &Global) -> Option<Location>;

    pub type Navigator;
    #[wasm_bindgen(method, getter)]
    pub fn locks(this: &Navigator) -> Option<LockManager>;
    #[wasm_bindgen(method, getter, js_name = onLine)]
    fn on_line(this: &Navigator) -> Option<bool>;

    pub type LockManager;
    #[wasm_bindgen(method)]
    pub fn request(this: &LockManager, name: &str, on_grant: &JsValue) -> Promise;

    type Location;
    #[wasm_bindgen(method, getter)]
    fn protocol(this: &Location) -> String;

    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    fn date_now() -> f64;
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;

    /// `fetch`, called unbound: windows and workers both have it. A page may have wrapped it: it may throw, or return
    /// anything.
    #[wasm_bindgen(js_name = fetch, catch)]
    pub fn fetch(url: &str, init: &Object) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(js_namespace = console, js_name = warn)]
    pub fn warn(text: &str);

    #[cfg(feature = "js")]
    #[wasm_bindgen(js_namespace = JSON, js_name = parse, catch)]
    pub fn json_parse(text: &str) -> Result<JsValue, JsValue>;
}

/// The global object.
pub fn global() -> Global {
    js_sys::global().unchecked_into()
}

/// The global object, for its events.
pub fn global_target() -> EventTarget {
    js_sys::global().unchecked_into()
}

/// The document, where there is one.
pub fn document() -> Option<EventTarget> {
    global().document()
}

/// Whether the browser says that there is no network.
pub fn offline() -> bool {
    global()
        .navigator()
        .and_then(|navigator| navigator.on_line())
        == Some(false)
}

/// Whether the page came over HTTPS.
pub fn is_https() -> bool {
    global()
        .location()
        .is_some_and(|location| location.protocol() == "https:")
}

/// Both clocks.
pub fn clocks() -> Clocks {
    Clocks {
        wall: date_now() as u64,
        mono: performance_now() as u64,
    }
}

/// Both clocks and fresh randomness.
pub fn env() -> Env {
    let Clocks { wall, mono } = clocks();
    Env {
        wall,
        mono,
        random: Random::new(getrandom::u64().unwrap_or_default()),
    }
}
