//! `json`: the final answer as one JSON object on one line.

use crate::answer::LastTurns;
use crate::surface::FormRow;
use conversation::{Call, CallState, ChoiceTurns, Keep, Turn};
use event::payload::{FinishReason, SessionStats};
use event::{Event, Object, Raw, View, safe_json};

pub(crate) const ROW: FormRow = FormRow {
    name: "json",
    help: "The final answer as one JSON object per line: text, calls with their results, finish reason, tokens",
    view: |surface| {
        Box::new(JsonView {
            for_terminal: surface.is_terminal,
            conversation: surface.conversation.map(str::to_owned),
            ..JsonView::default()
        })
    },
};

/// Collects the final answer: the text of the model's last turn, the calls of all turns since the
/// user's last message, and their tokens. Writes one object per stream and choice, in the order in
/// which they started, except for streams without any of these.
#[derive(Debug)]
pub struct JsonView {
    last: LastTurns,
    /// Whether the output goes to a terminal, so that hidden characters (see [`event::is_hidden`])
    /// become JSON escapes.
    for_terminal: bool,
    /// The name under which the conversation is stored, for each object.
    conversation: Option<String>,
}

impl Default for JsonView {
    fn default() -> Self {
        JsonView {
            last: LastTurns::new(Keep {
                text: true,
                arguments: true,
                results: true,
            }),
            for_terminal: false,
            conversation: None,
        }
    }
}

impl JsonView {
    /// Writes the answer of a choice.
    fn write(&self, choice: &ChoiceTurns, out: &mut Vec<u8>) {
        let turns = || self.last.turns(choice);
        let Some(last) = turns().next_back() else {
            return;
        };
        let calls: Vec<&Call> = turns().flat_map(|turn| self.last.calls(turn)).collect();
        let mut usage = SessionStats::default();
        turns().for_each(|turn| usage.add(&turn.usage));
        let usage = [
            ("prompt_tokens", usage.prompt_tokens),
            ("completion_tokens", usage.completion_tokens),
            ("total_tokens", usage.total_tokens),
            ("reasoning_tokens", usage.reasoning_tokens),
            ("cached_tokens", usage.cached_tokens),
            ("cache_write_tokens", usage.cache_write_tokens),
        ];
        let is_counted = usage.iter().any(|(_, n)| n.is_some());
        if has_nothing(last) && calls.is_empty() && !is_counted {
            return;
        }
        let mut o = Object::open(out);
        if !choice.who.stream.is_empty() {
            o.minified("stream", &choice.who.stream);
        }
        if choice.who.choice != 0 {
            o.int("choice", choice.who.choice);
        }
        o.str("text", &last.text);
        for (key, text) in [("refusal", &last.refusal), ("reasoning", &last.reasoning)] {
            o.maybe_str(key, Some(&**text).filter(|text| !text.is_empty()));
        }
        o.array("calls", |a| {
            for call in calls {
                a.object(|o| write_call(o, call));
            }
        });
        o.maybe_str("finish_reason", last.finish.map(FinishReason::name));
        if is_counted {
            o.object("usage", |o| {
                for (key, n) in usage {
                    if let Some(n) = n {
                        o.int(key, n);
                    }
                }
            });
        }
        o.maybe_str("conversation", self.conversation.as_deref());
        if let Some([code, message]) = &last.error {
            o.object("error", |o| {
                o.str("code", code).str("message", message);
            });
        }
        o.close();
        out.push(b'\n');
    }
}

/// Whether a turn has nothing to report besides its calls and tokens.
fn has_nothing(turn: &Turn) -> bool {
    let texts = [&turn.text, &turn.refusal, &turn.reasoning];
    texts.iter().all(|text| text.is_empty()) && turn.finish.is_none() && turn.error.is_none()
}

fn write_call(o: &mut Object<'_>, call: &Call) {
    o.str("tool_id", &call.id).str("tool_name", &call.name);
    match Raw::parse(&call.arguments) {
        Ok(json) => o.minified("arguments", json.text()),
        Err(_) => o.str("arguments", &call.arguments),
    };
    match (&call.answer, &call.refusal) {
        (Some(answer), _) => {
            o.str("status", &answer.status);
            if let Some(code) = answer.exit_code {
                o.int("exit_code", code);
            }
            o.str("output", &answer.output);
        }
        (None, _) if call.state == CallState::Retracted => {
            o.str("status", "retracted");
        }
        (None, Some(refusal)) if call.state == CallState::Refused => {
            o.str("error", &refusal.code);
        }
        _ => {}
    }
}

impl View for JsonView {
    fn push(&mut self, event: &Event<'_>, _: &mut Vec<u8>) {
        self.last.push(event);
    }

    fn interrupt(&mut self, _: &mut Vec<u8>) -> bool {
        self.last.talk.any_runs()
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let from = out.len();
        let choices = self.last.talk.choices();
        choices.for_each(|choice| self.write(choice, out));
        if self.for_terminal {
            let json = String::from_utf8_lossy(&out.split_off(from)).into_owned();
            out.extend_from_slice(safe_json(&json).as_bytes());
        }
    }
}
