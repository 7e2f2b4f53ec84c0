//! Which tool the model may or must call, in every form that clients have for it.

use super::notes::{Notes, quoted};
use super::tools::{InboundTools, full_name};
use serde_json::Value;
use std::collections::HashSet;

/// The words that are not names in [`crate::RequestOptions::tool_choice`].
const WORDS: [&str; 3] = ["auto", "none", "required"];

/// Reads `tool_choice`, or `function_call` of older clients: `auto`, `none`, `required` or the name
/// of one of `tools`. A choice among some tools leaves only those. Without tools nothing can be
/// chosen.
pub(crate) fn read(
    choice: Option<&Value>,
    tools: &mut InboundTools,
    notes: &mut Notes,
) -> Option<String> {
    let choice = choice.filter(|choice| !choice.is_null() && !tools.is_empty())?;
    match choice {
        Value::String(word) => word_or_name(word, tools, notes),
        Value::Object(members) => {
            let kind = members
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or("function");
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

fn unreadable(notes: &mut Notes) -> Option<String> {
    notes.add("tool_choice: neither a word nor a tool, it is left out");
    None
}

fn word_or_name(word: &str, tools: &mut InboundTools, notes: &mut Notes) -> Option<String> {
    match word {
        "any" => Some("required".to_owned()),
        word if WORDS.contains(&word) => Some(word.to_owned()),
        name => named(name, tools, notes),
    }
}

/// The choice of one tool by its name.
fn named(name: &str, tools: &mut InboundTools, notes: &mut Notes) -> Option<String> {
    if !tools.list.iter().any(|tool| tool.name == name) {
        notes.add(format!(
            "tool_choice: no tool has the name {}, so any may be called",
            quoted(name)
        ));
        return None;
    }
    if WORDS.contains(&name) {
        // The name would read as the word, so the tool is offered alone.
        tools.retain(|tool| tool == name);
        return Some("required".to_owned());
    }
    Some(name.to_owned())
}

/// The name in a choice or in an entry of the allowed tools.
fn name(choice: &Value, kind: &str) -> Option<String> {
    let inner = choice
        .get(kind)
        .filter(|inner| inner.is_object())
        .unwrap_or(choice);
    let text = |key: &str| inner.get(key).and_then(Value::as_str);
    Some(full_name(
        text("namespace").unwrap_or_default(),
        text("name")?,
    ))
}

/// The choice among some of the tools (<https://platform.openai.com/docs/guides/function-calling>,
/// "Allowed tools").
fn allowed(choice: &Value, tools: &mut InboundTools, notes: &mut Notes) -> Option<String> {
    let entries = choice
        .get("tools")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let kind = |entry: &Value| {
        entry
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("function")
            .to_owned()
    };
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
    let mode = choice
        .get("mode")
        .and_then(Value::as_str)
        .filter(|mode| WORDS.contains(mode));
    mode.map(str::to_owned)
}
