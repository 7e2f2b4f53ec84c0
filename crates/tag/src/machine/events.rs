//! What a parser finds, as events.

use crate::outlet::{CallPiece, Outlet};
use event::payload::{ContentDelta, Retract, Thinking, ToolCallDelta, Warning};
use event::{Sink, Text, cut};
use std::collections::HashSet;

/// The name of the command in the warnings it emits.
pub(super) const SOURCE: &str = "tag-parse";
/// How much of a text goes into a warning, in bytes.
const SHOWN: usize = 64 * 1024;

/// The outlet of one choice while its parser takes one piece of text. Texts that follow each other
/// become one event.
pub(super) struct Events<'e> {
    sink: &'e mut dyn Sink,
    choice: u32,
    /// The indexes of the calls that were emitted and hold.
    calls: &'e mut Vec<i64>,
    /// The warnings that were in the input, as [`warning_key`] has them.
    warned: &'e HashSet<String>,
    /// Text that is not emitted yet.
    text: String,
    /// That text is reasoning.
    is_reasoning: bool,
    /// An event was emitted.
    has_emitted: bool,
}

/// The identity of a warning.
pub(super) fn warning_key(code: &str, raw: &str) -> String {
    format!("{code} {raw}")
}

impl<'e> Events<'e> {
    pub fn new(
        sink: &'e mut dyn Sink,
        choice: u32,
        calls: &'e mut Vec<i64>,
        warned: &'e HashSet<String>,
    ) -> Events<'e> {
        Events {
            sink,
            choice,
            calls,
            warned,
            text: String::new(),
            is_reasoning: false,
            has_emitted: false,
        }
    }

    /// Whether this text of the answer is all that was found.
    pub fn is_only(&self, text: &str) -> bool {
        !self.has_emitted && !self.is_reasoning && self.text == text
    }

    /// Emits the text that is left.
    pub fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = Text::from(&self.text);
        if self.is_reasoning {
            self.sink.emit(
                self.choice,
                Thinking {
                    text,
                    provider: None,
                },
            );
        } else {
            self.sink.emit(
                self.choice,
                ContentDelta {
                    text,
                    with_call: false,
                },
            );
        }
        self.text.clear();
        self.has_emitted = true;
    }

    /// An event that is not text follows.
    fn interrupt(&mut self) {
        self.flush();
        self.has_emitted = true;
    }

    fn add(&mut self, text: &str, is_reasoning: bool) {
        if self.is_reasoning != is_reasoning {
            self.flush();
            self.is_reasoning = is_reasoning;
        }
        self.text.push_str(text);
    }
}

impl Outlet for Events<'_> {
    fn content(&mut self, text: &str) {
        self.add(text, false);
    }

    fn reasoning(&mut self, text: &str) {
        self.add(text, true);
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        self.interrupt();
        if piece.name.is_some() {
            self.calls.push(piece.index);
        }
        self.sink.emit(
            self.choice,
            ToolCallDelta {
                index: Some(piece.index),
                tool_id: piece.id.map(Into::into),
                tool_name: piece.name.map(Into::into),
                arguments: piece.arguments.map(Into::into),
                done: piece.done,
                provider: None,
                from_text: piece.name.is_some(),
            },
        );
    }

    fn retract(&mut self, index: i64, reason: &'static str) {
        self.interrupt();
        // A call that was retracted before for another reason is not in the list. Most are the last
        // one.
        if let Some(at) = self.calls.iter().rposition(|call| *call == index) {
            self.calls.remove(at);
            self.sink.emit(
                self.choice,
                Retract {
                    index: Some(index),
                    tool_id: None,
                    reason: reason.into(),
                },
            );
        }
    }

    fn warning(&mut self, code: &'static str, message: &str, raw: &str) {
        self.interrupt();
        let shown = cut(raw, SHOWN);
        if !self.warned.is_empty() && self.warned.contains(&warning_key(code, shown)) {
            return;
        }
        let raw_bytes = (shown.len() < raw.len()).then_some(raw.len() as u64);
        let raw = Some(shown)
            .filter(|shown| !shown.is_empty())
            .map(Into::into);
        self.sink.emit(
            self.choice,
            Warning {
                raw,
                raw_bytes,
                ..Warning::new(SOURCE, code, message)
            },
        );
    }
}
