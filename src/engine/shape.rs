//! What rows, options and views are made of: values, and objects whose fields are listed once, for reading and for
//! writing.

use super::decode::Source;
use super::encode::Sink;
use super::env::Millis;

/// The largest integer that a JavaScript number holds exactly, 2⁵³ − 1: the upper bound of every number here.
pub const MAX_SAFE: u64 = (1 << 53) - 1;

/// What a field can hold.
pub trait Value: Sized {
    /// What to say where something else stands.
    const EXPECTED: &'static str;
    /// The value, if it is one.
    fn read<S: Source>(source: &S) -> Option<Self>;
    /// The value for the other side, unless it is absent.
    fn write<S: Sink>(&self) -> Option<S>;
}

/// An object.
pub trait Shape {
    /// Goes over its fields.
    fn fields<V: Visitor>(&mut self, visitor: &mut V);
}

/// Who goes over the fields of an object: to read what is there over what stands, or to write it.
pub trait Visitor {
    /// A value.
    fn field<T: Value>(&mut self, name: &str, field: &mut T);
    /// An object.
    fn object<T: Shape>(&mut self, name: &str, field: &mut T);
    /// An object that may be absent.
    fn optional<T: Shape + Default>(&mut self, name: &str, field: &mut Option<T>);
    /// A span of time.
    fn millis(&mut self, name: &str, field: &mut Millis) {
        self.field(name, field);
    }
    /// Whether there is such a property to be read.
    fn has(&self, _name: &str) -> bool {
        false
    }
    /// What has to be there when it is read.
    fn require(&mut self, _names: &[&str]) {}
}

impl Value for String {
    const EXPECTED: &'static str = "expected a string";

    fn read<S: Source>(source: &S) -> Option<Self> {
        source.string()
    }

    fn write<S: Sink>(&self) -> Option<S> {
        Some(S::string(self))
    }
}

impl Value for bool {
    const EXPECTED: &'static str = "expected true or false";

    fn read<S: Source>(source: &S) -> Option<Self> {
        source.boolean()
    }

    fn write<S: Sink>(&self) -> Option<S> {
        Some(S::boolean(*self))
    }
}

/// From 0 to [`MAX_SAFE`].
impl Value for u64 {
    const EXPECTED: &'static str = "expected a whole number, 0 or more";

    fn read<S: Source>(source: &S) -> Option<Self> {
        let number = source.number()?;
        // The cast saturates; the comparison back refuses fractions, NaN, infinities and what is out of range.
        let cast = number as u64;
        (cast as f64 == number && cast <= MAX_SAFE).then_some(cast)
    }

    fn write<S: Sink>(&self) -> Option<S> {
        Some(S::number((*self).min(MAX_SAFE) as f64))
    }
}

/// Counts things; what is larger than 32 bits saturates.
impl Value for u32 {
    const EXPECTED: &'static str = u64::EXPECTED;

    fn read<S: Source>(source: &S) -> Option<Self> {
        Some(u32::try_from(u64::read(source)?).unwrap_or(u32::MAX))
    }

    fn write<S: Sink>(&self) -> Option<S> {
        u64::from(*self).write()
    }
}

/// A status; what is none is 0.
impl Value for u16 {
    const EXPECTED: &'static str = u64::EXPECTED;

    fn read<S: Source>(source: &S) -> Option<Self> {
        Some(u16::try_from(u64::read(source)?).unwrap_or(0))
    }

    fn write<S: Sink>(&self) -> Option<S> {
        u64::from(*self).write()
    }
}

/// A value that may be absent, but not another.
impl<T: Value> Value for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read<S: Source>(source: &S) -> Option<Self> {
        T::read(source).map(Some)
    }

    fn write<S: Sink>(&self) -> Option<S> {
        self.as_ref().and_then(T::write)
    }
}

impl Value for Vec<String> {
    const EXPECTED: &'static str = "expected an array of strings";

    fn read<S: Source>(source: &S) -> Option<Self> {
        read_list(source)
    }

    fn write<S: Sink>(&self) -> Option<S> {
        write_list(self)
    }
}

impl Value for Vec<u64> {
    const EXPECTED: &'static str = "expected an array of whole numbers";

    fn read<S: Source>(source: &S) -> Option<Self> {
        read_list(source)
    }

    fn write<S: Sink>(&self) -> Option<S> {
        write_list(self)
    }
}

/// A list of pairs, as an array of two-element arrays.
impl Value for Vec<(String, String)> {
    const EXPECTED: &'static str = "expected pairs of strings";

    fn read<S: Source>(source: &S) -> Option<Self> {
        read_list(source)
    }

    fn write<S: Sink>(&self) -> Option<S> {
        write_list(self)
    }
}

impl Value for (String, String) {
    const EXPECTED: &'static str = "expected a pair of strings";

    fn read<S: Source>(source: &S) -> Option<Self> {
        match source.items()?.as_slice() {
            [first, second] => Some((first.string()?, second.string()?)),
            _ => None,
        }
    }

    fn write<S: Sink>(&self) -> Option<S> {
        Some(S::list(vec![S::string(&self.0), S::string(&self.1)]))
    }
}

fn read_list<S: Source, T: Value>(source: &S) -> Option<Vec<T>> {
    let mut list = Vec::new();
    for item in source.items()? {
        list.push(T::read(&item)?);
    }
    Some(list)
}

fn write_list<S: Sink, T: Value>(list: &[T]) -> Option<S> {
    let mut items = Vec::new();
    for item in list {
        items.extend(item.write::<S>());
    }
    Some(S::list(items))
}
