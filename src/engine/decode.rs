//! Reading what came from outside: options that a developer wrote, rows that an earlier page wrote.
//!
//! The engine knows no JavaScript, so it reads through [`Source`]; the browser shell implements that for a JavaScript
//! value with structural getters (a general deserialiser costs 17 KB), the tests implement it for JSON.

use super::env::Millis;
use super::error::{Code, Error};

/// A value of unknown shape. `undefined` and `null` are both absent.
pub trait Source: Sized {
    /// The property of that name, unless it is absent.
    fn get(&self, name: &str) -> Option<Self>;
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

/// The largest integer that a JavaScript number holds exactly, 2⁵³ − 1: the upper bound of every number read here.
pub const MAX_SAFE: u64 = (1 << 53) - 1;

/// An object being read, with the path to it, so that an error can name the field.
pub struct Fields<'a, S> {
    source: &'a S,
    path: &'a str,
}

impl<'a, S: Source> Fields<'a, S> {
    /// Starts to read an object that the caller knows as `path`.
    ///
    /// # Errors
    /// `bad-option` if it is no object.
    pub fn of(source: &'a S, path: &'a str) -> Result<Self, Error> {
        match source.names() {
            Some(_) => Ok(Fields { source, path }),
            None => Err(Error::about(Code::BadOption, path, "expected an object")),
        }
    }

    /// The error that `name` is not what was expected.
    pub fn error(&self, name: &str, expected: &str) -> Error {
        Error::about(Code::BadOption, &[self.path, ".", name].concat(), expected)
    }

    /// Refuses a property that is not on the list: a misspelt option must not be ignored in silence.
    ///
    /// # Errors
    /// `bad-option`, naming the first property that is unknown.
    pub fn only(&self, known: &[&str]) -> Result<(), Error> {
        for name in self.source.names().unwrap_or_default() {
            if !known.contains(&name.as_str()) && self.source.get(&name).is_some() {
                return Err(self.error(&name, "unknown here"));
            }
        }
        Ok(())
    }

    /// The raw property.
    pub fn get(&self, name: &str) -> Option<S> {
        self.source.get(name)
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&S) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        match self.source.get(name) {
            None => Ok(None),
            Some(value) => match read(&value) {
                Some(read) => Ok(Some(read)),
                None => Err(self.error(name, expected)),
            },
        }
    }

    /// A string.
    ///
    /// # Errors
    /// `bad-option` if it is present and no string. The same holds, each for its type, for the methods below.
    pub fn string(&self, name: &str) -> Result<Option<String>, Error> {
        self.read(name, "expected a string", S::string)
    }

    /// A boolean.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>, Error> {
        self.read(name, "expected true or false", S::boolean)
    }

    /// A whole number from 0 to 2⁵³ − 1.
    pub fn whole(&self, name: &str) -> Result<Option<u64>, Error> {
        self.read(name, "expected a whole number, 0 or more", whole)
    }

    /// A span of time in whole milliseconds.
    pub fn millis(&self, name: &str) -> Result<Option<Millis>, Error> {
        self.read(name, "expected whole milliseconds, 0 or more", whole)
    }

    /// A number that counts things; larger than 32 bits saturates.
    pub fn count(&self, name: &str) -> Result<Option<u32>, Error> {
        Ok(self
            .whole(name)?
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX)))
    }

    /// A word of a closed list; `expected` names the list.
    pub fn word<T>(
        &self,
        name: &str,
        expected: &str,
        parse: fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        self.read(name, expected, |value| parse(&value.string()?))
    }

    /// An array of strings.
    pub fn strings(&self, name: &str) -> Result<Option<Vec<String>>, Error> {
        self.read(name, "expected an array of strings", |value| {
            value.items()?.iter().map(S::string).collect()
        })
    }

    /// An array of whole numbers.
    pub fn wholes(&self, name: &str) -> Result<Option<Vec<u64>>, Error> {
        self.read(name, "expected an array of whole numbers", |value| {
            value.items()?.iter().map(whole).collect()
        })
    }

    /// Pairs of strings, as an array of two-element arrays.
    pub fn pairs(&self, name: &str) -> Result<Option<Vec<(String, String)>>, Error> {
        self.read(name, "expected pairs of strings", |value| {
            value
                .items()?
                .iter()
                .map(|pair| match pair.items()?.as_slice() {
                    [first, second] => Some((first.string()?, second.string()?)),
                    _ => None,
                })
                .collect()
        })
    }

    /// A property that must be there.
    ///
    /// # Errors
    /// `bad-option` if `value` is `None`.
    pub fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, Error> {
        value.ok_or_else(|| self.error(name, "required"))
    }
}

fn whole<S: Source>(value: &S) -> Option<u64> {
    let number = value.number()?;
    // The cast saturates; the comparison back refuses fractions, NaN, infinities and what is out of range.
    let cast = number as u64;
    (cast as f64 == number && cast <= MAX_SAFE).then_some(cast)
}
