//! The tools of a request: one reader for every shape of list, and what their schemas say of
//! arguments.

mod entry;
mod error;
mod shape;
#[cfg(test)]
mod tests;

pub use entry::{NO_PARAMETERS, ProviderTool, ToolEntry};
pub use error::{ToolFault, ToolPlace, ToolsError};

use crate::{Misfit, Schema, SchemaError, ValueType, check};
use event::Raw;
use serde_json::Value;
use shape::EntryShape;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The tools of a list, in its order. A schema is compiled when it is first needed.
#[derive(Debug, Default)]
pub struct ToolList {
    tools: Vec<Tool>,
    provider: Vec<ProviderTool>,
    /// The place in `tools` by name; `None` for a name of the provider's.
    by_name: HashMap<String, Option<usize>>,
    left_out: Vec<ToolsError>,
}

#[derive(Debug)]
struct Tool {
    entry: ToolEntry,
    schema: OnceLock<Result<Schema, SchemaError>>,
    tree: OnceLock<Option<Value>>,
}

/// Why a call's arguments must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// They do not fit the schema.
    #[error("{0}")]
    Arguments(#[from] Misfit),
    /// The schema cannot be used, so nothing is known of the arguments.
    #[error("{0}")]
    Schema(#[from] SchemaError),
}

impl ToolList {
    /// Reads a list: an array, an object with an array `tools` (a request or a tools file), or
    /// MCP's reply to `tools/list`. Each entry may have the shape of OpenAI Chat, OpenAI Responses,
    /// Anthropic, MCP or Gemini. Other entries are the provider's own tools.
    ///
    /// # Errors
    /// The first mistake. A schema is looked at when it is needed, or by [`ToolList::read_and_compile`].
    pub fn read(text: &str) -> Result<ToolList, ToolsError> {
        ToolList::read_valid(text)?.complete()
    }

    /// As [`ToolList::read`], for a list that came with a stream: a tool that cannot be read is
    /// left out and must not take the others with it. [`ToolList::left_out`] has the mistakes.
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

    /// As [`ToolList::read`], for a caller that starts the servers of tools that the list may have
    /// beside `tools`, or alone. Returns the value of `mcpServers` as JSON, if there is one.
    ///
    /// # Errors
    /// The first mistake, but for those in `mcpServers`.
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

    fn of_entries(list: Raw<'_>) -> ToolList {
        let mut tools = ToolList::default();
        for entry in list.items() {
            let added = match shape::read(entry) {
                Ok(EntryShape::Tool(tool)) => tools.add(tool),
                Ok(EntryShape::Provider(tool)) => tools.add_provider(tool),
                Ok(EntryShape::Declarations(declared, others)) => {
                    for declaration in declared.items() {
                        let tool = shape::tool(declaration)
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

    /// The list, if no tool had to be left out.
    fn complete(self) -> Result<ToolList, ToolsError> {
        match self.left_out.first() {
            Some(mistake) => Err(mistake.clone()),
            None => Ok(self),
        }
    }

    /// Why tools of the text are not in this list; see [`ToolList::read_valid`].
    pub fn left_out(&self) -> &[ToolsError] {
        &self.left_out
    }

    /// As [`ToolList::read`], and compiles every schema: for a list that a person wrote, who is to
    /// hear of a mistake before the first call.
    ///
    /// # Errors
    /// The first mistake.
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

    /// The tools that the caller runs.
    pub fn iter(&self) -> impl Iterator<Item = &ToolEntry> {
        self.tools.iter().map(|tool| &tool.entry)
    }

    /// The provider's own tools.
    pub fn provider(&self) -> &[ProviderTool] {
        &self.provider
    }

    /// Whether a tool has this name, byte for byte.
    pub fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The names of all tools, the provider's last.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter()
            .map(|tool| &*tool.name)
            .chain(self.provider.iter().filter_map(|tool| tool.name.as_deref()))
    }

    /// The list for a request, as a JSON array on one line: the tools that `offered` returns true
    /// for in OpenAI's shape, then the provider's own.
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

    /// The compiled schema of a tool; `None` for a tool that is not in the list or has no schema.
    pub fn schema(&self, name: &str) -> Option<Result<&Schema, &SchemaError>> {
        self.tool(name)?.schema()
    }

    /// What the schema of a tool says of the types of its arguments; nothing for a tool that is not
    /// in the list or has no schema.
    pub fn parameters(&self, name: &str) -> ValueType<'_> {
        self.tool(name)
            .and_then(Tool::tree)
            .map(ValueType::new)
            .unwrap_or_default()
    }

    /// Checks a call's arguments against its tool's schema. Any arguments fit a tool that is not in
    /// the list or has no schema.
    ///
    /// # Errors
    /// What does not fit, or why the schema cannot be used.
    pub fn check(&self, name: &str, arguments: &str) -> Result<(), Unfit> {
        match self.schema(name) {
            Some(Ok(schema)) => Ok(schema.check(arguments)?),
            Some(Err(e)) => Err(e.clone().into()),
            None => Ok(()),
        }
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get((*self.by_name.get(name)?)?)
    }

    /// Adds a tool at the end.
    ///
    /// # Errors
    /// When another tool has its name.
    pub fn add(&mut self, entry: ToolEntry) -> Result<(), ToolsError> {
        let name = entry.name.clone();
        if self.knows(&name) {
            return Err(self.mistake(Some(name), ToolFault::Twice));
        }
        self.by_name.insert(name, Some(self.tools.len()));
        self.tools.push(Tool {
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

    /// A mistake in the tool that comes next.
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

impl Tool {
    fn schema(&self) -> Option<Result<&Schema, &SchemaError>> {
        let parameters = self.entry.parameters.as_deref()?;
        Some(self.schema.get_or_init(|| Schema::new(parameters)).as_ref())
    }

    fn tree(&self) -> Option<&Value> {
        let read = || serde_json::from_str(self.entry.parameters.as_deref()?).ok();
        self.tree.get_or_init(read).as_ref()
    }
}

/// The array of a list, and the value of `mcpServers`. A text that two parsers could read
/// differently is refused: a name or a schema could change on its way.
fn lists(text: &str) -> Result<(Option<Raw<'_>>, Option<Raw<'_>>), ToolsError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = Raw::parse(text).map_err(|e| {
        // This message has the line and the column, which help more in a file than a count of
        // bytes.
        let words = serde_json::from_str::<Value>(text)
            .err()
            .map(|e| e.to_string());
        ToolsError::Syntax(words.unwrap_or_else(|| e.to_string()))
    })?;
    check(text).map_err(ToolsError::Ambiguous)?;
    if root.is_array() {
        return Ok((Some(root), None));
    }
    if !root.is_object() {
        return Err(ToolsError::NoList);
    }
    let servers = root.get("mcpServers");
    match root.get("tools").or_else(|| root.at(&["result", "tools"])) {
        Some(list) if !list.is_array() => Err(ToolsError::NoArray),
        list => Ok((list, servers)),
    }
}
