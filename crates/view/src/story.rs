//! What happens in a conversation, told on a page: the same for a terminal and for plain text.

pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod card;
pub(crate) mod page;
pub(crate) mod who;

use crate::value::{content, plain};
use call::{CallCard, CallState};
use calls::Calls;
use event::payload::{
    ContentDelta, Decision, Error, FinishReason, Message, RefusalDelta, Retract, ServerItem, SessionStats, StreamEnd,
    Thinking, Warning,
};
use event::{Event, Kind, Raw, Text, View};
use page::{Page, Tone, Voice};
use who::Who;

/// Tells events on a page.
#[derive(Debug)]
pub(crate) struct Story<P> {
    page: P,
    calls: Calls,
    /// The streams and choices whose turn is going on: it has said something that its message would only repeat.
    turns: Vec<Who>,
    /// Whether events without a `stream` are a stream among others, and not only remarks of the commands.
    has_unnamed: bool,
    /// What a checker found, until the text that it would interrupt is over.
    decision: Option<(Who, String)>,
    /// Tokens of all turns, by the provider's count.
    read: u64,
    written: u64,
}

impl<P: Page> Story<P> {
    pub fn new(page: P) -> Self {
        Story {
            page,
            calls: Calls::default(),
            turns: Vec::new(),
            has_unnamed: false,
            decision: None,
            read: 0,
            written: 0,
        }
    }

    pub fn page(&mut self) -> &mut P {
        &mut self.page
    }

    fn turn_to(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if !self.page.now().is(event) {
            self.page.turn_to(out, &Who::of(event));
        }
    }

    fn speak(&mut self, event: &Event<'_>, out: &mut Vec<u8>, voice: Voice, text: &str) {
        if !text.is_empty() {
            self.turn_to(event, out);
            self.page.text(out, voice, text);
        }
    }

    fn note(&mut self, event: &Event<'_>, out: &mut Vec<u8>, tone: Tone, text: &str) {
        if self.has_unnamed || event.stream().is_some() {
            self.turn_to(event, out);
        }
        self.page.note(out, tone, text);
    }

    /// Whether the model's turn of this event's stream and choice is going on.
    fn is_turn(&self, event: &Event<'_>) -> bool {
        self.turns.iter().any(|who| who.is(event))
    }

    fn begin_turn(&mut self, event: &Event<'_>) {
        if !self.is_turn(event) {
            self.turns.push(Who::of(event));
        }
    }

    fn message(&mut self, event: &Event<'_>, message: Raw<'_>, out: &mut Vec<u8>) {
        let text = content(message);
        match message.get_str("role").as_deref() {
            Some("user") => {
                self.page.pause();
                self.speak(event, out, Voice::User, &text);
                self.page.pause();
            }
            Some("assistant") if self.is_turn(event) => self.end_turn(event, out, false),
            Some("assistant") => {
                let reasoning = plain(message.get("reasoning"));
                self.speak(event, out, Voice::Thinking, &reasoning);
                self.speak(event, out, Voice::Answer, &text);
                self.speak(event, out, Voice::Refusal, &plain(message.get("refusal")));
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
        if event.kind() == Kind::Retract && matches!(call.state, CallState::Over(_)) {
            // It had run before it was taken back: its card stands, and this is news.
            let reason = Retract::read(event).reason.str();
            let text = format!("{} was taken back ({reason})", call.name);
            self.note(event, out, Tone::Warning, &text);
        } else if P::LIVE || !call.is_over() || !self.is_turn(event) {
            self.tell_call(event, out, n);
        }
    }

    fn tell_call(&mut self, event: &Event<'_>, out: &mut Vec<u8>, n: usize) {
        self.page.call(out, &self.calls, n);
        let call = &mut self.calls.list[n];
        if call.is_over() && std::mem::take(&mut call.is_answer) {
            let output = call.output.clone();
            self.speak(event, out, Voice::Output, &output);
        }
    }

    /// The model's turn is over, of this event's choice or of the whole stream: what was held back of its calls is told.
    fn end_turn(&mut self, event: &Event<'_>, out: &mut Vec<u8>, all: bool) {
        if self.page.now().shares_stream(event) {
            self.page.end_text(out);
        }
        self.turns.retain(|who| !(who.is(event) || all && who.shares_stream(event)));
        for n in 0..self.calls.list.len() {
            if !P::LIVE && self.calls.list[n].is_over() && self.calls.list[n].who.shares_stream(event) {
                self.tell_call(event, out, n);
            }
        }
    }

    /// Nothing more will be heard of these calls.
    fn close(&mut self, out: &mut Vec<u8>, which: impl Fn(&CallCard) -> bool) {
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
        self.close(out, |call| call.who.shares_stream(event));
        let told = self.calls.list.iter().take_while(|c| c.is_over() && c.is_settled()).count();
        self.calls.forget(told);
        self.page.forget(told);
        self.page.pause();
    }

    fn tell_decision(&mut self, out: &mut Vec<u8>) {
        if let Some((who, decision)) = self.decision.take() {
            self.page.turn_to(out, &who);
            self.page.note(out, Tone::Quiet, &decision);
        }
    }

    fn tell(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if !matches!(event.kind(), Kind::ContentDelta | Kind::RefusalDelta | Kind::Thinking) {
            self.tell_decision(out);
        }
        let speaks =
            [Kind::StreamStart, Kind::ContentDelta, Kind::RefusalDelta, Kind::Thinking].contains(&event.kind());
        self.has_unnamed |= speaks && event.stream().is_none();
        match event.kind() {
            Kind::ContentDelta | Kind::RefusalDelta | Kind::Thinking => {
                self.begin_turn(event);
                let (voice, text) = match event.kind() {
                    Kind::Thinking => (Voice::Thinking, Thinking::read(event).text),
                    Kind::RefusalDelta => (Voice::Refusal, RefusalDelta::read(event).text),
                    _ => (Voice::Answer, ContentDelta::read(event).text),
                };
                self.speak(event, out, voice, &text.str());
            }
            Kind::ToolCallDelta | Kind::ToolCallPartial | Kind::ToolCall => {
                self.begin_turn(event);
                self.call(event, out);
            }
            Kind::ToolUse | Kind::ToolProgress | Kind::ToolResult | Kind::Retract => self.call(event, out),
            Kind::Message => Message::read(event).message.with(|message| self.message(event, message, out)),
            Kind::StreamStart => self.stream_start(event, out),
            Kind::StreamEnd => {
                let reason = StreamEnd::read(event).finish_reason;
                if reason == FinishReason::Cancelled {
                    self.calls.cancel(event);
                }
                self.end_turn(event, out, true);
                let why = match reason {
                    FinishReason::Length => "the answer was cut at the token limit",
                    FinishReason::ContentFilter => "the provider's content filter stopped the answer",
                    FinishReason::Cancelled => "cancelled",
                    FinishReason::Cut => "the connection ended before the answer did",
                    _ => return,
                };
                self.note(event, out, Tone::Warning, why);
            }
            Kind::Warning | Kind::Error => {
                let (tone, texts) = if event.kind() == Kind::Error {
                    let Error { source, message, code, .. } = Error::read(event);
                    (Tone::Error, [source, message, code])
                } else {
                    let Warning { source, message, code, .. } = Warning::read(event);
                    (Tone::Warning, [source, message, code])
                };
                let [source, message, code] = texts.map(Text::str);
                let note = format!("{source}: {message} ({code})");
                self.note(event, out, tone, note.trim_start_matches(": ").trim_end_matches(" ()"));
            }
            Kind::Decision => {
                let decision = Decision::read(event);
                let answer = if decision.tool_call { "a tool call" } else { "no tool call" };
                let text = format!("{answer} ({}: {})", decision.checker.str(), decision.reason.str());
                self.decision = Some((Who::of(event), text));
            }
            Kind::ServerItem => {
                let kind = ServerItem::read(event).kind.str();
                self.note(event, out, Tone::Quiet, &format!("{kind} (run by the provider)"));
            }
            Kind::SessionStats => {
                let stats = SessionStats::read(event);
                self.read = self.read.saturating_add(stats.prompt_tokens.unwrap_or(0));
                self.written = self.written.saturating_add(stats.completion_tokens.unwrap_or(0));
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

    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        self.page.interrupt(out);
        self.calls.run_on()
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.tell_decision(out);
        self.calls.end();
        self.close(out, |_| true);
        if (self.read, self.written) != (0, 0) {
            self.page.note(out, Tone::Figures, &format!("{} tokens read, {} written", self.read, self.written));
        }
        self.page.finish(out);
    }
}
