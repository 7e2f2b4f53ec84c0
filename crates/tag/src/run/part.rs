//! Reads the parts of a call, one after the other.

use crate::calls::{Context, FoundCalls, Op, ReadStep, Why, is_name_char};
use crate::dialect::{CallPart, NameForm, StartTag};
use crate::envelope::Envelope;
use crate::expression::Expression;
use crate::free::Free;
use crate::mark::{Match, attribute, may_be_attributes, space, tag_end};
use crate::params::{Outside, Params};
use crate::run::{Engine, FormPlace, GAP, LONGEST, Run, fail};
use event::Raw;
use json::{Balance, ToolList};

impl Run {
    /// If the whole piece is inside a call's arguments, reads it and returns true; otherwise reads
    /// nothing. Most text of calls is arguments inside JSON.
    #[inline]
    pub(crate) fn arguments(&mut self, text: &str, calls: &mut FoundCalls) -> bool {
        match (&mut self.engine, self.place) {
            (Engine::Envelope(envelope), FormPlace::Part(_)) => envelope.arguments(text, calls),
            _ => false,
        }
    }

    /// Reads the next piece. `is_alone` means that no other form reads the same text, so that a
    /// name is emitted before the marker after it is complete.
    pub(crate) fn push(
        &mut self,
        text: &str,
        tools: Option<&ToolList>,
        is_alone: bool,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let context = Run::context(self.form, tools);
        let mut i = 0;
        loop {
            let rest = &text[i..];
            if rest.is_empty()
                && !matches!(self.place, FormPlace::Part(n) if n >= self.form.call.len())
            {
                return ReadStep::More(i);
            }
            let step = match self.place {
                FormPlace::Open => self.open(rest),
                FormPlace::Inside => self.inside(rest),
                FormPlace::Noise => self.noise(rest),
                FormPlace::Over => ReadStep::Done(0),
                FormPlace::Part(n) if n >= self.form.call.len() => {
                    // All parts were read, and none of them has completed the call.
                    self.whole(calls);
                    (self.place, self.tail) = (FormPlace::Between, n);
                    ReadStep::Whole(0)
                }
                FormPlace::Part(n) => self.part(n, rest, &context, is_alone, calls),
                FormPlace::Tail(n) => self.tail(n, rest),
                FormPlace::Between => self.between(rest, calls),
                FormPlace::Closed => self.closed(rest, calls),
            };
            match step {
                ReadStep::On(n) => i += n,
                ReadStep::Back(n) if n <= i => i -= n,
                step => return step.after(i),
            }
        }
    }

    /// Ends the text; `at` of its bytes were already read. Returns how many bytes of the text
    /// belong to the calls.
    ///
    /// # Errors
    /// Returns why the last call is incomplete.
    pub(crate) fn finish(
        &mut self,
        text: &str,
        mut at: usize,
        cut: bool,
        tools: Option<&ToolList>,
        calls: &mut FoundCalls,
    ) -> Result<usize, Why> {
        self.is_last = true;
        if let Engine::Params(params) = &mut self.engine
            && !cut
        {
            match params.push(&text[at..], true, &Run::context(self.form, tools), calls) {
                ReadStep::Back(n) => at -= n,
                ReadStep::On(n) | ReadStep::More(n) | ReadStep::Whole(n) | ReadStep::Done(n) => {
                    at += n
                }
                ReadStep::Fail(_, why) => return Err(why),
            }
        }
        loop {
            match self.push(&text[at..], tools, true, calls) {
                ReadStep::On(n) | ReadStep::Whole(n) => at += n,
                ReadStep::Back(n) => at -= n,
                ReadStep::Done(n) => return Ok(at + n),
                ReadStep::More(n) => {
                    at += n;
                    break;
                }
                ReadStep::Fail(_, why) => return Err(why),
            }
        }
        let is_all = text[at..].trim_ascii().is_empty();
        self.whole_at_end(cut, is_all, tools, calls).map(|()| at)
    }

    fn whole_at_end(
        &mut self,
        cut: bool,
        is_all: bool,
        tools: Option<&ToolList>,
        calls: &mut FoundCalls,
    ) -> Result<(), Why> {
        let context = Run::context(self.form, tools);
        match self.place {
            FormPlace::Tail(_) | FormPlace::Between | FormPlace::Closed => Ok(()),
            FormPlace::Part(n) => {
                match &mut self.engine {
                    Engine::Free(free) if !cut => free.finish(&self.name, &context, calls)?,
                    Engine::Envelope(e) if e.may_end() => return Ok(()),
                    Engine::Expression(e) if (!cut || is_all) && e.may_end() => return Ok(()),
                    // Only closing markers are missing.
                    Engine::Params(params) if !cut && params.is_done() => {}
                    Engine::None
                        if n >= self.form.call.len()
                            || (!cut && self.has_begun && self.is_deep) => {}
                    Engine::None if !cut && may_lack(&self.form.call[n..]) => calls.arguments("{}"),
                    _ => return Err(Why::EndInCall),
                }
                self.whole(calls);
                Ok(())
            }
            _ => Err(Why::EndInCall),
        }
    }
}

/// Whether the text may end before these parts: free text and the marker before it may be missing.
fn may_lack(parts: &[CallPart]) -> bool {
    match parts {
        [CallPart::Space(_), parts @ ..] => may_lack(parts),
        [CallPart::Mark(_), CallPart::Free(free), ..] => free.optional,
        _ => false,
    }
}

impl Run {
    fn part(
        &mut self,
        n: usize,
        text: &str,
        context: &Context<'_>,
        is_alone: bool,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let form = self.form;
        match &form.call[n] {
            CallPart::Mark(marks) => match self.find(marks, text) {
                // The call is complete at its last required marker; what may follow does not change
                // that.
                Match::Full(length) if self.has_begun && may_end(&form.call[n + 1..]) => {
                    self.complete(n, length, calls)
                }
                Match::Full(length) => self.on(n + 1, length),
                Match::Partial => ReadStep::More(0),
                Match::No => fail(Why::NoMark),
            },
            CallPart::Maybe { marks, .. } => match self.find(marks, text) {
                Match::Full(length) => self.on(n + 1, length),
                Match::Partial => ReadStep::More(0),
                Match::No => self.on(n + 1, 0),
            },
            CallPart::Space(_) => self.pass_gap(n, space(text), LONGEST, text),
            CallPart::Count => {
                let is_digit = |c: &u8| c.is_ascii_digit() || *c == b' ';
                let digits = text.bytes().take_while(is_digit).count();
                self.pass_gap(n, digits, GAP, text)
            }
            CallPart::Name { until, header } => {
                self.name(n, until, *header, text, context, is_alone, calls)
            }
            CallPart::Author { until } => self.author(n, until, text, context),
            CallPart::Id { until } => self.id(n, until, text, calls),
            CallPart::Tag(tag) => self.tag(n, tag, text, context, calls),
            CallPart::Arguments => self.json_arguments(n, text, context, calls),
            part => self.by_engine(n, part, text, context, calls),
        }
    }

    /// Reads a part with an engine.
    fn by_engine(
        &mut self,
        n: usize,
        part: &'static CallPart,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        if let Engine::None = self.engine {
            let Some(engine) = self.engine_of(n, part, text) else {
                return ReadStep::More(text.len());
            };
            self.is_deep |= matches!(engine, Engine::Params(_) | Engine::Free(_));
            self.engine = engine;
        }
        let before = calls.ops.len();
        let step = match &mut self.engine {
            Engine::Envelope(envelope) => envelope.push(text, context, calls),
            Engine::Expression(expression) => expression.push(text, context, calls),
            Engine::Params(params) => params.push(text, false, context, calls),
            Engine::Free(free) => free.push(text, &self.name, context, calls),
            Engine::Json(_) | Engine::None => return self.json_arguments(n, text, context, calls),
        };
        self.follow(&calls.ops[before..]);
        match (step, part) {
            (ReadStep::Done(length), CallPart::Free(_)) => self.complete(n, length, calls),
            (ReadStep::Done(length), CallPart::Params(_)) => {
                self.engine = Engine::None;
                self.on(n + 1, length)
            }
            (ReadStep::Done(length), _) => {
                (self.place, self.engine) = (FormPlace::Tail(n + 1), Engine::None);
                ReadStep::On(length)
            }
            (step, _) => step,
        }
    }

    /// Returns the engine of a part, or `None` if the text does not decide it yet.
    fn engine_of(&self, n: usize, part: &'static CallPart, text: &str) -> Option<Engine> {
        let form = self.form;
        Some(match part {
            CallPart::Calls(keys) => Engine::Envelope(Box::new(Envelope::new(keys))),
            CallPart::Expression(form) => Engine::Expression(Box::new(Expression::new(form))),
            CallPart::Free(free) => Engine::Free(Box::new(Free::new(free))),
            CallPart::Params(params) if !text.trim_ascii_start().starts_with('{') => {
                if text.trim_ascii().is_empty() {
                    return None;
                }
                let outside = Outside {
                    before: &form.call[..n],
                    behind: &form.call[n + 1..],
                    section: form.section.as_ref(),
                    headers: form.body().map_or(&[], |_| &["<|start|>"]),
                };
                Engine::Params(Box::new(Params::new(params, outside, &self.name)))
            }
            // Some models write their arguments as JSON in place of parameters.
            _ => Engine::Json(None),
        })
    }

    /// Completes the call with this part.
    fn complete(&mut self, n: usize, length: usize, calls: &mut FoundCalls) -> ReadStep {
        self.whole(calls);
        self.place = FormPlace::Tail(n + 1);
        ReadStep::Whole(length)
    }

    /// Skips `at` bytes of white space, up to the limit `most`.
    fn pass_gap(&mut self, n: usize, at: usize, most: usize, text: &str) -> ReadStep {
        match self.gap(at, most) {
            Some(failed) => failed,
            None if at == text.len() => ReadStep::More(at),
            None => self.on(n + 1, at),
        }
    }

    fn author(&mut self, n: usize, until: &[&str], text: &str, context: &Context<'_>) -> ReadStep {
        let at = text.find(|c| !is_name_char(c));
        let word = &text[..at.unwrap_or(text.len())];
        // Without a marker before it, only the name of a listed tool is distinguishable from prose.
        let may = match at {
            _ if !context.strict => true,
            None => context.may_become(word),
            Some(_) => context.accepts(word),
        };
        match at.map(|at| self.find(until, &text[at..])) {
            _ if !may || word.len() > LONGEST => fail(Why::NoCall),
            None | Some(Match::Partial) => ReadStep::More(0),
            Some(Match::No) => fail(Why::NoCall),
            Some(Match::Full(_)) => self.on(n + 1, word.len()),
        }
    }

    fn on(&mut self, part: usize, length: usize) -> ReadStep {
        (self.place, self.waited) = (FormPlace::Part(part), 0);
        ReadStep::On(length)
    }

    /// Records what an engine that reads whole calls has found.
    fn follow(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Name(_) => self.has_begun = true,
                Op::Done => (self.has_begun, self.whole) = (false, self.whole + 1),
                _ => {}
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what the part says, and what is known"
    )]
    fn name(
        &mut self,
        n: usize,
        until: &'static [&'static str],
        header: NameForm,
        text: &str,
        context: &Context<'_>,
        is_alone: bool,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let at = text.find(|c| !is_name_char(c) && c != ' ');
        let at = at.unwrap_or(text.len());
        if at > LONGEST {
            return fail(Why::NoNameEnd);
        }
        let word = text[..at].trim_matches(' ');
        if header != NameForm::Counted && !context.may_become(word) {
            return fail(context.refusal_of_start(word));
        }
        // The marker after the name may have begun, in which case the name is complete.
        let ends = text[at..]
            .chars()
            .next()
            .is_some_and(|c| until.iter().any(|mark| mark.starts_with(c)));
        if ends && is_alone && header == NameForm::Bare && !self.has_begun && !self.has_id_after(n)
        {
            let Some(name) = context.known(word) else {
                return fail(context.refusal(word));
            };
            calls.written(word, name, context);
            self.begin(name, None, calls);
        }
        if at == text.len() || self.find(until, &text[at..]) == Match::Partial {
            return ReadStep::More(0);
        }
        let Match::Full(_) = self.find(until, &text[at..]) else {
            return fail(Why::NoNameEnd);
        };
        if header == NameForm::Counted
            && is_counter(word)
            && context.tools.is_some()
            && !context.lists(word)
        {
            self.nameless = Some((word.to_owned(), String::new()));
        } else if !self.has_begun {
            let (word, id) = match header {
                NameForm::Bare => (word, None),
                NameForm::Counted => (counted(word, context), Some(word)),
            };
            let Some(name) = context.known(word) else {
                return fail(context.refusal(word));
            };
            calls.written(word, name, context);
            if !self.has_id_after(n) {
                self.begin(name, id, calls);
            } else {
                name.clone_into(&mut self.name);
            }
        }
        self.on(n + 1, at)
    }

    /// Whether the form has the id after part `n`, the name. The call is then emitted once the id
    /// is known.
    fn has_id_after(&self, n: usize) -> bool {
        self.form.call[n..]
            .iter()
            .any(|part| matches!(part, CallPart::Id { .. }))
    }

    fn begin(&mut self, name: &str, id: Option<&str>, calls: &mut FoundCalls) {
        name.clone_into(&mut self.name);
        let before = std::mem::take(&mut self.id);
        calls.begin(name, id.or(Some(&before[..])).filter(|id| !id.is_empty()));
        self.has_begun = true;
    }

    fn id(
        &mut self,
        n: usize,
        until: &'static [&'static str],
        text: &str,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let at =
            text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | ' ')));
        let at = at.unwrap_or(text.len());
        if at > 256 {
            return fail(Why::LongId);
        }
        match self.find(until, &text[at..]) {
            _ if at == text.len() => ReadStep::More(0),
            Match::Partial => ReadStep::More(0),
            Match::No => fail(Why::NoIdEnd),
            Match::Full(_) => {
                let id = text[..at].trim_matches(' ');
                if self.form.call[..n]
                    .iter()
                    .any(|part| matches!(part, CallPart::Name { .. }))
                {
                    let name = std::mem::take(&mut self.name);
                    self.begin(&name, Some(id), calls);
                } else {
                    id.clone_into(&mut self.id);
                }
                self.on(n + 1, at)
            }
        }
    }

    fn tag(
        &mut self,
        n: usize,
        tag: &StartTag,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let open = match self.find(tag.open, text) {
            Match::Full(length) => length,
            Match::Partial => return ReadStep::More(0),
            Match::No => return fail(Why::NoTag),
        };
        let inner = &text[open..];
        let Some(end) = tag_end(inner, tag.end).filter(|end| *end <= LONGEST) else {
            let wait = inner.len() <= LONGEST && may_be_attributes(inner, tag.end);
            return if wait {
                ReadStep::More(0)
            } else {
                fail(Why::InvalidTag)
            };
        };
        // `<toolbox` does not begin with `<tool`. The tag must be valid at each character of its
        // end marker, because this is also checked when the text arrives in pieces.
        let is_tag = |(more, _)| may_be_attributes(&inner[..end + more], tag.end);
        if !tag.end.char_indices().all(is_tag) {
            return fail(Why::InvalidTag);
        }
        let attributes = &inner[..end];
        let (attributes, empty) = match attributes.strip_suffix('/') {
            Some(short) => (short, true),
            None => (attributes, false),
        };
        let Some(name) = attribute(attributes, tag.name) else {
            return fail(Why::NamelessTag);
        };
        let after = open + end + tag.end.len();
        let written = name.trim();
        let Some(name) = context.known(written) else {
            return ReadStep::Fail(after, context.refusal(written));
        };
        calls.written(written, name, context);
        let id = attribute(attributes, "id");
        self.begin(name, id.as_deref(), calls);
        if empty {
            calls.arguments("{}");
            self.whole(calls);
            (self.place, self.tail) = (FormPlace::Between, self.form.call.len());
            return ReadStep::Whole(after);
        }
        self.on(n + 1, after)
    }

    /// Reads the arguments as one JSON object, or nothing before the next marker.
    fn json_arguments(
        &mut self,
        n: usize,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let Engine::Json(Some(balance)) = &mut self.engine else {
            return self.begin_json(n, text, calls);
        };
        let end = balance.push(text.as_bytes());
        let piece = &text[..end.unwrap_or(text.len())];
        match &mut self.nameless {
            Some((_, kept)) => kept.push_str(piece),
            None => calls.arguments_until(piece, end.is_some().into()),
        }
        let Some(end) = end else {
            return ReadStep::More(text.len());
        };
        if let Some((id, arguments)) = self.nameless.take() {
            let Some(name) = taker(&arguments, context) else {
                return ReadStep::Fail(end, Why::NoTaker);
            };
            self.begin(name, Some(&id), calls);
            calls.arguments(&arguments);
        }
        self.complete(n, end, calls)
    }

    /// Reads the text before the first byte of the arguments.
    fn begin_json(&mut self, n: usize, text: &str, calls: &mut FoundCalls) -> ReadStep {
        let at = space(text);
        if let Some(failed) = self.gap(at, LONGEST) {
            return failed;
        }
        let rest = &text[at..];
        if rest.is_empty() {
            return ReadStep::More(at);
        }
        if rest.starts_with('{') {
            self.is_deep = true;
            self.engine = Engine::Json(Some(Balance::default()));
            return ReadStep::On(at);
        }
        let mark = self.form.call[n + 1..].iter().find_map(CallPart::marks);
        match self.find(mark.unwrap_or_default(), rest) {
            Match::Full(_) if self.nameless.is_some() => fail(Why::NoTaker),
            Match::Full(_) => {
                calls.arguments("{}");
                // The marker completes the call.
                self.place = FormPlace::Part(n + 1);
                ReadStep::On(at)
            }
            Match::Partial => ReadStep::More(at),
            Match::No => ReadStep::Fail(at, Why::NotJsonObject),
        }
    }
}

/// Whether a call may end before these parts.
fn may_end(parts: &[CallPart]) -> bool {
    parts
        .iter()
        .all(|part| matches!(part, CallPart::Space(_) | CallPart::Maybe { .. }))
}

/// Whether a header is an id without a name. Kimi K2 writes bare numbers
/// (<https://github.com/vllm-project/vllm/pull/46127>), and copies ids that clients invented:
/// `call_3`, `call00003`, `toolu_…` (<https://github.com/vllm-project/vllm/pull/32146>).
fn is_counter(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    match ["call", "toolu"]
        .iter()
        .find_map(|start| word.strip_prefix(start))
    {
        Some(rest) => rest.starts_with('_') || is_number(rest),
        None => is_number(word),
    }
}

/// Returns the only tool that accepts these arguments: its schema declares each argument, and they
/// are valid. Returns `None` if there is no such tool, or more than one.
fn taker<'a>(arguments: &str, context: &Context<'a>) -> Option<&'a str> {
    let tools = context.tools?;
    let object = Raw::parse(arguments).ok()?;
    let mut takers = tools.names().filter(|name| {
        let parameters = tools.parameters(name);
        object.entries().all(|(key, _)| parameters.declares(&key))
            && tools.check(name, arguments).is_ok()
    });
    takers.next().filter(|_| takers.next().is_none())
}

/// Returns the tool's name from `functions.NAME:COUNTER`. Kimi K2 sometimes omits `functions.`
/// (<https://github.com/vllm-project/vllm/pull/27565>). A word that does not name a listed tool in
/// this form is returned unchanged.
fn counted<'t>(word: &'t str, context: &Context<'_>) -> &'t str {
    let name = word.rsplit_once(':').map_or(word, |(name, _)| name);
    let short = name.strip_prefix("functions.").unwrap_or(name);
    if context.lists(name) || (context.tools.is_none() && context.known(name).is_some()) {
        name
    } else if context.lists(short) || context.tools.is_none() {
        short
    } else {
        word
    }
}
