//! Closed lists of words: enums that are strings in JavaScript and in stored rows.

/// Declares an enum whose variants are words, with `as_str`, `parse` and `Serialize` made from the one list.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $( $(#[$vmeta])* $variant, )+ }

        impl $name {
            /// Every word of the list, in the order of declaration.
            pub const ALL: &'static [$name] = &[ $( $name::$variant, )+ ];

            /// The word as JavaScript and stored rows have it.
            pub fn as_str(self) -> &'static str {
                match self { $( $name::$variant => $word, )+ }
            }

            /// The variant of a word, if it is on the list.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $( $word => Some($name::$variant), )+ _ => None }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;
