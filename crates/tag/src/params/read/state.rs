//! What was read of the parameters of one call.

use crate::calls::{ArgumentsEnd, Context, FoundCalls, Step};
use crate::dialect::params::{ParamForm, Style};
use crate::mark::{Match, find};
use crate::params::head::ParamHead;
use crate::params::outside::Outside;
use crate::params::value::ParamValue;
use json::{JsonType, ValueType};
use std::borrow::Cow;

/// The parameters of one call, from after its head to before its end.
///
/// A closer counts only before text that may follow it, so that a value may hold closers, as files
/// that explain the format do (<https://github.com/vllm-project/vllm/pull/34919>). Models leave out
/// closers, too (<https://github.com/vllm-project/vllm/pull/37829>,
/// <https://github.com/ollama/ollama/pull/17914>): then the next parameter ends the value where it
/// begins a line, and so do the closers of the call where another call or the end of the text
/// follows. Each byte is read once, but for the few that may be a marker.
#[derive(Debug)]
pub(crate) struct Params {
    pub(super) form: &'static ParamForm,
    pub(super) outside: Outside,
    pub(super) tool: String,
    pub(super) state: ParamsState,
    /// The names of the parameters so far.
    pub(super) given: Vec<String>,
    pub(super) value: Option<ParamValue>,
    pub(super) closer: Cow<'static, str>,
    /// The value's next byte begins a line.
    pub(super) is_line_start: bool,
    /// The value cannot hold elements.
    pub(super) is_flat: bool,
    /// Closers and the white space after them, until it is clear whether they count.
    pub(super) held: String,
    /// How many closers of the call and its section are in `held`.
    pub(super) closers: usize,
    /// How many bytes were read since the first of these closers, or since those at which the value
    /// was suspended.
    pub(super) behind: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParamsState {
    /// Before a parameter or the end.
    Between,
    /// At the beginning of a value.
    Start,
    Inside,
    /// In a CDATA section.
    Data,
    /// After the value's closer, which may count.
    Closed,
    /// After closers of the call in a value without its own, which may count.
    Ending,
    Done,
}

/// How much text is held back after several closers of the call in an open value, in bytes.
pub(super) const HELD: usize = 4096;

/// What may follow white space between two parameters.
pub(super) enum Follower {
    Parameter(ParamHead),
    /// A marker that closes the call.
    CallCloser,
}

impl Params {
    /// The parameters of a call of this tool.
    pub fn new(form: &'static ParamForm, outside: Outside, tool: &str) -> Params {
        Params {
            form,
            outside,
            tool: tool.to_owned(),
            state: ParamsState::Between,
            given: Vec::new(),
            value: None,
            closer: Cow::Borrowed(""),
            is_line_start: false,
            is_flat: true,
            held: String::new(),
            closers: 0,
            behind: 0,
        }
    }

    /// Whether the parameters have ended.
    pub fn is_done(&self) -> bool {
        self.state == ParamsState::Done
    }

    /// The parameter or the closer that the text begins with.
    pub(super) fn next(&self, text: &str) -> Match<Follower> {
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

    /// Whether this parameter may follow a closer. Where each name is a tag, a value may hold such
    /// tags, too: the parameter must be one of the tool or begin a line.
    pub(super) fn may_follow(&self, head: &ParamHead, context: &Context<'_>) -> bool {
        let Style::Element { prefix } = self.form.style else {
            return true;
        };
        let parameters = self.parameters(context);
        !prefix.is_empty()
            || !parameters.is_known()
            || self.is_due(head, &parameters)
            || self.held.contains('\n')
    }

    /// Whether this parameter ends a value that has no closer.
    pub(super) fn may_cut(&self, head: &ParamHead, context: &Context<'_>) -> bool {
        let parameters = self.parameters(context);
        let element = matches!(self.form.style, Style::Element { .. });
        if parameters.is_known() {
            self.is_due(head, &parameters) && (self.is_flat || !element)
        } else {
            !element
        }
    }

    pub(super) fn is_due(&self, head: &ParamHead, parameters: &ValueType<'_>) -> bool {
        parameters.declares(&head.name) && !self.given.contains(&head.name)
    }

    pub(super) fn begin(&mut self, head: ParamHead, context: &Context<'_>, calls: &mut FoundCalls) {
        if self.given.contains(&head.name) {
            calls.note("a parameter is given twice");
        }
        calls.end = ArgumentsEnd::Later;
        calls.arguments(if self.given.is_empty() { "{" } else { "," });
        calls.arguments(&event::quoted(&head.name));
        calls.arguments(":");
        let typed = self.parameters(context).property(&head.name);
        // A value that may be a string keeps its bytes, with the tags.
        self.is_flat = typed.allows(JsonType::String)
            || !(typed.allows(JsonType::Object) || typed.allows(JsonType::Array));
        self.value = Some(ParamValue::new(self.form, head.hint, &typed, calls));
        self.given.push(head.name);
        self.closer = head.closer;
        self.is_line_start = false;
        self.state = ParamsState::Start;
        if head.is_empty {
            self.end_value(context, calls);
        }
    }

    pub(super) fn text(&mut self, piece: &str, calls: &mut FoundCalls) {
        if self.behind > HELD {
            self.resume(calls);
        }
        if let Some(value) = &mut self.value {
            value.text(piece, calls);
        }
        self.is_line_start = piece.ends_with('\n');
    }

    /// The value had not ended.
    pub(super) fn resume(&mut self, calls: &mut FoundCalls) {
        if let Some(value) = &mut self.value {
            value.resume(calls);
        }
    }

    /// A marker of a CDATA section, which a value that is held back keeps until its end.
    pub(super) fn raw(&mut self, mark: &str, calls: &mut FoundCalls) {
        if let Some(value) = self.value.as_mut().filter(|value| !value.is_streaming()) {
            value.data(mark, calls);
        }
    }

    pub(super) fn end_value(&mut self, context: &Context<'_>, calls: &mut FoundCalls) {
        if let (Some(mut value), Some(name)) = (self.value.take(), self.given.last()) {
            value.resume(calls);
            value.end(&self.parameters(context).property(name), calls);
        }
        self.state = ParamsState::Between;
    }

    pub(super) fn close(&mut self, at: usize, calls: &mut FoundCalls) -> Step {
        calls.arguments_until(
            if self.given.is_empty() { "{}" } else { "}" },
            ArgumentsEnd::Here,
        );
        self.state = ParamsState::Done;
        Step::Done(at)
    }

    pub(super) fn parameters<'a>(&self, context: &Context<'a>) -> ValueType<'a> {
        context
            .tools
            .map(|tools| tools.parameters(&self.tool))
            .unwrap_or_default()
    }
}
