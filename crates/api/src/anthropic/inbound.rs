//! Parses client requests of the Messages API (<https://platform.claude.com/docs/en/api/messages>).

use crate::Api;
use crate::answer::service::SERVICE;
use crate::carried::{UNSIGNED, carried};
use crate::conversation::Message;
use crate::inbound::draft::{
    AssistantDraft, ConversationDraft, InboundNotes, file, foreign_reasoning, image, message,
    quoted, result, text,
};
use crate::inbound::request::{InboundError, InboundRequest, of_messages};
use crate::members::{GetText, Put};
use crate::verbatim::names;
use serde_json::{Map, Value, json};

/// Parses the body.
///
/// # Errors
/// See [`crate::inbound`].
pub(crate) fn read(body: Map<String, Value>) -> Result<InboundRequest, InboundError> {
    let mut notes = InboundNotes::default();
    let (mut request, members) = InboundRequest::begin(body, names(Api::Anthropic.name()));
    let choice = members.get("tool_choice");
    request.set_tools(members.get("tools"), choice, &mut notes);
    // The choice also contains a setting that `parameters_for` reads.
    let has_tools = request.tools.is_some() || !request.provider_tools.is_empty();
    if let Some(choice) =
        choice.filter(|choice| has_tools && choice.get("disable_parallel_tool_use").is_some())
    {
        request
            .params
            .insert("tool_choice".to_owned(), choice.clone());
    }
    let mut talk = ConversationDraft::default();
    system(members.get("system"), &mut talk, &mut notes);
    let before = talk.len();
    let mut has_steps = false;
    let messages = members.list_of("messages");
    for (at, message) in messages.iter().enumerate() {
        let content = message.get("content");
        match message.text_of("role") {
            Some("user") => user(content, at, &mut talk, &mut notes),
            Some("assistant") => {
                let turns = assistant(content, at, &mut notes);
                has_steps |= !turns.own.is_empty();
                turns.done.into_iter().for_each(|turn| talk.push(turn));
            }
            Some("system" | "developer") => system(content, &mut talk, &mut notes),
            Some(role) => notes.unknown_role("messages", at, role),
            None => notes.add(format!(
                "messages[{at}]: not a message with a role, it is skipped"
            )),
        }
    }
    request.references.extend(of_messages(&request.params));
    let is_empty = talk.len() == before;
    let mut request = request.end(talk.into_messages(), "messages", is_empty, notes)?;
    if has_steps {
        request.drop_verbatim();
    } else {
        request.keep(Api::Anthropic, members);
    }
    Ok(request)
}

/// Parses a system prompt: a string or text blocks.
fn system(content: Option<&Value>, talk: &mut ConversationDraft, notes: &mut InboundNotes) {
    match content {
        Some(Value::String(words)) => talk.system(words),
        Some(Value::Array(blocks)) => {
            blocks.iter().for_each(|block| {
                notes.unread("a block of the system prompt", block, &["type", "text"])
            });
            let texts = blocks
                .iter()
                .filter_map(|block| block.as_str().or_else(|| block.get("text")?.as_str()));
            let texts: Vec<&str> = texts.filter(|words| !words.trim().is_empty()).collect();
            talk.system(&texts.join("\n\n"));
        }
        _ => {}
    }
}

/// Parses a user message. Tool results become separate messages, in the same order.
fn user(
    content: Option<&Value>,
    at: usize,
    talk: &mut ConversationDraft,
    notes: &mut InboundNotes,
) {
    let mut parts = Vec::new();
    let flush = |parts: &mut Vec<Value>, talk: &mut ConversationDraft| {
        if !parts.is_empty() {
            talk.push(message("user", std::mem::take(parts)));
        }
    };
    for block in blocks(content, at, notes) {
        if block.get("type").is_some_and(|kind| kind == "tool_result") {
            flush(&mut parts, talk);
            talk.push(tool_result(&block, at, notes));
        } else {
            part(&block, at, &mut parts, notes);
        }
    }
    flush(&mut parts, talk);
}

/// Returns the blocks of the content. A string becomes one block.
fn blocks(content: Option<&Value>, at: usize, notes: &mut InboundNotes) -> Vec<Value> {
    match content {
        Some(Value::String(words)) => vec![text(words)],
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(block @ Value::Object(_)) => vec![block.clone()],
        Some(Value::Null) | None => Vec::new(),
        Some(_) => {
            notes.add(format!(
                "messages[{at}].content: neither a text nor blocks, it is skipped"
            ));
            Vec::new()
        }
    }
}

fn tool_result(block: &Value, at: usize, notes: &mut InboundNotes) -> Message {
    let mut parts = Vec::new();
    notes.unread(
        "a tool_result block",
        block,
        &["type", "tool_use_id", "content", "is_error"],
    );
    for block in blocks(block.get("content"), at, notes) {
        part(&block, at, &mut parts, notes);
    }
    let id = block.text_of("tool_use_id").unwrap_or_default();
    let mut message = result(id, parts);
    if block.get("is_error").and_then(Value::as_bool) == Some(true) {
        message.fields_mut().put("is_error", true);
    }
    message
}

/// Converts a block of a user message or a result to OpenAI's shape.
fn part(block: &Value, at: usize, parts: &mut Vec<Value>, notes: &mut InboundNotes) {
    let get = |path: &str| block.pointer(path).and_then(Value::as_str);
    let name = get("/title").filter(|title| !title.is_empty());
    let data = || {
        Some(format!(
            "data:{};base64,{}",
            get("/source/media_type")?,
            get("/source/data")?
        ))
    };
    let known: &[&str] = match get("/type") {
        Some("image") => &["source"],
        Some("document") => &["source", "title"],
        Some("search_result") => &["source", "title", "content"],
        Some("tool_reference") => &["tool_name"],
        _ => &["text"],
    };
    let kind = get("/type").unwrap_or_default();
    if matches!(
        kind,
        "text" | "image" | "document" | "search_result" | "tool_reference"
    ) {
        notes.unread(
            &format!("a block of type {kind}"),
            block,
            &[&["type"], known].concat(),
        );
    }
    let read = match (get("/type"), get("/source/type")) {
        (None, _) => block.as_str().map(text),
        (Some("text"), _) => get("/text").map(text),
        (Some("image"), Some("base64")) => data().map(|url| image(&url, None)),
        (Some("image"), Some("url")) => get("/source/url").map(|url| image(url, None)),
        (Some("document"), Some("base64")) => data().map(|url| file("file_data", &url, name)),
        (Some("document"), Some("url")) => {
            get("/source/url").map(|url| file("file_url", url, name))
        }
        (Some("document"), Some("text")) => get("/source/data").map(text),
        (Some("document"), Some("content")) => {
            for block in blocks(block.pointer("/source/content"), at, notes) {
                part(&block, at, parts, notes);
            }
            return;
        }
        (Some("search_result"), _) => {
            let head = [get("/title"), get("/source")]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("\n");
            parts.push(text(&head));
            for block in blocks(block.get("content"), at, notes) {
                part(&block, at, parts, notes);
            }
            return;
        }
        (Some("tool_reference"), _) => get("/tool_name").map(text),
        _ => None,
    };
    match read {
        Some(part) => parts.push(part),
        None => {
            let kind = quoted(get("/type").unwrap_or("without a type"));
            notes.add(format!(
                "messages[{at}]: a block of type {kind} is for Anthropic alone, it is skipped"
            ));
        }
    }
}

/// The turns in a message with calls that the service ran (`service_block` in `whole.rs`).
#[derive(Default)]
struct AssistantTurns {
    draft: AssistantDraft,
    /// The results of the open turn's calls.
    results: Vec<Message>,
    done: Vec<Message>,
    /// The ids of the calls that the service ran.
    own: Vec<String>,
}

impl AssistantTurns {
    /// Ends the open turn.
    fn close(&mut self) {
        self.done.extend(self.draft.take());
        self.done.append(&mut self.results);
    }

    /// Processes a block if it belongs to a call that the service ran. Returns whether it does.
    fn step(&mut self, block: &Value, at: usize, notes: &mut InboundNotes) -> bool {
        let get = |key: &str| block.text_of(key).unwrap_or_default();
        match get("type") {
            "mcp_tool_use" if get("server_name") == SERVICE => {
                let input = block.get("input").filter(|input| input.is_object());
                let arguments = input.map_or_else(|| "{}".to_owned(), Value::to_string);
                self.draft.call(get("id"), get("name"), &arguments, None);
                self.own.push(get("id").to_owned());
                true
            }
            "mcp_tool_result" if self.own.iter().any(|id| id == get("tool_use_id")) => {
                self.results.push(tool_result(block, at, notes));
                true
            }
            _ => {
                // Content after a result belongs to the next turn, but further calls may belong to
                // the same one.
                let is_call = get("type") == "tool_use";
                if !self.results.is_empty() && !is_call {
                    self.close();
                }
                false
            }
        }
    }
}

/// Parses an assistant message. If the service ran calls, the result is several messages with
/// results between them. Blocks that must be sent back to Anthropic keep their position among text
/// and calls.
fn assistant(content: Option<&Value>, at: usize, notes: &mut InboundNotes) -> AssistantTurns {
    let mut turns = AssistantTurns::default();
    for block in blocks(content, at, notes) {
        if turns.step(&block, at, notes) {
            continue;
        }
        let draft = &mut turns.draft;
        let get = |key: &str| block.text_of(key);
        let known: &[&str] = match get("type") {
            Some("text") => &["type", "text"],
            Some("thinking") => &["type", "thinking", "signature"],
            Some("redacted_thinking") => &["type", "data"],
            Some("tool_use") => &["type", "id", "name", "input"],
            _ => &[],
        };
        if !known.is_empty() {
            notes.unread(
                &format!("a block of type {}", get("type").unwrap_or_default()),
                &block,
                known,
            );
        }
        match get("type") {
            Some("text") => draft.say(get("text").unwrap_or_default()),
            None => draft.say(block.as_str().unwrap_or_default()),
            Some("thinking") => {
                let signature = get("signature").filter(|signature| !signature.is_empty());
                let data = match signature {
                    None | Some(UNSIGNED) => foreign_reasoning(),
                    Some(s) => carried(s).unwrap_or_else(|| json!({"anthropic": {"signature": s}})),
                };
                draft.think(get("thinking").unwrap_or_default(), Some(data));
            }
            Some("redacted_thinking") => {
                if let Some(data) = get("data") {
                    draft.think("", Some(json!({"anthropic": {"redacted": data}})));
                }
            }
            Some("tool_use") => match get("name").filter(|name| !name.is_empty()) {
                Some(name) => {
                    let input = block.get("input").filter(|input| input.is_object());
                    let arguments = input.map_or_else(|| "{}".to_owned(), Value::to_string);
                    draft.call(get("id").unwrap_or_default(), name, &arguments, None);
                }
                None => notes.add(format!("messages[{at}]: a call without a name is skipped")),
            },
            // Blocks of Anthropic's own tools and of newer types are sent back unchanged.
            Some(kind) => {
                notes.add_foreign(format!(
                    "messages[{at}]: a block of type {} is for Anthropic alone",
                    quoted(kind)
                ));
                draft.think("", Some(json!({"anthropic": {"block": block}})));
            }
        }
    }
    turns.close();
    turns
}
