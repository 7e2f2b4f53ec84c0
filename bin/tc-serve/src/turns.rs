//! The turns of a command as one answer.
//!
//! A command may ask its model many times and run tools in between, as a loop with `tool-exec`
//! does. Its events are a stream for each turn; a client gets one answer: the text of all turns,
//! and the calls that are left for the client. A call of a tool that the client's request names is
//! the client's, and goes out while it is written. Any other call waits: it is dropped once a
//! result or another turn shows that the command has dealt with it, and is handed on at the end if
//! nothing has.

use event::payload::{
    ContentDelta, FinishReason, Message, Payload, SessionStats, Status, StreamEnd, ToolCall,
    ToolCallDelta, ToolResult,
};
use event::{Event, Kind, Scanner, Text};
use std::collections::HashSet;

/// Takes the events of the one answer.
pub(crate) type TakeEvent<'t> = dyn FnMut(&Event<'_>) + 't;

/// The turns of a command as one answer.
#[derive(Debug, Default)]
pub struct Turns {
    /// The tools that the client's request names.
    tools: HashSet<String>,
    /// The calls that wait.
    waiting: Vec<WaitingCall>,
    /// The ids of the client's calls that were handed on.
    handed: HashSet<String>,
    /// How the last turn ended; `None` while one is open.
    end: Option<FinishReason>,
    has_started: bool,
    /// Whether the open turn, or one before it, wrote text.
    has_text: bool,
    /// Whether a later turn has begun since the last text.
    needs_break: bool,
    /// The counts of the turns that have ended, and of the open one.
    stats: Option<SessionStats>,
    turn_stats: Option<SessionStats>,
    is_done: bool,
    /// The bytes of the calls that wait, and of the ids of those that were handed on.
    kept: usize,
}

/// A call that the command may deal with itself.
#[derive(Debug)]
struct WaitingCall {
    id: String,
    /// The event.
    line: String,
}

impl WaitingCall {
    /// The bytes that are kept of it.
    fn kept(&self) -> usize {
        size_of::<WaitingCall>() + self.id.len() + self.line.len()
    }
}

impl Turns {
    /// The turns of a command that answers a request with these tools.
    pub fn new<'n>(tools: impl IntoIterator<Item = &'n str>) -> Turns {
        Turns {
            tools: tools.into_iter().map(str::to_owned).collect(),
            ..Turns::default()
        }
    }

    /// The bytes that are kept.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Whether the last turn has ended, and not as failed.
    pub fn is_whole(&self) -> bool {
        self.is_done || self.end.is_some()
    }

    /// Takes the next event of any turn.
    pub fn push(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        if self.is_done {
            return;
        }
        match event.kind() {
            Kind::StreamStart => self.start(event, take),
            Kind::ContentDelta if !ContentDelta::read(event).text.is_empty() => {
                if std::mem::take(&mut self.needs_break) {
                    take_text("\n\n", event.choice(), take);
                }
                self.has_text = true;
                take(event);
            }
            Kind::ToolCallDelta => {
                let delta = ToolCallDelta::read(event);
                let id = delta
                    .tool_id
                    .map(|id| id.str().into_owned())
                    .unwrap_or_default();
                if self.is_of_client(&id, delta.tool_name) {
                    self.hand(id);
                    take(event);
                }
            }
            Kind::ToolCall => self.call(event, take),
            Kind::Retract => {
                let retract = event::payload::Retract::read(event);
                let id = retract.tool_id.map(|id| id.str().into_owned());
                let before = self.waiting.len();
                self.settle(|other| Some(other) == id.as_deref());
                if self.waiting.len() == before {
                    take(event);
                }
            }
            Kind::ToolResult => self.result(&ToolResult::read(event), take),
            Kind::Message => Message::read(event).message.with(|message| {
                if message.get_str("role").as_deref() == Some("tool") {
                    let id = message.get_str("tool_call_id");
                    self.settle(|other| Some(other) == id.as_deref());
                }
            }),
            Kind::SessionStats => self.take_stats(&SessionStats::read(event)),
            Kind::StreamEnd => {
                let reason = StreamEnd::read(event).finish_reason;
                if matches!(
                    reason,
                    FinishReason::Error | FinishReason::Cut | FinishReason::Cancelled
                ) {
                    self.is_done = true;
                    take(event);
                } else {
                    self.end = Some(reason);
                }
            }
            _ => take(event),
        }
    }

    /// Handles the end of the events. An answer whose last turn has not ended stays open, and so is
    /// cut.
    pub fn finish(&mut self, take: &mut TakeEvent<'_>) {
        let Some(reason) = self.end.filter(|_| !self.is_done) else {
            return;
        };
        self.is_done = true;
        let mut scanner = Scanner::default();
        for call in self.waiting.drain(..) {
            if let Ok(event) = scanner.read(&call.line) {
                self.handed.insert(call.id);
                take(&event);
            }
        }
        self.count();
        if let Some(stats) = self.stats {
            take(&Event::of(&Payload::SessionStats(stats), None, 0, None));
        }
        // The calls of the last turn were dealt with, so none are left for the client.
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
        take(&Event::of(&end.into(), None, 0, None));
    }

    /// Whether a call is the client's: one of it was handed on before, or its tool is the client's.
    fn is_of_client(&self, id: &str, name: Option<Text<'_>>) -> bool {
        self.handed.contains(id) || name.is_some_and(|name| self.tools.contains(&*name.str()))
    }

    /// Remembers that the client has a call.
    fn hand(&mut self, id: String) {
        let bytes = id.len() + size_of::<String>();
        if self.handed.insert(id) {
            self.kept += bytes;
        }
    }

    /// Drops the calls whose id `is_settled`: the command has dealt with them.
    fn settle(&mut self, is_settled: impl Fn(&str) -> bool) {
        let kept = &mut self.kept;
        self.waiting.retain(|call| {
            let is_left = !is_settled(&call.id);
            *kept -= if is_left { 0 } else { call.kept() };
            is_left
        });
    }

    fn start(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        if !std::mem::replace(&mut self.has_started, true) {
            return take(event);
        }
        if !self.handed.is_empty() {
            // The client has calls to answer, so the answer ends with the turn that has them.
            return self.finish(take);
        }
        self.settle(|_| true);
        self.end = None;
        self.needs_break = self.has_text;
        self.count();
    }

    /// Takes a whole call: the client's is handed on, and any other waits.
    fn call(&mut self, event: &Event<'_>, take: &mut TakeEvent<'_>) {
        let call = ToolCall::read(event);
        let id = call.tool_id.str().into_owned();
        if self.is_of_client(&id, Some(call.tool_name)) {
            self.hand(id);
            return take(event);
        }
        let line = event.raw().into_owned();
        let call = WaitingCall { id, line };
        self.kept += call.kept();
        self.waiting.push(call);
    }

    fn result(&mut self, result: &ToolResult<'_>, take: &mut TakeEvent<'_>) {
        if result.status == Status::Pending.name() {
            return;
        }
        let id = result.tool_id.str();
        let before = self.waiting.len();
        self.settle(|other| other == id);
        let is_final = result.return_directly && result.status == Status::Success.name();
        if is_final && before > self.waiting.len() && !result.output.is_empty() {
            let gap = if self.has_text { "\n\n" } else { "" };
            let output = result.output.str();
            for text in [gap, &output].into_iter().filter(|text| !text.is_empty()) {
                take_text(text, 0, take);
            }
            self.has_text = true;
        }
    }

    /// Takes the counts of the open turn. Of a count that comes again the last holds; what counts
    /// no tokens, as tool-exec's, changes none.
    fn take_stats(&mut self, stats: &SessionStats) {
        let turn = self.turn_stats.get_or_insert_default();
        each_count(turn, stats, |count, more| *count = more.or(*count));
    }

    /// Adds the counts of the turn that has ended.
    fn count(&mut self) {
        let Some(turn) = self.turn_stats.take() else {
            return;
        };
        each_count(self.stats.get_or_insert_default(), &turn, |sum, more| {
            *sum = match (*sum, more) {
                (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
                (sum, more) => sum.or(more),
            };
        });
    }
}

/// Hands on `text` as a piece of the answer.
fn take_text(text: &str, choice: u32, take: &mut TakeEvent<'_>) {
    let text = ContentDelta {
        text: text.into(),
        ..ContentDelta::default()
    };
    take(&Event::of(&text.into(), None, choice, None));
}

/// Calls `change` with each count of tokens, and that count of `other`.
fn each_count(
    counts: &mut SessionStats,
    other: &SessionStats,
    change: impl Fn(&mut Option<u64>, Option<u64>),
) {
    for (count, other) in [
        (&mut counts.prompt_tokens, other.prompt_tokens),
        (&mut counts.completion_tokens, other.completion_tokens),
        (&mut counts.total_tokens, other.total_tokens),
        (&mut counts.reasoning_tokens, other.reasoning_tokens),
        (&mut counts.cached_tokens, other.cached_tokens),
    ] {
        change(count, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the one answer.
    fn one(tools: &[&str], lines: &[&str]) -> Vec<String> {
        let mut turns = Turns::new(tools.iter().copied());
        let mut scanner = Scanner::default();
        let mut out = Vec::new();
        for line in lines {
            turns.push(&scanner.read(line).unwrap(), &mut |event| {
                out.push(event.raw().into_owned())
            });
        }
        turns.finish(&mut |event| out.push(event.raw().into_owned()));
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
    fn what_did_not_end_well_is_never_ended_here() {
        assert_eq!(one(&[], &[START, CALL]), [START]);
        assert_eq!(one(&[], &[START, STOP, START]), [START]);
        let cut = end("cut");
        assert_eq!(one(&[], &[START, CALL, &cut, START, STOP]), [START, &cut]);
    }
}
