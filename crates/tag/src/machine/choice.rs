//! One choice of a stream whose text is parsed.

use crate::look::Look;
use crate::machine::alone::AloneReading;
use crate::machine::leftover::{LeftoverReading, UNREAD};
use crate::outlet::{CallPiece, DROPPED, Outlet};
use crate::parser::Parser;
use event::payload::{ContentDelta, Retract, RetractReason, Thinking, ToolCallDelta, Warning};
use event::{Sink, Text, cut};
use std::collections::HashSet;

/// A choice and its parser.
#[derive(Debug)]
pub(super) struct TagChoice {
    number: u32,
    parser: Parser,
    /// The reading that counts if calls are alone; `None` if that is impossible.
    alone: Option<Box<AloneReading>>,
    /// The reading that finds calls which stay text; `None` if they do not deserve a warning.
    leftover: Option<Box<LeftoverReading>>,
    /// Whether the provider sent native calls, so that all text is text.
    pub is_native: bool,
    /// Whether the choice's parser has received text since the last event that interrupted all
    /// choices.
    pub has_text: bool,
    /// The indexes of the calls that were emitted and not retracted.
    calls: Vec<i64>,
}

impl TagChoice {
    /// Creates a choice with this number, before its first text.
    pub(super) fn new(
        number: u32,
        parser: Parser,
        alone: Option<AloneReading>,
        leftover: Option<LeftoverReading>,
    ) -> TagChoice {
        TagChoice {
            number,
            parser,
            alone: alone.map(Box::new),
            leftover: leftover.map(Box::new),
            is_native: false,
            has_text: false,
            calls: Vec::new(),
        }
    }

    /// Reads the next piece of the text. Forwards the line unchanged if the parser finds only this
    /// text.
    #[inline]
    pub(super) fn text(&mut self, text: &str, warned: &HashSet<String>, sink: &mut dyn Sink) {
        if self.is_native || text.is_empty() {
            return sink.pass();
        }
        if let Some(leftover) = &mut self.leftover
            && !leftover.passes(text)
            && !leftover.push(text)
        {
            self.leftover = None;
        }
        if self.alone.is_none() && self.parser.passes(text) {
            return sink.pass();
        }
        let mut events = Events::new(sink, self.number, &mut self.calls, warned);
        match self.alone.take() {
            Some(mut alone) => {
                let is_open = alone.push(text, &mut self.parser, &mut events);
                self.alone = Some(alone).filter(|_| is_open);
            }
            None => self.parser.push(text, &mut events),
        }
        if events.is_only(text) {
            return sink.pass();
        }
        events.flush();
    }

    /// Handles reasoning that arrived in its own events before the text, so that the text is the
    /// answer.
    pub(super) fn begin_in_answer(&mut self) {
        if let Some(alone) = &mut self.alone {
            alone.begin_in_answer();
        }
        if let Some(leftover) = &mut self.leftover {
            leftover.begin_in_answer();
        }
        self.parser.begin_in_answer();
    }

    /// Handles another event: text that is held back precedes the event.
    pub(super) fn interrupt(&mut self, warned: &HashSet<String>, sink: &mut dyn Sink) {
        let alone = self.alone.take();
        if let Some(leftover) = &mut self.leftover {
            leftover.interrupt();
        }
        self.emit(warned, sink, |parser, events| {
            if let Some(alone) = alone {
                alone.give_up(events);
            }
            parser.interrupt(events);
        });
    }

    /// Handles a native call, which takes precedence over its copy in the text. The text's calls
    /// are retracted before the native call is emitted, because it may use their indexes, and later
    /// text is not parsed.
    pub(super) fn begin_native(&mut self, warned: &HashSet<String>, sink: &mut dyn Sink) {
        if std::mem::replace(&mut self.is_native, true) {
            return;
        }
        let alone = self.alone.take();
        self.leftover = None;
        self.emit(warned, sink, |parser, events| {
            if let Some(alone) = alone {
                alone.give_up(events);
            }
            parser.begin_native(events);
        });
        if self.calls.is_empty() {
            return;
        }
        for index in self.calls.drain(..) {
            sink.emit(
                self.number,
                Retract {
                    index: Some(index),
                    tool_id: None,
                    reason: RetractReason::NativeCall.name().into(),
                },
            );
        }
        let message = "dropped the calls in the text before this point, since the provider sends native calls";
        Events::new(sink, self.number, &mut self.calls, warned).warning(DROPPED, message, "");
    }

    /// Ends the text. `cut` means that the text was cut off. Returns a warning if a call stayed
    /// text because `read` does not search for its form; otherwise `None`.
    pub(super) fn finish(
        &mut self,
        cut: bool,
        read: &Look,
        is_tag: bool,
        warned: &HashSet<String>,
        sink: &mut dyn Sink,
    ) -> Option<String> {
        let alone = self.alone.take();
        // If the calls were alone to the end, they count or have a warning of their own.
        let leftover = self.leftover.take().filter(|_| alone.is_none());
        self.emit(warned, sink, |parser, events| match alone {
            Some(alone) => alone.finish(cut, parser, events),
            None => parser.finish(cut, events),
        });
        let leftover = leftover.filter(|_| self.calls.is_empty())?;
        leftover.finish(cut, read, !is_tag)
    }

    /// Warns about a call that stayed text.
    pub(super) fn warn_unread(
        &mut self,
        what: &str,
        warned: &HashSet<String>,
        sink: &mut dyn Sink,
    ) {
        Events::new(sink, self.number, &mut self.calls, warned).warning(UNREAD, what, "");
    }

    fn emit(
        &mut self,
        warned: &HashSet<String>,
        sink: &mut dyn Sink,
        feed: impl FnOnce(&mut Parser, &mut Events<'_>),
    ) {
        let mut events = Events::new(sink, self.number, &mut self.calls, warned);
        feed(&mut self.parser, &mut events);
        events.flush();
    }
}

// Converts a parser's output to events.

/// The name of the command in the warnings it emits.
pub(super) const SOURCE: &str = "tag-parse";
/// The maximum length of the text in a warning, in bytes.
const SHOWN: usize = 64 * 1024;

/// The outlet of one choice while its parser reads one piece of text. Consecutive texts become one
/// event.
pub(super) struct Events<'e> {
    sink: &'e mut dyn Sink,
    choice: u32,
    /// The indexes of the calls that were emitted and not retracted.
    calls: &'e mut Vec<i64>,
    /// The warnings that the input already contained, as returned by [`warning_key`].
    warned: &'e HashSet<String>,
    /// Text that was not emitted yet.
    text: String,
    /// Whether `text` is reasoning.
    is_reasoning: bool,
    /// Whether an event was emitted.
    has_emitted: bool,
}

/// Returns the identity of a warning.
pub(super) fn warning_key(code: &str, raw: &str) -> String {
    format!("{code} {raw}")
}

impl<'e> Events<'e> {
    pub(super) fn new(
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

    /// Whether this text of the answer is the only finding.
    pub(super) fn is_only(&self, text: &str) -> bool {
        !self.has_emitted && !self.is_reasoning && self.text == text
    }

    /// Emits the remaining text.
    pub(super) fn flush(&mut self) {
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

    /// Prepares for an event that is not text.
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
        // A call that was already retracted for another reason is not in the list. Usually the call
        // is the last one.
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
