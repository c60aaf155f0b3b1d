//! Taking strings apart at ASCII characters.
//!
//! The standard searches find any pattern in any text and panic at what is no boundary of a character; each brings
//! kilobytes of code along. These bytes are boundaries by themselves.

/// What precedes the first of these ASCII characters, and the rest from it on.
pub(crate) fn cut<'a>(text: &'a str, ends: &[u8]) -> (&'a str, &'a str) {
    text.bytes()
        .position(|byte| ends.contains(&byte))
        .and_then(|at| text.split_at_checked(at))
        .unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn the_first_of_several_ends_counts() {
        assert_eq!(cut("é/a?b", b"?/"), ("é", "/a?b"));
        assert_eq!(cut("a?", b"?"), ("a", "?"));
        assert_eq!(cut("a", b"?"), ("a", ""));
        assert_eq!(cut("", b"?"), ("", ""));
    }
}
