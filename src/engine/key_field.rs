//! The idempotency key as one more field of a form's body, for a request that must stay a simple cross-origin one.
//!
//! Every other byte of the body is kept. What is added is what a browser would have written, had the form held a hidden
//! control of that name (HTML "form submission"; RFC 7578 and RFC 2046 §5.1.1 for multipart, WHATWG URL for urlencoded).

use std::fmt;

/// Why a body can take no further field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFieldError {
    /// The content type is neither `application/x-www-form-urlencoded` nor `multipart/form-data`.
    NotAForm,
    /// The content type is `multipart/form-data` without a readable, non-empty `boundary`.
    NoBoundary,
    /// The body has no closing line of that boundary.
    NoClosingLine,
    /// The key can't stand in a multipart body: it has a line break, or begins like the boundary.
    BadKey,
}

impl KeyFieldError {
    /// A sentence for the developer.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyFieldError::NotAForm => {
                "expected a body of type application/x-www-form-urlencoded or multipart/form-data"
            }
            KeyFieldError::NoBoundary => "the content type multipart/form-data names no boundary",
            KeyFieldError::NoClosingLine => {
                "the multipart body does not end with the boundary of its content type"
            }
            KeyFieldError::BadKey => {
                "the key has a line break or begins like the multipart boundary"
            }
        }
    }
}

impl fmt::Display for KeyFieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for KeyFieldError {}

/// The body with the field `field` of value `key` as its last.
///
/// `content_type` is the request's own and stays true of the result: parameters, and the boundary in particular, do not
/// change. Line breaks in `field` become CRLF before they are escaped, as in a browser.
///
/// # Errors
/// [`KeyFieldError`] where the body is not a form's, or is a multipart body that its receiver could not read either.
pub fn with_key_field(
    content_type: &str,
    body: &[u8],
    field: &str,
    key: &str,
) -> Result<Vec<u8>, KeyFieldError> {
    if essence_is(content_type, b"application/x-www-form-urlencoded") {
        let mut out = Vec::with_capacity(body.len() + 3 * (field.len() + key.len()) + 2);
        out.extend_from_slice(body);
        if !body.is_empty() {
            out.push(b'&');
        }
        push_urlencoded(&mut out, field);
        out.push(b'=');
        push_urlencoded(&mut out, key);
        return Ok(out);
    }
    if !essence_is(content_type, b"multipart/form-data") {
        return Err(KeyFieldError::NotAForm);
    }
    let boundary = Boundary::of(content_type).ok_or(KeyFieldError::NoBoundary)?;
    let closing = Delimiters::new(body, &boundary.value)
        .find(|line| line.closes)
        .ok_or(KeyFieldError::NoClosingLine)?;
    let (before, after) = body
        .split_at_checked(closing.start)
        .ok_or(KeyFieldError::NoClosingLine)?;
    let like_boundary = strip_delimiter(key.as_bytes(), &boundary.value).is_some();
    if like_boundary || key.bytes().any(|b| matches!(b, b'\r' | b'\n')) {
        return Err(KeyFieldError::BadKey);
    }

    // The line break before the closing line stays where it is and now ends the line before ours.
    let added = boundary.value.len() + 3 * field.len() + key.len() + 64;
    let mut out = Vec::with_capacity(body.len() + added);
    out.extend_from_slice(before);
    out.extend_from_slice(b"--");
    out.extend_from_slice(&boundary.value);
    out.extend_from_slice(b"\r\nContent-Disposition: form-data; name=\"");
    for_each_byte_of_name(field, |byte| match byte {
        b'"' => out.extend_from_slice(b"%22"),
        b'\r' => out.extend_from_slice(b"%0D"),
        b'\n' => out.extend_from_slice(b"%0A"),
        _ => out.push(byte),
    });
    out.extend_from_slice(b"\"\r\n\r\n");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(after);
    Ok(out)
}

/// A name's bytes, each line break (CR, LF or both) as CRLF: HTML's normalisation of an entry list.
fn for_each_byte_of_name(name: &str, mut each: impl FnMut(u8)) {
    let mut previous = 0;
    for byte in name.bytes() {
        match byte {
            b'\n' if previous == b'\r' => {}
            b'\r' | b'\n' => {
                each(b'\r');
                each(b'\n');
            }
            _ => each(byte),
        }
        previous = byte;
    }
}

/// The serialiser of `application/x-www-form-urlencoded` (WHATWG URL §5.2), for one name or value.
fn push_urlencoded(out: &mut Vec<u8>, text: &str) {
    for_each_byte_of_name(text, |byte| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'*' | b'-' | b'.' | b'_' => out.push(byte),
        b' ' => out.push(b'+'),
        _ => {
            out.push(b'%');
            for nibble in [byte >> 4, byte & 0x0f] {
                out.push(if nibble < 10 {
                    b'0' + nibble
                } else {
                    b'A' + nibble - 10
                });
            }
        }
    });
}

/// Whether the media type, parameters aside, is this one (given in lower case; RFC 9110 §8.3.1).
fn essence_is(content_type: &str, expected: &[u8]) -> bool {
    let (essence, _) = take_until(content_type.as_bytes(), b';');
    trim_end(trim_start(essence)).eq_ignore_ascii_case(expected)
}

/// The boundary of a `multipart/form-data` content type (RFC 2046 §5.1.1), and what stands around it.
pub(super) struct Boundary<'a> {
    /// The content type up to the boundary's value, without its opening quote.
    pub(super) before: &'a [u8],
    /// The boundary itself, unquoted. Never empty.
    pub(super) value: Vec<u8>,
    /// The content type from behind the value and its closing quote.
    pub(super) after: &'a [u8],
}

impl<'a> Boundary<'a> {
    /// Reads it from a content type; `None` where that is of another type, or names no boundary. The first counts.
    pub(super) fn of(content_type: &'a str) -> Option<Self> {
        if !essence_is(content_type, b"multipart/form-data") {
            return None;
        }
        let whole = content_type.as_bytes();
        let (_, mut rest) = take_until(whole, b';');
        while let [b';', parameter @ ..] = rest {
            let parameter = trim_start(parameter);
            let (name, from_equals) = take_until_either(parameter, b'=', b';');
            let [b'=', from_value @ ..] = from_equals else {
                rest = from_equals;
                continue;
            };
            let (value, after) = match from_value {
                [b'"', quoted @ ..] => unquote(quoted)?,
                _ => {
                    let (token, _) = take_until(from_value, b';');
                    let token = trim_end(token);
                    (token.to_vec(), from_value.get(token.len()..)?)
                }
            };
            if name.eq_ignore_ascii_case(b"boundary") {
                let before = whole.get(..whole.len() - from_value.len())?;
                return (!value.is_empty()).then_some(Boundary {
                    before,
                    value,
                    after,
                });
            }
            (_, rest) = take_until(after, b';');
        }
        None
    }
}

/// Reads a quoted-string (RFC 9110 §5.6.4) from behind its opening quote: its value, and what follows its closing quote.
fn unquote(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Some((value, after)),
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

/// One line of a multipart body that separates or ends its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delimiter {
    /// Where its `--` begins: the line break before it is not counted.
    pub(super) start: usize,
    /// Where its boundary ends.
    pub(super) end: usize,
    /// Whether it is the closing line.
    pub(super) closes: bool,
}

/// The delimiter lines of a multipart body in order, up to the closing one (RFC 2046 §5.1.1). A line that merely begins
/// like one is content, as most servers take it.
pub(super) struct Delimiters<'a> {
    body: &'a [u8],
    boundary: &'a [u8],
    /// The start of the next line to look at; beyond the body when there is none.
    line: usize,
}

impl<'a> Delimiters<'a> {
    /// The delimiter lines of `body`.
    pub(super) fn new(body: &'a [u8], boundary: &'a [u8]) -> Self {
        Delimiters {
            body,
            boundary,
            line: 0,
        }
    }
}

impl Iterator for Delimiters<'_> {
    type Item = Delimiter;

    fn next(&mut self) -> Option<Delimiter> {
        loop {
            let start = self.line;
            let rest = self.body.get(start..)?;
            self.line = match rest.windows(2).position(|pair| pair == b"\r\n") {
                Some(length) => start + length + 2,
                None => usize::MAX,
            };
            let Some(tail) = strip_delimiter(rest, self.boundary) else {
                continue;
            };
            let (closes, padding) = match tail.strip_prefix(b"--") {
                Some(padding) => (true, padding),
                None => (false, tail),
            };
            let padding = trim_start(padding);
            if padding.starts_with(b"\r\n") || (closes && padding.is_empty()) {
                if closes {
                    self.line = usize::MAX;
                }
                return Some(Delimiter {
                    start,
                    end: start + rest.len() - tail.len(),
                    closes,
                });
            }
        }
    }
}

/// What follows `--` and the boundary at the start of a line.
fn strip_delimiter<'a>(line: &'a [u8], boundary: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(b"--")?.strip_prefix(boundary)
}

/// What precedes the first such byte, and the rest from it on.
fn take_until(text: &[u8], end: u8) -> (&[u8], &[u8]) {
    take_until_either(text, end, end)
}

/// What precedes the first of these bytes, and the rest from it on.
fn take_until_either(text: &[u8], end: u8, other: u8) -> (&[u8], &[u8]) {
    text.iter()
        .position(|byte| *byte == end || *byte == other)
        .and_then(|at| text.split_at_checked(at))
        .unwrap_or((text, &[]))
}

/// Takes spaces and tabs off the start.
fn trim_start(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

/// Takes spaces and tabs off the end.
fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const URLENCODED: &str = "application/x-www-form-urlencoded";
    const MULTIPART: &str = "multipart/form-data; boundary=B";

    fn with(content_type: &str, body: &str, field: &str) -> Result<String, KeyFieldError> {
        with_key_field(content_type, body.as_bytes(), field, "k-1")
            .map(|out| String::from_utf8(out).unwrap())
    }

    #[test]
    fn urlencoded_bodies() {
        for (content_type, body, field, expected) in [
            (URLENCODED, "", "key", "key=k-1"),
            (URLENCODED, "a=1", "key", "a=1&key=k-1"),
            (URLENCODED, "a=1&", "key", "a=1&&key=k-1"),
            (
                URLENCODED,
                "a=%00+b",
                "_idempotency-key",
                "a=%00+b&_idempotency-key=k-1",
            ),
            (URLENCODED, "", "a b&c=d", "a+b%26c%3Dd=k-1"),
            (URLENCODED, "", "*-._09AZaz~", "*-._09AZaz%7E=k-1"),
            (URLENCODED, "", "é€\u{fffd}", "%C3%A9%E2%82%AC%EF%BF%BD=k-1"),
            (URLENCODED, "", "n\"\r\nx", "n%22%0D%0Ax=k-1"),
            (URLENCODED, "", "a\nb\r\nc\rd", "a%0D%0Ab%0D%0Ac%0D%0Ad=k-1"),
            (
                "application/x-www-form-urlencoded;charset=UTF-8",
                "a=1",
                "k",
                "a=1&k=k-1",
            ),
            (
                " Application/X-WWW-Form-Urlencoded ; charset=utf-8",
                "a=1",
                "k",
                "a=1&k=k-1",
            ),
        ] {
            assert_eq!(with(content_type, body, field).unwrap(), expected);
        }
        assert_eq!(
            with_key_field(URLENCODED, b"", "k", "a&b=c\n").unwrap(),
            b"k=a%26b%3Dc%0D%0A"
        );
    }

    const PART: &str = "--B\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk-1\r\n";

    #[test]
    fn a_part_goes_before_the_closing_line() {
        let a = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n";
        for (before, after) in [
            (a, "--B--\r\n"),
            (a, "--B--"),
            (a, "--B-- \t"),
            (a, "--B-- \r\nan epilogue\r\n--B--\r\n"),
            // No fields at all: what a browser writes for an empty FormData.
            ("", "--B--\r\n"),
            ("a preamble\r\n--B\r\n\r\n1\r\n", "--B--\r\n"),
            ("--B \t\r\n\r\n1\r\n", "--B--\r\n"),
            // Lines that merely begin like a delimiter, or stand inside a line.
            (
                "--B\r\n\r\n--Bx\r\n--B--x\r\n --B--\r\nx--B--\r\n\n--B--\n\r--B--\r\n",
                "--B--\r\n",
            ),
            ("--B\r\n\r\n\r\n", "--B--\r\n"),
            ("--B\r\n\r\n\r\r\n", "--B--\r\n"),
        ] {
            let body = [before, after].concat();
            let expected = [before, PART, after].concat();
            assert_eq!(with(MULTIPART, &body, "key").unwrap(), expected, "{body:?}");
        }
    }

    #[test]
    fn names_are_escaped_as_html_demands() {
        for (field, expected) in [
            ("n\"\r\nx", "n%22%0D%0Ax"),
            ("a\nb\rc", "a%0D%0Ab%0D%0Ac"),
            ("\r\r\n\n", "%0D%0A%0D%0A%0D%0A"),
            ("é \\;%", "é \\;%"),
            ("x\"; filename=\"y", "x%22; filename=%22y"),
        ] {
            let expected = PART.replace("\"key\"", &["\"", expected, "\""].concat());
            assert_eq!(
                with(MULTIPART, "--B--\r\n", field).unwrap(),
                [&expected, "--B--\r\n"].concat()
            );
        }
    }

    #[test]
    fn boundaries_in_every_notation() {
        for (content_type, boundary) in [
            ("multipart/form-data; boundary=B", "B"),
            ("multipart/form-data;boundary=B", "B"),
            ("Multipart/Form-Data \t;\tBOUNDARY=B \t", "B"),
            ("multipart/form-data; boundary=B; charset=utf-8", "B"),
            ("multipart/form-data; charset=utf-8; boundary=B", "B"),
            (
                "multipart/form-data; charset=\"; boundary=no\"; boundary=B",
                "B",
            ),
            (
                "multipart/form-data; x=\"\\\"; boundary=no\" junk; boundary=B",
                "B",
            ),
            ("multipart/form-data;; flag; boundary=B", "B"),
            ("multipart/form-data; boundary=B; boundary=C", "B"),
            ("multipart/form-data; boundary=\"B\"", "B"),
            (
                "multipart/form-data; boundary=\"a b;c,'()/:=?\"; x=y",
                "a b;c,'()/:=?",
            ),
            ("multipart/form-data; boundary=\"a\\\"\\b\"", "a\"b"),
            (
                "multipart/form-data; boundary=----=_Part_1=",
                "----=_Part_1=",
            ),
            (
                "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW",
                "----WebKitFormBoundary7MA4YWxkTrZu0gW",
            ),
        ] {
            let closing = ["--", boundary, "--\r\n"].concat();
            let part = PART.replace("--B", &["--", boundary].concat());
            assert_eq!(
                with(content_type, &closing, "key").unwrap(),
                [part, closing].concat(),
                "{content_type}"
            );
        }
    }

    #[test]
    fn what_takes_no_field() {
        use KeyFieldError::*;
        for (content_type, body, expected) in [
            ("", "", NotAForm),
            (";", "", NotAForm),
            ("text/plain", "a=1", NotAForm),
            ("application/json", "{}", NotAForm),
            ("multipart/mixed; boundary=B", "--B--\r\n", NotAForm),
            ("multipart/form-data-x; boundary=B", "--B--\r\n", NotAForm),
            ("x-multipart/form-data; boundary=B", "--B--\r\n", NotAForm),
            ("multipart/form-data", "--B--\r\n", NoBoundary),
            ("multipart/form-data;", "--B--\r\n", NoBoundary),
            ("multipart/form-data; boundary", "--B--\r\n", NoBoundary),
            ("multipart/form-data; boundary=", "----\r\n", NoBoundary),
            ("multipart/form-data; boundary=\"\"", "----\r\n", NoBoundary),
            ("multipart/form-data; boundary=\"B", "--B--\r\n", NoBoundary),
            (
                "multipart/form-data; boundary=\"B\\",
                "--B--\r\n",
                NoBoundary,
            ),
            ("multipart/form-data; xboundary=B", "--B--\r\n", NoBoundary),
            (MULTIPART, "", NoClosingLine),
            (MULTIPART, "a=1", NoClosingLine),
            (MULTIPART, "--B", NoClosingLine),
            (MULTIPART, "--B\r\n\r\n1\r\n", NoClosingLine),
            (MULTIPART, "--B\r\n\r\n1\r\n--B\r\n", NoClosingLine),
            (MULTIPART, "--B\n\n1\n--B--\n", NoClosingLine),
            (MULTIPART, "--C--\r\n", NoClosingLine),
            (MULTIPART, "--b--\r\n", NoClosingLine),
            (MULTIPART, "--B-", NoClosingLine),
            (MULTIPART, "x--B--\r\n", NoClosingLine),
            (MULTIPART, "--B--x\r\n", NoClosingLine),
        ] {
            assert_eq!(
                with(content_type, body, "key"),
                Err(expected),
                "{content_type:?} {body:?}"
            );
            assert!(expected.to_string().starts_with(""));
        }
    }

    #[test]
    fn a_key_can_not_break_out_of_its_part() {
        for key in ["a\r\nb", "a\nb", "a\r", "--B", "--B--", "--Bx"] {
            assert_eq!(
                with_key_field(MULTIPART, b"--B--\r\n", "key", key),
                Err(KeyFieldError::BadKey)
            );
        }
        assert!(with_key_field(MULTIPART, b"--B--\r\n", "key", "-B--B").is_ok());
    }

    #[cfg(not(target_arch = "wasm32"))]
    mod properties {
        use super::*;
        use proptest::collection::vec;
        use proptest::prelude::*;

        proptest! {
            #[test]
            fn every_other_byte_is_kept(
                parts in vec(vec(any::<u8>(), 0..40), 0..4),
                epilogue in vec(any::<u8>(), 0..10),
                boundary in "[0-9A-Za-z'()+_,./:=?-]{20,70}",
                field in any::<String>(),
            ) {
                let mut body = Vec::new();
                for part in &parts {
                    body.extend_from_slice(
                        &[b"--", boundary.as_bytes(), b"\r\n\r\n", part, b"\r\n"].concat(),
                    );
                }
                let at = body.len();
                let tail = [b"--", boundary.as_bytes(), b"--\r\n", &epilogue].concat();
                body.extend_from_slice(&tail);
                let content_type = format!("multipart/form-data; boundary=\"{boundary}\"");
                let out = with_key_field(&content_type, &body, &field, "key-1").unwrap();
                let added = out.len() - body.len();
                prop_assert_eq!(&out[..at], &body[..at]);
                prop_assert_eq!(&out[at + added..], &tail);
                // What was added is one part more, of five lines.
                let lines = out[at..at + added].split(|b| *b == b'\n').count();
                prop_assert_eq!(lines, 5);
                let count = |body: &[u8]| Delimiters::new(body, boundary.as_bytes()).count();
                prop_assert_eq!(count(&body), parts.len() + 1);
                prop_assert_eq!(count(&out), parts.len() + 2);
            }

            #[test]
            fn urlencoded_keeps_what_was_there(body in vec(any::<u8>(), 0..40), field: String) {
                let out = with_key_field(URLENCODED, &body, &field, "key-1").unwrap();
                prop_assert!(out.starts_with(&body));
                prop_assert!(out.ends_with(b"=key-1"));
                let added = &out[body.len()..out.len() - 6];
                prop_assert_eq!(added.first() == Some(&b'&'), !body.is_empty());
                prop_assert!(added
                    .iter()
                    .skip(usize::from(!body.is_empty()))
                    .all(|b| b.is_ascii_alphanumeric() || b"*-._+%".contains(b)));
            }

            #[test]
            fn anything_may_be_thrown_at_it(
                parameters in "[ -~\t]{0,40}",
                content_type: String,
                body in "(--|B|\r\n|-| |x){0,20}",
            ) {
                let _ = with_key_field(&content_type, body.as_bytes(), "key", "k-1");
                let content_type = format!("multipart/form-data;{parameters}");
                let _ = with_key_field(&content_type, body.as_bytes(), "key", "k-1");
                let _ = with_key_field(MULTIPART, body.as_bytes(), "key", "k-1");
            }
        }
    }
}
