//! The output of a parser.

/// The code of the warning about text that appears in no event and is neither a call nor the
/// framing of an event's content.
pub(crate) const DROPPED: &str = "tag_dropped";

/// A piece of a call, with the fields of a `tool_call_delta`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallPiece<'a> {
    /// The number of the call in this choice: 0, 1, 2 … in the order in which calls begin.
    pub index: i64,
    /// The call's id, or `None` if the text has no id.
    pub id: Option<&'a str>,
    /// The tool's name, in the call's first piece only.
    pub name: Option<&'a str>,
    /// The next piece of the arguments' text.
    pub arguments: Option<&'a str>,
    /// Whether the call is complete.
    pub done: bool,
}

impl<'a> CallPiece<'a> {
    /// Creates an empty piece of this call.
    pub(crate) fn of(index: i64) -> CallPiece<'a> {
        CallPiece {
            index,
            ..CallPiece::default()
        }
    }

    /// Returns the id, the name and the arguments.
    pub(crate) fn texts(&self) -> [Option<&'a str>; 3] {
        [self.id, self.name, self.arguments]
    }

    /// Returns the length of the piece's texts, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.texts().iter().flatten().map(|text| text.len()).sum()
    }
}

/// The kind of a text that is neither a call nor a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prose {
    Answer,
    Reasoning,
}

impl Prose {
    /// Returns reasoning if `is_reasoning`, otherwise answer.
    pub(crate) fn reasoning_if(is_reasoning: bool) -> Prose {
        if is_reasoning {
            Prose::Reasoning
        } else {
            Prose::Answer
        }
    }
}

/// Receives the output of a parser, in the order of the text.
pub trait Outlet {
    /// Receives text of the answer.
    fn content(&mut self, text: &str);

    /// Receives reasoning.
    fn reasoning(&mut self, text: &str);

    /// Receives the end of reasoning, before the closing marker is passed to `left_out`.
    fn reasoning_ended(&mut self) {}

    /// Receives a piece of a call.
    fn call(&mut self, piece: CallPiece<'_>);

    /// Receives the retraction of the call with this index.
    fn retract(&mut self, index: i64, reason: &'static str);

    /// Receives a message for people: a code, a sentence, and the text that the message is about.
    fn warning(&mut self, code: &'static str, message: &str, raw: &str);

    /// Receives text that appears in no event: markers, and the text of each call once the call is
    /// complete. With this method, all text that the parser reads reaches the outlet in order,
    /// which tests check. If the text does not frame a call, reasoning or a message, a warning
    /// about it precedes this method's call.
    fn left_out(&mut self, text: &str) {
        let _ = text;
    }
}
