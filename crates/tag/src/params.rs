//! Parses tagged parameters by the same description that they are written by.

mod head;
mod value;

use crate::calls::{ArgumentsEnd, Context, FoundCalls, ReadStep, Why};
use crate::dialect::{CallPart, ParamForm, Section, TagStyle};
use crate::mark::{Match, find, find_in, space, starts};
use crate::params::head::ParamHead;
pub(crate) use crate::params::head::element_name;
use crate::params::value::{DATA, ParamValue, entity};
use json::{JsonType, ValueType};
use std::borrow::Cow;

// The state of the parameters of one call.

/// The parameters of one call, from after its head to before its end.
///
/// A closing marker counts only if allowed text follows, so a value may contain closing markers, as
/// files that explain the format do (<https://github.com/vllm-project/vllm/pull/34919>). Models
/// also omit closing markers (<https://github.com/vllm-project/vllm/pull/37829>,
/// <https://github.com/ollama/ollama/pull/17914>). The value then ends at the next parameter that
/// begins a line, or at the closing markers of the call if another call or the end of the text
/// follows. Models write a closing marker twice
/// (<https://github.com/ggml-org/llama.cpp/issues/24807>) or malformed. Such a marker belongs to
/// the value only if the value contains the matching opening marker. Each byte is read once, except
/// for the few that may be a marker.
#[derive(Debug)]
pub(crate) struct Params {
    form: &'static ParamForm,
    outside: Outside,
    tool: String,
    state: ParamsState,
    /// The names of the parameters so far.
    given: Vec<String>,
    value: Option<ParamValue>,
    closer: Cow<'static, str>,
    /// The marker that opens the value, if it contains the name and nothing else.
    opener: String,
    /// Whether the value's next byte begins a line.
    is_line_start: bool,
    /// Whether the value cannot contain elements.
    is_flat: bool,
    /// Closing markers and the white space after them, until it is clear whether they count.
    held: String,
    /// The offsets in `held` of the value's second and later closing markers.
    repeats: Vec<usize>,
    /// Whether the closing marker in `held` is malformed: it counts only if a parameter or the end
    /// of the call follows.
    is_malformed: bool,
    /// How many parameters the value's text opens without closing them.
    open: usize,
    /// Whether the value contains a closing marker without an opening marker.
    has_stray_closer: bool,
    /// How many closing markers of the call and its section are in `held`.
    closers: usize,
    /// How many bytes were read since the first of these closing markers, or since the ones at
    /// which the value was suspended.
    behind: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParamsState {
    /// Before a parameter or the end of the parameters.
    Between,
    /// At the beginning of a value.
    Start,
    Inside,
    /// In a CDATA section of a value.
    Data,
    /// After the value's closing marker, which may count.
    Closed,
    /// After closing markers of the call in a value without its own, which may count.
    Ending,
    Done,
}

/// How much text is held back after several closing markers of the call in an open value, in bytes.
const HELD: usize = 4096;

/// What may follow the white space between two parameters.
enum Follower {
    Parameter(ParamHead),
    /// A marker that closes the call.
    CallCloser,
}

impl Params {
    /// Creates the parameters for a call of this tool.
    pub(crate) fn new(form: &'static ParamForm, outside: Outside, tool: &str) -> Params {
        Params {
            form,
            outside,
            tool: tool.to_owned(),
            state: ParamsState::Between,
            given: Vec::new(),
            value: None,
            closer: Cow::Borrowed(""),
            opener: String::new(),
            is_line_start: false,
            is_flat: true,
            held: String::new(),
            repeats: Vec::new(),
            is_malformed: false,
            open: 0,
            has_stray_closer: false,
            closers: 0,
            behind: 0,
        }
    }

    /// Whether the parameters have ended.
    pub(crate) fn is_done(&self) -> bool {
        self.state == ParamsState::Done
    }

    /// Returns the parameter or the closing marker at the beginning of the text.
    fn next(&self, text: &str) -> Match<Follower> {
        let closer = find(self.form.call_closers, text);
        if let Match::Full(_) = closer {
            return Match::Full(Follower::CallCloser);
        }
        match self.form.head(text) {
            Match::Full(head) => Match::Full(Follower::Parameter(head)),
            Match::Partial => Match::Partial,
            Match::No if closer == Match::Partial => Match::Partial,
            Match::No => Match::No,
        }
    }

    /// Whether this parameter may follow a closing marker. If every name is a tag, a value may
    /// contain such tags too, so the parameter must be declared by the tool or begin a line.
    fn may_follow(&self, head: &ParamHead, context: &Context<'_>) -> bool {
        if head.lacks_marker {
            return self.may_cut(head, context);
        }
        let TagStyle::Element { prefix } = self.form.style else {
            return true;
        };
        let parameters = self.parameters(context);
        !prefix.is_empty()
            || !parameters.is_known()
            || self.is_due(head, &parameters)
            || self.held.contains('\n')
    }

    /// Whether this parameter ends a value that has no closing marker.
    fn may_cut(&self, head: &ParamHead, context: &Context<'_>) -> bool {
        let parameters = self.parameters(context);
        let element = matches!(self.form.style, TagStyle::Element { .. });
        if parameters.is_known() {
            self.is_due(head, &parameters) && (self.is_flat || !element)
        } else {
            !element
        }
    }

    /// Whether this parameter ends a value that has no closing marker even if the parameter does
    /// not begin a line: its name and its value have markers of their own, which do not occur in
    /// prose.
    fn may_cut_line(&self, head: &ParamHead, context: &Context<'_>) -> bool {
        let is_marked = match self.form.style {
            TagStyle::Plain { value, .. } => !value.is_empty(),
            TagStyle::Element { prefix } => !prefix.is_empty() && self.is_flat,
            TagStyle::Attribute { .. } | TagStyle::Repeated { .. } => false,
        };
        is_marked && !head.lacks_marker && self.is_due(head, &self.parameters(context))
    }

    fn is_due(&self, head: &ParamHead, parameters: &ValueType<'_>) -> bool {
        parameters.declares(&head.name) && !self.given.contains(&head.name)
    }

    fn begin(&mut self, head: ParamHead, context: &Context<'_>, calls: &mut FoundCalls) {
        if self.given.contains(&head.name) {
            calls.note("a parameter is given twice");
        }
        if head.has_signs {
            calls.note_of("the name of a parameter holds signs of its tag", &head.name);
        }
        if head.lacks_marker {
            calls.note("read a value without the marker before it");
        }
        calls.end = ArgumentsEnd::Later;
        calls.arguments(if self.given.is_empty() { "{" } else { "," });
        calls.arguments(&event::quoted(&head.name));
        calls.arguments(":");
        let typed = self.parameters(context).property(&head.name);
        // A value that may be a string keeps its bytes, including the tags.
        self.is_flat = typed.allows(JsonType::String)
            || !(typed.allows(JsonType::Object) || typed.allows(JsonType::Array));
        self.value = Some(ParamValue::new(self.form, head.hint, &typed, calls));
        self.opener.clear();
        let [open, ..] = self.form.open else {
            return;
        };
        match self.form.style {
            TagStyle::Element { .. } => self.opener.extend([*open, &*head.name, ">"]),
            TagStyle::Repeated { end, .. } => self.opener.extend([*open, &*head.name, end]),
            TagStyle::Plain { .. } | TagStyle::Attribute { .. } => {}
        }
        self.given.push(head.name);
        self.closer = head.closer;
        self.is_line_start = false;
        (self.open, self.has_stray_closer) = (0, false);
        self.state = ParamsState::Start;
        if head.is_empty {
            self.end_value(context, calls);
        }
    }

    fn text(&mut self, piece: &str, calls: &mut FoundCalls) {
        if self.behind > HELD {
            self.resume(calls);
        }
        if let Some(value) = &mut self.value {
            value.text(piece, calls);
        }
        self.is_line_start = piece.ends_with('\n');
    }

    /// Continues the value, which had not ended.
    fn resume(&mut self, calls: &mut FoundCalls) {
        if let Some(value) = &mut self.value {
            value.resume(calls);
        }
    }

    /// Adds a marker of a CDATA section. A value that is held back keeps the marker until its end.
    fn raw(&mut self, mark: &str, calls: &mut FoundCalls) {
        if let Some(value) = self.value.as_mut().filter(|value| !value.is_streaming()) {
            value.data(mark, calls);
        }
    }

    fn end_value(&mut self, context: &Context<'_>, calls: &mut FoundCalls) {
        if let (Some(mut value), Some(name)) = (self.value.take(), self.given.last()) {
            value.resume(calls);
            value.end(&self.parameters(context).property(name), calls);
            if self.open > 0 || self.has_stray_closer {
                calls.note("a value holds a marker of its own dialect");
            }
        }
        self.state = ParamsState::Between;
    }

    fn close(&mut self, at: usize, calls: &mut FoundCalls) -> ReadStep {
        calls.arguments_until(
            if self.given.is_empty() { "{}" } else { "}" },
            ArgumentsEnd::Here,
        );
        self.state = ParamsState::Done;
        ReadStep::Done(at)
    }

    fn parameters<'a>(&self, context: &Context<'a>) -> ValueType<'a> {
        context
            .tools
            .map(|tools| tools.parameters(&self.tool))
            .unwrap_or_default()
    }
}

// Parses tagged parameters as they stream in, and emits them as one JSON object.

impl Params {
    /// Reads the next piece. `last` means that no text follows and the text was not cut off. After
    /// [`ReadStep::Done`] or [`ReadStep::Back`] the end of the call follows, which is not consumed.
    pub(crate) fn push(
        &mut self,
        text: &str,
        last: bool,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let mut at = 0;
        loop {
            let rest = &text[at..];
            let step = match self.state {
                ParamsState::Done => ReadStep::Done(0),
                _ if rest.is_empty() => ReadStep::More(0),
                ParamsState::Between => self.between(rest, context, calls),
                ParamsState::Start => self.start(rest, calls),
                ParamsState::Inside => self.inside(rest, context, calls),
                ParamsState::Data => self.data(rest, calls),
                ParamsState::Closed => self.closed(rest, context, calls),
                ParamsState::Ending => self.ending(rest, last, context, calls),
            };
            let step = match step {
                ReadStep::More(n) if last && self.ends_here(n == rest.len()) => {
                    self.end_at_closers(context, calls)
                }
                ReadStep::More(n) if last && n == rest.len() && self.has_ended() => {
                    self.end_value(context, calls);
                    self.close(n, calls)
                }
                step => step,
            };
            match step {
                ReadStep::On(n) => (at, self.behind) = (at + n, self.behind + n),
                ReadStep::Back(n) if n <= at => at -= n,
                ReadStep::More(n) => {
                    self.behind += n;
                    return ReadStep::More(at + n);
                }
                step => return step.after(at),
            }
        }
    }

    fn between(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> ReadStep {
        let at = space(text);
        if at == text.len() {
            return ReadStep::More(at);
        }
        match self.next(&text[at..]) {
            Match::Full(Follower::Parameter(head)) => {
                let length = head.length;
                self.begin(head, context, calls);
                ReadStep::On(at + length)
            }
            Match::Full(Follower::CallCloser) => self.close(at, calls),
            Match::Partial => ReadStep::More(at),
            Match::No => ReadStep::Fail(at, Why::NoParameter),
        }
    }

    fn start(&mut self, text: &str, calls: &mut FoundCalls) -> ReadStep {
        let marker = match self.form.style {
            TagStyle::Plain { end, value: "", .. } | TagStyle::Attribute { end, .. } => end,
            TagStyle::Plain { value, .. } => value,
            TagStyle::Element { .. } | TagStyle::Repeated { .. } => "",
        };
        if marker.len() > 1 {
            match starts(marker, text) {
                Match::Full(length) => {
                    calls.note("dropped a repeated marker before a value");
                    return ReadStep::On(length);
                }
                Match::Partial => return ReadStep::More(0),
                Match::No => {}
            }
        }
        let length = match text {
            _ if !self.form.is_on_lines => 0,
            "\r" => return ReadStep::More(0),
            _ if text.starts_with("\r\n") => 2,
            _ => usize::from(text.starts_with('\n')),
        };
        if length > 0 {
            self.is_line_start = text.as_bytes()[length - 1] == b'\n';
        }
        self.state = ParamsState::Inside;
        ReadStep::On(length)
    }

    fn inside(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> ReadStep {
        let first = self.closer.as_bytes().first().copied().unwrap_or(b'<');
        match memchr::memchr3(first, b'<', b'&', text.as_bytes()) {
            Some(0) => self.marker(text, context, calls),
            found => {
                let length = found.unwrap_or(text.len());
                self.text(&text[..length], calls);
                ReadStep::On(length)
            }
        }
    }

    /// Reads a byte that a marker may begin with.
    fn marker(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> ReadStep {
        let mut perhaps = false;
        if let Some(length) = starts(&self.closer, text).full_or(&mut perhaps) {
            return self.hold(ParamsState::Closed, &text[..length]);
        }
        let others = self
            .form
            .close
            .iter()
            .filter(|close| **close != self.closer);
        let other = first(others.map(|close| starts(close, text)));
        let malformed = first([other, malformed(&self.closer, text)].into_iter());
        if !perhaps && let Some(length) = malformed.full_or(&mut perhaps) {
            let step = self.hold(ParamsState::Closed, &text[..length]);
            self.is_malformed = true;
            return step;
        }
        if let Some(length) = find(self.form.call_closers, text).full_or(&mut perhaps) {
            if !self.is_suspended() {
                self.resume(calls);
                self.behind = 0;
            }
            self.closers = 1;
            return self.hold(ParamsState::Ending, &text[..length]);
        }
        // The first token of a closing marker with several tokens was written twice.
        let token = self
            .closer
            .find("|>")
            .map_or("", |at| &self.closer[..at + 2]);
        if !token.is_empty()
            && let Some(rest) = text.strip_prefix(token)
            && starts(&self.closer, rest).full_or(&mut perhaps).is_some()
        {
            calls.note("dropped a repeated token before a closing marker");
            return ReadStep::On(token.len());
        }
        if self.form.is_xml {
            if let Some(length) = starts(DATA.0, text).full_or(&mut perhaps) {
                self.raw(DATA.0, calls);
                self.state = ParamsState::Data;
                return ReadStep::On(length);
            }
            if self.value.as_ref().is_some_and(ParamValue::is_streaming)
                && let Some((length, meant)) = entity(text).full_or(&mut perhaps)
            {
                self.text(&meant, calls);
                self.is_line_start = false;
                return ReadStep::On(length);
            }
        }
        if self.is_line_start
            && self.is_suspended()
            && self.outside.opener(text).full_or(&mut perhaps).is_some()
        {
            return self.end_at_closers(context, calls);
        }
        // If every name is a tag, a value may contain any name as a tag.
        let is_element = match self.form.style {
            TagStyle::Element { prefix } => prefix.is_empty() || !self.is_flat,
            TagStyle::Repeated { .. } => true,
            TagStyle::Plain { .. } | TagStyle::Attribute { .. } => false,
        };
        if (self.is_line_start || !is_element)
            && let Some(head) = self.form.head(text).full_or(&mut perhaps)
        {
            if self.is_line_start && self.may_cut(&head, context)
                || self.may_cut_line(&head, context)
            {
                let length = head.length;
                self.end_value(context, calls);
                calls.note("read a value without the marker after it");
                self.begin(head, context, calls);
                return ReadStep::On(length);
            }
            // If the closing marker contains the name, only the matching opening marker counts: see
            // below.
            self.open += usize::from(self.opener.is_empty());
        }
        if !self.opener.is_empty() && starts(&self.opener, text).full_or(&mut perhaps).is_some() {
            self.open += 1;
        }
        if perhaps {
            return ReadStep::More(0);
        }
        self.text(&text[..1], calls);
        ReadStep::On(1)
    }

    fn data(&mut self, text: &str, calls: &mut FoundCalls) -> ReadStep {
        let found = text.find(DATA.1);
        let open = if text.ends_with("]]") {
            2
        } else {
            usize::from(text.ends_with(']'))
        };
        let length = found.unwrap_or(text.len() - open);
        if let Some(value) = &mut self.value {
            value.data(&text[..length], calls);
        }
        if found.is_none() {
            return ReadStep::More(length);
        }
        self.raw(DATA.1, calls);
        self.state = ParamsState::Inside;
        self.is_line_start = false;
        ReadStep::On(length + DATA.1.len())
    }
}

// Handles closing markers in a value: some end it, and others are its text.

impl Params {
    fn closed(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> ReadStep {
        let at = space(text);
        self.held.push_str(&text[..at]);
        if at == text.len() {
            return ReadStep::More(at);
        }
        match self.next(&text[at..]) {
            Match::Full(Follower::CallCloser) => {
                self.end_closed(context, calls);
                return self.close(at, calls);
            }
            Match::Full(Follower::Parameter(head)) if self.may_follow(&head, context) => {
                let length = head.length;
                self.end_closed(context, calls);
                self.begin(head, context, calls);
                return ReadStep::On(at + length);
            }
            Match::Partial => return ReadStep::More(at),
            _ => {}
        }
        match starts(&self.closer, &text[at..]) {
            Match::Full(length) => {
                self.repeats.push(self.held.len());
                self.held.push_str(&text[at..at + length]);
                return ReadStep::On(at + length);
            }
            Match::Partial => return ReadStep::More(at),
            Match::No => {}
        }
        // `</parameters>` is not a damaged closing marker; a line end or a tag after the text shows
        // a damaged one.
        self.has_stray_closer |=
            self.is_malformed && (at > 0 || text.starts_with('<')) && !self.held.contains('>');
        self.release(calls);
        ReadStep::On(at)
    }

    /// Ends the value at the closing markers in `held`: those with an opening marker in the value
    /// are its text, one marker ends it, and the others are dropped.
    fn end_closed(&mut self, context: &Context<'_>, calls: &mut FoundCalls) {
        let own = self.open.min(self.repeats.len());
        if own > 0 {
            let text = self.held[..self.repeats[own - 1]].to_owned();
            self.text(&text, calls);
            self.open -= own;
        }
        let is_repeated = own < self.repeats.len();
        self.end_value(context, calls);
        if self.is_malformed {
            calls.note_of(
                "read a malformed closing marker",
                self.held.trim_ascii_end(),
            );
        }
        if is_repeated {
            calls.note("dropped a repeated closing marker");
        }
    }

    /// Reads after closing markers of the call, in a value that contains them or lacks its own
    /// closing marker. They close the call if the text ends or another call begins. Before other
    /// text a single closing marker belongs to the value. Several, such as those of call and
    /// section, may be the end of the call: the value is held back, for at most [`HELD`] bytes,
    /// until its closing marker, another call or the end of the text decides.
    fn ending(
        &mut self,
        text: &str,
        last: bool,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let at = space(text);
        self.held.push_str(&text[..at]);
        if at == text.len() {
            return ReadStep::More(at);
        }
        let rest = &text[at..];
        match (self.outside.closer(rest, last), self.outside.opener(rest)) {
            (Match::Full(length), _) => {
                self.held.push_str(&rest[..length]);
                self.closers += 1;
                return ReadStep::On(at + length);
            }
            (_, Match::Full(_)) => return self.end_at_closers(context, calls),
            (Match::Partial, _) | (_, Match::Partial) if !last => return ReadStep::More(at),
            _ => {}
        }
        if let Some(value) = self.value.as_mut().filter(|_| self.closers > 1) {
            value.suspend();
        }
        self.release(calls);
        ReadStep::On(at)
    }

    /// Ends a value without a closing marker: the end of the call begins with the first of its
    /// closing markers in `held`.
    fn end_at_closers(&mut self, context: &Context<'_>, calls: &mut FoundCalls) -> ReadStep {
        if let Some(value) = &mut self.value {
            value.cut();
        }
        self.end_value(context, calls);
        self.close(0, calls);
        ReadStep::Back(self.behind)
    }

    /// Whether the call ends with the text; `all` means that all of the text was read.
    fn ends_here(&self, all: bool) -> bool {
        match self.state {
            ParamsState::Ending => all || self.is_suspended(),
            ParamsState::Inside => self.is_suspended(),
            _ => false,
        }
    }

    /// Whether the text may end here, after a parameter.
    fn has_ended(&self) -> bool {
        match self.state {
            ParamsState::Between => !self.given.is_empty(),
            ParamsState::Closed => true,
            _ => false,
        }
    }

    fn is_suspended(&self) -> bool {
        self.behind <= HELD && self.value.as_ref().is_some_and(ParamValue::is_suspended)
    }

    /// Begins to hold back text at a closing marker that may count.
    fn hold(&mut self, state: ParamsState, closer: &str) -> ReadStep {
        self.held.clear();
        self.repeats.clear();
        self.is_malformed = false;
        self.held.push_str(closer);
        self.state = state;
        ReadStep::On(closer.len())
    }

    /// Adds the held-back text to the value.
    fn release(&mut self, calls: &mut FoundCalls) {
        let held = std::mem::take(&mut self.held);
        self.text(&held, calls);
        self.held = held;
        if self.state == ParamsState::Closed && !self.is_malformed {
            let closers = 1 + self.repeats.len();
            self.has_stray_closer |= closers > self.open;
            self.open = self.open.saturating_sub(closers);
        }
        self.state = ParamsState::Inside;
    }
}

/// The maximum length of a name in a malformed closing marker, in bytes.
const LONGEST: usize = 64;

/// Matches a malformed closing marker at the beginning of `text`: without its last character, or
/// with the name of the parameter (`</parameter=a>`).
fn malformed(closer: &str, text: &str) -> Match {
    let Some(stem) = closer.strip_suffix('>').filter(|_| closer.contains("</")) else {
        return Match::No;
    };
    match starts(stem, text) {
        Match::Full(_) => {}
        found => return found,
    }
    let rest = &text[stem.len()..];
    let name = match rest.strip_prefix('=') {
        Some(name) => 1 + name.find(['>', '<', '\n']).unwrap_or(name.len()),
        None => 0,
    };
    match rest[name..].chars().next() {
        _ if name > LONGEST => Match::No,
        None => Match::Partial,
        Some('>') => Match::Full(stem.len() + name + 1),
        Some(_) => Match::Full(stem.len() + name),
    }
}

// The markers outside the parameters of a call.

/// A form's markers around its parameters: those that close the call and its section, and those
/// that open another call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    /// The parts of the call before its parameters.
    pub before: &'static [CallPart],
    /// The parts of the call after its parameters.
    pub behind: &'static [CallPart],
    pub section: Option<&'static Section>,
    /// The markers that begin the next message's header, if calls are messages.
    pub headers: &'static [&'static str],
}

impl Outside {
    /// Matches the marker that closes the call or its section at the beginning of `text`. `last`
    /// means that no text follows.
    pub(crate) fn closer(&self, text: &str, last: bool) -> Match {
        let find = |marks, text| find_in(marks, text, last);
        let marks = self.behind.iter().filter_map(CallPart::marks);
        let parts = marks.map(|marks| find(marks, text));
        first(parts.chain(self.section.map(|section| find(section.close, text))))
    }

    /// Matches the marker that opens a section or a call at the beginning of `text`.
    pub(crate) fn opener(&self, text: &str) -> Match {
        let parts = self.before.iter().map(|part| match part {
            // A marker that is a word also occurs in prose.
            CallPart::Mark(marks)
                if !marks
                    .iter()
                    .any(|mark| mark.starts_with(char::is_alphanumeric)) =>
            {
                find(marks, text)
            }
            CallPart::Tag(tag) => first(tag.open.iter().map(|open| match starts(open, text) {
                // `<functions>` does not begin with `<function`.
                Match::Full(length) => match text[length..].chars().next() {
                    Some(next) if next.is_whitespace() => Match::Full(length),
                    Some(_) => Match::No,
                    None => Match::Partial,
                },
                found => found,
            })),
            _ => Match::No,
        });
        // The markers after the name, such as `>`, do not open a call.
        let named = self
            .before
            .iter()
            .position(|part| matches!(part, CallPart::Name { .. } | CallPart::Tag(_)));
        let parts = parts.take(named.map_or(usize::MAX, |at| at + 1));
        first(
            parts
                .chain(self.section.map(|section| find(section.open, text)))
                .chain([find(self.headers, text)]),
        )
    }
}

/// Returns the first match that is not [`Match::No`].
fn first(mut found: impl Iterator<Item = Match>) -> Match {
    found.find(|found| *found != Match::No).unwrap_or(Match::No)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Context;
    use crate::calls::FoundCalls;
    use crate::calls::Op;
    use crate::calls::ReadStep;
    use crate::dialect::ParamForm;
    use crate::dialect::TagStyle;
    use json::ToolList;
    use serde_json::Value;
    use serde_json::json;
    use std::sync::LazyLock;

    /// Returns the form of parameters with this notation, in a call that these markers end.
    fn form(notation: &str, call_closers: &'static [&'static str]) -> ParamForm {
        ParamForm {
            call_closers,
            ..crate::notation::parameter(notation).expect(notation)
        }
    }

    const CLOSERS: &[&str] = &["</function>", "</tool_call>"];
    type TestForm = LazyLock<ParamForm>;

    static QWEN: TestForm =
        TestForm::new(|| form("⏎<parameter={name}>⏎{value}⏎</parameter>", CLOSERS));
    static MIMO: TestForm =
        TestForm::new(|| form("⏎<parameter={name}>{value}</parameter>", CLOSERS));
    static INVOKE: TestForm = TestForm::new(|| ParamForm {
        open: &["<parameter", "<atem:parameter"],
        close: &["</parameter>", "</atem:parameter>"],
        ..form(
            "⏎<parameter name=\"{name}\">{value}</parameter>",
            &["</invoke>", "</atem:invoke>"],
        )
    });
    static ENTITIES: TestForm = TestForm::new(|| ParamForm {
        is_xml: true,
        ..*INVOKE
    });
    static MINICPM: TestForm =
        TestForm::new(|| form("<param name=\"{name}\">{xml}</param>", CLOSERS));
    static DSML: TestForm = TestForm::new(|| {
        form(
            "⏎<｜DSML｜ parameter name=\"{name}\" string=\"{is_string}\">{value}</｜DSML｜ parameter>",
            &["</｜DSML｜ invoke>"],
        )
    });
    static XTML: TestForm = TestForm::new(|| {
        form(
            "<|open|>argument key=\"{name}\" type=\"{type}\"<|sep|>{value}<|close|>argument<|sep|>",
            &["<|close|>call<|sep|>"],
        )
    });
    static GLM: TestForm = TestForm::new(|| {
        form(
            "⏎<arg_key>{name}</arg_key>⏎<arg_value>{value}</arg_value>",
            &["</tool_call>"],
        )
    });
    static IFM: TestForm = TestForm::new(|| {
        form(
            "<ifm|arg_key>{name}</ifm|arg_key>¦<ifm|arg_type>{type}</ifm|arg_type>¦<ifm|arg_value>{value}</ifm|arg_value>",
            &["</ifm|tool_call>"],
        )
    });
    static ELEMENTS: TestForm =
        TestForm::new(|| form("⏎<{name}>{value}</{name}>", &["</parameters>"]));
    static MINIMAX: TestForm = TestForm::new(|| {
        form(
            "]<]minimax[>[<{name}>{value}]<]minimax[>[</{name}>",
            &["]<]minimax[>[</invoke>"],
        )
    });

    static BRACKETS: TestForm =
        TestForm::new(|| form("⏎[[{name}]]⏎{value}⏎[[/{name}]]", &["[[/call]]"]));

    /// Parameters alone: only the closing markers of their form follow.
    const OUTSIDE: Outside = Outside {
        before: &[],
        behind: &[],
        section: None,
        headers: &[],
    };

    const FORMS: [&TestForm; 12] = [
        &QWEN, &MIMO, &INVOKE, &ENTITIES, &MINICPM, &DSML, &XTML, &GLM, &IFM, &ELEMENTS, &MINIMAX,
        &BRACKETS,
    ];

    /// The tool of the tests: `s` is a string, `n` a number, and so on.
    fn tools() -> ToolList {
        let point = json!({"type": "object", "properties": {"x": {"type": "integer"}, "t": {"type": "string"}}});
        let properties = json!({
            "s": {"type": "string"}, "s2": {"type": "string"}, "n": {"type": "number"}, "i": {"type": "integer"},
            "b": {"type": "boolean"}, "u": {"type": ["string", "null"]}, "o": point, "nil": {"type": "null"},
            "l": {"type": "array", "items": {"type": "integer"}}, "lo": {"type": "array", "items": point},
        });
        let schema =
            json!([{"name": "f", "parameters": {"type": "object", "properties": properties}}]);
        ToolList::read(&schema.to_string()).unwrap()
    }

    /// Passes a text to a reader as the parser does, in pieces that end at these offsets.
    fn read(
        form: &'static ParamForm,
        tools: Option<&ToolList>,
        text: &str,
        cuts: impl Iterator<Item = usize>,
    ) -> String {
        let context = Context {
            tools,
            strict: false,
        };
        let mut params = Params::new(form, OUTSIDE, "f");
        let mut calls = FoundCalls::default();
        let mut from = 0;
        let mut step = ReadStep::More(0);
        for end in cuts.chain([text.len()]) {
            step = params.push(&text[from..end], false, &context, &mut calls);
            match step {
                ReadStep::More(taken) => from += taken,
                ReadStep::Done(taken) => {
                    from += taken;
                    break;
                }
                _ => break,
            }
        }
        if let ReadStep::More(_) = step {
            step = params.push(&text[from..], true, &context, &mut calls);
            if let ReadStep::Done(taken) = step {
                from += taken;
            }
        }
        if let ReadStep::Back(taken) = step {
            (from, step) = (from - taken, ReadStep::Done(0));
        }
        let mut said = String::new();
        let mut at = 0;
        for op in &calls.ops {
            match op {
                Op::Arguments(end, _) => {
                    said.push_str(&calls.text[at..*end]);
                    at = *end;
                }
                Op::Note(end, _, note) => {
                    said.push_str(&format!("<{}>", note.split_once(' ').unwrap().1));
                    at = *end;
                }
                _ => panic!("{op:?}"),
            }
        }
        match step {
            ReadStep::Done(_) => {
                assert!(
                    said.contains('<') || serde_json::from_str::<Value>(&said).is_ok(),
                    "{said}"
                );
                format!("{said} | {}", &text[from..])
            }
            ReadStep::Fail(_, why) => format!("{said} fails: {why}"),
            _ => format!("{said} …"),
        }
    }

    /// Returns the outcome, which must be the same for every split.
    fn outcome(form: &'static ParamForm, tools: Option<&ToolList>, text: &str) -> String {
        let whole = read(form, tools, text, std::iter::empty());
        let inner = || text.char_indices().map(|(at, _)| at).skip(1);
        for cut in inner() {
            assert_eq!(
                read(form, tools, text, [cut].into_iter()),
                whole,
                "{text} cut at {cut}"
            );
        }
        assert_eq!(
            read(form, tools, text, inner()),
            whole,
            "{text} char by char"
        );
        whole
    }

    #[test]
    fn what_is_read() {
        let tools = tools();
        let not = "fails: neither a parameter nor the end of the call follows";
        for (form, text, expected) in [
        // Values and their types.
        (&QWEN, "\n<parameter=s>\n1\n</parameter>\n</function>x", r#"{"s":"1"} | </function>x"#.to_owned()),
        (&QWEN, "\n</function>", "{} | </function>".into()),
        (&QWEN, "</function>", "{} | </function>".into()),
        (
            &QWEN,
            "<parameter=s>\n\n a \n\n</parameter>\n<parameter=n>\n1.50\n</parameter></tool_call>",
            r#"{"s":"\n a \n","n":1.50} | </tool_call>"#.into(),
        ),
        (&QWEN, "<parameter=s>\r\na\r\n</parameter></function>", r#"{"s":"a"} | </function>"#.into()),
        (&QWEN, "<parameter=s>\ra\r</parameter></function>", r#"{"s":"\ra\r"} | </function>"#.into()),
        (&QWEN, "<parameter=s>\n</parameter></function>", r#"{"s":""} | </function>"#.into()),
        (&QWEN, "<parameter=s>\n\n</parameter></function>", r#"{"s":""} | </function>"#.into()),
        (&QWEN, "<parameter = \"s\" >a</parameter></function>", r#"{"s":"a"} | </function>"#.into()),
        (&MIMO, "<parameter=s>\na\n</parameter></function>", r#"{"s":"\na\n"} | </function>"#.into()),
        (&MIMO, "<parameter=u>null</parameter></function>", r#"{"u":null} | </function>"#.into()),
        (&MIMO, "<parameter=b> True </parameter></function>", r#"{"b":true} | </function>"#.into()),
        (
            &MIMO,
            "<parameter=i>ten</parameter><parameter=s>a</parameter></function>",
            r#"{"i":"ten"<value is not of the type that its parameter asks for and stays a string>,"s":"a"} | </function>"#
                .into(),
        ),
        (&MIMO, "<parameter=l>[1, 2]</parameter></function>", r#"{"l":[1, 2]} | </function>"#.into()),
        (&MIMO, "<parameter=o>{'t': None}</parameter></function>", r#"{"o":{"t":null}} | </function>"#.into()),
        (
            &MIMO,
            "<parameter=s>\u{1b}[0m\u{7f}\u{9b}\"\\\t日本😀é</parameter></function>",
            r#"{"s":"\u001b[0m\u007f\u009b\"\\\t日本😀é"} | </function>"#.into(),
        ),
        (
            &MIMO,
            "<parameter=zz>1</parameter><parameter=zz>2</parameter></function>",
            r#"{"zz":"1"<parameter is given twice>,"zz":"2"} | </function>"#.into(),
        ),
        // Closers in values.
        (&QWEN, "<parameter=s>\nUse </parameter> to close\n</parameter>\n</function>", {
            r#"{"s":"Use </parameter> to close"<value holds a marker of its own dialect>} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s>a</parameter> </param</parameter></function>", {
            r#"{"s":"a</parameter> </param"<value holds a marker of its own dialect>} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s>a </function> b<parameter=n>1</tool_call></parameter></function>", {
            r#"{"s":"a </function> b<parameter=n>1</tool_call>"<value holds a marker of its own dialect>} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s><<</parameter></parameter></parameter>\n</function>", {
            r#"{"s":"<<"<a repeated closing marker>} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s>a</parameter> x <y>\n<parameter=s>\n</parameter></function>", {
            r#"{"s":"a</parameter> x <y>\n<parameter=s>\n"<value holds a marker of its own dialect>} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s>a</parameter\n<paramete=n>1</parameter></function>", {
            r#"{"s":"a</parameter\n<paramete=n>1"<value holds a marker of its own dialect>} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s>a</parameters>b</parameter></function>", {
            r#"{"s":"a</parameters>b"} | </function>"#.into()
        }),
        // Closers that are missing.
        (&QWEN, "<parameter=s>\na\n<parameter=n>\n1\n</parameter>\n</function>", {
            r#"{"s":"a"<a value without the marker after it>,"n":1} | </function>"#.into()
        }),
        (&QWEN, "<parameter=s>\na\n<parameter=zz>\n1\n</parameter>\n</function>", {
            r#"{"s":"a\n<parameter=zz>\n1"<value holds a marker of its own dialect>} | </function>"#.into()
        }),
        (&QWEN, "<parameter=n>\n1\n</function>", r#"{"n":1} | </function>"#.into()),
        (&QWEN, "<parameter=s>\na", r#"{"s":"a …"#.into()),
        (&QWEN, "text", format!(" {not}")),
        (&QWEN, "<parameter=>1</parameter></function>", format!(" {not}")),
        (&QWEN, "<parameter=s>1</parameter></function", r#"{"s":"1 …"#.into()),
        // Attributes.
        (&INVOKE, "<parameter name='s' x=\"1>2\">a</parameter>\n<parameter name=n>1</parameter></invoke>", {
            r#"{"s":"a","n":1} | </invoke>"#.into()
        }),
        (&INVOKE, "<atem:parameter name=\"s\">a</parameter></atem:parameter>\n</atem:invoke>", {
            r#"{"s":"a"<a malformed closing marker><a repeated closing marker>} | </atem:invoke>"#.into()
        }),
        (&INVOKE, "<parameter name=\"a&lt;b\">&lt;</parameter></invoke>", r#"{"a<b":"&lt;"} | </invoke>"#.into()),
        (&INVOKE, "<parameter name=\"s\"/>\n<parameter name=\"s2\"></parameter></invoke>", {
            r#"{"s":"","s2":""} | </invoke>"#.into()
        }),
        (&INVOKE, "<parameters name=\"s\">a</parameter></invoke>", format!(" {not}")),
        (&ENTITIES, "<parameter name=\"s\">a &lt;&amp;&#x1F600; &no &; & <![CDATA[&lt;]]></parameter></invoke>", {
            "{\"s\":\"a <&\u{1f600} &no &; & &lt;\"} | </invoke>".into()
        }),
        (&ENTITIES, "<parameter name=\"o\">{\"t\":<![CDATA[\"&lt;\"]]>, &quot;x&quot;:1}</parameter></invoke>", {
            r#"{"o":{"t":"&lt;", "x":1}} | </invoke>"#.into()
        }),
        (&MINICPM, "<param name=\"s\"><![CDATA[a</param></function>]]]></param></function>", {
            r#"{"s":"a</param></function>]"} | </function>"#.into()
        }),
        (&MINICPM, "<param name=\"n\"><![CDATA[1]]></param></function>", r#"{"n":1} | </function>"#.into()),
        // Types in the tag.
        (&DSML, "\n<｜DSML｜ parameter name=\"n\" string=\"true\">1</｜DSML｜ parameter>\n</｜DSML｜ invoke>", {
            r#"{"n":"1"} | </｜DSML｜ invoke>"#.into()
        }),
        (&DSML, "<｜DSML｜ parameter name=\"s\" string=\"false\">[1, {}]</｜DSML｜ parameter></｜DSML｜ invoke>", {
            r#"{"s":[1, {}]} | </｜DSML｜ invoke>"#.into()
        }),
        (&DSML, "<｜DSML｜ parameter name=\"l\">[1]</｜DSML｜ parameter></｜DSML｜ invoke>", {
            r#"{"l":[1]} | </｜DSML｜ invoke>"#.into()
        }),
        (
            &XTML,
            "<|open|>argument key=\"q\" type=\"number\"<|sep|>1.0<|close|>argument<|sep|><|open|>argument \
             key=\"a&amp;&quot;\" type=\"string\"<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|>",
            r#"{"q":1.0,"a&\"":"1"} | <|close|>call<|sep|>"#.into(),
        ),
        (
            &XTML,
            "<|open|>argument key=\"q\" type=\"object\"<|sep|>{<|close|>argument<|sep|><|close|>call<|sep|>",
            r#"{"q":"{"<value is not of the type that its parameter asks for and stays a string>} | <|close|>call<|sep|>"#
                .into(),
        ),
        // Pairs.
        (&GLM, "\n<arg_key>s</arg_key>\n<arg_value>1\n</arg_value>\n<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>", {
            r#"{"s":"1\n","n":1} | </tool_call>"#.into()
        }),
        (&GLM, "<arg_key>s</arg_key><arg_value>a</arg_value><arg_key>x</arg_value></tool_call>", {
            "{\"s\":\"a</arg_value><arg_key>x\"<value holds a marker of its own dialect>} | </tool_call>".into()
        }),
        (
            &IFM,
            "<ifm|arg_key>q</ifm|arg_key><ifm|arg_type>integer</ifm|arg_type><ifm|arg_value>1</ifm|arg_value>\
             <ifm|arg_key>n</ifm|arg_key><ifm|arg_value>2</ifm|arg_value></ifm|tool_call>",
            r#"{"q":1,"n":2} | </ifm|tool_call>"#.into(),
        ),
        // Markers with the name.
        (&BRACKETS, "\n[[s]]\nx [[n]] [[/n]]\n[[/s]]\n[[n]]1[[/n]]\n[[/call]]x", {
            r#"{"s":"x [[n]] [[/n]]","n":1} | [[/call]]x"#.into()
        }),
        (&BRACKETS, "[[s]]a[[/s2]] [[/call]][[/s]][[/call]]", r#"{"s":"a[[/s2]] [[/call]]"} | [[/call]]"#.into()),
        (&BRACKETS, "[[s]]\na\n[[n]]1[[/n]][[/call]]", r#"{"s":"a"<a value without the marker after it>,"n":1} | [[/call]]"#.into()),
        (&BRACKETS, "[[/s]]a[[//s]][[/call]]", format!(" {not}")),
        (&BRACKETS, "[[]]a[[/]][[/call]]", format!(" {not}")),
        // Closers too many, of another spelling and malformed ones, and markers that are missing.
        (&QWEN, "<parameter=s>\na\n</parameter>\n</parameter>\n<parameter=n>\n1\n</parameter>\n</function>", {
            r#"{"s":"a"<a repeated closing marker>,"n":1} | </function>"#.into()
        }),
        (&QWEN, "<parameter=s>\n<parameter=x>\n1\n</parameter>\n</parameter>\n</function>", {
            r#"{"s":"<parameter=x>\n1\n</parameter>"} | </function>"#.into()
        }),
        (&QWEN, "<parameter=s>\na\n</parameter\n<parameter=n>\n1\n</parameter=n>\n</function>", {
            r#"{"s":"a"<a malformed closing marker>,"n":1<a malformed closing marker>} | </function>"#.into()
        }),
        (&QWEN, "<parameter=s>\na </parameter=x> b\n</parameter>\n</function>", {
            r#"{"s":"a </parameter=x> b"} | </function>"#.into()
        }),
        (&GLM, "<arg_key>s</arg_key>a b</arg_value>\n<arg_key>n</arg_key>1</arg_value></tool_call>", {
            r#"<a value without the marker before it>{"s":"a b"<a value without the marker before it>,"n":1} | </tool_call>"#.into()
        }),
        (&GLM, "<arg_key>s<arg_value>a</arg_value></tool_call>", {
            r#"<a value without the marker before it>{"s":"a"} | </tool_call>"#.into()
        }),
        (&GLM, "<arg_key>s</arg_key><arg_value>a<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>", {
            r#"{"s":"a"<a value without the marker after it>,"n":1} | </tool_call>"#.into()
        }),
        (&GLM, "<arg_key>s</arg_key></tool_call>", format!(" {not}")),
        // Elements.
        (&ELEMENTS, "\n<s>a<b>1</b></s>\n<n>1</n>\n</parameters>", r#"{"s":"a<b>1</b>","n":1} | </parameters>"#.into()),
        (&ELEMENTS, "<s><p>x</s><p>y</p></s><n>1</n></parameters>", {
            r#"{"s":"<p>x</s><p>y</p>"<value holds a marker of its own dialect>,"n":1} | </parameters>"#.into()
        }),
        (&ELEMENTS, "<o>\n<x>1</x>\n<t> <x>2</x></t>\n</o>\n<l><item>1</item><item>2</item></l></parameters>", {
            r#"{"o":{"x":1,"t":" <x>2</x>"},"l":[1,2]} | </parameters>"#.into()
        }),
        (&ELEMENTS, "<o>{\"x\": 1}</o><l></l></parameters>", r#"{"o":{"x": 1},"l":[]} | </parameters>"#.into()),
        (&ELEMENTS, "<s>a\n<n>1</n></parameters>", r#"{"s":"a\n"<a value without the marker after it>,"n":1} | </parameters>"#.into()),
        (
            &MINIMAX,
            "]<]minimax[>[<lo>]<]minimax[>[<item>]<]minimax[>[<x>1]<]minimax[>[</x>]<]minimax[>[</item>\
             ]<]minimax[>[</lo>]<]minimax[>[<s>]<]</s>]<]minimax[>[</s>]<]minimax[>[</invoke>",
            r#"{"lo":[{"x":1}],"s":"]<]</s>"} | ]<]minimax[>[</invoke>"#.into(),
        ),
    ] {
        assert_eq!(outcome(form, Some(&tools), text), expected, "{text}");
    }
    }

    #[test]
    fn nothing_is_known_of_the_tool() {
        for (form, text, expected) in [
            (
                &QWEN,
                "<parameter=a>\n1\n<parameter=b>\nnull\n</function>",
                r#"{"a":"1"<a value without the marker after it>,"b":"null"} | </function>"#,
            ),
            (
                &DSML,
                "<｜DSML｜ parameter name=\"a\" string=\"false\">1</｜DSML｜ parameter></｜DSML｜ invoke>",
                { r#"{"a":1} | </｜DSML｜ invoke>"# },
            ),
            (
                &ELEMENTS,
                "<a>\n<b>1</b>\n</a><c>2</c></parameters>",
                r#"{"a":"\n<b>1</b>\n","c":"2"} | </parameters>"#,
            ),
        ] {
            assert_eq!(outcome(form, None, text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let tools = tools();
        for arguments in [
            json!({}),
            json!({"s": "", "s2": "a\nb  "}),
            json!({"s": "\n\n", "u": "x", "n": 1.5}),
            json!({"n": 1, "b": false, "nil": null, "l": [1, 2], "lo": [{"x": 1, "t": "<x>"}], "o": {"x": 3, "t": ""}}),
            json!({"s": "日本 <b>&amp;</b> \"q\" \u{1b}", "o": {"a b": 1}, "l": []}),
        ] {
            for form in FORMS {
                let mut text = String::new();
                form.write(arguments.as_object().unwrap(), &mut text);
                let closer = form.call_closers[0];
                text.push_str(closer);
                let said = outcome(form, Some(&tools), &text);
                let json = said
                    .strip_suffix(&format!(" | {closer}"))
                    .unwrap_or_else(|| panic!("{text}: {said}"));
                let value: Value =
                    serde_json::from_str(json).unwrap_or_else(|e| panic!("{said}: {e}"));
                assert_eq!(value, arguments, "{text}");
            }
        }
    }

    #[test]
    fn a_head_that_never_ends_is_text() {
        let long = "x".repeat(5000);
        let text = format!(
            "<parameter=s>a</parameter><parameter name=\"{long}\n<parameter={long}</parameter></function>"
        );
        let expected = format!(
            "{{\"s\":\"a</parameter><parameter name=\\\"{long}\\n<parameter={long}\"<value holds a marker of its own dialect>}} | </function>"
        );
        let tools = tools();
        for pieces in [text.len(), 4096, 997, 64] {
            let cuts = (1..text.len() / pieces).map(|n| n * pieces);
            assert_eq!(read(&MIMO, Some(&tools), &text, cuts), expected);
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

        /// The reader never panics, and its result does not depend on splits.
        #[test]
        fn any_mixture_of_markers(form in 0..FORMS.len(), known: bool, words in proptest::collection::vec(0usize..40, 0..24)) {
            let form = FORMS[form];
            let mut parts = vec![
                "a", "1", "\n", "\r", "\r\n", " ", "<", ">", "</", "]", "]]>", "<![CDATA[", "&lt;", "&", "\"", "'", "{", "é", "😀", "/>",
                "\u{85}", "=", "s", "n", "<s>", "<o>",
            ];
            parts.extend(form.call_closers);
            let mut written = String::new();
            form.write(json!({"s": "x", "n": 1}).as_object().unwrap(), &mut written);
            parts.push(&written);
            parts.extend(form.open.iter().chain(form.close));
            parts.push("<parameter=s>");
            match form.style {
                TagStyle::Plain { end, value, .. } => parts.extend([end, value]),
                TagStyle::Attribute { end, name } => parts.extend([end, name]),
                TagStyle::Element { prefix } => parts.extend([prefix, "</s>", "</o>"]),
                TagStyle::Repeated { end, close } => parts.extend([end, close.0, close.1]),
            }
            let start = written.find('x').unwrap_or_default();
            let text: String = std::iter::once(&written[..start]).chain(words.iter().map(|n| parts[n % parts.len()])).collect();
            let tools = tools();
            outcome(form, known.then_some(&tools), &text);
        }
    }
}
