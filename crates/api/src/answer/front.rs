//! The table of the APIs that clients speak.

use crate::answer::failure::Failure;
use crate::answer::writer::FrontRow;

macro_rules! table {
    ($($front:ident: $row:path,)*) => {
        /// An API that clients speak.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each variant is the API of its name in the table")]
        pub enum Front {
            $($front,)*
        }

        impl Front {
            /// Every front, in the order of the table.
            pub const ALL: [Front; [$(Front::$front,)*].len()] = [$(Front::$front,)*];

            pub(crate) fn row(self) -> &'static FrontRow {
                match self {
                    $(Front::$front => &$row,)*
                }
            }
        }
    };
}

table! {
    Chat: crate::openai_chat::writer::ROW,
    Responses: crate::openai_responses::writer::ROW,
    Messages: crate::anthropic::writer::ROW,
}

impl Front {
    /// The name of the API, as `--api` has it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The path of its requests.
    pub fn path(self) -> &'static str {
        self.row().path
    }

    /// Whether an answer may have several choices; else it has choice 0 alone.
    pub(crate) fn has_choices(self) -> bool {
        self == Front::Chat
    }

    /// The body of an HTTP error in the form of this front.
    pub fn failure(self, failure: &Failure) -> Vec<u8> {
        (self.row().failure)(failure)
    }
}
