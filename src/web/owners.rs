//! Whose turn it is in a page: a driver for every owner whose intents it holds, one of them current.

use super::driver::{Driver, STORAGE_MS};
use super::latch::Latch;
use super::outbox::Notice;
use super::task::spawn;
use crate::engine::{Error, Event, OutboxOptions, Owner};
use crate::hooks::Hooks;
use gloo_timers::callback::Timeout;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The owners of a page.
pub struct Owners {
    options: OutboxOptions,
    current: RefCell<Rc<Driver>>,
    /// Those whose turn is over, for what is left of them here: followers, and what lives in memory alone.
    away: RefCell<Vec<Rc<Driver>>>,
    /// How often this page said who is current.
    said: Cell<u32>,
    /// Whether the store has yet to hear what it said last.
    unwritten: Cell<bool>,
}

impl Owners {
    /// Starts with the owner that the options or the store name.
    pub fn start(options: OutboxOptions, hooks: Hooks) -> Rc<Self> {
        Rc::new_cyclic(|owners| Owners {
            // (The store hears of it while it is opened, or else has yet to.)
            unwritten: Cell::new(options.owner.is_some()),
            options: options.clone(),
            current: RefCell::new(Driver::start(options, hooks, None, owners.clone())),
            away: RefCell::default(),
            said: Cell::new(0),
        })
    }

    /// The options of the outbox.
    pub fn options(&self) -> &OutboxOptions {
        &self.options
    }

    /// The driver of the current owner.
    pub fn current(&self) -> Rc<Driver> {
        self.current.borrow().clone()
    }

    /// The driver of an owner; away if it is made now.
    pub fn driver_of(&self, owner: &Owner) -> Rc<Driver> {
        let current = self.current();
        let is_theirs = |driver: &&Rc<Driver>| driver.owner.get().as_ref() == Some(owner);
        let known = std::iter::once(&current)
            .chain(self.away.borrow().iter())
            .find(is_theirs)
            .cloned();
        known.unwrap_or_else(|| {
            let made = current.beside(owner.clone());
            made.input(Event::Turn(None));
            self.away.borrow_mut().push(made.clone());
            made
        })
    }

    /// Makes an owner the current one, at once in this page. What it returns is set when the store has heard: no attempt of
    /// the former is on its way then.
    pub fn set_owner(self: &Rc<Self>, owner: Owner) -> Latch<Result<(), Error>> {
        self.said.set(self.said.get() + 1);
        self.unwritten.set(true);
        let former = self.current();
        let next = self.change(&owner);
        let heard = self.write();
        if !Rc::ptr_eq(&former, &next) {
            // Behind that: who is told looks for what is due, and is not to find the former there.
            next.input(Event::Turn(owner.clone()));
            next.notify(&Notice::OwnerChanged(owner));
        }
        heard
    }

    /// Ends the turn of the current driver, unless it is that owner's.
    fn change(&self, owner: &Owner) -> Rc<Driver> {
        let next = self.driver_of(owner);
        let former = self.current.replace(next.clone());
        if !Rc::ptr_eq(&former, &next) {
            let mut away = self.away.borrow_mut();
            away.retain(|driver| !Rc::ptr_eq(driver, &next));
            away.push(former.clone());
            drop(away);
            former.input(Event::Turn(owner.clone()));
        }
        next
    }

    /// Tells the store who is current.
    fn write(self: &Rc<Self>) -> Latch<Result<(), Error>> {
        let heard = Latch::new();
        let (owners, told, said) = (self.clone(), heard.clone(), self.said.get());
        let current = self.current();
        spawn(async move {
            let owner = current.owner.wait().await;
            let written = current.write_owner(&owner).await;
            if said == owners.said.get() {
                match &written {
                    Ok(()) => {
                        owners.unwritten.set(false);
                        current.input(Event::Turn(owner));
                    }
                    Err(_) => owners.look_again_later(),
                }
            }
            owners.let_go();
            told.set(written);
        });
        heard
    }

    /// The store said that another is current than this page thought. It has yet to hear, or somebody told it elsewhere.
    pub fn look_again(self: &Rc<Self>) {
        if self.unwritten.get() {
            self.write();
            return;
        }
        let owners = self.clone();
        spawn(async move {
            let current = owners.current();
            match current.current_owner().await {
                Ok(_) if owners.unwritten.get() => {}
                Ok(stored) => {
                    let Some(owner) = stored.or_else(|| current.owner.get()) else {
                        return;
                    };
                    let next = owners.change(&owner);
                    next.input(Event::Turn(owner.clone()));
                    if !Rc::ptr_eq(&current, &next) {
                        next.notify(&Notice::OwnerChanged(owner));
                    }
                    owners.let_go();
                }
                Err(_) => owners.look_again_later(),
            }
        });
    }

    fn look_again_later(self: &Rc<Self>) {
        let owners = self.clone();
        Timeout::new(STORAGE_MS, move || owners.look_again()).forget();
    }

    /// It is known whose a driver is that began without that, and that the store has heard what the options said.
    pub fn opened(&self, driver: &Rc<Driver>) {
        if self.said.get() == 0 {
            self.unwritten.set(false);
        }
        if let Some(owner) = self.current().owner.get() {
            driver.input(Event::Turn(owner));
        }
    }

    /// Deletes everything of an owner.
    pub async fn clear(&self, owner: Owner) -> Result<(), Error> {
        self.current().owner.wait().await;
        let cleared = self.driver_of(&owner).clear().await;
        self.let_go();
        cleared
    }

    /// Lets go of the drivers that nobody needs or holds any more.
    fn let_go(&self) {
        let mut away = self.away.borrow_mut();
        let (idle, rest): (Vec<_>, Vec<_>) = away
            .drain(..)
            .partition(|driver| driver.is_idle() && Rc::strong_count(driver) == 1);
        *away = rest;
        drop(away);
        for driver in idle {
            driver.retire();
        }
    }

    /// Ends this page's part.
    pub fn close(&self) {
        for driver in self.away.take() {
            driver.retire();
        }
        self.current().close();
    }
}
