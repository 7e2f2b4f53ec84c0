//! A strict reader of `/v1/messages`, after what anthropic-sdk-python, anthropic-sdk-typescript and
//! the AI SDK do with a stream.

use super::frames::frames;
use super::prefix::Prefix;
use super::reading::{Call, Ending, Finish, Reading, Step, Usage, count, has_null, text};
use serde_json::{Value, json};

/// Reads a stream.
pub(crate) fn stream(bytes: &[u8]) -> Reading {
    let mut messages = Messages::default();
    match frames(bytes) {
        Ok(all) => {
            for frame in all {
                let Some(data) = frame.data else {
                    messages.wrong("a comment, which does not reset a client's timer".to_owned());
                    continue;
                };
                let data = serde_json::from_str::<Value>(&data).unwrap_or(Value::Null);
                // The SDKs drop an event without a name.
                let named = frame.name.as_deref() == data["type"].as_str() && frame.name.is_some();
                messages.reading.rule(
                    named,
                    format!("an event whose name is not its type: {data}"),
                );
                messages.event(&data);
            }
        }
        Err(why) => messages.wrong(why),
    }
    messages.reading.check();
    messages.reading
}

#[derive(Default)]
struct Messages {
    reading: Reading,
    input: u64,
    cached: u64,
    has_started: bool,
    blocks: u64,
    open: Option<Block>,
}

/// The block that is open.
struct Block {
    kind: &'static str,
    bytes: usize,
    input: Prefix,
    signed: bool,
}

impl Messages {
    fn wrong(&mut self, what: String) {
        self.reading.wrong.push(what);
    }

    fn event(&mut self, data: &Value) {
        let kind = text(data, "type");
        let r = &mut self.reading;
        r.rule(
            r.ending == Ending::Open,
            format!("an event behind the end: {data}"),
        );
        r.rule(
            self.has_started || matches!(kind, "message_start" | "error"),
            format!("before message_start: {data}"),
        );
        let ended = r.choice(0).finish.is_some();
        r.rule(
            !ended || matches!(kind, "message_stop" | "ping"),
            format!("behind message_delta: {data}"),
        );
        match kind {
            "message_start" => self.start(&data["message"]),
            "ping" => r.rule(
                *data == json!({"type": "ping"}),
                format!("a ping with more: {data}"),
            ),
            "content_block_start" => self.block_start(data),
            "content_block_delta" => self.block_delta(data),
            "content_block_stop" => self.block_stop(data),
            "message_delta" => self.delta(data),
            "message_stop" => {
                r.rule(ended, "message_stop without message_delta");
                r.ending = Ending::Clean;
            }
            "error" => {
                let error = &data["error"];
                r.rule(
                    !text(error, "type").is_empty() && error["message"].is_string(),
                    format!("not an error: {data}"),
                );
                r.rule(!ended, "an error behind message_delta");
                r.ending = Ending::Failed(text(error, "message").to_owned());
            }
            _ => r.rule(false, format!("an event of another type: {data}")),
        }
    }

    fn start(&mut self, message: &Value) {
        let r = &mut self.reading;
        r.rule(
            !std::mem::replace(&mut self.has_started, true),
            "a second message_start",
        );
        r.rule(
            message["type"] == "message" && message["role"] == "assistant",
            format!("not a message: {message}"),
        );
        r.rule(
            message["content"] == json!([]),
            format!("content at the start: {message}"),
        );
        for key in ["stop_reason", "stop_sequence"] {
            r.rule(
                message.get(key).is_some_and(Value::is_null),
                format!("{key} at the start: {message}"),
            );
        }
        (r.id, r.model) = (
            text(message, "id").to_owned(),
            text(message, "model").to_owned(),
        );
        r.rule(!r.id.is_empty() && !r.model.is_empty(), "no id or model");
        let numbers = count(message, &["usage", "input_tokens"])
            .zip(count(message, &["usage", "output_tokens"]));
        r.rule(
            numbers.is_some(),
            format!("no counts at the start: {message}"),
        );
        self.input = numbers.unwrap_or_default().0;
        self.cached = count(message, &["usage", "cache_read_input_tokens"]).unwrap_or_default();
    }

    fn block_start(&mut self, data: &Value) {
        self.reading.rule(
            self.open.is_none(),
            format!("a block begins inside another: {data}"),
        );
        self.reading.rule(
            data["index"] == self.blocks,
            format!("an index that is not the next: {data}"),
        );
        let block = &data["content_block"];
        let by_provider = is_of_provider(text(block, "type"));
        self.reading.rule(
            by_provider || !has_null(block),
            format!("null in a block: {data}"),
        );
        let (kind, wanted) = match text(block, "type") {
            "text" => ("text", json!({"type": "text", "text": ""})),
            "thinking" => (
                "thinking",
                json!({"type": "thinking", "thinking": "", "signature": ""}),
            ),
            "redacted_thinking" => ("redacted_thinking", block.clone()),
            "tool_use" => {
                let id = text(block, "id").to_owned();
                let name = text(block, "name").to_owned();
                let wanted = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                self.reading.choice(0).calls.push(Call {
                    id,
                    name,
                    ..Call::default()
                });
                ("tool_use", wanted)
            }
            "server_tool_use" => ("server_tool_use", block.clone()),
            "mcp_tool_use" | "mcp_tool_result" if service_block(&mut self.reading, block) => {
                ("of the service", block.clone())
            }
            _ if by_provider => ("of the provider", block.clone()),
            _ => return self.wrong(format!("a block of another type: {data}")),
        };
        self.reading.rule(
            *block == wanted,
            format!("a block begins otherwise: {data}"),
        );
        self.reading
            .choice(0)
            .order
            .push(text(block, "type").to_owned());
        self.open = Some(Block {
            kind,
            bytes: 0,
            input: Prefix::default(),
            signed: kind == "redacted_thinking",
        });
    }

    fn block_delta(&mut self, data: &Value) {
        let Some(block) = &mut self.open else {
            return self.wrong(format!("a delta for a closed block: {data}"));
        };
        let delta = &data["delta"];
        let (kind, key) = match text(delta, "type") {
            "text_delta" => ("text", "text"),
            "thinking_delta" => ("thinking", "thinking"),
            "signature_delta" => ("thinking", "signature"),
            "citations_delta" if block.kind == "text" && delta["citation"].is_object() => return,
            "input_json_delta" if block.kind == "server_tool_use" => {
                ("server_tool_use", "partial_json")
            }
            "input_json_delta" => ("tool_use", "partial_json"),
            _ => ("", ""),
        };
        let piece = text(delta, key);
        self.reading.rule(
            data["index"] == self.blocks,
            format!("a delta for another block: {data}"),
        );
        self.reading.rule(
            block.kind == kind,
            format!("a delta of another type in a {} block: {data}", block.kind),
        );
        self.reading.rule(
            !piece.is_empty() && !block.signed,
            format!("an empty delta, or one behind the signature: {data}"),
        );
        block.bytes += piece.len();
        block.signed |= key == "signature";
        let choice = self.reading.choice(0);
        match key {
            "text" => choice.text.push_str(piece),
            "thinking" => choice.reasoning.push_str(piece),
            "partial_json" => {
                if kind == "tool_use"
                    && let Err(why) = block.input.push(piece)
                {
                    self.wrong(why);
                }
                if kind == "tool_use" {
                    let choice = self.reading.choice(0);
                    choice
                        .calls
                        .last_mut()
                        .expect("its block began")
                        .arguments
                        .push_str(piece);
                }
            }
            _ => {}
        }
    }

    fn block_stop(&mut self, data: &Value) {
        let Some(block) = self.open.take() else {
            return self.wrong(format!("no block is open: {data}"));
        };
        self.reading.rule(
            data["index"] == self.blocks,
            format!("the end of another block: {data}"),
        );
        self.reading.rule(
            block.kind != "text" || block.bytes > 0,
            "an empty text block",
        );
        self.reading.rule(
            block.kind != "thinking" || block.bytes > 0,
            "an empty thinking block",
        );
        self.blocks += 1;
        if let Some(call) = self
            .reading
            .choice(0)
            .calls
            .last_mut()
            .filter(|_| block.kind == "tool_use")
        {
            // A block that closes without a delta has the input of its start, `{}`.
            if call.arguments.is_empty() {
                call.arguments = "{}".to_owned();
            }
            call.is_finished = block.bytes == 0 || block.input.is_complete();
        }
    }

    fn delta(&mut self, data: &Value) {
        let r = &mut self.reading;
        r.rule(
            data["delta"]
                .get("stop_sequence")
                .is_some_and(Value::is_null),
            format!("no stop_sequence: {data}"),
        );
        let finish = finish(&data["delta"]["stop_reason"]);
        r.rule(finish.is_some(), format!("an unknown stop reason: {data}"));
        // A cut call has no end of its block: Claude Code runs what has one.
        let is_cut = matches!(finish, Some(Finish::Length | Finish::Filter));
        let closed = self
            .open
            .as_ref()
            .is_none_or(|block| block.kind == "tool_use" && is_cut);
        r.rule(closed, "message_delta while a block is open");
        let usage = counts(&data["usage"], self.input, self.cached);
        r.rule(usage.is_some(), format!("no counts: {data}"));
        r.usage = usage;
        r.choice(0).finish = finish.or(Some(Finish::Stop));
    }
}

/// Takes a block of a call that the service ran. Returns whether it is one. The AI SDK throws on a
/// result without its call.
fn service_block(r: &mut Reading, block: &Value) -> bool {
    if block["server_name"] == "toolpipe" {
        r.rule(
            block["input"].is_object() && !text(block, "name").is_empty(),
            format!("not a call: {block}"),
        );
        let id = text(block, "id").to_owned();
        let place = r.choice(0).steps.len();
        r.service.push((id, place));
        r.choice(0).steps.push(Step {
            name: text(block, "name").to_owned(),
            arguments: block["input"].clone(),
            result: None,
        });
        return true;
    }
    let id = text(block, "tool_use_id");
    let Some((_, place)) = r
        .service
        .iter()
        .rev()
        .find(|(other, _)| other == id)
        .cloned()
    else {
        return false;
    };
    let output = text(&block["content"][0], "text").to_owned();
    let is_error = block["is_error"] == true;
    let step = &mut r.choice(0).steps[place];
    let is_first = step.result.replace((output, is_error)).is_none();
    r.rule(is_first, format!("a second result: {block}"));
    true
}

/// Whether a block is what the provider ran itself.
fn is_of_provider(kind: &str) -> bool {
    ["server_tool_use", "mcp_tool_use"].contains(&kind) || kind.ends_with("_tool_result")
}

fn finish(reason: &Value) -> Option<Finish> {
    Some(match reason.as_str()? {
        "end_turn" | "stop_sequence" | "pause_turn" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" => Finish::Length,
        "refusal" => Finish::Filter,
        _ => return None,
    })
}

/// `input_tokens` leaves out what came from the cache.
fn counts(usage: &Value, input: u64, cached: u64) -> Option<Usage> {
    let output = count(usage, &["output_tokens"])?;
    let cached = count(usage, &["cache_read_input_tokens"]).unwrap_or(cached);
    let input = count(usage, &["input_tokens"]).unwrap_or(input) + cached;
    Some(Usage {
        input,
        output,
        total: input + output,
        cached,
        reasoning: 0,
    })
}

/// Reads a whole answer.
pub(crate) fn whole(bytes: &[u8]) -> Reading {
    let mut r = Reading::default();
    let Ok(message) = serde_json::from_slice::<Value>(bytes) else {
        r.wrong
            .push(format!("no JSON: {}", String::from_utf8_lossy(bytes)));
        return r;
    };
    r.rule(
        message["type"] == "message" && message["role"] == "assistant",
        "not a message",
    );
    r.rule(
        message.get("stop_sequence").is_some_and(Value::is_null),
        "no stop_sequence",
    );
    (r.id, r.model) = (
        text(&message, "id").to_owned(),
        text(&message, "model").to_owned(),
    );
    r.rule(!r.id.is_empty() && !r.model.is_empty(), "no id or model");
    r.usage = counts(&message["usage"], 0, 0).filter(|_| message["usage"]["input_tokens"].is_u64());
    r.rule(r.usage.is_some(), "no counts");
    r.choice(0).finish = finish(&message["stop_reason"]);
    r.rule(r.choices[0].finish.is_some(), "an unknown stop reason");
    r.ending = Ending::Clean;
    let Some(content) = message["content"].as_array() else {
        r.wrong.push("no content".to_owned());
        return r;
    };
    for block in content {
        let by_provider = is_of_provider(text(block, "type"));
        r.rule(
            !has_null(block) || block["type"] == "tool_use" || by_provider,
            format!("null in a block: {block}"),
        );
        let choice = r.choice(0);
        choice.order.push(text(block, "type").to_owned());
        match text(block, "type") {
            "text" => choice.text.push_str(text(block, "text")),
            "thinking" => choice.reasoning.push_str(text(block, "thinking")),
            "redacted_thinking" => {}
            "tool_use" => choice.calls.push(Call {
                id: text(block, "id").to_owned(),
                name: text(block, "name").to_owned(),
                arguments: block["input"].to_string(),
                is_finished: true,
            }),
            _ => {
                let is_service = service_block(&mut r, block);
                r.rule(
                    is_service || by_provider,
                    format!("a block of another type: {block}"),
                );
            }
        }
        r.rule(
            block["type"] != "text" || !text(block, "text").is_empty(),
            "an empty text block",
        );
    }
    r.check();
    r
}
