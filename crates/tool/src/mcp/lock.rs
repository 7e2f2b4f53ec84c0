//! The lock file: the tools of servers as a person has accepted them.

use super::definition::Definition;
use crate::canonical::hex;
use serde_json::{Map, Value, json};

/// The version of the file's form.
pub const LOCK_VERSION: u64 = 1;

/// The tools that were accepted, server by server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// The servers, in the file's order.
    pub servers: Vec<LockedServer>,
}

/// The tools of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedServer {
    /// Its name in the tools file.
    pub name: String,
    /// Its tools, in the order in which the server listed them.
    pub tools: Vec<Definition>,
}

/// Why a lock file cannot be used. The caller puts the name of the file before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// It does not have the form of a lock file.
    #[error("not a lock file of this version ({0}), write it anew with --update-lock")]
    Form(String),
    /// A digest does not belong to its definition.
    #[error(
        "the tool {1:?} of the server {0:?} was edited in the lock file, write the file anew with --update-lock"
    )]
    Edited(String, String),
}

impl Lock {
    /// Reads the text of a lock file.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn read(text: &str) -> Result<Lock, LockError> {
        json::check(text).map_err(|e| LockError::Form(e.to_string()))?;
        let form = |what: &str| LockError::Form(what.to_owned());
        let root: Value = serde_json::from_str(text).map_err(|e| LockError::Form(e.to_string()))?;
        if root.get("version").and_then(Value::as_u64) != Some(LOCK_VERSION) {
            return Err(form("its version is not 1"));
        }
        let servers = root
            .get("servers")
            .and_then(Value::as_object)
            .ok_or_else(|| form("it has no servers"))?;
        let mut lock = Lock::default();
        for (name, server) in servers {
            let tools = server
                .get("tools")
                .and_then(Value::as_array)
                .ok_or_else(|| form("a server has no tools"))?;
            let mut locked = LockedServer {
                name: name.clone(),
                tools: Vec::new(),
            };
            for tool in tools {
                let definition = Definition::read(name, tool).map_err(LockError::Form)?;
                if tool.get("sha256").and_then(Value::as_str) != Some(&hex(&definition.hash())) {
                    return Err(LockError::Edited(name.clone(), definition.tool));
                }
                locked.tools.push(definition);
            }
            lock.servers.push(locked);
        }
        Ok(lock)
    }

    /// The text of the file. Characters that no screen shows are escaped.
    pub fn text(&self) -> String {
        let mut servers = Map::new();
        for server in &self.servers {
            let tool = |definition: &Definition| {
                let mut tool = definition.to_json();
                if let Some(members) = tool.as_object_mut() {
                    members.insert("sha256".to_owned(), hex(&definition.hash()).into());
                }
                tool
            };
            let tools: Vec<Value> = server.tools.iter().map(tool).collect();
            servers.insert(server.name.clone(), json!({ "tools": tools }));
        }
        let root = json!({"version": LOCK_VERSION, "servers": servers});
        let text = serde_json::to_string_pretty(&root).unwrap_or_default();
        event::safe_json(&text).into_owned() + "\n"
    }

    /// The server of this name.
    pub fn server(&self, name: &str) -> Option<&LockedServer> {
        self.servers.iter().find(|server| server.name == name)
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
