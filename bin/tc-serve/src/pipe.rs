//! The processing pipeline of one request: the source's events, then calls found in text, then
//! merged calls, then the bytes of the response.

mod observers;

use crate::budget::{MemoryBudget, Share};
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
use std::task::{Poll, Waker};
use std::time::Duration;

/// How many bytes of a response are buffered for a slow client before its source must wait.
const ROOM: usize = 64 << 10;

/// The prefixes of a provider's rate-limit headers.
const LIMITS: [&str; 3] = ["x-ratelimit-", "anthropic-ratelimit-", "ratelimit"];

/// At most `MOST_LIMITS` of these headers are forwarded, and only those whose value has at most
/// `LIMIT` bytes.
const MOST_LIMITS: usize = 32;
const LIMIT: usize = 256;

/// The settings that the pipes of all requests share.
#[derive(Clone, Debug)]
pub struct PipeSettings {
    /// How text is searched for calls.
    pub streams: Rc<tag::Streams>,
    /// How deltas are merged.
    pub accumulate: Rc<accumulate::AccumulateOptions>,
    /// The most bytes that one response may hold in memory. A response that needs more fails.
    pub most: usize,
    /// The memory budget that all requests and responses share.
    pub budget: MemoryBudget,
    /// The metrics that count the events of all responses.
    pub metrics: ServiceMetrics,
}

/// What to search the text of a response for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSearch {
    /// Nothing, and calls are not merged either: the events were written by such a pipe before.
    Done,
    /// Nothing: the source has already searched the text.
    Nothing,
    /// Reasoning, and calls of the tools that `stream_start` lists.
    Text,
}

/// The pipeline of one request. A source pushes events into it, and the body of the response takes
/// bytes from it.
pub struct Pipe(RefCell<PipeState>);

struct PipeState {
    settings: PipeSettings,
    /// The machines for each open stream of the response; `None` if the events were already
    /// processed by such machines.
    machines: Option<Demux<Box<dyn Machine>>>,
    /// For a source that writes payloads: when the stream began, and the milliseconds since then as
    /// JSON. Sessions and traces need these times.
    begin: Option<Duration>,
    t: Option<String>,
    /// The output of the last machine.
    end: PipeEnd,
    /// The provider's rate-limit headers, to copy into the response.
    limits: Vec<(HeaderName, HeaderValue)>,
    /// The share of the memory budget that this response uses.
    share: Share,
    /// How many bytes the source holds in memory.
    of_source: usize,
    /// Wakes a source that waits for [`Pipe::room`].
    full: Option<Waker>,
    /// Whether the response failed because it needed too much memory. Further events are ignored.
    is_over: bool,
    /// Whether the events come from a response stored in a session.
    is_view: bool,
    /// See [`Pipe::unread`].
    unread: Option<FailedAnswer>,
}

/// The output of the last machine.
struct PipeEnd {
    /// Joins the turns of a command into one response; `None` for a source with one turn.
    turns: Option<Turns>,
    output: PipeOutput,
    bytes: Vec<u8>,
    /// Measures the memory that the machines, the turns and the output may hold.
    memory: Meter,
    keeps: Keeps,
    observers: AnswerObservers,
}

impl PipeEnd {
    /// Whether events need times, because a session stores them or a trace is derived from them.
    fn has_times(&self) -> bool {
        let is_kept = matches!(&self.output, PipeOutput::Events(lines) if lines.is_kept);
        is_kept || self.observers.trace.is_some()
    }
}

/// The form in which the pipe writes events.
pub enum PipeOutput {
    /// A response in the format of the client's API.
    Answer(Box<Encoder>),
    /// A stream of a user interface.
    Ui(Box<UiStream>),
    /// The events themselves.
    Events(EventLines),
}

/// The media type of responses that are not streamed.
pub(crate) const JSON: &str = "application/json";

/// The media type of server-sent events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

impl PipeOutput {
    /// Returns the output for a response in this format of an API, and its media type.
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

    /// Returns the output for a stream of a user interface, and its media type.
    pub fn ui(front: UiFront, options: UiOptions) -> (PipeOutput, &'static str) {
        let stream = UiStream::new(front, options);
        (PipeOutput::Ui(Box::new(stream)), EVENT_STREAM)
    }

    /// Returns the output that writes the events themselves, as server-sent events if `is_sse`, and
    /// its media type.
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

/// How long the machines and the output of a pipe buffer what they received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// Not at all: events that were already processed are written unchanged.
    Nothing,
    /// Calls are buffered until their stream ends; text is written at once, see [`Meter::give`].
    Calls,
    /// Everything is buffered until the next stream begins. A message event repeats the text, a
    /// user interface may have to rewrite a turn, and hidden turns wait for their end.
    Turn,
    /// Everything is buffered until the end of the response.
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
    /// Creates a pipe that writes bytes in the form of `output`. `search` says what to search the
    /// text for; `turns` joins the turns of a command into one response.
    pub fn new(
        mut settings: PipeSettings,
        search: TextSearch,
        turns: Option<Turns>,
        output: PipeOutput,
    ) -> Pipe {
        // A response is built from deltas. The `message` event, which requires all text to stay in
        // memory, is produced only for clients that read the events themselves.
        if !matches!(output, PipeOutput::Events(_)) {
            Rc::make_mut(&mut settings.accumulate).no_message = true;
        }
        // Other outputs show every turn, unless the turns before the last are hidden.
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
            full: None,
            is_over: false,
            is_view: search == TextSearch::Done,
            unread: None,
        }))
    }

    /// Sets the trace that receives all later events.
    pub(crate) fn set_trace(&self, trace: AnswerTrace) {
        self.0.borrow_mut().end.observers.trace = Some(trace);
    }

    /// Processes the source's next event.
    pub fn push(&self, event: &Event<'_>) {
        self.0.borrow_mut().push(event);
    }

    /// Sets the time of the following events: `at` is the time since the request was sent, and
    /// `has_started` is true if their stream already has an event. Sessions and traces need the
    /// times as JSON.
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

    /// Returns why the last stream ended, if events are written unchanged.
    pub fn reason(&self) -> Option<FinishReason> {
        match &self.0.borrow().end.output {
            PipeOutput::Answer(_) | PipeOutput::Ui(_) => None,
            PipeOutput::Events(lines) => lines.reason,
        }
    }

    /// Ends the response with an error. `status` is the HTTP status for a client that has not
    /// received any of the response.
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

    /// Waits until the client has read enough of the buffered bytes.
    pub async fn room(&self) {
        poll_fn(|cx| {
            let state = &mut *self.0.borrow_mut();
            if state.end.bytes.len() < ROOM {
                return Poll::Ready(());
            }
            state.full = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Sets how many bytes the source holds in memory that are not part of an event yet.
    pub fn set_kept(&self, bytes: usize) {
        let state = &mut *self.0.borrow_mut();
        state.of_source = bytes;
        state.count();
    }

    /// Sets the id that the provider, which speaks `api`, gave to the response.
    pub fn set_id(&self, api: &str, id: &str) {
        if let PipeOutput::Answer(encoder) = &mut self.0.borrow_mut().end.output {
            encoder.set_id(api, id);
        }
    }

    /// Stores the provider's rate-limit headers from `headers`. Clients use them to decide how long
    /// to wait. Sources: <https://platform.openai.com/docs/guides/rate-limits>,
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

    /// Returns the provider's rate-limit headers, to copy into the response.
    pub fn limits(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.0.borrow().limits.clone()
    }

    /// Whether the source may stop: the encoder has written the last byte of the response, or, if
    /// events are written unchanged, the response was ended for using too much memory.
    pub fn is_done(&self) -> bool {
        let state = self.0.borrow();
        match &state.end.output {
            PipeOutput::Answer(encoder) => encoder.is_done() || state.unread.is_some(),
            PipeOutput::Ui(_) | PipeOutput::Events(_) => state.is_over,
        }
    }

    /// Whether the response has begun. From then on a failure is reported inside the stream, and no
    /// further attempt is allowed.
    pub fn has_begun(&self) -> bool {
        match &self.0.borrow().end.output {
            PipeOutput::Answer(encoder) => encoder.has_begun(),
            PipeOutput::Ui(stream) => stream.has_begun(),
            PipeOutput::Events(events) => events.has_content,
        }
    }

    /// Whether nothing of the response leaves the pipe before its end.
    pub fn is_sent_whole(&self) -> bool {
        matches!(&self.0.borrow().end.output, PipeOutput::Answer(encoder) if encoder.is_whole())
    }

    /// Returns why a response stored in a session cannot currently be read to its end. The stored
    /// response itself is unaffected.
    pub fn unread(&self) -> Option<FailedAnswer> {
        self.0.borrow().unread.clone()
    }

    /// Returns why the response failed; `None` if it has not.
    pub fn failure(&self) -> Option<FailedAnswer> {
        match &self.0.borrow().end.output {
            PipeOutput::Answer(encoder) => encoder.failure().cloned(),
            PipeOutput::Ui(stream) => stream.failure().cloned(),
            PipeOutput::Events(events) => events.failure.clone(),
        }
    }

    /// Ends a user interface's stream with an error when its session ends before the response does.
    /// The client reacts to this error by requesting the rest.
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

    /// Returns the counts so far.
    pub fn counts(&self) -> AnswerCounts {
        self.0.borrow().end.observers.counts
    }

    /// Returns notes on what was dropped so far from the request to the provider and from its
    /// response. Each kind appears once, with its count.
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

    /// Begins the response without content. Its status is sent, so any later failure must be
    /// reported in the stream.
    pub fn begin(&self) {
        let PipeEnd { output, bytes, .. } = &mut self.0.borrow_mut().end;
        output.begin(bytes);
    }

    /// Returns the OpenAI Responses object for what has been written so far; `None` for other
    /// formats.
    pub fn snapshot(&self, status: RunningStatus) -> Option<Vec<u8>> {
        match &self.0.borrow().end.output {
            PipeOutput::Answer(encoder) => encoder.snapshot(status),
            PipeOutput::Ui(_) | PipeOutput::Events(_) => None,
        }
    }

    /// Ends the response after the source's last event. Must be called once.
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
        // A complete response does not fail for lack of memory.
        share.keep(end.bytes.len());
    }

    /// Whether the last turn of a command has ended successfully.
    pub fn is_whole(&self) -> bool {
        let turns = &self.0.borrow().end.turns;
        turns.as_ref().is_some_and(Turns::is_whole)
    }

    /// Removes and returns the bytes of a complete response, and the share of the memory budget
    /// that they use.
    pub fn take_whole(&self) -> (Vec<u8>, Share) {
        let state = &mut *self.0.borrow_mut();
        let share = std::mem::replace(&mut state.share, state.settings.budget.share());
        (std::mem::take(&mut state.end.bytes), share)
    }

    /// Removes and returns the bytes that are ready to send.
    pub fn take(&self) -> Vec<u8> {
        let state = &mut *self.0.borrow_mut();
        if let Some(source) = state.full.take() {
            source.wake();
        }
        std::mem::take(&mut state.end.bytes)
    }

    /// Appends a keep-alive to the output.
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

    /// Updates the memory that the response uses, and ends the response as failed if that is too
    /// much.
    fn count(&mut self) {
        let kept = self.end.memory.bytes() + self.of_source;
        let room = self.share.reserve(kept + self.end.bytes.len(), 0);
        if self.is_over {
            // The response has already failed, and its remaining bytes need no more memory than it
            // had.
            return;
        }
        if kept > self.settings.most {
            let most = self.settings.most;
            self.overrun(FailedAnswer {
                status: 502,
                code: "answer_too_long".to_owned(),
                message: format!("the answer takes more than {most} bytes, see --max-answer"),
                ..FailedAnswer::default()
            });
        } else if let Err(no_room) = room {
            self.overrun(no_room.failure());
        }
    }

    /// Ends the response as failed, and frees its memory.
    #[cold]
    fn overrun(&mut self, failure: FailedAnswer) {
        self.machines
            .iter_mut()
            .flat_map(Demux::drain)
            .for_each(drop);
        (self.is_over, self.end.turns, self.of_source) = (true, None, 0);
        self.end.memory = Meter::default();
        if self.is_view {
            self.end.bytes = Vec::new();
            self.share.keep(0);
            self.unread = Some(failure);
            return;
        }
        let error = Error {
            retryable: failure.retry_after_ms.is_some(),
            status: Some(failure.status.into()),
            retry_after_ms: failure.retry_after_ms,
            ..Error::new("tc-serve", &failure.code, &failure.message)
        };
        for payload in failed(error) {
            self.end.take(&Event::of(&payload, None, 0, None));
        }
        self.count();
    }
}

/// Returns the events that end a failed response.
fn failed(error: Error<'_>) -> [Payload<'_>; 2] {
    let end = StreamEnd {
        finish_reason: FinishReason::Error,
        ..StreamEnd::default()
    };
    [error.into(), end.into()]
}

/// Creates the machines for each stream of a response.
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
    /// Returns the sink for the machines while they process `event`; `None` means the end of the
    /// events.
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
    /// Whether the lines are stored in a session, in which case the events have times.
    pub is_kept: bool,
    lines: u64,
    /// The name of the upstream's API.
    api: String,
    /// Why the response failed; `None` if it has not.
    pub failure: Option<FailedAnswer>,
    /// Whether an event with content was written.
    pub has_content: bool,
    /// Why the last stream ended.
    pub reason: Option<FinishReason>,
}

impl EventLines {
    /// Creates an empty output. `is_sse` selects server-sent events.
    pub fn new(is_sse: bool) -> EventLines {
        EventLines {
            is_sse,
            ..EventLines::default()
        }
    }

    /// Creates an empty output of lines for a session.
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
