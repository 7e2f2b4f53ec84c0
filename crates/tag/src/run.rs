//! One form of a dialect being read: its parts, one after the other.
//!
//! A run begins at a marker that opens a section or a call, and takes text until the calls are over or it is clear that this is
//! no call. It says what it finds to [`Calls`]; whether and when that is written is the parser's affair.

mod part;
mod section;
#[cfg(test)]
mod tests;

use crate::calls::{Calls, Context, NO_CALL, Step, is_about_name};
use crate::dialect::{Form, Needs, Part};
use crate::envelope::Envelope;
use crate::expression::Expression;
use crate::free::Free;
use crate::mark::{Match, find, find_last};
use crate::params::Params;
use json::Balance;
use json::Tools;

/// The longest start tag or header that is waited for, in bytes.
const LONGEST: usize = 4096;
/// White space between two calls, or before a closing marker, is waited through for this many bytes.
const GAP: usize = 256;

const GAPS: &str = "the white space before the next marker is too long";
const NO_MARK: &str = "a marker of the dialect is missing";

/// Where in the form the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
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
enum Engine {
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
    form: &'static Form,
    place: Place,
    engine: Engine,
    /// The name at hand, for the parts that ask the tool's schema.
    name: String,
    /// An id without a name, and the arguments so far, by which the tool is to be found.
    nameless: Option<(String, String)>,
    /// It was said: the call has begun.
    begun: bool,
    /// The section's opening marker was read.
    section: bool,
    /// How many calls were said whole.
    whole: usize,
    /// The bytes of a start tag or a header that have been waited for.
    waited: usize,
    /// An argument was read, so that what stands inside it must not be read as something else.
    deep: bool,
    /// No more text comes.
    ended: bool,
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
            begun: false,
            section: false,
            whole: 0,
            waited: 0,
            deep: false,
            ended: false,
        }
    }

    /// A run of a form whose call was named by what stood before it.
    pub fn named(form: &'static Form, name: &str, calls: &mut Calls) -> Run {
        let mut run = Run::new(form);
        name.clone_into(&mut run.name);
        calls.begin(name, None);
        run.begun = true;
        run.place = Place::Part(0);
        run
    }

    /// The form that is read.
    pub fn form(&self) -> &'static Form {
        self.form
    }

    /// Whether the text so far has nothing but names and markers, so that it can be read again as something else.
    pub fn is_shallow(&self) -> bool {
        !self.begun && !self.deep && !matches!(&self.engine, Engine::Envelope(e) if e.is_deep())
    }

    /// Whether other text is in the place of the section's first call.
    pub fn is_noise(&self) -> bool {
        matches!(self.place, Place::Noise | Place::Over)
    }

    /// Whether the text so far looks so much like a call that it is worth a word when it is none: its tool is known, or its
    /// opening marker stands there and is not found in ordinary text.
    pub fn is_marked(&self, why: &str) -> bool {
        let marked = self.section || !first(self.form.call).is_empty();
        let past = self.section || is_about_name(why) || !matches!(self.place, Place::Open | Place::Part(0));
        self.begun || (self.form.needs == Needs::Listed && marked && past && why != NO_CALL)
    }

    /// What this form may know of the tools.
    pub fn context<'a>(form: &Form, tools: Option<&'a Tools>) -> Context<'a> {
        Context { tools, strict: form.needs == Needs::Known }
    }

    /// The markers at the beginning of `text`; once no more can come, what is there decides.
    fn find(&self, marks: &[&str], text: &str) -> Match {
        match find(marks, text) {
            Match::Partial if self.ended => find_last(marks, text),
            found => found,
        }
    }

    /// Takes the next piece. With `alone`, no other form is tried on the same text, and a name may be said before the marker
    /// after it is whole.
    pub fn push(&mut self, text: &str, tools: Option<&Tools>, alone: bool, calls: &mut Calls) -> Step {
        let context = Run::context(self.form, tools);
        // Arguments inside JSON are most of what calls are made of.
        if let (Engine::Envelope(envelope), Place::Part(_)) = (&mut self.engine, self.place)
            && envelope.arguments(text, calls)
        {
            return Step::More(text.len());
        }
        let mut i = 0;
        loop {
            let rest = &text[i..];
            if rest.is_empty() && !matches!(self.place, Place::Part(n) if n >= self.form.call.len()) {
                return Step::More(i);
            }
            let step = match self.place {
                Place::Open => self.open(rest),
                Place::Inside => self.inside(rest),
                Place::Noise => self.noise(rest),
                Place::Over => Step::Done(0),
                Place::Part(n) if n >= self.form.call.len() => {
                    // Every part was read and none said that the call is whole: its last marker does.
                    self.whole(calls);
                    self.place = Place::Between;
                    Step::Whole(0)
                }
                Place::Part(n) => self.part(n, rest, &context, alone, calls),
                Place::Tail(n) => self.tail(n, rest),
                Place::Between => self.between(rest, calls),
            };
            match step {
                Step::On(n) => i += n,
                Step::Back(n) if n <= i => i -= n,
                step => return step.after(i),
            }
        }
    }

    /// The text of the call, of which `at` bytes were read, has ended or was cut. Gives how much of it belongs to the calls.
    ///
    /// # Errors
    /// Why what was begun is not whole.
    pub fn finish(
        &mut self,
        text: &str,
        mut at: usize,
        cut: bool,
        tools: Option<&Tools>,
        calls: &mut Calls,
    ) -> Result<usize, &'static str> {
        self.ended = true;
        if let Engine::Params(params) = &mut self.engine
            && !cut
        {
            match params.finish(&text[at..], &Run::context(self.form, tools), calls) {
                Step::Back(n) => at -= n,
                Step::On(n) | Step::More(n) | Step::Whole(n) | Step::Done(n) => at += n,
                Step::Fail(_, why) => return Err(why),
            }
        }
        loop {
            match self.push(&text[at..], tools, true, calls) {
                Step::On(n) | Step::Whole(n) => at += n,
                Step::Back(n) => at -= n,
                Step::Done(n) => return Ok(at + n),
                Step::More(n) => {
                    at += n;
                    break;
                }
                Step::Fail(_, why) => return Err(why),
            }
        }
        self.whole_at_end(cut, tools, calls).map(|()| at)
    }

    fn whole_at_end(&mut self, cut: bool, tools: Option<&Tools>, calls: &mut Calls) -> Result<(), &'static str> {
        let context = Run::context(self.form, tools);
        match self.place {
            Place::Tail(_) | Place::Between => Ok(()),
            Place::Part(n) => {
                match &mut self.engine {
                    Engine::Free(free) if !cut => free.finish(&self.name, &context, calls)?,
                    Engine::Envelope(e) if e.finish() => return Ok(()),
                    Engine::Expression(e) if !cut && e.finish() => return Ok(()),
                    Engine::None if n >= self.form.call.len() => {}
                    Engine::None if !cut && may_lack(&self.form.call[n..]) => calls.arguments("{}"),
                    _ => return Err("the text ends before the call is complete"),
                }
                self.whole(calls);
                Ok(())
            }
            _ => Err("the text ends before the call is complete"),
        }
    }

    fn whole(&mut self, calls: &mut Calls) {
        if self.begun {
            calls.done();
            self.whole += 1;
        }
        (self.begun, self.deep, self.engine) = (false, false, Engine::None);
    }
}

/// The markers that a call begins with.
pub(crate) fn first(call: &'static [Part]) -> &'static [&'static str] {
    match call.first() {
        Some(Part::Mark(marks)) => marks,
        Some(Part::Tag(tag)) => tag.open,
        _ => &[],
    }
}

/// Whether free text and its marker may be missing here at the end of the text.
fn may_lack(parts: &[Part]) -> bool {
    match parts {
        [Part::Space(_), parts @ ..] => may_lack(parts),
        [Part::Mark(_), Part::Free(free), ..] => free.optional,
        _ => false,
    }
}

fn fail(why: &'static str) -> Step {
    Step::Fail(0, why)
}
