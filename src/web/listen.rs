//! An event listener that is removed when it is dropped.

use wasm_bindgen::prelude::*;
use web_sys::{Event, EventTarget};

/// A listener. The closure lives as long as it is registered, and is unregistered before it is dropped.
pub struct Listener {
    target: EventTarget,
    name: &'static str,
    closure: Closure<dyn FnMut(Event)>,
}

impl Listener {
    /// Listens for an event.
    pub fn new(
        target: &EventTarget,
        name: &'static str,
        on_event: impl FnMut(Event) + 'static,
    ) -> Self {
        let closure = Closure::<dyn FnMut(Event)>::new(on_event);
        // `addEventListener` throws only for a callback that is no function.
        let _ = target.add_event_listener_with_callback(name, closure.as_ref().unchecked_ref());
        Listener {
            target: target.clone(),
            name,
            closure,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self
            .target
            .remove_event_listener_with_callback(self.name, self.closure.as_ref().unchecked_ref());
    }
}
