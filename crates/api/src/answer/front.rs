//! The APIs that clients speak.

use crate::answer::failure::Failure;
use crate::answer::writer::AnswerFormat;
use crate::api::Api;
use event::Object;

/// An API that clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Front {
    /// Chat completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
}

impl Front {
    /// Every front.
    pub const ALL: [Front; 3] = [Front::Chat, Front::Responses, Front::Messages];

    /// The API.
    pub fn api(self) -> Api {
        match self {
            Front::Chat => Api::OpenaiChat,
            Front::Responses => Api::OpenaiResponses,
            Front::Messages => Api::Anthropic,
        }
    }

    /// The name of the API, as `--api` has it.
    pub fn name(self) -> &'static str {
        self.api().name()
    }

    /// How its answers are written.
    pub(crate) fn format(self) -> &'static AnswerFormat {
        let format = self.api().provider().answers;
        format.expect("the row of each front has the format of its answers")
    }

    /// The path of its requests.
    pub fn path(self) -> &'static str {
        self.format().path
    }

    /// Whether an answer may have several choices; else it has choice 0 alone.
    pub(crate) fn has_choices(self) -> bool {
        self == Front::Chat
    }

    /// The body of an HTTP error in the form of this front.
    pub fn failure(self, failure: &Failure) -> Vec<u8> {
        let mut out = Vec::new();
        let mut o = Object::open(&mut out);
        if self == Front::Messages {
            o.str("type", "error");
        }
        (self.format().error)(&mut o, failure);
        o.close();
        out
    }
}
