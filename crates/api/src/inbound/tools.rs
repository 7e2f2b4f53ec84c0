//! Parses the tools in a client's request, in any of the three APIs.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/chat/create>,
//! <https://platform.openai.com/docs/api-reference/responses/create>,
//! <https://platform.claude.com/docs/en/api/messages>; namespaces as Codex sends them:
//! <https://github.com/openai/codex/blob/main/codex-rs/tools/src/responses_api.rs>.

use crate::inbound::draft::{InboundNotes, quoted};
use crate::members::GetText;
use json::{ToolEntry, ToolList, is_name};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::Digest as _;
use std::collections::HashSet;

/// A function in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespacedTool {
    /// The name that the model sees.
    pub full_name: String,
    /// The namespace.
    pub namespace: String,
    /// The name within the namespace.
    pub name: String,
}

/// The tools of a request.
#[derive(Debug, Default)]
pub(crate) struct InboundTools {
    /// The tools that the client runs.
    pub list: ToolList,
    /// The names of tools that take one free-form text.
    pub custom: Vec<String>,
    /// The tools in a namespace.
    pub namespaced: Vec<NamespacedTool>,
    /// The provider's own tools, unchanged.
    pub provider: Vec<Value>,
    /// Whether a function has members that are not parsed.
    pub has_more: bool,
}

/// The maximum length of a tool name that every provider accepts.
const LONGEST: usize = 64;

/// The members that may hold a function's parameter schema.
const SCHEMAS: [&str; 3] = ["parameters", "input_schema", "inputSchema"];

/// The members of a function that are parsed.
const KNOWN: [&str; 7] = [
    "type",
    "name",
    "description",
    "strict",
    "parameters",
    "input_schema",
    "inputSchema",
];

/// Codex's name for the namespace of tools that have none.
const NO_NAMESPACE: &str = "functions";

/// Returns the name that the model sees for the tool `name` in `namespace`. The namespace becomes
/// part of the name, because many servers accept no additional tool members.
pub(crate) fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() || namespace == NO_NAMESPACE {
        return name.to_owned();
    }
    let between = if namespace.ends_with("__") { "" } else { "__" };
    let full = format!("{namespace}{between}{name}");
    if full.len() <= LONGEST || !full.is_ascii() {
        return full;
    }
    let hash = sha2::Sha256::digest(full.as_bytes());
    hash.iter()
        .take(4)
        .fold(full[..LONGEST - 9].to_owned() + "_", |name, b| {
            name + &format!("{b:02x}")
        })
}

impl InboundTools {
    /// Parses a request's tool lists (usually one). Skips tools that are unusable.
    pub(crate) fn read<'v>(
        lists: impl IntoIterator<Item = &'v Value>,
        notes: &mut InboundNotes,
    ) -> InboundTools {
        let mut tools = InboundTools::default();
        for list in lists {
            match list {
                Value::Null => {}
                Value::Array(entries) => entries
                    .iter()
                    .for_each(|entry| tools.entry(entry, "", notes)),
                _ => notes.add("tools: not an array, it is left out"),
            }
        }
        tools
    }

    /// Parses one tool in `namespace`.
    fn entry(&mut self, entry: &Value, namespace: &str, notes: &mut InboundNotes) {
        let Some(tool) = entry.as_object() else {
            notes.add("tools: an entry that is not an object is left out");
            return;
        };
        let kind = tool.text_of("type").unwrap_or("function");
        let inner = tool.get(kind).and_then(Value::as_object).unwrap_or(tool);
        let schema = SCHEMAS
            .iter()
            .find_map(|key| inner.get(*key).filter(|schema| schema.is_object()));
        match kind {
            "namespace" if namespace.is_empty() => {
                let name = tool.text_of("name").unwrap_or_default();
                for entry in tool.list_of("tools").iter() {
                    // A namespace without a name holds tools that have no namespace.
                    self.entry(
                        entry,
                        if name.is_empty() { NO_NAMESPACE } else { name },
                        notes,
                    );
                }
            }
            "custom" if schema.is_none() => self.free(inner, namespace, notes),
            // Anthropic's functions may have the type `custom`.
            "function" | "custom" => {
                let own = if std::ptr::eq(inner, tool) {
                    None
                } else {
                    Some(tool)
                };
                let names = inner
                    .iter()
                    .chain(own.into_iter().flatten().filter(|(name, _)| *name != kind));
                for (name, _) in names
                    .filter(|(name, value)| !KNOWN.contains(&name.as_str()) && !value.is_null())
                {
                    self.has_more = true;
                    if name == "cache_control" {
                        continue; // it changes no answer
                    }
                    notes.add_foreign(format!("tools: {} of a function is left out", quoted(name)));
                }
                let mark = tool.get("cache_control").or(inner.get("cache_control"));
                self.function(inner, schema, mark, namespace, notes);
            }
            other => {
                notes.add_foreign(format!(
                    "tools: {} is a tool of the provider's, which other APIs do not have",
                    quoted(other)
                ));
                self.provider.push(entry.clone());
            }
        }
    }

    fn function(
        &mut self,
        tool: &Map<String, Value>,
        schema: Option<&Value>,
        mark: Option<&Value>,
        namespace: &str,
        notes: &mut InboundNotes,
    ) {
        let entry = ToolEntry {
            name: String::new(),
            description: tool.text_of("description").map(str::to_owned),
            parameters: schema.map(Value::to_string),
            strict: tool.get("strict").and_then(Value::as_bool),
            text: String::new(),
        };
        self.add(entry, tool, mark, namespace, notes);
    }

    /// Adds a free-form text tool as a function with the string parameter `input`. The input's
    /// grammar is appended to the description.
    fn free(&mut self, tool: &Map<String, Value>, namespace: &str, notes: &mut InboundNotes) {
        let text = |value: &Value, path: &str| {
            value
                .pointer(path)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let format = tool.get("format").cloned().unwrap_or_default();
        let definition =
            text(&format, "/definition").or_else(|| text(&format, "/grammar/definition"));
        let syntax = text(&format, "/syntax").or_else(|| text(&format, "/grammar/syntax"));
        let mut description = tool.text_of("description").unwrap_or_default().to_owned();
        if let Some(definition) = definition {
            let syntax = syntax.unwrap_or_else(|| "formal".to_owned());
            description +=
                &format!("\n\nThe input must match this {syntax} grammar:\n{definition}");
        }
        let entry = ToolEntry {
            name: String::new(),
            description: Some(description.trim_start().to_owned()).filter(|text| !text.is_empty()),
            parameters: Some(
                json!({
                    "type": "object",
                    "properties": {"input": {"type": "string", "description": "The whole input of the tool, as text."}},
                    "required": ["input"],
                    "additionalProperties": false,
                })
                .to_string(),
            ),
            strict: None,
            text: String::new(),
        };
        if let Some(name) = self.add(entry, tool, None, namespace, notes) {
            self.custom.push(name);
        }
    }

    /// Adds a tool and returns its full name, or `None` if the name is invalid or a duplicate.
    fn add(
        &mut self,
        mut entry: ToolEntry,
        tool: &Map<String, Value>,
        mark: Option<&Value>,
        namespace: &str,
        notes: &mut InboundNotes,
    ) -> Option<String> {
        let name = tool.text_of("name").unwrap_or_default();
        let full = full_name(namespace, name);
        if name.is_empty() || !is_name(&full) {
            notes.add(format!(
                "tools: the name {} cannot be used, so its tool is left out",
                quoted(&full)
            ));
            return None;
        }
        entry.name.clone_from(&full);
        let mut text = json!({"name": full});
        if let Some(mark) = mark {
            text["cache_control"] = mark.clone();
        }
        entry.text = text.to_string();
        if self.list.add(entry).is_err() {
            notes.add(format!(
                "tools: another tool has the name {}, so one is left out",
                quoted(&full)
            ));
            return None;
        }
        if full != name {
            let namespace = namespace.to_owned();
            let name = name.to_owned();
            self.namespaced.push(NamespacedTool {
                full_name: full.clone(),
                namespace,
                name,
            });
        }
        Some(full)
    }

    /// Keeps only the tools for which `is_kept` returns true.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        let mut kept = ToolList::default();
        for entry in self.list.iter().filter(|entry| is_kept(&entry.name)) {
            // Cannot fail: the names in a list are already unique.
            let _ = kept.add(entry.clone());
        }
        self.list = kept;
        self.custom.retain(|name| is_kept(name));
        self.namespaced.retain(|tool| is_kept(&tool.full_name));
    }

    /// Whether there are no tools for the client to run.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.iter().next().is_none()
    }
}

/// The values of [`crate::RequestOptions::tool_choice`] that are not tool names.
const WORDS: [&str; 3] = ["auto", "none", "required"];

/// Parses `tool_choice`, or `function_call` of older clients, into `auto`, `none`, `required` or
/// the name of one of `tools`. If the choice allows only some tools, the others are removed.
/// Returns `None` if there are no tools.
pub(crate) fn choice(
    choice: Option<&Value>,
    tools: &mut InboundTools,
    notes: &mut InboundNotes,
) -> Option<String> {
    let choice = choice.filter(|choice| !choice.is_null() && !tools.is_empty())?;
    match choice {
        Value::String(word) => word_or_name(word, tools, notes),
        Value::Object(members) => {
            let kind = members.text_of("type").unwrap_or("function");
            match kind {
                "auto" | "none" | "required" | "any" => word_or_name(kind, tools, notes),
                "function" | "tool" | "custom" => match name(choice, kind) {
                    Some(name) => named(&name, tools, notes),
                    None => unreadable(notes),
                },
                "allowed_tools" => allowed(members.get(kind).unwrap_or(choice), tools, notes),
                other => {
                    notes.add(format!(
                        "tool_choice: {} is not a tool that can be chosen here",
                        quoted(other)
                    ));
                    None
                }
            }
        }
        _ => unreadable(notes),
    }
}

fn unreadable(notes: &mut InboundNotes) -> Option<String> {
    notes.add("tool_choice: neither a word nor a tool, it is left out");
    None
}

fn word_or_name(word: &str, tools: &mut InboundTools, notes: &mut InboundNotes) -> Option<String> {
    match word {
        "any" => Some("required".to_owned()),
        word if WORDS.contains(&word) => Some(word.to_owned()),
        name => named(name, tools, notes),
    }
}

/// Chooses one tool by name.
fn named(name: &str, tools: &mut InboundTools, notes: &mut InboundNotes) -> Option<String> {
    if !tools.list.iter().any(|tool| tool.name == name) {
        notes.add(format!(
            "tool_choice: no tool has the name {}, so any may be called",
            quoted(name)
        ));
        return None;
    }
    if WORDS.contains(&name) {
        // The name would be mistaken for the keyword, so this tool alone is offered, with
        // `required`.
        tools.retain(|tool| tool == name);
        return Some("required".to_owned());
    }
    Some(name.to_owned())
}

/// Returns the full tool name in a choice or in an entry of the allowed tools.
fn name(choice: &Value, kind: &str) -> Option<String> {
    let inner = choice
        .get(kind)
        .filter(|inner| inner.is_object())
        .unwrap_or(choice);
    let text = |key: &str| inner.text_of(key);
    Some(full_name(
        text("namespace").unwrap_or_default(),
        text("name")?,
    ))
}

/// Parses a choice that allows only some of the tools
/// (<https://platform.openai.com/docs/guides/function-calling>, "Allowed tools").
fn allowed(choice: &Value, tools: &mut InboundTools, notes: &mut InboundNotes) -> Option<String> {
    let entries = choice.list_of("tools");
    let kind = |entry: &Value| entry.text_of("type").unwrap_or("function").to_owned();
    let names: HashSet<String> = entries
        .iter()
        .filter_map(|entry| name(entry, &kind(entry)))
        .collect();
    let is_allowed = |name: &str| names.contains(name);
    if tools.list.iter().any(|tool| is_allowed(&tool.name)) {
        tools.retain(is_allowed);
    } else {
        notes.add("tool_choice: none of the allowed tools is in tools, so all are offered");
    }
    let mode = choice.text_of("mode").filter(|mode| WORDS.contains(mode));
    mode.map(str::to_owned)
}
