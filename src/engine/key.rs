//! The idempotency key: one per intent, for life.

use super::decode::Source;
use super::encode::Sink;
use super::error::{Code, Error};
use super::shape::{Shape, Value, Visitor};
use super::words::words;
use std::fmt;
use std::rc::Rc;

/// An idempotency key: 1 to 255 characters of `[A-Za-z0-9_-]`. Neither form of the header needs to escape anything in
/// it, so the bytes are the same in both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Rc<str>);

impl Key {
    /// A UUID version 4 (RFC 9562 §5.4) from 16 random bytes, which the shell draws from `getrandom`.
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = String::with_capacity(36);
        for (i, byte) in bytes.into_iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for nibble in [byte >> 4, byte & 0x0f] {
                text.push(char::from(if nibble < 10 {
                    b'0' + nibble
                } else {
                    b'a' + nibble - 10
                }));
            }
        }
        Key(text.into())
    }

    /// The application's own key.
    ///
    /// # Errors
    /// `bad-option` unless it is 1 to 255 characters of `[A-Za-z0-9_-]`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Key::checked(text)
            .ok_or_else(|| Error::about(Code::BadOption, "options.key", Key::EXPECTED))
    }

    fn checked(text: &str) -> Option<Self> {
        let fits = (1..=255).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        fits.then(|| Key(text.into()))
    }

    /// What stands in a row until its key is read. No key.
    pub(super) fn unread() -> Self {
        Key("".into())
    }

    /// The bare token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Value for Key {
    const EXPECTED: &'static str = "expected 1 to 255 characters of A-Z, a-z, 0-9, - and _";

    fn read<S: Source>(source: &S) -> Option<Self> {
        Key::checked(&source.string()?)
    }

    fn write<S: Sink>(&self) -> Option<S> {
        Some(S::string(&self.0))
    }
}

/// The default name of the header (draft-ietf-httpapi-idempotency-key-header).
pub const HEADER: &str = "Idempotency-Key";

/// How the key is written into the request. Chosen at submit and stored with the intent, so that a later release with
/// another default sends the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPlace {
    /// The form of the header's value.
    pub format: KeyFormat,
    /// The name of the header, [`HEADER`] by default.
    pub header: String,
    /// The name of the body field that carries the key instead of the header.
    pub field: Option<String>,
}

impl Default for KeyPlace {
    fn default() -> Self {
        KeyPlace {
            format: KeyFormat::Bare,
            header: HEADER.into(),
            field: None,
        }
    }
}

words! {
    /// The two forms of the header's value that servers in the field expect.
    pub enum KeyFormat: "expected \"bare\" or \"sf-string\"" {
        /// The token alone, as most servers take it.
        Bare = "bare",
        /// The quoted string of the draft (`sf-string` of RFC 8941).
        SfString = "sf-string",
    }
}

impl Shape for KeyPlace {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        self.named(visitor, ["format", "header", "field"]);
    }
}

impl KeyPlace {
    /// Goes over its fields, under the names that the caller's object has for them.
    pub(super) fn named(&mut self, visitor: &mut impl Visitor, [format, header, field]: [&str; 3]) {
        visitor.field(format, &mut self.format);
        visitor.field(header, &mut self.header);
        visitor.field(field, &mut self.field);
    }

    /// The header to send with every attempt, or `None` where the key is in the body.
    pub fn header(&self, key: &Key) -> Option<(&str, String)> {
        if self.field.is_some() {
            return None;
        }
        let value = match self.format {
            KeyFormat::Bare => key.as_str().to_owned(),
            KeyFormat::SfString => ["\"", key.as_str(), "\""].concat(),
        };
        Some((&self.header, value))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_minted_key_is_a_uuid_of_version_4() {
        let key = Key::from_random([0xff; 16]);
        assert_eq!(key.as_str(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let key = Key::from_random([0; 16]);
        assert_eq!(key.as_str(), "00000000-0000-4000-8000-000000000000");
        assert!(Key::parse(key.as_str()).is_ok());
    }

    #[test]
    fn the_alphabet_of_the_applications_own_key() {
        for good in ["a", "order-17_b", &"x".repeat(255)] {
            assert_eq!(Key::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a\"b", "ä", "a\r\nb", &"x".repeat(256)] {
            assert_eq!(Key::parse(bad).unwrap_err().code(), Code::BadOption);
        }
    }

    #[test]
    fn both_forms_of_the_header_carry_the_same_bytes() {
        let key = Key::parse("abc-1").unwrap();
        let mut place = KeyPlace::default();
        assert_eq!(
            place.header(&key),
            Some(("Idempotency-Key", "abc-1".into()))
        );
        place.format = KeyFormat::SfString;
        assert_eq!(
            place.header(&key),
            Some(("Idempotency-Key", "\"abc-1\"".into()))
        );
        place.field = Some("key".into());
        assert_eq!(place.header(&key), None);
    }
}
