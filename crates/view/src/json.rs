//! `json`: the final answer as one JSON object on a line.

use crate::calls::{CallCard, CallCards, CallState, Who, stream_of};
use crate::escape::{content, plain};
use crate::streams::Streams;
use crate::surface::FormRow;
use event::payload::FinishReason;
use event::{Choices, Event, Kind, Object, Payload, Raw, View, safe_json};

pub(crate) const ROW: FormRow = FormRow {
    name: "json",
    help: "The final answer as one JSON object on a line: text, calls with their results, finish reason, tokens",
    view: |surface| {
        Box::new(JsonView {
            for_terminal: surface.is_terminal,
            ..JsonView::default()
        })
    },
};

/// The names under which the events count tokens.
const TOKENS: [&str; 5] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "reasoning_tokens",
    "cached_tokens",
];

/// Collects the final answer: the text of the model's last turn, the calls of all turns since the
/// user's last message, and their tokens. One object for each stream and choice of the input, in
/// the order in which they began; none for a stream without any of these.
#[derive(Debug, Default)]
pub struct JsonView {
    answers: Vec<FinalAnswer>,
    /// The position of the answer of each choice, by stream.
    positions: Streams<Choices<usize>>,
    /// A terminal shows it: hidden characters (see [`event::is_hidden`]) become JSON escapes.
    for_terminal: bool,
}

#[derive(Debug, Default)]
struct FinalAnswer {
    who: Who,
    text: String,
    refusal: String,
    reasoning: String,
    calls: CallCards,
    finish_reason: Option<FinishReason>,
    usage: [Option<u64>; TOKENS.len()],
    error: Option<[String; 2]>,
    /// Whether the text of this turn has come in deltas, which its message repeats.
    has_deltas: bool,
}

impl FinalAnswer {
    fn push(&mut self, event: &Event<'_>) {
        let Some(payload) = event.payload() else {
            return;
        };
        self.has_deltas |= matches!(
            payload,
            Payload::ContentDelta(_)
                | Payload::RefusalDelta(_)
                | Payload::Thinking(_)
                | Payload::ToolCallDelta(_)
                | Payload::ToolCallPartial(_)
                | Payload::ToolCall(_)
        );
        match payload {
            Payload::StreamStart(_) => {}
            Payload::ContentDelta(delta) => delta.text.append_to(&mut self.text),
            Payload::RefusalDelta(delta) => delta.text.append_to(&mut self.refusal),
            Payload::Thinking(delta) => delta.text.append_to(&mut self.reasoning),
            Payload::Message(message) => {
                message.message.with(|message| self.message(event, message))
            }
            Payload::SessionStats(stats) => {
                let counts = [
                    stats.prompt_tokens,
                    stats.completion_tokens,
                    stats.total_tokens,
                    stats.reasoning_tokens,
                    stats.cached_tokens,
                ];
                for (sum, n) in self.usage.iter_mut().zip(counts) {
                    if let Some(n) = n {
                        *sum = Some(sum.unwrap_or(0).saturating_add(n));
                    }
                }
            }
            Payload::StreamEnd(end) => self.finish_reason = Some(end.finish_reason),
            Payload::Error(error) => {
                self.error = Some([error.code, error.message].map(|text| text.str().into_owned()));
            }
            _ => {
                self.calls.push(event, &payload);
                if let Payload::ToolResult(result) = payload
                    && result.return_directly
                {
                    self.text = result.output.str().into_owned();
                }
            }
        }
    }

    fn message(&mut self, event: &Event<'_>, message: Raw<'_>) {
        match message.get_str("role").as_deref() {
            Some("user") => {
                *self = FinalAnswer {
                    who: std::mem::take(&mut self.who),
                    ..FinalAnswer::default()
                };
            }
            Some("assistant") if !std::mem::take(&mut self.has_deltas) => {
                self.new_turn();
                self.text = content(message);
                self.refusal = plain(message.get("refusal"));
                self.reasoning = plain(message.get("reasoning"));
                self.calls.asked(event, message);
            }
            Some("tool") => {
                self.calls.answered(event, message);
            }
            _ => {}
        }
    }

    /// The next turn of the event's stream begins. Some servers number the calls of each turn anew,
    /// so no event of it belongs to an earlier call that is still arriving.
    fn begin_turn(&mut self, event: &Event<'_>) {
        self.new_turn();
        self.calls.close_stream(event);
    }

    fn new_turn(&mut self) {
        self.text.clear();
        self.refusal.clear();
        self.reasoning.clear();
        self.finish_reason = None;
        self.error = None;
        self.has_deltas = false;
    }

    /// Whether there is nothing to report.
    fn is_empty(&self) -> bool {
        self.text.is_empty()
            && self.refusal.is_empty()
            && self.reasoning.is_empty()
            && self.calls.list.is_empty()
            && self.finish_reason.is_none()
            && self.usage.iter().all(Option::is_none)
            && self.error.is_none()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut o = Object::open(out);
        if !self.who.stream.is_empty() {
            o.minified("stream", &self.who.stream);
        }
        if self.who.choice != 0 {
            o.int("choice", self.who.choice);
        }
        o.str("text", &self.text);
        for (key, text) in [("refusal", &self.refusal), ("reasoning", &self.reasoning)] {
            o.maybe_str(key, Some(&**text).filter(|text| !text.is_empty()));
        }
        o.array("calls", |a| {
            for call in &self.calls.list {
                a.object(|o| write_call(o, call));
            }
        });
        o.maybe_str("finish_reason", self.finish_reason.map(FinishReason::name));
        if self.usage.iter().any(Option::is_some) {
            o.object("usage", |o| {
                for (key, n) in TOKENS.iter().zip(self.usage) {
                    if let Some(n) = n {
                        o.int(key, n);
                    }
                }
            });
        }
        if let Some([code, message]) = &self.error {
            o.object("error", |o| {
                o.str("code", code).str("message", message);
            });
        }
        o.close();
        out.push(b'\n');
    }
}

fn write_call(o: &mut Object<'_>, call: &CallCard) {
    o.str("tool_id", &call.id).str("tool_name", &call.name);
    match Raw::parse(&call.arguments) {
        Ok(json) => o.minified("arguments", json.text()),
        Err(_) => o.str("arguments", &call.arguments),
    };
    match &call.state {
        CallState::Ended(result) => {
            o.str("status", &result.status);
            if let Some(code) = result.exit_code {
                o.int("exit_code", code);
            }
            o.str("output", &result.output);
        }
        CallState::Retracted { .. } => {
            o.str("status", "retracted");
        }
        CallState::Refused(code) => {
            o.str("error", code);
        }
        CallState::Arriving
        | CallState::Called
        | CallState::Incomplete
        | CallState::Running
        | CallState::Lost => {}
    }
}

impl View for JsonView {
    fn push(&mut self, event: &Event<'_>, _: &mut Vec<u8>) {
        if event.kind() == Kind::Other || event.kind() == Kind::Warning {
            return;
        }
        let stream = stream_of(event);
        let choices = match self.positions.get_mut(stream) {
            Some(choices) => choices,
            None => self.positions.of(stream),
        };
        let new = self.answers.len();
        let place = choices.place(event.choice(), || new);
        let n = choices[place];
        if n == new {
            self.answers.push(FinalAnswer {
                who: Who::of(event),
                ..FinalAnswer::default()
            });
        }
        if event.kind() == Kind::StreamStart {
            for place in choices.iter() {
                self.answers[*place].begin_turn(event);
            }
        }
        self.answers[n].push(event);
    }

    fn interrupt(&mut self, _: &mut Vec<u8>) -> bool {
        self.answers.iter().any(|answer| answer.calls.any_runs())
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let from = out.len();
        self.answers
            .iter()
            .filter(|a| !a.is_empty())
            .for_each(|a| a.write(out));
        if self.for_terminal {
            let json = String::from_utf8_lossy(&out.split_off(from)).into_owned();
            out.extend_from_slice(safe_json(&json).as_bytes());
        }
    }
}
