//! A reader of the AI SDK's UI message stream. It is stricter than the package's own: it fails on
//! mistakes that the package ignores, such as a part without an end.

use serde_json::{Value, json};
use std::collections::HashMap;

/// A message as the client has it at the end of a stream, and how the stream ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shown {
    pub id: String,
    pub parts: Vec<Value>,
    pub finish: Option<String>,
    pub error: Option<String>,
    pub is_aborted: bool,
}

impl Shown {
    fn part(&mut self, id: &str) -> &mut Value {
        let is_it = |part: &&mut Value| part["toolCallId"] == id;
        let found = self.parts.iter_mut().rev().find(is_it);
        found.unwrap_or_else(|| panic!("no call {id}"))
    }

    /// The message that goes back to the server.
    pub(crate) fn message(&self) -> Value {
        json!({"id": self.id, "role": "assistant", "parts": self.parts})
    }

    pub(crate) fn texts(&self) -> Vec<&str> {
        let texts = self.parts.iter().filter(|part| part["type"] == "text");
        texts.map(|part| part["text"].as_str().unwrap()).collect()
    }

    /// The calls, each with its state and its output or error.
    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        let calls = self
            .parts
            .iter()
            .filter(|part| part["toolCallId"].is_string());
        calls
            .map(|part| {
                let what = [&part["output"], &part["errorText"]];
                let what = what.into_iter().find(|what| !what.is_null());
                (
                    format!(
                        "{} {}",
                        part["toolName"].as_str().unwrap(),
                        part["state"].as_str().unwrap()
                    ),
                    what.cloned().unwrap_or_default(),
                )
            })
            .collect()
    }
}

/// Reads a stream that continues the message `before`.
pub(crate) fn read(body: &str, before: &Shown) -> Shown {
    let mut shown = before.clone();
    (shown.finish, shown.error) = (None, None);
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut step = None;
    let chunks: Vec<&str> = body
        .split("\n\n")
        .filter(|frame| !frame.is_empty() && !frame.starts_with(':'))
        .map(|frame| {
            frame
                .strip_prefix("data: ")
                .unwrap_or_else(|| panic!("{frame}"))
        })
        .collect();
    assert_eq!(chunks.last(), Some(&"[DONE]"), "{body}");
    assert!(body.starts_with("data: {\"type\":\"start\""), "{body}");
    for chunk in &chunks[..chunks.len() - 1] {
        let chunk: Value = serde_json::from_str(chunk).unwrap_or_else(|_| panic!("{chunk}"));
        let text = |name: &str| {
            chunk[name]
                .as_str()
                .unwrap_or_else(|| panic!("{name}: {chunk}"))
                .to_owned()
        };
        assert!(
            shown.finish.is_none() && !shown.is_aborted,
            "after the end: {chunk}"
        );
        match text("type").as_str() {
            "start" => shown.id = text("messageId"),
            "start-step" => {
                assert!(step.is_none() && open.is_empty());
                step = Some(shown.parts.len());
                shown.parts.push(json!({"type": "step-start"}));
            }
            "finish-step" => {
                assert!(open.is_empty(), "{body}");
                step.take().expect("a step is open");
            }
            "reset-step" => {
                let begin = step.expect("a step is open");
                open.clear();
                shown.parts.truncate(begin + 1);
            }
            kind @ ("text-start" | "reasoning-start") => {
                assert!(step.is_some());
                let kind = kind.trim_end_matches("-start");
                let is_new = open.insert(text("id"), shown.parts.len()).is_none();
                assert!(is_new, "{chunk}");
                shown.parts.push(json!({"type": kind, "text": ""}));
            }
            "text-delta" | "reasoning-delta" => {
                let part = &mut shown.parts[open[&text("id")]];
                let delta = text("delta");
                assert!(!delta.is_empty());
                part["text"] = format!("{}{delta}", part["text"].as_str().unwrap()).into();
            }
            "text-end" => _ = open.remove(&text("id")).expect("it is open"),
            "reasoning-end" => {
                let at = open.remove(&text("id")).expect("it is open");
                if chunk["providerMetadata"].is_object() {
                    shown.parts[at]["providerMetadata"] = chunk["providerMetadata"].clone();
                }
            }
            "tool-input-start" => {
                assert!(step.is_some());
                let mut part = json!({"toolCallId": text("toolCallId"), "toolName": text("toolName"), "state": "input-streaming"});
                let kind = match chunk["dynamic"] == true {
                    true => "dynamic-tool".to_owned(),
                    false => format!("tool-{}", text("toolName")),
                };
                part["type"] = kind.into();
                part["providerExecuted"] = chunk["providerExecuted"].clone();
                shown.parts.push(part);
            }
            "tool-input-delta" => {
                assert_eq!(shown.part(&text("toolCallId"))["state"], "input-streaming");
            }
            "tool-input-available" => {
                let part = shown.part(&text("toolCallId"));
                assert_eq!(part["state"], "input-streaming", "{chunk}");
                part["state"] = "input-available".into();
                part["input"] = chunk["input"].clone();
            }
            "tool-input-error" => {
                let part = shown.part(&text("toolCallId"));
                part["state"] = "output-error".into();
                part["errorText"] = text("errorText").into();
            }
            "tool-approval-request" => {
                let part = shown.part(&text("toolCallId"));
                part["state"] = "approval-requested".into();
                part["approval"] = json!({"id": text("approvalId")});
            }
            "tool-approval-response" => {
                let id = text("approvalId");
                let mut parts = shown.parts.iter_mut();
                let part = parts
                    .find(|part| part["approval"]["id"] == id.as_str())
                    .expect("it was asked");
                part["state"] = "approval-responded".into();
                part["approval"]["approved"] = chunk["approved"].clone();
            }
            "tool-output-available" => {
                let part = shown.part(&text("toolCallId"));
                part["state"] = "output-available".into();
                part["output"] = chunk["output"].clone();
                part["preliminary"] = chunk["preliminary"].clone();
            }
            "tool-output-error" => {
                let part = shown.part(&text("toolCallId"));
                part["state"] = "output-error".into();
                part["errorText"] = text("errorText").into();
            }
            "tool-output-denied" => {
                shown.part(&text("toolCallId"))["state"] = "output-denied".into();
            }
            "steering-message" | "source-url" | "file" => shown.parts.push(chunk),
            "message-metadata" => assert!(chunk["messageMetadata"].is_object()),
            "error" => shown.error = Some(text("errorText")),
            "abort" => shown.is_aborted = true,
            "finish" => shown.finish = Some(text("finishReason")),
            other => panic!("{other}: {chunk}"),
        }
    }
    assert!(step.is_none() && open.is_empty(), "{body}");
    shown
}
