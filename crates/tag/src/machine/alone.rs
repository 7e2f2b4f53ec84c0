//! Handles calls in forms that also occur in prose, of a model that is not known to use one of
//! these forms.
//!
//! Such a call counts only if it is alone: only white space and reasoning are next to it, the call
//! names a tool of the request, and its arguments fit the tool's schema. This is certain only at
//! the end of the text, so two parsers read the text in parallel: one parses all forms; the other
//! one, called the certain parser here, parses only the forms with markers that do not occur in
//! prose. As soon as the parser of all forms finds other text, the findings of the certain parser
//! count.

use crate::outlet::{CallPiece, Outlet};
use crate::parser::{Backlog, Parser};
use json::ToolList;
use std::rc::Rc;

/// The reason for treating a call in such a form as text.
const WHY: &str = "not a call: prose can have this form, too, and the arguments do not fit the \
    tool, or the text was cut";

/// The parser of all forms, and the findings of both parsers so far; see the module.
#[derive(Debug)]
pub(super) struct AloneReading {
    parser: Parser,
    tools: Option<Rc<ToolList>>,
    found: AloneFound,
    /// The findings of the certain parser.
    certain: Backlog,
}

#[derive(Debug, Default)]
struct AloneFound {
    kept: Backlog,
    calls: Vec<WholeCall>,
    /// Whether there is text next to the calls, or a call was retracted.
    is_text: bool,
}

#[derive(Debug, Default)]
struct WholeCall {
    name: String,
    arguments: String,
    is_done: bool,
}

impl AloneReading {
    /// Creates a reading before the first text, with a parser of all forms.
    pub(super) fn new(parser: Parser, tools: Option<Rc<ToolList>>) -> AloneReading {
        AloneReading {
            parser,
            tools,
            found: AloneFound::default(),
            certain: Backlog::default(),
        }
    }

    /// Reads the next piece of the text with both parsers. Returns `true` while it is undecided
    /// whose findings count; otherwise `out` has received all findings of the `certain` parser.
    pub(super) fn push(&mut self, text: &str, certain: &mut Parser, out: &mut dyn Outlet) -> bool {
        self.parser.push(text, &mut self.found);
        certain.push(text, &mut self.certain);
        if self.found.is_text || self.certain.has_calls() {
            std::mem::take(&mut self.certain).replay(out);
            return false;
        }
        if self.found.calls.is_empty() && self.certain.is_reasoning() {
            // Both parsers have found the same so far.
            std::mem::take(&mut self.certain).replay(out);
            self.found.kept = Backlog::default();
        }
        true
    }

    /// Like [`Parser::begin_in_answer`].
    pub(super) fn begin_in_answer(&mut self) {
        self.parser.begin_in_answer();
    }

    /// Handles another event, after which the findings of the certain parser count.
    pub(super) fn give_up(self, out: &mut dyn Outlet) {
        self.certain.replay(out);
    }

    /// Ends the text. `cut` means that the text was cut off.
    pub(super) fn finish(mut self, cut: bool, certain: &mut Parser, out: &mut dyn Outlet) {
        self.parser.finish(cut, &mut self.found);
        certain.finish(cut, &mut self.certain);
        let AloneFound {
            kept,
            calls,
            is_text,
        } = self.found;
        if is_text || calls.is_empty() || self.certain.has_calls() {
            return self.certain.replay(out);
        }
        let tools = self.tools.as_deref();
        let fits = |call: &WholeCall| {
            let fits = |tools: &ToolList| {
                tools.knows(&call.name) && tools.check(&call.name, &call.arguments).is_ok()
            };
            call.is_done && tools.is_some_and(fits)
        };
        if !cut && calls.iter().all(fits) {
            return kept.replay(out);
        }
        out.warning("tag_unparsed", WHY, "");
        self.certain.replay(out);
    }
}

impl Outlet for AloneFound {
    fn content(&mut self, text: &str) {
        self.is_text |= !text.trim_ascii().is_empty();
        self.kept.content(text);
    }

    fn reasoning(&mut self, text: &str) {
        self.kept.reasoning(text);
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        if let Some(name) = piece.name {
            self.calls.push(WholeCall {
                name: name.to_owned(),
                ..WholeCall::default()
            });
        }
        if let Some(call) = usize::try_from(piece.index)
            .ok()
            .and_then(|at| self.calls.get_mut(at))
        {
            call.arguments.push_str(piece.arguments.unwrap_or_default());
            call.is_done |= piece.done;
        }
        self.kept.call(piece);
    }

    fn retract(&mut self, index: i64, reason: &'static str) {
        self.is_text = true;
        self.kept.retract(index, reason);
    }

    fn warning(&mut self, code: &'static str, message: &str, raw: &str) {
        self.kept.warning(code, message, raw);
    }

    fn left_out(&mut self, text: &str) {
        self.kept.left_out(text);
    }
}
