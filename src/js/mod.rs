//! The exports to JavaScript: a thin layer over the Rust API, which `www/lib` gives its public shape.

mod view;

use crate::engine::decode::Source;
use crate::engine::shape::Value;
use crate::engine::{Classified, Code, Error, Key, Op, OutboxOptions, Policy, SubmitOptions};
use crate::web::{acknowledged, mint, promise, Driver, Js, Outbox, Reply, Request, RetryLoop};
use crate::{Headers, Hooks, Notice, Observer, Owner};
use js_sys::futures::JsFuture;
use js_sys::{Array, Function, Promise};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use view::{cancelled, error, outcome, stored, text, Views};
use wasm_bindgen::prelude::*;

/// An outbox, for the JavaScript face.
#[wasm_bindgen]
pub struct Core {
    outbox: Outbox,
    views: Rc<RefCell<Views>>,
    _observer: Observer,
}

#[wasm_bindgen]
impl Core {
    /// Opens an outbox. `hooks`: the functions among its options. `listener(type, key, intent, extra, owner, current)` is
    /// called with everything that happens; with the intent once [`Core::show`] was called.
    #[wasm_bindgen(constructor)]
    pub fn new(options: JsValue, hooks: JsValue, listener: Function) -> Result<Core, JsValue> {
        let options = OutboxOptions::read(&Js(options)).map_err(error)?;
        let views = Rc::new(RefCell::new(Views::default()));
        let hooks = read_hooks(&hooks, &views)?;
        let outbox = Outbox::open_with(options, hooks).map_err(error)?;
        let seen = views.clone();
        let observer = outbox.observe_all(Rc::new(move |notice: &Notice, driver: &Driver| {
            tell(&listener, &seen, notice, driver);
        }));
        Ok(Core {
            outbox,
            views,
            _observer: observer,
        })
    }

    /// Somebody listens: from now on the intents come with what happens.
    pub fn show(&self) {
        self.views.borrow_mut().wanted = true;
    }

    /// Resolves with whether there is storage.
    pub fn ready(&self) -> Promise {
        let outbox = self.outbox.clone();
        promise(async move { Ok(stored(outbox.ready().await)) })
    }

    /// Submits under a key that the face minted or the application brought. `what` has the `request`, and as `named` the
    /// headers that the caller set. `joins(owner)` is called when the request was read, and says whether it is wanted still:
    /// from then on what is told of the key is told of this submission. Rejects with what is wrong with it; resolves
    /// with its outcome if it was given up before that.
    pub fn submit(
        &self,
        key: &str,
        what: JsValue,
        options: JsValue,
        joins: Function,
    ) -> Result<Promise, JsValue> {
        let options = SubmitOptions::read(&Js(options), &self.outbox.options().policy);
        let options = options.map_err(error)?;
        let key = Key::parse(key).map_err(error)?;
        let request = Request::read(&Js(what));
        let has_joined = Rc::new(Cell::new(false));
        let joined = has_joined.clone();
        let submission = self.outbox.submit_as(key, request, options, move |owner| {
            let wanted = joins.call1(&JsValue::UNDEFINED, &whose(owner));
            joined.set(wanted.is_ok_and(|wanted| wanted.is_truthy()));
            joined.get()
        });
        Ok(promise(async move {
            submission.stored().await.map_err(error)?;
            if has_joined.get() {
                return Ok(JsValue::UNDEFINED);
            }
            submission
                .ended()
                .await
                .map(|ended| outcome(&ended))
                .map_err(error)
        }))
    }

    /// Follows an intent that may be known to the store alone. `joins(owner)` is called when it is known whose. Rejects if
    /// it is not known.
    pub fn follow(&self, key: &str, joins: Function) -> Result<Promise, JsValue> {
        let submission = self.outbox.follow(known(key)?, move |owner| {
            let _ = joins.call1(&JsValue::UNDEFINED, &whose(owner));
        });
        Ok(promise(async move {
            submission.stored().await.map_err(error)?;
            Ok(JsValue::UNDEFINED)
        }))
    }

    /// Gives an intent up; resolves with `{ cancelled, maybeDelivered }`.
    pub fn cancel(&self, key: &str, owner: Option<String>) -> Result<Promise, JsValue> {
        Ok(self.ask(owner, Op::Cancel(known(key)?), |done| {
            done.map(|applied| cancelled(applied.cancelled()))
        }))
    }

    /// A person's fresh intent; resolves with its key.
    pub fn retry(&self, key: &str, may_repeat: bool) -> Result<Promise, JsValue> {
        let op = Op::Retry {
            key: known(key)?,
            new_key: mint().map_err(error)?,
            may_repeat,
        };
        Ok(self.ask(None, op, |done| {
            done.map(|applied| {
                let key = applied.record.map(|record| text(record.key.as_str()));
                key.unwrap_or(JsValue::UNDEFINED)
            })
        }))
    }

    /// A person's fresh intent for everything that is parked; resolves with the keys.
    #[wasm_bindgen(js_name = retryAll)]
    pub fn retry_all(&self) -> Promise {
        let outbox = self.outbox.clone();
        promise(async move {
            let retried = outbox.retry_all().await.map_err(error)?;
            let keys = retried.iter().map(|each| text(each.key().as_str()));
            Ok(keys.collect::<Array>().into())
        })
    }

    /// Deletes an intent.
    pub fn discard(&self, key: &str) -> Result<Promise, JsValue> {
        let op = Op::Discard(known(key)?);
        Ok(self.ask(None, op, |done| done.map(|_| JsValue::UNDEFINED)))
    }

    /// Deletes what is kept of an intent that has ended.
    pub fn acknowledge(&self, key: &str, owner: Option<String>) -> Result<Promise, JsValue> {
        let op = Op::Forget(known(key)?);
        Ok(self.ask(owner, op, |done| {
            acknowledged(done).map(|()| JsValue::UNDEFINED)
        }))
    }

    /// Makes an owner the current one; none: nobody.
    #[wasm_bindgen(js_name = setOwner)]
    pub fn set_owner(&self, owner: Option<String>) -> Promise {
        let heard = self.outbox.set_owner(owner);
        promise(async move { heard.await.map(|()| JsValue::UNDEFINED).map_err(error) })
    }

    /// Deletes everything of an owner.
    pub fn clear(&self, owner: String) -> Promise {
        let outbox = self.outbox.clone();
        promise(async move {
            let cleared = outbox.clear(&owner).await;
            cleared.map(|()| JsValue::UNDEFINED).map_err(error)
        })
    }

    /// Says that the person may have signed in.
    pub fn resume(&self) {
        self.outbox.resume();
    }

    /// This owner's intents as far as they were read.
    pub fn intents(&self) -> Array {
        let current = self.outbox.current_intents();
        self.views.borrow_mut().list(&current)
    }

    /// How many stored rows this build cannot read.
    pub fn unreadable(&self) -> u32 {
        self.outbox.unreadable()
    }

    /// Ends this page's part.
    pub fn close(&self) {
        self.outbox.close();
    }
}

impl Core {
    /// Has the outbox do something, for the current owner or the one named; resolves with what its end is to JavaScript.
    fn ask(
        &self,
        owner: Option<String>,
        op: Op,
        end: fn(Reply) -> Result<JsValue, Error>,
    ) -> Promise {
        let outbox = self.outbox.clone();
        promise(async move { end(outbox.ask(owner, op).await).map_err(error) })
    }
}

/// Reads the functions among the options.
fn read_hooks(hooks: &JsValue, views: &Rc<RefCell<Views>>) -> Result<Hooks, JsValue> {
    let mut read = Hooks::default();
    if let Some(hook) = function(hooks, "authorize")? {
        let views = views.clone();
        read = read.authorize(move |intent, why| {
            let asked = ask(&hook, &views.borrow_mut().of(&intent), &text(why.as_str()));
            async move { headers_of(&asked.await?).map_err(message) }
        });
    }
    if let Some(hook) = function(hooks, "classify")? {
        let views = views.clone();
        read = read.classify(move |response, intent| {
            let asked = ask(&hook, &response, &views.borrow_mut().of(&intent));
            async move {
                let said = asked.await?;
                if said.is_null_or_undefined() {
                    return Ok(None);
                }
                let classified = Classified::read(&Js(said)).ok_or(Classified::EXPECTED)?;
                Ok::<_, String>(Some(classified))
            }
        });
    }
    if let Some(hook) = function(hooks, "isDelivered")? {
        let views = views.clone();
        read = read.is_delivered(move |response, intent| {
            let asked = ask(&hook, &response, &views.borrow_mut().of(&intent));
            async move { Ok::<_, String>(asked.await?.as_bool().ok_or(bool::EXPECTED)?) }
        });
    }
    Ok(read)
}

fn function(hooks: &JsValue, name: &str) -> Result<Option<Function>, JsValue> {
    let Some(hook) = Js(hooks.clone()).get(name) else {
        return Ok(None);
    };
    let hook = hook.0.dyn_into().map_err(|_| {
        let name = ["options.", name].concat();
        error(Error::about(Code::BadOption, &name, "expected a function"))
    });
    hook.map(Some)
}

/// Calls a hook, and waits for what it promised. An error is its message.
fn ask(
    hook: &Function,
    first: &JsValue,
    second: &JsValue,
) -> Pin<Box<dyn Future<Output = Result<JsValue, String>>>> {
    let called = hook.call2(&JsValue::UNDEFINED, first, second);
    Box::pin(async move {
        let answer = match called {
            Ok(answer) => JsFuture::from(Promise::resolve(&answer)).await,
            thrown => thrown,
        };
        answer.map_err(message)
    })
}

fn message(thrown: JsValue) -> String {
    let message = Js(thrown).get("message");
    let message = message.and_then(|message| message.string());
    message.unwrap_or_default()
}

/// What a hook gave as headers, in any form that `fetch` takes.
fn headers_of(given: &JsValue) -> Result<Headers, JsValue> {
    if given.is_null_or_undefined() {
        return Ok(None);
    }
    let headers = web_sys::Headers::new_with_headers(given.unchecked_ref())?;
    let pairs = Array::from(&headers).into_iter();
    Ok(Some(
        pairs.filter_map(|pair| Value::read(&Js(pair))).collect(),
    ))
}

fn known(key: &str) -> Result<Key, JsValue> {
    Key::parse(key).map_err(|_| {
        error(Error::new(
            Code::UnknownKey,
            "no intent of that key is known here",
        ))
    })
}

/// An owner as JavaScript has it.
fn whose(owner: &Owner) -> JsValue {
    owner.as_deref().map_or(JsValue::NULL, text)
}

fn tell(listener: &Function, views: &RefCell<Views>, notice: &Notice, driver: &Driver) {
    let owner = driver.owner.get().flatten();
    let current = JsValue::from(driver.is_current());
    let call = |name: &str, key: Option<&Key>, intent: JsValue, extra: JsValue| {
        let key = key.map_or(JsValue::NULL, |key| text(key.as_str()));
        let (name, owner) = (text(name), whose(&owner));
        // The face catches what its own listeners throw.
        let this = JsValue::UNDEFINED;
        let _ = listener.call6(&this, &name, &key, &intent, &extra, &owner, &current);
    };
    let (name, key, intent, extra) = match notice {
        Notice::Stored(key, intent, is_stored) => ("stored", key, intent, stored(*is_stored)),
        Notice::Known(key, intent, is_stored, ended) => {
            let view = views.borrow_mut().shown(intent);
            call("known", Some(key), view, stored(*is_stored));
            match ended {
                Some(ended) => ("ended", key, intent, outcome(ended)),
                None => return,
            }
        }
        Notice::Attempted(key, intent) => ("attempted", key, intent, JsValue::UNDEFINED),
        Notice::Waiting(key, intent) => ("waiting", key, intent, JsValue::UNDEFINED),
        Notice::Settled(key, intent, ended) => ("settled", key, intent, outcome(ended)),
        Notice::Listed => return call("listed", None, JsValue::NULL, JsValue::UNDEFINED),
        Notice::OwnerChanged(owner) => {
            return call("ownerchange", None, JsValue::NULL, whose(owner));
        }
        Notice::Degraded(reason) => {
            return call("degraded", None, JsValue::NULL, text(reason));
        }
    };
    let intent = views.borrow_mut().shown(intent);
    call(name, Some(key), intent, extra);
}

/// The loop without the storage.
#[wasm_bindgen]
pub struct Loop(RetryLoop);

#[wasm_bindgen]
impl Loop {
    /// Starts it. `key`: the application's own, or none for a fresh one.
    #[wasm_bindgen(constructor)]
    pub fn new(send: Function, key: Option<String>, policy: JsValue) -> Result<Loop, JsValue> {
        let key = match key {
            Some(key) => Key::parse(&key),
            None => mint(),
        };
        let default = Policy::interactive();
        let policy = if policy.is_undefined() || policy.is_null() {
            Ok(default)
        } else {
            default.read(&Js(policy), "policy")
        };
        Ok(Loop(RetryLoop::start(
            send,
            key.map_err(error)?,
            policy.map_err(error)?,
        )))
    }

    /// Resolves with how it ended.
    pub fn outcome(&self) -> Promise {
        let ended = self.0.outcome();
        promise(async move { ended.await.map(|ended| outcome(&ended)).map_err(error) })
    }

    /// Ends it: no timer, listener or request of it is left.
    pub fn abort(&self) {
        self.0.abort();
    }
}

/// Calls back with the text of a panic. The instance is of no use afterwards.
#[wasm_bindgen]
pub fn on_panic(callback: Function) {
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let message = match payload.downcast_ref::<String>() {
            Some(message) => message,
            None => payload.downcast_ref().copied().unwrap_or("panic"),
        };
        let place = info.location().map_or("", |location| location.file());
        let line = info.location().map_or(0, |location| location.line());
        let _ = callback.call3(
            &JsValue::UNDEFINED,
            &text(message),
            &text(place),
            &JsValue::from(line),
        );
    }));
}
