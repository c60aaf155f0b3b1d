//! Reading JavaScript values by structural getters.

use crate::engine::decode::Source;
use crate::engine::encode::Sink;
use js_sys::{Array, Object, Reflect};
use std::cell::RefCell;
use wasm_bindgen::{JsCast, JsValue};

/// A JavaScript value being read or written.
pub struct Js(pub JsValue);

thread_local! {
    /// The names that were used so far. JavaScript takes longer to make such a string than we to find it here, and a row
    /// has half a hundred of them.
    static NAMES: RefCell<Vec<(String, JsValue)>> = const { RefCell::new(Vec::new()) };
}

/// A name as JavaScript has it.
fn name_of(text: &str) -> JsValue {
    NAMES.with_borrow_mut(|names| {
        match names.binary_search_by(|(known, _)| known.as_str().cmp(text)) {
            Ok(at) => names[at].1.clone(),
            Err(at) => {
                let name = JsValue::from_str(text);
                names.insert(at, (text.to_owned(), name.clone()));
                name
            }
        }
    })
}

/// The property of that name; absent if the value is no object or a getter throws.
pub fn get(value: &JsValue, name: &str) -> JsValue {
    Reflect::get(value, &name_of(name)).unwrap_or(JsValue::UNDEFINED)
}

/// Sets a property of an object of our own.
pub fn set(object: &Object, name: &str, value: &JsValue) {
    // Fails only on a frozen object or a setter that throws; ours are plain.
    let _ = Reflect::set(object, &name_of(name), value);
}

impl Source for Js {
    fn get(&self, name: &str) -> Option<Self> {
        let value = get(&self.0, name);
        (!value.is_undefined() && !value.is_null()).then_some(Js(value))
    }

    fn is_null(&self, name: &str) -> bool {
        get(&self.0, name).is_null()
    }

    fn string(&self) -> Option<String> {
        self.0.as_string()
    }

    fn number(&self) -> Option<f64> {
        self.0.as_f64()
    }

    fn boolean(&self) -> Option<bool> {
        self.0.as_bool()
    }

    fn items(&self) -> Option<Vec<Self>> {
        let array: &Array = self.0.dyn_ref()?;
        Some(array.iter().map(Js).collect())
    }

    fn names(&self) -> Option<Vec<String>> {
        let object: &Object = self.0.is_object().then(|| self.0.unchecked_ref())?;
        Some(
            Object::keys(object)
                .iter()
                .filter_map(|name| name.as_string())
                .collect(),
        )
    }
}

impl Sink for Js {
    fn string(text: &str) -> Self {
        Js(JsValue::from_str(text))
    }

    fn number(number: f64) -> Self {
        Js(JsValue::from_f64(number))
    }

    fn boolean(boolean: bool) -> Self {
        Js(JsValue::from_bool(boolean))
    }

    fn list(items: Vec<Self>) -> Self {
        let array: Array = items.into_iter().map(|item| item.0).collect();
        Js(array.into())
    }

    fn null() -> Self {
        Js(JsValue::NULL)
    }

    fn object() -> Self {
        Js(Object::new().into())
    }

    fn set(&mut self, name: &str, value: Self) {
        set(self.0.unchecked_ref(), name, &value.0);
    }
}
