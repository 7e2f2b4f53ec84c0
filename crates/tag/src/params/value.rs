//! One value. It is emitted as it comes where it can only be a string, and held back until its end
//! where its type depends on it.

use super::head::TypeHint;
use crate::calls::FoundCalls;
use crate::dialect::params::{ParamForm, Style, Trim};
use crate::tree;
use event::Raw;
use json::{Conversion, JsonType, ValueType};

const MISFIT: &str = "a value is not of the type that its parameter asks for and stays a string";

/// One value being read.
#[derive(Debug)]
pub(super) struct ParamValue {
    form: &'static ParamForm,
    hint: TypeHint,
    /// It is a string and is emitted as it comes.
    is_streaming: bool,
    /// A line end that is taken off if the value ends with it.
    pending: String,
    /// The text that is held back.
    held: String,
    /// The place at which the value may have ended: the length of `held` there, and `pending`.
    mark: Option<(usize, String)>,
    scratch: Vec<u8>,
}

impl ParamValue {
    /// The value of a parameter with this hint and this schema.
    pub fn new(
        form: &'static ParamForm,
        hint: TypeHint,
        typed: &ValueType<'_>,
        calls: &mut FoundCalls,
    ) -> ParamValue {
        let is_streaming = match hint {
            TypeHint::String => true,
            TypeHint::Json => false,
            TypeHint::Unknown => typed.only_string(),
        };
        if is_streaming {
            calls.arguments("\"");
        }
        ParamValue {
            form,
            hint,
            is_streaming,
            pending: String::new(),
            held: String::new(),
            mark: None,
            scratch: Vec::new(),
        }
    }

    /// Whether the value is emitted as it comes: its entities and CDATA sections must be replaced
    /// before.
    pub fn is_streaming(&self) -> bool {
        self.is_streaming
    }

    /// The next piece of its text.
    pub fn text(&mut self, piece: &str, calls: &mut FoundCalls) {
        if piece.is_empty() {
            return;
        }
        if self.pending == "\r" && piece == "\n" {
            self.pending.push('\n');
            return;
        }
        let kept = match self.form.trim {
            Trim::None => piece,
            Trim::OneNewline => {
                let kept = piece.strip_suffix('\n').unwrap_or(piece);
                kept.strip_suffix('\r').unwrap_or(kept)
            }
        };
        self.keep_pending(calls);
        self.emit(kept, calls);
        self.pending.push_str(&piece[kept.len()..]);
    }

    /// The next piece of a CDATA section, of which nothing is taken off.
    pub fn data(&mut self, piece: &str, calls: &mut FoundCalls) {
        self.keep_pending(calls);
        self.emit(piece, calls);
    }

    fn keep_pending(&mut self, calls: &mut FoundCalls) {
        if !self.pending.is_empty() {
            let mut pending = std::mem::take(&mut self.pending);
            self.emit(&pending, calls);
            pending.clear();
            self.pending = pending;
        }
    }

    fn emit(&mut self, piece: &str, calls: &mut FoundCalls) {
        if !self.is_streaming || self.mark.is_some() {
            self.held.push_str(piece);
        } else if !piece.is_empty() {
            self.scratch.clear();
            event::push_string(&mut self.scratch, piece);
            let inner = self
                .scratch
                .get(1..self.scratch.len() - 1)
                .unwrap_or_default();
            calls.arguments(std::str::from_utf8(inner).unwrap_or_default());
        }
    }

    /// The value may have ended here: what follows is held back.
    pub fn suspend(&mut self) {
        self.mark
            .get_or_insert_with(|| (self.held.len(), self.pending.clone()));
    }

    /// Whether the value may have ended.
    pub fn is_suspended(&self) -> bool {
        self.mark.is_some()
    }

    /// The value had not ended.
    pub fn resume(&mut self, calls: &mut FoundCalls) {
        if self.mark.take().is_some() && self.is_streaming {
            let held = std::mem::take(&mut self.held);
            self.emit(&held, calls);
        }
    }

    /// The value had ended.
    pub fn cut(&mut self) {
        if let Some((length, pending)) = self.mark.take() {
            self.held.truncate(length);
            self.pending = pending;
        }
    }

    /// The value is complete.
    pub fn end(mut self, typed: &ValueType<'_>, calls: &mut FoundCalls) {
        if self.pending == "\r" {
            self.keep_pending(calls);
        }
        if self.is_streaming {
            calls.arguments("\"");
        } else if self.convert(typed, &mut calls.text) == Conversion::Misfit {
            calls.wrote();
            calls.note(MISFIT);
        } else {
            calls.wrote();
        }
    }

    fn convert(&self, typed: &ValueType<'_>, out: &mut String) -> Conversion {
        // A value that may be a string keeps its bytes, with the tags.
        if let Style::Element { prefix } = self.form.style
            && !typed.allows(JsonType::String)
            && let Some(converted) = tree::convert(&self.held, prefix, typed, self.form, out)
        {
            return converted;
        }
        let text = self.form.plain(&self.held);
        if self.hint == TypeHint::Json {
            let bare = text.trim_ascii();
            if Raw::parse(bare).is_ok() {
                out.push_str(bare);
                return Conversion::Fits;
            }
            if !typed.is_known() {
                out.push_str(&event::quoted(&text));
                return Conversion::Misfit;
            }
        }
        typed.convert(&text, out)
    }
}
