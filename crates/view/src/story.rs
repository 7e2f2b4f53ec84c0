//! What happens in a conversation, told on a page: the same for a terminal and for plain text.

use crate::calls::{self, Call, Calls, State};
use event::{Event, Kind, Raw, View};

/// Whose words a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    User,
    Thinking,
    Answer,
}

/// What a line of ours is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Figures that change from run to run.
    Figures,
    Quiet,
    Warning,
    Error,
}

/// What a story is told on. `out` takes what is to be shown now.
pub(crate) trait Page {
    /// Whether a result is told at once. Where it is not, it is told when the model's turn is over: then the same turn gives the
    /// same page, however fast its tools were.
    const LIVE: bool;
    /// A piece of running text.
    fn text(&mut self, out: &mut Vec<u8>, voice: Voice, text: &str);
    /// A line of ours.
    fn note(&mut self, out: &mut Vec<u8>, tone: Tone, text: &str);
    /// The call at this position is new, or has changed.
    fn call(&mut self, out: &mut Vec<u8>, calls: &Calls, at: usize);
    /// What comes next does not belong to the text so far.
    fn pause(&mut self);
    /// The event has been told.
    fn done(&mut self, out: &mut Vec<u8>, calls: &Calls);
    /// The first calls of the list, all settled and told of, leave it.
    fn forget(&mut self, calls: usize);
    /// The end.
    fn finish(&mut self, out: &mut Vec<u8>);
}

/// Tells events on a page.
#[derive(Debug)]
pub(crate) struct Story<P> {
    page: P,
    calls: Calls,
    /// The streams and choices whose turn is going on: it has said something that its message would only repeat.
    turns: Vec<(Option<Box<str>>, u32)>,
    /// Whose text was last on the page.
    now: (Option<Box<str>>, u32),
    /// What a checker found, until the text that it would interrupt is over.
    decision: Option<String>,
    /// Tokens of all turns, by the provider's count.
    read: i64,
    written: i64,
}

impl<P: Page> Story<P> {
    pub fn new(page: P) -> Self {
        Story { page, calls: Calls::default(), turns: Vec::new(), now: (None, 0), decision: None, read: 0, written: 0 }
    }

    fn speak(&mut self, event: &Event<'_>, out: &mut Vec<u8>, voice: Voice, text: &str) {
        let who = (event.stream().map(Raw::text), event.choice());
        if (self.now.0.as_deref(), self.now.1) != who && !text.is_empty() {
            self.now = (who.0.map(Into::into), who.1);
            self.page.pause();
            let stream = event.stream().and_then(Raw::str);
            let mut name = stream.map_or_else(|| "the unnamed stream".to_owned(), |s| s.into_owned());
            if who.1 != 0 {
                name.push_str(&format!(", choice {}", who.1));
            }
            self.page.note(out, Tone::Quiet, &name);
        }
        self.page.text(out, voice, text);
    }

    /// Whether the model's turn of this event's stream and choice is going on.
    fn is_turn(&self, event: &Event<'_>) -> bool {
        let who = (event.stream().map(Raw::text), event.choice());
        self.turns.iter().any(|(s, c)| (s.as_deref(), *c) == who)
    }

    fn begin_turn(&mut self, event: &Event<'_>) {
        if !self.is_turn(event) {
            self.turns.push((event.stream().map(|s| s.text().into()), event.choice()));
        }
    }

    fn message(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let Some(message) = event.get("message") else { return };
        let content = calls::content(message);
        match message.get_str("role").as_deref() {
            Some("user") => {
                self.page.pause();
                self.speak(event, out, Voice::User, &content);
                self.page.pause();
            }
            Some("assistant") if self.is_turn(event) => self.end_turn(event, out, false),
            Some("assistant") => {
                let reasoning = calls::plain(message.get("reasoning"));
                self.speak(event, out, Voice::Thinking, &reasoning);
                self.speak(event, out, Voice::Answer, &content);
                for n in self.calls.asked(event, message) {
                    self.page.call(out, &self.calls, n);
                }
            }
            Some("tool") => {
                if let Some(n) = self.calls.answered(event, message) {
                    self.page.call(out, &self.calls, n);
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let Some(n) = self.calls.push(event) else { return };
        let call = &self.calls.list[n];
        if event.kind() == Kind::Retract && matches!(call.state, State::Over(_)) {
            // It had run before it was taken back: its card stands, and this is news.
            let reason = event.get_str("reason").unwrap_or_default();
            self.page.note(out, Tone::Warning, &format!("{} was taken back ({reason})", call.name));
        } else if P::LIVE || !call.is_over() || !self.is_turn(event) {
            self.tell_call(event, out, n);
        }
    }

    fn tell_call(&mut self, event: &Event<'_>, out: &mut Vec<u8>, n: usize) {
        self.page.call(out, &self.calls, n);
        let call = &mut self.calls.list[n];
        if call.is_over() && std::mem::take(&mut call.is_answer) {
            let output = call.output.clone();
            self.speak(event, out, Voice::Answer, &output);
        }
    }

    /// The model's turn is over, of this event's choice or of the whole stream: what was held back of its calls is told.
    fn end_turn(&mut self, event: &Event<'_>, out: &mut Vec<u8>, all: bool) {
        let (stream, choice) = (event.stream().map(Raw::text), event.choice());
        self.turns.retain(|(s, c)| s.as_deref() != stream || (*c != choice && !all));
        for n in 0..self.calls.list.len() {
            if !P::LIVE && self.calls.list[n].is_over() && self.calls.list[n].stream() == stream {
                self.tell_call(event, out, n);
            }
        }
    }

    /// Nothing more will be heard of these calls.
    fn close(&mut self, out: &mut Vec<u8>, which: impl Fn(&Call) -> bool) {
        for n in 0..self.calls.list.len() {
            let call = &mut self.calls.list[n];
            if which(call) && !std::mem::replace(&mut call.closed, true) && !(P::LIVE && call.is_over()) {
                self.page.call(out, &self.calls, n);
            }
        }
        self.page.done(out, &self.calls);
    }

    fn stream_start(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.end_turn(event, out, true);
        let stream = event.stream().map(Raw::text);
        self.close(out, |call| call.stream() == stream);
        let told = self.calls.list.iter().take_while(|c| c.is_over()).count();
        self.calls.forget(told);
        self.page.forget(told);
        self.page.pause();
    }

    fn tell_decision(&mut self, out: &mut Vec<u8>) {
        if let Some(decision) = self.decision.take() {
            self.page.note(out, Tone::Quiet, &decision);
        }
    }

    fn tell(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let text = |key: &str| event.get_str(key).unwrap_or_default();
        if !matches!(event.kind(), Kind::ContentDelta | Kind::RefusalDelta | Kind::Thinking | Kind::Decision) {
            self.tell_decision(out);
        }
        match event.kind() {
            Kind::ContentDelta | Kind::RefusalDelta | Kind::Thinking => {
                self.begin_turn(event);
                let voice = if event.kind() == Kind::Thinking { Voice::Thinking } else { Voice::Answer };
                self.speak(event, out, voice, &text("text"));
            }
            Kind::ToolCallDelta | Kind::ToolCallPartial | Kind::ToolCall => {
                self.begin_turn(event);
                self.call(event, out);
            }
            Kind::ToolUse | Kind::ToolProgress | Kind::ToolResult | Kind::Retract => self.call(event, out),
            Kind::Message => self.message(event, out),
            Kind::StreamStart => self.stream_start(event, out),
            Kind::StreamEnd => {
                self.end_turn(event, out, true);
                let why = match text("finish_reason").as_ref() {
                    "length" => "the answer was cut at the token limit",
                    "content_filter" => "the provider's content filter stopped the answer",
                    "cancelled" => "cancelled",
                    "cut" => "the connection ended before the answer did",
                    _ => return,
                };
                self.page.note(out, Tone::Warning, why);
            }
            Kind::Warning | Kind::Error => {
                let tone = if event.kind() == Kind::Error { Tone::Error } else { Tone::Warning };
                let note = format!("{}: {} ({})", text("source"), text("message"), text("code"));
                self.page.note(out, tone, note.trim_start_matches(": ").trim_end_matches(" ()"));
            }
            Kind::Decision => {
                let answer = event.get("tool_call").and_then(Raw::bool) == Some(true);
                let answer = if answer { "a tool call" } else { "no tool call" };
                self.decision = Some(format!("{answer} ({}: {})", text("checker"), text("reason")));
            }
            Kind::ServerItem => {
                self.page.note(out, Tone::Quiet, &format!("{} (run by the provider)", text("kind")));
            }
            Kind::SessionStats => {
                let tokens = |key: &str| event.get(key).and_then(Raw::i64).unwrap_or(0);
                self.read = self.read.saturating_add(tokens("prompt_tokens"));
                self.written = self.written.saturating_add(tokens("completion_tokens"));
            }
            Kind::Other => {}
        }
    }
}

impl<P: Page> View for Story<P> {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.tell(event, out);
        self.page.done(out, &self.calls);
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.tell_decision(out);
        self.close(out, |_| true);
        if (self.read, self.written) != (0, 0) {
            self.page.note(out, Tone::Figures, &format!("{} tokens read, {} written", self.read, self.written));
        }
        self.page.finish(out);
    }
}
