//! What the events of a stream say: the answer that every front has to give.

use super::reading::{Call, Choice, Ending, Finish, Reading, Usage};
use event::{Kind, Scanner};

/// Reads events that `tc-accumulate` merged, without live deltas.
pub(crate) fn truth<S: AsRef<str>>(merged: &[S]) -> Reading {
    let mut r = Reading::default();
    let mut scanner = Scanner::default();
    let mut api = String::new();
    for line in merged {
        let event = scanner.read(line.as_ref()).expect("an event");
        let text = |key: &str| event.get_str(key).unwrap_or_default().into_owned();
        let number = u64::from(event.choice());
        match event.kind() {
            Kind::StreamStart => {
                r.model = text("model");
                api = text("api");
            }
            Kind::Thinking => r.choice(number).reasoning += &text("text"),
            Kind::ContentDelta => {
                r.choice(number).text += &text("text");
                r.choice(number).said += &text("text");
            }
            Kind::RefusalDelta => {
                r.choice(number).refusal += &text("text");
                // On Messages an explanation of the same API is a member beside the content.
                if api != "anthropic" {
                    r.choice(number).said += &text("text");
                }
            }
            Kind::ToolCall => {
                let id = text("tool_id");
                let name = text("tool_name");
                let arguments = event
                    .get("arguments")
                    .map_or_else(String::new, |a| a.text().to_owned());
                let mut call = Call {
                    id,
                    name,
                    arguments,
                    is_finished: true,
                };
                if let Some(error) = event.get("error") {
                    let sent = text("arguments_text");
                    match error.get_str("code").unwrap_or_default().as_ref() {
                        "incomplete" => call.is_finished = false,
                        // What does not fit its schema is JSON: the client judges it by itself.
                        _ if is_object(&sent) && !call.name.is_empty() => call.arguments = sent,
                        // No client could run it or answer it.
                        _ => r.ending = Ending::Failed("a call that nobody can use".to_owned()),
                    }
                }
                r.choice(number).calls.push(call);
            }
            Kind::Retract => {
                let id = text("tool_id");
                r.choice(number)
                    .calls
                    .retain(|c| c.id != id || id.is_empty());
                r.has_withdrawn = true;
            }
            Kind::Error => r.ending = Ending::Failed(text("message")),
            Kind::SessionStats => {
                let count = |key: &str| {
                    event
                        .get(key)
                        .and_then(|n| n.i64())
                        .and_then(|n| n.try_into().ok())
                };
                let input = count("prompt_tokens").unwrap_or(0);
                let output = count("completion_tokens").unwrap_or(0);
                r.usage = Some(Usage {
                    input,
                    output,
                    total: count("total_tokens").unwrap_or(input + output),
                    cached: count("cached_tokens").unwrap_or(0),
                    reasoning: count("reasoning_tokens").unwrap_or(0),
                });
            }
            Kind::StreamEnd => {
                let finish = match text("finish_reason").as_str() {
                    "stop" => Finish::Stop,
                    "tool_calls" => Finish::ToolCalls,
                    "length" => Finish::Length,
                    "content_filter" => Finish::Filter,
                    _ => {
                        if r.ending == Ending::Open {
                            r.ending = Ending::Failed(String::new());
                        }
                        continue;
                    }
                };
                if r.ending == Ending::Open {
                    r.ending = Ending::Clean;
                }
                r.choice(number).finish = Some(finish);
                for choice in &mut r.choices {
                    choice.finish = Some(fitting(choice, finish));
                }
            }
            _ => {}
        }
    }
    if r.ending == Ending::Open {
        r.ending = Ending::Failed("no end".to_owned());
    }
    r
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.is_object())
}

/// The finish reason that fits the content: a cut stays a cut, and complete calls are what a client
/// has to see.
fn fitting(choice: &Choice, finish: Finish) -> Finish {
    match finish {
        Finish::Length | Finish::Filter => finish,
        // A call that cannot run, beside a reason that says that all is well: the client learns
        // that something is missing.
        _ if choice.calls.iter().any(|c| !c.is_finished) => Finish::Length,
        _ if choice.calls.iter().any(|c| c.is_finished) => Finish::ToolCalls,
        _ => Finish::Stop,
    }
}
