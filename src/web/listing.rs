//! The list of intents that a page follows: read when first subscribed, kept up to date by what is reported.

use crate::engine::{Intent, Key, Record};
use std::rc::Rc;

/// This owner's intents, newest first. An entry is the same `Rc` while nothing about it changed.
#[derive(Default)]
pub struct Listing {
    entries: Vec<Rc<Intent>>,
}

impl Listing {
    /// The entries as they are.
    pub fn current(&self) -> Vec<Rc<Intent>> {
        self.entries.clone()
    }

    /// Adds a row or brings it up to date. Returns its entry, and whether anything changed.
    pub fn put(&mut self, record: &Record, durable: bool) -> (Rc<Intent>, bool) {
        let intent = Rc::new(Intent::of(record, durable));
        // An intent keeps its place for life, among those of the same moment.
        let from = self
            .entries
            .partition_point(|entry| entry.created_at > intent.created_at);
        let peers = self.entries[from..]
            .iter_mut()
            .take_while(|entry| entry.created_at == intent.created_at);
        for entry in peers {
            if entry.key == intent.key {
                if **entry == *intent {
                    return (entry.clone(), false);
                }
                *entry = intent.clone();
                return (intent, true);
            }
        }
        self.entries.insert(from, intent.clone());
        (intent, true)
    }

    /// Takes an entry out. Returns whether it was there.
    pub fn remove(&mut self, key: &Key) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.key != *key);
        self.entries.len() != before
    }
}
