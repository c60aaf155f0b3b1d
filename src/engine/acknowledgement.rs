//! What counts as an acknowledgement, as data: so that any page and a service worker can judge.

use super::decode::{Fields, Source};
use super::shape::{Shape, Visitor};
use super::text::cut;
use super::verdict::Head;

/// What a 2xx must be to count as delivered. A captive portal's page, or an error behind a 200, is then no delivery: the
/// intent is tried again under the same key. What is not given is not asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// One of these statuses, from 200 to 299. Empty: any.
    pub statuses: Vec<u64>,
    /// This media type; parameters do not count.
    pub content_type: Option<String>,
    /// This header, `Name` with any value or `Name: value` with this one. From another origin the server has to expose it.
    pub header: Option<String>,
}

impl Shape for Acknowledgement {
    fn fields<V: Visitor>(&mut self, visitor: &mut V) {
        visitor.field("statuses", &mut self.statuses);
        visitor.field("contentType", &mut self.content_type);
        visitor.field("header", &mut self.header);
    }
}

impl Acknowledgement {
    /// Reads the option `isDelivered`, if it is there.
    pub(super) fn read<S: Source>(fields: &mut Fields<'_, S>) -> Option<Self> {
        let given = fields.get("isDelivered")?;
        let mut inner = Fields::of(&given, "options.isDelivered");
        inner.only(&["statuses", "contentType", "header"]);
        let mut read = Acknowledgement::default();
        read.fields(&mut inner);
        if read == Acknowledgement::default() {
            inner.refuse("statuses", "expected this, contentType or header");
        }
        if !read.statuses.iter().all(|code| (200..300).contains(code)) {
            inner.refuse("statuses", "expected statuses from 200 to 299");
        }
        fields.keep(inner.finish(read))
    }

    /// The name of the header that it asks for.
    pub fn header_name(&self) -> Option<&str> {
        let line = self.header.as_deref()?;
        Some(cut(line, b":").0.trim_ascii())
    }

    /// Whether a 2xx is one.
    pub(super) fn is(&self, head: &Head) -> bool {
        let statuses = &self.statuses;
        let status = statuses.is_empty() || statuses.contains(&head.status.into());
        let content_type = self.content_type.as_deref().is_none_or(|wanted| {
            let given = head.content_type.as_deref().unwrap_or("");
            cut(given, b";")
                .0
                .trim_ascii()
                .eq_ignore_ascii_case(wanted.trim_ascii())
        });
        let header = self.header.as_deref().is_none_or(|line| {
            let (name, value) = cut(line, b":");
            head.asked.as_deref().is_some_and(|given| {
                let wanted = value.get(1..).unwrap_or("");
                name == line || given.trim_ascii() == wanted.trim_ascii()
            })
        });
        status && content_type && header
    }
}
