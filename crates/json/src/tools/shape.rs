//! One entry of a list of tools, in whichever shape it came.
//!
//! OpenAI Chat has the tool under `function`, OpenAI Responses has its members beside `type`
//! (<https://platform.openai.com/docs/api-reference/responses/create>), Anthropic calls the schema
//! `input_schema` (<https://docs.anthropic.com/en/api/messages>) and MCP `inputSchema`
//! (<https://modelcontextprotocol.io/specification>). Gemini has several tools in one entry, with
//! the schema as `parameters` or `parametersJsonSchema` (<https://ai.google.dev/api/caching#Tool>).

use super::{ProviderTool, ToolEntry, ToolFault};
use crate::is_name;
use event::Raw;
use std::borrow::Cow;

/// What one entry describes.
pub(super) enum EntryShape<'a> {
    /// One tool that the caller runs.
    Tool(ToolEntry),
    /// The provider's own tool.
    Provider(ProviderTool),
    /// Gemini's entry: the tools that it declares, and what else it has, which is the provider's.
    Declarations(Raw<'a>, Option<ProviderTool>),
}

/// The keys of the schema.
const SCHEMAS: [&str; 5] = [
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
    "parameters_json_schema",
];

/// Reads an entry. The error has the tool's name, if that could be read.
pub(super) fn read(entry: Raw<'_>) -> Result<EntryShape<'_>, (Option<String>, ToolFault)> {
    let members = members(entry)?;
    for key in ["functionDeclarations", "function_declarations"] {
        if let Some(declared) = get(&members, key) {
            let declared = Some(declared).filter(|d| d.is_array());
            return Ok(EntryShape::Declarations(
                declared.ok_or((None, ToolFault::Member(key, "an array")))?,
                others(&members, key),
            ));
        }
    }
    if is_tool(&members) {
        return tool(entry).map(EntryShape::Tool);
    }
    let name = get(&members, "name")
        .and_then(Raw::str)
        .filter(|name| !name.is_empty())
        .map(Cow::into_owned);
    Ok(EntryShape::Provider(ProviderTool {
        name,
        text: minified(entry),
    }))
}

/// Reads an entry, or one of Gemini's declarations, that describes one tool of the caller's.
pub(super) fn tool(entry: Raw<'_>) -> Result<ToolEntry, (Option<String>, ToolFault)> {
    let mut function = members(entry)?;
    match get(&function, "function") {
        Some(inner) if inner.is_object() => function = members(inner)?,
        Some(_) => return Err((None, ToolFault::Member("function", "an object"))),
        None => {}
    }
    let text = |key| get(&function, key).and_then(Raw::str).map(Cow::into_owned);
    let name = text("name")
        .filter(|name| !name.is_empty())
        .ok_or((None, ToolFault::NoName))?;
    if !is_name(&name) {
        return Err((Some(name), ToolFault::Name));
    }
    let parameters = parameters(&function).map_err(|fault| (Some(name.clone()), fault))?;
    let strict = get(&function, "strict").and_then(Raw::bool);
    let text = (text("description"), entry.text().to_owned());
    Ok(ToolEntry {
        name,
        description: text.0,
        parameters: parameters.map(str::to_owned),
        strict,
        text: text.1,
    })
}

type Members<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

/// The members of an object, but those that are `null`.
fn members(entry: Raw<'_>) -> Result<Members<'_>, (Option<String>, ToolFault)> {
    if !entry.is_object() {
        return Err((None, ToolFault::NotAnObject));
    }
    Ok(entry
        .entries()
        .filter(|(_, value)| !value.is_null())
        .collect())
}

fn get<'a>(members: &Members<'a>, key: &str) -> Option<Raw<'a>> {
    members
        .iter()
        .find(|(k, _)| k == key)
        .map(|(_, value)| *value)
}

/// Whether an entry is a tool that its caller runs.
fn is_tool(members: &Members<'_>) -> bool {
    let shown = ["function", "exec"]
        .iter()
        .chain(&SCHEMAS)
        .any(|key| get(members, key).is_some());
    // Gemini's own tools have neither a type nor a name: `{"googleSearch":{}}`.
    let settings = !members.is_empty() && members.iter().all(|(_, value)| value.is_object());
    // Anthropic gives a caller's tool the type `custom`, and always a schema. OpenAI's custom tools
    // take free text and have none.
    let kind = get(members, "type").and_then(Raw::str);
    shown || (kind.is_none_or(|kind| kind == "function") && !settings)
}

/// The members but `key`, as a tool of the provider's.
fn others(members: &Members<'_>, key: &str) -> Option<ProviderTool> {
    let mut out = Vec::new();
    let mut object = event::Object::open(&mut out);
    let rest: Vec<_> = members.iter().filter(|(k, _)| k != key).collect();
    for (key, value) in &rest {
        object.minified(key, value.text());
    }
    object.close();
    let text = String::from_utf8(out).unwrap_or_default();
    (!rest.is_empty()).then_some(ProviderTool { name: None, text })
}

/// The text of the schema, whatever its key.
fn parameters<'a>(function: &Members<'a>) -> Result<Option<&'a str>, ToolFault> {
    let mut schema: Option<(&'static str, &str)> = None;
    for key in SCHEMAS {
        match (get(function, key), schema) {
            (None, _) => {}
            (Some(value), _) if !value.is_object() => return Err(ToolFault::NoSchema(key)),
            (Some(_), Some((first, _))) => return Err(ToolFault::Schemas(first, key)),
            (Some(value), None) => schema = Some((key, value.text())),
        }
    }
    Ok(schema.map(|(_, text)| text))
}

fn minified(value: Raw<'_>) -> String {
    let mut out = Vec::with_capacity(value.text().len());
    event::minify(&mut out, value.text());
    String::from_utf8(out).unwrap_or_default()
}
