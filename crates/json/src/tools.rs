//! The tools of a request: parses every format of tool list, and answers questions about the tools'
//! schemas.

use crate::{JsonError, Misfit, Schema, SchemaError, ValueType, check, is_name};
use event::{Object, Raw};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// The tools of a list, in order. Each schema is compiled when it is first needed.
#[derive(Debug, Default)]
pub struct ToolList {
    tools: Vec<ListedTool>,
    provider: Vec<ProviderTool>,
    /// Maps a tool's name to its index in `tools`; `None` for the name of a provider's tool.
    by_name: HashMap<String, Option<usize>>,
    left_out: Vec<ToolsError>,
}

#[derive(Debug)]
struct ListedTool {
    entry: ToolEntry,
    schema: OnceLock<Result<Schema, SchemaError>>,
    tree: OnceLock<Option<Value>>,
}

/// Why a call's arguments must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The arguments do not fit the schema.
    #[error("{0}")]
    Arguments(#[from] Misfit),
    /// The schema cannot be used, so the arguments cannot be checked.
    #[error("{0}")]
    Schema(#[from] SchemaError),
}

impl ToolList {
    /// Parses a list: an array, an object with an array `tools` (a request or a tools file), or
    /// MCP's reply to `tools/list`. Each entry may use the format of OpenAI Chat, OpenAI Responses,
    /// Anthropic, MCP, Gemini, Bedrock's Converse (`toolSpec`) or Cohere's first API
    /// (`parameter_definitions`). Other entries are the provider's own tools.
    ///
    /// # Errors
    /// Returns the first mistake. Schemas are not checked here, but when they are needed or by
    /// [`ToolList::read_and_compile`].
    pub fn read(text: &str) -> Result<ToolList, ToolsError> {
        ToolList::read_valid(text)?.complete()
    }

    /// Like [`ToolList::read`], for a list that arrived with a stream: an invalid tool is skipped,
    /// so that the other tools stay usable. [`ToolList::left_out`] returns the mistakes.
    ///
    /// # Errors
    /// The text is not a list of tools.
    pub fn read_valid(text: &str) -> Result<ToolList, ToolsError> {
        match lists(text)? {
            (Some(list), None) => Ok(ToolList::of_entries(list)),
            (None, None) => Err(ToolsError::NoArray),
            (_, Some(servers)) => Err(ToolsError::Servers(
                servers.entries().next().map(|(name, _)| name.into_owned()),
            )),
        }
    }

    /// Like [`ToolList::read`], for a caller that starts tool servers, which the text may list in
    /// addition to `tools`, or instead. Returns the value of `mcpServers` as JSON, or `None` if
    /// there is none.
    ///
    /// # Errors
    /// Returns the first mistake outside `mcpServers`.
    pub fn read_beside_servers(text: &str) -> Result<(ToolList, Option<String>), ToolsError> {
        match lists(text)? {
            (Some(list), servers) => Ok((
                ToolList::of_entries(list).complete()?,
                servers.map(|s| s.text().to_owned()),
            )),
            (None, Some(servers)) => Ok((ToolList::default(), Some(servers.text().to_owned()))),
            (None, None) => Err(ToolsError::NoArray),
        }
    }

    /// Whether the text contains a list or servers for [`ToolList::read_beside_servers`]. They may
    /// still be invalid.
    pub fn is_in(text: &str) -> bool {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let found = Raw::parse(text).ok().map(place);
        matches!(found, Some(Ok((Some(_), _) | (_, Some(_)))))
    }

    fn of_entries(list: Raw<'_>) -> ToolList {
        let mut tools = ToolList::default();
        for entry in list.items() {
            let added = match read_entry(entry) {
                Ok(EntryShape::Tool(tool)) => tools.add(tool),
                Ok(EntryShape::Provider(tool)) => tools.add_provider(tool),
                Ok(EntryShape::Declarations(declared, others)) => {
                    for declaration in declared.items() {
                        let tool = read_tool(declaration)
                            .map_err(|(name, fault)| tools.mistake(name, fault));
                        let added = tool.and_then(|tool| tools.add(tool));
                        tools.left_out.extend(added.err());
                    }
                    tools.provider.extend(others);
                    Ok(())
                }
                Err((name, fault)) => Err(tools.mistake(name, fault)),
            };
            tools.left_out.extend(added.err());
        }
        tools
    }

    /// Returns the list, or the first mistake if a tool was skipped.
    fn complete(self) -> Result<ToolList, ToolsError> {
        match self.left_out.first() {
            Some(mistake) => Err(mistake.clone()),
            None => Ok(self),
        }
    }

    /// Returns why tools of the text are missing from this list; see [`ToolList::read_valid`].
    pub fn left_out(&self) -> &[ToolsError] {
        &self.left_out
    }

    /// Like [`ToolList::read`], but also compiles every schema, so that the author of a
    /// hand-written list learns of mistakes before the first call.
    ///
    /// # Errors
    /// Returns the first mistake.
    pub fn read_and_compile(text: &str) -> Result<ToolList, ToolsError> {
        let tools = ToolList::read(text)?;
        for (number, tool) in (1..).zip(&tools.tools) {
            if let Some(Err(e)) = tool.schema() {
                let place = ToolPlace {
                    number,
                    name: Some(tool.entry.name.clone()),
                };
                return Err(ToolsError::Tool(place, e.clone().into()));
            }
        }
        Ok(tools)
    }

    /// Returns the tools that the caller runs.
    pub fn iter(&self) -> impl Iterator<Item = &ToolEntry> {
        self.tools.iter().map(|tool| &tool.entry)
    }

    /// Returns the provider's own tools.
    pub fn provider(&self) -> &[ProviderTool] {
        &self.provider
    }

    /// Whether a tool has exactly this name.
    pub fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the list's own copy of a name, or `None` if no tool has this name.
    pub(crate) fn listed(&self, name: &str) -> Option<&str> {
        self.by_name.get_key_value(name).map(|(name, _)| &**name)
    }

    /// Returns the names of all tools, the provider's tools last.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter()
            .map(|tool| &*tool.name)
            .chain(self.provider.iter().filter_map(|tool| tool.name.as_deref()))
    }

    /// Returns the list for a request, as a JSON array on one line: the tools that `offered`
    /// accepts, in OpenAI's format, then the provider's own tools.
    pub fn openai(&self, offered: impl Fn(&ToolEntry) -> bool) -> String {
        let mut out = Vec::new();
        let mut list = event::Array::open(&mut out);
        for tool in self.iter().filter(|tool| offered(tool)) {
            list.object(|entry| tool.write_openai(entry));
        }
        for tool in &self.provider {
            list.raw(&tool.text);
        }
        list.close();
        String::from_utf8(out).unwrap_or_default()
    }

    /// Returns the compiled schema of a tool, or `None` for a tool that is unknown or has no
    /// schema.
    pub fn schema(&self, name: &str) -> Option<Result<&Schema, &SchemaError>> {
        self.tool(name)?.schema()
    }

    /// Returns the types that a tool's schema declares for its arguments; empty for a tool that is
    /// unknown or has no schema.
    pub fn parameters(&self, name: &str) -> ValueType<'_> {
        self.tool(name)
            .and_then(ListedTool::tree)
            .map(ValueType::new)
            .unwrap_or_default()
    }

    /// Checks a call's arguments against the tool's schema. Any arguments fit a tool that is
    /// unknown or has no schema.
    ///
    /// # Errors
    /// Returns what does not fit, or why the schema cannot be used.
    pub fn check(&self, name: &str, arguments: &str) -> Result<(), Unfit> {
        match self.schema(name) {
            Some(Ok(schema)) => Ok(schema.check(arguments)?),
            Some(Err(e)) => Err(e.clone().into()),
            None => Ok(()),
        }
    }

    fn tool(&self, name: &str) -> Option<&ListedTool> {
        self.tools.get((*self.by_name.get(name)?)?)
    }

    /// Appends a tool.
    ///
    /// # Errors
    /// Fails if another tool has the same name.
    pub fn add(&mut self, entry: ToolEntry) -> Result<(), ToolsError> {
        let name = entry.name.clone();
        if self.knows(&name) {
            return Err(self.mistake(Some(name), ToolFault::Twice));
        }
        self.by_name.insert(name, Some(self.tools.len()));
        self.tools.push(ListedTool {
            entry,
            schema: OnceLock::new(),
            tree: OnceLock::new(),
        });
        Ok(())
    }

    fn add_provider(&mut self, tool: ProviderTool) -> Result<(), ToolsError> {
        if let Some(name) = &tool.name {
            if self.knows(name) {
                return Err(self.mistake(Some(name.clone()), ToolFault::Twice));
            }
            self.by_name.insert(name.clone(), None);
        }
        self.provider.push(tool);
        Ok(())
    }

    /// Returns the error for a mistake in the next tool.
    fn mistake(&self, name: Option<String>, fault: ToolFault) -> ToolsError {
        ToolsError::Tool(
            ToolPlace {
                number: self.tools.len() + self.provider.len() + self.left_out.len() + 1,
                name,
            },
            fault,
        )
    }
}

impl ListedTool {
    fn schema(&self) -> Option<Result<&Schema, &SchemaError>> {
        let parameters = self.entry.parameters.as_deref()?;
        Some(self.schema.get_or_init(|| Schema::new(parameters)).as_ref())
    }

    fn tree(&self) -> Option<&Value> {
        let read = || serde_json::from_str(self.entry.parameters.as_deref()?).ok();
        self.tree.get_or_init(read).as_ref()
    }
}

/// Returns the array of tools and the value of `mcpServers`. A text that two parsers may read
/// differently is rejected, because a name or a schema could change in transit.
fn lists(text: &str) -> Result<(Option<Raw<'_>>, Option<Raw<'_>>), ToolsError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = Raw::parse(text).map_err(|e| {
        // serde_json's message contains the line and the column, which are more helpful for a file
        // than a byte offset.
        let words = serde_json::from_str::<Value>(text)
            .err()
            .map(|e| e.to_string());
        ToolsError::Syntax(words.unwrap_or_else(|| e.to_string()))
    })?;
    check(text).map_err(ToolsError::Ambiguous)?;
    place(root)
}

/// Returns the list in a JSON value and the value of `mcpServers`.
fn place(root: Raw<'_>) -> Result<(Option<Raw<'_>>, Option<Raw<'_>>), ToolsError> {
    if root.is_array() {
        return Ok((Some(root), None));
    }
    if !root.is_object() {
        return Err(ToolsError::NoList);
    }
    let servers = root.get("mcpServers");
    // MCP's reply to `tools/list`, and a request of Bedrock's Converse.
    let inner = || {
        let inner = root.at(&["result", "tools"]);
        inner.or_else(|| root.at(&["toolConfig", "tools"]))
    };
    match root.get("tools").or_else(inner) {
        Some(list) if !list.is_array() => Err(ToolsError::NoArray),
        list => Ok((list, servers)),
    }
}

/// The schema of a tool that declares no arguments, for providers that require a schema.
pub const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// A tool that the caller runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolEntry {
    /// The tool's name, see [`crate::is_name`].
    pub name: String,
    /// The description of the tool for the model.
    pub description: Option<String>,
    /// The JSON Schema of the arguments: an object, byte for byte as it was written. `None` if the
    /// tool has no schema.
    pub parameters: Option<String>,
    /// Whether the provider is asked to enforce the schema; `None` if the entry does not say.
    pub strict: Option<bool>,
    /// The whole entry as it was written. For Gemini, only the tool's own declaration.
    pub text: String,
}

/// A tool that the provider runs itself, such as web search. It is forwarded unchanged in a
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderTool {
    /// The tool's name, or `None` if it has no name.
    pub name: Option<String>,
    /// The entry as JSON on one line.
    pub text: String,
}

impl ToolEntry {
    /// Returns the schema for a request: [`NO_PARAMETERS`] if the schema is missing or empty.
    pub fn schema(&self) -> &str {
        let text = self.parameters.as_deref().unwrap_or_default();
        if event::Raw::parse(text).is_ok_and(|schema| schema.entries().next().is_some()) {
            text
        } else {
            NO_PARAMETERS
        }
    }

    /// Writes the members of the entry in OpenAI's format: `{"type":"function","function":{…}}`.
    pub fn write_openai(&self, entry: &mut Object<'_>) {
        entry
            .str("type", "function")
            .object("function", |function| {
                function
                    .str("name", &self.name)
                    .maybe_str("description", self.description.as_deref());
                function.minified("parameters", self.schema());
                if let Some(strict) = self.strict {
                    function.bool("strict", strict);
                }
            });
    }
}

/// Identifies a tool in a list. Displayed as `tool 2 ("get_weather")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPlace {
    /// The tool's position in the list, counted from 1.
    pub number: usize,
    /// The tool's name, or `None` if the name could not be read.
    pub name: Option<String>,
}

impl fmt::Display for ToolPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool {}", self.number)?;
        self.name
            .as_ref()
            .map_or(Ok(()), |name| write!(f, " ({name:?})"))
    }
}

/// Why a list of tools cannot be used: a one-line message with the remedy. The caller puts the file
/// name in front.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    /// The text is not JSON.
    #[error("not JSON: {0}, fix it there")]
    Syntax(String),
    /// Two parsers may read the text differently.
    #[error("{0}, fix it there")]
    Ambiguous(JsonError),
    /// The value is neither an array nor an object.
    #[error(
        "neither an array of tools nor an object with one, write an array of tools: [{{\"type\":\"function\",…}}]"
    )]
    NoList,
    /// The value is an object whose `tools` is missing or not an array.
    #[error(
        "an object without an array of tools, write {{\"tools\":[…]}} or write an array of tools alone"
    )]
    NoArray,
    /// The text lists tool servers, which this reader does not start. Contains the name of the
    /// first.
    #[error("mcpServers{} is for tool-exec alone, which prints the tools of the servers too: \
        tool-exec --tools FILE --list >LIST; give LIST here", .0.as_ref().map(|name| format!(" ({name:?})")).unwrap_or_default())]
    Servers(Option<String>),
    /// One tool is invalid.
    #[error("{0}: {1}")]
    Tool(ToolPlace, ToolFault),
}

/// What is wrong with one tool of a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolFault {
    /// The entry is not an object.
    #[error("not an object, write {{\"name\":…,\"parameters\":…}}")]
    NotAnObject,
    /// The member of this name is not an object (`function`) or not an array
    /// (`functionDeclarations`).
    #[error("{0} is not {1}")]
    Member(&'static str, &'static str),
    /// The name is missing, empty or not a string.
    #[error("it has no name, add \"name\"")]
    NoName,
    /// The name is invalid, see [`crate::is_name`].
    #[error("the name must be 1 to 128 of A-Z a-z 0-9 _ . -, rename it")]
    Name,
    /// An earlier tool has the same name, so it would be unclear which schema applies.
    #[error("another tool has this name, rename one of them")]
    Twice,
    /// The entry has parameters under two different keys.
    #[error("it has two schemas, keep one of {0} and {1}")]
    Schemas(&'static str, &'static str),
    /// The parameters under this key are not an object.
    #[error("{0} is not an object, write a JSON Schema there")]
    NoSchema(&'static str),
    /// A parameter in `parameter_definitions` has a type that is not a Python type.
    #[error(
        "parameter_definitions: the type {1:?} of {0:?} is not read, write str, int, float, bool, List[…] or Dict"
    )]
    PythonType(String, String),
    /// The schema cannot be compiled.
    #[error("parameters: {0}")]
    Schema(#[from] SchemaError),
}

/// The tools that one entry describes.
enum EntryShape<'a> {
    /// One tool that the caller runs.
    Tool(ToolEntry),
    /// A provider's own tool.
    Provider(ProviderTool),
    /// A Gemini entry: the tools that it declares, and its other members, which are a provider's
    /// tool.
    Declarations(Raw<'a>, Option<ProviderTool>),
}

/// The keys under which an entry may have its schema.
const SCHEMAS: [&str; 5] = [
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
    "parameters_json_schema",
];

/// The key of a tool in Bedrock's Converse
/// (<https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html>).
const SPEC: &str = "toolSpec";

/// The key of a tool's parameters in Cohere's first API.
const DEFINITIONS: &str = "parameter_definitions";

/// Parses an entry. The error contains the tool's name if the name could be read.
fn read_entry(entry: Raw<'_>) -> Result<EntryShape<'_>, (Option<String>, ToolFault)> {
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
        return read_tool(entry).map(EntryShape::Tool);
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

/// Parses an entry, or a Gemini declaration, that describes one tool that the caller runs.
fn read_tool(entry: Raw<'_>) -> Result<ToolEntry, (Option<String>, ToolFault)> {
    let mut function = members(entry)?;
    for key in ["function", SPEC] {
        match get(&function, key) {
            Some(inner) if inner.is_object() => function = members(inner)?,
            Some(_) => return Err((None, ToolFault::Member(key, "an object"))),
            None => continue,
        }
        if key == SPEC {
            // The schema is inside a member that names the notation.
            let schema = |(_, value): &mut (Cow<'_, str>, Raw<'_>)| {
                *value = value.get("json").unwrap_or(*value);
            };
            let found = function.iter_mut().find(|(key, _)| key == "inputSchema");
            found.into_iter().for_each(schema);
        }
        break;
    }
    let text = |key| get(&function, key).and_then(Raw::str).map(Cow::into_owned);
    let name = text("name")
        .filter(|name| !name.is_empty())
        .ok_or((None, ToolFault::NoName))?;
    if !is_name(&name) {
        return Err((Some(name), ToolFault::Name));
    }
    let named = |fault| (Some(name.clone()), fault);
    let mut parameters = parameters(&function).map_err(named)?.map(str::to_owned);
    if let Some(definitions) = get(&function, DEFINITIONS) {
        if parameters.is_some() {
            return Err(named(ToolFault::Schemas(DEFINITIONS, "the other schema")));
        }
        parameters = Some(defined(definitions).map_err(named)?);
    }
    let strict = get(&function, "strict").and_then(Raw::bool);
    let text = (text("description"), entry.text().to_owned());
    Ok(ToolEntry {
        name,
        description: text.0,
        parameters,
        strict,
        text: text.1,
    })
}

type Members<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

/// Returns the members of an object, except those that are `null`.
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

/// Whether an entry is a tool that the caller runs.
fn is_tool(members: &Members<'_>) -> bool {
    let shown = ["function", "exec", SPEC, DEFINITIONS]
        .iter()
        .chain(&SCHEMAS)
        .any(|key| get(members, key).is_some());
    // Gemini's own tools have neither a type nor a name: `{"googleSearch":{}}`.
    let settings = !members.is_empty() && members.iter().all(|(_, value)| value.is_object());
    // Anthropic marks a caller's tool with the type `custom`, and such a tool always has a schema.
    // OpenAI's custom tools take free text and have no schema.
    let kind = get(members, "type").and_then(Raw::str);
    shown || (kind.is_none_or(|kind| kind == "function") && !settings)
}

/// Returns the members other than `key` as a provider's tool, or `None` if there are none.
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

/// Returns the text of the schema under any of its keys.
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

/// Returns the schema for Cohere's `parameter_definitions`: an object that contains a description,
/// a Python type and `required` for each parameter
/// (<https://docs.cohere.com/v1/docs/parameter-types-in-tool-use>).
fn defined(definitions: Raw<'_>) -> Result<String, ToolFault> {
    if !definitions.is_object() {
        return Err(ToolFault::NoSchema(DEFINITIONS));
    }
    let mut required = Vec::new();
    let mut properties = serde_json::Map::new();
    for (name, definition) in definitions.entries() {
        let kind = definition.get_str("type").unwrap_or_default();
        let Some(mut schema) = python_type(&kind) else {
            return Err(ToolFault::PythonType(name.into_owned(), kind.into_owned()));
        };
        if let Some(description) = definition.get_str("description") {
            schema.insert("description".to_owned(), description.into());
        }
        if definition.get("required").and_then(Raw::bool) == Some(true) {
            required.push(Value::from(&*name));
        }
        properties.insert(name.into_owned(), Value::Object(schema));
    }
    let mut schema = serde_json::Map::from_iter([
        ("type".to_owned(), Value::from("object")),
        ("properties".to_owned(), Value::Object(properties)),
    ]);
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    Ok(Value::Object(schema).to_string())
}

/// Returns the schema of a Python type, or `None` if the type is unknown.
fn python_type(kind: &str) -> Option<serde_json::Map<String, Value>> {
    let (outer, inner) = match kind.trim().split_once('[') {
        Some((outer, inner)) => (outer, Some(inner.strip_suffix(']')?)),
        None => (kind.trim(), None),
    };
    let name = match outer {
        "str" | "string" => "string",
        "int" | "integer" => "integer",
        "float" | "number" => "number",
        "bool" | "boolean" => "boolean",
        "List" | "list" | "array" => "array",
        "Dict" | "dict" | "object" => "object",
        _ => return None,
    };
    let mut schema = serde_json::Map::from_iter([("type".to_owned(), Value::from(name))]);
    match inner {
        None => {}
        Some(inner) if name == "array" => {
            schema.insert("items".to_owned(), Value::Object(python_type(inner)?));
        }
        // The types of keys and values of a dictionary.
        Some(_) if name == "object" => {}
        Some(_) => return None,
    }
    Some(schema)
}

fn minified(value: Raw<'_>) -> String {
    let mut out = Vec::with_capacity(value.text().len());
    event::minify(&mut out, value.text());
    String::from_utf8(out).unwrap_or_default()
}
