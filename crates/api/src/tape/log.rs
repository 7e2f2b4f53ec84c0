//! Reads a log of events as a tape: each stream in the log is a recorded response, and the content
//! before the stream is its request.
//!
//! The body of such a response consists of the stream's lines from the model's side (`llm-stream`
//! and `tag-parse`). Later stages write their own lines again. Faults count the bytes of these
//! lines.

use crate::Api;
use crate::conversation::{Message, message};
use crate::tape::format::{Head, LoggedRequest, Tape, TapeEnding, TapeExchange, TapeRead};
use crate::tape::lookup::Miss;
use crate::turn::{Decoder, EventWriter};
use event::payload::{
    Error, Retract, RetractReason, SessionStats, StreamEnd, StreamStart, ToolCall, ToolCallDelta,
    Warning,
};
use event::{Event, Json, Kind, Payload, Raw, Scanner, Text};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::time::Duration;

/// The stages whose events are left out of a replay, because they write them again.
const LATER_STAGES: [&str; 3] = ["tc-accumulate", "tc-detect", "tool-exec"];

/// Warnings that `llm-stream` writes before the stream that they concern.
const BEFORE: [&str; 2] = ["retry_wait", "tools_refused"];

/// A turn's request, as a log stores it, independent of the API.
#[derive(Clone, Copy, Debug)]
pub struct AskedOfLog<'a> {
    /// The system prompt that is not one of the messages; `None` if the user gave none, so that any
    /// recorded one matches.
    pub system: Option<&'a str>,
    /// The tools as JSON in OpenAI's shape; `None` if the user gave none, so that any recorded ones
    /// match.
    pub tools: Option<&'a str>,
    /// The messages.
    pub messages: &'a [Message],
    /// How many answers to these messages have started, according to the conversation.
    pub begun: usize,
}

/// The next step in the recording of a conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextOfLog<'a> {
    /// The model is asked.
    Answer,
    /// These messages come before the model is asked, and no stage of the run writes them.
    Messages(&'a [Value]),
    /// The recording has ended.
    End,
}

impl Tape {
    /// Parses a log of events. Skips lines that are not events.
    pub(crate) fn of_log(log: &str) -> Tape {
        let mut reading = LogReading::default();
        let mut scanner = Scanner::default();
        for (line, text) in (1..).zip(log.lines()) {
            match scanner.read(text) {
                Ok(event) if event.kind() == Kind::Message => reading.message(text),
                Ok(event) => reading.event(&event, line),
                Err(_) => reading.message(text),
            }
        }
        let mut exchanges: Vec<TapeExchange> = Vec::new();
        reading.done.extend(reading.open.into_values());
        reading.done.sort_by_key(|stream| stream.exchange.line);
        exchanges.extend(reading.done.into_iter().map(LoggedStream::exchange));
        Tape {
            played: vec![false; exchanges.len()],
            exchanges,
            messages: Some(reading.messages),
        }
    }

    /// Whether the tape is a log of events.
    pub fn is_log(&self) -> bool {
        self.messages.is_some()
    }

    /// Returns the recorded answer to `asked`. If a failed turn left several answers to the same
    /// request, returns the next one that the conversation does not have, or the last one.
    ///
    /// # Errors
    /// Returns a [`Miss`] that names the closest recorded request and its first difference.
    pub fn take_logged(&self, asked: &AskedOfLog<'_>) -> Result<&TapeExchange, Miss> {
        let tools = asked.tools.map(value);
        let equal: Vec<&TapeExchange> = self
            .exchanges
            .iter()
            .filter(|exchange| self.is_answer(exchange, asked, tools.as_ref()))
            .collect();
        let next = asked.begun.min(equal.len().saturating_sub(1));
        match equal.get(next) {
            Some(exchange) => Ok(exchange),
            None => Err(self.miss(asked, tools)),
        }
    }

    /// Returns the next step in the recording after these messages.
    pub fn next_of_log(&self, asked: &AskedOfLog<'_>) -> NextOfLog<'_> {
        if self.take_logged(asked).is_ok() {
            return NextOfLog::Answer;
        }
        let recorded = self.messages.as_deref().unwrap_or_default();
        let have = asked.messages.len();
        if self.shared(asked.messages) < have {
            return NextOfLog::Answer;
        }
        let mut requests = self.exchanges.iter().filter_map(|e| e.logged.as_ref());
        match requests.find(|request| request.messages > have) {
            Some(request) => {
                let between = &recorded[have..request.messages];
                if between.iter().any(is_of_run) {
                    NextOfLog::Answer
                } else {
                    NextOfLog::Messages(between)
                }
            }
            None if asked
                .messages
                .last()
                .is_none_or(|last| last.role() == "assistant") =>
            {
                NextOfLog::End
            }
            None => NextOfLog::Answer,
        }
    }

    fn is_answer(
        &self,
        exchange: &TapeExchange,
        asked: &AskedOfLog<'_>,
        tools: Option<&Value>,
    ) -> bool {
        exchange.logged.as_ref().is_some_and(|request| {
            request.messages == asked.messages.len()
                && self.shared(asked.messages) == request.messages
                && asked
                    .system
                    .is_none_or(|system| request.system.as_ref() == Some(&Value::from(system)))
                && tools.is_none_or(|tools| request.tools.as_ref() == Some(tools))
        })
    }

    /// Returns how many of the first messages are equal to those in the log.
    fn shared(&self, messages: &[Message]) -> usize {
        let recorded = self.messages.as_deref().unwrap_or_default();
        let mut pairs = messages.iter().zip(recorded);
        let differs = |(message, recorded): (&Message, &Value)| {
            recorded.as_object() != Some(message.fields())
        };
        pairs
            .position(differs)
            .unwrap_or_else(|| messages.len().min(recorded.len()))
    }

    fn miss(&self, asked: &AskedOfLog<'_>, tools: Option<Value>) -> Miss {
        let recorded = self.messages.as_deref().unwrap_or_default();
        let shared = self.shared(asked.messages);
        let is_nearest = |exchange: &&TapeExchange| {
            let request = exchange.logged.as_ref();
            request.is_some_and(|request| request.messages >= asked.messages.len().min(shared + 1))
        };
        let nearest = self.exchanges.iter().find(is_nearest);
        let Some(exchange) = nearest.or(self.exchanges.last()) else {
            return Miss("the log holds no answer of a model".to_owned());
        };
        let request = exchange.logged.clone().unwrap_or_default();
        let mut ours = Map::new();
        let mut theirs = Map::new();
        if let Some(system) = asked.system {
            ours.insert("system".to_owned(), Value::from(system));
            theirs.extend(request.system.map(|system| ("system".to_owned(), system)));
        }
        if let Some(tools) = tools {
            ours.insert("tools".to_owned(), tools);
            theirs.extend(request.tools.map(|tools| ("tools".to_owned(), tools)));
        }
        let messages = asked
            .messages
            .iter()
            .map(|m| Value::from(m.fields().clone()));
        ours.insert("messages".to_owned(), messages.collect());
        let theirs_end = request.messages.max(shared.min(recorded.len()));
        theirs.insert("messages".to_owned(), recorded[..theirs_end].into());
        let (path, here, there) = json::difference(&ours.into(), &theirs.into());
        Miss(format!(
            "the nearest recorded request (line {}) differs first at {path}: {here} here, {there} on the tape",
            exchange.line
        ))
    }
}

/// Whether a stage of the run writes messages of this kind.
fn is_of_run(message: &Value) -> bool {
    matches!(message["role"].as_str(), Some("assistant" | "tool"))
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The state while a log is parsed.
#[derive(Default)]
struct LogReading {
    messages: Vec<Value>,
    open: HashMap<Option<Box<str>>, LoggedStream>,
    done: Vec<LoggedStream>,
    /// The warnings for the stream that is about to start.
    before: Vec<String>,
    /// Whether the log is a `tc-serve` session.
    is_session: bool,
}

/// One stream in a log.
#[derive(Default)]
struct LoggedStream {
    exchange: TapeExchange,
    /// The stream's lines: each with its time, whether it is a complete call, and its text.
    lines: Vec<(Option<f64>, bool, String)>,
    has_deltas: bool,
    /// The calls of a session, by choice and id; `None` for other logs. In a session every delta
    /// names its call.
    calls: Option<HashMap<(u32, String), LoggedCall>>,
    first_event: Duration,
    last: Option<Duration>,
}

/// A call so far.
#[derive(Default)]
struct LoggedCall {
    arguments: String,
    /// The call's deltas, as indexes into [`LoggedStream::lines`].
    lines: Vec<usize>,
}

impl LogReading {
    fn message(&mut self, line: &str) {
        let read = Raw::parse(line).ok().map(message);
        if let Some(Ok(Some(message))) = read {
            self.messages.push(Value::from(message.fields().clone()));
        }
    }

    fn event(&mut self, event: &Event<'_>, line: usize) {
        let name: Option<Box<str>> = event.stream().map(|name| name.text().into());
        self.is_session |= event.kind() == Kind::Session;
        if event.kind() == Kind::StreamStart {
            self.done.extend(self.open.remove(&name));
            let start = StreamStart::read(event);
            let text = |text: Option<Text<'_>>| text.map(|text| text.str().into_owned());
            let stream = self.open.entry(name.clone()).or_default();
            stream.exchange = TapeExchange {
                line,
                api: text(start.api).unwrap_or_default(),
                model: text(start.model).unwrap_or_default(),
                logged: Some(LoggedRequest {
                    messages: self.messages.len(),
                    system: text(start.system).map(Value::from),
                    tools: start.tools.map(|tools| value(&tools.text())),
                }),
                ..TapeExchange::default()
            };
            stream.calls = self.is_session.then(HashMap::new);
            let before = std::mem::take(&mut self.before).into_iter();
            stream.lines.extend(before.map(|line| (None, false, line)));
        }
        let Some(stream) = self.open.get_mut(&name) else {
            if event.kind() == Kind::Warning && is_before(event) {
                self.before.push(event.raw().into_owned());
            }
            return;
        };
        stream.event(event);
        if event.kind() == Kind::StreamEnd {
            self.done.extend(self.open.remove(&name));
        }
    }
}

impl LoggedStream {
    fn event(&mut self, event: &Event<'_>) {
        let is_ours = |source: Text<'_>| !LATER_STAGES.contains(&&*source.str());
        let (is_call, line) = match event.kind() {
            Kind::StreamStart
            | Kind::Thinking
            | Kind::ContentDelta
            | Kind::RefusalDelta
            | Kind::ServerItem
            | Kind::Details => (false, event.raw().into_owned()),
            Kind::ToolCallDelta => {
                self.has_deltas = true;
                let delta = ToolCallDelta::read(event);
                if let (Some(id), Some(calls)) = (delta.tool_id, &mut self.calls) {
                    let call = (event.choice(), id.str().into_owned());
                    let call = calls.entry(call).or_default();
                    call.lines.push(self.lines.len());
                    call.arguments
                        .push_str(&delta.arguments.unwrap_or_default().str());
                }
                (false, event.raw().into_owned())
            }
            Kind::SessionStats => {
                let first = SessionStats::read(event).first_event_ms;
                self.first_event =
                    first.map_or(self.first_event, |t| Duration::from_micros(t.micros));
                (false, event.raw().into_owned())
            }
            Kind::StreamEnd => {
                let at = event.t().and_then(Raw::f64);
                self.last = Some(time(at).unwrap_or_default());
                (false, event.raw().into_owned())
            }
            Kind::ToolCall => self.whole_call(event),
            Kind::Retract
                if Retract::read(event).reason.str() != RetractReason::StreamFailed.name() =>
            {
                (false, event.raw().into_owned())
            }
            Kind::Warning if is_ours(Warning::read(event).source) => {
                (false, event.raw().into_owned())
            }
            Kind::Error if is_ours(Error::read(event).source) => (false, event.raw().into_owned()),
            _ => return,
        };
        self.lines
            .push((event.t().and_then(Raw::f64), is_call, line));
    }

    /// Returns the line for a complete call, and whether the deltas already contain that call. In a
    /// `tc-serve` session, only the complete call contains the last piece of the arguments, because
    /// its clients never get a call that may still be retracted.
    fn whole_call(&mut self, event: &Event<'_>) -> (bool, String) {
        let call = ToolCall::read(event);
        let id = call.tool_id.str().into_owned();
        let arguments = call.arguments.filter(|_| call.error.is_none());
        let (Some(calls), Some(whole)) = (&mut self.calls, arguments.map(Json::text)) else {
            return (true, delta(event, None));
        };
        let Some(known) = calls.remove(&(event.choice(), id)) else {
            return (false, delta(event, None));
        };
        let sent = known.arguments.as_str();
        match whole.strip_prefix(sent) {
            Some(rest) if !rest.is_empty() && !sent.is_empty() => (false, delta(event, Some(rest))),
            // The provider restarted the arguments.
            None if Raw::parse(sent).is_err() => {
                for at in known.lines {
                    self.lines[at].2.clear();
                }
                (false, delta(event, None))
            }
            _ => (true, delta(event, None)),
        }
    }

    fn exchange(self) -> TapeExchange {
        let LoggedStream {
            mut exchange,
            lines,
            has_deltas,
            first_event,
            last,
            ..
        } = self;
        exchange.head = Some(Head {
            after: first_event,
            status: 200,
            headers: vec![],
        });
        let mut now = Duration::ZERO;
        for (at, is_call, mut line) in lines {
            if is_call && has_deltas || line.is_empty() {
                continue;
            }
            let at = time(at).unwrap_or(now).max(now);
            line.push('\n');
            exchange.reads.push(TapeRead {
                after: at - now,
                bytes: line.into_bytes(),
            });
            now = at;
        }
        exchange.end = last.map(|_| (Duration::ZERO, TapeEnding::Eof));
        exchange
    }
}

fn is_before(event: &Event<'_>) -> bool {
    let warning = Warning::read(event);
    warning.source.str() == "llm-stream" && BEFORE.contains(&&*warning.code.str())
}

/// Converts an event's time from milliseconds.
fn time(ms: Option<f64>) -> Option<Duration> {
    let ms = ms.filter(|ms| (0.0..86_400_000.0).contains(ms))?;
    Some(Duration::from_micros((ms * 1000.0).round() as u64))
}

/// Converts a `tool_call` to a delta. `rest` is `None` for the single delta of a log without
/// deltas; otherwise the delta is the call's last one, with the `rest` of the arguments.
fn delta(event: &Event<'_>, rest: Option<&str>) -> String {
    let call = ToolCall::read(event);
    let object = call
        .arguments
        .map(|arguments| arguments.text().into_owned());
    let arguments = call
        .arguments_text
        .map(|text| text.str().into_owned())
        .or(object);
    let delta = ToolCallDelta {
        index: call.index,
        tool_id: Some(call.tool_id),
        tool_name: rest.is_none().then_some(call.tool_name),
        arguments: rest.or(arguments.as_deref()).map(Into::into),
        done: true,
        ..ToolCallDelta::default()
    };
    let payload = Payload::from(delta);
    let [stream, t] = [event.stream(), event.t()].map(|raw| raw.map(Raw::text));
    let mut line = Vec::new();
    event::payload::line(&mut line, &payload, stream, event.choice(), t);
    String::from_utf8(line).unwrap_or_default()
}

/// Decodes the lines of a stream in a log.
#[derive(Default)]
pub(crate) struct LogDecoder {
    scanner: Scanner,
    has_counts: bool,
}

impl Decoder for LogDecoder {
    fn frame(&mut self, _name: Option<&str>, data: Raw<'_>, turn: &mut EventWriter<'_>) {
        let Ok(event) = self.scanner.read(data.text()) else {
            return;
        };
        let choice = event.choice();
        match (event.kind(), event.payload()) {
            (Kind::StreamStart, _) => {
                let start = StreamStart::read(&event);
                let api = start.api.and_then(|name| Api::from_name(&name.str()));
                turn.start_as(&start, api.map(Api::name));
            }
            (Kind::SessionStats, _) => {
                self.has_counts = true;
                // The times are those of this replay.
                turn.stats = SessionStats {
                    first_event_ms: turn.stats.first_event_ms,
                    duration_ms: turn.stats.duration_ms,
                    ..SessionStats::read(&event)
                };
            }
            (Kind::StreamEnd, _) => turn.end_as(StreamEnd::read(&event), self.has_counts),
            (Kind::Warning, Some(warning)) if !turn.started => turn.out.emit(choice, warning),
            (kind, Some(payload)) => {
                if kind == Kind::Error {
                    let error = Error::read(&event);
                    let [code, message] = [error.code, error.message].map(Text::str);
                    turn.error = Some((code.into_owned(), message.into_owned()));
                }
                turn.write(choice, payload);
            }
            (_, None) => {}
        }
    }

    fn takes_errors(&self) -> bool {
        true
    }
}
