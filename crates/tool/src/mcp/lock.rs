//! The lock file: the MCP tools as a person accepted them.

use super::definition::Definition;
use crate::canonical::hex;
use crate::visible::visible_text;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The version of the lock file's format.
pub const LOCK_VERSION: u64 = 1;

/// The accepted tools of all servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// The servers, in file order.
    pub servers: Vec<LockedServer>,
}

/// The accepted tools of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedServer {
    /// The server's name in the tools file.
    pub name: String,
    /// The tools, in the order in which the server listed them.
    pub tools: Vec<Definition>,
}

/// The JSON structure of the lock file.
#[derive(Deserialize)]
struct LockForm {
    version: u64,
    /// The servers in file order, each a [`ServerForm`].
    servers: Map<String, Value>,
}

/// The JSON structure of a server: its tools, each a [`Definition`] with its digest.
#[derive(Deserialize)]
struct ServerForm {
    tools: Vec<Value>,
}

/// Why a lock file cannot be used. The caller prefixes the message with the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// The file does not have the format of a lock file.
    #[error("not a lock file of this version ({0}), write it anew with --update-lock")]
    Form(String),
    /// A digest does not match its definition.
    #[error(
        "the tool {1:?} of the server {0:?} was edited in the lock file, write the file anew with --update-lock"
    )]
    Edited(String, String),
}

impl Lock {
    /// Parses the text of a lock file.
    ///
    /// # Errors
    /// Returns a [`LockError`].
    pub fn read(text: &str) -> Result<Lock, LockError> {
        json::check(text).map_err(|e| LockError::Form(e.to_string()))?;
        let form = |e: serde_json::Error| LockError::Form(e.to_string());
        let file: LockForm = serde_json::from_str(text).map_err(form)?;
        if file.version != LOCK_VERSION {
            return Err(LockError::Form("its version is not 1".to_owned()));
        }
        let mut lock = Lock::default();
        for (name, server) in file.servers {
            let mut tools = Vec::new();
            for tool in ServerForm::deserialize(server).map_err(form)?.tools {
                let definition = Definition::read(&name, &tool).map_err(LockError::Form)?;
                if tool["sha256"] != hex(&definition.hash()) {
                    return Err(LockError::Edited(name, definition.tool));
                }
                tools.push(definition);
            }
            lock.servers.push(LockedServer { name, tools });
        }
        Ok(lock)
    }

    /// Returns the text of the lock file. Characters that a screen does not show are escaped.
    pub fn text(&self) -> String {
        let mut servers = Map::new();
        for server in &self.servers {
            let tool = |definition: &Definition| {
                let mut tool = definition.to_json();
                tool["sha256"] = hex(&definition.hash()).into();
                tool
            };
            let tools: Vec<Value> = server.tools.iter().map(tool).collect();
            servers.insert(server.name.clone(), json!({ "tools": tools }));
        }
        let root = json!({"version": LOCK_VERSION, "servers": servers});
        let text = serde_json::to_string_pretty(&root).unwrap_or_default();
        event::safe_json(&text).into_owned() + "\n"
    }

    /// Returns the server with this name, or `None` if the file does not list it.
    pub fn server(&self, name: &str) -> Option<&LockedServer> {
        self.servers.iter().find(|server| server.name == name)
    }
}

// Changes to a server's tools since they were locked, described for people.

/// A difference between a server's current tools and the lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "there are few at a time")]
pub enum Change {
    /// The server offers the tool, but the lock file does not list it.
    New(Definition),
    /// The lock file lists the tool, but the server no longer offers it.
    Removed(Definition),
    /// The tool's definition changed.
    Changed {
        /// The locked definition.
        old: Definition,
        /// The server's current definition.
        new: Definition,
    },
}

/// Returns the differences between the locked tools and the tools that the server offers now.
pub fn differences(locked: &[Definition], now: &[Definition]) -> Vec<Change> {
    let find = |list: &[Definition], tool: &str| list.iter().find(|d| d.tool == tool).cloned();
    let mut changes = Vec::new();
    for new in now {
        match find(locked, &new.tool) {
            None => changes.push(Change::New(new.clone())),
            Some(old) if old.hash() != new.hash() => changes.push(Change::Changed {
                old,
                new: new.clone(),
            }),
            Some(_) => {}
        }
    }
    changes.extend(
        locked
            .iter()
            .filter(|old| find(now, &old.tool).is_none())
            .cloned()
            .map(Change::Removed),
    );
    changes
}

impl Change {
    /// Returns the change as lines for people: old text after `-`, new text after `+`. No line
    /// contains a character that a screen does not show.
    pub fn lines(&self) -> Vec<String> {
        let (sign, of) = match self {
            Change::New(of) => ("new", of),
            Change::Removed(of) => ("removed", of),
            Change::Changed { new, .. } => ("changed", new),
        };
        let mut lines = vec![format!(
            "{sign}: the tool {} of the server {}",
            visible_text(&of.tool),
            visible_text(&of.server)
        )];
        let empty = Definition {
            description: None,
            schema: Value::Null,
            annotations: None,
            ..of.clone()
        };
        let (old, new) = match self {
            Change::New(new) => (&empty, new),
            Change::Removed(_) => return lines,
            Change::Changed { old, new } => (old, new),
        };
        let description = |of: &Definition| of.description.clone().unwrap_or_default();
        // Show each part of a new tool as one line, but only the differing lines of a changed tool.
        let is_new = matches!(self, Change::New(_));
        let shown = |part: Option<&Value>| match part {
            None | Some(Value::Null) => String::new(),
            Some(part) if is_new => part.to_string(),
            Some(part) => serde_json::to_string_pretty(part).unwrap_or_default(),
        };
        for (what, old, new) in [
            ("description", description(old), description(new)),
            (
                "inputSchema",
                shown(Some(&old.schema)),
                shown(Some(&new.schema)),
            ),
            (
                "annotations",
                shown(old.annotations.as_ref()),
                shown(new.annotations.as_ref()),
            ),
        ] {
            if old != new {
                lines.push(format!("  {what}:"));
                push_difference(&mut lines, &old, &new);
            }
        }
        if new.has_hidden() {
            lines.push("  warning: it has invisible characters, written as \\u{…} here".to_owned());
        }
        lines
    }
}

/// Appends the lines of `old` and `new`, without their common first and last lines.
fn push_difference(out: &mut Vec<String>, old: &str, new: &str) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let begin = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[begin..]
        .iter()
        .rev()
        .zip(new[begin..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    for (sign, lines) in [('-', old), ('+', new)] {
        let differing = &lines[begin..lines.len() - end];
        let line = |line: &&str| format!("    {sign} {}", visible_text(line));
        out.extend(differing.iter().map(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let tool = |value: Value| Definition::read("git", &value).unwrap();
        let tools = vec![
            tool(
                json!({"name":"log","description":"d\u{e0041}\u{1b}","inputSchema":{"type":"object"},"annotations":{"title":"t"}}),
            ),
            tool(json!({"name":"diff","inputSchema":{}})),
        ];
        Lock {
            servers: vec![LockedServer {
                name: "git".to_owned(),
                tools,
            }],
        }
    }

    #[test]
    fn a_lock_reads_back_as_it_was_written() {
        let text = lock().text();
        assert_eq!(Lock::read(&text).unwrap(), lock());
        assert!(
            text.contains("\\udb40\\udc41\\u001b") && !text.contains('\u{e0041}'),
            "{text}"
        );
    }

    #[test]
    fn an_edited_or_foreign_file_is_refused() {
        let text = lock().text();
        let edited = Lock::read(&text.replace("\"title\": \"t\"", "\"title\": \"u\""))
            .unwrap_err()
            .to_string();
        assert!(
            edited.contains("\"log\" of the server \"git\" was edited"),
            "{edited}"
        );
        for text in [
            "",
            "[]",
            "{}",
            r#"{"version":2,"servers":{}}"#,
            r#"{"version":1,"servers":{"a":{}}}"#,
        ] {
            assert!(
                matches!(Lock::read(text), Err(LockError::Form(_))),
                "{text}"
            );
        }
        let twice = text.replacen("\"version\": 1", "\"version\": 1, \"version\": 1", 1);
        assert!(matches!(Lock::read(&twice), Err(LockError::Form(_))));
    }
}

#[cfg(test)]
mod difference_tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, description: &str, kind: &str) -> Definition {
        let schema =
            json!({"type":"object","properties":{"a":{"type":kind},"b":{"type":"string"}}});
        Definition::read(
            "s",
            &json!({"name":name,"description":description,"inputSchema":schema}),
        )
        .unwrap()
    }

    #[test]
    fn new_changed_and_removed_tools_are_shown_line_by_line() {
        let old = [
            tool("a", "one\ntwo\nthree", "string"),
            tool("b", "b", "string"),
            tool("same", "s", "string"),
        ];
        let new = [
            tool("a", "one\nTWO \u{e0041}\u{1b}[2J\nthree", "number"),
            tool("same", "s", "string"),
            tool("c", "new", "string"),
        ];
        let changes = differences(&old, &new);
        let lines: Vec<String> = changes.iter().flat_map(Change::lines).collect();
        let text = lines.join("\n");
        for want in [
            "changed: the tool a of the server s\n  description:\n    - two\n    + TWO \\u{e0041}\\u{1b}[2J\n",
            "    -       \"type\": \"string\"\n    +       \"type\": \"number\"\n",
            "  warning: it has invisible characters",
            "new: the tool c of the server s\n  description:\n    + new\n",
            "removed: the tool b of the server s",
        ] {
            assert!(text.contains(want), "{want}: {text}");
        }
        assert!(
            !text.contains("same") && !text.contains('\u{1b}') && !text.contains('\u{e0041}'),
            "{text}"
        );
        assert!(differences(&old, &old).is_empty());
    }
}
