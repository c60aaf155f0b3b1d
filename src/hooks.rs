//! What an application supplies besides data.

use crate::engine::sign_in::AUTHORIZE;
use crate::engine::{Classified, Intent, Supplies, Why};
use crate::outcome::Response;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// Headers that carry credentials; `None`: the person has to sign in first.
pub type Headers = Option<Vec<(String, String)>>;

/// What a hook is asked for. An error is its text.
type Asked<T> = Pin<Box<dyn Future<Output = Result<T, String>>>>;
type Authorize = dyn Fn(Rc<Intent>, Why) -> Asked<Headers>;
type Judge<T> = dyn Fn(Response, Rc<Intent>) -> Asked<T>;

/// The hooks of an outbox. Intents keep the names of those they were submitted with, and a page that has not all of them
/// leaves such an intent to another.
#[derive(Clone, Default)]
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
pub struct Hooks {
    pub(crate) authorize: Option<Rc<Authorize>>,
    pub(crate) classify: Option<Rc<Judge<Option<Classified>>>>,
    pub(crate) is_delivered: Option<Rc<Judge<bool>>>,
}

impl Hooks {
    /// Supplies credentials: asked before an intent's first attempt in a page, unless that came with headers that are not
    /// stored, and again when the server refused them. It has 30 s; whatever the error, it is asked again.
    #[must_use]
    pub fn authorize<F, E>(mut self, hook: impl Fn(Rc<Intent>, Why) -> F + 'static) -> Self
    where
        F: Future<Output = Result<Headers, E>> + 'static,
        E: ToString,
    {
        self.authorize = Some(Rc::new(move |intent, why| asked(hook(intent, why))));
        self
    }

    /// Says what an answer means, in place of the table; `None`: the table decides. It gets a copy of the response, and
    /// together with [`Hooks::is_delivered`] 5 s. Where it fails, a 2xx is parked with the reason `hook-failed`, since
    /// nobody knows what it means; of everything else the table decides.
    #[must_use]
    pub fn classify<F, E>(mut self, hook: impl Fn(Response, Rc<Intent>) -> F + 'static) -> Self
    where
        F: Future<Output = Result<Option<Classified>, E>> + 'static,
        E: ToString,
    {
        self.classify = Some(Rc::new(move |answer, intent| asked(hook(answer, intent))));
        self
    }

    /// Says whether a 2xx is an acknowledgement; if not, the intent is tried again under the same key. As data
    /// ([`Acknowledgement`](crate::Acknowledgement)) it needs no page that has the hook. It fails as
    /// [`Hooks::classify`] does, and is not asked where that decided.
    #[must_use]
    pub fn is_delivered<F, E>(mut self, hook: impl Fn(Response, Rc<Intent>) -> F + 'static) -> Self
    where
        F: Future<Output = Result<bool, E>> + 'static,
        E: ToString,
    {
        self.is_delivered = Some(Rc::new(move |answer, intent| asked(hook(answer, intent))));
        self
    }

    /// The names of those that there are.
    pub(crate) fn names(&self) -> Vec<String> {
        let all = [
            (AUTHORIZE, self.authorize.is_some()),
            ("classify", self.classify.is_some()),
            ("isDelivered", self.is_delivered.is_some()),
        ];
        let there = all.iter().filter(|(_, is_there)| *is_there);
        there.map(|(name, _)| (*name).to_owned()).collect()
    }

    /// What a page that has them supplies.
    #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
    pub(crate) fn supplies(&self) -> Supplies {
        Supplies {
            headers: self.authorize.is_some(),
            hooks: self.names(),
        }
    }
}

fn asked<T, E: ToString>(answer: impl Future<Output = Result<T, E>> + 'static) -> Asked<T> {
    Box::pin(async move { answer.await.map_err(|error| error.to_string()) })
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hooks").field(&self.names()).finish()
    }
}
