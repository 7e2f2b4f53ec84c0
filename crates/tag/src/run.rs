//! A run: one form of a dialect reads text, part by part.
//!
//! A run begins at a marker that opens a section or a call, and reads text until the calls have
//! ended or the text is certain not to be a call. It reports calls to [`FoundCalls`]; the parser
//! decides whether and when they are emitted.

mod part;
mod section;

use crate::calls::{Context, FoundCalls, ReadStep, Why};
use crate::dialect::{Form, KnownTool, first};
use crate::envelope::Envelope;
use crate::expression::Expression;
use crate::free::Free;
use crate::mark::{Match, find_in};
use crate::params::Params;
use json::{Balance, ToolList};

/// The maximum length of a start tag, a name or white space inside a call, in bytes.
const LONGEST: usize = 4096;
/// The maximum white space between two calls or before a closing marker, in bytes.
const GAP: usize = 256;

/// The position of the next byte in the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormPlace {
    /// At the marker that opens the section, or at a call outside a section.
    Open,
    /// In the section, before a call.
    Inside,
    /// In text that is not a call, after the marker that opens the section.
    Noise,
    /// After the section's opening marker and other text, at a call that a new run reads.
    Over,
    /// In the part of a call with this index.
    Part(usize),
    /// After a complete call, before the optional closing markers that begin at this part.
    Tail(usize),
    /// After a call.
    Between,
    /// After the end of the section.
    Closed,
}

/// The engine of the current part.
#[derive(Debug)]
enum Engine {
    None,
    /// The arguments as JSON; `None` before they begin.
    Json(Option<Balance>),
    Envelope(Box<Envelope>),
    Params(Box<Params>),
    Expression(Box<Expression>),
    Free(Box<Free>),
}

/// A form that is reading text.
#[derive(Debug)]
pub(crate) struct Run {
    form: &'static Form,
    place: FormPlace,
    engine: Engine,
    /// The tool's name, for parts that need its schema.
    name: String,
    /// The call's id, if the id precedes the name.
    id: String,
    /// An id without a name, and the arguments so far, which determine the tool.
    nameless: Option<(String, String)>,
    /// Whether the call was reported to [`FoundCalls`].
    has_begun: bool,
    /// Whether the section's opening marker was read.
    in_section: bool,
    /// The number of complete calls.
    whole: usize,
    /// The first part that may still follow the last complete call.
    tail: usize,
    /// How many bytes of white space, or of text before the first call, were read at this position.
    waited: usize,
    /// Whether an argument was read, so that its text must not be parsed in another way.
    is_deep: bool,
    /// Whether no more text follows.
    is_last: bool,
}

impl Run {
    /// Creates a run at the marker that the form begins with.
    pub(crate) fn new(form: &'static Form) -> Run {
        Run {
            form,
            place: FormPlace::Open,
            engine: Engine::None,
            name: String::new(),
            id: String::new(),
            nameless: None,
            has_begun: false,
            in_section: false,
            whole: 0,
            tail: 0,
            waited: 0,
            is_deep: false,
            is_last: false,
        }
    }

    /// Creates a run for a call whose name was given by the text before it.
    pub(crate) fn named(form: &'static Form, name: &str, calls: &mut FoundCalls) -> Run {
        let mut run = Run::new(form);
        name.clone_into(&mut run.name);
        calls.begin(name, None);
        run.has_begun = true;
        run.place = FormPlace::Part(form.body().unwrap_or(0));
        run
    }

    /// Returns the form that is read.
    pub(crate) fn form(&self) -> &'static Form {
        self.form
    }

    /// Whether only names and markers were read so far, so that the text can be parsed in another
    /// way.
    pub(crate) fn is_shallow(&self) -> bool {
        !self.has_begun
            && !self.is_deep
            && !matches!(&self.engine, Engine::Envelope(e) if e.is_deep())
    }

    /// Whether the run has not read a call so far.
    pub(crate) fn is_without_calls(&self) -> bool {
        self.whole == 0
    }

    /// Whether only markers were read since the last call.
    pub(crate) fn is_bare(&self) -> bool {
        let is_inside = match self.place {
            FormPlace::Inside => true,
            FormPlace::Part(n) => n > 0 || self.in_section,
            _ => false,
        };
        is_inside && !self.has_begun && matches!(self.engine, Engine::None)
    }

    /// Whether the section begins with text that is not a call.
    pub(crate) fn is_noise(&self) -> bool {
        matches!(self.place, FormPlace::Noise | FormPlace::Over)
    }

    /// Whether a failure deserves a warning because the text looks like a call: the tool is listed
    /// and the call has begun or has members that do not belong to a call, or the call has an
    /// opening marker that does not occur in ordinary text.
    pub(crate) fn is_marked(&self, why: Option<Why>) -> bool {
        let marked = self.in_section || !first(self.form.call).is_empty();
        let past = self.in_section
            || why.is_some_and(Why::is_about_name)
            || !matches!(self.place, FormPlace::Open | FormPlace::Part(0));
        let names_tool = why == Some(Why::OtherMembers)
            && matches!(&self.engine, Engine::Envelope(e) if e.has_name());
        self.has_begun
            || names_tool
            || (self.form.needs == KnownTool::Listed && marked && past && why != Some(Why::NoCall))
    }

    /// Returns the request's data that the engines of this form need.
    pub(crate) fn context<'a>(form: &Form, tools: Option<&'a ToolList>) -> Context<'a> {
        Context {
            tools,
            strict: form.needs == KnownTool::Known,
        }
    }

    /// Finds the longest of the markers at the beginning of `text`.
    fn find(&self, marks: &[&str], text: &str) -> Match {
        find_in(marks, text, self.is_last)
    }

    /// Counts `at` more bytes of white space. If the total exceeds `most`, returns the failure at
    /// the first byte beyond `most`; otherwise `None`.
    fn gap(&mut self, at: usize, most: usize) -> Option<ReadStep> {
        let room = most.saturating_sub(self.waited);
        self.waited += at;
        (at > room).then_some(ReadStep::Fail(room + 1, Why::LongGap))
    }

    /// Marks the current call as complete.
    fn whole(&mut self, calls: &mut FoundCalls) {
        if self.has_begun {
            calls.done();
            self.whole += 1;
        }
        (self.has_begun, self.is_deep, self.engine) = (false, false, Engine::None);
    }
}

fn fail(why: Why) -> ReadStep {
    ReadStep::Fail(0, why)
}

#[cfg(test)]
mod tests {
    use crate::dialect::Dialect;
    use crate::dialect::first;
    use crate::look::Look;
    use crate::outlet::CallPiece;
    use crate::outlet::Outlet;
    use crate::parser::Parser;
    use crate::write::PromptCall;
    use std::rc::Rc;

    /// Collects the answer and the names of the calls.
    #[derive(Default)]
    struct Found {
        answer: String,
        names: Vec<String>,
        done: usize,
    }

    impl Outlet for Found {
        fn content(&mut self, text: &str) {
            self.answer.push_str(text);
        }

        fn reasoning(&mut self, _text: &str) {}

        fn call(&mut self, piece: CallPiece<'_>) {
            self.names.extend(piece.name.map(str::to_owned));
            self.done += usize::from(piece.done);
        }

        fn retract(&mut self, _index: i64, _reason: &'static str) {
            self.done -= 1;
        }

        fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
    }

    /// Reads a text with these dialects, in pieces of this many characters.
    fn read(names: &str, text: &str, length: usize) -> Found {
        let look = Rc::new(Look::new(names).unwrap());
        let mut found = Found::default();
        let mut parser = Parser::new(look, None, Some(""));
        let letters: Vec<char> = text.chars().collect();
        letters
            .chunks(length)
            .for_each(|piece| parser.push(&piece.iter().collect::<String>(), &mut found));
        parser.finish(false, &mut found);
        found
    }

    #[test]
    fn text_before_the_first_call_of_a_section_hides_no_marker() {
        let call = PromptCall {
            id: "a",
            name: "f",
            arguments: r#"{"a": "b"}"#,
        };
        let noise = "So I call < it:\n";
        let mut count = 0;
        for dialect in Dialect::all().iter().filter(|d| !d.framing.messages) {
            for form in dialect
                .forms
                .iter()
                .filter(|form| !first(form.call).is_empty())
            {
                let Some(section) = &form.section else {
                    continue;
                };
                count += 1;
                let written = form.write(&[call, call]);
                for open in section.open {
                    let text = written.replacen(section.open[0], &format!("{open}{noise}"), 1);
                    for (names, length) in [
                        (dialect.name, 1),
                        (dialect.name, 7),
                        (dialect.name, text.len()),
                        ("auto", 1),
                    ] {
                        let found = read(names, &text, length);
                        assert_eq!(
                            found.answer.trim(),
                            noise.trim(),
                            "{} as {names}: {text}",
                            dialect.name
                        );
                        assert_eq!(
                            (found.names.len(), found.done),
                            (2, 2),
                            "{} as {names}: {text}",
                            dialect.name
                        );
                    }
                }
            }
        }
        assert!(count > 15, "{count}");
    }

    /// A section's marker without a call is text, and is held back only briefly.
    #[test]
    fn a_section_without_a_call_is_text() {
        let long = "and so on, ".repeat(40);
        for dialect in Dialect::all() {
            for section in dialect
                .forms
                .iter()
                .filter_map(|form| form.section.as_ref())
            {
                for text in [
                    format!("A {} {long}", section.open[0]),
                    format!("A {} it", section.open[0]),
                ] {
                    assert_eq!(
                        read(dialect.name, &text, 3).answer,
                        text,
                        "{}",
                        dialect.name
                    );
                }
            }
        }
    }
}
