//! What was read of one form.

use crate::calls::{Context, FoundCalls, NO_CALL, Step, is_about_name};
use crate::dialect::{Form, KnownTool};
use crate::envelope::Envelope;
use crate::expression::Expression;
use crate::form::first;
use crate::free::Free;
use crate::mark::{Match, find, find_last};
use crate::params::Params;
use json::{Balance, ToolList};

/// The longest start tag, name or white space inside a call, in bytes.
pub(super) const LONGEST: usize = 4096;
/// The most white space between two calls or before a closing marker, in bytes.
pub(super) const GAP: usize = 256;

const GAPS: &str = "the white space before the next marker is too long";
pub(super) const NO_MARK: &str = "a marker of the dialect is missing";

/// Where in the form the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At the marker that opens the section, or at a call outside a section.
    Open,
    /// In the section, before a call.
    Inside,
    /// In text that is not a call, after the marker that opens the section.
    Noise,
    /// After the section's marker and other text, at a call that a new run reads.
    Over,
    /// In a part of a call.
    Part(usize),
    /// After a complete call, in the parts that may follow it: closing markers.
    Tail(usize),
    /// After a call.
    Between,
}

/// The engine of the part at hand.
#[derive(Debug)]
pub(super) enum Engine {
    None,
    /// The arguments as JSON; `None` before they begin.
    Json(Option<Balance>),
    Envelope(Box<Envelope>),
    Params(Box<Params>),
    Expression(Box<Expression>),
    Free(Box<Free>),
}

/// A form that reads text.
#[derive(Debug)]
pub(crate) struct Run {
    pub(super) form: &'static Form,
    pub(super) place: Place,
    pub(super) engine: Engine,
    /// The name of the tool, for the parts that need its schema.
    pub(super) name: String,
    /// The call's id, where it precedes the name.
    pub(super) id: String,
    /// An id without a name, and the arguments so far, which decide the tool.
    pub(super) nameless: Option<(String, String)>,
    /// The call was emitted to [`FoundCalls`].
    pub(super) has_begun: bool,
    /// The section's opening marker was read.
    pub(super) in_section: bool,
    /// How many calls are complete.
    pub(super) whole: usize,
    /// How many bytes of white space, or of text before the first call, were read at this place.
    pub(super) waited: usize,
    /// An argument was read: what is inside it must not be read as something else.
    pub(super) is_deep: bool,
    /// No text follows.
    pub(super) is_last: bool,
}

impl Run {
    /// A run at the marker that the form begins with.
    pub fn new(form: &'static Form) -> Run {
        Run {
            form,
            place: Place::Open,
            engine: Engine::None,
            name: String::new(),
            id: String::new(),
            nameless: None,
            has_begun: false,
            in_section: false,
            whole: 0,
            waited: 0,
            is_deep: false,
            is_last: false,
        }
    }

    /// A run of a form whose call was named by the text before it.
    pub fn named(form: &'static Form, name: &str, calls: &mut FoundCalls) -> Run {
        let mut run = Run::new(form);
        name.clone_into(&mut run.name);
        calls.begin(name, None);
        run.has_begun = true;
        run.place = Place::Part(form.body().unwrap_or(0));
        run
    }

    /// The form that is read.
    pub fn form(&self) -> &'static Form {
        self.form
    }

    /// Whether the text so far is names and markers alone, so that it can be read again as
    /// something else.
    pub fn is_shallow(&self) -> bool {
        !self.has_begun
            && !self.is_deep
            && !matches!(&self.engine, Engine::Envelope(e) if e.is_deep())
    }

    /// Whether it has read no call so far.
    pub fn is_without_calls(&self) -> bool {
        self.whole == 0
    }

    /// Whether nothing but markers was read since the last call.
    pub fn is_bare(&self) -> bool {
        let is_inside = match self.place {
            Place::Inside => true,
            Place::Part(n) => n > 0 || self.in_section,
            _ => false,
        };
        is_inside && !self.has_begun && matches!(self.engine, Engine::None)
    }

    /// Whether the section begins with other text than a call.
    pub fn is_noise(&self) -> bool {
        matches!(self.place, Place::Noise | Place::Over)
    }

    /// Whether a failure deserves a warning, since the text looks like a call: its tool is listed,
    /// or it has an opening marker that does not occur in ordinary text.
    pub fn is_marked(&self, why: &str) -> bool {
        let marked = self.in_section || !first(self.form.call).is_empty();
        let past = self.in_section
            || is_about_name(why)
            || !matches!(self.place, Place::Open | Place::Part(0));
        self.has_begun || (self.form.needs == KnownTool::Listed && marked && past && why != NO_CALL)
    }

    /// What the engines of this form need of the request.
    pub fn context<'a>(form: &Form, tools: Option<&'a ToolList>) -> Context<'a> {
        Context {
            tools,
            strict: form.needs == KnownTool::Known,
        }
    }

    /// The longest of the markers that `text` begins with.
    pub(super) fn find(&self, marks: &[&str], text: &str) -> Match {
        match find(marks, text) {
            Match::Partial if self.is_last => find_last(marks, text),
            found => found,
        }
    }

    /// Takes `at` bytes of white space. Returns the failure, at the first byte that is too many,
    /// where it is longer than `most`.
    pub(super) fn gap(&mut self, at: usize, most: usize) -> Option<Step> {
        let room = most.saturating_sub(self.waited);
        self.waited += at;
        (at > room).then_some(Step::Fail(room + 1, GAPS))
    }

    /// The call at hand is complete.
    pub(super) fn whole(&mut self, calls: &mut FoundCalls) {
        if self.has_begun {
            calls.done();
            self.whole += 1;
        }
        (self.has_begun, self.is_deep, self.engine) = (false, false, Engine::None);
    }
}

pub(super) fn fail(why: &'static str) -> Step {
    Step::Fail(0, why)
}
