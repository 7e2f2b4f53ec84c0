//! One request, and the machines that make its answer: events of a source → calls found in its text
//! → merged calls → the bytes of the answer.

mod observers;

use crate::budget::{FULL_MS, MEMORY, MemoryBudget, Share};
use crate::metrics::ServiceMetrics;
use crate::traces::AnswerTrace;
use crate::turns::{TurnEvent, Turns};
use accumulate::Accumulate;
use api::{AnswerForm, AnswerOptions, Dropped, Encoder, FailedAnswer, Front};
use api::{RunningStatus, UiFront, UiOptions, UiStream};
use event::payload::Millis;
use event::payload::{Error, FinishReason, StreamEnd, StreamStart};
use event::{Chain, Demux, Emitted, Event, Kind, Machine, Meter, Payload, Raw, Sink, SinkOf, Text};
use hyper::header::{HeaderName, HeaderValue};
use observers::{AnswerCounts, AnswerObservers};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// How many bytes of an answer wait for a slow client before its source has to wait, too.
const ROOM: usize = 64 << 10;

/// How the names of headers with a provider's limits begin.
const LIMITS: [&str; 3] = ["x-ratelimit-", "anthropic-ratelimit-", "ratelimit"];

/// At most `MOST_LIMITS` of these headers are passed on; one whose value is longer than `LIMIT`
/// bytes is not.
const MOST_LIMITS: usize = 32;
const LIMIT: usize = 256;

/// What the pipes of all requests share.
#[derive(Clone, Debug)]
pub struct PipeSettings {
    /// How text is searched for calls.
    pub streams: Rc<tag::Streams>,
    /// How deltas are merged.
    pub accumulate: Rc<accumulate::AccumulateOptions>,
    /// How many bytes of one answer may be in memory; an answer that needs more fails.
    pub most: usize,
    /// The memory budget that all requests and answers share.
    pub budget: MemoryBudget,
    /// Where the events of all answers are counted.
    pub metrics: ServiceMetrics,
}

/// What is searched for in the text of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSearch {
    /// Nothing, and no calls are merged either: the events were written by such a pipe before.
    Done,
    /// Nothing: the source has searched the text already.
    Nothing,
    /// Reasoning, and calls of the tools that `stream_start` lists.
    Text,
}

/// The machines of one request. A source pushes events into the pipe, and the body of the response
/// takes bytes out of it.
pub struct Pipe(RefCell<PipeState>);

struct PipeState {
    settings: PipeSettings,
    /// The machines of each open stream of the answer; `None` for events that have gone through
    /// them.
    machines: Option<Demux<Box<dyn Machine>>>,
    /// The time of the events of a source that writes payloads: when its stream began, and the
    /// milliseconds since then as JSON, for a session or a trace.
    begin: Option<Duration>,
    t: Option<String>,
    /// What the last machine writes to.
    end: PipeEnd,
    /// The provider's headers with its limits.
    limits: Vec<(HeaderName, HeaderValue)>,
    /// The share of the memory budget that this answer uses.
    share: Share,
    /// How many bytes the source holds in memory.
    of_source: usize,
    /// The answer needs more memory than it may use: it has failed, and further events are ignored.
    is_over: bool,
    /// Whether the events are those of an answer that a session keeps.
    is_view: bool,
    /// See [`Pipe::unread`].
    unread: Option<FailedAnswer>,
}

/// What the last machine writes to.
struct PipeEnd {
    /// Makes one answer of the turns of a command.
    turns: Option<Turns>,
    output: PipeOutput,
    bytes: Vec<u8>,
    /// What the machines, the turns and the output may keep.
    memory: Meter,
    keeps: Keeps,
    observers: AnswerObservers,
}

impl PipeEnd {
    /// Whether the events need times: a session keeps them, and a trace is made of them.
    fn has_times(&self) -> bool {
        let is_kept = matches!(&self.output, PipeOutput::Events(lines) if lines.is_kept);
        is_kept || self.observers.trace.is_some()
    }
}

/// The form in which the pipe writes events.
pub enum PipeOutput {
    /// An answer in the shape of the API that the client speaks.
    Answer(Box<Encoder>),
    /// A stream of a user interface.
    Ui(Box<UiStream>),
    /// The events themselves.
    Events(EventLines),
}

/// The media type of whole answers.
pub(crate) const JSON: &str = "application/json";

/// The media type of server-sent events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

impl PipeOutput {
    /// An answer in this form of an API, and its media type.
    pub fn answer(
        front: Front,
        form: AnswerForm,
        options: AnswerOptions,
    ) -> (PipeOutput, &'static str) {
        let kind = match form {
            AnswerForm::Stream => EVENT_STREAM,
            AnswerForm::Whole | AnswerForm::Object => JSON,
        };
        let encoder = Encoder::new(front, form, options);
        (PipeOutput::Answer(Box::new(encoder)), kind)
    }

    /// A stream of a user interface, and its media type.
    pub fn ui(front: UiFront, options: UiOptions) -> (PipeOutput, &'static str) {
        let stream = UiStream::new(front, options);
        (PipeOutput::Ui(Box::new(stream)), EVENT_STREAM)
    }

    /// The events themselves, as server-sent events if `is_sse`, and the media type.
    pub fn events(is_sse: bool) -> (PipeOutput, &'static str) {
        let kind = match is_sse {
            true => EVENT_STREAM,
            false => "application/x-ndjson; charset=utf-8",
        };
        (PipeOutput::Events(EventLines::new(is_sse)), kind)
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        match self {
            PipeOutput::Answer(encoder) => encoder.begin(out),
            PipeOutput::Ui(stream) => stream.begin(out),
            PipeOutput::Events(_) => {}
        }
    }

    fn push(&mut self, event: TurnEvent<'_>, out: &mut Vec<u8>) {
        match self {
            PipeOutput::Answer(encoder) => event.write(encoder, out),
            PipeOutput::Ui(stream) => stream.push(event.event(), out),
            PipeOutput::Events(lines) => lines.push(event.event(), out),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        match self {
            PipeOutput::Answer(encoder) => encoder.finish(out),
            PipeOutput::Ui(stream) => stream.finish(out),
            PipeOutput::Events(_) => {}
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        match self {
            PipeOutput::Answer(encoder) => encoder.keep_alive(out),
            PipeOutput::Ui(stream) => stream.keep_alive(out),
            PipeOutput::Events(lines) if lines.is_sse => out.extend_from_slice(b": keep-alive\n\n"),
            PipeOutput::Events(_) => out.push(b'\n'),
        }
    }
}

/// How long the machines and the output of a pipe keep what has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// Not at all: events that have gone through the machines are written as they are.
    Nothing,
    /// Calls to the end of their stream; text goes out as it comes, see [`Meter::give`].
    Calls,
    /// Everything until the next stream begins: a message event repeats the text, a user interface
    /// may have to write a turn again, hidden turns wait for their end.
    Turn,
    /// Everything to the end.
    Answer,
}

impl Keeps {
    fn of(search: TextSearch, turns: Option<&Turns>, output: &PipeOutput) -> Keeps {
        let hides = turns.is_some_and(Turns::hides);
        match output {
            PipeOutput::Answer(encoder) if encoder.keeps_all() => Keeps::Answer,
            PipeOutput::Answer(_) if !hides => Keeps::Calls,
            PipeOutput::Events(_) if !hides && search == TextSearch::Done => Keeps::Nothing,
            PipeOutput::Answer(_) | PipeOutput::Ui(_) | PipeOutput::Events(_) => Keeps::Turn,
        }
    }
}

impl Pipe {
    /// Makes a pipe that writes bytes in the form of `output`. `search` is what is searched for in
    /// the text; `turns` makes one answer of the turns of a command.
    pub fn new(
        mut settings: PipeSettings,
        search: TextSearch,
        turns: Option<Turns>,
        output: PipeOutput,
    ) -> Pipe {
        // An answer is made of deltas. The `message` event, for which all text must stay in memory,
        // is made only for a client that reads the events themselves.
        if !matches!(output, PipeOutput::Events(_)) {
            Rc::make_mut(&mut settings.accumulate).no_message = true;
        }
        // The other outputs show each turn, unless the turns before the last are hidden.
        let turns = turns.filter(|turns| matches!(output, PipeOutput::Answer(_)) || turns.hides());
        let meter = (search != TextSearch::Done).then(|| settings.metrics.meter());
        Pipe(RefCell::new(PipeState {
            share: settings.budget.share(),
            machines: (search != TextSearch::Done).then(|| machines(&settings, search)),
            begin: None,
            t: None,
            settings,
            end: PipeEnd {
                keeps: Keeps::of(search, turns.as_ref(), &output),
                memory: Meter::default(),
                turns,
                output,
                bytes: Vec::new(),
                observers: AnswerObservers {
                    meter,
                    ..AnswerObservers::default()
                },
            },
            limits: Vec::new(),
            of_source: 0,
            is_over: false,
            is_view: search == TextSearch::Done,
            unread: None,
        }))
    }

    /// Sets the trace that the events from now on become a part of.
    pub(crate) fn set_trace(&self, trace: AnswerTrace) {
        self.0.borrow_mut().end.observers.trace = Some(trace);
    }

    /// Takes the next event of the source.
    pub fn push(&self, event: &Event<'_>) {
        self.0.borrow_mut().push(event);
    }

    /// Sets the time of the events that follow, which came `at` this time after the request;
    /// `has_started` claims that their stream has an event. A session and a trace need them as JSON.
    pub fn set_time(&self, at: Option<Duration>, has_started: bool) {
        let state = &mut *self.0.borrow_mut();
        if !has_started {
            state.begin = at;
        }
        let t = at.zip(state.begin);
        let t = t.map(|(at, begin)| Millis::from(at.saturating_sub(begin)));
        state.end.observers.at = t.map(|t| t.micros);
        if state.end.has_times() {
            state.t = t.map(|t| t.to_string());
        }
    }

    /// How the last stream of events that are written as they are ended.
    pub fn reason(&self) -> Option<FinishReason> {
        match &self.0.borrow().end.output {
            PipeOutput::Answer(_) | PipeOutput::Ui(_) => None,
            PipeOutput::Events(lines) => lines.reason,
        }
    }

    /// Ends the answer with an error. `status` is the HTTP status for a client that has nothing of
    /// the answer yet.
    pub fn fail(&self, code: &str, message: &str, status: u16, retry_after_ms: Option<u64>) {
        let error = Error {
            retryable: matches!(status, 408 | 409 | 429 | 500..),
            status: Some(status.into()),
            retry_after_ms,
            ..Error::new("tc-serve", code, message)
        };
        for payload in failed(error) {
            self.push(&Event::of(&payload, None, 0, None));
        }
    }

    /// Waits until the client has taken enough of the bytes.
    pub async fn room(&self) {
        // The body polls the source again once it has handed on the waiting bytes, so this future
        // needs no waker.
        poll_fn(|_| {
            if self.0.borrow().end.bytes.len() < ROOM {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Sets how many bytes the source holds in memory that are not an event yet.
    pub fn set_kept(&self, bytes: usize) {
        let state = &mut *self.0.borrow_mut();
        state.of_source = bytes;
        state.count();
    }

    /// Sets the id that the provider, which speaks `api`, gave to the answer.
    pub fn set_id(&self, api: &str, id: &str) {
        if let PipeOutput::Answer(encoder) = &mut self.0.borrow_mut().end.output {
            encoder.set_id(api, id);
        }
    }

    /// Of the headers of the provider's answer, stores those with the provider's rate limits: by
    /// them clients decide how long to wait. Sources:
    /// <https://platform.openai.com/docs/guides/rate-limits>,
    /// <https://platform.claude.com/docs/en/api/rate-limits>.
    pub fn set_limits(&self, headers: &[(String, String)]) {
        let is_limit = |name: &str| {
            LIMITS.iter().any(|start| {
                name.get(..start.len())
                    .is_some_and(|head| head.eq_ignore_ascii_case(start))
            })
        };
        let limits = headers
            .iter()
            .filter(|(name, value)| is_limit(name) && value.len() <= LIMIT)
            .take(MOST_LIMITS);
        let limits =
            limits.filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)));
        self.0.borrow_mut().limits = limits.collect();
    }

    /// The provider's headers with its limits, for the response.
    pub fn limits(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.0.borrow().limits.clone()
    }

    /// Whether the source may stop: the encoder has written the last byte of the answer, or, where
    /// events are written as they are, the answer was ended because it needs too much memory.
    pub fn is_done(&self) -> bool {
        let state = self.0.borrow();
        match &state.end.output {
            PipeOutput::Answer(encoder) => encoder.is_done() || state.unread.is_some(),
            PipeOutput::Ui(_) | PipeOutput::Events(_) => state.is_over,
        }
    }

    /// Whether the answer has begun: its failure is reported inside the stream, and no further
    /// attempt is allowed.
    pub fn has_begun(&self) -> bool {
        match &self.0.borrow().end.output {
            PipeOutput::Answer(encoder) => encoder.has_begun(),
            PipeOutput::Ui(stream) => stream.has_begun(),
            PipeOutput::Events(events) => events.has_content,
        }
    }

    /// Why an answer that a session keeps cannot be read to its end now. The answer itself is as it
    /// was.
    pub fn unread(&self) -> Option<FailedAnswer> {
        self.0.borrow().unread.clone()
    }

    /// Why the answer failed, if it did.
    pub fn failure(&self) -> Option<FailedAnswer> {
        match &self.0.borrow().end.output {
            PipeOutput::Answer(encoder) => encoder.failure().cloned(),
            PipeOutput::Ui(stream) => stream.failure().cloned(),
            PipeOutput::Events(events) => events.failure.clone(),
        }
    }

    /// Ends a stream of a user interface whose session ends before the answer. On this error the client
    /// asks for the rest.
    pub fn cut(&self) {
        if matches!(self.0.borrow().end.output, PipeOutput::Ui(_)) {
            self.fail(
                "stream_cut",
                "the stream was cut off; reconnect for the rest",
                503,
                None,
            );
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> AnswerCounts {
        self.0.borrow().end.observers.counts
    }

    /// What was left out so far, on the way to the provider and of its answer: each kind once, with
    /// how often it came.
    pub fn notes(&self) -> Vec<String> {
        let PipeEnd {
            output, observers, ..
        } = &self.0.borrow().end;
        let dropped = match output {
            PipeOutput::Answer(encoder) => encoder.dropped(),
            PipeOutput::Ui(_) | PipeOutput::Events(_) => Dropped::default(),
        };
        let note = |what: &str, count: u64| {
            if count == 1 {
                what.to_owned()
            } else {
                format!("{what} ({count} times)")
            }
        };
        let left_out = observers
            .notes
            .iter()
            .map(|(what, count)| note(what, *count));
        left_out
            .chain(dropped.notes().map(|(what, count)| note(&what, count)))
            .collect()
    }

    /// Begins the answer without content: its status is sent, so that a failure from now on must
    /// show in the stream.
    pub fn begin(&self) {
        let PipeEnd { output, bytes, .. } = &mut self.0.borrow_mut().end;
        output.begin(bytes);
    }

    /// The response object of OpenAI Responses as far as it is written; `None` for other answers.
    pub fn snapshot(&self, status: RunningStatus) -> Option<Vec<u8>> {
        match &self.0.borrow().end.output {
            PipeOutput::Answer(encoder) => encoder.snapshot(status),
            PipeOutput::Ui(_) | PipeOutput::Events(_) => None,
        }
    }

    /// Ends the answer after the source's last event. Called once.
    pub fn finish(&self) {
        let PipeState {
            machines,
            end,
            share,
            ..
        } = &mut *self.0.borrow_mut();
        for (_, mut machine) in machines.iter_mut().flat_map(Demux::drain) {
            machine.finish(&mut end.after(None));
        }
        if let Some(turns) = &mut end.turns {
            turns.finish(&mut |event| end.output.push(event, &mut end.bytes));
        }
        end.output.finish(&mut end.bytes);
        end.observers.finish();
        // A complete answer does not fail for lack of memory.
        share.keep(end.bytes.len());
    }

    /// Whether the last turn of a command has ended, and not as failed.
    pub fn is_whole(&self) -> bool {
        let turns = &self.0.borrow().end.turns;
        turns.as_ref().is_some_and(Turns::is_whole)
    }

    /// Removes and returns the bytes of a whole answer, and the share of the memory budget that
    /// they use.
    pub fn take_whole(&self) -> (Vec<u8>, Share) {
        let state = &mut *self.0.borrow_mut();
        let share = std::mem::replace(&mut state.share, state.settings.budget.share());
        (std::mem::take(&mut state.end.bytes), share)
    }

    /// Removes and returns the bytes that can be sent.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut().end.bytes)
    }

    /// Appends what keeps the connection alive.
    pub fn keep_alive(&self) {
        let PipeEnd { output, bytes, .. } = &mut self.0.borrow_mut().end;
        output.keep_alive(bytes);
    }
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe")
            .field("bytes", &self.0.borrow().end.bytes.len())
            .finish_non_exhaustive()
    }
}

impl PipeState {
    fn push(&mut self, event: &Event<'_>) {
        if self.is_over {
            return;
        }
        if self.begin.is_none() && self.end.observers.meter.is_some() {
            self.end.observers.at = view::micros_of(event);
        }
        if event.kind() == Kind::StreamStart && self.end.keeps != Keeps::Answer {
            self.end.memory = Meter::default();
        }
        if self.end.keeps != Keeps::Nothing {
            self.end.memory.take(event);
        }
        match &mut self.machines {
            Some(machines) => _ = machines.push(event, &mut self.end.after(Some(event))),
            None => self.end.take(event),
        }
        self.count();
    }

    /// Counts the memory that the answer uses, and ends the answer as failed if that is too much.
    fn count(&mut self) {
        let kept = self.end.memory.bytes() + self.of_source;
        let has_room = self.share.keep(kept + self.end.bytes.len());
        if self.is_over {
            // The answer has failed already. What is left of it needs no more memory than it had.
            return;
        }
        if kept > self.settings.most {
            let most = self.settings.most;
            let message = format!("the answer takes more than {most} bytes, see --max-answer");
            self.overrun("answer_too_long", &message, 502);
        } else if !has_room {
            self.overrun("memory_full", MEMORY, 503);
        }
    }

    /// Ends the answer as failed, and frees its memory.
    #[cold]
    fn overrun(&mut self, code: &str, message: &str, status: u16) {
        self.machines
            .iter_mut()
            .flat_map(Demux::drain)
            .for_each(drop);
        (self.is_over, self.end.turns, self.of_source) = (true, None, 0);
        self.end.memory = Meter::default();
        let is_full = status == 503;
        if self.is_view {
            self.end.bytes = Vec::new();
            self.share.keep(0);
            self.unread = Some(FailedAnswer {
                status,
                code: code.to_owned(),
                message: message.to_owned(),
                retry_after_ms: is_full.then_some(FULL_MS),
                ..FailedAnswer::default()
            });
            return;
        }
        let error = Error {
            retryable: is_full,
            status: Some(status.into()),
            retry_after_ms: is_full.then_some(FULL_MS),
            ..Error::new("tc-serve", code, message)
        };
        for payload in failed(error) {
            self.end.take(&Event::of(&payload, None, 0, None));
        }
        self.count();
    }
}

/// The end of an answer that has failed.
fn failed(error: Error<'_>) -> [Payload<'_>; 2] {
    let end = StreamEnd {
        finish_reason: FinishReason::Error,
        ..StreamEnd::default()
    };
    [error.into(), end.into()]
}

/// The machines of each stream of an answer.
fn machines(settings: &PipeSettings, search: TextSearch) -> Demux<Box<dyn Machine>> {
    let streams = Rc::clone(&settings.streams);
    let options = Rc::clone(&settings.accumulate);
    Demux::new(move |first: &Event<'_>| -> Box<dyn Machine> {
        let options = Rc::clone(&options);
        if search == TextSearch::Nothing {
            return Box::new(Accumulate::new(options));
        }
        Box::new(Chain::new(streams.begin(first), move |_: &Event<'_>| {
            Accumulate::new(Rc::clone(&options))
        }))
    })
}

/// Receives the events of a source that is a machine or a decoder.
impl Sink for &Pipe {
    fn pass(&mut self) {}

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        let t = self.0.borrow_mut().t.take();
        let time = t.as_deref().and_then(|t| Raw::parse(t).ok());
        self.push(&Event::of(payload, None, choice, time));
        self.0.borrow_mut().t = t;
    }
}

impl PipeEnd {
    /// The sink of the machines while they process `event`; `None` at the end of the events.
    fn after<'e>(&'e mut self, event: Option<&'e Event<'e>>) -> impl Sink + 'e {
        let has_times = self.has_times();
        SinkOf(move |emitted: Emitted<'_>| match (emitted, event) {
            (Emitted::Passed, Some(event)) => self.take(event),
            (Emitted::Passed, None) => {}
            (Emitted::Written(choice, payload), event) => {
                let stream = event.and_then(|event| event.stream());
                let t = event.and_then(|event| event.t());
                self.take(&Event::of(payload, stream, choice, t.filter(|_| has_times)));
            }
        })
    }

    fn take(&mut self, event: &Event<'_>) {
        self.observers.push(event);
        if self.keeps == Keeps::Calls {
            self.memory.give(event);
        }
        let (output, bytes) = (&mut self.output, &mut self.bytes);
        match &mut self.turns {
            Some(turns) => turns.push(event, &mut |event| output.push(event, bytes)),
            None => output.push(TurnEvent::Answer(event), bytes),
        }
    }
}

/// Events as lines, or as server-sent events whose id is the number of the line.
#[derive(Debug, Default)]
pub struct EventLines {
    /// Whether the lines are server-sent events.
    pub is_sse: bool,
    /// Whether the lines are kept in a session: then the events have times.
    pub is_kept: bool,
    lines: u64,
    /// The name of the API of the upstream.
    api: String,
    /// Why the answer failed, if it did.
    pub failure: Option<FailedAnswer>,
    /// Whether an event with content was written.
    pub has_content: bool,
    /// How the last stream ended.
    pub reason: Option<FinishReason>,
}

impl EventLines {
    /// No lines yet. `is_sse` makes them server-sent events.
    pub fn new(is_sse: bool) -> EventLines {
        EventLines {
            is_sse,
            ..EventLines::default()
        }
    }

    /// No lines yet of those that a session keeps.
    pub fn kept() -> EventLines {
        EventLines {
            is_kept: true,
            ..EventLines::default()
        }
    }

    /// Writes an event.
    pub fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event.kind() {
            Kind::Error => {
                let error = Error::read(event);
                self.failure
                    .get_or_insert_with(|| FailedAnswer::of_event(&error, &self.api));
            }
            Kind::StreamStart => {
                self.api = StreamStart::read(event)
                    .api
                    .map(Text::str)
                    .unwrap_or_default()
                    .into_owned()
            }
            Kind::StreamEnd => self.reason = Some(StreamEnd::read(event).finish_reason),
            Kind::SessionStats | Kind::Warning => {}
            _ => self.has_content = true,
        }
        self.lines += 1;
        if self.is_sse {
            out.extend_from_slice(format!("id: {}\ndata: ", self.lines).as_bytes());
        }
        out.extend_from_slice(event.raw().as_bytes());
        out.extend_from_slice(if self.is_sse { b"\n\n" } else { b"\n" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    fn after(lines: &[&str]) -> String {
        let streams = Rc::new(tag::Streams::new(tag::TagOptions {
            always: true,
            by_model: true,
            eager: true,
            ..tag::TagOptions::default()
        }));
        let budget = MemoryBudget::new(usize::MAX);
        let settings = PipeSettings {
            streams,
            accumulate: Rc::default(),
            most: usize::MAX,
            budget,
            metrics: ServiceMetrics::default(),
        };
        let options = AnswerOptions::default();
        let (output, _) = PipeOutput::answer(Front::Chat, AnswerForm::Stream, options);
        let pipe = Pipe::new(settings, TextSearch::Text, None, output);
        let mut scanner = Scanner::default();
        for line in lines {
            pipe.push(&scanner.read(line).expect("an event"));
        }
        String::from_utf8(pipe.take()).expect("UTF-8")
    }

    #[test]
    fn the_first_word_of_a_native_stream_is_sent_at_once() {
        let text = r#"{"type":"content_delta","text":"Hello there, "}"#;
        for start in [
            r#"{"type":"stream_start","v":1,"tools_mode":"native","tools":[]}"#,
            r#"{"type":"stream_start","v":1,"tools":[]}"#,
        ] {
            assert!(after(&[start, text]).contains("Hello"), "{start}");
        }
    }
}
