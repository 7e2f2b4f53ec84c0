//! Detects calls that stay text although an option would parse them.
//!
//! A parser of all forms reads the text in parallel with the parser whose findings count. If only
//! the former finds a call of a listed tool, a warning names the option.

use crate::dialect::Dialect;
use crate::look::Look;
use crate::outlet::{CallPiece, Outlet};
use crate::parser::Parser;

/// The code of the warning.
pub(super) const UNREAD: &str = "tag_unread";

/// How much text is searched for such calls, in bytes, if it contains a possible beginning of a
/// call. The text is forwarded to the reader meanwhile, so nothing else limits what the parser
/// stores.
const MOST: usize = 1 << 20;

/// The parser of all forms, and the calls that it has found; see the module.
#[derive(Debug)]
pub(super) struct LeftoverReading {
    parser: Parser,
    found: LeftoverFound,
    /// How many bytes of text the parser has received.
    read: usize,
    /// The first complete call: its tool, and the dialect of its form.
    first: Option<(String, &'static Dialect)>,
}

#[derive(Debug, Default)]
struct LeftoverFound {
    /// The tools' names in the order of the calls.
    names: Vec<String>,
    /// The index of the first complete call.
    complete: Option<usize>,
}

impl LeftoverReading {
    /// Creates a reading before the first text, with a parser of all forms.
    pub(super) fn new(parser: Parser) -> LeftoverReading {
        LeftoverReading {
            parser,
            found: LeftoverFound::default(),
            read: 0,
            first: None,
        }
    }

    /// Whether no part of the text can begin a marker; see [`Parser::passes`].
    pub(super) fn passes(&mut self, text: &str) -> bool {
        self.first.is_some() || self.parser.passes(text)
    }

    /// Reads the next piece of the text. Returns whether the reading continues.
    pub(super) fn push(&mut self, text: &str) -> bool {
        if self.first.is_none() {
            self.read += text.len();
            self.parser.push(text, &mut self.found);
            self.look();
        }
        self.first.is_some() || self.read < MOST
    }

    /// Like [`Parser::begin_in_answer`].
    pub(super) fn begin_in_answer(&mut self) {
        self.parser.begin_in_answer();
    }

    /// Like [`Parser::interrupt`].
    pub(super) fn interrupt(&mut self) {
        if self.first.is_none() {
            self.parser.interrupt(&mut self.found);
        }
    }

    /// Ends the text, in which the parser that counts found no call. Returns a warning if there is
    /// a call in a form that `read` does not search for. `is_native` means that the model was asked
    /// for native calls.
    pub(super) fn finish(mut self, cut: bool, read: &Look, is_native: bool) -> Option<String> {
        if self.first.is_none() {
            self.parser.finish(cut, &mut self.found);
            self.look();
        }
        let (tool, dialect) = self.first?;
        if read.reads_all_of(dialect) {
            return None;
        }
        let mut remedy = format!("--dialect {}", dialect.name);
        if is_native {
            remedy += " (or --tools-mode tag)";
        }
        Some(format!(
            "{remedy} would read the call of \"{tool}\" that has stayed text"
        ))
    }

    fn look(&mut self) {
        let name = self.found.complete.and_then(|at| self.found.names.get(at));
        self.first = name.and_then(|name| Some((name.clone(), self.parser.dialect()?)));
    }
}

impl Outlet for LeftoverFound {
    fn content(&mut self, _text: &str) {}

    fn reasoning(&mut self, _text: &str) {}

    fn call(&mut self, piece: CallPiece<'_>) {
        self.names.extend(piece.name.map(str::to_owned));
        if piece.done {
            self.complete = self.complete.or(usize::try_from(piece.index).ok());
        }
    }

    fn retract(&mut self, index: i64, _reason: &'static str) {
        self.complete = self.complete.filter(|at| usize::try_from(index) != Ok(*at));
    }

    fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
}
