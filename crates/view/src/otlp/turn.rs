//! A turn of a conversation, and its spans.

use super::contents::{self, Messages, shortened};
use super::response_span;
use super::span::{Attributes, Span, SpanEvent, SpanKind};
use crate::semconv::{self, operation};
use conversation::{Call, CallChange, Change, Talk};
use event::payload::{
    Approval, Error, Millis, Response, ResponseEnd, Retract, SessionStats, StreamEnd, StreamStart,
    ToolResult, ToolUse, Warning,
};
use event::payload::{Decision, FinishReason, Message};
use event::{Array, Event, Kind, Payload, Raw, Text};
use std::collections::{HashMap, HashSet};
use trace::{IdSeed, SpanContext};

/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

/// The distance in nanoseconds between an event without a time and the event before it, so that
/// spans keep their order.
const TICK: u64 = 1_000;

/// The clock of a log, in nanoseconds since 1970. It starts at 0; the first event with a date moves
/// all earlier times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    now: u64,
    is_dated: bool,
}

/// A turn of a conversation, as a trace of spans.
#[derive(Debug)]
pub(super) struct Turn {
    /// The seed of the span ids, for spans whose ids are not in the log.
    seed: IdSeed,
    pub clock: Clock,
    /// The index of its first turn in the talk.
    pub first: usize,
    has_contents: bool,
    /// The response of the session, if the turn is one.
    response: Option<OwnResponse>,
    /// The trace and the caller's span, named by a stream.
    caller: Option<SpanContext>,
    /// The span of the turn. Its times are set when it is written.
    agent: Span,
    has_end: bool,
    spans: Vec<Span>,
    /// The indices of the spans of running calls, by call.
    running: HashMap<usize, usize>,
    /// The open stream.
    chat: Option<OpenChat>,
    /// Sums over the streams of the turn.
    total: Total,
    /// The messages since the model's last message.
    input: Messages,
    /// The messages that the turn began with, and the model's last message, as JSON arrays.
    question: Option<String>,
    answer: Option<String>,
}

#[derive(Debug)]
struct OwnResponse {
    id: String,
    client: Option<SpanContext>,
}

#[derive(Debug)]
struct OpenChat {
    /// The index of its span.
    at: usize,
    /// The time of its first event.
    base: u64,
    /// Whether that time is a date.
    is_dated: bool,
    is_whole: bool,
    duration: Option<Millis>,
    /// The model's message, as a JSON array.
    answer: Option<String>,
}

/// Sums over the streams of a turn, and fields of the last stream.
#[derive(Debug, Default)]
struct Total {
    provider: Option<String>,
    model: Option<String>,
    finish: Option<FinishReason>,
    input: Option<u64>,
    output: Option<u64>,
    /// The code of the last error.
    error: Option<String>,
}

impl Turn {
    pub(super) fn new(seed: IdSeed, clock: Clock, has_contents: bool, first: usize) -> Turn {
        let name = operation::INVOKE_AGENT.to_owned();
        Turn {
            seed,
            clock,
            first,
            has_contents,
            response: None,
            caller: None,
            agent: Span::new(name, SpanKind::Internal, clock.now),
            has_end: false,
            spans: Vec::new(),
            running: HashMap::new(),
            chat: None,
            total: Total::default(),
            input: Messages::default(),
            question: None,
            answer: None,
        }
    }

    /// Whether the turn has no spans to write.
    pub(super) fn is_empty(&self) -> bool {
        self.response.is_none() && self.spans.is_empty()
    }

    /// Whether a user's message begins another turn.
    pub(super) fn takes_no_question(&self) -> bool {
        self.response.is_none() && !self.spans.is_empty()
    }

    /// Makes the turn a response of a session.
    pub(super) fn respond(&mut self, response: &Response<'_>) {
        if let Some(ms) = response.timestamp {
            // Ignores all earlier times: the response has the same times as in a file of its own.
            self.clock = Clock {
                now: ms.saturating_mul(MS),
                is_dated: true,
            };
        }
        self.agent.start = self.clock.now;
        let client = response.traceparent.map(Text::str);
        self.response = Some(OwnResponse {
            id: response.id.str().into_owned(),
            client: client.and_then(|text| SpanContext::of(&text)),
        });
        self.total.model = response.model.map(|model| model.str().into_owned());
        self.agent
            .attributes
            .some(semconv::OUR_RESPONSE_ID, Some(response.id))
            .some(semconv::FRONT, Some(response.front));
    }

    /// Whether `end` belongs to the response of this turn.
    pub(super) fn is_of(&self, end: &ResponseEnd<'_>) -> bool {
        self.response
            .as_ref()
            .is_some_and(|response| end.id == *response.id)
    }

    /// Ends the response.
    pub(super) fn end(&mut self, end: &ResponseEnd<'_>) {
        self.date(end.timestamp);
        self.has_end = true;
        let error = match &*end.status.str() {
            "completed" | "incomplete" => return,
            "failed" => self
                .total
                .error
                .take()
                .unwrap_or_else(|| "failed".to_owned()),
            status => status.to_owned(),
        };
        self.agent.fail(&error);
    }

    /// Processes an event that does not begin or end a turn; `change` is how it changed the talk.
    pub(super) fn push(&mut self, event: &Event<'_>, talk: &Talk, change: Change) {
        let kind = event.kind();
        if kind != Kind::StreamStart {
            self.pass_time(event);
        }
        match kind {
            // The most frequent events of a log.
            Kind::ContentDelta | Kind::RefusalDelta | Kind::Thinking | Kind::ToolCallDelta => {
                self.chat_of(event);
            }
            Kind::Other => {}
            _ => self.take(event, talk, change),
        }
    }

    /// Advances the clock to the time of the event.
    fn pass_time(&mut self, event: &Event<'_>) {
        let t = event.t().and_then(Raw::f64).filter(|t| *t >= 0.0);
        match (t, &self.chat) {
            (Some(t), Some(chat)) => {
                let at = chat.base.saturating_add((t * MS as f64) as u64);
                self.clock.now = self.clock.now.max(at);
            }
            _ if !self.clock.is_dated => self.clock.now += TICK,
            _ => {}
        }
    }

    /// Returns the time of an event with this date, in milliseconds since 1970; without a date, the
    /// current time.
    fn date(&mut self, ms: Option<u64>) -> u64 {
        let Some(ms) = ms else {
            return self.clock.now;
        };
        let at = ms.saturating_mul(MS);
        if !std::mem::replace(&mut self.clock.is_dated, true) {
            let by = i128::from(at) - i128::from(self.clock.now);
            self.clock.now = at;
            self.agent.shift(by);
            self.spans.iter_mut().for_each(|span| span.shift(by));
            if let Some(chat) = &mut self.chat {
                chat.base = u64::try_from(i128::from(chat.base) + by).unwrap_or(0);
            }
        }
        self.clock.now = self.clock.now.max(at);
        at
    }

    fn take(&mut self, event: &Event<'_>, talk: &Talk, change: Change) {
        let call = |id: Text<'_>| talk.call_of(event, &id.str());
        match event.payload() {
            Some(Payload::StreamStart(start)) => self.stream_start(event, &start),
            Some(Payload::SessionStats(stats)) => self.stats(&stats),
            Some(Payload::StreamEnd(end)) => self.stream_end(&end),
            Some(Payload::Message(message)) => self.message(event, &message),
            Some(Payload::ToolCall(_)) => self.chat_of(event),
            Some(Payload::ToolUse(used)) => {
                if let Change::Call(at, CallChange::Started) = change {
                    self.tool_use(&used, talk, at);
                }
            }
            Some(Payload::ToolResult(result)) => {
                if let Change::Call(at, CallChange::Answered) = change {
                    self.tool_result(&result, talk, at);
                }
            }
            Some(Payload::Decision(decision)) => self.decision(&decision),
            Some(Payload::Retract(retract)) => {
                self.retract(&retract, retract.tool_id.and_then(call));
            }
            Some(Payload::Warning(warning)) => self.warning(&warning),
            Some(Payload::Approval(approval)) => self.approval(&approval, call(approval.tool_id)),
            Some(Payload::Error(error)) => self.error(&error),
            _ => {}
        }
        // The messages before the first stream identify the turn.
        if self.response.is_none() && self.spans.is_empty() && event.kind() == Kind::Message {
            self.seed.add(event.raw().as_bytes());
        }
    }

    /// Opens a stream if none is open: a filter in the middle of a pipe may not see its start.
    fn chat_of(&mut self, event: &Event<'_>) {
        if self.chat.is_none() {
            self.stream_start(event, &StreamStart::default());
        }
    }

    fn stream_start(&mut self, event: &Event<'_>, start: &StreamStart<'_>) {
        if self.chat.is_some() {
            self.cut_chat();
        }
        if event.kind() == Kind::StreamStart && self.spans.is_empty() {
            self.seed.add(event.raw().as_bytes());
        }
        let base = self.date(start.timestamp);
        let api = start.api.map(Text::str).unwrap_or_default();
        let model = start.model.map(Text::str).unwrap_or_default();
        let operation = semconv::inference(&api);
        let provider = semconv::provider(&api);
        let name = format!("{operation} {model}").trim_end().to_owned();
        let mut span = Span::new(name, SpanKind::Client, base);
        span.attributes
            .text(semconv::OPERATION_NAME, operation)
            .text(semconv::PROVIDER_NAME, provider)
            .some(semconv::REQUEST_MODEL, start.model)
            .some(semconv::RESPONSE_MODEL, start.model)
            .some(semconv::RESPONSE_ID, start.id);
        span.known = known(start.traceparent);
        if let (Some(known), Some(caller)) = (span.known, start.parent_span)
            && self.caller.is_none()
        {
            let span = u64::from_str_radix(&caller.str(), 16).ok();
            self.caller = span
                .filter(|span| *span != 0)
                .map(|span| SpanContext { span, ..known });
        }
        self.total.provider = Some(provider.to_owned());
        if !model.is_empty() {
            self.total.model = Some(model.into_owned());
        }
        self.total.error = None;
        if let Some(input) = self.input.take() {
            span.attributes.text(semconv::INPUT_MESSAGES, &*input);
            self.question.get_or_insert(input);
        }
        self.chat = Some(OpenChat {
            at: self.spans.len(),
            base,
            is_dated: start.timestamp.is_some(),
            is_whole: start.fallback.is_some(),
            duration: None,
            answer: None,
        });
        self.spans.push(span);
    }

    /// Adds the counts of the open stream. Counts without an open stream are those of a run of
    /// tools, not of a model.
    fn stats(&mut self, stats: &SessionStats) {
        let Some(chat) = &mut self.chat else {
            return;
        };
        let span = &mut self.spans[chat.at];
        chat.duration = stats.duration_ms;
        if let Some(first) = stats.first_event_ms {
            if chat.is_dated {
                span.start = chat.base.saturating_sub(nanos(first));
            }
            if !chat.is_whole {
                span.attributes
                    .double(semconv::TIME_TO_FIRST_CHUNK, first.micros as f64 / 1e6);
            }
        }
        span.attributes
            .integer(semconv::INPUT_TOKENS, stats.prompt_tokens)
            .integer(semconv::OUTPUT_TOKENS, stats.completion_tokens)
            .integer(semconv::CACHED_TOKENS, stats.cached_tokens)
            .integer(semconv::REASONING_TOKENS, stats.reasoning_tokens)
            .integer(semconv::RETRIES, stats.retries);
        for (sum, n) in [
            (&mut self.total.input, stats.prompt_tokens),
            (&mut self.total.output, stats.completion_tokens),
        ] {
            if let Some(n) = n {
                *sum = Some(sum.unwrap_or(0).saturating_add(n));
            }
        }
    }

    fn stream_end(&mut self, end: &StreamEnd<'_>) {
        let Some(chat) = self.chat.take() else {
            return;
        };
        let reason = end.finish_reason;
        self.total.finish = Some(reason);
        let span = &mut self.spans[chat.at];
        let lasted = chat
            .duration
            .map(|time| span.start.saturating_add(nanos(time)));
        let end = lasted.unwrap_or(self.clock.now).max(span.start);
        span.end = Some(end);
        self.clock.now = self.clock.now.max(end);
        span.attributes
            .texts(semconv::FINISH_REASONS, vec![reason.name().to_owned()]);
        if reason.is_failure() {
            let error = self.total.error.clone();
            let error = error.filter(|_| reason != FinishReason::Cancelled);
            let error = error.unwrap_or_else(|| reason.name().to_owned());
            span.fail(&error);
            self.total.error = Some(error);
        }
        if let Some(answer) = chat.answer {
            span.attributes.text(semconv::OUTPUT_MESSAGES, answer);
        }
    }

    /// Ends the open stream, whose end is not in the log.
    fn cut_chat(&mut self) {
        if let Some(chat) = self.chat.take() {
            let span = &mut self.spans[chat.at];
            span.end = Some(self.clock.now);
            span.fail(FinishReason::Cut.name());
            self.total.error = Some(FinishReason::Cut.name().to_owned());
        }
    }

    fn message(&mut self, event: &Event<'_>, message: &Message<'_>) {
        if !self.has_contents || event.choice() != 0 {
            return;
        }
        let is_answer = message.is_of("assistant");
        message.message.with(|raw| match &mut self.chat {
            Some(chat) if is_answer => {
                let reason = match raw.get("tool_calls").and_then(|calls| calls.items().next()) {
                    Some(_) => FinishReason::ToolCalls,
                    None => FinishReason::Stop,
                };
                let mut answer = Messages::default();
                answer.push(contents::message(raw, Some(reason.name())));
                chat.answer = answer.take();
                self.answer.clone_from(&chat.answer);
            }
            _ => self.input.push(contents::message(raw, None)),
        });
    }

    fn tool_use(&mut self, used: &ToolUse<'_>, talk: &Talk, call: usize) {
        let start = self.date(used.timestamp);
        let at = self.tool(&talk.calls()[call], used.tool_name, start);
        self.spans[at].known = known(used.traceparent);
        self.running.insert(call, at);
    }

    /// Adds the span of a call named `name`, and returns its index.
    fn tool(&mut self, call: &Call, name: Text<'_>, start: u64) -> usize {
        let name = name.str();
        let title = format!("{} {name}", operation::EXECUTE_TOOL);
        let mut span = Span::new(title.trim_end().to_owned(), SpanKind::Internal, start);
        span.attributes
            .text(semconv::OPERATION_NAME, operation::EXECUTE_TOOL)
            .text(semconv::TOOL_NAME, name)
            .text(semconv::TOOL_CALL_ID, &*call.id)
            .text(semconv::TOOL_TYPE, semconv::FUNCTION);
        // Placeholders for arguments that the log lacks are for people, and are not exported.
        let is_object = || Raw::parse(&call.arguments).is_ok_and(Raw::is_object);
        if self.has_contents && (call.is_merged || is_object()) {
            span.attributes
                .text(semconv::TOOL_ARGUMENTS, shortened(&call.arguments));
        }
        self.spans.push(span);
        self.spans.len() - 1
    }

    fn tool_result(&mut self, result: &ToolResult<'_>, talk: &Talk, call: usize) {
        let status = result.status.str();
        // A pending call has not run, and a resumed result comes from an earlier log, which has the
        // span.
        if status == "pending" || result.resumed {
            return;
        }
        let dated = self.date(result.timestamp);
        // The span of a call that did not run, such as a refused one, has zero length.
        let at = self.running.remove(&call);
        let at = at.unwrap_or_else(|| self.tool(&talk.calls()[call], result.tool_name, dated));
        let span = &mut self.spans[at];
        let lasted = result.duration_ms.filter(|_| result.timestamp.is_none());
        let end = lasted.map_or(dated, |time| span.start.saturating_add(nanos(time)));
        span.end = Some(end.max(span.start));
        self.clock.now = self.clock.now.max(end);
        if result.cached {
            span.attributes.flag(semconv::CACHED, true);
        }
        span.attributes
            .integer(semconv::EXIT_CODE, result.exit_code);
        if self.has_contents {
            span.attributes
                .text(semconv::TOOL_RESULT, shortened(&result.output.str()));
        }
        if status != "success" {
            span.fail(&status);
            if self.has_contents {
                span.message = Some(shortened(&result.output_summary.str()).into_owned());
            }
        }
    }

    fn error(&mut self, error: &Error<'_>) {
        let code = error.code.str();
        let code = if code.is_empty() {
            "_OTHER".into()
        } else {
            code
        };
        let message = error.message.str();
        let message = self.has_contents.then(|| shortened(&message).into_owned());
        let span = match &self.chat {
            Some(chat) => &mut self.spans[chat.at],
            None => &mut self.agent,
        };
        span.message = span.message.take().or(message);
        self.total.error = Some(code.into_owned());
    }

    /// Adds an event to the span of a running call, otherwise to the open stream's span, otherwise
    /// to the turn's span.
    fn happened(&mut self, name: &'static str, call: Option<usize>, attributes: Attributes) {
        let call = call.and_then(|call| self.running.get(&call).copied());
        let at = call.or(self.chat.as_ref().map(|chat| chat.at));
        let span = at.map_or(&mut self.agent, |at| &mut self.spans[at]);
        span.events.push(SpanEvent {
            name,
            time: self.clock.now,
            attributes,
        });
    }

    fn decision(&mut self, decision: &Decision<'_>) {
        let mut attributes = Attributes::default();
        attributes
            .flag(semconv::event::TOOL_CALL, decision.tool_call)
            .some(semconv::event::CHECKER, Some(decision.checker))
            .some(semconv::event::REASON, Some(decision.reason));
        self.happened(semconv::event::DECISION, None, attributes);
    }

    fn retract(&mut self, retract: &Retract<'_>, call: Option<usize>) {
        let mut attributes = Attributes::default();
        attributes
            .some(semconv::TOOL_CALL_ID, retract.tool_id)
            .some(semconv::event::REASON, Some(retract.reason));
        self.happened(semconv::event::RETRACT, call, attributes);
    }

    fn warning(&mut self, warning: &Warning<'_>) {
        let mut attributes = Attributes::default();
        attributes
            .some(semconv::event::SOURCE, Some(warning.source))
            .some(semconv::event::CODE, Some(warning.code));
        if self.has_contents {
            let message = warning.message.str();
            let message = shortened(&message);
            attributes.some(semconv::event::MESSAGE, Some((&*message).into()));
        }
        self.happened(semconv::event::WARNING, None, attributes);
    }

    fn approval(&mut self, approval: &Approval<'_>, call: Option<usize>) {
        self.date(approval.timestamp);
        let mut attributes = Attributes::default();
        attributes
            .some(semconv::TOOL_NAME, Some(approval.tool_name))
            .some(semconv::TOOL_CALL_ID, Some(approval.tool_id))
            .some(semconv::event::VERDICT, Some(approval.decision))
            .some(semconv::event::SOURCE, Some(approval.source));
        if self.has_contents {
            attributes.some(semconv::event::BY, Some(approval.by));
        }
        self.happened(semconv::event::APPROVAL, call, attributes);
    }

    /// Ends all open spans, and writes all spans, beginning with the turn's.
    pub(super) fn write(mut self, session: Option<&str>, all: &mut Array<'_>) {
        self.finish();
        let parent = match (&self.response, self.caller) {
            (Some(response), _) => response.client,
            (None, caller) => caller,
        };
        let own = match (&self.response, parent) {
            (Some(response), client) => response_span(&response.id, client),
            (None, Some(caller)) => caller.child(&self.seed),
            (None, None) => SpanContext::root(&self.seed),
        };
        self.describe(session);
        self.agent
            .write(own, parent.map(|parent| parent.span), parent.is_some(), all);
        let mut used = HashSet::from([own.span]);
        for (n, mut span) in self.spans.into_iter().enumerate() {
            if let Some(session) = session {
                span.attributes.text(semconv::CONVERSATION_ID, session);
            }
            let made = own.child(&IdSeed::of([&n.to_string()]));
            let mut id = span.known.map_or(made, |known| SpanContext {
                span: known.span,
                ..own
            });
            // A request that was retried named the same span twice.
            if !used.insert(id.span) {
                id = made;
                used.insert(id.span);
            }
            span.write(id, Some(own.span), false, all);
        }
    }

    fn finish(&mut self) {
        self.cut_chat();
        let now = self.clock.now;
        let mut is_cut = false;
        for span in &mut self.spans {
            if span.end.is_none() {
                span.end = Some(now.max(span.start));
                span.fail(NO_RESULT);
                is_cut = true;
            }
        }
        let starts = self.spans.iter().map(|span| span.start);
        let ends = self.spans.iter().filter_map(|span| span.end);
        let has_start = self.response.is_some();
        let start = starts.chain(has_start.then_some(self.agent.start)).min();
        let events = self.agent.events.iter().map(|event| event.time);
        self.agent.start = start.into_iter().chain(events.clone()).min().unwrap_or(now);
        let end = ends.chain(self.has_end.then_some(now)).chain(events).max();
        self.agent.end = Some(end.unwrap_or(now));
        match self.total.error.take() {
            _ if self.has_end => {}
            Some(error) => self.agent.fail(&error),
            None if is_cut || has_start => self.agent.fail(INTERRUPTED),
            None => {}
        }
    }

    /// Adds the attributes of the turn's span.
    fn describe(&mut self, session: Option<&str>) {
        let Total {
            provider,
            model,
            finish,
            input,
            output,
            ..
        } = std::mem::take(&mut self.total);
        let agent = &mut self.agent.attributes;
        agent
            .text(semconv::OPERATION_NAME, operation::INVOKE_AGENT)
            .text(
                semconv::PROVIDER_NAME,
                provider.as_deref().unwrap_or(semconv::OTHER_PROVIDER),
            )
            .some(semconv::CONVERSATION_ID, session.map(Text::from))
            .some(semconv::REQUEST_MODEL, model.as_ref().map(Text::from))
            .integer(semconv::INPUT_TOKENS, input)
            .integer(semconv::OUTPUT_TOKENS, output);
        if let Some(reason) = finish {
            agent.texts(semconv::FINISH_REASONS, vec![reason.name().to_owned()]);
        }
        if let Some(question) = self.question.take() {
            agent.text(semconv::INPUT_MESSAGES, question);
        }
        if let Some(answer) = self.answer.take() {
            agent.text(semconv::OUTPUT_MESSAGES, answer);
        }
    }
}

/// The error of a call that was started but has no result in the log.
const NO_RESULT: &str = "no_result";

/// The error of a turn without an end in the log.
const INTERRUPTED: &str = "interrupted";

fn nanos(time: Millis) -> u64 {
    time.micros.saturating_mul(1000)
}

/// Returns the span named by a `traceparent` in the log.
fn known(traceparent: Option<Text<'_>>) -> Option<SpanContext> {
    traceparent.and_then(|text| SpanContext::of(&text.str()))
}
