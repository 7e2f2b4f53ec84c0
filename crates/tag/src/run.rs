//! One form of a dialect being read: its parts, one after the other.
//!
//! A run begins at a marker that opens a section or a call, and takes text until the calls are over or it is clear that this is
//! no call. It says what it finds to [`Calls`]; whether and when that is written is the parser's affair.

mod part;

use crate::balance::Balance;
use crate::calls::{Calls, Context, NO_CALL, NO_TOOL, Step};
use crate::dialect::{Form, Needs, Part};
use crate::envelope::Envelope;
use crate::expression::Expression;
use crate::free::Free;
use crate::mark::{Found, find, find_last, space};
use crate::params::Params;
use json::Tools;

/// The longest start tag or header that is waited for, in bytes.
const LONGEST: usize = 4096;
/// White space between two calls, or before a closing marker, is waited through for this many bytes.
const GAP: usize = 256;

const GAPS: &str = "white space goes on for too long";

/// Where in the form the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At a marker that opens the section, or a call without one.
    Open,
    /// In the section, before a call.
    Inside,
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

/// What a run has to do with the text that follows.
enum Next {
    /// Go on after this many bytes.
    On(usize),
    Step(Step),
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

    /// Whether the text so far looks so much like a call that it is worth a word when it is none: its tool is known, or its
    /// opening marker stands there and is not found in ordinary text.
    pub fn is_marked(&self, why: &str) -> bool {
        let marked = self.section || !first(self.form.call).is_empty();
        let past = self.section || why == NO_TOOL || !matches!(self.place, Place::Open | Place::Part(0));
        self.begun || (self.form.needs == Needs::Listed && marked && past && why != NO_CALL)
    }

    /// What this form may know of the tools.
    pub fn context<'a>(form: &Form, tools: Option<&'a Tools>) -> Context<'a> {
        Context { tools, strict: form.needs == Needs::Known }
    }

    /// The markers at the beginning of `text`; once no more can come, what is there decides.
    fn find(&self, marks: &[&str], text: &str) -> Found {
        match find(marks, text) {
            Found::Perhaps if self.ended => find_last(marks, text),
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
            let next = match self.place {
                Place::Open => self.open(rest),
                Place::Inside => self.inside(rest),
                Place::Part(n) if n >= self.form.call.len() => {
                    // Every part was read and none said that the call is whole: its last marker does.
                    self.whole(calls);
                    self.place = Place::Between;
                    Next::Step(Step::Whole(0))
                }
                Place::Part(n) => self.part(n, rest, &context, alone, calls),
                Place::Tail(n) => self.tail(n, rest),
                Place::Between => self.between(rest, calls),
            };
            match next {
                Next::On(n) => i += n,
                Next::Step(Step::Back(n)) if n <= i => i -= n,
                Next::Step(Step::Back(n)) => return Step::Back(n - i),
                Next::Step(Step::More(n)) => return Step::More(i + n),
                Next::Step(Step::Whole(n)) => return Step::Whole(i + n),
                Next::Step(Step::Done(n)) => return Step::Done(i + n),
                Next::Step(Step::Fail(n, why)) => return Step::Fail(i + n, why),
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
                Step::More(n) | Step::Whole(n) | Step::Done(n) => at += n,
                Step::Fail(_, why) => return Err(why),
            }
        }
        loop {
            match self.push(&text[at..], tools, true, calls) {
                Step::Whole(n) => at += n,
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
                    _ => return Err("the text ends inside it"),
                }
                self.whole(calls);
                Ok(())
            }
            _ => Err("the text ends inside it"),
        }
    }

    fn whole(&mut self, calls: &mut Calls) {
        if self.begun {
            calls.done();
            self.whole += 1;
        }
        (self.begun, self.deep, self.engine) = (false, false, Engine::None);
    }

    fn open(&mut self, text: &str) -> Next {
        if let Some(section) = &self.form.section {
            match self.find(section.open, text) {
                Found::Here(n) => {
                    (self.section, self.place) = (true, Place::Inside);
                    return Next::On(n);
                }
                Found::Perhaps => return Next::Step(Step::More(0)),
                Found::No if !section.optional => return Next::Step(Step::Fail(0, "no section")),
                Found::No => {}
            }
        }
        self.place = Place::Part(0);
        Next::On(0)
    }

    /// In a section before its first call.
    fn inside(&mut self, text: &str) -> Next {
        let at = space(text);
        if let Some(failed) = self.gap(at, GAP) {
            return failed;
        }
        if at == text.len() {
            return Next::Step(Step::More(at));
        }
        let close = self.form.section.as_ref().map_or(&[][..], |s| s.close);
        match self.find(close, &text[at..]) {
            // A section without a call says that there is none.
            Found::Here(n) => Next::Step(Step::Done(at + n)),
            Found::Perhaps => Next::Step(Step::More(at)),
            Found::No => {
                self.place = Place::Part(0);
                Next::On(at)
            }
        }
    }

    /// Takes this much white space; the failure, at the byte that is one too many, where it goes on for longer than `most`.
    fn gap(&mut self, at: usize, most: usize) -> Option<Next> {
        let room = most.saturating_sub(self.waited);
        self.waited += at;
        (at > room).then_some(Next::Step(Step::Fail(room + 1, GAPS)))
    }

    /// The markers that may follow when the call is whole already: each may be missing.
    fn tail(&mut self, n: usize, text: &str) -> Next {
        let at = space(text);
        if at > GAP {
            self.place = Place::Between;
            return Next::On(0);
        }
        let marks =
            self.form.call[n.min(self.form.call.len())..].iter().enumerate().filter_map(|(k, part)| match part {
                Part::Mark(marks) | Part::Maybe { marks, .. } => Some((n + k + 1, *marks)),
                _ => None,
            });
        let mut perhaps = false;
        for (next, marks) in marks {
            match self.find(marks, &text[at..]) {
                Found::Here(length) => {
                    self.place = Place::Tail(next);
                    return Next::On(at + length);
                }
                Found::Perhaps => perhaps = true,
                Found::No => {}
            }
        }
        if perhaps {
            return Next::Step(Step::More(0));
        }
        self.place = Place::Between;
        Next::On(0)
    }

    /// After a call: another, the end of the section, or a marker too many.
    fn between(&mut self, text: &str, calls: &mut Calls) -> Next {
        let at = space(text);
        if at > GAP {
            return Next::Step(Step::Done(0));
        }
        let rest = &text[at..];
        let section = self.form.section.as_ref();
        let mut perhaps = rest.is_empty();
        if let Some(section) = section {
            match self.find(section.close, rest) {
                Found::Here(length) => {
                    // Without its opening marker it still closes the call that stood alone.
                    return Next::Step(Step::Done(at + length));
                }
                Found::Perhaps => perhaps = true,
                Found::No => {}
            }
            if self.section {
                let between = section.between.trim();
                if !between.is_empty()
                    && let Some(after) = rest.strip_prefix(between)
                {
                    self.place = Place::Inside;
                    return Next::On(text.len() - after.len());
                }
                perhaps |= !between.is_empty() && between.starts_with(rest);
                match self.find(first(self.form.call), rest) {
                    Found::Here(_) => {
                        self.place = Place::Part(0);
                        return Next::On(at);
                    }
                    Found::Perhaps => perhaps = true,
                    Found::No => {}
                }
            }
        }
        // A closing marker that was written twice, unless the next call begins like it, as fences do.
        let another = find(first(self.form.call), rest);
        perhaps |= another == Found::Perhaps;
        if let Some(Part::Mark(marks) | Part::Maybe { marks, .. }) = self.form.call.last()
            && self.form.call.len() > 1
            && another == Found::No
        {
            match self.find(marks, rest) {
                Found::Here(length) => {
                    calls.note("a closing marker too many was left out");
                    return Next::Step(Step::Done(at + length));
                }
                Found::Perhaps => perhaps = true,
                Found::No => {}
            }
        }
        Next::Step(if perhaps { Step::More(0) } else { Step::Done(0) })
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

fn fail(why: &'static str) -> Next {
    Next::Step(Step::Fail(0, why))
}
