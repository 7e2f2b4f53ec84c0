//! What is not settled yet: the beginning of a message that its prompt may have put inside reasoning, and calls that a marker for
//! the end of reasoning would take back.

use super::{Mode, Parser, WINDOW};
use crate::calls::End;
use crate::dialect::Prefilled;
use crate::outlet::{Outlet, Piece};
use json::Balance;

/// The beginning of a message, held until it is clear whether it is reasoning or the answer.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// In the order of the text.
    items: Vec<Held>,
    /// How much text the items are, in bytes.
    pub size: usize,
}

#[derive(Debug)]
enum Held {
    /// Text of the answer, unless it is reasoning.
    Text(String),
    /// The text of a call.
    LeftOut(String),
    Call {
        index: i64,
        id: Option<String>,
        name: Option<String>,
        arguments: Option<String>,
        done: bool,
    },
    Retract(i64, &'static str),
    Warning(&'static str, String, String),
}

impl Head {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn has_calls(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Held::Call { .. }))
    }

    fn text(&mut self, text: &str) {
        self.size += text.len();
        match self.items.last_mut() {
            Some(Held::Text(last)) => last.push_str(text),
            _ => self.items.push(Held::Text(text.to_owned())),
        }
    }
}

/// The arguments of a call that may be taken back: all but the bytes from the one that closes them.
#[derive(Debug, Default)]
pub(super) struct Gate {
    balance: Balance,
    closed: bool,
    pub tail: String,
}

impl Gate {
    /// Whether the arguments have ended.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The part of this piece that may be written now. `end`: what the engine knows of where the arguments end, which is not
    /// looked for again.
    pub fn pass<'t>(&mut self, text: &'t str, end: End) -> &'t str {
        if self.closed {
            self.tail.push_str(text);
            return "";
        }
        // A bracket or a quotation mark closes them.
        let last = match end {
            End::Later => None,
            End::Here => text.rfind(['}', ']', '"']),
            End::Unknown => self.balance.push(text.as_bytes()).map(|end| end - 1),
        };
        let Some(last) = last else { return text };
        let (now, tail) = text.split_at(last);
        self.closed = true;
        self.tail.push_str(tail);
        now
    }
}

impl Parser {
    /// Text of the answer, unless it may still turn out to be reasoning.
    pub(crate) fn say(&mut self, text: &str, out: &mut dyn Outlet) {
        if text.is_empty() {
            return;
        }
        let Some(head) = &mut self.head else { return out.content(text) };
        head.text(text);
        if head.size > WINDOW {
            let reasoning = self.look.prefilled == Prefilled::Usually && !head.has_calls();
            self.decide(reasoning, out);
            if reasoning {
                self.mode = Mode::Reasoning;
            }
        }
    }

    /// Text of a call that was read.
    pub(super) fn leave_out(&mut self, text: &str, out: &mut dyn Outlet) {
        let Some(head) = &mut self.head else { return out.left_out(text) };
        head.size += text.len();
        head.items.push(Held::LeftOut(text.to_owned()));
        self.limit(0, out);
    }

    /// A piece of a call.
    pub(super) fn emit(&mut self, piece: Piece<'_>, out: &mut dyn Outlet) {
        let Some(head) = &mut self.head else { return out.call(piece) };
        let Piece { index, id, name, arguments, done } = piece;
        let [id, name, arguments] = [id, name, arguments].map(|text| text.map(str::to_owned));
        head.items.push(Held::Call { index, id, name, arguments, done });
    }

    pub(super) fn retract(&mut self, index: i64, reason: &'static str, out: &mut dyn Outlet) {
        match &mut self.head {
            Some(head) => head.items.push(Held::Retract(index, reason)),
            None => out.retract(index, reason),
        }
    }

    pub(super) fn warn(&mut self, code: &'static str, message: &str, raw: &str, out: &mut dyn Outlet) {
        match &mut self.head {
            Some(head) => head.items.push(Held::Warning(code, message.to_owned(), raw.to_owned())),
            None => out.warning(code, message, raw),
        }
    }

    /// A call of which `more` bytes have been read is held no longer than any other text.
    pub(super) fn limit(&mut self, more: usize, out: &mut dyn Outlet) {
        if self.head.as_ref().is_some_and(|head| head.size + more > WINDOW) {
            self.decide(false, out);
        }
    }

    /// What was held of the beginning is reasoning, or the answer. The calls in reasoning were only rehearsed.
    pub(crate) fn decide(&mut self, reasoning: bool, out: &mut dyn Outlet) {
        let Some(head) = self.head.take() else { return };
        if reasoning {
            (self.begun, self.open) = (0, false);
            self.waiting.clear();
        }
        for item in head.items {
            match item {
                Held::Text(text) | Held::LeftOut(text) if reasoning => out.reasoning(&text),
                _ if reasoning => {}
                Held::Text(text) => out.content(&text),
                Held::LeftOut(text) => out.left_out(&text),
                Held::Retract(index, reason) => out.retract(index, reason),
                Held::Warning(code, message, raw) => out.warning(code, &message, &raw),
                Held::Call { index, id, name, arguments, done } => out.call(Piece {
                    index,
                    id: id.as_deref(),
                    name: name.as_deref(),
                    arguments: arguments.as_deref(),
                    done,
                }),
            }
        }
    }

    /// Whether the end of reasoning may still come behind the call that begins now, and take it back.
    pub(super) fn may_be_rehearsed(&self) -> bool {
        self.thought.is_some() || (self.unknown && self.look.prefilled != Prefilled::No)
    }

    /// The calls that waited for the end of the text hold.
    pub(super) fn release(&mut self, out: &mut dyn Outlet) {
        for (index, tail) in std::mem::take(&mut self.waiting) {
            let arguments = Some(&tail[..]).filter(|tail| !tail.is_empty());
            self.emit(Piece { index, arguments, done: true, ..Piece::default() }, out);
        }
    }

    /// The text was cut while they waited: nobody can tell whether they were meant.
    pub(super) fn give_up(&mut self, out: &mut dyn Outlet) {
        if self.waiting.is_empty() {
            return;
        }
        for (index, _) in std::mem::take(&mut self.waiting).into_iter().rev() {
            self.retract(index, "reasoning", out);
        }
        self.warn(
            "late_reasoning",
            "the stream was cut while its calls could still be part of reasoning; if the prompt opens no reasoning, pass --prefill ''",
            "",
            out,
        );
    }

    /// Calls that were begun before it was clear that all of it was reasoning.
    pub(super) fn rehearsed(&mut self, out: &mut dyn Outlet) {
        let from = self.thought.take().unwrap_or(0);
        self.waiting.retain(|(index, _)| *index < from);
        (from..self.begun).rev().for_each(|index| out.retract(index, "reasoning"));
        out.warning(
            "late_reasoning",
            "the text before this point was reasoning, and its calls do not count; if the prompt opens the reasoning, pass --prefill '<think>'",
            "",
        );
    }

    /// The provider sent calls of its own: those of the text are taken back by whoever knows that.
    pub fn forget(&mut self) {
        self.waiting.clear();
    }
}
