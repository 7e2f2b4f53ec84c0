//! A conversation on a page, the same for a terminal and for plain text: its texts, its notes and
//! the cards of its calls.

use crate::calls::{CallCard, CallCards, CallState, Who, stream_of};
use crate::escape::{content, plain};
use crate::streams::Streams;
use anstyle::{AnsiColor, Style};
use event::payload::{FinishReason, Retract, RetractReason};
use event::{Event, Kind, Payload, Raw, Text, View};
use std::collections::HashSet;

/// How many calls of earlier turns may wait for a result. Without a limit, a log of calls that
/// nothing ran would be kept to its end.
const WAITING: usize = 256;

/// How many calls are kept at least before any is forgotten.
const FEW: usize = 16;

/// Shows events on a page.
#[derive(Debug)]
pub(crate) struct Story<P> {
    page: P,
    calls: CallCards,
    /// How many calls there are when those that are shown are forgotten the next time.
    full: usize,
    /// The choices in the middle of a turn, by stream: their message would repeat the text of their
    /// deltas.
    turns: Streams<HashSet<u32>>,
    /// Whether there is an unnamed stream: else events without a `stream` are notices of commands.
    has_unnamed: bool,
    /// A decision, held back until the text that it would interrupt is complete.
    decision: Option<(Who, String)>,
    /// The stream of the last error, which says why that stream is cut.
    failed: Option<Who>,
    tokens: Tokens,
}

/// The tokens of all turns, by the provider's count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub read: u64,
    pub written: u64,
    /// What they cost, in millionths of a dollar.
    pub cost: u64,
}

impl Tokens {
    /// What they cost, behind their counts; empty where nobody has named a price.
    pub(crate) fn price(self) -> String {
        if self.cost == 0 {
            return String::new();
        }
        format!(", ${}.{:06}", self.cost / 1_000_000, self.cost % 1_000_000)
    }
}

impl<P: Page> Story<P> {
    pub(crate) fn new(page: P) -> Self {
        Story {
            page,
            calls: CallCards::default(),
            full: FEW,
            turns: Streams::default(),
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

    /// Whether this stream and choice is in the middle of a turn.
    fn is_turn(&self, stream: &str, choice: u32) -> bool {
        let choices = self.turns.get(stream);
        choices.is_some_and(|choices| choices.contains(&choice))
    }

    fn begin_turn(&mut self, event: &Event<'_>) {
        let (stream, choice) = (stream_of(event), event.choice());
        if !self.is_turn(stream, choice) {
            self.turns.of(stream).insert(choice);
        }
    }

    fn message(&mut self, event: &Event<'_>, message: Raw<'_>) {
        let text = content(message);
        match message.get_str("role").as_deref() {
            Some("user") => {
                self.page.pause();
                self.speak(event, Voice::User, &text);
                self.page.pause();
            }
            Some("assistant") if self.is_turn(stream_of(event), event.choice()) => {
                self.end_turn(event, false);
            }
            Some("assistant") => {
                // A log of messages alone has no `stream_start`, and every result of an earlier call
                // comes before the next message of the assistant.
                self.forget_shown();
                let reasoning = plain(message.get("reasoning"));
                self.speak(event, Voice::Thinking, &reasoning);
                self.speak(event, Voice::Answer, &text);
                self.speak(event, Voice::Refusal, &plain(message.get("refusal")));
                for n in self.calls.asked(event, message) {
                    self.page.call(&self.calls, n);
                }
            }
            Some("tool") => {
                if let Some(n) = self.calls.answered(event, message) {
                    self.page.call(&self.calls, n);
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, event: &Event<'_>, payload: &Payload<'_>) {
        let Some(n) = self.calls.push(event, payload) else {
            return;
        };
        self.page.call_event(event, payload, n);
        let call = &self.calls.list[n];
        if event.kind() == Kind::Retract && call.result().is_some() {
            // It ran before it was retracted: its card keeps the result, and a note reports the
            // retract. The end of a turn does not undo a call that has run.
            let reason = Retract::read(event).reason;
            let text = if reason == RetractReason::StreamFailed.name() {
                format!("{} ran before the turn was cut off", call.name)
            } else {
                format!("{} was taken back ({})", call.name, reason.str())
            };
            self.note(event, Tone::Warning, &text);
        } else if P::LIVE || !call.has_ended() || !self.is_turn(stream_of(event), event.choice()) {
            self.show_call(event, n);
        }
    }

    fn show_call(&mut self, event: &Event<'_>, n: usize) {
        self.page.call(&self.calls, n);
        if let CallState::Ended(result) = &mut self.calls.list[n].state
            && std::mem::take(&mut result.is_answer)
        {
            let output = result.output.clone();
            self.speak(event, Voice::Output, &output);
        }
    }

    /// The model's turn is over, in this event's choice or in the whole stream: shows the results
    /// that were held back.
    fn end_turn(&mut self, event: &Event<'_>, all: bool) {
        if self.page.now().shares_stream(event) {
            self.page.end_text();
        }
        let stream = stream_of(event);
        if let Some(choices) = self.turns.get_mut(stream) {
            choices.remove(&event.choice());
            if all || choices.is_empty() {
                self.turns.remove(stream);
            }
        }
        if P::LIVE {
            return;
        }
        for n in self.calls.of_stream(event) {
            if self.calls.list[n].has_ended() {
                self.show_call(event, n);
            }
        }
    }

    /// No more arguments of the stream's calls come.
    fn end_arguments(&mut self, event: &Event<'_>) {
        for n in self.calls.end_stream(event) {
            self.page.call(&self.calls, n);
        }
    }

    /// No event can change the calls at these positions any more.
    fn close(&mut self, calls: impl IntoIterator<Item = usize>) {
        for n in calls {
            let call = &mut self.calls.list[n];
            let was_closed = std::mem::replace(&mut call.is_closed, true);
            // A result of a call of an earlier turn may be held back where the input ends.
            let is_shown = P::LIVE && (was_closed || call.has_ended());
            if !is_shown {
                self.page.call(&self.calls, n);
            }
        }
        self.page.done(&self.calls);
    }

    fn stream_start(&mut self, event: &Event<'_>) {
        self.end_turn(event, true);
        self.end_arguments(event);
        self.close(self.calls.of_stream(event));
        self.forget_shown();
        self.page.pause();
    }

    /// Forgets the calls whose cards will not change any more. All others move to the front of the
    /// list, so this waits until the list has twice the length that it had after the last time.
    fn forget_shown(&mut self) {
        if self.calls.list.len() < self.full {
            return;
        }
        // Calls without a result may still get one, but not all that a long log has.
        let many = self.calls.list.len().saturating_sub(WAITING);
        let is_shown = |(n, call): (usize, &CallCard)| {
            let Who { stream, choice } = &call.who;
            call.has_ended() && call.is_settled() && !self.is_turn(stream, *choice)
                || call.is_closed && n < many
        };
        let shown = self.calls.list.iter().enumerate();
        let shown = shown.take_while(|call| is_shown(*call)).count();
        self.calls.forget(shown);
        self.page.forget(shown);
        self.full = 2 * self.calls.list.len() + FEW;
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
        if is_text
            || matches!(
                kind,
                Kind::ToolCallDelta | Kind::ToolCallPartial | Kind::ToolCall
            )
        {
            self.begin_turn(event);
        }
        if kind == Kind::StreamStart {
            self.stream_start(event);
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
            | Payload::Retract(_) => self.call(event, &payload),
            Payload::Message(message) => {
                message.message.with(|message| self.message(event, message))
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
            // What was asked for is for stages that ask a model, and who may write for stores.
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

    /// Shows a line of a session that is about the session or its responses.
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
        if reason == FinishReason::Cancelled {
            self.calls.cancel(event);
        }
        self.end_turn(event, true);
        self.end_arguments(event);
        let is_reported = self
            .failed
            .take_if(|who| who.shares_stream(event))
            .is_some();
        let why = match reason {
            FinishReason::Length => "the answer was cut at the token limit",
            FinishReason::ContentFilter => "the provider's content filter stopped the answer",
            FinishReason::Cancelled => "cancelled",
            FinishReason::Cut if is_reported => return,
            FinishReason::Cut => "the connection ended before the answer did",
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Error => return,
        };
        self.note(event, Tone::Warning, why);
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
        self.page.done(&self.calls);
        out.append(self.page.out());
    }

    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        self.page.interrupt();
        out.append(self.page.out());
        self.calls.any_runs()
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.show_decision();
        self.calls.end();
        self.close(0..self.calls.list.len());
        self.page.finish(self.tokens);
        out.append(self.page.out());
    }
}

/// Whose words a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    User,
    Thinking,
    Answer,
    /// The model's refusal to answer.
    Refusal,
    /// A tool's output that is the answer.
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

    /// The mark before its text and the style of that, where the style of the text does not show
    /// whose words it is.
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

/// A page.
pub(crate) trait Page {
    /// Whether a result is shown at once. On other pages it is shown when the model's turn is over,
    /// so that the same turn gives the same page, however fast its tools are.
    const LIVE: bool;
    /// The stream and choice whose events are on the page now.
    fn now(&mut self) -> &mut Who;
    /// The bytes that are to be shown now.
    fn out(&mut self) -> &mut Vec<u8>;
    /// The next events are those of this stream and choice; writes a heading where it is another
    /// one than now.
    fn turn_to(&mut self, who: &Who) {
        if self.now() != who {
            self.now().clone_from(who);
            self.pause();
            self.note(Tone::Heading, &who.heading());
        }
    }
    /// The next event, after the end of the turn that a `stream_start` ends, and before anything of
    /// the event is shown.
    fn event(&mut self, _: &Event<'_>, _: &Payload<'_>) {}
    /// The event is about the call at this position.
    fn call_event(&mut self, _: &Event<'_>, _: &Payload<'_>, _at: usize) {}
    /// A piece of running text.
    fn text(&mut self, voice: Voice, text: &str);
    /// A line that the view itself writes.
    fn note(&mut self, tone: Tone, text: &str);
    /// The call at this position is new, or has changed.
    fn call(&mut self, calls: &CallCards, at: usize);
    /// The next text does not continue the text so far.
    fn pause(&mut self);
    /// The text that is last on the page is complete.
    fn end_text(&mut self);
    /// All of the event is shown.
    fn done(&mut self, calls: &CallCards);
    /// Other programs may write on the same terminal from now on.
    fn interrupt(&mut self);
    /// The first calls of the list, all settled and shown, are removed from it.
    fn forget(&mut self, calls: usize);
    /// The end of the input, with the tokens of the whole log.
    fn finish(&mut self, tokens: Tokens);
}
