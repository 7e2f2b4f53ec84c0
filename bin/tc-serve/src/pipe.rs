//! The machines of one request: events of a source → calls in text → merged calls → the bytes of
//! the answer.

mod event_lines;

pub use event_lines::EventLines;

use crate::budget::{Budget, FULL_MS, MEMORY, Share};
use crate::turns::Turns;
use accumulate::Accumulate;
use api::{Dropped, Encoder, Failure};
use event::payload::{Error, FinishReason, StreamEnd, StreamStart, Warning};
use event::{Chain, Event, Kind, Machine, Payload, Raw, Sink, cut};
use hyper::header::{HeaderName, HeaderValue};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// How many bytes of an answer wait for a slow client before its source has to wait, too.
const ROOM: usize = 64 << 10;

/// How many notes about what was left out are kept.
const NOTES: usize = 16;

/// The warnings that are notes of the log: what a provider did not get, and what of its answer the
/// client does not get. Their messages hold no text but tokens of the table of dialects.
const NOTED: [&str; 4] = [
    "parameter_left_out",
    "tag_dropped",
    "late_reasoning",
    "extra_text",
];

/// How the names of headers with a provider's limits begin.
const LIMITS: [&str; 3] = ["x-ratelimit-", "anthropic-ratelimit-", "ratelimit"];

/// How many of these headers are passed on, and how many bytes of one.
const MOST_LIMITS: usize = 32;
const LIMIT: usize = 256;

/// How many bytes of such a note are kept: it repeats names of the client's.
const NOTE: usize = 512;

/// What the pipes of all requests share.
#[derive(Clone, Debug)]
pub struct PipeSettings {
    /// How text is searched for calls.
    pub streams: Rc<tag::Streams>,
    /// How deltas are merged.
    pub accumulate: Rc<accumulate::Options>,
    /// The most bytes that are kept of one answer.
    pub most: usize,
    /// The bytes that all answers keep.
    pub budget: Budget,
}

/// What is searched for in the text of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSearch {
    /// Nothing: whoever made the events has read the text.
    Nothing,
    /// Reasoning alone: the client wants no calls.
    Reasoning,
    /// Reasoning, and calls of the request's tools.
    Calls,
}

/// The machines of one request. A source feeds it, and the response's body takes the bytes.
pub struct Pipe(RefCell<PipeState>);

struct PipeState {
    settings: PipeSettings,
    search: TextSearch,
    /// The family of the model, by its server's template.
    family: Option<&'static tag::Dialect>,
    /// The machines of the stream at hand.
    machine: Option<Box<dyn Machine>>,
    /// Makes one answer of the turns of a command.
    turns: Option<Turns>,
    output: Output,
    bytes: Vec<u8>,
    counts: PipeCounts,
    /// What was left out, and how often.
    notes: Vec<(String, u64)>,
    /// The provider's headers with its limits.
    limits: Vec<(HeaderName, HeaderValue)>,
    /// What is kept of this answer.
    share: Share,
    /// The bytes that the source keeps.
    of_source: usize,
    /// More would have to be kept than there is room for: the answer has failed, and no further
    /// event counts.
    is_over: bool,
}

/// What the access log has of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct PipeCounts {
    /// Whole calls that the client got.
    pub calls: u64,
    /// Warnings.
    pub warnings: u64,
}

/// What is written of the events.
pub enum Output {
    /// The answer of a front.
    Answer(Box<Encoder>),
    /// The events themselves.
    Events(EventLines),
}

impl Pipe {
    /// A pipe whose bytes are `output`. `search` is what is searched for in the text, and `turns`
    /// makes one answer of many turns.
    pub fn new(
        mut settings: PipeSettings,
        search: TextSearch,
        turns: Option<Turns>,
        output: Output,
    ) -> Pipe {
        // An answer is made of the deltas. Only who takes the events themselves gets the message,
        // for which all text is kept.
        if matches!(output, Output::Answer(_)) {
            Rc::make_mut(&mut settings.accumulate).no_message = true;
        }
        Pipe(RefCell::new(PipeState {
            share: settings.budget.share(),
            settings,
            search,
            family: None,
            machine: None,
            turns,
            output,
            bytes: Vec::new(),
            counts: PipeCounts::default(),
            notes: Vec::new(),
            limits: Vec::new(),
            of_source: 0,
            is_over: false,
        }))
    }

    /// Takes the family of the model whose answer follows, for a model whose name has none.
    pub fn set_family(&self, family: Option<&'static tag::Dialect>) {
        self.0.borrow_mut().family = family;
    }

    /// Takes the next event of the source.
    pub fn push(&self, event: &Event<'_>) {
        self.0.borrow_mut().push(event);
    }

    /// A sink whose events go into this pipe, for a source that is a machine or a decoder.
    pub fn sink(&self) -> PipeSink<'_> {
        PipeSink(self)
    }

    /// Ends the answer with an error. `status` is the HTTP status for a client that has nothing of
    /// the answer yet.
    pub fn fail(&self, code: &str, message: &str, status: u16, retry_after_ms: Option<u64>) {
        let is_retryable = matches!(status, 408 | 409 | 429 | 500..);
        let error = Error {
            retryable: is_retryable,
            status: Some(status.into()),
            retry_after_ms,
            ..Error::new("tc-serve", code, message)
        };
        let sink: &mut dyn Sink = &mut self.sink();
        sink.emit(0, error);
        sink.emit(
            0,
            StreamEnd {
                finish_reason: FinishReason::Error,
                ..StreamEnd::default()
            },
        );
    }

    /// Waits until the client has taken enough of the bytes.
    pub async fn room(&self) {
        // The body polls the source again whenever it has handed on what is here, so nobody needs
        // to be woken.
        poll_fn(|_| {
            if self.0.borrow().bytes.len() < ROOM {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Takes how many bytes the source keeps of what is not an event yet.
    pub fn set_kept(&self, bytes: usize) {
        let state = &mut *self.0.borrow_mut();
        state.of_source = bytes;
        state.count();
    }

    /// Takes the id that the provider, which speaks `api`, gave to the answer.
    pub fn set_id(&self, api: &str, id: &str) {
        if let Output::Answer(encoder) = &mut self.0.borrow_mut().output {
            encoder.set_id(api, id);
        }
    }

    /// Takes the headers of the provider's answer, and keeps those with its limits: clients wait by
    /// them. Sources: <https://platform.openai.com/docs/guides/rate-limits>,
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

    /// Whether the last byte of the answer was encoded, so that a source may stop.
    pub fn is_done(&self) -> bool {
        let state = self.0.borrow();
        match &state.output {
            Output::Answer(encoder) => encoder.is_done(),
            Output::Events(_) => state.is_over,
        }
    }

    /// Whether the answer has begun: its failure is reported inside the stream, and no further
    /// attempt is allowed.
    pub fn has_begun(&self) -> bool {
        match &self.0.borrow().output {
            Output::Answer(encoder) => encoder.has_begun(),
            Output::Events(events) => events.has_content,
        }
    }

    /// Why the answer failed, if it did.
    pub fn failure(&self) -> Option<Failure> {
        match &self.0.borrow().output {
            Output::Answer(encoder) => encoder.failure().cloned(),
            Output::Events(events) => events.failure.clone(),
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> PipeCounts {
        self.0.borrow().counts
    }

    /// What was left out so far, on the way to the provider and of its answer: each kind once, with
    /// how often it came.
    pub fn notes(&self) -> Vec<String> {
        let state = &*self.0.borrow();
        let dropped = match &state.output {
            Output::Answer(encoder) => encoder.dropped(),
            Output::Events(_) => Dropped::default(),
        };
        let note = |what: &str, count: u64| {
            if count == 1 {
                what.to_owned()
            } else {
                format!("{what} ({count} times)")
            }
        };
        let left_out = state.notes.iter().map(|(what, count)| note(what, *count));
        left_out
            .chain(dropped.notes().map(|(what, count)| note(&what, count)))
            .collect()
    }

    /// Begins the answer without content: its status is sent, so that a failure from now on must
    /// show in the stream.
    pub fn begin(&self) {
        let state = &mut *self.0.borrow_mut();
        if let Output::Answer(encoder) = &mut state.output {
            encoder.begin(&mut state.bytes);
        }
    }

    /// Takes the end of the source's events, once.
    pub fn finish(&self) {
        let state = &mut *self.0.borrow_mut();
        if let Some(mut machine) = state.machine.take() {
            machine.finish(&mut state.end(None));
        }
        if let Output::Answer(encoder) = &mut state.output {
            if let Some(turns) = &mut state.turns {
                turns.finish(&mut |event| encoder.push(event, &mut state.bytes));
            }
            encoder.finish(&mut state.bytes);
        }
        // What is complete is not refused any more.
        state.share.keep(state.bytes.len());
    }

    /// Whether the last turn of a command has ended, and not as failed.
    pub fn is_whole(&self) -> bool {
        self.0.borrow().turns.as_ref().is_some_and(Turns::is_whole)
    }

    /// Takes a whole answer, with its share of what is kept.
    pub fn take_whole(&self) -> (Vec<u8>, Share) {
        let state = &mut *self.0.borrow_mut();
        let share = std::mem::replace(&mut state.share, state.settings.budget.share());
        (std::mem::take(&mut state.bytes), share)
    }

    /// Takes the bytes that can be sent.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut().bytes)
    }

    /// Appends what keeps the connection alive.
    pub fn keep_alive(&self) {
        let state = &mut *self.0.borrow_mut();
        match &mut state.output {
            Output::Answer(encoder) => encoder.keep_alive(&mut state.bytes),
            Output::Events(EventLines { is_sse: true, .. }) => {
                state.bytes.extend_from_slice(b": keep-alive\n\n")
            }
            Output::Events(_) => state.bytes.push(b'\n'),
        }
    }
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe")
            .field("bytes", &self.0.borrow().bytes.len())
            .finish_non_exhaustive()
    }
}

impl PipeState {
    fn push(&mut self, event: &Event<'_>) {
        if self.is_over {
            return;
        }
        self.feed(event);
        self.count();
    }

    /// Counts what is kept of the answer, and ends it as failed where that is too much.
    fn count(&mut self) {
        let output = match &self.output {
            Output::Answer(encoder) => encoder.kept(),
            Output::Events(_) => 0,
        };
        let machines = self.machine.as_ref().map_or(0, Machine::kept)
            + self.turns.as_ref().map_or(0, Turns::kept);
        let kept = machines + output + self.of_source;
        if self.is_over {
            // What is left takes no more room than there was.
            self.share.keep(kept + self.bytes.len());
        } else if kept > self.settings.most {
            let message = format!(
                "the answer takes more than {} bytes, see --max-answer",
                self.settings.most
            );
            self.overrun("answer_too_long", &message, 502);
        } else if !self.share.keep(kept + self.bytes.len()) {
            self.overrun("memory_full", MEMORY, 503);
        }
    }

    /// Ends the answer as failed, and forgets what was kept for it.
    #[cold]
    fn overrun(&mut self, code: &str, message: &str, status: u16) {
        (self.is_over, self.machine, self.turns, self.of_source) = (true, None, None, 0);
        let is_full = status == 503;
        let error = Error {
            retryable: is_full,
            status: Some(status.into()),
            retry_after_ms: is_full.then_some(FULL_MS),
            ..Error::new("tc-serve", code, message)
        };
        let end = StreamEnd {
            finish_reason: FinishReason::Error,
            ..StreamEnd::default()
        };
        for payload in [error.into(), Payload::from(end)] {
            self.end(None).take(&Event::of(&payload, None, 0, None));
        }
        self.count();
    }

    fn feed(&mut self, event: &Event<'_>) {
        if event.kind() == Kind::StreamStart
            && let Some(mut cut) = self.machine.take()
        {
            cut.finish(&mut self.end(None));
        }
        if self.machine.is_none() && !event.kind().begins_stream() {
            return self.end(Some(event)).pass();
        }
        let mut machine = self.machine.take().unwrap_or_else(|| self.begin(event));
        machine.push(event, &mut self.end(Some(event)));
        self.machine = Some(machine).filter(|_| event.kind() != Kind::StreamEnd);
    }

    fn begin(&self, first: &Event<'_>) -> Box<dyn Machine> {
        let options = Rc::clone(&self.settings.accumulate);
        if self.search != TextSearch::Nothing {
            let tag = begin_text(&self.settings.streams, self.search, self.family, first);
            Box::new(Chain::new(tag, move |_: &Event<'_>| {
                Accumulate::new(Rc::clone(&options))
            }))
        } else {
            Box::new(Accumulate::new(options))
        }
    }

    fn end<'e>(&'e mut self, event: Option<&'e Event<'e>>) -> PipeEnd<'e> {
        let PipeState {
            turns,
            output,
            bytes,
            counts,
            notes,
            ..
        } = self;
        PipeEnd {
            event,
            turns,
            output,
            bytes,
            counts,
            notes,
        }
    }
}

/// The machine that searches the text of a stream for calls. Where a provider has native calls and
/// nobody says how the prompt ends, it is taken for empty: a prompt that is not known would hold
/// back the beginning of each answer, and each call in the text until the end.
fn begin_text(
    streams: &tag::Streams,
    search: TextSearch,
    family: Option<&'static tag::Dialect>,
    first: &Event<'_>,
) -> tag::Tag {
    if first.kind() != Kind::StreamStart {
        return streams.begin_of(family, first);
    }
    let mut start = StreamStart::read(first);
    if start.tools_mode.is_none_or(|mode| mode != "tag") {
        start.prefill = start.prefill.or(Some("".into()));
    }
    // The provider gets the tools with the choice `none`, but what the model writes of them stays
    // text.
    start.tools = start.tools.filter(|_| search == TextSearch::Calls);
    let payload = Payload::from(start);
    streams.begin_of(family, &Event::of(&payload, None, 0, None))
}

/// Takes the events of a source.
#[derive(Debug)]
pub struct PipeSink<'p>(&'p Pipe);

impl Sink for PipeSink<'_> {
    fn pass(&mut self) {}

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.0.push(&Event::of(payload, None, choice, None));
    }
}

/// What the last machine writes to.
struct PipeEnd<'e> {
    /// The event that the machines take now; `None` at the end of the events.
    event: Option<&'e Event<'e>>,
    turns: &'e mut Option<Turns>,
    output: &'e mut Output,
    bytes: &'e mut Vec<u8>,
    counts: &'e mut PipeCounts,
    notes: &'e mut Vec<(String, u64)>,
}

impl PipeEnd<'_> {
    fn take(&mut self, event: &Event<'_>) {
        match event.kind() {
            Kind::ToolCall => self.counts.calls += 1,
            Kind::Warning => {
                self.counts.warnings += 1;
                self.note(&Warning::read(event));
            }
            _ => {}
        }
        match (&mut *self.output, &mut *self.turns) {
            (Output::Answer(encoder), Some(turns)) => {
                turns.push(event, &mut |event| encoder.push(event, self.bytes))
            }
            (Output::Answer(encoder), None) => encoder.push(event, self.bytes),
            (Output::Events(lines), _) => lines.push(event, self.bytes),
        }
    }
}

impl PipeEnd<'_> {
    /// Keeps what was left out for the log.
    fn note(&mut self, warning: &Warning<'_>) {
        if !NOTED.iter().any(|code| warning.code == *code) {
            return;
        }
        let message = warning.message.str();
        let message = cut(&message, NOTE);
        if let Some((_, count)) = self.notes.iter_mut().find(|(note, _)| note == message) {
            *count += 1;
        } else if self.notes.len() < NOTES {
            self.notes.push((message.to_owned(), 1));
        }
    }
}

impl Sink for PipeEnd<'_> {
    fn pass(&mut self) {
        if let Some(event) = self.event {
            self.take(event);
        }
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        let stream: Option<Raw<'_>> = self.event.and_then(|event| event.stream());
        self.take(&Event::of(payload, stream, choice, None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{AnswerOptions, Form, Front};
    use event::Scanner;

    fn after(lines: &[&str]) -> String {
        let streams = Rc::new(tag::Streams::new(tag::Options {
            always: true,
            ..tag::Options::default()
        }));
        let budget = Budget::new(usize::MAX);
        let settings = PipeSettings {
            streams,
            accumulate: Rc::default(),
            most: usize::MAX,
            budget,
        };
        let encoder = Encoder::new(Front::Chat, Form::Stream, AnswerOptions::default());
        let pipe = Pipe::new(
            settings,
            TextSearch::Calls,
            None,
            Output::Answer(Box::new(encoder)),
        );
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
