//! `otlp`: the spans of a log, for tracing systems, in OTLP's JSON format: one `TracesData` per
//! line.
//!
//! [`TraceView`] is a pure state machine over events, which `tc-view` and `tc-serve` share, so that
//! a log gives the same bytes in both. It reads no clock, generates no random ids, and sends
//! nothing.
//!
//! A *turn* is the part of a log covered by one `invoke_agent` span: a `response` of a session, or
//! in any other log the events after a user's message. Its child spans are one per stream and one
//! per call that ran.

mod contents;
mod span;
mod turn;

use crate::semconv;
use crate::surface::FormRow;
use conversation::{Change, Keep, Talk, stream_of};
use event::payload::{Message, Response, ResponseEnd, ResponseStatus, Session};
use event::{Event, Kind, Object, Streams, View, safe_json};
use span::Attributes;
use trace::{IdSeed, SpanContext};
use turn::{Clock, Turn};

pub(crate) const ROW: FormRow = FormRow {
    name: "otlp",
    help: "A trace for OpenTelemetry's tools: OTLP as JSON, a line for each turn of the conversation",
    view: |surface| {
        Box::new(TraceView {
            for_terminal: surface.is_terminal,
            ..TraceView::new(surface.contents)
        })
    },
};

/// Writes the spans of a log: appends a line when a turn has ended.
#[derive(Debug)]
pub struct TraceView {
    talk: Talk,
    has_contents: bool,
    /// Whether the output goes to a terminal, so that hidden characters (see [`event::is_hidden`])
    /// become JSON escapes.
    for_terminal: bool,
    /// The id of the session; `None` if the log is not a session.
    session: Option<String>,
    /// The open turn of each stream, with the stream's name as JSON; the unnamed stream has "".
    turns: Vec<(Box<str>, Turn)>,
    /// The index of each stream in `turns`.
    places: Streams<usize>,
    /// The number of turns started so far.
    count: u64,
    /// The end of the talk's turns before the current event.
    begun: usize,
}

impl TraceView {
    /// Creates a view; `has_contents` adds messages, arguments and results.
    pub fn new(has_contents: bool) -> TraceView {
        TraceView {
            talk: Talk::new(Keep {
                text: false,
                arguments: has_contents,
                results: false,
            }),
            has_contents,
            for_terminal: false,
            session: None,
            turns: Vec::new(),
            places: Streams::default(),
            count: 0,
            begun: 0,
        }
    }

    /// Whether no spans are left to write.
    pub fn is_empty(&self) -> bool {
        self.turns.iter().all(|(_, turn)| turn.is_empty())
    }

    /// Returns the index of the turn that an event belongs to, or that it starts.
    fn turn_of(&mut self, event: &Event<'_>) -> usize {
        let name = stream_of(event);
        if let Some(at) = self.places.get(name) {
            return *at;
        }
        let turn = self.new_turn(name, Clock::default());
        let at = self.turns.len();
        self.turns.push((name.into(), turn));
        self.places.insert(name, at);
        at
    }

    /// Creates a turn whose ids are derived from its position, unless later events name them.
    fn new_turn(&mut self, stream: &str, clock: Clock) -> Turn {
        let session = self.session.as_deref().unwrap_or_default();
        let seed = IdSeed::of([session, stream, &self.count.to_string()]);
        self.count += 1;
        Turn::new(seed, clock, self.has_contents, self.begun)
    }

    /// Ends the turn at this index, and starts another in its place.
    fn end_turn(&mut self, at: usize, out: &mut Vec<u8>) {
        self.forget_before(at);
        let (name, turn) = &self.turns[at];
        let (name, clock) = (name.clone(), turn.clock);
        let next = self.new_turn(&name, clock);
        let turn = std::mem::replace(&mut self.turns[at].1, next);
        self.write(turn, out);
    }

    /// Drops the state from before the turn at this index. A tool may run longer than the turn of
    /// its call, and approval may take even longer, so calls are kept for one more turn.
    fn forget_before(&mut self, at: usize) {
        let (name, turn) = &self.turns[at];
        let mut old = self.talk.turns_of_stream(name);
        old.retain(|at| *at < turn.first);
        old.into_iter().for_each(|at| self.talk.forget(at));
    }

    fn write(&self, turn: Turn, out: &mut Vec<u8>) {
        if turn.is_empty() {
            return;
        }
        let from = out.len();
        let mut o = Object::open(out);
        o.array("resourceSpans", |all| {
            all.object(|o| {
                o.object("resource", |o| {
                    Attributes::default()
                        .text(semconv::SERVICE_NAME, semconv::SERVICE)
                        .write(o);
                });
                o.array("scopeSpans", |all| {
                    all.object(|o| {
                        o.object("scope", |o| {
                            o.str("name", semconv::SERVICE);
                        });
                        o.array("spans", |spans| turn.write(self.session.as_deref(), spans));
                        o.str("schemaUrl", semconv::SCHEMA_URL);
                    });
                });
            });
        });
        o.close();
        if self.for_terminal {
            let json = String::from_utf8_lossy(&out.split_off(from)).into_owned();
            out.extend_from_slice(safe_json(&json).as_bytes());
        }
        out.push(b'\n');
    }
}

impl View for TraceView {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.begun = self.talk.turns().end();
        let at = self.turn_of(event);
        // No span depends on texts, or, without contents, on argument deltas; together these are
        // most of a log.
        let change = match event.kind() {
            Kind::ContentDelta | Kind::RefusalDelta | Kind::Thinking => Change::Nothing,
            Kind::ToolCallDelta if !self.has_contents => Change::Nothing,
            _ => self.talk.push(event),
        };
        match event.kind() {
            Kind::Session => {
                let id = Session::read(event).id.str();
                self.session.get_or_insert_with(|| id.into_owned());
            }
            Kind::Response => {
                self.end_turn(at, out);
                self.turns[at].1.respond(&Response::read(event));
            }
            Kind::ResponseEnd => {
                let end = ResponseEnd::read(event);
                // `deleted` ends no turn: the response had already ended, or only an item was
                // deleted.
                if self.turns[at].1.is_of(&end) && end.status != ResponseStatus::Deleted.name() {
                    self.turns[at].1.end(&end);
                    self.end_turn(at, out);
                }
            }
            Kind::Message => {
                let message = Message::read(event);
                if message.is_of("user") && self.turns[at].1.takes_no_question() {
                    self.end_turn(at, out);
                } else if !message.is_of("tool") && self.turns[at].1.is_empty() {
                    // Messages alone make no spans, so their turn is not ended.
                    self.forget_before(at);
                    self.turns[at].1.first = self.begun;
                }
                self.turns[at].1.push(event, &self.talk, change);
            }
            _ => self.turns[at].1.push(event, &self.talk, change),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        for (_, turn) in std::mem::take(&mut self.turns) {
            self.write(turn, out);
        }
    }
}

/// Returns the span context of a response of `tc-serve`: a child of the client's span if the client
/// sent one, otherwise the root of a new trace.
pub fn response_span(id: &str, client: Option<SpanContext>) -> SpanContext {
    let seed = IdSeed::of([id]);
    client.map_or_else(|| SpanContext::root(&seed), |client| client.child(&seed))
}
