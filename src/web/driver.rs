//! Runs the engine in a page: hands in what happened, carries out what it decides.
//!
//! The engine is borrowed only while it decides. Effects wait in a list that the outermost call drains, so a listener
//! may call back in, and what it asks for comes after what was decided before.

use super::attempt::{follow, patience, send_by, within, Ended};
use super::global::{clocks, document, env, fetch, global_target, offline, warn};
use super::latch::Latch;
use super::listen::Listener;
use super::listing::Listing;
use super::lock::lock;
use super::outbox::{mint, Notice, Stored};
use super::owners::Owners;
use super::request::{freeze, thaw, Frozen, Request};
use super::source::get;
use super::store::{StorageError, Store};
use super::task::spawn;
use crate::engine::owner::ANONYMOUS;
use crate::engine::queue::{Due, Ticket};
use crate::engine::table::Table;
use crate::engine::text::cut;
use crate::engine::verdict::Ruling;
use crate::engine::{
    Acknowledgement, Answer, Applied, Beside, Code, Credentials, Effect, Error, Event, Intent, Key,
    Op, OutboxOptions, Owner, Queue, Record, Report, State, SubmitOptions, Wall, Why,
};
use crate::hooks::Hooks;
use crate::outcome::Outcome;
use gloo_timers::callback::Timeout;
use js_sys::{Function, Uint8Array};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use web_sys::{AbortController, Response};

/// How long a storage operation may take, in milliseconds, before the page goes on without it.
pub const STORAGE_MS: u32 = 10_000;

/// How long `authorize` may take, in milliseconds.
const AUTHORIZE_MS: u32 = 30_000;

/// How often a page looks for what was kept for long enough: once a day, in milliseconds.
const FORGET_MS: u64 = 24 * 60 * 60 * 1_000;

/// How long the hooks that judge an answer may hold up the verdict, in milliseconds.
const JUDGE_MS: u32 = 5_000;

/// What a page holds of an intent that it sends, besides the row.
#[derive(Clone, Default)]
struct Held {
    /// When the intent was made: its key may come to mean another.
    of: Wall,
    body: Option<Uint8Array>,
    /// Headers that must not be stored.
    left_out: Vec<(String, String)>,
    /// Those that `authorize` gave.
    authorized: Vec<(String, String)>,
}

/// Somebody who follows one submission.
#[derive(Clone)]
pub struct Watch {
    /// Whether it is on the disk.
    pub stored: Latch<Result<Stored, Error>>,
    /// How it ended.
    pub outcome: Latch<Result<Outcome, Error>>,
    /// The print of the request that was submitted, where the application brought its own key.
    print: Rc<OnceCell<Option<String>>>,
}

impl Watch {
    pub fn new() -> Self {
        Watch {
            stored: Latch::new(),
            outcome: Latch::new(),
            print: Rc::default(),
        }
    }

    fn reject(&self, error: &Error) {
        self.stored.set(Err(error.clone()));
        self.outcome.set(Err(error.clone()));
    }

    fn is(&self, other: &Watch) -> bool {
        Rc::ptr_eq(&self.print, &other.print)
    }
}

/// The time limit of one storage operation: what it came to counts, or that it was late, whichever is first. The
/// operation itself runs on, since dropping a request of idb's aborts its whole transaction.
struct Patience {
    over: Rc<Cell<bool>>,
    _timer: Timeout,
}

impl Patience {
    fn new(late: Box<dyn FnOnce()>) -> Self {
        let over = Rc::new(Cell::new(false));
        let lost = over.clone();
        let _timer = Timeout::new(STORAGE_MS, move || {
            if !lost.replace(true) {
                late();
            }
        });
        Patience { over, _timer }
    }

    fn in_time(self) -> bool {
        !self.over.replace(true)
    }
}

/// What a transaction that somebody asked for came to.
pub type Reply = Result<Box<Applied>, Error>;
/// What is called with everything that happens, and with the driver that it happens to.
pub type Observe = dyn Fn(&Notice, &Driver);
/// Who is called with everything that happens, for as long as somebody holds the observer.
pub type Observers = Rc<RefCell<Vec<Weak<Observe>>>>;

/// The engine of one owner in a page, and what it acts on.
pub struct Driver {
    pub options: OutboxOptions,
    hooks: Hooks,
    /// Whose it is, once that is known.
    pub owner: Latch<Owner>,
    /// Those of the page, where there may be several.
    owners: Weak<Owners>,
    /// The application's `send`, in place of `fetch`.
    send: Option<Function>,
    store: Option<Rc<Store>>,
    queue: RefCell<Queue>,
    effects: RefCell<VecDeque<Effect>>,
    draining: Cell<bool>,
    timer: RefCell<Option<Timeout>>,
    listeners: RefCell<Vec<Listener>>,
    /// Submissions whose request is still being read.
    freezing: RefCell<Vec<(Key, Watch)>>,
    held: RefCell<Table<Key, Held>>,
    attempts: RefCell<Table<Key, (u64, AbortController)>>,
    responses: RefCell<Table<Key, (u64, Response)>>,
    tickets: Cell<Ticket>,
    replies: RefCell<Table<Ticket, Latch<Reply>>>,
    watches: RefCell<Table<Key, Vec<Watch>>>,
    observers: Observers,
    listing: RefCell<Option<Listing>>,
    /// When it last forgot what was kept for long enough.
    forgot: Cell<Wall>,
    blocked: RefCell<Vec<String>>,
    trouble: Cell<Option<StorageError>>,
    closed: Cell<bool>,
    /// Whether there is storage, once that is known.
    pub ready: Latch<Stored>,
}

/// Where the fences of a new intent begin: at random, so that a late answer to another that had its key is not taken for
/// one to this.
fn fresh_fence() -> u64 {
    getrandom::u32().unwrap_or_default().into()
}

fn unanswered() -> Error {
    Error::new(
        Code::StorageFailed,
        "the browser's storage failed or did not answer",
    )
}

impl Driver {
    /// A page's first driver. Without `options.durable` it has no storage.
    pub fn start(
        options: OutboxOptions,
        hooks: Hooks,
        send: Option<Function>,
        owners: Weak<Owners>,
    ) -> Rc<Self> {
        let store = options.durable.then(|| Store::new(&options.name));
        let driver = Driver::new(
            options,
            hooks,
            send,
            store,
            owners,
            Rc::default(),
            Latch::new(),
        );
        match (driver.options.owner.clone(), &driver.store) {
            (Some(owner), _) => driver.belong_to(owner),
            (None, None) => driver.belong_to(Some(ANONYMOUS.to_owned())),
            // The store says.
            (None, Some(_)) => {}
        }
        match driver.store.clone() {
            Some(store) => driver.open(store),
            None => {
                driver.ready.set(Stored::NotDurable("asked"));
            }
        }
        driver
    }

    /// Another owner's driver in the same page.
    pub fn beside(&self, owner: Owner) -> Rc<Self> {
        let driver = Driver::new(
            self.options.clone(),
            self.hooks.clone(),
            None,
            self.store.as_ref().map(|store| store.part()),
            self.owners.clone(),
            self.observers.clone(),
            self.ready.clone(),
        );
        driver.trouble.set(self.trouble.get());
        driver.belong_to(owner);
        if let Some(store) = driver.store.clone() {
            let driver = driver.clone();
            spawn(async move {
                let _ = store.opened().await;
                driver.input(Event::Opened);
            });
        }
        driver
    }

    fn new(
        options: OutboxOptions,
        hooks: Hooks,
        send: Option<Function>,
        store: Option<Rc<Store>>,
        owners: Weak<Owners>,
        observers: Observers,
        ready: Latch<Stored>,
    ) -> Rc<Self> {
        let driver = Rc::new(Driver {
            options,
            owner: Latch::new(),
            owners,
            send,
            store,
            queue: RefCell::new(Queue::new(offline(), hooks.supplies())),
            hooks,
            effects: RefCell::default(),
            draining: Cell::new(false),
            timer: RefCell::default(),
            listeners: RefCell::default(),
            freezing: RefCell::default(),
            held: RefCell::default(),
            attempts: RefCell::default(),
            responses: RefCell::default(),
            tickets: Cell::new(0),
            replies: RefCell::default(),
            watches: RefCell::default(),
            observers,
            listing: RefCell::default(),
            forgot: Cell::default(),
            blocked: RefCell::default(),
            trouble: Cell::new(None),
            closed: Cell::new(false),
            ready,
        });
        driver.listen();
        driver
    }

    /// Says whose it is.
    fn belong_to(&self, owner: Owner) {
        if self.owner.get().is_none() {
            self.queue.borrow_mut().belong_to(owner.clone());
            if let Some(store) = &self.store {
                store.belong_to(owner.clone());
            }
            self.owner.set(owner);
        }
    }

    /// Whether it is this owner's turn.
    pub fn is_current(&self) -> bool {
        !self.queue.borrow().is_away()
    }

    /// Whether nothing would be lost without it: nobody follows what it does, and the store has what it holds.
    pub fn is_idle(&self) -> bool {
        self.queue.borrow().is_empty()
            && self.attempts.borrow().is_empty()
            && self.freezing.borrow().is_empty()
            && self.replies.borrow().is_empty()
            && self.watches.borrow().is_empty()
    }

    fn open(self: &Rc<Self>, store: Rc<Store>) {
        let driver = self.clone();
        spawn(async move {
            let patience = {
                let (driver, store) = (driver.clone(), store.clone());
                Timeout::new(STORAGE_MS, move || {
                    store.give_up_opening();
                    driver.in_trouble(StorageError::Silent);
                })
            };
            let current = store.open(driver.options.owner.clone()).await;
            drop(patience);
            let opened = store.opened().await;
            driver.belong_to(current.unwrap_or_else(|| Some(ANONYMOUS.to_owned())));
            if let Some(owners) = driver.owners.upgrade() {
                owners.opened(&driver);
            }
            match opened {
                Ok(()) => {
                    driver.trouble.set(None);
                    driver.ready.set(Stored::Durable);
                    driver.input(Event::Opened);
                }
                Err(error) => driver.in_trouble(error),
            }
        });
    }

    /// Forgets what was kept for long enough, whosever it is.
    async fn forget_old(self: &Rc<Self>, store: &Rc<Store>) {
        self.forgot.set(clocks().wall);
        while let Ok((changed, more)) = store.forget_old(&mut env()).await {
            let stuck = changed.is_empty();
            let owner = self.owner.get().flatten();
            for (op, applied) in changed {
                let of = applied.record.as_ref().map(|record| &record.owner);
                if of == owner.as_ref() {
                    self.input(Event::Committed(1, op, Box::new(applied)));
                }
            }
            if !more || stuck {
                break;
            }
        }
    }

    fn in_trouble(&self, error: StorageError) {
        self.ready.set(Stored::NotDurable(error.as_str()));
        if self.trouble.replace(Some(error)).is_none() {
            self.notify(&Notice::Degraded(error.as_str()));
        }
    }

    fn listen(self: &Rc<Self>) {
        let global = global_target();
        let mut listeners = Vec::new();
        let mut on =
            |target: &web_sys::EventTarget, name, event: fn(&web_sys::Event) -> Option<Event>| {
                let driver = Rc::downgrade(self);
                listeners.push(Listener::new(target, name, move |dispatched| {
                    if let (Some(driver), Some(event)) = (driver.upgrade(), event(&dispatched)) {
                        driver.input(event);
                    }
                }));
            };
        on(&global, "online", |_| Some(Event::Online));
        on(&global, "offline", |_| Some(Event::Offline));
        on(&global, "focus", |_| Some(Event::Look));
        on(&global, "pagehide", |_| Some(Event::Leaving));
        on(&global, "pageshow", |_| Some(Event::Returned));
        let target = document().unwrap_or(global);
        on(&target, "visibilitychange", |_| Some(Event::Look));
        let driver = Rc::downgrade(self);
        listeners.push(Listener::new(
            &target,
            "securitypolicyviolation",
            move |event| {
                if let Some(driver) = driver.upgrade() {
                    let text = |name: &str| get(&event, name).as_string().unwrap_or_default();
                    // A policy that only reports forbids nothing.
                    if text("effectiveDirective") == "connect-src"
                        && text("disposition") == "enforce"
                    {
                        driver.blocked.borrow_mut().push(text("blockedURI"));
                    }
                }
            },
        ));
        *self.listeners.borrow_mut() = listeners;
    }

    /// Ends its part, and lets go of the database. What is stored goes on in another page.
    pub fn close(&self) {
        self.retire();
        if let Some(store) = &self.store {
            store.close();
        }
    }

    /// Ends its part; another owner's goes on.
    pub fn retire(&self) {
        if self.closed.replace(true) {
            return;
        }
        self.listeners.borrow_mut().clear();
        self.timer.borrow_mut().take();
        self.effects.borrow_mut().clear();
        for (_, controller) in std::mem::take(&mut *self.attempts.borrow_mut()).values() {
            controller.abort();
        }
        let closed = Error::new(Code::Closed, "the outbox was closed");
        for (_, watch) in self.freezing.take() {
            watch.reject(&closed);
        }
        for watch in std::mem::take(&mut *self.watches.borrow_mut())
            .values()
            .flatten()
        {
            watch.reject(&closed);
        }
        for reply in std::mem::take(&mut *self.replies.borrow_mut()).values() {
            reply.set(Err(closed.clone()));
        }
        self.ready.set(Stored::NotDurable("asked"));
        self.owner.set(None);
    }

    // Inputs

    /// Hands in what happened and carries out what is decided.
    pub fn input(self: &Rc<Self>, event: Event) {
        if self.closed.get() {
            return;
        }
        // Before anybody is told anything: a listener that takes its time must not come between a claim and its attempt.
        let mut at_once = Vec::new();
        {
            let mut queue = self.queue.borrow_mut();
            queue.handle(event, &mut env());
            let mut effects = self.effects.borrow_mut();
            while let Some(effect) = queue.poll_effect() {
                match effect {
                    Effect::Send(_) | Effect::Renew(..) => at_once.push(effect),
                    _ => effects.push_back(effect),
                }
            }
        }
        for effect in at_once {
            self.run(effect);
        }
        if self.draining.replace(true) {
            return;
        }
        loop {
            let next = self.effects.borrow_mut().pop_front();
            let Some(effect) = next else { break };
            self.run(effect);
        }
        self.draining.set(false);
        self.arm();
    }

    /// Sets the one timer. Longer than a timer can wait is waited in parts.
    fn arm(self: &Rc<Self>) {
        let deadline = self.queue.borrow().next_deadline(clocks());
        let timer = deadline.map(|ms| {
            let driver = self.clone();
            let ms = u32::try_from(ms).unwrap_or(u32::MAX).min(i32::MAX as u32);
            Timeout::new(ms, move || {
                driver.input(Event::Tick);
            })
        });
        *self.timer.borrow_mut() = timer.filter(|_| !self.closed.get());
    }

    /// Submits. The request is read first; what is wrong with it is told to whoever watches. `joins` is called when it
    /// was read, and says whether it is wanted still: from then on what happens to the key happens to this submission,
    /// unless it is rejected.
    pub fn submit(
        self: &Rc<Self>,
        key: Key,
        request: Request,
        options: SubmitOptions,
        joins: impl FnOnce(&Owner) -> bool + 'static,
    ) -> Watch {
        let watch = Watch::new();
        if self.closed.get() {
            watch.reject(&Error::new(Code::Closed, "the outbox was closed"));
            return watch;
        }
        let submitted = watch.clone();
        self.freezing
            .borrow_mut()
            .push((key.clone(), watch.clone()));
        let driver = self.clone();
        spawn(async move {
            let frozen = freeze(request, &driver.options).await;
            let owner = driver.owner.wait().await;
            if !driver.thawed(&submitted) {
                return;
            }
            match frozen {
                Ok(_) if !joins(&owner) => {
                    submitted.reject(&Error::new(Code::Detached, "it was given up"));
                }
                Ok(frozen) => {
                    driver.join(&key, submitted.clone());
                    driver.accept(owner, key, frozen, options, &submitted);
                }
                Err(error) => submitted.reject(&error),
            }
        });
        watch
    }

    fn accept(
        self: &Rc<Self>,
        owner: Owner,
        key: Key,
        frozen: Frozen,
        options: SubmitOptions,
        watch: &Watch,
    ) {
        let Frozen {
            head,
            left_out,
            body,
        } = frozen;
        let mut record = Record::new(
            &owner.unwrap_or_default(),
            key.clone(),
            head,
            self.options.policy.clone(),
            clocks().wall,
        );
        record.key_place = self.options.key_place.clone();
        record.fence = fresh_fence();
        record.is_delivered = self.options.is_delivered.clone();
        record.retention_ms = self.options.retention_ms;
        let names = left_out.iter().map(|(name, _)| name.clone()).collect();
        record.require(names, self.hooks.names());
        if options.key.is_some() {
            // Only an application's own key can come back with other bytes.
            record.fingerprint = Some(crate::engine::fingerprint::fingerprint(
                &record.request.method,
                &record.request.url,
                record
                    .request
                    .headers
                    .iter()
                    .find(|(name, _)| name == "content-type")
                    .map_or("", |(_, value)| value),
                &body.to_vec(),
            ));
        }
        let durable = self.store.is_some() && !options.in_memory;
        if durable {
            self.warn_of_left_out(&record.left_out);
        }
        options.apply(&mut record);
        let _ = watch.print.set(record.fingerprint.clone());
        if self.queue.borrow().record(&key).is_none() {
            let held = Held {
                of: record.created_at,
                body: Some(body),
                left_out,
                authorized: Vec::new(),
            };
            self.held.borrow_mut().insert(key, held);
        }
        self.input(Event::Submit {
            record: Rc::new(record),
            durable,
        });
    }

    /// Takes a submission off the list of those whose request is being read. Returns whether it was on it.
    fn thawed(&self, watch: &Watch) -> bool {
        let mut freezing = self.freezing.borrow_mut();
        let at = freezing.iter().position(|(_, known)| known.is(watch));
        at.map(|at| freezing.swap_remove(at)).is_some()
    }

    /// Submits through the application's own `send`: nothing is frozen, nothing stored.
    pub fn submit_own(self: &Rc<Self>, key: Key) -> Watch {
        let watch = self.watch(&key);
        let record = Record::new(
            ANONYMOUS,
            key,
            Default::default(),
            self.options.policy.clone(),
            clocks().wall,
        );
        self.input(Event::Submit {
            record: Rc::new(record),
            durable: false,
        });
        watch
    }

    /// Tells those who watch a submission that could not be made.
    fn reject(&self, key: &Key, error: &Error, theirs: impl Fn(&Watch) -> bool) {
        let watches = self.watches.borrow_mut().remove(key).unwrap_or_default();
        let (rejected, others): (Vec<Watch>, Vec<Watch>) = watches.into_iter().partition(theirs);
        if !others.is_empty() {
            self.watches.borrow_mut().insert(key.clone(), others);
        }
        for watch in rejected {
            watch.reject(error);
        }
    }

    /// What this page holds of an intent goes with it to its new key.
    fn renew(&self, old: &Key, new: Key, made: Wall) {
        let mut table = self.held.borrow_mut();
        if let Some(held) = table.remove(old) {
            table.insert(new, Held { of: made, ..held });
        }
    }

    /// Lets go of the bytes of what this page does not hold (any more).
    fn let_go(&self, key: &Key) {
        if self.queue.borrow().record(key).is_none() {
            self.held.borrow_mut().remove(key);
        }
    }

    /// Follows a submission.
    pub fn watch(&self, key: &Key) -> Watch {
        let watch = Watch::new();
        self.join(key, watch.clone());
        watch
    }

    fn join(&self, key: &Key, watch: Watch) {
        self.watches
            .borrow_mut()
            .or_default(key.clone())
            .push(watch);
    }

    /// Follows an intent that may be known to the store alone. `joins` is called when it is known whose.
    pub fn watch_known(self: &Rc<Self>, key: Key, joins: impl FnOnce(&Owner) + 'static) -> Watch {
        let watch = self.watch(&key);
        let asked = watch.clone();
        let driver = self.clone();
        spawn(async move {
            joins(&driver.owner.wait().await);
            let here = driver.queue.borrow().record(&key).cloned();
            let record = match (here, &driver.store) {
                (None, Some(store)) => {
                    let patience = {
                        let (driver, key, asked) = (driver.clone(), key.clone(), asked.clone());
                        Patience::new(Box::new(move || {
                            driver.reject(&key, &unanswered(), |watch| watch.is(&asked));
                        }))
                    };
                    let read = store.get(&key).await;
                    if !patience.in_time() {
                        return;
                    }
                    read.map_err(|_| unanswered())
                }
                (here, _) => Ok(here),
            };
            if driver.is_freezing(&key) {
                return;
            }
            // It may have been submitted since.
            let here = driver.queue.borrow().record(&key).cloned();
            let known = record.map(|read| here.or(read)).and_then(|record| {
                record.ok_or_else(|| {
                    Error::about(
                        Code::UnknownKey,
                        key.as_str(),
                        "no intent of that key is known here",
                    )
                })
            });
            match known {
                Ok(record) => driver.resume_watch(&record),
                Err(error) => driver.reject(&key, &error, |watch| watch.is(&asked)),
            }
        });
        watch
    }

    /// Tells those who watch a known intent what is known.
    fn resume_watch(&self, record: &Record) {
        if self.queue.borrow().is_storing(&record.key) {
            // It is told when that is known.
            return;
        }
        let stored = self.stored(&record.key);
        let outcome = Outcome::of(record, None);
        for watch in self.watches_of(&record.key) {
            watch.stored.set(Ok(stored));
            if let Some(outcome) = outcome.clone() {
                watch.outcome.set(Ok(outcome));
            }
        }
        let intent = self.list(record);
        if outcome.is_some() {
            self.watches.borrow_mut().remove(&record.key);
        }
        self.notify(&Notice::Known(record.key.clone(), intent, stored, outcome));
    }

    /// Runs a transaction that somebody asked for.
    pub async fn ask(self: &Rc<Self>, op: Op) -> Reply {
        if self.closed.get() {
            return Err(Error::new(Code::Closed, "the outbox was closed"));
        }
        self.owner.wait().await;
        // What is still being read was never stored; what was stored under the key before is ended all the same.
        let gives_up = matches!(op, Op::Cancel(_) | Op::Discard(_));
        let never = (gives_up && self.is_freezing(op.key()))
            .then(|| self.never_was(op.key(), Record::give_up));
        match (self.call(|ticket| Event::Asked(ticket, op)).await, never) {
            (Err(error), Some(never)) if error.code() == Code::UnknownKey => Ok(never),
            (reply, _) => reply,
        }
    }

    /// Has the queue do what somebody asked for.
    async fn call(self: &Rc<Self>, event: impl FnOnce(Ticket) -> Event) -> Reply {
        let ticket = self.tickets.get() + 2;
        self.tickets.set(ticket);
        let reply = Latch::new();
        self.replies.borrow_mut().insert(ticket, reply.clone());
        self.input(event(ticket));
        reply.wait().await
    }

    /// Deletes everything of this owner, also what is still being read.
    pub async fn clear(self: &Rc<Self>) -> Result<(), Error> {
        self.owner.wait().await;
        let freezing: Vec<Key> = self
            .freezing
            .borrow()
            .iter()
            .map(|(key, _)| key.clone())
            .collect();
        for key in freezing {
            self.never_was(&key, Record::clear);
        }
        self.call(Event::Clear).await.map(|_| ())
    }

    /// A person's fresh intent for everything that is parked, except what may then be done twice: as the store has it,
    /// oldest first. Returns the keys.
    pub async fn retry_all(self: &Rc<Self>) -> Result<Vec<Key>, Error> {
        self.owner.wait().await;
        let mut parked = Vec::new();
        let mut note = |record: &Rc<Record>| {
            if record.state == State::Parked {
                parked.push(record.key.clone());
            }
        };
        self.queue.borrow().memory().for_each(&mut note);
        if let Some(store) = self.store.clone() {
            let mut before = None;
            loop {
                let (records, next) = store.page(before).await.map_err(|_| unanswered())?;
                records.iter().for_each(&mut note);
                if next.is_none() {
                    break;
                }
                before = next;
            }
        }
        let mut retried = Vec::new();
        for key in parked.into_iter().rev() {
            let op = Op::Retry {
                key,
                new_key: mint()?,
                may_repeat: false,
            };
            match self.ask(op).await {
                Ok(applied) => retried.extend(applied.record.map(|record| record.key.clone())),
                // It is left to the person, or something became of it since it was read.
                Err(error)
                    if matches!(
                        error.code(),
                        Code::NeedsMayRepeat | Code::BadState | Code::UnknownKey
                    ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(retried)
    }

    fn is_freezing(&self, key: &Key) -> bool {
        self.freezing.borrow().iter().any(|(known, _)| known == key)
    }

    /// Ends the submissions of a key whose request is still being read: nothing of them was stored or sent.
    fn never_was(&self, key: &Key, end: fn(&mut Record, Wall)) -> Box<Applied> {
        let policy = self.options.policy.clone();
        let mut record = Record::new("", key.clone(), Default::default(), policy, 0);
        end(&mut record, 0);
        let outcome = Outcome::of(&record, None);
        self.freezing.borrow_mut().retain(|(known, watch)| {
            if let (true, Some(outcome)) = (known == key, &outcome) {
                watch.stored.set(Ok(Stored::NotDurable("asked")));
                watch.outcome.set(Ok(outcome.clone()));
            }
            known != key
        });
        Box::new(Applied {
            record: Some(Rc::new(record)),
            accepted: true,
            settled: true,
            ..Applied::default()
        })
    }

    // Effects

    fn run(self: &Rc<Self>, effect: Effect) {
        match effect {
            Effect::Transact(ticket, op) => self.transact(ticket, op),
            Effect::Query => self.query(),
            Effect::BringForward => self.bring_forward(),
            Effect::Authorize(record, why) => self.authorize(record, why),
            Effect::Send(record) => self.send(record),
            Effect::Renew(old, new, made) => self.renew(&old, new, made),
            Effect::Abort(key, fence) => self.abort(&key, fence),
            Effect::Clear(ticket) => self.delete_all(ticket),
            Effect::ChangeOver => {
                if let Some(owners) = self.owners.upgrade() {
                    owners.look_again();
                }
            }
            Effect::Report(report) => self.report(report),
            Effect::Reply(ticket, reply) => {
                if let Some(latch) = self.replies.borrow_mut().remove(&ticket) {
                    latch.set(reply);
                }
            }
        }
    }

    fn transact(self: &Rc<Self>, ticket: Ticket, op: Op) {
        let Some(store) = self.store.clone() else {
            // Without storage there are no rows but those in memory.
            let applied = op.apply(None, &mut env());
            return self.input(Event::Committed(ticket, op, Box::new(applied)));
        };
        let held = self.held.borrow().get(op.key()).cloned();
        let body = held.and_then(|held| Some((held.of, held.body?)));
        let driver = self.clone();
        spawn(async move {
            let patience = {
                let (driver, store, op) = (driver.clone(), store.clone(), op.clone());
                Patience::new(Box::new(move || {
                    driver.in_trouble(StorageError::Silent);
                    if let Op::Store(record) = &op {
                        // It goes on from memory, and the next page must not send it too: whatever the store still
                        // makes of it, this comes right behind on the same connection.
                        let undo = Op::Unstore(record.clone());
                        let driver = driver.clone();
                        spawn(async move {
                            let beside = Beside::default();
                            let undone = store.transact(&undo, None, beside, &mut env()).await;
                            if let Ok((applied, _)) = undone {
                                driver.input(Event::CommittedLate(undo, Box::new(applied)));
                            }
                        });
                    }
                    driver.input(Event::Failed(ticket, op));
                }))
            };
            let beside = driver.queue.borrow().beside(&op);
            let done = store.transact(&op, body, beside, &mut env()).await;
            if !patience.in_time() {
                if let Ok((applied, _)) = done {
                    driver.input(Event::CommittedLate(op, Box::new(applied)));
                }
                return;
            }
            match done {
                Ok((applied, body)) => {
                    driver.trouble.set(None);
                    if let (Op::Claim(_), true, Some(record)) =
                        (&op, applied.accepted, &applied.record)
                    {
                        driver.hold(record, body);
                    }
                    driver.input(Event::Committed(ticket, op, Box::new(applied)));
                }
                Err(error) => {
                    driver.in_trouble(error);
                    driver.input(Event::Failed(ticket, op));
                }
            }
        });
    }

    fn delete_all(self: &Rc<Self>, ticket: Ticket) {
        let Some(store) = self.store.clone() else {
            return self.input(Event::Cleared(ticket, Vec::new()));
        };
        let watches = self.watches.borrow();
        let followed = watches.iter().map(|(key, _)| key.clone()).collect();
        drop(watches);
        let driver = self.clone();
        spawn(async move {
            let patience = {
                let driver = driver.clone();
                Patience::new(Box::new(move || driver.input(Event::NotCleared(ticket))))
            };
            let cleared = store.clear(followed).await;
            if patience.in_time() {
                driver.input(match cleared {
                    Ok(rows) => Event::Cleared(ticket, rows),
                    Err(_) => Event::NotCleared(ticket),
                });
            }
        });
    }

    /// Tells the store who the current owner is.
    pub async fn write_owner(&self, owner: &Owner) -> Result<(), Error> {
        let Some(store) = self.store.clone() else {
            return Ok(());
        };
        let written = Latch::new();
        let (done, late, owner) = (written.clone(), written.clone(), owner.clone());
        let _patience = Patience::new(Box::new(move || {
            late.set(Err(unanswered()));
        }));
        // (In a future of its own: what is dropped in flight is aborted.)
        spawn(async move {
            let result = store.set_owner(&owner).await;
            done.set(result.map_err(|_| unanswered()));
        });
        written.wait().await
    }

    /// Who the store says is current.
    pub async fn current_owner(&self) -> Result<Option<Owner>, Error> {
        match &self.store {
            Some(store) => store.current_owner().await.map_err(|_| unanswered()),
            None => Ok(None),
        }
    }

    /// Holds the body of a row that was claimed.
    fn hold(&self, record: &Record, body: Option<Uint8Array>) {
        let mut table = self.held.borrow_mut();
        let held = table.or_default(record.key.clone());
        if held.of != record.created_at {
            *held = Held::default();
            held.of = record.created_at;
        }
        held.body = body;
    }

    fn query(self: &Rc<Self>) {
        let Some(store) = self.store.clone() else {
            return;
        };
        let driver = self.clone();
        spawn(async move {
            let patience = {
                let driver = driver.clone();
                Patience::new(Box::new(move || driver.queried(Err(StorageError::Silent))))
            };
            let due = store.due(clocks().wall).await;
            if patience.in_time() {
                driver.queried(due);
            }
            if clocks().wall.abs_diff(driver.forgot.get()) > FORGET_MS {
                driver.forget_old(&store).await;
            }
        });
    }

    fn queried(self: &Rc<Self>, due: Result<Due, StorageError>) {
        let due = due.unwrap_or_else(|error| {
            self.in_trouble(error);
            let driver = self.clone();
            Timeout::new(STORAGE_MS, move || driver.input(Event::Look)).forget();
            Due::default()
        });
        self.input(Event::Queried(due));
    }

    fn bring_forward(self: &Rc<Self>) {
        let Some(store) = self.store.clone() else {
            return;
        };
        let driver = self.clone();
        spawn(async move {
            let mut after = None;
            while let Ok((changed, next)) = store.bring_forward(after, &mut env()).await {
                for (op, applied) in changed {
                    driver.input(Event::Committed(1, op, Box::new(applied)));
                }
                if next.is_none() {
                    break;
                }
                after = next;
            }
            driver.input(Event::Look);
        });
    }

    fn authorize(self: &Rc<Self>, record: Rc<Record>, why: Why) {
        let durable = !self.queue.borrow().in_memory(&record.key);
        let intent = Rc::new(Intent::of(&record, durable));
        let Some(ask) = self.hooks.authorize.clone() else {
            return;
        };
        let alone = why == Why::Unauthorized;
        let name = [
            "resubmit:",
            &self.options.name,
            ":authorize:",
            &record.origin,
        ]
        .concat();
        let driver = self.clone();
        spawn(async move {
            // One refresh of an origin runs at a time, over all pages. Who holds the lock for longer than it may is frozen:
            // that page keeps it until it is closed, and is not waited for.
            let _lock = if alone {
                within(AUTHORIZE_MS, lock(&name)).await
            } else {
                None
            };
            let answer = within(AUTHORIZE_MS, ask(intent, why)).await;
            if !driver.queue.borrow().is_authorizing(&record.key) {
                return;
            }
            let credentials = match answer {
                Some(Ok(Some(headers))) => driver.supply(&record, headers),
                Some(Ok(None)) => Credentials::NotNow,
                Some(Err(error)) => {
                    warn(&["resubmit: authorize failed: ", &error].concat());
                    Credentials::Failed
                }
                None => {
                    warn("resubmit: authorize did not answer within 30 s");
                    Credentials::Failed
                }
            };
            driver.input(Event::Authorized(record.key.clone(), credentials));
        });
    }

    /// Holds the credentials of an intent, if they are all that it was submitted with.
    fn supply(&self, record: &Record, headers: Vec<(String, String)>) -> Credentials {
        let mut table = self.held.borrow_mut();
        let held = table.or_default(record.key.clone());
        if held.of != record.created_at {
            *held = Held::default();
            held.of = record.created_at;
        }
        held.authorized = headers;
        let has = |name: &&String| {
            let mut all = held.left_out.iter().chain(&held.authorized);
            !all.any(|(known, _)| known == *name)
        };
        if let Some(missing) = record.left_out.iter().find(has) {
            warn(
                &[
                    "resubmit: authorize gave no ",
                    missing,
                    ", with which it was submitted",
                ]
                .concat(),
            );
            return Credentials::Failed;
        }
        Credentials::Granted
    }

    fn send(self: &Rc<Self>, record: Rc<Record>) {
        let (key, fence) = (record.key.clone(), record.fence);
        let Ok(controller) = AbortController::new() else {
            return;
        };
        let held = self.held.borrow().get(&key).cloned().unwrap_or_default();
        let body = held.body.unwrap_or_else(|| Uint8Array::new_with_length(0));
        let promise = match &self.send {
            Some(send) => send_by(send, &record, &controller.signal()),
            None => thaw(
                &record,
                [&held.left_out, &held.authorized],
                &body,
                &controller.signal(),
            )
            .and_then(|init| fetch(&record.request.url, &init))
            .map_or_else(
                |thrown| js_sys::Promise::reject(&thrown),
                |answer| js_sys::Promise::resolve(&answer),
            ),
        };
        let former = self.attempts.borrow_mut().remove(&key);
        if let Some((_, former)) = former {
            former.abort();
        }
        self.attempts
            .borrow_mut()
            .insert(key.clone(), (fence, controller));
        let driver = self.clone();
        let durable = !self.queue.borrow().in_memory(&key);
        let begun = clocks().mono;
        spawn(async move {
            let timeout = record.policy.attempt_timeout(record.request.body_bytes);
            let url = &record.request.url;
            let ended = follow(
                promise,
                durable,
                record
                    .is_delivered
                    .as_ref()
                    .and_then(Acknowledgement::header_name),
                timeout,
                || driver.is_blocked(url),
                || clocks().mono.saturating_sub(begun),
            )
            .await;
            let mut ended = match ended {
                Some(ended) => ended,
                None if driver.send.is_some() => {
                    let expected = "expected a promise of a Response";
                    let error = Error::about(Code::BadRequest, "send", expected);
                    return driver.reject(&key, &error, |_| true);
                }
                // A wrapper around `fetch`: what it did is anybody's guess.
                None => Ended::default(),
            };
            if let (Answer::Response(head), Some(response)) = (&mut ended.answer, &ended.response) {
                let elapsed = clocks().mono.saturating_sub(begun);
                let patience = patience(timeout, elapsed, JUDGE_MS);
                head.ruling = driver.judge(&record, response, patience).await;
            }
            driver.forget_attempt(&key, fence);
            if let Some(response) = ended.response {
                driver
                    .responses
                    .borrow_mut()
                    .insert(key.clone(), (fence, response));
            }
            driver.input(Event::Answered(key, fence, Box::new(ended.answer)));
        });
    }

    /// What the application's hooks say of an answer.
    async fn judge(&self, record: &Record, response: &Response, patience: u32) -> Ruling {
        let Hooks {
            classify,
            is_delivered,
            ..
        } = &self.hooks;
        if classify.is_none() && is_delivered.is_none() {
            return Ruling::None;
        }
        let durable = !self.queue.borrow().in_memory(&record.key);
        let intent = Rc::new(Intent::of(record, durable));
        let copy = || response.clone().map_err(|_| String::from("no copy"));
        let said = within(patience, async {
            if let Some(classify) = classify {
                if let Some(classified) = classify(copy()?, intent.clone()).await? {
                    return Ok(Ruling::Classified(classified));
                }
            }
            match is_delivered {
                Some(hook) if response.ok() && !hook(copy()?, intent).await? => {
                    Ok(Ruling::NotAcknowledged)
                }
                _ => Ok(Ruling::None),
            }
        });
        let error = match said.await {
            Some(Ok(ruling)) => return ruling,
            Some(Err::<_, String>(error)) => error,
            None => "it did not answer in time".into(),
        };
        warn(&["resubmit: classify or isDelivered failed: ", &error].concat());
        Ruling::Failed
    }

    /// Whether a violation of `connect-src` named this URL. Some engines tell the origin alone of a redirect: that is no
    /// match.
    fn is_blocked(&self, url: &str) -> bool {
        let (url, _) = cut(url, b"#");
        self.blocked.borrow().iter().any(|blocked| blocked == url)
    }

    fn forget_attempt(&self, key: &Key, fence: u64) -> Option<AbortController> {
        let mut attempts = self.attempts.borrow_mut();
        let gone = match attempts.get(key) {
            Some((current, _)) if *current == fence => attempts.remove(key),
            _ => None,
        };
        if attempts.is_empty() {
            self.blocked.borrow_mut().clear();
        }
        gone.map(|(_, controller)| controller)
    }

    fn abort(&self, key: &Key, fence: u64) {
        if let Some(controller) = self.forget_attempt(key, fence) {
            controller.abort();
        }
    }

    // Reports

    /// Whether an intent is on the disk.
    pub fn stored(&self, key: &Key) -> Stored {
        if !self.queue.borrow().in_memory(key) {
            Stored::Durable
        } else {
            Stored::NotDurable(self.trouble.get().map_or("asked", StorageError::as_str))
        }
    }

    fn report(self: &Rc<Self>, report: Report) {
        match report {
            Report::Stored(key, _) => {
                let stored = self.stored(&key);
                let intent = self.queue.borrow().record(&key).cloned();
                let Some(record) = intent else { return };
                let intent = self.list(&record);
                for watch in self.watches_of(&key) {
                    watch.stored.set(Ok(stored));
                }
                self.notify(&Notice::Stored(key, intent, stored));
            }
            Report::Known(record) => {
                self.let_go(&record.key);
                self.resume_watch(&record);
            }
            Report::Rejected(key, print, error) => {
                self.let_go(&key);
                self.reject(&key, &error, |watch| watch.print.get() == Some(&print));
            }
            Report::Attempted(record) => {
                let intent = self.list(&record);
                self.notify(&Notice::Attempted(record.key.clone(), intent));
            }
            Report::Waiting(record) => {
                self.responses.borrow_mut().remove(&record.key);
                let intent = self.list(&record);
                self.notify(&Notice::Waiting(record.key.clone(), intent));
            }
            Report::Settled(record, fence) => self.settled(&record, fence),
            Report::Removed(key) => {
                self.let_go(&key);
                let listed = match &mut *self.listing.borrow_mut() {
                    Some(listing) => listing.remove(&key),
                    None => false,
                };
                if listed {
                    self.notify(&Notice::Listed);
                }
            }
            Report::Cleared => {
                // It is read anew: what was submitted since is to stay.
                if self.listing.take().is_some() {
                    self.notify(&Notice::Listed);
                }
            }
        }
    }

    fn settled(&self, record: &Record, fence: Option<u64>) {
        let key = &record.key;
        let response = match self.responses.borrow_mut().remove(key) {
            Some((of, response)) if Some(of) == fence => Some(response),
            _ => None,
        };
        if !self.queue.borrow().in_memory(key) {
            // A retry reads it again.
            if let Some(held) = self.held.borrow_mut().get_mut(key) {
                held.body = None;
            }
        }
        self.let_go(key);
        let Some(outcome) = Outcome::of(record, response) else {
            return;
        };
        let intent = self.list(record);
        for watch in self.watches.borrow_mut().remove(key).unwrap_or_default() {
            watch.stored.set(Ok(self.stored(key)));
            watch.outcome.set(Ok(outcome.clone()));
        }
        self.notify(&Notice::Settled(key.clone(), intent, outcome));
    }

    fn watches_of(&self, key: &Key) -> Vec<Watch> {
        self.watches.borrow().get(key).cloned().unwrap_or_default()
    }

    /// Calls back with everything that happens, for as long as somebody holds the observer.
    pub fn observe(&self, observer: &Rc<Observe>) {
        self.observers.borrow_mut().push(Rc::downgrade(observer));
    }

    pub fn notify(&self, notice: &Notice) {
        let observers = self.observers.borrow().clone();
        for observer in &observers {
            match observer.upgrade() {
                Some(observer) => observer(notice, self),
                None => self
                    .observers
                    .borrow_mut()
                    .retain(|known| !known.ptr_eq(observer)),
            }
        }
    }

    // The list of intents

    /// Brings the list up to date, if somebody follows it, and returns the view of the row.
    fn list(&self, record: &Record) -> Rc<Intent> {
        let durable = !self.queue.borrow().in_memory(&record.key);
        let listed = self
            .listing
            .borrow_mut()
            .as_mut()
            .map(|listing| listing.put(record, durable));
        match listed {
            Some((intent, changed)) => {
                if changed {
                    self.notify(&Notice::Listed);
                }
                intent
            }
            None => Rc::new(Intent::of(record, durable)),
        }
    }

    /// The list as far as it was read. Reading begins with the first call.
    pub fn intents(self: &Rc<Self>) -> Vec<Rc<Intent>> {
        if let Some(listing) = &*self.listing.borrow() {
            return listing.current();
        }
        let mut listing = Listing::default();
        for record in self.queue.borrow().memory() {
            listing.put(record, false);
        }
        let current = listing.current();
        *self.listing.borrow_mut() = Some(listing);
        if let Some(store) = self.store.clone() {
            let driver = self.clone();
            spawn(async move {
                driver.owner.wait().await;
                let mut before = None;
                while let Ok((records, next)) = store.page(before).await {
                    let changed = records
                        .into_iter()
                        .fold(false, |changed, record| driver.list_read(&record) | changed);
                    if changed {
                        driver.notify(&Notice::Listed);
                    }
                    if next.is_none() {
                        break;
                    }
                    before = next;
                }
            });
        }
        current
    }

    /// Takes a row that was read for the list, unless this page knows it better. Returns whether anything changed.
    fn list_read(&self, record: &Rc<Record>) -> bool {
        let queue = self.queue.borrow();
        let newer = queue.record(&record.key);
        let durable = !queue.in_memory(&record.key);
        match &mut *self.listing.borrow_mut() {
            Some(listing) => listing.put(newer.unwrap_or(record), durable).1,
            None => false,
        }
    }

    /// How many stored rows this build cannot read.
    pub fn unreadable(&self) -> u32 {
        self.store.as_ref().map_or(0, |store| store.unreadable())
    }

    /// Warns where an intent cannot survive a reload although it is stored.
    fn warn_of_left_out(&self, names: &[String]) {
        if !names.is_empty() {
            warn(
                &[
                    "resubmit: not stored, so the intent waits after a reload: ",
                    &names.join(", "),
                    " (see persistHeaders)",
                ]
                .concat(),
            );
        }
    }
}
