//! A conversation on a page, shared by the terminal and plain-text views: its texts, its notes and
//! the cards of its calls.

use crate::card::heading;
use anstyle::{AnsiColor, Style};
use conversation::{CallChange, Change, Keep, Talk, Who, content, plain};
use event::payload::{FinishReason, Retract, RetractReason};
use event::{Event, Kind, Payload, Raw, Text, View};
use std::collections::{BTreeSet, HashSet};

/// Maximum number of calls of earlier turns that may wait for a result, and of streams that may
/// wait for their next turn. Without a limit, a log of calls that were never run would be kept to
/// its end.
const WAITING: usize = 256;

/// Minimum number of further turns before a turn is dropped: a tool message that repeats a result
/// may follow it later.
const FEW: usize = 16;

/// Shows events on a page.
#[derive(Debug)]
pub(crate) struct Story<P> {
    page: P,
    talk: Talk,
    /// The number of turns and calls at which those already shown are dropped.
    full: usize,
    /// The calls whose results are held back until the turn of their stream has ended.
    held: BTreeSet<usize>,
    /// The calls whose output is the answer, and is shown as such.
    spoken: HashSet<usize>,
    /// Whether there is an unnamed stream; if not, events without a `stream` are notices of
    /// commands.
    has_unnamed: bool,
    /// A decision that is held back until the text that it would interrupt is complete.
    decision: Option<(Who, String)>,
    /// The stream of the last error, which explains why that stream was cut.
    failed: Option<Who>,
    tokens: Tokens,
}

/// The tokens of all turns, as counted by the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub read: u64,
    pub written: u64,
    /// The cost in millionths of a dollar.
    pub cost: u64,
}

impl Tokens {
    /// Returns the cost as a suffix of the counts; empty if no price was set.
    pub(crate) fn price(self) -> String {
        if self.cost == 0 {
            return String::new();
        }
        format!(" · ${}.{:06}", self.cost / 1_000_000, self.cost % 1_000_000)
    }
}

impl<P: Page> Story<P> {
    pub(crate) fn new(page: P) -> Self {
        Story {
            page,
            talk: Talk::new(Keep {
                text: false,
                arguments: true,
                results: true,
            }),
            full: FEW,
            held: BTreeSet::new(),
            spoken: HashSet::new(),
            has_unnamed: false,
            decision: None,
            failed: None,
            tokens: Tokens::default(),
        }
    }

    pub(crate) fn page(&mut self) -> &mut P {
        &mut self.page
    }

    fn turn_to(&mut self, event: &Event<'_>) {
        if !self.page.now().is(event) {
            self.page.turn_to(&Who::of(event));
        }
    }

    fn speak(&mut self, event: &Event<'_>, voice: Voice, text: &str) {
        if !text.is_empty() {
            self.turn_to(event);
            self.page.text(voice, text);
        }
    }

    fn note(&mut self, event: &Event<'_>, tone: Tone, text: &str) {
        if self.has_unnamed || event.stream().is_some() {
            self.turn_to(event);
        }
        self.page.note(tone, text);
    }

    fn message(&mut self, event: &Event<'_>, message: Raw<'_>, change: Change) {
        let text = content(message);
        match (message.get_str("role").as_deref(), change) {
            (Some("user"), _) => {
                self.page.pause();
                self.speak(event, Voice::User, &text);
                self.page.pause();
            }
            (Some("assistant"), Change::Turn(at)) if self.talk.turns()[at].is_message => {
                // A log that consists only of messages has no `stream_start`, and every result of
                // an earlier call precedes the assistant's next message.
                self.forget_shown();
                let reasoning = plain(message.get("reasoning"));
                self.speak(event, Voice::Thinking, &reasoning);
                self.speak(event, Voice::Answer, &text);
                self.speak(event, Voice::Refusal, &plain(message.get("refusal")));
                for call in &self.talk.turns()[at].calls {
                    self.page.call(&self.talk, *call);
                }
            }
            (Some("assistant"), _) => self.end_turn(event),
            (Some("tool"), Change::Call(at, CallChange::Answered)) => {
                self.page.call(&self.talk, at)
            }
            _ => {}
        }
    }

    fn call(&mut self, event: &Event<'_>, payload: &Payload<'_>, at: usize, change: CallChange) {
        self.page.call_event(event, payload, at);
        let call = &self.talk.calls()[at];
        if change == CallChange::Retracted && call.answer.is_some() {
            // The call ran before it was retracted: its card keeps the result, and a note reports
            // the retraction. The end of a turn does not undo a call that has run.
            let reason = Retract::read(event).reason;
            let text = if reason == RetractReason::StreamFailed.name() {
                format!("{} ran before the turn was cut off", call.name)
            } else {
                format!("{} was taken back ({})", call.name, reason.str())
            };
            self.note(event, Tone::Warning, &text);
        } else if P::LIVE || !call.has_ended() || !self.talk.is_streaming(event) {
            self.show_call(event, at);
        } else {
            self.held.insert(at);
        }
    }

    fn show_call(&mut self, event: &Event<'_>, at: usize) {
        self.page.call(&self.talk, at);
        let answer = self.talk.calls()[at].answer.as_ref();
        if let Some(answer) = answer.filter(|answer| answer.is_final)
            && self.spoken.insert(at)
        {
            let output = answer.output.clone();
            self.speak(event, Voice::Output, &output);
        }
    }

    /// Ends the model's turn in this event's choice or in the whole stream, and shows the results
    /// that were held back.
    fn end_turn(&mut self, event: &Event<'_>) {
        if self.page.now().shares_stream(event) {
            self.page.end_text();
        }
        let is_of_stream = |at: &usize| {
            let call = self.talk.calls().get(*at);
            let who = call.and_then(|call| self.talk.who(call));
            who.is_none_or(|who| who.shares_stream(event))
        };
        let held: Vec<usize> = self.held.iter().copied().filter(is_of_stream).collect();
        for at in held {
            self.held.remove(&at);
            if self.talk.calls().get(at).is_some() {
                self.show_call(event, at);
            }
        }
    }

    /// Handles calls that no further event can change.
    fn close(&mut self, calls: &[usize]) {
        for at in calls {
            // A result of an earlier turn's call may still be held back when the input ends.
            if !(P::LIVE && self.talk.calls()[*at].has_ended()) {
                self.page.call(&self.talk, *at);
            }
        }
        self.page.done(&self.talk);
    }

    /// Drops the turns whose calls will not change on the page again. This scans all kept turns, so
    /// it waits until their number has doubled since the last scan.
    fn forget_shown(&mut self) {
        let kept = |talk: &Talk| talk.turns().len() + talk.calls().len();
        if kept(&self.talk) < self.full {
            return;
        }
        // Calls without a result may still get one, but a long log may have too many of them to
        // keep.
        let many = self.talk.calls().end().saturating_sub(WAITING);
        let mut shown = Vec::new();
        for (at, turn) in self.talk.turns().iter() {
            let is_shown = |call: &usize| {
                let n = &self.talk.calls()[*call];
                n.has_ended() && n.is_settled() && !self.held.contains(call)
                    || n.is_closed && *call < many
            };
            if !turn.calls.iter().all(is_shown) {
                break;
            }
            let newer = self.talk.turns().end() - at;
            if turn.is_past && newer > FEW || turn.has_ended() && newer > WAITING {
                shown.push(at);
            }
        }
        for at in shown {
            self.talk.forget(at);
        }
        let calls = self.talk.calls();
        self.held.retain(|at| calls.get(*at).is_some());
        self.spoken.retain(|at| calls.get(*at).is_some());
        self.page.forget(&self.talk);
        self.full = 2 * kept(&self.talk) + FEW;
    }

    fn show_decision(&mut self) {
        if let Some((who, decision)) = self.decision.take() {
            self.page.turn_to(&who);
            self.page.note(Tone::Quiet, &decision);
        }
    }

    fn show(&mut self, event: &Event<'_>) {
        let kind = event.kind();
        let is_text = matches!(
            kind,
            Kind::ContentDelta | Kind::RefusalDelta | Kind::Thinking
        );
        if !is_text {
            self.show_decision();
        }
        self.has_unnamed |= (is_text || kind == Kind::StreamStart) && event.stream().is_none();
        let closed = match kind {
            Kind::StreamStart => self.talk.open_calls(event),
            _ => Vec::new(),
        };
        let change = self.talk.push(event);
        if kind == Kind::StreamStart {
            self.end_turn(event);
            self.close(&closed);
            self.forget_shown();
            self.page.pause();
        }
        let Some(payload) = event.payload() else {
            return;
        };
        self.page.event(event, &payload);
        match payload {
            Payload::Thinking(delta) => self.speak(event, Voice::Thinking, &delta.text.str()),
            Payload::RefusalDelta(delta) => self.speak(event, Voice::Refusal, &delta.text.str()),
            Payload::ContentDelta(delta) => self.speak(event, Voice::Answer, &delta.text.str()),
            Payload::ToolCallDelta(_)
            | Payload::ToolCallPartial(_)
            | Payload::ToolCall(_)
            | Payload::ToolUse(_)
            | Payload::ToolProgress(_)
            | Payload::ToolResult(_)
            | Payload::Retract(_) => {
                if let Change::Call(at, change) = change
                    && change != CallChange::Repeated
                {
                    self.call(event, &payload, at, change);
                }
            }
            Payload::Message(message) => {
                let message = message.message;
                message.with(|message| self.message(event, message, change));
            }
            Payload::StreamStart(_) => {}
            Payload::StreamEnd(end) => self.stream_end(event, end.finish_reason),
            Payload::Warning(w) => self.notice(event, Tone::Warning, [w.source, w.message, w.code]),
            Payload::Error(e) => {
                self.failed = Some(Who::of(event));
                self.notice(event, Tone::Error, [e.source, e.message, e.code]);
            }
            Payload::Decision(decision) => {
                let answer = if decision.tool_call {
                    "a tool call"
                } else {
                    "no tool call"
                };
                let text = format!(
                    "{answer} ({}: {})",
                    decision.checker.str(),
                    decision.reason.str()
                );
                self.decision = Some((Who::of(event), text));
            }
            Payload::Approval(approval) => {
                let [name, decision] = [approval.tool_name, approval.decision].map(Text::str);
                let mut text = format!("{name}: {decision} by {}", approval.answerer());
                if let Some(reason) = approval.reason.map(Text::str).filter(|it| !it.is_empty()) {
                    text += &format!(": {reason}");
                }
                self.note(event, Tone::Quiet, &text);
            }
            Payload::Session(_)
            | Payload::Response(_)
            | Payload::ResponseEnd(_)
            | Payload::Cancel(_) => self.session_line(event, payload),
            Payload::Details(_) => {}
            // Requests concern only stages that ask a model, and leases only stores.
            Payload::Request(_) | Payload::Lease(_) => {}
            Payload::ServerItem(item) => {
                self.note(
                    event,
                    Tone::Quiet,
                    &format!("{} (run by the provider)", item.kind.str()),
                );
            }
            Payload::SessionStats(stats) => {
                let add = |sum: &mut u64, n: Option<u64>| *sum = sum.saturating_add(n.unwrap_or(0));
                add(&mut self.tokens.read, stats.prompt_tokens);
                add(&mut self.tokens.written, stats.completion_tokens);
                add(&mut self.tokens.cost, stats.cost_microusd);
            }
        }
    }

    /// Shows a session event about the session or its responses.
    fn session_line(&mut self, event: &Event<'_>, payload: Payload<'_>) {
        let mut tone = Tone::Quiet;
        let text = match payload {
            Payload::Session(session) => {
                let mut text = format!("session {}", session.id.str());
                if let Some(fork) = session.fork {
                    let origin = fork.with(|fork| plain(fork.get("id")));
                    text += &format!(", continues session {origin}");
                }
                if let Some(metadata) = session.metadata {
                    text += &metadata.with(|metadata| format!(", {}", metadata.text()));
                }
                text
            }
            Payload::Response(response) => {
                self.page.pause();
                let [id, front] = [response.id, response.front].map(Text::str);
                let model = response.model.map(|model| format!(", {}", model.str()));
                let background = if response.background {
                    ", in the background"
                } else {
                    ""
                };
                format!(
                    "response {id} ({front}{}{background})",
                    model.unwrap_or_default()
                )
            }
            Payload::ResponseEnd(end) => {
                if ["incomplete", "failed", "interrupted"].contains(&&*end.status.str()) {
                    tone = Tone::Warning;
                }
                format!("response {}: {}", end.id.str(), end.status.str())
            }
            Payload::Cancel(cancel) => {
                let [id, call] = [cancel.id, cancel.tool_id].map(Option::unwrap_or_default);
                let what = if call.is_empty() {
                    format!("response {}", id.str())
                } else {
                    format!("call {}", call.str())
                };
                format!("{what}: cancelled by {}", cancel.by.str())
            }
            _ => return,
        };
        self.note(event, tone, &text);
    }

    fn stream_end(&mut self, event: &Event<'_>, reason: FinishReason) {
        self.end_turn(event);
        for at in self.talk.open_calls(event) {
            if !self.talk.calls()[at].has_ended() {
                self.page.call(&self.talk, at);
            }
        }
        let is_reported = self
            .failed
            .take_if(|who| who.shares_stream(event))
            .is_some();
        if let Some(why) = reason.notice()
            && !(is_reported && reason == FinishReason::Cut)
        {
            self.note(event, Tone::Warning, why);
        }
    }

    /// Shows a `warning` or an `error`: its source, its message and its code, each of which may be
    /// empty.
    fn notice(&mut self, event: &Event<'_>, tone: Tone, texts: [Text<'_>; 3]) {
        let [source, message, code] = texts.map(Text::str);
        let note = format!("{source}: {message} ({code})");
        self.note(
            event,
            tone,
            note.trim_start_matches(": ").trim_end_matches(" ()"),
        );
    }
}

impl<P: Page> View for Story<P> {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.show(event);
        self.page.done(&self.talk);
        out.append(self.page.out());
    }

    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        self.page.interrupt();
        out.append(self.page.out());
        self.talk.any_runs()
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.show_decision();
        self.talk.finish();
        let calls: Vec<usize> = self.talk.calls().iter().map(|(at, _)| at).collect();
        self.close(&calls);
        self.page.finish(self.tokens);
        out.append(self.page.out());
    }
}

/// The speaker of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    User,
    Thinking,
    Answer,
    /// The model's refusal to answer.
    Refusal,
    /// A tool's output that serves as the answer.
    Output,
}

impl Voice {
    pub(crate) fn style(self) -> Style {
        match self {
            Voice::User => Style::new().bold(),
            Voice::Thinking => Style::new().dimmed(),
            Voice::Answer | Voice::Refusal | Voice::Output => Style::new(),
        }
    }

    /// Returns the mark before the text and the mark's style, if the style of the text does not
    /// show the speaker.
    pub(crate) fn mark(self) -> Option<(&'static str, Style)> {
        match self {
            Voice::Thinking => Some(("thinking: ", self.style())),
            Voice::Refusal => Some(("refusal: ", AnsiColor::Yellow.on_default())),
            Voice::User | Voice::Answer | Voice::Output => None,
        }
    }
}

/// The kind of a line that the view itself writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// The stream and choice of the events that follow.
    Heading,
    Quiet,
    Warning,
    Error,
}

impl Tone {
    pub(crate) fn style(self) -> Style {
        match self {
            Tone::Heading => Style::new().bold(),
            Tone::Quiet => Style::new().dimmed(),
            Tone::Warning => AnsiColor::Yellow.on_default(),
            Tone::Error => AnsiColor::Red.on_default(),
        }
    }
}

/// A page on which a conversation is shown.
pub(crate) trait Page {
    /// Whether results are shown immediately. On other pages they are shown at the end of the
    /// model's turn, so that the same turn gives the same page however fast its tools are.
    const LIVE: bool;
    /// Returns the stream and choice whose events are currently shown.
    fn now(&mut self) -> &mut Who;
    /// Returns the buffer of bytes to write next.
    fn out(&mut self) -> &mut Vec<u8>;
    /// Switches to the stream and choice of the next events; writes a heading if they differ from
    /// the current ones.
    fn turn_to(&mut self, who: &Who) {
        if self.now() != who {
            self.now().clone_from(who);
            self.pause();
            self.note(Tone::Heading, &heading(who));
        }
    }
    /// Handles the next event, after the end of a turn that a `stream_start` ends, and before any
    /// part of the event is shown.
    fn event(&mut self, _: &Event<'_>, _: &Payload<'_>) {}
    /// Handles an event about the call at this index.
    fn call_event(&mut self, _: &Event<'_>, _: &Payload<'_>, _at: usize) {}
    /// Writes a piece of running text.
    fn text(&mut self, voice: Voice, text: &str);
    /// Writes a line of the view itself.
    fn note(&mut self, tone: Tone, text: &str);
    /// Shows the call at this index, which is new or has changed.
    fn call(&mut self, talk: &Talk, at: usize);
    /// Starts a new text: the next text does not continue the text so far.
    fn pause(&mut self);
    /// Handles the end of the last text on the page.
    fn end_text(&mut self);
    /// Handles the end of an event that is completely shown.
    fn done(&mut self, talk: &Talk);
    /// Handles an interruption: other programs may write to the same terminal from now on.
    fn interrupt(&mut self);
    /// Drops the state of turns that are no longer in the talk; their calls were shown.
    fn forget(&mut self, talk: &Talk);
    /// Handles the end of the input, given the tokens of the whole log.
    fn finish(&mut self, tokens: Tokens);
}
