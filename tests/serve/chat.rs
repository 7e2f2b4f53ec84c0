//! A strict reader of `/v1/chat/completions`, after what openai-python, openai-node and the AI SDK
//! do with a stream.

use super::frames::frames;
use super::prefix::Prefix;
use super::reading::{Call, Ending, Finish, Reading, Usage, count, has_null, text};
use serde_json::Value;

/// Reads a stream. `usage`: whether the request asked for the chunk of usage.
pub(crate) fn stream(bytes: &[u8], usage: bool) -> Reading {
    let mut chat = Chat {
        usage,
        ..Chat::default()
    };
    match frames(bytes) {
        Ok(all) => {
            for frame in all {
                chat.reading
                    .rule(frame.name.is_none(), "an event has a name");
                if let Some(data) = frame.data {
                    chat.data(&data);
                }
            }
        }
        Err(why) => chat.reading.wrong.push(why),
    }
    chat.finish()
}

#[derive(Default)]
struct Chat {
    usage: bool,
    reading: Reading,
    /// The arguments of each call of each choice so far.
    arguments: Vec<(u64, Vec<Prefix>)>,
    created: Option<Value>,
    roles: Vec<u64>,
}

impl Chat {
    fn data(&mut self, data: &str) {
        let r = &mut self.reading;
        r.rule(
            r.ending == Ending::Open,
            format!("data behind the end: {data}"),
        );
        if data == "[DONE]" {
            r.rule(
                !r.choices.is_empty() && r.choices.iter().all(|c| c.finish.is_some()),
                "[DONE] before the end",
            );
            r.rule(
                r.usage.is_some() == self.usage,
                "usage, or none, against the request",
            );
            r.ending = Ending::Clean;
            return;
        }
        let Ok(chunk) = serde_json::from_str::<Value>(data) else {
            return r.rule(false, format!("no JSON: {data}"));
        };
        if let Some(error) = chunk.get("error") {
            r.rule(
                error.is_object() && error["message"].is_string(),
                format!("an error without a message: {data}"),
            );
            for key in ["message", "type", "param", "code"] {
                r.rule(
                    error.get(key).is_some(),
                    format!("an error without {key}: {data}"),
                );
            }
            r.ending = Ending::Failed(text(error, "message").to_owned());
            return;
        }
        r.rule(
            chunk["object"] == "chat.completion.chunk",
            format!("another object: {data}"),
        );
        r.rule(
            !text(&chunk, "id").is_empty() && !text(&chunk, "model").is_empty(),
            format!("no id or model: {data}"),
        );
        r.rule(chunk["created"].is_u64(), format!("no time: {data}"));
        if r.id.is_empty() {
            (r.id, r.model) = (
                text(&chunk, "id").to_owned(),
                text(&chunk, "model").to_owned(),
            );
            self.created = Some(chunk["created"].clone());
        }
        let same = r.id == text(&chunk, "id") && r.model == text(&chunk, "model");
        r.rule(
            same && self.created.as_ref() == Some(&chunk["created"]),
            format!("another id, model or time: {data}"),
        );
        let Some(choices) = chunk["choices"].as_array() else {
            return r.rule(false, format!("no choices: {data}"));
        };
        match chunk.get("usage") {
            None | Some(Value::Null) => r.rule(
                !choices.is_empty(),
                format!("neither a choice nor usage: {data}"),
            ),
            Some(usage) => {
                r.rule(
                    choices.is_empty() && r.usage.is_none(),
                    format!("usage in another place than its own chunk: {data}"),
                );
                r.rule(
                    r.choices.iter().all(|c| c.finish.is_some()),
                    "usage before the end",
                );
                r.usage = counts(usage);
                r.rule(r.usage.is_some(), format!("incomplete usage: {data}"));
            }
        }
        for choice in choices {
            self.reading.rule(
                self.reading.usage.is_none(),
                format!("a choice behind usage: {data}"),
            );
            self.choice(choice);
        }
    }

    fn choice(&mut self, choice: &Value) {
        let Some(number) = choice["index"].as_u64() else {
            return self.wrong(format!("no index: {choice}"));
        };
        let Some(delta) = choice["delta"].as_object() else {
            return self.wrong(format!("no delta: {choice}"));
        };
        if self.reading.choice(number).finish.is_some() {
            self.wrong(format!("a delta behind the finish reason: {choice}"));
        }
        self.reading.rule(
            !has_null(&choice["delta"]),
            format!("null in a delta: {choice}"),
        );
        if !self.roles.contains(&number) {
            self.reading.rule(
                delta.get("role").is_some_and(|r| r == "assistant"),
                format!("no role at first: {choice}"),
            );
            self.roles.push(number);
        } else {
            self.reading.rule(
                !delta.contains_key("role"),
                format!("the role again: {choice}"),
            );
        }
        for (key, value) in delta {
            let piece = value.as_str().unwrap_or_default();
            let c = self.reading.choice(number);
            match key.as_str() {
                "role" => {}
                "content" => c.text.push_str(piece),
                "reasoning_content" => c.reasoning.push_str(piece),
                "refusal" => c.refusal.push_str(piece),
                "tool_calls" => self.calls(number, value),
                // What a provider of this API has beside text and calls.
                "annotations" | "audio" | "images" | "reasoning_details" => {}
                _ => self.wrong(format!("a member that no client knows: {choice}")),
            }
        }
        match choice.get("finish_reason") {
            Some(Value::Null) => {}
            Some(reason) => {
                self.reading.rule(
                    delta.is_empty(),
                    format!("a finish reason beside a delta: {choice}"),
                );
                let finish = finish(reason);
                self.reading.rule(
                    finish.is_some(),
                    format!("an unknown finish reason: {choice}"),
                );
                self.reading.choice(number).finish = finish;
            }
            None => self.wrong(format!("no finish_reason: {choice}")),
        }
    }

    fn calls(&mut self, number: u64, calls: &Value) {
        let list = calls.as_array().filter(|list| !list.is_empty());
        let Some(list) = list else {
            return self.wrong(format!("tool_calls that is not a list of some: {calls}"));
        };
        let at = self
            .arguments
            .iter()
            .position(|(n, _)| *n == number)
            .unwrap_or_else(|| {
                self.arguments.push((number, Vec::new()));
                self.arguments.len() - 1
            });
        for call in list {
            let prefixes = &mut self.arguments[at].1;
            let function = &call["function"];
            let index = call["index"].as_u64().unwrap_or(u64::MAX);
            let Some(arguments) = function["arguments"].as_str() else {
                return self.wrong(format!("no arguments: {call}"));
            };
            if index == prefixes.len() as u64 {
                // openai-python raises on an index that leaves one out; clients join what comes
                // under one index.
                let complete = prefixes.last().is_none_or(Prefix::is_complete);
                prefixes.push(Prefix::default());
                let choice = self.reading.choice(number);
                choice.calls.push(Call {
                    id: text(call, "id").to_owned(),
                    name: text(function, "name").to_owned(),
                    ..Call::default()
                });
                self.reading
                    .rule(complete, format!("a call begins inside another: {call}"));
                self.reading.rule(
                    call["type"] == "function",
                    format!("a first delta without a type: {call}"),
                );
                self.reading.rule(
                    arguments.is_empty(),
                    format!("arguments in the first delta: {call}"),
                );
            } else if index + 1 == prefixes.len() as u64 {
                let again = ["id", "type"].iter().any(|key| call.get(key).is_some())
                    || function.get("name").is_some();
                self.reading
                    .rule(!again, format!("id, type or name again: {call}"));
                let is_empty = arguments.is_empty() && call.get("extra_content").is_none();
                self.reading
                    .rule(!is_empty, format!("a delta without anything: {call}"));
                if let Err(why) = prefixes.last_mut().expect("one is open").push(arguments) {
                    self.wrong(why);
                }
            } else {
                self.wrong(format!(
                    "an index that is not that of the last call or the next: {call}"
                ));
            }
        }
    }

    fn wrong(&mut self, what: String) {
        self.reading.wrong.push(what);
    }

    fn finish(mut self) -> Reading {
        for (number, prefixes) in std::mem::take(&mut self.arguments) {
            let choice = self.reading.choice(number);
            // A client runs a call when its choice ends, and the AI SDK as soon as its arguments
            // are JSON.
            for (call, prefix) in choice.calls.iter_mut().zip(prefixes) {
                call.is_finished = prefix.is_complete();
                call.arguments = prefix.text;
            }
        }
        if self.reading.ending != Ending::Clean {
            self.reading.rule(
                self.reading.choices.iter().all(|c| c.finish.is_none())
                    || self.reading.choices.len() > 1,
                "a finish reason, but no end",
            );
        }
        self.reading.check();
        self.reading
    }
}

fn finish(reason: &Value) -> Option<Finish> {
    Some(match reason.as_str()? {
        "stop" => Finish::Stop,
        "tool_calls" => Finish::ToolCalls,
        "length" => Finish::Length,
        "content_filter" => Finish::Filter,
        _ => return None,
    })
}

fn counts(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input: count(usage, &["prompt_tokens"])?,
        output: count(usage, &["completion_tokens"])?,
        total: count(usage, &["total_tokens"])?,
        cached: count(usage, &["prompt_tokens_details", "cached_tokens"]).unwrap_or_default(),
        reasoning: count(usage, &["completion_tokens_details", "reasoning_tokens"])
            .unwrap_or_default(),
    })
}

/// Reads a whole answer.
pub(crate) fn whole(bytes: &[u8]) -> Reading {
    let mut r = Reading::default();
    let Ok(answer) = serde_json::from_slice::<Value>(bytes) else {
        r.wrong
            .push(format!("no JSON: {}", String::from_utf8_lossy(bytes)));
        return r;
    };
    r.rule(answer["object"] == "chat.completion", "another object");
    r.rule(answer.get("error").is_none(), "an answer with an error");
    r.rule(answer["created"].is_u64(), "no time");
    (r.id, r.model) = (
        text(&answer, "id").to_owned(),
        text(&answer, "model").to_owned(),
    );
    r.rule(!r.id.is_empty() && !r.model.is_empty(), "no id or model");
    r.usage = counts(&answer["usage"]);
    r.rule(r.usage.is_some(), "incomplete usage");
    r.ending = Ending::Clean;
    let choices = answer["choices"].as_array().cloned().unwrap_or_default();
    r.rule(!choices.is_empty(), "no choices");
    for choice in &choices {
        let message = &choice["message"];
        r.rule(message["role"] == "assistant", "another role");
        r.rule(
            message
                .get("content")
                .is_some_and(|c| c.is_null() || c.is_string()),
            "content is missing",
        );
        r.rule(
            message
                .get("refusal")
                .is_none_or(|c| c.is_null() || c.is_string()),
            "a refusal that is not a text",
        );
        r.rule(
            finish(&choice["finish_reason"]).is_some(),
            format!("an unknown finish reason: {choice}"),
        );
        let Some(number) = choice["index"].as_u64() else {
            r.wrong.push(format!("no index: {choice}"));
            continue;
        };
        let mut calls = Vec::new();
        if let Some(list) = message.get("tool_calls") {
            r.rule(
                list.as_array().is_some_and(|l| !l.is_empty()),
                "tool_calls that is not a list of some",
            );
            for call in list.as_array().into_iter().flatten() {
                r.rule(
                    call["type"] == "function" && call.get("index").is_none(),
                    format!("not a call: {call}"),
                );
                let arguments = text(&call["function"], "arguments").to_owned();
                let is_finished = serde_json::from_str::<Value>(&arguments).is_ok();
                let id = text(call, "id").to_owned();
                let name = text(&call["function"], "name").to_owned();
                calls.push(Call {
                    id,
                    name,
                    arguments,
                    is_finished,
                });
            }
        }
        let c = r.choice(number);
        (c.text, c.refusal) = (
            text(message, "content").to_owned(),
            text(message, "refusal").to_owned(),
        );
        c.reasoning = text(message, "reasoning_content").to_owned();
        c.calls = calls;
        c.finish = finish(&choice["finish_reason"]);
    }
    r.check();
    r
}
