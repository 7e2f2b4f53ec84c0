//! Removes white space that frames a message and is not part of its text: templates write line
//! breaks around calls and reasoning.
//!
//! White space that is alone between two markers, calls or ends of the text is dropped. So are the
//! line breaks at both ends of reasoning and those between reasoning and the answer. All other
//! white space is text.

use crate::outlet::{CallPiece, Outlet, Prose};

/// The maximum white space that is held back, in bytes. Longer white space is text.
const GAP: usize = 256;

/// What comes before the next byte of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Edge {
    /// Nothing: the next byte is the first.
    #[default]
    Start,
    /// A marker or a call.
    Marker,
    /// The end of reasoning.
    ReasoningEnd,
    /// Text of the same kind.
    Text,
}

/// The white space of one choice that may be framing; see the module.
#[derive(Debug, Default)]
pub(super) struct FramingSpace {
    edge: Edge,
    held: String,
    /// The length of the white space at the end of the text, emitted or held back.
    run: usize,
    /// Whether the text before the next byte, and `held`, are reasoning.
    is_reasoning: bool,
}

impl FramingSpace {
    /// Whether text of the answer is emitted as it arrives.
    pub(super) fn is_in_answer(&self) -> bool {
        self.edge == Edge::Text && !self.is_reasoning
    }

    /// Decides about the held-back white space, because another event arrives or the text has
    /// ended.
    pub(super) fn interrupt(&mut self, out: &mut dyn Outlet) {
        if matches!(self.edge, Edge::Start | Edge::Text) {
            self.release(out)
        } else {
            self.leave_out(out)
        }
    }

    fn release(&mut self, out: &mut dyn Outlet) {
        if !self.held.is_empty() {
            emit(self.is_reasoning, &self.held, out);
            self.held.clear();
        }
    }

    fn leave_out(&mut self, out: &mut dyn Outlet) {
        self.run = 0;
        if !self.held.is_empty() {
            out.left_out(&self.held);
            self.held.clear();
        }
    }

    /// Reads white space, which is held back while it may be framing.
    fn hold(&mut self, space: &str, out: &mut dyn Outlet) {
        self.run += space.len();
        self.held.push_str(space);
        if self.run > GAP {
            self.release(out);
            self.edge = Edge::Text;
        }
    }

    /// Handles a marker or a call.
    fn frame(&mut self, out: &mut dyn Outlet) {
        self.leave_out(out);
        if self.edge != Edge::ReasoningEnd {
            self.edge = Edge::Marker;
        }
    }

    fn text(&mut self, text: &str, prose: Prose, out: &mut dyn Outlet) {
        let is_reasoning = prose == Prose::Reasoning;
        if is_reasoning != self.is_reasoning {
            if self.edge == Edge::Text {
                self.edge = Edge::Marker;
            }
            // White space held back at the beginning of the message is also the beginning of this
            // text.
            if self.edge != Edge::Start {
                self.leave_out(out);
            }
            self.is_reasoning = is_reasoning;
        }
        let is_trimmed = is_reasoning || self.edge == Edge::ReasoningEnd;
        if self.edge == Edge::Text && !is_reasoning
            || self.held.is_empty() && !is_trimmed && !starts_with_space(text)
        {
            self.edge = Edge::Text;
            return emit(is_reasoning, text, out);
        }
        let body = text.trim_ascii_start();
        self.hold(&text[..text.len() - body.len()], out);
        if body.is_empty() {
            return;
        }
        if self.edge != Edge::Text && is_trimmed {
            // The rest of the last line may be an indentation.
            let rest = self
                .held
                .split_off(self.held.rfind('\n').map_or(0, |at| at + 1));
            self.leave_out(out);
            self.held = rest;
        }
        (self.edge, self.run) = (Edge::Text, 0);
        let (now, later) = body.split_at(if is_reasoning {
            body.trim_ascii_end().len()
        } else {
            body.len()
        });
        if self.held.is_empty() {
            emit(is_reasoning, now, out);
        } else {
            self.held.push_str(now);
            self.release(out);
        }
        self.hold(later, out);
    }
}

fn starts_with_space(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_whitespace())
}

fn emit(is_reasoning: bool, text: &str, out: &mut dyn Outlet) {
    if is_reasoning {
        out.reasoning(text)
    } else {
        out.content(text)
    }
}

/// An outlet that drops white space that frames a message.
pub(super) struct Framed<'f> {
    /// The white space that is held back.
    pub framing: &'f mut FramingSpace,
    /// Receives everything else.
    pub out: &'f mut dyn Outlet,
}

impl Outlet for Framed<'_> {
    fn content(&mut self, text: &str) {
        self.framing.text(text, Prose::Answer, self.out);
    }

    fn reasoning(&mut self, text: &str) {
        self.framing.text(text, Prose::Reasoning, self.out);
    }

    fn reasoning_ended(&mut self) {
        self.framing.leave_out(self.out);
        self.framing.edge = Edge::ReasoningEnd;
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        self.framing.leave_out(self.out);
        self.framing.edge = Edge::Marker;
        self.out.call(piece);
    }

    fn retract(&mut self, index: i64, reason: &'static str) {
        self.out.retract(index, reason);
    }

    fn warning(&mut self, code: &'static str, message: &str, raw: &str) {
        self.out.warning(code, message, raw);
    }

    fn left_out(&mut self, text: &str) {
        if !text.is_empty() {
            self.framing.frame(self.out);
            self.out.left_out(text);
        }
    }
}
