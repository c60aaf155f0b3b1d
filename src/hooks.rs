//! What an application supplies besides data.

use crate::engine::sign_in::AUTHORIZE;
use crate::engine::{Intent, Supplies, Why};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// Headers that carry credentials; `None`: the person has to sign in first.
pub type Headers = Option<Vec<(String, String)>>;
type Authorize = dyn Fn(Rc<Intent>, Why) -> Pin<Box<dyn Future<Output = Result<Headers, String>>>>;

/// The hooks of an outbox. Intents keep the names of those they were submitted with, and a page that has not all of them
/// leaves such an intent to another.
#[derive(Clone, Default)]
pub struct Hooks {
    #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
    pub(crate) authorize: Option<Rc<Authorize>>,
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
        self.authorize = Some(Rc::new(move |intent, why| {
            let asked = hook(intent, why);
            Box::pin(async move { asked.await.map_err(|error| error.to_string()) })
        }));
        self
    }

    /// The names of those that there are.
    pub(crate) fn names(&self) -> Vec<String> {
        let authorize = self.authorize.as_ref().map(|_| AUTHORIZE.to_owned());
        authorize.into_iter().collect()
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

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hooks").field(&self.names()).finish()
    }
}
