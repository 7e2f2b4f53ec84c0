//! A strict reader of `/v1/responses`, after what openai-python, openai-node, the AI SDK and Codex
//! do with a stream.

use super::frames::frames;
use super::prefix::Prefix;
use super::reading::{Call, Ending, Finish, Reading, Step, Usage, count, has_null, text};
use serde_json::Value;

/// Reads a stream.
pub(crate) fn stream(bytes: &[u8]) -> Reading {
    let mut responses = Responses::default();
    let all = frames(bytes).unwrap_or_else(|why| {
        responses.wrong(why);
        Vec::new()
    });
    for frame in all {
        let Some(data) = frame.data else {
            responses.wrong("a comment, which does not reset a client's timer".to_owned());
            continue;
        };
        if responses.is_done {
            responses.wrong(format!("data behind [DONE]: {data}"));
        } else if data == "[DONE]" {
            responses.reading.rule(
                responses.reading.ending != Ending::Open,
                "[DONE] before the end",
            );
            responses
                .reading
                .rule(frame.name.is_none(), "[DONE] has a name");
            responses.is_done = true;
        } else {
            let data = serde_json::from_str::<Value>(&data).unwrap_or(Value::Null);
            let named = frame.name.as_deref() == data["type"].as_str() && frame.name.is_some();
            responses.reading.rule(
                named,
                format!("an event whose name is not its type: {data}"),
            );
            responses.event(&data);
        }
    }
    responses.finish()
}

#[derive(Default)]
struct Responses {
    reading: Reading,
    sequence: u64,
    created: Value,
    /// The items, as they were when they were done; `null` for one that is open.
    items: Vec<Value>,
    open: Option<Item>,
    /// The place of the open item.
    at: usize,
    /// The calls of the service that are open, of which there may be many.
    service: Vec<ServiceItem>,
    is_done: bool,
}

/// A call of the service that is open.
#[derive(Default)]
struct ServiceItem {
    id: String,
    at: usize,
    /// Its place among the steps.
    step: usize,
    runs: bool,
    arguments: Option<String>,
    ended: Option<&'static str>,
}

/// The item that is open.
#[derive(Default)]
struct Item {
    id: String,
    kind: String,
    name: String,
    call_id: String,
    /// Finished parts, and the text of the one that is open.
    parts: Vec<(String, String)>,
    part: Option<(String, String, bool)>,
    arguments: Prefix,
    sent: Option<String>,
    /// An item that the provider ran comes whole.
    whole: Option<Value>,
}

impl Responses {
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
            data["sequence_number"] == self.sequence,
            format!("sequence_number is not {}: {data}", self.sequence),
        );
        let first = match self.sequence {
            0 => kind == "response.created",
            1 => kind == "response.in_progress",
            _ => !matches!(kind, "response.created" | "response.in_progress"),
        };
        // A connection may be kept alive before the second event, too.
        r.rule(
            first || kind == "keepalive",
            format!("event {} at its place: {data}", self.sequence),
        );
        self.sequence += 1;
        match kind {
            "response.created" | "response.in_progress" => self.begin(&data["response"]),
            "response.output_item.added" => self.added(data),
            "response.output_item.done" => self.done(data),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(kind, &data["response"])
            }
            "keepalive" => {}
            _ => self.inside(kind, data),
        }
    }

    fn begin(&mut self, response: &Value) {
        let r = &mut self.reading;
        r.rule(
            response["object"] == "response" && response["created_at"].is_u64(),
            format!("not a response: {response}"),
        );
        r.rule(
            response["status"] == "in_progress",
            format!("not in progress: {response}"),
        );
        r.rule(
            response["output"].as_array().is_some_and(Vec::is_empty),
            format!("output at the start: {response}"),
        );
        let id = text(response, "id").to_owned();
        let model = text(response, "model").to_owned();
        r.rule(!id.is_empty() && !model.is_empty(), "no id or model");
        r.rule(
            r.id.is_empty()
                || (&r.id, &r.model, &self.created) == (&id, &model, &response["created_at"]),
            "another id",
        );
        (r.id, r.model) = (id, model);
        self.created = response["created_at"].clone();
    }

    fn added(&mut self, data: &Value) {
        let item = &data["item"];
        let id = text(item, "id").to_owned();
        let kind = text(item, "type").to_owned();
        let r = &mut self.reading;
        r.rule(
            self.open.is_none(),
            format!("an item begins inside another: {data}"),
        );
        r.rule(
            data["output_index"] == self.items.len(),
            format!("output_index is not the item's place: {data}"),
        );
        r.rule(
            !id.is_empty() && self.items.iter().all(|i| i["id"] != id.as_str()),
            format!("no id of its own: {data}"),
        );
        r.choice(0).order.push(kind.clone());
        let at = self.items.len();
        self.items.push(Value::Null);
        if is_of_service(item) {
            return self.service_added(data, id, at);
        }
        self.at = at;
        if is_of_provider(&kind) {
            self.open = Some(Item {
                id,
                kind,
                whole: Some(item.clone()),
                ..Item::default()
            });
            return;
        }
        r.rule(
            kind == "reasoning" || item["status"] == "in_progress",
            format!("an item begins otherwise: {data}"),
        );
        match kind.as_str() {
            "message" => {
                r.rule(
                    item["role"] == "assistant" && item["content"] == Value::Array(vec![]),
                    format!("not a message: {data}"),
                );
            }
            "reasoning" => r.rule(
                item["summary"].is_array(),
                format!("reasoning without a summary: {data}"),
            ),
            "function_call" => r.rule(
                item["arguments"] == "",
                format!("arguments at the start: {data}"),
            ),
            "custom_tool_call" => r.rule(
                item["input"] == "",
                format!("an input at the start: {data}"),
            ),
            kind if own_tool(kind).is_some() => {}
            _ => r.rule(false, format!("an item of another type: {data}")),
        }
        let name = own_tool(&kind).unwrap_or(text(item, "name")).to_owned();
        let call_id = text(item, "call_id").to_owned();
        if kind.ends_with("_call") {
            r.choice(0).calls.push(Call {
                id: call_id.clone(),
                name: name.clone(),
                ..Call::default()
            });
        }
        self.open = Some(Item {
            id,
            kind,
            name,
            call_id,
            ..Item::default()
        });
    }

    /// A call of the service begins.
    fn service_added(&mut self, data: &Value, id: String, at: usize) {
        let item = &data["item"];
        let r = &mut self.reading;
        r.rule(
            item["arguments"] == "" && item["status"] == "in_progress",
            format!("a call begins otherwise: {data}"),
        );
        r.rule(
            !text(item, "name").is_empty(),
            format!("a call without a name: {data}"),
        );
        let steps = &mut r.choice(0).steps;
        steps.push(Step {
            name: text(item, "name").to_owned(),
            ..Step::default()
        });
        let step = steps.len() - 1;
        self.service.push(ServiceItem {
            id,
            at,
            step,
            ..ServiceItem::default()
        });
    }

    /// An event of a call of the service.
    fn service_inside(&mut self, kind: &str, data: &Value) {
        let is_it = |item: &&mut ServiceItem| {
            data["item_id"] == item.id.as_str() && data["output_index"] == item.at
        };
        let Some(item) = self.service.iter_mut().find(is_it) else {
            return self.wrong(format!("no such call is open: {data}"));
        };
        let is_over = item.ended.is_some();
        let fits = !is_over
            && match kind {
                "response.mcp_call.in_progress" => !std::mem::replace(&mut item.runs, true),
                "response.mcp_call_arguments.delta" => {
                    item.runs && item.arguments.is_none() && !text(data, "delta").is_empty()
                }
                "response.mcp_call_arguments.done" => {
                    let all = text(data, "arguments").to_owned();
                    let is_json = serde_json::from_str::<Value>(&all).is_ok();
                    item.runs && is_json && item.arguments.replace(all).is_none()
                }
                "response.mcp_call.completed" | "response.mcp_call.failed" => {
                    let is_failed = kind.ends_with("failed");
                    item.ended = Some(if is_failed { "failed" } else { "completed" });
                    item.arguments.is_some()
                }
                _ => false,
            };
        self.reading
            .rule(fits, format!("an event that cannot come here: {data}"));
    }

    /// The end of a call of the service.
    fn service_done(&mut self, data: &Value) {
        let item = &data["item"];
        let is_it =
            |open: &ServiceItem| item["id"] == open.id.as_str() && data["output_index"] == open.at;
        let Some(place) = self.service.iter().position(is_it) else {
            return self.wrong(format!("no such call is open: {data}"));
        };
        let open = self.service.remove(place);
        let r = &mut self.reading;
        r.rule(
            item["status"].as_str() == open.ended && open.ended.is_some(),
            format!("another status than its event: {data}"),
        );
        r.rule(
            item["arguments"].as_str() == open.arguments.as_deref(),
            format!("other arguments than the event: {data}"),
        );
        let step = service_step(item);
        r.rule(
            step.result.is_some() && step.name == r.choices[0].steps[open.step].name,
            format!("no result, or another name: {data}"),
        );
        r.choice(0).steps[open.step] = step;
        self.items[open.at] = item.clone();
    }

    /// An event of the item that is open.
    fn inside(&mut self, kind: &str, data: &Value) {
        if kind.starts_with("response.mcp_call") {
            return self.service_inside(kind, data);
        }
        let at = self.at;
        let Some(item) = &mut self.open else {
            return self.wrong(format!("no item is open: {data}"));
        };
        let r = &mut self.reading;
        r.rule(
            data["item_id"] == item.id.as_str() && data["output_index"] == at,
            format!("of another item: {data}"),
        );
        r.rule(!has_null(data), format!("null in an event: {data}"));
        let delta = text(data, "delta");
        let place = Value::from(item.parts.len());
        let is_part = kind.contains("_part.")
            || matches!(kind.rsplit_once('.'), Some((k, _)) if k.ends_with("_text") || k == "response.refusal");
        if is_part {
            let key = if kind.contains("summary") {
                "summary_index"
            } else {
                "content_index"
            };
            r.rule(data[key] == place, format!("{key} is not {place}: {data}"));
        }
        r.rule(
            !kind.ends_with(".delta") || !delta.is_empty(),
            format!("an empty delta: {data}"),
        );
        match (kind, item.kind.as_str(), &mut item.part) {
            ("response.content_part.added", "message", part @ None)
            | ("response.reasoning_summary_part.added", "reasoning", part @ None) => {
                *part = Some((text(&data["part"], "type").to_owned(), String::new(), false));
                let empty = text(&data["part"], "text").is_empty()
                    && text(&data["part"], "refusal").is_empty();
                r.rule(empty, format!("a part begins with text: {data}"));
            }
            ("response.content_part.added", "reasoning", part @ None) => {
                *part = Some((text(&data["part"], "type").to_owned(), String::new(), false));
            }
            ("response.output_text.delta", "message", Some((kind, text, false)))
                if kind == "output_text" =>
            {
                text.push_str(delta);
                r.choice(0).text.push_str(delta);
            }
            ("response.refusal.delta", "message", Some((kind, text, false)))
                if kind == "refusal" =>
            {
                text.push_str(delta);
                r.choice(0).refusal.push_str(delta);
            }
            ("response.reasoning_summary_text.delta", "reasoning", Some((kind, text, false)))
                if kind == "summary_text" =>
            {
                text.push_str(delta);
                r.choice(0).reasoning.push_str(delta);
            }
            ("response.reasoning_text.delta", "reasoning", Some((kind, text, false)))
                if kind == "reasoning_text" =>
            {
                text.push_str(delta);
                r.choice(0).reasoning.push_str(delta);
            }
            (
                "response.output_text.done"
                | "response.refusal.done"
                | "response.reasoning_summary_text.done"
                | "response.reasoning_text.done",
                _,
                Some((kind, all, done @ false)),
            ) => {
                let key = if kind == "refusal" { "refusal" } else { "text" };
                r.rule(
                    data[key] == all.as_str(),
                    format!("another text than the deltas: {data}"),
                );
                *done = true;
            }
            ("response.content_part.done" | "response.reasoning_summary_part.done", _, part) => {
                let Some((kind, all, true)) = part.take() else {
                    return self.wrong(format!("the part is not done: {data}"));
                };
                let key = if kind == "refusal" { "refusal" } else { "text" };
                r.rule(
                    data["part"][key] == all.as_str() && data["part"]["type"] == kind.as_str(),
                    format!("another part: {data}"),
                );
                r.rule(!all.is_empty(), "an empty part");
                item.parts.push((kind, all));
            }
            ("response.function_call_arguments.delta", "function_call", None)
                if item.sent.is_none() =>
            {
                if let Err(why) = item.arguments.push(delta) {
                    self.wrong(why);
                }
            }
            ("response.function_call_arguments.done", "function_call", None)
                if item.sent.is_none() =>
            {
                let all = text(data, "arguments");
                r.rule(
                    data["name"] == item.name.as_str(),
                    format!("another name: {data}"),
                );
                r.rule(
                    all == item.arguments.text,
                    format!("other arguments than the deltas: {data}"),
                );
                item.sent = Some(all.to_owned());
            }
            ("response.custom_tool_call_input.delta", "custom_tool_call", None)
                if item.sent.is_none() =>
            {
                item.arguments.text.push_str(delta)
            }
            ("response.custom_tool_call_input.done", "custom_tool_call", None)
                if item.sent.is_none() =>
            {
                r.rule(
                    text(data, "input") == item.arguments.text,
                    format!("another input than the deltas: {data}"),
                );
                item.sent = Some(text(data, "input").to_owned());
            }
            _ => r.rule(false, format!("an event that cannot come here: {data}")),
        }
    }

    fn done(&mut self, data: &Value) {
        if is_of_service(&data["item"]) {
            return self.service_done(data);
        }
        let Some(open) = self.open.take() else {
            return self.wrong(format!("no item is open: {data}"));
        };
        let item = &data["item"];
        let r = &mut self.reading;
        let same = item["id"] == open.id.as_str()
            && item["type"] == open.kind.as_str()
            && data["output_index"] == self.at;
        r.rule(
            same && open.part.is_none(),
            format!("the end of another item: {data}"),
        );
        if let Some(whole) = &open.whole {
            r.rule(
                item == whole,
                format!("another item than it began with: {data}"),
            );
            self.items[self.at] = item.clone();
            return;
        }
        let completed = item["status"] == "completed";
        r.rule(
            completed || item["status"] == "incomplete" || open.kind == "reasoning",
            format!("no status: {data}"),
        );
        if own_tool(&open.kind).is_some() {
            r.rule(
                item["call_id"] == open.call_id.as_str(),
                format!("another call: {data}"),
            );
            let call = r.choice(0).calls.last_mut().expect("its item began");
            (call.arguments, call.is_finished) = (own_arguments(item), completed);
        } else if open.kind.ends_with("_call") {
            let all = if open.kind == "function_call" {
                text(item, "arguments")
            } else {
                text(item, "input")
            };
            r.rule(
                item["name"] == open.name.as_str() && item["call_id"] == open.call_id.as_str(),
                format!("another call: {data}"),
            );
            r.rule(
                all == open.arguments.text,
                format!("other arguments than the deltas: {data}"),
            );
            r.rule(
                !completed || open.sent.is_some(),
                format!("completed without a done: {data}"),
            );
            let call = r.choice(0).calls.last_mut().expect("its item began");
            (call.arguments, call.is_finished) = (all.to_owned(), completed);
            if open.kind == "custom_tool_call" {
                call.arguments = serde_json::json!({ "input": all }).to_string();
            }
        } else {
            let parts = if open.kind == "reasoning"
                && item["content"].as_array().is_none_or(Vec::is_empty)
            {
                "summary"
            } else {
                "content"
            };
            let parts: Vec<&str> = item[parts]
                .as_array()
                .into_iter()
                .flatten()
                .map(part_text)
                .collect();
            r.rule(
                parts.iter().eq(open.parts.iter().map(|(_, text)| text)),
                format!("other parts than the events: {data}"),
            );
        }
        self.items[self.at] = item.clone();
    }

    fn end(&mut self, kind: &str, response: &Value) {
        let r = &mut self.reading;
        let status = kind.trim_start_matches("response.");
        if is_cancelled(r, response) && status == "failed" {
            return;
        }
        r.rule(
            response["status"] == status,
            format!("another status than {status}: {response}"),
        );
        r.rule(
            response["id"] == r.id.as_str() && response["created_at"] == self.created,
            format!("another id: {response}"),
        );
        if status == "failed" {
            let error = &response["error"];
            r.rule(
                !text(error, "code").is_empty() && error["message"].is_string(),
                format!("no error: {response}"),
            );
            r.ending = Ending::Failed(text(error, "message").to_owned());
            return;
        }
        // A cut call has no `output_item.done`: Codex runs what has one.
        if let Some(open) = &self.open {
            let item = response["output"]
                .as_array()
                .and_then(|all| all.last())
                .cloned()
                .unwrap_or_default();
            let same = item["id"] == open.id.as_str() && item["status"] == "incomplete";
            r.rule(
                status == "incomplete" && open.kind.ends_with("_call") && same,
                "the end while an item is open",
            );
            self.items[self.at] = item;
        }
        // A call that waits for a person has no end: the AI SDK takes that for its result.
        for open in std::mem::take(&mut self.service) {
            let item = response["output"][open.at].clone();
            let approval = &item["approval_request_id"];
            let waits = item["id"] == open.id.as_str()
                && item["status"] == "incomplete"
                && approval.is_string()
                && self.items.iter().any(|other| other["id"] == *approval);
            r.rule(waits, format!("the end while a call is open: {item}"));
            r.choice(0).steps[open.step] = service_step(&item);
            self.items[open.at] = item;
        }
        r.rule(
            response["output"] == Value::Array(std::mem::take(&mut self.items)),
            format!("other items than the events: {response}"),
        );
        r.usage = counts(&response["usage"]);
        r.rule(r.usage.is_some(), format!("incomplete usage: {response}"));
        r.choice(0).finish = finish(response);
        r.rule(
            r.choices[0].finish.is_some(),
            format!("no reason: {response}"),
        );
        r.ending = Ending::Clean;
    }

    fn finish(mut self) -> Reading {
        if let Some(open) = self.open.take().filter(|open| open.kind.ends_with("_call")) {
            self.reading
                .choice(0)
                .calls
                .last_mut()
                .expect("its item began")
                .arguments = open.arguments.text;
        }
        self.reading.rule(
            self.is_done || self.reading.ending == Ending::Open,
            "no [DONE]",
        );
        self.reading.check();
        self.reading
    }
}

/// Whether a response was cancelled, which is no error: no event but `response.failed` can end its
/// stream.
fn is_cancelled(r: &mut Reading, response: &Value) -> bool {
    let is_cancelled = response["status"] == "cancelled";
    if is_cancelled {
        r.rule(
            response["error"].is_null() && response["usage"].is_null(),
            format!("an error or counts: {response}"),
        );
        r.ending = Ending::Failed("cancelled".to_owned());
    }
    is_cancelled
}

/// Whether an item is a call that the service ran; a provider has calls of this type, too.
fn is_of_service(item: &Value) -> bool {
    item["type"] == "mcp_call" && item["server_label"] == "toolpipe"
}

/// The step that an item of a call of the service is.
fn service_step(item: &Value) -> Step {
    let error = item["error"]["content"][0]["text"].as_str();
    let result = item["output"].as_str().map(|text| (text, false));
    Step {
        name: text(item, "name").to_owned(),
        arguments: serde_json::from_str(text(item, "arguments")).unwrap_or_default(),
        result: error
            .map(|text| (text, true))
            .or(result)
            .map(|(text, is_error)| (text.to_owned(), is_error)),
    }
}

/// Whether an item of this type is one that the provider ran itself, such as a search.
fn is_of_provider(kind: &str) -> bool {
    !matches!(
        kind,
        "message" | "reasoning" | "function_call" | "custom_tool_call"
    ) && own_tool(kind).is_none()
}

/// The name of the tool of the API that the client runs for an item of this type.
fn own_tool(kind: &str) -> Option<&str> {
    let name = kind.strip_suffix("_call")?;
    ["shell", "apply_patch", "computer"]
        .contains(&name)
        .then_some(name)
}

/// What a call of such a tool is called with: the members that not every item has.
fn own_arguments(item: &Value) -> String {
    let mut members = item.as_object().cloned().unwrap_or_default();
    members.retain(|name, _| !["type", "id", "call_id", "status"].contains(&name.as_str()));
    Value::from(members).to_string()
}

fn part_text(part: &Value) -> &str {
    if part["type"] == "refusal" {
        text(part, "refusal")
    } else {
        text(part, "text")
    }
}

fn finish(response: &Value) -> Option<Finish> {
    let is_call = |item: &Value| {
        let kind = text(item, "type");
        matches!(kind, "function_call" | "custom_tool_call") || own_tool(kind).is_some()
    };
    Some(
        match (
            text(response, "status"),
            text(&response["incomplete_details"], "reason"),
        ) {
            ("completed", _) if response["output"].as_array()?.iter().any(is_call) => {
                Finish::ToolCalls
            }
            ("completed", _) => Finish::Stop,
            ("incomplete", "max_output_tokens") => Finish::Length,
            ("incomplete", "content_filter") => Finish::Filter,
            _ => return None,
        },
    )
}

fn counts(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input: count(usage, &["input_tokens"])?,
        output: count(usage, &["output_tokens"])?,
        total: count(usage, &["total_tokens"])?,
        cached: count(usage, &["input_tokens_details", "cached_tokens"])?,
        reasoning: count(usage, &["output_tokens_details", "reasoning_tokens"])?,
    })
}

/// Reads a whole answer.
pub(crate) fn whole(bytes: &[u8]) -> Reading {
    let mut r = Reading::default();
    let Ok(response) = serde_json::from_slice::<Value>(bytes) else {
        r.wrong
            .push(format!("no JSON: {}", String::from_utf8_lossy(bytes)));
        return r;
    };
    r.rule(
        response["object"] == "response" && response["created_at"].is_u64(),
        "not a response",
    );
    (r.id, r.model) = (
        text(&response, "id").to_owned(),
        text(&response, "model").to_owned(),
    );
    r.rule(!r.id.is_empty() && !r.model.is_empty(), "no id or model");
    if is_cancelled(&mut r, &response) {
        return r;
    }
    r.usage = counts(&response["usage"]);
    r.rule(r.usage.is_some(), "incomplete usage");
    r.choice(0).finish = finish(&response);
    r.rule(r.choices[0].finish.is_some(), "no reason");
    r.ending = Ending::Clean;
    for item in response["output"].as_array().into_iter().flatten() {
        let choice = r.choice(0);
        choice.order.push(text(item, "type").to_owned());
        match text(item, "type") {
            "message" => {
                for part in item["content"].as_array().into_iter().flatten() {
                    let into = if part["type"] == "refusal" {
                        &mut choice.refusal
                    } else {
                        &mut choice.text
                    };
                    into.push_str(part_text(part));
                }
            }
            "reasoning" => {
                for part in ["summary", "content"]
                    .iter()
                    .flat_map(|key| item[key].as_array())
                    .flatten()
                {
                    choice.reasoning.push_str(part_text(part));
                }
            }
            "mcp_call" if is_of_service(item) => choice.steps.push(service_step(item)),
            "function_call" | "custom_tool_call" => {
                let custom = || serde_json::json!({"input": item["input"]}).to_string();
                let arguments = item["arguments"]
                    .as_str()
                    .map_or_else(custom, str::to_owned);
                let id = text(item, "call_id").to_owned();
                let name = text(item, "name").to_owned();
                choice.calls.push(Call {
                    id,
                    name,
                    arguments,
                    is_finished: item["status"] == "completed",
                });
            }
            kind => {
                // Any other the provider ran.
                if let Some(name) = own_tool(kind) {
                    choice.calls.push(Call {
                        id: text(item, "call_id").to_owned(),
                        name: name.to_owned(),
                        arguments: own_arguments(item),
                        is_finished: item["status"] == "completed",
                    });
                }
            }
        }
    }
    r.check();
    r
}
