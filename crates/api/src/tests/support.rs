//! Helpers shared by the tests of several files: running a stream (frames in, one short line per
//! event out) and building a request (a conversation as text in, the body as a value out).

use crate::request::{RequestOptions, request};
use crate::{Api, Conversation, End, Stream};
use event::{Collect, Raw};
use json::ToolList;
use serde_json::Value;
use std::sync::Arc;

/// Feeds `frames` as server-sent events, followed by the end of the body. In the result, texts are
/// quoted, reasoning follows `~`, a call's delta is `#index id:… name arguments done provider`, and
/// other events are their type with distinguishing members.
pub(crate) fn brief(api: Api, frames: &[&str]) -> Vec<String> {
    let body: String = frames.iter().map(|f| format!("data: {f}\n\n")).collect();
    let mut out = Collect::default();
    let mut stream = Stream::new(api, crate::StreamOptions::default());
    stream.push(body.as_bytes(), &mut out);
    stream.finish(End::Eof, &mut out);
    out.lines
        .iter()
        .filter_map(|line| one(Raw::parse(line).expect("an event is JSON")))
        .collect()
}

/// Same as [`brief`] for a non-streaming response.
pub(crate) fn brief_whole(api: Api, body: &str) -> Vec<String> {
    let mut out = Collect::default();
    Stream::new(api, crate::StreamOptions::default()).whole(body.as_bytes(), &mut out);
    out.lines
        .iter()
        .filter_map(|line| one(Raw::parse(line).expect("an event is JSON")))
        .collect()
}

fn one(event: Raw<'_>) -> Option<String> {
    let text = |key: &str| event.get(key).map(Raw::text).unwrap_or_default();
    let word = |key: &str| event.get_str(key).unwrap_or_default();
    let kind = word("type");
    let choice = event
        .get("choice")
        .map(|c| format!("[{}]", c.text()))
        .unwrap_or_default();
    Some(match kind.as_ref() {
        "stream_start" => return None,
        "session_stats" => format!(
            "tokens {}+{}",
            text("prompt_tokens"),
            text("completion_tokens")
        ),
        "content_delta" => format!("{choice}{}", text("text")),
        "refusal_delta" => format!("{choice}refusal {}", text("text")),
        "thinking" => format!("{choice}~{}{}", text("text"), text("provider")),
        "tool_call_delta" => {
            let mut call = format!("{choice}#{}", text("index"));
            for (key, value) in event.entries() {
                match key.as_ref() {
                    "tool_id" => call += &format!(" id:{}", word("tool_id")),
                    "tool_name" => call += &format!(" {}", word("tool_name")),
                    "arguments" => call += &format!(" {}", word("arguments")),
                    "done" => call += " done",
                    "provider" => call += &format!(" {}", value.text()),
                    _ => {}
                }
            }
            call
        }
        "retract" => format!("{choice}retract #{} {}", text("index"), word("reason")),
        "server_item" => format!("{choice}server {} {}", word("kind"), text("data")),
        "warning" | "error" => format!("{choice}{kind} {}", word("code")),
        "stream_end" => format!(
            "end {} {}",
            word("finish_reason"),
            word("provider_finish_reason")
        ),
        other => other.to_owned(),
    })
}

/// Returns the body for the messages in `talk` (JSON objects, one after the other) with the tools
/// in the JSON text `tools`. The model is `m` unless the options name one.
pub(crate) fn body(api: Api, options: &RequestOptions, tools: &str, talk: &str) -> Value {
    let log: String = serde_json::Deserializer::from_str(talk)
        .into_iter::<Value>()
        .map(|m| format!("{}\n", m.expect("JSON")))
        .collect();
    let (talk, problems) = Conversation::read(&log);
    assert_eq!(problems, []);
    let mut options = options.clone();
    if options.model.is_empty() {
        options.model = "m".to_owned();
    }
    options.tools = list(tools);
    let request = request(api, &talk, &options).expect("a request");
    serde_json::from_str(&request.body).expect("JSON")
}

/// Parses tools from a JSON text; `null` means none.
pub(crate) fn list(text: &str) -> Option<Arc<ToolList>> {
    (text != "null").then(|| Arc::new(ToolList::read(text).expect("a list of tools")))
}
