//! What a parser finds.

/// The code of the warning that names text which is in no event: neither the framing of what an
/// event holds, nor a call.
pub(crate) const DROPPED: &str = "tag_dropped";

/// A piece of a call, as a `tool_call_delta` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallPiece<'a> {
    /// The number of the call in this choice: 0, 1, 2 … in the order in which calls begin.
    pub index: i64,
    /// The call's id, where the text has one.
    pub id: Option<&'a str>,
    /// The tool's name, in the call's first piece.
    pub name: Option<&'a str>,
    /// The next piece of the arguments' text.
    pub arguments: Option<&'a str>,
    /// The call is complete.
    pub done: bool,
}

impl<'a> CallPiece<'a> {
    /// An empty piece of this call.
    pub(crate) fn of(index: i64) -> CallPiece<'a> {
        CallPiece {
            index,
            ..CallPiece::default()
        }
    }

    /// Its id, name and arguments.
    pub(crate) fn texts(&self) -> [Option<&'a str>; 3] {
        [self.id, self.name, self.arguments]
    }

    /// How many bytes of text it has.
    pub(crate) fn size(&self) -> usize {
        self.texts().iter().flatten().map(|text| text.len()).sum()
    }
}

/// What text is that is neither a call nor a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prose {
    Answer,
    Reasoning,
}

impl Prose {
    /// Reasoning, or the answer.
    pub(crate) fn reasoning_if(is_reasoning: bool) -> Prose {
        if is_reasoning {
            Prose::Reasoning
        } else {
            Prose::Answer
        }
    }
}

/// Takes what a parser finds, in the order of the text.
pub trait Outlet {
    /// Text of the answer.
    fn content(&mut self, text: &str);

    /// Reasoning.
    fn reasoning(&mut self, text: &str);

    /// The reasoning has ended, before its closing marker is left out.
    fn reasoning_ended(&mut self) {}

    /// A piece of a call.
    fn call(&mut self, piece: CallPiece<'_>);

    /// The call of this index does not count.
    fn retract(&mut self, index: i64, reason: &'static str);

    /// A message for people: a code, a sentence, and the text that it is about.
    fn warning(&mut self, code: &'static str, message: &str, raw: &str);

    /// Text that is in none of these: markers, and the text of calls, each once its call is
    /// complete. With it, all text that the parser takes reaches the outlet in order, which tests
    /// check. What frames neither a call nor reasoning nor a message is named by a warning just
    /// before.
    fn left_out(&mut self, text: &str) {
        let _ = text;
    }
}
