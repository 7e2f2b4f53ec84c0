//! Joins the turns of a loop into one response.
//!
//! A command may ask its model many times and run tools in between, as a loop with `tool-exec`
//! does; the service itself does so with `--tools`. The events form one stream per turn, but a
//! client gets a single response ([`StepMode`]). A call of a tool that the client's request names
//! belongs to the client, and is written as it arrives unless the turn is held back. Every other
//! call belongs to the loop. A command's call is held back: it is dropped once a result or another
//! turn shows that the command has handled it, and is passed to the client at the end otherwise.

use api::Encoder;
use event::payload::{
    ContentDelta, FinishReason, Message, Payload, SessionStats, Status, StreamEnd, ToolCall,
    ToolCallDelta, ToolResult,
};
use event::{Event, Kind, Scanner, Text};
use std::collections::HashSet;

/// What the client sees of the turns before the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepMode {
    /// The text of all turns; used for the response of a command.
    #[default]
    Joined,
    /// The text of all turns, and each call of the loop with its result. `has_items` is true if the
    /// client's API shows a call between two texts, which then need no empty line between them.
    Shown { has_items: bool },
    /// Nothing: only the last turn is the response. A turn's output is held back until its end
    /// shows whether it is the last turn. Calls that wait for approval are part of the response.
    Hidden,
}

/// One event of the joined response.
#[derive(Clone, Copy, Debug)]
pub enum TurnEvent<'e> {
    /// The model's output, and the client's calls.
    Answer(&'e Event<'e>),
    /// An event of a call that the loop runs.
    Step(&'e Event<'e>),
}

impl<'e> TurnEvent<'e> {
    /// Returns the event itself.
    pub fn event(self) -> &'e Event<'e> {
        match self {
            TurnEvent::Answer(event) | TurnEvent::Step(event) => event,
        }
    }

    /// Writes the event into the response.
    pub fn write(self, encoder: &mut Encoder, out: &mut Vec<u8>) {
        match self {
            TurnEvent::Answer(event) => encoder.push(event, out),
            TurnEvent::Step(event) => encoder.step(event, out),
        }
    }
}

/// Receives the events of the joined response.
pub(crate) type TakeEvent<'t> = dyn FnMut(TurnEvent<'_>) + 't;

/// Joins the turns of a loop into one response.
#[derive(Debug, Default)]
pub struct Turns {
    mode: StepMode,
    /// The tools that the client's request names.
    tools: HashSet<String>,
    /// The calls held back until something handles them.
    waiting: Vec<WaitingCall>,
    /// The ids of the client's calls that were passed on.
    handed: HashSet<String>,
    /// Why the last turn ended; `None` while a turn is open.
    end: Option<FinishReason>,
    has_started: bool,
    /// Whether the open turn or an earlier one wrote text.
    has_text: bool,
    /// Whether another turn has started since the last text.
    needs_break: bool,
    /// The counts of the ended turns (`stats`) and of the open turn (`turn_stats`).
    stats: Option<SessionStats>,
    turn_stats: Option<SessionStats>,
    is_done: bool,
    /// The events of the open turn that are held back.
    held: Vec<String>,
    /// The results of calls that wait for approval, in [`StepMode::Hidden`].
    pending: Vec<WaitingCall>,
    /// Whether the open turn has a call of the loop.
    has_own: bool,
    /// Whether a call was shown since the last text.
    has_item: bool,
}

/// A call that the command may handle itself.
#[derive(Debug)]
struct WaitingCall {
    id: String,
    /// The event line.
    line: String,
}

impl Turns {
    /// Returns the same turns with steps shown in this mode.
    #[must_use]
    pub fn with_steps(self, mode: StepMode) -> Turns {
        Turns { mode, ..self }
    }

    /// Creates the turns of a command that answers a request with these tools.
    pub fn new<'n>(tools: impl IntoIterator<Item = &'n str>) -> Turns {
        Turns {
            tools: tools.into_iter().map(str::to_owned).collect(),
            ..Turns::default()
        }
    }

    /// Whether the turns before the last are hidden ([`StepMode::Hidden`]).
    pub fn hides(&self) -> bool {
        self.mode == StepMode::Hidden
    }

    /// Whether the last turn has ended successfully.
    pub fn is_whole(&self) -> bool {
        self.is_done || self.end.is_some()
    }

    /// Processes the next event of any turn.
    pub fn push(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        if self.is_done {
            return;
        }
        match event.kind() {
            Kind::StreamStart => self.start(event, take),
            Kind::ToolCallDelta => {
                let delta = ToolCallDelta::read(event);
                let id = delta
                    .tool_id
                    .map(|id| id.str().into_owned())
                    .unwrap_or_default();
                if self.is_of_client(&id, delta.tool_name) {
                    self.handed.insert(id);
                    self.say(event, take);
                } else {
                    self.show(event, take);
                }
            }
            Kind::ToolCall => self.call(event, take),
            Kind::Retract => {
                let retract = event::payload::Retract::read(event);
                let id = retract.tool_id.map(|id| id.str().into_owned());
                let before = self.waiting.len();
                self.settle(|other| Some(other) == id.as_deref());
                let is_handed = id.as_ref().is_none_or(|id| self.handed.contains(id));
                if matches!(self.mode, StepMode::Shown { .. }) && !is_handed {
                    self.show(event, take);
                } else if self.waiting.len() == before {
                    self.say(event, take);
                }
            }
            Kind::ToolResult => self.result(event, take),
            Kind::Message => {
                let message = Message::read(event);
                message.message.with(|message| {
                    if message.get_str("role").as_deref() == Some("tool") {
                        let id = message.get_str("tool_call_id");
                        self.settle(|other| Some(other) == id.as_deref());
                    }
                });
                // Encoders ignore these events; clients that read events get the model's last one.
                if self.hides() && message.is_of("assistant") {
                    self.say(event, take);
                }
            }
            Kind::SessionStats => self.take_stats(&SessionStats::read(event)),
            Kind::StreamEnd => {
                let reason = StreamEnd::read(event).finish_reason;
                if matches!(
                    reason,
                    FinishReason::Error | FinishReason::Cut | FinishReason::Cancelled
                ) {
                    self.is_done = true;
                    self.held.clear();
                    take(TurnEvent::Answer(event));
                } else {
                    self.end = Some(reason);
                    if !self.has_own {
                        self.release(take);
                    }
                }
            }
            Kind::ContentDelta
            | Kind::Thinking
            | Kind::RefusalDelta
            | Kind::Details
            | Kind::ServerItem
            | Kind::Warning => self.say(event, take),
            Kind::Error | Kind::Response | Kind::Request => take(TurnEvent::Answer(event)),
            // These events concern the hidden calls between turns.
            Kind::Approval | Kind::ToolUse | Kind::ToolProgress if self.hides() => {}
            // Encoders ignore all of these; clients that read events get those of the last turn.
            _ if self.hides() => self.say(event, take),
            _ => take(TurnEvent::Answer(event)),
        }
    }

    /// Passes on an event of the model's output, or holds it back.
    fn say(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        if self.hides() {
            return self.held.push(event.raw().into_owned());
        }
        self.hand_on(event, take);
    }

    /// Passes on an event of the model's output, with an empty line between the texts of two turns.
    fn hand_on(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        if event.kind() == Kind::ContentDelta && !ContentDelta::read(event).text.is_empty() {
            let has_item = std::mem::take(&mut self.has_item);
            if std::mem::take(&mut self.needs_break) && !has_item {
                take_text("\n\n", event.choice(), take);
            }
            self.has_text = true;
        }
        take(TurnEvent::Answer(event));
    }

    /// Passes on an event of a call of the loop, if steps are shown.
    fn show(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        self.has_own = true;
        if let StepMode::Shown { has_items } = self.mode {
            self.has_item |= has_items;
            take(TurnEvent::Step(event));
        }
    }

    /// Passes on the events that were held back.
    fn release(&mut self, take: &mut TakeEvent<'_>) {
        let mut scanner = Scanner::default();
        for line in std::mem::take(&mut self.held) {
            if let Ok(event) = scanner.read(&line) {
                self.hand_on(&event, take);
            }
        }
    }

    /// Handles the end of the events. A response whose last turn has not ended stays open, and so
    /// counts as cut off.
    pub fn finish(&mut self, take: &mut TakeEvent<'_>) {
        let Some(reason) = self.end.filter(|_| !self.is_done) else {
            return;
        };
        self.is_done = true;
        self.release(take);
        self.leave(take);
        self.count();
        if let Some(stats) = self.stats {
            let stats = Payload::SessionStats(stats);
            take(TurnEvent::Answer(&Event::of(&stats, None, 0, None)));
        }
        // All calls of the last turn were handled, so none are left for the client.
        let is_answer = reason == FinishReason::ToolCalls && self.handed.is_empty();
        let finish_reason = if is_answer {
            FinishReason::Stop
        } else {
            reason
        };
        let end = StreamEnd {
            finish_reason,
            ..StreamEnd::default()
        };
        take(TurnEvent::Answer(&Event::of(&end.into(), None, 0, None)));
    }

    /// Passes on the calls that nothing has handled: a command's calls go to the client, and the
    /// service's calls that wait for approval are shown as steps.
    fn leave(&mut self, take: &mut TakeEvent<'_>) {
        let mut scanner = Scanner::default();
        for call in self.waiting.drain(..) {
            let Ok(event) = scanner.read(&call.line) else {
                continue;
            };
            if self.mode == StepMode::Joined {
                self.handed.insert(call.id);
                take(TurnEvent::Answer(&event));
            } else if let Some(result) = self.pending.iter().find(|other| other.id == call.id) {
                take(TurnEvent::Step(&event));
                if let Ok(result) = scanner.read(&result.line) {
                    take(TurnEvent::Step(&result));
                }
            }
        }
    }

    /// Whether a call is the client's: an event of it was passed on before, or its tool is the
    /// client's.
    fn is_of_client(&self, id: &str, name: Option<Text<'_>>) -> bool {
        self.handed.contains(id) || name.is_some_and(|name| self.tools.contains(&*name.str()))
    }

    /// Drops the calls for which `is_settled` returns true for the id, because the command has
    /// handled them.
    fn settle(&mut self, is_settled: impl Fn(&str) -> bool) {
        for list in [&mut self.waiting, &mut self.pending] {
            list.retain(|call| !is_settled(&call.id));
        }
    }

    fn start(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        if !std::mem::replace(&mut self.has_started, true) {
            return take(TurnEvent::Answer(event));
        }
        if !self.handed.is_empty() {
            // The client has calls to answer, so the response ends with the turn that contains
            // them.
            return self.finish(take);
        }
        self.settle(|_| true);
        self.held.clear();
        self.has_own = false;
        self.end = None;
        self.needs_break = self.has_text;
        self.count();
    }

    /// Processes a complete call: passes on the client's calls, and holds back all others.
    fn call(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        let call = ToolCall::read(event);
        let id = call.tool_id.str().into_owned();
        if self.is_of_client(&id, Some(call.tool_name)) {
            self.handed.insert(id);
            return self.say(event, take);
        }
        self.show(event, take);
        if matches!(self.mode, StepMode::Shown { .. }) {
            return;
        }
        let line = event.raw().into_owned();
        self.waiting.push(WaitingCall { id, line });
    }

    fn result(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        let result = ToolResult::read(event);
        let id = result.tool_id.str();
        if self.handed.contains(&*id) {
            return;
        }
        self.show(event, take);
        if result.status == Status::Pending.name() {
            if self.mode == StepMode::Hidden {
                let line = event.raw().into_owned();
                let id = id.into_owned();
                self.pending.push(WaitingCall { id, line });
            }
            return;
        }
        let before = self.waiting.len();
        self.settle(|other| other == id);
        let is_known = before > self.waiting.len() || matches!(self.mode, StepMode::Shown { .. });
        let is_final = result.return_directly && result.status == Status::Success.name();
        if is_final && is_known && !result.output.is_empty() {
            self.held.clear();
            let has_item = std::mem::take(&mut self.has_item);
            let gap = if self.has_text && !has_item {
                "\n\n"
            } else {
                ""
            };
            let output = result.output.str();
            for text in [gap, &output].into_iter().filter(|text| !text.is_empty()) {
                take_text(text, 0, take);
            }
            self.has_text = true;
        }
    }

    /// Records the counts of the open turn. If a count is repeated, the last one wins. Statistics
    /// without tokens, such as tool-exec's, change nothing.
    fn take_stats(&mut self, stats: &SessionStats) {
        let turn = self.turn_stats.get_or_insert_default();
        turn.update(stats);
    }

    /// Adds the counts of the turn that just ended.
    fn count(&mut self) {
        let Some(turn) = self.turn_stats.take() else {
            return;
        };
        let stats = self.stats.get_or_insert_default();
        stats.add(&turn);
    }
}

/// Passes on `text` as a piece of the response.
fn take_text(text: &str, choice: u32, take: &mut TakeEvent<'_>) {
    let text = ContentDelta {
        text: text.into(),
        ..ContentDelta::default()
    };
    take(TurnEvent::Answer(&Event::of(
        &text.into(),
        None,
        choice,
        None,
    )));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of the joined response.
    fn one(tools: &[&str], lines: &[&str]) -> Vec<String> {
        of(StepMode::Joined, tools, lines)
    }

    /// Returns the lines of the joined response in a mode, with `+` before each step.
    fn of(mode: StepMode, tools: &[&str], lines: &[&str]) -> Vec<String> {
        let mut turns = Turns::new(tools.iter().copied()).with_steps(mode);
        let mut scanner = Scanner::default();
        let mut out = Vec::new();
        let mut take = |event: TurnEvent<'_>| {
            out.push(match event {
                TurnEvent::Answer(event) => event.raw().into_owned(),
                TurnEvent::Step(event) => format!("+{}", event.raw()),
            });
        };
        for line in lines {
            turns.push(&scanner.read(line).unwrap(), &mut take);
        }
        turns.finish(&mut take);
        assert!(turns.held.is_empty());
        out
    }

    const START: &str = r#"{"type":"stream_start","v":1,"id":"r"}"#;
    const STOP: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    const CALLED: &str = r#"{"type":"stream_end","finish_reason":"tool_calls"}"#;
    const CALL: &str =
        r#"{"type":"tool_call","index":0,"tool_id":"c","tool_name":"f","arguments":{}}"#;
    const RESULT: &str = r#"{"type":"tool_result","tool_id":"c","tool_name":"f","status":"success","output":"four"}"#;
    const BEGUN: &str = r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f"}"#;
    const GROWN: &str = r#"{"type":"tool_call_delta","index":0,"tool_id":"c","arguments":"{}"}"#;

    fn text(text: &str) -> String {
        format!(r#"{{"type":"content_delta","text":"{text}"}}"#)
    }

    fn end(reason: &str) -> String {
        format!(r#"{{"type":"stream_end","finish_reason":"{reason}"}}"#)
    }

    #[test]
    fn a_loop_is_one_answer_without_the_calls_that_it_ran() {
        let one_text = text("Let me see.");
        let two = text("Four.");
        let lines = [
            START, &one_text, BEGUN, GROWN, CALL, CALLED, RESULT, START, &two, STOP,
        ];
        assert_eq!(
            one(&[], &lines),
            [START, &one_text, &text("\\n\\n"), &two, &end("stop")]
        );
        // A retry without text before it adds no empty lines.
        assert_eq!(
            one(&[], &[START, CALL, CALLED, START, &two, STOP]),
            [START, &two, &end("stop")]
        );
    }

    #[test]
    fn a_call_of_the_client_goes_out_at_once_and_ends_the_answer() {
        let lines = [
            START,
            BEGUN,
            GROWN,
            CALL,
            CALLED,
            START,
            &text("more"),
            STOP,
        ];
        assert_eq!(
            one(&["f"], &lines),
            [START, BEGUN, GROWN, CALL, &end("tool_calls")]
        );
    }

    #[test]
    fn a_call_without_a_result_is_handed_on_at_the_end() {
        let pending = RESULT.replace("success", "pending");
        assert_eq!(
            one(&[], &[START, BEGUN, CALL, CALLED, &pending]),
            [START, CALL, &end("tool_calls")]
        );
        assert_eq!(
            one(&["g"], &[START, CALL, CALLED]),
            [START, CALL, &end("tool_calls")]
        );
        // Its tool was run, and the model is not asked again.
        assert_eq!(
            one(&[], &[START, CALL, CALLED, RESULT]),
            [START, &end("stop")]
        );
    }

    #[test]
    fn a_result_that_is_the_answer_becomes_text() {
        let last = RESULT.replace("\"four\"", "\"four\",\"return_directly\":true");
        assert_eq!(
            one(&[], &[START, CALL, CALLED, &last]),
            [START, &text("four"), &end("stop")]
        );
    }

    #[test]
    fn tokens_of_all_turns_add_up() {
        let stats =
            |n| format!(r#"{{"type":"session_stats","prompt_tokens":{n},"completion_tokens":1}}"#);
        let calls = r#"{"type":"session_stats","calls":2}"#;
        let lines = [START, &stats(10), CALLED, calls, START, &stats(20), STOP];
        let sum = r#"{"type":"session_stats","prompt_tokens":30,"completion_tokens":2}"#;
        assert_eq!(one(&[], &lines), [START, sum, &end("stop")]);
    }

    #[test]
    fn steps_are_shown_between_the_texts_of_the_turns() {
        let [one_text, two] = [text("Let me see."), text("Four.")];
        let lines = [
            START, &one_text, BEGUN, GROWN, CALL, CALLED, RESULT, START, &two, STOP,
        ];
        let step = |line: &str| format!("+{line}");
        let [begun, grown, call, result] = [BEGUN, GROWN, CALL, RESULT].map(step);
        let with_items = StepMode::Shown { has_items: true };
        assert_eq!(
            of(with_items, &[], &lines),
            [
                START,
                &one_text,
                &begun,
                &grown,
                &call,
                &result,
                &two,
                &end("stop")
            ]
        );
        // Without items the texts are kept apart.
        let shown = of(StepMode::Shown { has_items: false }, &[], &lines);
        assert_eq!(shown[6], text("\\n\\n"));
        assert_eq!(shown.len(), 9);
        // A call of the client ends the answer, and is no step.
        assert_eq!(
            of(with_items, &["f"], &[START, BEGUN, CALL, CALLED]),
            [START, BEGUN, CALL, &end("tool_calls")]
        );
        let pending = RESULT.replace("success", "pending");
        assert_eq!(
            of(with_items, &[], &[START, CALL, CALLED, &pending]),
            [START, &call, &step(&pending), &end("stop")]
        );
        let retract = r#"{"type":"retract","tool_id":"c","reason":"x"}"#;
        assert_eq!(
            of(with_items, &[], &[START, BEGUN, retract, STOP]),
            [START, &begun, &step(retract), &end("stop")]
        );
        let last = RESULT.replace("\"four\"", "\"four\",\"return_directly\":true");
        assert_eq!(
            of(with_items, &[], &[START, &one_text, CALL, CALLED, &last]),
            [
                START,
                &one_text,
                &call,
                &step(&last),
                &text("four"),
                &end("stop")
            ]
        );
    }

    #[test]
    fn of_hidden_steps_nothing_is_sent_but_the_last_turn() {
        let [middle, two] = [text("Let me see."), text("Four.")];
        let thinking = r#"{"type":"thinking","text":"hm"}"#;
        let answer = [START, &two, &end("stop")].map(str::to_owned);
        for calls in [vec![BEGUN, GROWN, CALL], vec![CALL]] {
            let before = [START, thinking, &middle];
            let after = [CALLED, RESULT, START, &two, STOP];
            let lines = [&before[..], &calls, &after].concat();
            assert_eq!(of(StepMode::Hidden, &[], &lines), answer);
        }
        // The text of a turn without calls goes out at its end.
        let mut turns = Turns::new([]).with_steps(StepMode::Hidden);
        let mut scanner = Scanner::default();
        let mut count = 0;
        for (line, want) in [(START, 1), (thinking, 1), (&*two, 1), (STOP, 3)] {
            turns.push(&scanner.read(line).unwrap(), &mut |_| count += 1);
            assert_eq!(count, want, "{line}");
        }
        assert!(turns.held.is_empty());
        // What no answer shows is not held.
        let progress = r#"{"type":"tool_progress","tool_id":"c","tool_name":"f","text":"x"}"#;
        let mut turns = Turns::new([]).with_steps(StepMode::Hidden);
        for line in [START, progress] {
            turns.push(&scanner.read(line).unwrap(), &mut |_| {});
        }
        assert!(turns.held.is_empty());
        let warning = r#"{"type":"warning","source":"x","code":"y","message":"z"}"#;
        assert_eq!(
            of(
                StepMode::Hidden,
                &[],
                &[START, warning, CALL, CALLED, RESULT, START, &two, STOP]
            ),
            answer
        );
        // The client's calls, with the text of their turn.
        assert_eq!(
            of(
                StepMode::Hidden,
                &["f"],
                &[START, &middle, BEGUN, CALL, CALLED]
            ),
            [START, &middle, BEGUN, CALL, &end("tool_calls")]
        );
        let last = RESULT.replace("\"four\"", "\"four\",\"return_directly\":true");
        assert_eq!(
            of(
                StepMode::Hidden,
                &[],
                &[START, &middle, CALL, CALLED, &last]
            ),
            [START, &text("four"), &end("stop")]
        );
    }

    #[test]
    fn a_hidden_answer_that_waits_for_a_person_or_fails() {
        let middle = text("May I?");
        let pending = RESULT.replace("success", "pending");
        let lines = [START, &middle, BEGUN, CALL, CALLED, &pending];
        assert_eq!(
            of(StepMode::Hidden, &[], &lines),
            [
                START,
                &middle,
                &format!("+{CALL}"),
                &format!("+{pending}"),
                &end("stop")
            ]
        );
        // Once it is answered it is the middle.
        let yes = text("Yes.");
        let lines = [&lines[..], &[RESULT, START, &yes, STOP]].concat();
        assert_eq!(
            of(StepMode::Hidden, &[], &lines),
            [START, &yes, &end("stop")]
        );
        let error = r#"{"type":"error","source":"x","code":"y","message":"z"}"#;
        let cut = end("error");
        assert_eq!(
            of(StepMode::Hidden, &[], &[START, &middle, error, &cut]),
            [START, error, &cut]
        );
    }

    #[test]
    fn what_did_not_end_well_is_never_ended_here() {
        assert_eq!(one(&[], &[START, CALL]), [START]);
        assert_eq!(one(&[], &[START, STOP, START]), [START]);
        let cut = end("cut");
        assert_eq!(one(&[], &[START, CALL, &cut, START, STOP]), [START, &cut]);
    }
}
