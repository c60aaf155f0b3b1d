//! What JavaScript sees: plain objects made from the crate's types.

use crate::engine::encode::write;
use crate::engine::table::Table;
use crate::engine::{Error, Intent};
use crate::web::{json_parse, set, Js};
use crate::{Outcome, Status, Stored};
use js_sys::{Array, Object};
use serde::{Serialize, Serializer as _};
use serde_wasm_bindgen::Serializer;
use std::rc::{Rc, Weak};
use wasm_bindgen::JsValue;

/// A string.
pub fn text(text: &str) -> JsValue {
    JsValue::from_str(text)
}

/// What a plain object can have here.
#[derive(Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Flag(bool),
    Text(&'a str),
}

/// A plain object. (Of a map: for a struct serde-wasm-bindgen keeps the names of the fields, in a hash table.)
fn plain(fields: &[(&str, Field<'_>)]) -> JsValue {
    let fields = fields.iter().map(|(name, field)| (*name, field));
    Serializer::new()
        .serialize_maps_as_objects(true)
        .collect_map(fields)
        // Booleans and strings: there is nothing that could fail.
        .unwrap_or(JsValue::NULL)
}

/// An error, as `{ code, message }`; the face makes a `ResubmitError` of it.
pub fn error(error: Error) -> JsValue {
    plain(&[
        ("code", Field::Text(error.code().as_str())),
        ("message", Field::Text(error.message())),
    ])
}

/// `Stored` of the JavaScript API.
pub fn stored(stored: Stored) -> JsValue {
    match stored {
        Stored::Durable => plain(&[("durable", Field::Flag(true))]),
        Stored::NotDurable(reason) => plain(&[
            ("durable", Field::Flag(false)),
            ("reason", Field::Text(reason)),
        ]),
    }
}

/// `Cancelled` of the JavaScript API.
pub fn cancelled((cancelled, maybe_delivered): (bool, bool)) -> JsValue {
    plain(&[
        ("cancelled", Field::Flag(cancelled)),
        ("maybeDelivered", Field::Flag(maybe_delivered)),
    ])
}

/// `Outcome` of the JavaScript API.
pub fn outcome(outcome: &Outcome) -> JsValue {
    let object = Object::new();
    let put = |name: &str, value: JsValue| set(&object, name, &value);
    let status = match &outcome.status {
        Status::Delivered { response, receipt } => {
            put(
                "response",
                response.clone().map_or(JsValue::NULL, Into::into),
            );
            put("receipt", write::<Js>(receipt).0);
            "delivered"
        }
        Status::Refused {
            reason,
            response,
            evidence,
        } => {
            put("reason", text(reason.as_str()));
            put(
                "response",
                response.clone().map_or(JsValue::NULL, Into::into),
            );
            put("evidence", write::<Js>(evidence).0);
            "refused"
        }
        Status::Parked { reason, evidence } => {
            put("reason", text(reason.as_str()));
            put(
                "evidence",
                evidence
                    .as_ref()
                    .map_or(JsValue::NULL, |it| write::<Js>(it).0),
            );
            "parked"
        }
        Status::Cancelled { reason } => {
            put("reason", text(reason.as_str()));
            "cancelled"
        }
    };
    put("status", text(status));
    put("key", text(outcome.key.as_str()));
    put("attempts", outcome.attempts.into());
    put("maybeDelivered", outcome.maybe_delivered.into());
    Object::freeze(&object).into()
}

/// The objects that were given out for intents: the same one while the intent did not change, that is while its `Rc` is
/// the same. A page may submit for hours and never look at the list: what is gone there is let go here.
#[derive(Default)]
pub struct Views {
    /// By address. It is not given to another while the `Weak` is there.
    known: Table<usize, (Weak<Intent>, JsValue)>,
    /// How many there may be before those that are gone are let go.
    limit: usize,
    /// Whether anybody looks at what comes with an event. Until then none is made.
    pub wanted: bool,
}

impl Views {
    /// The object of an intent.
    pub fn of(&mut self, intent: &Rc<Intent>) -> JsValue {
        let address = Rc::as_ptr(intent) as usize;
        if let Some((_, view)) = self.known.get(&address) {
            return view.clone();
        }
        if self.known.len() >= self.limit {
            self.known.retain(|(intent, _)| intent.strong_count() > 0);
            self.limit = 64.max(2 * self.known.len());
        }
        let view = view(intent);
        let known = (Rc::downgrade(intent), view.clone());
        self.known.insert(address, known);
        view
    }

    /// The object that comes with an event.
    pub fn shown(&mut self, intent: &Rc<Intent>) -> JsValue {
        if self.wanted {
            self.of(intent)
        } else {
            JsValue::UNDEFINED
        }
    }

    /// The objects of a list.
    pub fn list(&mut self, intents: &[Rc<Intent>]) -> Array {
        intents.iter().map(|intent| self.of(intent)).collect()
    }
}

fn view(intent: &Intent) -> JsValue {
    let view: Object = intent.write::<Js>().0.into();
    let meta = intent.meta.as_deref().map(json_parse);
    set(
        &view,
        "meta",
        &meta.and_then(Result::ok).unwrap_or(JsValue::NULL),
    );
    Object::freeze(&view).into()
}
