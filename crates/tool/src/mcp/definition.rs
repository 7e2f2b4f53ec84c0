//! What a server says of one of its tools.

use crate::canonical::{Hash, canonical, digest, hex};
use crate::visible::is_blank;
use event::Raw;
use json::ToolEntry;
use serde_json::Value;

/// What a server says of one of its tools. All of it is a stranger's: the description and the
/// schema go to the model, the annotations are hints that grant nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The server's name in the tools file.
    pub server: String,
    /// The tool's name at the server.
    pub tool: String,
    /// What it is for, in words for the model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, as JSON.
    pub schema: String,
    /// The server's annotations, as JSON.
    pub annotations: Option<String>,
}

impl Definition {
    /// Reads a tool of a `tools/list` reply, or of a lock file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(server: &str, tool: &Value) -> Result<Definition, String> {
        let text = |key: &str| tool.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name")
            .filter(|name| !name.is_empty())
            .ok_or("a tool without a name")?;
        let schema = tool.get("inputSchema").filter(|schema| schema.is_object());
        let definition = Definition {
            server: server.to_owned(),
            description: text("description"),
            schema: schema
                .ok_or_else(|| format!("the tool {name:?} has no inputSchema"))?
                .to_string(),
            annotations: tool
                .get("annotations")
                .filter(|hints| !hints.is_null())
                .map(Value::to_string),
            tool: name,
        };
        let is_readable = |text: &str| Raw::parse(text).is_ok();
        if !is_readable(&definition.schema)
            || !definition.annotations.as_deref().is_none_or(is_readable)
        {
            return Err(format!(
                "the tool {:?} has a definition that nests too deep",
                definition.tool
            ));
        }
        Ok(definition)
    }

    /// The digest of all that a person has to have seen: the server, the tool, the description, the
    /// schema and the annotations.
    pub fn hash(&self) -> Hash {
        let json = |text: &str| Raw::parse(text).map(canonical).unwrap_or_default();
        // A missing text and an empty one differ.
        let optional =
            |text: Option<String>| text.map(|text| format!("={text}")).unwrap_or_default();
        digest([
            self.server.as_bytes(),
            self.tool.as_bytes(),
            optional(self.description.clone()).as_bytes(),
            json(&self.schema).as_bytes(),
            optional(self.annotations.as_deref().map(json)).as_bytes(),
        ])
    }

    /// The entry of a list of tools, under the name `name`.
    pub fn entry(&self, name: &str) -> ToolEntry {
        ToolEntry {
            name: name.to_owned(),
            description: self.description.clone(),
            parameters: Some(self.schema.clone()),
            strict: None,
            text: self.to_json().to_string(),
        }
    }

    /// The members of the definition, as MCP names them.
    pub fn to_json(&self) -> Value {
        let mut all = serde_json::Map::new();
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        all.insert("name".to_owned(), self.tool.clone().into());
        if let Some(description) = &self.description {
            all.insert("description".to_owned(), description.clone().into());
        }
        all.insert("inputSchema".to_owned(), json(&self.schema));
        if let Some(annotations) = &self.annotations {
            all.insert("annotations".to_owned(), json(annotations));
        }
        all.into()
    }

    /// Whether a person who reads the definition on a screen would miss a part of it; see
    /// [`hidden`].
    pub fn has_hidden(&self) -> bool {
        let json = |text: &str| {
            serde_json::from_str::<Value>(text).is_ok_and(|value| any_text(&value, &hidden))
        };
        hidden(&self.tool)
            || self.description.as_deref().is_some_and(hidden)
            || json(&self.schema)
            || self.annotations.as_deref().is_some_and(json)
    }
}

/// Whether a text has characters that a screen does not show: control characters, marks that
/// reverse or hide text, characters with an empty picture, and Unicode's tag characters (U+E0000),
/// in which words for a machine can be written that no person sees.
pub fn hidden(text: &str) -> bool {
    text.chars()
        .any(|c| (event::is_hidden(c) || is_blank(c)) && c != '\r')
}

/// Whether any text in the value, or any key, is one that `test` returns true for.
fn any_text(value: &Value, test: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => test(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, test)),
        Value::Object(members) => members
            .iter()
            .any(|(key, member)| test(key) || any_text(member, test)),
        _ => false,
    }
}

// The names under which the tools of servers are offered to a model.

/// The longest name that every provider accepts
/// (<https://platform.openai.com/docs/api-reference/chat/create>).
const LONGEST: usize = 64;

/// How many digits of a digest a name ends with that could not stay as it is.
const DIGITS: usize = 8;

/// The name of a tool of a server: `server__tool`.
///
/// Providers accept at most 64 of `A-Z a-z 0-9 _ -`. Where the plain name has other characters or
/// is longer, `_` replaces those characters, the name is cut, and it ends with `_` and eight digits
/// of a digest of both names. The same is done where the server's name has `__` in it or ends with
/// `_`, since another server and another tool could then have the same plain name.
pub fn offered_name(server: &str, tool: &str) -> String {
    let plain = format!("{server}__{tool}");
    let is_accepted = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_ambiguous =
        server.contains("__") || server.ends_with('_') || server.is_empty() || tool.is_empty();
    if plain.len() <= LONGEST && plain.chars().all(is_accepted) && !is_ambiguous {
        return plain;
    }
    let kept = plain
        .chars()
        .map(|c| if is_accepted(c) { c } else { '_' })
        .take(LONGEST - DIGITS - 1);
    let hash = hex(&digest([server.as_bytes(), tool.as_bytes()]));
    kept.chain(['_']).chain(hash.chars().take(DIGITS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(value: Value) -> Definition {
        Definition::read("s", &value).unwrap()
    }

    #[test]
    fn every_part_counts_for_the_digest_and_the_order_of_keys_does_not() {
        let one = tool(
            json!({"name":"a","description":"d","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":true}}),
        );
        let same = tool(
            json!({"annotations":{"readOnlyHint":true},"inputSchema":{"x":1,"type":"object"},"description":"d","name":"a","icons":[]}),
        );
        assert_eq!(one.hash(), same.hash());
        for other in [
            json!({"name":"b","description":"d","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":true}}),
            json!({"name":"a","description":"e","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":true}}),
            json!({"name":"a","description":"d","inputSchema":{"type":"object","x":2},"annotations":{"readOnlyHint":true}}),
            json!({"name":"a","description":"d","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":false}}),
            json!({"name":"a","description":"d","inputSchema":{"type":"object","x":1}}),
            json!({"name":"a","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":true}}),
        ] {
            assert_ne!(one.hash(), tool(other.clone()).hash(), "{other}");
        }
        assert_ne!(
            one.hash(),
            Definition {
                server: "t".to_owned(),
                ..one.clone()
            }
            .hash()
        );
        assert_ne!(
            tool(json!({"name":"a","description":"","inputSchema":{}})).hash(),
            tool(json!({"name":"a","inputSchema":{}})).hash()
        );
        assert_eq!(tool(one.to_json()), one);
    }

    #[test]
    fn hidden_characters_are_found_wherever_they_are() {
        for value in [
            json!({"name":"a","description":"x\u{e0041}","inputSchema":{}}),
            json!({"name":"a\u{202e}","inputSchema":{}}),
            json!({"name":"a","inputSchema":{"properties":{"p\u{200b}":{}}}}),
            json!({"name":"a","inputSchema":{"title":["\u{1b}[2J"]}}),
            json!({"name":"a","inputSchema":{},"annotations":{"title":"\u{2066}"}}),
            json!({"name":"a","description":"x\u{2800}\u{2800}y","inputSchema":{}}),
        ] {
            assert!(tool(value.clone()).has_hidden(), "{value}");
        }
        assert!(
            !tool(json!({"name":"a","description":"é\r\n\t👨\u{200d}👩","inputSchema":{}}))
                .has_hidden()
        );
    }

    #[test]
    fn what_is_no_tool_is_refused() {
        for value in [
            json!({}),
            json!({"name":"","inputSchema":{}}),
            json!({"name":"a"}),
            json!({"name":"a","inputSchema":[]}),
        ] {
            assert!(Definition::read("s", &value).is_err(), "{value}");
        }
    }
}

#[cfg(test)]
mod name_tests {
    use super::*;

    #[test]
    fn names_are_accepted_by_every_provider_and_differ() {
        assert_eq!(offered_name("git", "log"), "git__log");
        assert_eq!(offered_name("a", "_b"), "a___b");
        let pairs = [
            ("a", "b__c"),
            ("a__b", "c"),
            ("a_", "b"),
            ("a", "_b"),
            ("My Server", "über.tool/x"),
            ("My_Server", "über.tool/x"),
            ("git", &*"x".repeat(200)),
            ("git", &*"x".repeat(201)),
            ("", "x"),
            ("x", ""),
        ];
        let names: std::collections::HashSet<_> = pairs
            .iter()
            .map(|(server, tool)| offered_name(server, tool))
            .collect();
        assert_eq!(names.len(), pairs.len(), "{names:?}");
        for name in &names {
            assert!(
                name.len() <= 64 && json::is_name(name) && !name.contains('.'),
                "{name}"
            );
        }
        assert_eq!(offered_name("a.b", "c"), offered_name("a.b", "c"));
    }
}
