//! One form being read, as far as it was read.

use crate::calls::{Calls, Context, NO_CALL, Step, is_about_name};
use crate::dialect::{Form, Needs};
use crate::envelope::Envelope;
use crate::expression::Expression;
use crate::form::first;
use crate::free::Free;
use crate::mark::{Match, find, find_last};
use crate::params::Params;
use json::{Balance, Tools};

/// The longest start tag or header that is waited for, in bytes.
pub(super) const LONGEST: usize = 4096;
/// White space between two calls, or before a closing marker, is waited through for this many bytes.
pub(super) const GAP: usize = 256;

const GAPS: &str = "the white space before the next marker is too long";
pub(super) const NO_MARK: &str = "a marker of the dialect is missing";

/// Where in the form the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At a marker that opens the section, or a call without one.
    Open,
    /// In the section, before a call.
    Inside,
    /// In text that is no call, behind the marker that opens the section.
    Noise,
    /// Behind what was read: nothing more belongs to the calls.
    Over,
    /// In a part of a call.
    Part(usize),
    /// After the call has been said, in the parts that may follow: closing markers.
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

/// One form being read; see the module.
#[derive(Debug)]
pub(crate) struct Run {
    pub(super) form: &'static Form,
    pub(super) place: Place,
    pub(super) engine: Engine,
    /// The name at hand, for the parts that ask the tool's schema.
    pub(super) name: String,
    /// An id without a name, and the arguments so far, by which the tool is to be found.
    pub(super) nameless: Option<(String, String)>,
    /// It was said: the call has begun.
    pub(super) has_begun: bool,
    /// The section's opening marker was read.
    pub(super) in_section: bool,
    /// How many calls were said whole.
    pub(super) whole: usize,
    /// The bytes of a start tag or a header that have been waited for.
    pub(super) waited: usize,
    /// An argument was read, so that what stands inside it must not be read as something else.
    pub(super) is_deep: bool,
    /// No more text comes.
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
            nameless: None,
            has_begun: false,
            in_section: false,
            whole: 0,
            waited: 0,
            is_deep: false,
            is_last: false,
        }
    }

    /// A run of a form whose call was named by what stood before it.
    pub fn named(form: &'static Form, name: &str, calls: &mut Calls) -> Run {
        let mut run = Run::new(form);
        name.clone_into(&mut run.name);
        calls.begin(name, None);
        run.has_begun = true;
        run.place = Place::Part(0);
        run
    }

    /// The form that is read.
    pub fn form(&self) -> &'static Form {
        self.form
    }

    /// Whether the text so far has nothing but names and markers, so that it can be read again as something else.
    pub fn is_shallow(&self) -> bool {
        !self.has_begun && !self.is_deep && !matches!(&self.engine, Engine::Envelope(e) if e.is_deep())
    }

    /// Whether other text is in the place of the section's first call.
    pub fn is_noise(&self) -> bool {
        matches!(self.place, Place::Noise | Place::Over)
    }

    /// Whether the text so far looks so much like a call that it is worth a word when it is none: its tool is known, or its
    /// opening marker stands there and is not found in ordinary text.
    pub fn is_marked(&self, why: &str) -> bool {
        let marked = self.in_section || !first(self.form.call).is_empty();
        let past = self.in_section || is_about_name(why) || !matches!(self.place, Place::Open | Place::Part(0));
        self.has_begun || (self.form.needs == Needs::Listed && marked && past && why != NO_CALL)
    }

    /// What this form may know of the tools.
    pub fn context<'a>(form: &Form, tools: Option<&'a Tools>) -> Context<'a> {
        Context { tools, strict: form.needs == Needs::Known }
    }

    /// The markers at the beginning of `text`; once no more can come, what is there decides.
    pub(super) fn find(&self, marks: &[&str], text: &str) -> Match {
        match find(marks, text) {
            Match::Partial if self.is_last => find_last(marks, text),
            found => found,
        }
    }

    /// Takes this much white space; the failure, at the byte that is one too many, where it goes on for longer than `most`.
    pub(super) fn gap(&mut self, at: usize, most: usize) -> Option<Step> {
        let room = most.saturating_sub(self.waited);
        self.waited += at;
        (at > room).then_some(Step::Fail(room + 1, GAPS))
    }

    pub(super) fn whole(&mut self, calls: &mut Calls) {
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
