//! Parses client requests of OpenAI's Responses API
//! (<https://platform.openai.com/docs/api-reference/responses/create>). The items that Codex sends
//! are in <https://github.com/openai/codex/blob/main/codex-rs/protocol/src/models.rs>.

use crate::Api;
use crate::answer::service::SERVICE;
use crate::carried::carried;
use crate::conversation::Message;
use crate::inbound::draft::{
    AssistantDraft, ConversationDraft, InboundNotes, file, foreign_reasoning, image, message,
    quoted, result, text,
};
use crate::inbound::request::{
    ClientApproval, InboundError, InboundRequest, Instructions, Reference, ReferenceKind,
    of_responses,
};
use crate::inbound::tools::full_name;
use crate::members::{GetText, Put};
use crate::openai_responses::items::{OWN_CALL, own_call};
use crate::openai_responses::service;
use crate::verbatim::{ADDITIONAL_TOOLS, additional_tools, names};
use serde_json::{Map, Value, json};

/// Parses the body.
///
/// # Errors
/// See [`crate::inbound`].
pub(crate) fn read(body: Map<String, Value>) -> Result<InboundRequest, InboundError> {
    let mut notes = InboundNotes::default();
    let (mut request, members) = InboundRequest::begin(body, names(Api::OpenaiResponses.name()));
    let lists = members
        .get("tools")
        .into_iter()
        .chain(additional_tools(&members));
    request.set_tools(lists, members.get("tool_choice"), &mut notes);
    let mut items = Items::default();
    match members.get("instructions") {
        Some(Value::String(words)) => items.talk.system(words),
        // The form in the API's own responses.
        Some(Value::Array(list)) => list
            .iter()
            .for_each(|item| items.item(item, "instructions", 0, &mut notes)),
        _ => {}
    }
    items.close();
    let before = items.talk.len();
    let (prompts, messages) = items.talk.lens();
    match members.get("input") {
        Some(Value::String(words)) => items.talk.push(message("user", vec![text(words)])),
        Some(Value::Array(list)) => {
            list.iter()
                .enumerate()
                .for_each(|(at, item)| items.item(item, "input", at, &mut notes));
        }
        Some(item @ Value::Object(_)) => items.item(item, "input", 0, &mut notes),
        _ => {}
    }
    items.close();
    request.references = of_responses(&request.params);
    request.references.append(&mut items.references);
    request.approvals = std::mem::take(&mut items.approvals);
    let has_steps = items.has_steps;
    let [text, others] = items.talk.prompts(prompts);
    request.instructions = Instructions {
        text,
        others,
        messages,
    };
    let is_empty = items.talk.len() == before;
    let mut request = request.end(items.talk.into_messages(), "input", is_empty, notes)?;
    if has_steps {
        request.drop_verbatim();
    } else {
        request.keep(Api::OpenaiResponses, members);
    }
    Ok(request)
}

/// The items so far. Items of the same answer become one message.
#[derive(Default)]
struct Items {
    talk: ConversationDraft,
    answer: AssistantDraft,
    /// The results of the answer's calls that the service ran.
    results: Vec<Message>,
    references: Vec<Reference>,
    approvals: Vec<ClientApproval>,
    /// Whether there were items of calls that the service ran.
    has_steps: bool,
}

/// Whether an item is a call that the client ran. Calls of the kinds `local_shell_call`,
/// `shell_call`, `apply_patch_call` and `computer_call` have no name; for other providers the kind
/// is the name. Items that the provider ran have no `call_id`.
fn is_call(kind: &str, item: &Value) -> bool {
    matches!(kind, "function_call" | "custom_tool_call")
        || kind.ends_with("_call") && item.get("call_id").is_some_and(Value::is_string)
}

/// Returns the arguments of a call without a name: all members that not every item has.
fn members_of_call(item: &Value) -> String {
    let members = item.as_object().into_iter().flatten();
    let own = members.filter(|(name, _)| !OWN_CALL.contains(&name.as_str()));
    Value::Object(
        own.map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
    .to_string()
}

impl Items {
    /// Ends the open answer.
    fn close(&mut self) {
        if let Some(answer) = self.answer.take() {
            self.talk.push(answer);
        }
        for result in self.results.drain(..) {
            self.talk.push(result);
        }
    }

    /// Ends the open answer if the service ran any of its calls, because later items belong to a
    /// later turn.
    fn close_turn(&mut self) {
        if !self.results.is_empty() {
            self.close();
        }
    }

    /// Processes an item that the service created (`openai_responses/service.rs`): a call with its
    /// result, or the answer to a request for approval. Returns whether it is such an item.
    fn step(&mut self, item: &Value) -> bool {
        let get = |key: &str| item.text_of(key);
        let kind = get("type").unwrap_or_default();
        if kind == "mcp_approval_response" {
            let id = get("approval_request_id").unwrap_or_default();
            let Some(call_id) = id.strip_prefix(service::APPROVAL) else {
                return false;
            };
            self.approvals.push(ClientApproval {
                hash: None,
                call_id: call_id.to_owned(),
                is_approved: item.get("approve").is_some_and(|approve| approve == true),
                reason: get("reason").map(str::to_owned),
            });
            return true;
        }
        if get("server_label") != Some(SERVICE) {
            return false;
        }
        self.has_steps = true;
        if kind != "mcp_call" {
            return kind == "mcp_approval_request";
        }
        let id = get("id").unwrap_or_default();
        let id = id.strip_prefix(service::CALL).unwrap_or(id);
        let arguments = get("arguments").unwrap_or("{}");
        self.answer
            .call(id, get("name").unwrap_or_default(), arguments, None);
        let error = item.pointer("/error/content").map(|content| {
            let parts = content.as_array().into_iter().flatten();
            parts.filter_map(|part| part.text_of("text")).collect()
        });
        let output = get("output").map(str::to_owned);
        if let Some(output) = output.or_else(|| error.clone()) {
            let mut message = result(id, vec![text(&output)]);
            if error.is_some() {
                message.fields_mut().put("is_error", true);
            }
            self.results.push(message);
        }
        true
    }

    /// Processes the item at index `at` of `member`.
    fn item(&mut self, item: &Value, member: &str, at: usize, notes: &mut InboundNotes) {
        if self.step(item) {
            return;
        }
        let get = |key: &str| item.text_of(key);
        // The type of a reference may be omitted.
        let implied = || {
            if get("role").is_some() {
                Some("message")
            } else {
                get("id").map(|_| "item_reference")
            }
        };
        let kind = get("type").or_else(implied);
        let known: &[&str] = match kind {
            Some("message") => &["role", "content"],
            Some("reasoning") => &["summary", "content"],
            Some("function_call") => &["call_id", "name", "namespace", "arguments"],
            Some("custom_tool_call") => &["call_id", "name", "namespace", "input"],
            Some(kind) if kind.ends_with("_call_output") => &["call_id", "output"],
            _ => &[],
        };
        if let Some(kind) = kind.filter(|_| !known.is_empty()) {
            // Another provider's data is kept although encrypted content is dropped.
            let is_carried = get("encrypted_content").is_some_and(|text| carried(text).is_some());
            let more: &[&str] = if is_carried {
                &["encrypted_content"]
            } else {
                &[]
            };
            notes.unread(
                &format!("an item of type {kind}"),
                item,
                &[&["type", "id", "status"], known, more].concat(),
            );
        }
        match kind {
            Some("message") => self.message(item, member, at, notes),
            Some("reasoning") => self.reasoning(item),
            Some(kind) if is_call(kind, item) => self.call(item, member, at, notes),
            Some(kind) if kind.ends_with("_call_output") => {
                self.close();
                let parts = output(item.get("output"), member, at, notes);
                self.talk.push(result(
                    get("call_id").or(get("id")).unwrap_or_default(),
                    parts,
                ));
            }
            Some("item_reference") => self.references.push(Reference {
                member: format!("{member}[{at}]"),
                kind: ReferenceKind::Item,
                id: get("id").unwrap_or_default().to_owned(),
            }),
            Some(ADDITIONAL_TOOLS) => {}
            Some(kind) if item.as_object().is_some_and(|item| item.len() > 1) => {
                notes.add_foreign(format!(
                    "{member}[{at}]: an item of type {} is for a provider of this API alone",
                    quoted(kind)
                ));
                self.close_turn();
                self.answer
                    .think("", Some(json!({"openai-responses": {"server_item": item}})));
            }
            Some(kind) => notes.add(format!(
                "{member}[{at}]: an item of type {} is skipped",
                quoted(kind)
            )),
            None => notes.add(format!(
                "{member}[{at}]: not an item with a type or a role, it is skipped"
            )),
        }
    }

    /// Starts a new message for the next item if the open message already has text, because a
    /// second text is a separate message.
    fn begin_item(&mut self) {
        self.close_turn();
        if self.answer.has_answer() && !self.answer.has_calls() {
            self.close();
        }
    }

    fn call(&mut self, item: &Value, member: &str, at: usize, notes: &mut InboundNotes) {
        let get = |key: &str| item.text_of(key);
        let of_kind = || {
            get("type")?
                .strip_suffix("_call")
                .filter(|kind| !matches!(*kind, "function" | "custom_tool"))
        };
        let Some(name) = get("name").or_else(of_kind).filter(|name| !name.is_empty()) else {
            notes.add(format!("{member}[{at}]: a call without a name is skipped"));
            return;
        };
        let name = full_name(get("namespace").unwrap_or_default(), name);
        let id = get("call_id").or(get("id")).unwrap_or_default();
        let is_own = |kind: &&str| own_call(kind).is_some() || *kind == "local_shell_call";
        if let Some(kind) = get("type").filter(is_own) {
            let data = json!({"openai-responses": {"kind": kind}});
            self.answer
                .call(id, &name, &members_of_call(item), Some(data));
            return;
        }
        if get("type") == Some("custom_tool_call") {
            let arguments = json!({"input": get("input").unwrap_or_default()}).to_string();
            self.answer.call(
                id,
                &name,
                &arguments,
                Some(json!({"openai-responses": {"custom": true}})),
            );
            return;
        }
        let arguments = match item.get("arguments") {
            None if get("name").is_none() => members_of_call(item),
            Some(Value::String(text)) => text.clone(),
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => "{}".to_owned(),
        };
        self.answer.call(id, &name, &arguments, None);
    }

    fn message(&mut self, item: &Value, member: &str, at: usize, notes: &mut InboundNotes) {
        let content = item.get("content");
        match item.text_of("role") {
            Some("assistant") => {
                // Text after a call is not made a separate message, because the call's result would
                // then no longer follow the call.
                self.begin_item();
                let before = self.answer.length();
                if self.answer.has_answer() {
                    self.answer.say("\n\n");
                }
                for part in parts(content, member, at, notes) {
                    let get = |key: &str| part.text_of(key);
                    match (get("text"), get("refusal")) {
                        (Some(words), _) => self.answer.say(words),
                        (None, Some(words)) => self.answer.refuse(words),
                        _ => notes.add(format!(
                            "{member}[{at}]: a part of an answer that is not text is skipped"
                        )),
                    }
                }
                if let Some(phase) = item.text_of("phase") {
                    let length = self.answer.length() - before;
                    let message = json!({"phase": phase, "length": length});
                    let data = json!({"openai-responses": {"message": message}});
                    self.answer.think("", Some(data));
                }
            }
            Some("system" | "developer") => {
                self.close();
                let parts = parts(content, member, at, notes);
                let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
                self.talk.system(&texts.collect::<Vec<_>>().join("\n\n"));
            }
            Some("user") => {
                self.close();
                let parts = parts(content, member, at, notes);
                if !parts.is_empty() {
                    self.talk.push(message("user", parts));
                }
            }
            role => notes.unknown_role(member, at, role.unwrap_or_default()),
        }
    }

    /// Parses reasoning. If it comes from this API, the whole item is sent back to an upstream of
    /// this API.
    fn reasoning(&mut self, item: &Value) {
        let texts = |key: &str| {
            let parts = item.list_of(key).iter();
            parts
                .filter_map(|part| part.get("text")?.as_str().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let thoughts = texts("content");
        let is_own =
            !thoughts.is_empty() || item.get("encrypted_content").is_some_and(Value::is_string);
        let data = match item.text_of("encrypted_content").and_then(carried) {
            Some(data) => data,
            None if is_own => json!({"openai-responses": {"item": item}}),
            None => foreign_reasoning(),
        };
        let thoughts = if thoughts.is_empty() {
            texts("summary")
        } else {
            thoughts
        };
        self.begin_item();
        self.answer.think(&thoughts.join("\n\n"), Some(data));
    }
}

/// Converts a tool's result: a string, parts, or any other JSON as text.
fn output(output: Option<&Value>, member: &str, at: usize, notes: &mut InboundNotes) -> Vec<Value> {
    match output {
        Some(Value::String(_) | Value::Array(_)) => parts(output, member, at, notes),
        Some(Value::Null) | None => Vec::new(),
        Some(other) => vec![text(&other.to_string())],
    }
}

/// Converts content to parts in the form of Chat Completions. A string becomes one part.
fn parts(content: Option<&Value>, member: &str, at: usize, notes: &mut InboundNotes) -> Vec<Value> {
    match content {
        Some(Value::String(words)) => vec![text(words)],
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(|value| {
                let part = part(value);
                let known: &[&str] = match value.text_of("type") {
                    Some("input_image" | "image_url") => &["type", "image_url", "detail"],
                    Some("input_file") => &["type", "filename", "file_data", "file_url"],
                    Some("input_audio" | "file") => &["type", "input_audio", "file"],
                    Some("refusal") => &["type", "refusal"],
                    _ => &["type", "text"],
                };
                if part.is_some() {
                    notes.unread("a part of a content", value, known);
                } else {
                    notes.add(format!(
                        "{member}[{at}]: a part of its content cannot be read, it is skipped"
                    ));
                }
                part
            })
            .collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(_) => {
            notes.add(format!(
                "{member}[{at}]: its content is neither a text nor parts, it is skipped"
            ));
            Vec::new()
        }
    }
}

fn part(part: &Value) -> Option<Value> {
    if let Some(words) = part.as_str() {
        return Some(text(words));
    }
    let get = |path: &str| part.pointer(path).and_then(Value::as_str);
    match get("/type")? {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => {
            get("/text").map(text)
        }
        "refusal" => Some(part.clone()),
        "input_image" | "image_url" => match get("/image_url").or_else(|| get("/image_url/url")) {
            Some(url) => Some(image(url, get("/detail"))),
            None => Some(part.clone()),
        },
        "input_file" => match (get("/file_data"), get("/file_url")) {
            (Some(data), _) => Some(file("file_data", data, get("/filename"))),
            (None, Some(url)) => Some(file("file_url", url, get("/filename"))),
            // A file that the provider stores is only available to the same provider.
            (None, None) => Some(part.clone()),
        },
        "input_audio" | "file" => Some(part.clone()),
        _ => None,
    }
}
