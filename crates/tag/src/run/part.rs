//! The parts of a call, one after the other.

use super::state::{Engine, GAP, LONGEST, NO_MARK, Place, Run, fail};
use crate::calls::{ArgumentsEnd, Context, FoundCalls, NO_CALL, NO_END, Op, Step};
use crate::dialect::{CallPart, FreeText, NameForm, StartTag};
use crate::envelope::Envelope;
use crate::expression::Expression;
use crate::free::Free;
use crate::mark::{Match, space};
use crate::params::{Outside, Params};
use crate::start_tag;
use event::Raw;
use json::Balance;

impl Run {
    pub(super) fn part(
        &mut self,
        n: usize,
        text: &str,
        context: &Context<'_>,
        is_alone: bool,
        calls: &mut FoundCalls,
    ) -> Step {
        let form = self.form;
        match &form.call[n] {
            CallPart::Mark(marks) => match self.find(marks, text) {
                // The call is complete at its last required marker; what may follow does not change
                // that.
                Match::Full(length) if self.has_begun && may_end(&form.call[n + 1..]) => {
                    self.whole(calls);
                    self.place = Place::Tail(n + 1);
                    Step::Whole(length)
                }
                Match::Full(length) => self.on(n + 1, length),
                Match::Partial => Step::More(0),
                Match::No => fail(NO_MARK),
            },
            CallPart::Maybe { marks, .. } => match self.find(marks, text) {
                Match::Full(length) => self.on(n + 1, length),
                Match::Partial => Step::More(0),
                Match::No => self.on(n + 1, 0),
            },
            part @ (CallPart::Space(_) | CallPart::Count) => {
                let is_digit = |c: &u8| c.is_ascii_digit() || *c == b' ';
                let (at, most) = match part {
                    CallPart::Count => (text.bytes().take_while(is_digit).count(), GAP),
                    _ => (space(text), LONGEST),
                };
                match self.gap(at, most) {
                    Some(failed) => failed,
                    None if at == text.len() => Step::More(at),
                    None => self.on(n + 1, at),
                }
            }
            CallPart::Name { until, header } => {
                self.name(n, until, *header, text, context, is_alone, calls)
            }
            CallPart::Author { until } => {
                let at = text.find(|c: char| {
                    !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/'))
                });
                let word = &text[..at.unwrap_or(text.len())];
                // Without a marker before it, the name of a listed tool is the one word that is not
                // prose.
                let may = !context.strict
                    || if at.is_none() {
                        context.may_become(word)
                    } else {
                        context.accepts(word)
                    };
                match at.map(|at| self.find(until, &text[at..])) {
                    _ if !may || word.len() > LONGEST => fail(NO_CALL),
                    None | Some(Match::Partial) => Step::More(0),
                    Some(Match::No) => fail(NO_CALL),
                    Some(Match::Full(_)) => self.on(n + 1, word.len()),
                }
            }
            CallPart::Id { until } => self.id(n, until, text, calls),
            CallPart::Tag(tag) => self.tag(n, tag, text, context, calls),
            CallPart::Arguments => self.json_arguments(n, text, context, calls),
            part @ (CallPart::Calls(_) | CallPart::Expression(_)) => {
                if let Engine::None = self.engine {
                    self.engine = match part {
                        CallPart::Calls(keys) => Engine::Envelope(Box::new(Envelope::new(keys))),
                        CallPart::Expression(form) => {
                            Engine::Expression(Box::new(Expression::new(form)))
                        }
                        _ => Engine::None,
                    };
                }
                let before = calls.ops.len();
                let step = match &mut self.engine {
                    Engine::Envelope(envelope) => envelope.push(text, context, calls),
                    Engine::Expression(expression) => expression.push(text, context, calls),
                    _ => fail("no engine"),
                };
                self.follow(&calls.ops[before..]);
                let Step::Done(length) = step else {
                    return step;
                };
                (self.place, self.engine) = (Place::Tail(n + 1), Engine::None);
                Step::On(length)
            }
            CallPart::Params(params) => {
                if let Engine::None = self.engine {
                    match text.as_bytes().iter().find(|c| !c.is_ascii_whitespace()) {
                        // Some models write their arguments as JSON here, too.
                        Some(b'{') => self.engine = Engine::Json(None),
                        Some(_) => {
                            let outside = Outside {
                                before: &form.call[..n],
                                behind: &form.call[n + 1..],
                                section: form.section.as_ref(),
                                headers: if form.body().is_some() {
                                    &["<|start|>"]
                                } else {
                                    &[]
                                },
                            };
                            self.engine =
                                Engine::Params(Box::new(Params::new(params, outside, &self.name)));
                        }
                        None => return Step::More(text.len()),
                    }
                }
                match &mut self.engine {
                    Engine::Params(params) => {
                        self.is_deep = true;
                        match params.push(text, context, calls) {
                            Step::Done(length) => {
                                self.engine = Engine::None;
                                self.on(n + 1, length)
                            }
                            step => step,
                        }
                    }
                    _ => self.json_arguments(n, text, context, calls),
                }
            }
            CallPart::Free(free) => self.free(n, free, text, context, calls),
        }
    }

    fn on(&mut self, part: usize, length: usize) -> Step {
        (self.place, self.waited) = (Place::Part(part), 0);
        Step::On(length)
    }

    /// Follows what an engine that reads whole calls has found.
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
    ) -> Step {
        let at = text.find(|c: char| {
            !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/' | ' '))
        });
        let at = at.unwrap_or(text.len());
        if at > LONGEST {
            return fail(NO_END);
        }
        let word = text[..at].trim_matches(' ');
        if header != NameForm::Counted && !context.may_become(word) {
            return Step::Fail(0, context.refusal_of_start(word));
        }
        // The marker after the name may have begun, so that the name is complete.
        let ends = text[at..]
            .chars()
            .next()
            .is_some_and(|c| until.iter().any(|mark| mark.starts_with(c)));
        if ends && is_alone && header == NameForm::Name && !self.has_begun && !self.has_id_after(n)
        {
            let Some(name) = context.known(word) else {
                return fail(context.refusal(word));
            };
            self.begin(name, None, calls);
        }
        if at == text.len() || self.find(until, &text[at..]) == Match::Partial {
            return Step::More(0);
        }
        let Match::Full(_) = self.find(until, &text[at..]) else {
            return fail(NO_END);
        };
        if header == NameForm::Counted
            && is_counter(word)
            && context.tools.is_some()
            && !context.lists(word)
        {
            self.nameless = Some((word.to_owned(), String::new()));
        } else if !self.has_begun {
            let (word, id) = match header {
                NameForm::Name => (word, None),
                NameForm::Counted => (counted(word, context), Some(word)),
            };
            let Some(name) = context.known(word) else {
                return fail(context.refusal(word));
            };
            if !self.has_id_after(n) {
                self.begin(name, id, calls);
            } else {
                name.clone_into(&mut self.name);
            }
        }
        self.on(n + 1, at)
    }

    /// Whether the form has the id after its part `n`, the name. The call is emitted once the id is
    /// known.
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
    ) -> Step {
        let at =
            text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | ' ')));
        let at = at.unwrap_or(text.len());
        if at > 256 {
            return fail("the id is too long");
        }
        match self.find(until, &text[at..]) {
            _ if at == text.len() => Step::More(0),
            Match::Partial => Step::More(0),
            Match::No => fail("the id is not followed by its marker"),
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
    ) -> Step {
        let open = match self.find(tag.open, text) {
            Match::Full(length) => length,
            Match::Partial => return Step::More(0),
            Match::No => return fail("the tag is missing"),
        };
        let inner = &text[open..];
        let Some(end) = start_tag::end(inner, tag.end).filter(|end| *end <= LONGEST) else {
            let wait = inner.len() <= LONGEST && start_tag::may_begin(inner, tag.end);
            return if wait {
                Step::More(0)
            } else {
                Step::Fail(0, "the start tag is invalid")
            };
        };
        // `<toolbox` does not begin with `<tool`. What would be refused while the marker of the end
        // comes is refused with it, too.
        let is_tag = |(more, _)| start_tag::may_begin(&inner[..end + more], tag.end);
        if !tag.end.char_indices().all(is_tag) {
            return fail("the start tag is invalid");
        }
        let attributes = &inner[..end];
        let (attributes, empty) = match attributes.strip_suffix('/') {
            Some(short) => (short, true),
            None => (attributes, false),
        };
        let Some(name) = start_tag::attribute(attributes, tag.name) else {
            return fail("the tag has no name");
        };
        let after = open + end + tag.end.len();
        let Some(name) = context.known(name.trim()) else {
            return Step::Fail(after, context.refusal(name.trim()));
        };
        let id = start_tag::attribute(attributes, "id");
        self.begin(name, id.as_deref(), calls);
        if empty {
            calls.arguments("{}");
            self.whole(calls);
            self.place = Place::Between;
            return Step::Whole(after);
        }
        self.on(n + 1, after)
    }

    /// The arguments as one JSON object, or nothing before the next marker.
    fn json_arguments(
        &mut self,
        n: usize,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Step {
        if !matches!(self.engine, Engine::Json(Some(_))) {
            let at = space(text);
            if let Some(failed) = self.gap(at, LONGEST) {
                return failed;
            }
            let Some(first) = text.as_bytes().get(at) else {
                return Step::More(at);
            };
            if *first != b'{' {
                let mark = self.form.call[n + 1..].iter().find_map(|part| match part {
                    CallPart::Mark(marks) | CallPart::Maybe { marks, .. } => Some(*marks),
                    _ => None,
                });
                return match self.find(mark.unwrap_or_default(), &text[at..]) {
                    Match::Full(_) if self.nameless.is_some() => fail(NO_NAME),
                    Match::Full(_) => {
                        calls.arguments("{}");
                        // The marker completes the call.
                        self.place = Place::Part(n + 1);
                        Step::On(at)
                    }
                    Match::Partial => Step::More(at),
                    Match::No => Step::Fail(at, "the arguments are not a JSON object"),
                };
            }
            self.is_deep = true;
            self.engine = Engine::Json(Some(Balance::default()));
            return Step::On(at);
        }
        let Engine::Json(Some(balance)) = &mut self.engine else {
            return fail("no engine");
        };
        let end = balance.push(text.as_bytes());
        let piece = &text[..end.unwrap_or(text.len())];
        match &mut self.nameless {
            Some((_, kept)) => kept.push_str(piece),
            None => {
                calls.arguments_until(
                    piece,
                    if end.is_some() {
                        ArgumentsEnd::Here
                    } else {
                        ArgumentsEnd::Later
                    },
                );
            }
        }
        match end {
            None => Step::More(text.len()),
            Some(end) => {
                if let Some((id, arguments)) = self.nameless.take() {
                    let Some(name) = taker(&arguments, context) else {
                        return Step::Fail(end, NO_NAME);
                    };
                    self.begin(name, Some(&id), calls);
                    calls.arguments(&arguments);
                }
                self.whole(calls);
                self.place = Place::Tail(n + 1);
                Step::Whole(end)
            }
        }
    }

    fn free(
        &mut self,
        n: usize,
        free: &'static FreeText,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Step {
        if let Engine::None = self.engine {
            self.engine = Engine::Free(Box::new(Free::new(free)));
        }
        self.is_deep = true;
        let Engine::Free(engine) = &mut self.engine else {
            return fail("no engine");
        };
        match engine.push(text, &self.name, context, calls) {
            Step::Done(length) => {
                self.whole(calls);
                self.place = Place::Tail(n + 1);
                Step::Whole(length)
            }
            step => step,
        }
    }
}

/// Whether a call may end before these parts.
fn may_end(parts: &[CallPart]) -> bool {
    parts
        .iter()
        .all(|part| matches!(part, CallPart::Space(_) | CallPart::Maybe { .. }))
}

/// The header has an id alone, and the arguments fit several tools or none.
const NO_NAME: &str = "the call has no name, and not exactly one tool takes its arguments";

/// Whether a header is an id without a name. Kimi K2 writes bare numbers
/// (<https://github.com/vllm-project/vllm/pull/46127>), and copies ids that clients made up:
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

/// The one tool that takes these arguments: its schema declares each of them, and they are valid.
fn taker<'a>(arguments: &str, context: &Context<'a>) -> Option<&'a str> {
    let (tools, object) = (context.tools?, Raw::parse(arguments).ok()?);
    let mut takers = tools.names().filter(|name| {
        let parameters = tools.parameters(name);
        object.entries().all(|(key, _)| parameters.declares(&key))
            && tools.check(name, arguments).is_ok()
    });
    takers.next().filter(|_| takers.next().is_none())
}

/// The tool's name in `functions.NAME:COUNTER`. Kimi K2 leaves out `functions.` at times
/// (<https://github.com/vllm-project/vllm/pull/27565>).
fn counted<'t>(word: &'t str, context: &Context<'_>) -> &'t str {
    let name = word.rsplit_once(':').map_or(word, |(name, _)| name);
    let short = name.rsplit_once('.').map_or(name, |(_, short)| short);
    if context.lists(name) || (context.tools.is_none() && context.known(name).is_some()) {
        name
    } else {
        short
    }
}
