//! One form of a dialect being read: its parts, one after the other.
//!
//! A run begins at a marker that opens a section or a call, and takes text until the calls are over or it is clear that this is
//! no call. It says what it finds to [`Calls`]; whether and when that is written is the parser's affair.

use crate::balance::Balance;
use crate::calls::{Calls, Context, Step};
use crate::dialect::{Form, FreeText, Header, Needs, Part, StartTag};
use crate::envelope::Envelope;
use crate::expression::Expression;
use crate::free::Free;
use crate::params::Params;
use crate::start_tag;
use json::Tools;

/// The longest start tag or header that is waited for, in bytes.
const LONGEST: usize = 4096;
/// White space between two calls, or before a closing marker, is waited through for this many bytes.
const GAP: usize = 256;

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

    /// Whether a call was said and is not whole.
    pub fn is_open(&self) -> bool {
        self.begun
    }

    /// Whether the text so far has nothing but names and markers, so that it can be read again as something else.
    pub fn is_shallow(&self) -> bool {
        !self.begun && !self.deep && !matches!(&self.engine, Engine::Envelope(e) if e.is_deep())
    }

    /// What this form may know of the tools.
    pub fn context<'a>(form: &Form, tools: Option<&'a Tools>) -> Context<'a> {
        Context { tools, strict: form.needs == Needs::Known }
    }

    /// The markers at the beginning of `text`; once no more can come, what is there decides.
    fn find(&self, marks: &[&str], text: &str) -> Found {
        match find(marks, text) {
            Found::Perhaps if self.ended => {
                let here = marks.iter().filter(|mark| text.starts_with(**mark)).map(|mark| mark.len()).max();
                here.map_or(Found::No, Found::Here)
            }
            found => found,
        }
    }

    /// Takes the next piece. With `alone`, no other form is tried on the same text, and a name may be said before the marker
    /// after it is whole.
    pub fn push(&mut self, text: &str, tools: Option<&Tools>, alone: bool, calls: &mut Calls) -> Step {
        let context = Run::context(self.form, tools);
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
                Next::Step(Step::More(n)) => return Step::More(i + n),
                Next::Step(Step::Whole(n)) => return Step::Whole(i + n),
                Next::Step(Step::Done(n)) => return Step::Done(i + n),
                Next::Step(Step::Fail(why)) => return Step::Fail(why),
            }
        }
    }

    /// The text has ended after `rest`, or was cut there. Gives how much of the rest belongs to the calls.
    ///
    /// # Errors
    /// Why what was begun is not whole.
    pub fn finish(
        &mut self,
        rest: &str,
        cut: bool,
        tools: Option<&Tools>,
        calls: &mut Calls,
    ) -> Result<usize, &'static str> {
        self.ended = true;
        let mut taken = 0;
        loop {
            match self.push(&rest[taken..], tools, true, calls) {
                Step::Whole(n) => taken += n,
                Step::Done(n) => return Ok(taken + n),
                Step::More(n) => {
                    taken += n;
                    break;
                }
                Step::Fail(why) => return Err(why),
            }
        }
        self.whole_at_end(cut, tools, calls).map(|()| taken)
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
                Found::No if !section.optional => return Next::Step(Step::Fail("no section")),
                Found::No => {}
            }
        }
        self.place = Place::Part(0);
        Next::On(0)
    }

    /// In a section before its first call.
    fn inside(&mut self, text: &str) -> Next {
        let at = space(text);
        if at == text.len() {
            self.waited += at;
            return Next::Step(if self.waited > GAP { Step::Fail("a gap") } else { Step::More(at) });
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

    fn part(&mut self, n: usize, text: &str, context: &Context<'_>, alone: bool, calls: &mut Calls) -> Next {
        let form = self.form;
        match &form.call[n] {
            Part::Mark(marks) => match self.find(marks, text) {
                // What may follow the last marker that must stand there makes the call no more whole.
                Found::Here(length) if self.begun && may_end(&form.call[n + 1..]) => {
                    self.whole(calls);
                    self.place = Place::Tail(n + 1);
                    Next::Step(Step::Whole(length))
                }
                Found::Here(length) => self.on(n + 1, length),
                Found::Perhaps => Next::Step(Step::More(0)),
                Found::No => fail("a marker is missing"),
            },
            Part::Maybe { marks, .. } => match self.find(marks, text) {
                Found::Here(length) => self.on(n + 1, length),
                Found::Perhaps => Next::Step(Step::More(0)),
                Found::No => self.on(n + 1, 0),
            },
            Part::Space(_) => {
                let at = space(text);
                self.waited += at;
                if self.waited > LONGEST {
                    return fail("a gap");
                }
                if at == text.len() { Next::Step(Step::More(at)) } else { self.on(n + 1, at) }
            }
            Part::Count => {
                let at = text.bytes().position(|c| !c.is_ascii_digit() && c != b' ').unwrap_or(text.len());
                self.waited += at;
                if self.waited > GAP {
                    return fail("a number that is too long");
                }
                if at == text.len() { Next::Step(Step::More(at)) } else { self.on(n + 1, at) }
            }
            Part::Name { until, header } => self.name(n, until, *header, text, context, alone, calls),
            Part::Id { until } => self.id(n, until, text, calls),
            Part::Tag(tag) => self.tag(n, tag, text, context, calls),
            Part::Arguments => self.arguments(n, text, calls),
            Part::Calls(keys) => {
                if let Engine::None = self.engine {
                    self.engine = Engine::Envelope(Box::new(Envelope::new(keys)));
                }
                let Engine::Envelope(envelope) = &mut self.engine else { return fail("no engine") };
                let before = calls.ops.len();
                let step = envelope.push(text, context, calls);
                self.said(before, calls);
                self.after_calls(n, step)
            }
            Part::Expression(expression) => {
                if let Engine::None = self.engine {
                    self.engine = Engine::Expression(Box::new(Expression::new(expression)));
                }
                let Engine::Expression(expression) = &mut self.engine else { return fail("no engine") };
                let before = calls.ops.len();
                let step = expression.push(text, context, calls);
                self.said(before, calls);
                self.after_calls(n, step)
            }
            Part::Params(params) => {
                if let Engine::None = self.engine {
                    match text.as_bytes().iter().find(|c| !c.is_ascii_whitespace()) {
                        // Some write their arguments as JSON here too.
                        Some(b'{') => self.engine = Engine::Json(None),
                        Some(_) => self.engine = Engine::Params(Box::new(Params::new(params, &self.name))),
                        None => return Next::Step(Step::More(0)),
                    }
                }
                match &mut self.engine {
                    Engine::Params(params) => {
                        self.deep = true;
                        match params.push(text, context, calls) {
                            Step::Done(length) => {
                                self.engine = Engine::None;
                                self.on(n + 1, length)
                            }
                            step => Next::Step(step),
                        }
                    }
                    _ => self.arguments(n, text, calls),
                }
            }
            Part::Free(free) => self.free(n, free, text, context, calls),
        }
    }

    fn on(&mut self, part: usize, length: usize) -> Next {
        (self.place, self.waited) = (Place::Part(part), 0);
        Next::On(length)
    }

    /// Notes what an engine that says whole calls has said.
    fn said(&mut self, before: usize, calls: &Calls) {
        for op in &calls.ops[before..] {
            match op {
                crate::calls::Op::Name(_) => self.begun = true,
                crate::calls::Op::Done => (self.begun, self.whole) = (false, self.whole + 1),
                _ => {}
            }
        }
    }

    fn after_calls(&mut self, n: usize, step: Step) -> Next {
        match step {
            Step::Done(length) => {
                (self.place, self.engine) = (Place::Tail(n + 1), Engine::None);
                Next::On(length)
            }
            step => Next::Step(step),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what the part says, and what is known")]
    fn name(
        &mut self,
        n: usize,
        until: &'static [&'static str],
        header: Header,
        text: &str,
        context: &Context<'_>,
        alone: bool,
        calls: &mut Calls,
    ) -> Next {
        let at = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/' | ' ')));
        let at = at.unwrap_or(text.len());
        if at > LONGEST {
            return fail("a name that is too long");
        }
        let word = text[..at].trim_matches(' ');
        if at == text.len() || self.find(until, &text[at..]) == Found::Perhaps {
            // The marker after it has begun, so nothing can be added to the name.
            if at < text.len() && alone && header == Header::Name && !self.begun && self.has_no_id() {
                let Some(name) = context.known(word) else { return fail("no tool of this name") };
                self.begin(name, None, calls);
            }
            let may = header == Header::Counted || context.may_become(word);
            return Next::Step(if may { Step::More(0) } else { Step::Fail("no tool of this name") });
        }
        let Found::Here(_) = self.find(until, &text[at..]) else { return fail("no end of the name") };
        if !self.begun {
            let (word, id) = match header {
                Header::Name => (word, None),
                Header::Counted => (counted(word, context), Some(word)),
            };
            let Some(name) = context.known(word) else { return fail("no tool of this name") };
            if self.has_no_id() {
                self.begin(name, id, calls);
            } else {
                name.clone_into(&mut self.name);
            }
        }
        self.on(n + 1, at)
    }

    /// Whether no id stands after the name.
    fn has_no_id(&self) -> bool {
        !self.form.call.iter().any(|part| matches!(part, Part::Id { .. }))
    }

    fn begin(&mut self, name: &str, id: Option<&str>, calls: &mut Calls) {
        name.clone_into(&mut self.name);
        calls.begin(name, id);
        self.begun = true;
    }

    fn id(&mut self, n: usize, until: &'static [&'static str], text: &str, calls: &mut Calls) -> Next {
        let at = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | ' ')));
        let at = at.unwrap_or(text.len());
        if at > 256 {
            return fail("an id that is too long");
        }
        match self.find(until, &text[at..]) {
            _ if at == text.len() => Next::Step(Step::More(0)),
            Found::Perhaps => Next::Step(Step::More(0)),
            Found::No => fail("no end of the id"),
            Found::Here(_) => {
                let name = std::mem::take(&mut self.name);
                let id = text[..at].trim_matches(' ');
                self.begin(&name, Some(id).filter(|id| !id.is_empty()), calls);
                self.on(n + 1, at)
            }
        }
    }

    fn tag(&mut self, n: usize, tag: &StartTag, text: &str, context: &Context<'_>, calls: &mut Calls) -> Next {
        let open = match self.find(tag.open, text) {
            Found::Here(length) => length,
            Found::Perhaps => return Next::Step(Step::More(0)),
            Found::No => return fail("no tag"),
        };
        let Some(end) = start_tag::end(&text[open..], tag.end) else {
            let wait = text.len() <= LONGEST && text[open..].starts_with([' ', '\t', '\n', '\r']) || text.len() == open;
            return Next::Step(if wait { Step::More(0) } else { Step::Fail("no start tag") });
        };
        let attributes = &text[open..open + end];
        let (attributes, empty) = match attributes.strip_suffix('/') {
            Some(short) => (short, true),
            None => (attributes, false),
        };
        let Some(name) = start_tag::attribute(attributes, tag.name) else { return fail("a tag without a name") };
        let Some(name) = context.known(name.trim()) else { return fail("no tool of this name") };
        let id = start_tag::attribute(attributes, "id");
        self.begin(name, id.as_deref(), calls);
        let after = open + end + tag.end.len();
        if empty {
            calls.arguments("{}");
            self.whole(calls);
            self.place = Place::Between;
            return Next::Step(Step::Whole(after));
        }
        self.on(n + 1, after)
    }

    /// The arguments as one JSON object, or nothing before the next marker.
    fn arguments(&mut self, n: usize, text: &str, calls: &mut Calls) -> Next {
        if !matches!(self.engine, Engine::Json(Some(_))) {
            let at = space(text);
            self.waited += at;
            if self.waited > LONGEST {
                return fail("a gap");
            }
            let Some(first) = text.as_bytes().get(at) else { return Next::Step(Step::More(at)) };
            if *first != b'{' {
                let mark = self.form.call[n + 1..].iter().find_map(|part| match part {
                    Part::Mark(marks) | Part::Maybe { marks, .. } => Some(*marks),
                    _ => None,
                });
                return match self.find(mark.unwrap_or_default(), &text[at..]) {
                    Found::Here(_) => {
                        calls.arguments("{}");
                        // It is the marker after them that says so.
                        self.place = Place::Part(n + 1);
                        Next::On(at)
                    }
                    Found::Perhaps => Next::Step(Step::More(0)),
                    Found::No => fail("no JSON object"),
                };
            }
            self.deep = true;
            self.engine = Engine::Json(Some(Balance::default()));
            return Next::On(at);
        }
        let Engine::Json(Some(balance)) = &mut self.engine else { return fail("no engine") };
        match balance.push(text.as_bytes()) {
            None => {
                calls.arguments(text);
                Next::Step(Step::More(text.len()))
            }
            Some(end) => {
                calls.arguments(&text[..end]);
                self.whole(calls);
                self.place = Place::Tail(n + 1);
                Next::Step(Step::Whole(end))
            }
        }
    }

    fn free(
        &mut self,
        n: usize,
        free: &'static FreeText,
        text: &str,
        context: &Context<'_>,
        calls: &mut Calls,
    ) -> Next {
        if let Engine::None = self.engine {
            self.engine = Engine::Free(Box::new(Free::new(free)));
        }
        self.deep = true;
        let Engine::Free(engine) = &mut self.engine else { return fail("no engine") };
        match engine.push(text, &self.name, context, calls) {
            Step::Done(length) => {
                self.whole(calls);
                self.place = Place::Tail(n + 1);
                Next::Step(Step::Whole(length))
            }
            step => Next::Step(step),
        }
    }

    /// The markers that may follow when the call is whole already: each may be missing.
    fn tail(&mut self, n: usize, text: &str) -> Next {
        let at = space(text);
        let marks = self.form.call[n.min(self.form.call.len())..].iter().enumerate().filter_map(|(k, part)| match part {
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
        if perhaps && at <= GAP {
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

/// Whether a call may end before these parts.
fn may_end(parts: &[Part]) -> bool {
    parts.iter().all(|part| matches!(part, Part::Space(_) | Part::Maybe { .. }))
}

/// The tool's name in `functions.NAME:COUNTER`.
fn counted<'t>(word: &'t str, context: &Context<'_>) -> &'t str {
    let name = word.rsplit_once(':').map_or(word, |(name, _)| name);
    let short = name.rsplit_once('.').map_or(name, |(_, short)| short);
    if context.known(name).is_some() { name } else { short }
}

fn fail(why: &'static str) -> Next {
    Next::Step(Step::Fail(why))
}

/// How much white space a text begins with.
pub(crate) fn space(text: &str) -> usize {
    text.bytes().position(|c| !matches!(c, b' ' | b'\t' | b'\r' | b'\n')).unwrap_or(text.len())
}

/// Whether one of several markers stands at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It does, and has this length.
    Here(usize),
    /// The text is the beginning of one.
    Perhaps,
    No,
}

/// Looks for the longest of the markers at the beginning of `text`. While a longer one may still come, it is waited for.
pub(crate) fn find(marks: &[&str], text: &str) -> Found {
    if marks.iter().any(|mark| mark.len() > text.len() && mark.starts_with(text)) {
        return Found::Perhaps;
    }
    let here = marks.iter().filter(|mark| text.starts_with(**mark)).map(|mark| mark.len()).max();
    here.map_or(Found::No, Found::Here)
}
