//! Writing what goes out: rows for the disk, and what a page is shown.
//!
//! The counterpart of [`decode`](super::decode): the engine writes through [`Sink`], which the browser shell implements
//! for a JavaScript value and the tests for JSON.

use super::shape::{Shape, Value, Visitor};

/// A value of the other side, being made.
pub trait Sink: Sized {
    /// A string.
    fn string(text: &str) -> Self;
    /// A number.
    fn number(number: f64) -> Self;
    /// A boolean.
    fn boolean(boolean: bool) -> Self;
    /// An array.
    fn list(items: Vec<Self>) -> Self;
    /// Nothing.
    fn null() -> Self;
    /// An object without properties.
    fn object() -> Self;
    /// Gives an object a property.
    fn set(&mut self, name: &str, value: Self);
}

/// Writes an object; what is absent gets no property.
pub fn write<S: Sink>(shape: &(impl Shape + Clone)) -> S {
    let mut writer = Writer(S::object());
    // The one list of its fields serves reading as well, so it wants them to be changed: of a copy.
    shape.clone().fields(&mut writer);
    writer.0
}

struct Writer<S>(S);

impl<S: Sink> Visitor for Writer<S> {
    fn field<T: Value>(&mut self, name: &str, field: &mut T) {
        if let Some(value) = field.write() {
            self.0.set(name, value);
        }
    }

    fn object<T: Shape>(&mut self, name: &str, field: &mut T) {
        let mut writer = Writer(S::object());
        field.fields(&mut writer);
        self.0.set(name, writer.0);
    }

    fn optional<T: Shape + Default>(&mut self, name: &str, field: &mut Option<T>) {
        if let Some(field) = field {
            self.object(name, field);
        }
    }
}
