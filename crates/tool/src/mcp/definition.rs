//! A tool's definition as its MCP server describes it.

use crate::canonical::{Hash, canonical, digest, hex};
use crate::visible::is_blank;
use event::Raw;
use json::ToolEntry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool's definition as its MCP server describes it. All of it is untrusted: the description and
/// the schema are passed to the model, and the annotations are hints that grant nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The server's name in the tools file.
    #[serde(skip)]
    pub server: String,
    /// The tool's name on the server.
    #[serde(rename = "name")]
    pub tool: String,
    /// The description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments, an object.
    #[serde(rename = "inputSchema")]
    pub schema: Value,
    /// The annotations that the server sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

impl Definition {
    /// Parses a tool from a `tools/list` reply or from a lock file.
    ///
    /// # Errors
    /// Returns what is wrong with the definition.
    pub fn read(server: &str, tool: &Value) -> Result<Definition, String> {
        let name = tool["name"].as_str().filter(|name| !name.is_empty());
        let name = name.ok_or("a tool without a name")?;
        let definition =
            Definition::deserialize(tool).map_err(|e| format!("the tool {name:?}: {e}"))?;
        if !definition.schema.is_object() {
            return Err(format!("the tool {name:?} has no inputSchema"));
        }
        let is_readable = |part: &Value| Raw::parse(&part.to_string()).is_ok();
        if !is_readable(&definition.schema) || !definition.annotations.iter().all(is_readable) {
            return Err(format!(
                "the tool {name:?} has a definition that nests too deep"
            ));
        }
        Ok(Definition {
            server: server.to_owned(),
            ..definition
        })
    }

    /// Returns the digest of everything that a person must review: the server, the tool, the
    /// description, the schema and the annotations.
    pub fn hash(&self) -> Hash {
        let json = |part: &Value| {
            Raw::parse(&part.to_string())
                .map(canonical)
                .unwrap_or_default()
        };
        // A missing text and an empty text must have different digests.
        let optional =
            |text: Option<String>| text.map(|text| format!("={text}")).unwrap_or_default();
        digest([
            self.server.as_bytes(),
            self.tool.as_bytes(),
            optional(self.description.clone()).as_bytes(),
            json(&self.schema).as_bytes(),
            optional(self.annotations.as_ref().map(json)).as_bytes(),
        ])
    }

    /// Returns the tool as an entry of a tool list, under the name `name`.
    pub fn entry(&self, name: &str) -> ToolEntry {
        ToolEntry {
            name: name.to_owned(),
            description: self.description.clone(),
            parameters: Some(self.schema.to_string()),
            strict: None,
            text: self.to_json().to_string(),
        }
    }

    /// Returns the definition as JSON, with MCP's member names.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Whether the definition contains characters that a person would not see on a screen; see
    /// [`hidden`].
    pub fn has_hidden(&self) -> bool {
        let has_hidden = |part: &Value| any_text(part, &hidden);
        hidden(&self.tool)
            || self.description.as_deref().is_some_and(hidden)
            || has_hidden(&self.schema)
            || self.annotations.as_ref().is_some_and(has_hidden)
    }
}

/// Whether a text contains characters that a screen does not show: control characters, characters
/// that reverse or hide text, blank characters, and Unicode's tag characters (U+E0000), which can
/// carry instructions for a model that no person sees.
pub fn hidden(text: &str) -> bool {
    text.chars()
        .any(|c| (event::is_hidden(c) || is_blank(c)) && c != '\r')
}

/// Whether `test` is true for any string or key in the value.
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

// The names under which MCP tools are offered to a model.

/// Maximum name length that every provider accepts
/// (<https://platform.openai.com/docs/api-reference/chat/create>).
const LONGEST: usize = 64;

/// The number of digest digits at the end of a name that had to be changed.
const DIGITS: usize = 8;

/// Returns the name under which a server's tool is offered: `server__tool`.
///
/// Providers accept at most 64 of the characters `A-Z a-z 0-9 _ -`. If the plain name is longer or
/// has other characters, they are replaced by `_`, the name is cut, and `_` and eight digits of a
/// digest of both names are appended. The digest is also appended if either name is empty, or if
/// the server's name contains `__` or ends with `_`: another server and tool could then have the
/// same plain name.
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
