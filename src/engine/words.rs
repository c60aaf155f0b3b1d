//! Closed lists of words: enums that are strings in JavaScript and in stored rows.

/// Declares an enum whose variants are words, with `as_str`, `parse` and their like made from the one list. The
/// string behind the name is what to say to whoever writes another word.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident: $expected:literal { $( $(#[$vmeta:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $name { $( $(#[$vmeta])* $variant, )+ }

        impl $name {
            /// Every word of the list, in the order of declaration.
            pub const ALL: &'static [$name] = &[ $( $name::$variant, )+ ];

            const WORDS: &'static [&'static str] = &[ $( $word, )+ ];

            /// The word as JavaScript and stored rows have it.
            pub fn as_str(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            /// The variant of a word, if it is on the list.
            pub fn parse(word: &str) -> Option<Self> {
                let at = Self::WORDS.iter().position(|known| *known == word)?;
                Self::ALL.get(at).copied()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::engine::shape::Value for $name {
            const EXPECTED: &'static str = $expected;

            fn read<S: $crate::engine::decode::Source>(source: &S) -> Option<Self> {
                Self::parse(&source.string()?)
            }

            fn write<S: $crate::engine::encode::Sink>(&self) -> Option<S> {
                Some(S::string(self.as_str()))
            }
        }
    };
}

pub(crate) use words;
