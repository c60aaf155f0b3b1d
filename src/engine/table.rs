//! A small ordered map.
//!
//! A page holds a handful of intents at a time, rarely hundreds. The standard maps are made for more, and each costs
//! some 8 KB of code per type of value: together they were a quarter of the module.

/// A map kept as a sorted vector: look-ups halve, insertions shift.
#[derive(Debug, Clone)]
pub struct Table<K, V>(Vec<(K, V)>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table(Vec::new())
    }
}

impl<K: Ord, V> Table<K, V> {
    fn find(&self, key: &K) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(key))
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let at = self.find(key).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.find(key).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// Whether a key has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        match self.find(&key) {
            Ok(at) => self.0[at] = (key, value),
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(key).ok()?;
        Some(self.0.remove(at).1)
    }

    /// Takes out what is not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&V) -> bool) {
        self.0.retain(|(_, value)| keep(value));
    }

    /// The entries, in order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The values, in order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// The values, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Ord, V: Default> Table<K, V> {
    /// The value of a key, made if it has none.
    pub fn or_default(&mut self, key: K) -> &mut V {
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (key, V::default()));
                at
            }
        };
        &mut self.0[at].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map() {
        let mut table = Table::default();
        for key in [5, 1, 9, 3, 1] {
            *table.or_default(key) += key;
        }
        assert_eq!(
            table
                .iter()
                .map(|(key, value)| (*key, *value))
                .collect::<Vec<_>>(),
            [(1, 2), (3, 3), (5, 5), (9, 9)]
        );
        table.insert(3, 30);
        assert_eq!(table.get(&3), Some(&30));
        assert_eq!(table.remove(&1), Some(2));
        assert_eq!(table.remove(&1), None);
        assert!(!table.contains_key(&1));
        if let Some(value) = table.get_mut(&9) {
            *value = 0;
        }
        assert_eq!(table.values().copied().collect::<Vec<i32>>(), [30, 5, 0]);
        assert_eq!((table.len(), table.is_empty()), (3, false));
    }
}
