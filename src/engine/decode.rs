//! Reading what came from outside: options that a developer wrote, rows that an earlier page wrote.
//!
//! The engine knows no JavaScript, so it reads through [`Source`]; the browser shell implements that for a JavaScript
//! value with structural getters (a general deserialiser costs 17 KB), the tests implement it for JSON.

use super::env::Millis;
use super::error::{Code, Error};
use super::shape::{Shape, Value, Visitor};

/// A value of unknown shape. `undefined` and `null` are both absent, except to [`Source::is_null`].
pub trait Source: Sized {
    /// The property of that name, unless it is absent.
    fn get(&self, name: &str) -> Option<Self>;
    /// Whether the property of that name is `null`.
    fn is_null(&self, name: &str) -> bool;
    /// The value, if it is a string.
    fn string(&self) -> Option<String>;
    /// The value, if it is a number.
    fn number(&self) -> Option<f64>;
    /// The value, if it is a boolean.
    fn boolean(&self) -> Option<bool>;
    /// The elements, if it is an array.
    fn items(&self) -> Option<Vec<Self>>;
    /// The names of its own properties, or `None` if it is no object.
    fn names(&self) -> Option<Vec<String>>;
}

/// An object being read over what stands, with the path to it, so that an error can name the field. The first error is
/// kept until [`Fields::finish`]; what is read after it does not count.
pub struct Fields<'a, S> {
    source: &'a S,
    path: &'a str,
    error: Option<Error>,
}

impl<'a, S: Source> Fields<'a, S> {
    /// Starts to read an object that the caller knows as `path`.
    pub fn of(source: &'a S, path: &'a str) -> Self {
        let error = match source.names() {
            Some(_) => None,
            None => Some(Error::about(Code::BadOption, path, "expected an object")),
        };
        Fields {
            source,
            path,
            error,
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// The first that there was: `bad-option`, naming the field and what was expected.
    pub fn finish<T>(self, read: T) -> Result<T, Error> {
        match self.error {
            None => Ok(read),
            Some(error) => Err(error),
        }
    }

    /// Notes that `name` is not what was expected.
    pub fn refuse(&mut self, name: &str, expected: &str) {
        let name = [self.path, ".", name].concat();
        self.keep::<()>(Err(Error::about(Code::BadOption, &name, expected)));
    }

    /// Takes what was read by other means, or notes the error.
    pub fn keep<T>(&mut self, read: Result<T, Error>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(error) => {
                self.error.get_or_insert(error);
                None
            }
        }
    }

    /// Refuses a property that is not on the list: a misspelt option must not be ignored in silence.
    pub fn only(&mut self, known: &[&str]) {
        for name in self.source.names().unwrap_or_default() {
            if !known.contains(&name.as_str()) && self.has(&name) {
                self.refuse(&name, "unknown here");
            }
        }
    }

    /// Whether the property is `null`.
    pub fn is_null(&self, name: &str) -> bool {
        self.source.is_null(name)
    }

    /// The raw property.
    pub fn get(&self, name: &str) -> Option<S> {
        self.source.get(name)
    }

    fn read<T>(&mut self, name: &str, expected: &str, field: &mut T, read: fn(&S) -> Option<T>) {
        if let Some(value) = self.get(name) {
            match read(&value) {
                Some(read) => *field = read,
                None => self.refuse(name, expected),
            }
        }
    }
}

impl<S: Source> Visitor for Fields<'_, S> {
    fn field<T: Value>(&mut self, name: &str, field: &mut T) {
        self.read(name, T::EXPECTED, field, T::read);
    }

    fn millis(&mut self, name: &str, field: &mut Millis) {
        let expected = "expected whole milliseconds, 0 or more";
        self.read(name, expected, field, Millis::read);
    }

    /// Errors name the object without its parents.
    fn object<T: Shape>(&mut self, name: &str, field: &mut T) {
        if let Some(object) = self.get(name) {
            let mut fields = Fields::of(&object, name);
            field.fields(&mut fields);
            self.keep(fields.finish(()));
        }
    }

    fn optional<T: Shape + Default>(&mut self, name: &str, field: &mut Option<T>) {
        if self.has(name) {
            self.object(name, field.get_or_insert_default());
        }
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn require(&mut self, names: &[&str]) {
        for name in names {
            if !self.has(name) {
                self.refuse(name, "required");
            }
        }
    }
}
