//! `otlp`: the spans of a log, for tracing systems, as OTLP's JSON: one `TracesData` a line.
//!
//! What it is: a pure machine over events ([`TraceView`]), which `tc-view` and `tc-serve` use, so that
//! a log gives the same bytes in both. What it is not: it has no clock, draws no id, and sends nothing.
//!
//! A *turn* is what one span `invoke_agent` covers: a `response` of a session, or in any other log
//! what follows a user's message. Below it are a span for each stream and one for each call that ran.

mod contents;
mod span;
mod turn;

use crate::semconv;
use crate::surface::FormRow;
use conversation::{Change, Keep, Streams, Talk, stream_of};
use event::payload::{Message, Response, ResponseEnd, ResponseStatus, Session};
use event::{Event, Kind, Object, View, safe_json};
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

/// The spans of a log: appends a line when a turn has ended.
#[derive(Debug)]
pub struct TraceView {
    talk: Talk,
    has_contents: bool,
    /// A terminal shows it: hidden characters (see [`event::is_hidden`]) become JSON escapes.
    for_terminal: bool,
    /// The id of the session that the log is.
    session: Option<String>,
    /// The open turn of each stream, with the stream's name as JSON; the unnamed stream has "".
    turns: Vec<(Box<str>, Turn)>,
    /// The place of each stream among them.
    places: Streams<usize>,
    /// How many turns began before.
    count: u64,
    /// Where the turns of the talk end before the event.
    begun: usize,
}

impl TraceView {
    /// The spans of a log; `has_contents` adds messages, arguments and results.
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

    /// Whether nothing is left to write.
    pub fn is_empty(&self) -> bool {
        self.turns.iter().all(|(_, turn)| turn.is_empty())
    }

    /// The position of the turn that an event belongs to, which may begin with it.
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

    /// A turn whose ids are made of the turn's place, unless what follows names them.
    fn new_turn(&mut self, stream: &str, clock: Clock) -> Turn {
        let session = self.session.as_deref().unwrap_or_default();
        let seed = IdSeed::of([session, stream, &self.count.to_string()]);
        self.count += 1;
        Turn::new(seed, clock, self.has_contents, self.begun)
    }

    /// Ends the turn at this position, and begins another in its place.
    fn end_turn(&mut self, at: usize, out: &mut Vec<u8>) {
        self.forget_before(at);
        let (name, turn) = &self.turns[at];
        let (name, clock) = (name.clone(), turn.clock);
        let next = self.new_turn(&name, clock);
        let turn = std::mem::replace(&mut self.turns[at].1, next);
        self.write(turn, out);
    }

    /// Forgets what came before the turn at this position. A tool may take longer than the turn of its
    /// call, and approval longer still: calls stay for one more turn.
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
        // Nothing here depends on texts, or else on pieces of arguments, which are most of a log.
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
                // `deleted` ends nothing: the response had ended before, or only an item was deleted.
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
                    // Messages alone make no spans, so that no turn of theirs ends.
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

/// The span of a response of `tc-serve`: below the client's, if the client has named one, else the
/// first of a trace of its own.
pub fn response_span(id: &str, client: Option<SpanContext>) -> SpanContext {
    let seed = IdSeed::of([id]);
    client.map_or_else(|| SpanContext::root(&seed), |client| client.child(&seed))
}
