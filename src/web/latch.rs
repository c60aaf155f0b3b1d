//! A value that is set once and awaited by any number of futures.

use std::cell::RefCell;
use std::future::{poll_fn, Future};
use std::rc::Rc;
use std::task::{Poll, Waker};

struct State<T> {
    value: Option<T>,
    waiting: Vec<Waker>,
}

/// A value that is set once. Clones share it. Dropping a future that waits for it changes nothing.
pub struct Latch<T>(Rc<RefCell<State<T>>>);

impl<T> Clone for Latch<T> {
    fn clone(&self) -> Self {
        Latch(self.0.clone())
    }
}

impl<T: Clone> Latch<T> {
    /// A latch that is open.
    pub fn new() -> Self {
        Latch(Rc::new(RefCell::new(State {
            value: None,
            waiting: Vec::new(),
        })))
    }

    /// Sets the value, unless it is set. Returns whether it did.
    pub fn set(&self, value: T) -> bool {
        let waiting = {
            let mut state = self.0.borrow_mut();
            if state.value.is_some() {
                return false;
            }
            state.value = Some(value);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
        true
    }

    /// The value, if it is set.
    pub fn get(&self) -> Option<T> {
        self.0.borrow().value.clone()
    }

    /// The value, once it is set.
    pub fn wait(&self) -> impl Future<Output = T> {
        let state = self.0.clone();
        poll_fn(move |context| {
            let mut state = state.borrow_mut();
            match &state.value {
                Some(value) => Poll::Ready(value.clone()),
                None => {
                    state.waiting.push(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}
