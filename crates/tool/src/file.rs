//! The tools file: which tools there are, and how each is run.
//!
//! A JSON array of tools, or an object with that array as `tools`. Each tool is written as for OpenAI
//! (`{"type":"function","function":{"name","description","parameters"}}`, or the same without the inner `function`), as for Anthropic
//! (`input_schema`) or as in MCP (`inputSchema`), and may have an `exec` member.

use crate::definition::{Class, Exec, Limits, Tool};
use crate::unit::{bytes, time};
use crate::{argv::Template, canonical, is_name};
use event::Raw;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::rc::Rc;

/// What is wrong with a tools file: one line that names the tool and the remedy. The name of the file stands before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file as a whole.
    #[error("{0}")]
    File(String),
    /// One tool: its place (from 1), its name as far as known, and what is wrong.
    #[error("tool {0}{name}: {2}", name = .1.as_ref().map(|n| format!(" ({n:?})")).unwrap_or_default())]
    Tool(usize, Option<String>, String),
}

/// The tools of a file, in its order.
#[derive(Debug, Default)]
pub struct Tools {
    list: Vec<Rc<Tool>>,
    by_name: HashMap<String, usize>,
    /// Tools that a provider runs itself, such as its web search: handed on in the list and nothing else.
    provider: Vec<String>,
}

/// The members of `exec`.
const EXEC: [&str; 11] =
    ["command", "class", "timeout", "cache", "env", "return_directly", "cwd", "max_output", "limits", "http", "mcp"];

impl Tools {
    /// Reads the text of a tools file.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn read(text: &str) -> Result<Self, FileError> {
        let fail = |what: String| Err(FileError::File(what));
        let entries: Vec<Value> = match parse(text)? {
            Value::Array(entries) => entries,
            Value::Object(mut file) if file.contains_key("mcpServers") => {
                let name =
                    file.remove("mcpServers").and_then(|s| Some(format!(" ({:?})", s.as_object()?.keys().next()?)));
                return fail(format!(
                    "mcpServers{} is not supported by this version, list commands under tools",
                    name.unwrap_or_default()
                ));
            }
            Value::Object(mut file) => match file.remove("tools") {
                Some(Value::Array(entries)) => entries,
                _ => {
                    return fail(
                        "an object without an array of tools, write {\"tools\":[…]} or the array alone".to_owned(),
                    );
                }
            },
            _ => {
                return fail(
                    "neither an array of tools nor an object with one, write [{\"type\":\"function\",…}]".to_owned(),
                );
            }
        };
        let mut tools = Tools::default();
        for (n, entry) in entries.into_iter().enumerate() {
            if is_provider_tool(&entry) {
                tools.provider.push(entry.to_string());
                continue;
            }
            let (name, tool) = read_tool(entry);
            let tool = tool.map_err(|what| FileError::Tool(n + 1, name.clone(), what))?;
            if tools.by_name.insert(tool.name.clone(), tools.list.len()).is_some() {
                return Err(FileError::Tool(n + 1, name, "another tool has this name, rename one of them".to_owned()));
            }
            tools.list.push(Rc::new(tool));
        }
        Ok(tools)
    }

    /// The tool of that very name.
    pub fn get(&self, name: &str) -> Option<&Rc<Tool>> {
        self.by_name.get(name).map(|n| &self.list[*n])
    }

    /// All tools, in the file's order.
    pub fn iter(&self) -> std::slice::Iter<'_, Rc<Tool>> {
        self.list.iter()
    }

    /// The list for a request, as a JSON array in OpenAI's shape: the tools that `offered` says yes to, without their `exec`, and
    /// then what the provider runs itself.
    pub fn list(&self, offered: impl Fn(&Tool) -> bool) -> String {
        let mut out = Vec::new();
        let mut list = event::Array::open(&mut out);
        self.list.iter().filter(|tool| offered(tool)).for_each(|tool| {
            list.raw(&tool.listed);
        });
        self.provider.iter().for_each(|tool| {
            list.raw(tool);
        });
        list.close();
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Whether an entry is a tool that the provider runs itself: it has a type of its own, and no command.
fn is_provider_tool(entry: &Value) -> bool {
    let kind = entry.get("type").and_then(Value::as_str).unwrap_or("function");
    !matches!(kind, "function" | "custom") && entry.get("exec").is_none()
}

/// Text into a value, strictly: what two parsers could read differently is no tools file.
fn parse(text: &str) -> Result<Value, FileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value =
        serde_json::from_str(text).map_err(|e| FileError::File(format!("not JSON: {e}, mend it there")))?;
    json::check(text).map_err(|e| FileError::File(format!("{e}, mend it there")))?;
    Ok(value)
}

/// One entry: its name, as far as it has one, and the tool.
fn read_tool(entry: Value) -> (Option<String>, Result<Tool, String>) {
    let hash = Raw::parse(&entry.to_string()).map(|raw| canonical::digest([canonical::canonical(raw).as_bytes()]));
    let Value::Object(mut entry) = entry else {
        return (None, Err("not an object, write {\"name\":…,\"parameters\":…,\"exec\":…}".to_owned()));
    };
    let mut function = match entry.remove("function") {
        Some(Value::Object(function)) => function,
        Some(_) => return (None, Err("function is not an object".to_owned())),
        None => std::mem::take(&mut entry),
    };
    let name = match function.remove("name") {
        Some(Value::String(name)) => name,
        _ => return (None, Err("it has no name, add \"name\"".to_owned())),
    };
    let tool = (|| {
        if !is_name(&name) {
            return Err("the name must be 1 to 128 of A-Z a-z 0-9 _ . -, rename it".to_owned());
        }
        let parameters = parameters(&mut function)?;
        let schema = json::Schema::new(&parameters.to_string()).map_err(|e| format!("parameters: {e}"))?;
        // A key is declared if arguments that hold nothing else would be let in.
        let declared = |key: &str| {
            let one = format!("{{{}:0}}", event::quoted(key));
            Raw::parse(&one).is_ok_and(|one| schema.undeclared(one).is_none())
        };
        let exec = match (entry.remove("exec"), function.remove("exec")) {
            (Some(exec), None) | (None, Some(exec)) => Some(read_exec(exec, &declared)?),
            (None, None) => None,
            (Some(_), Some(_)) => return Err("exec stands twice, keep one".to_owned()),
        };
        let mut listed = Map::new();
        listed.insert("name".to_owned(), json!(name));
        if let Some(description) = function.remove("description") {
            listed.insert("description".to_owned(), description);
        }
        listed.insert("parameters".to_owned(), parameters.clone());
        if let Some(strict) = function.remove("strict") {
            listed.insert("strict".to_owned(), strict);
        }
        let listed = json!({"type": "function", "function": listed}).to_string();
        let hash = hash.map_err(|e| e.to_string())?;
        Ok(Tool { name: name.clone(), listed, parameters: parameters.to_string(), schema, exec, hash })
    })();
    (Some(name), tool)
}

/// The schema, under any of its three names; none at all means no arguments are described.
fn parameters(function: &mut Map<String, Value>) -> Result<Value, String> {
    let mut found: Option<Value> = None;
    for key in ["parameters", "input_schema", "inputSchema"] {
        match function.remove(key) {
            None | Some(Value::Null) => {}
            Some(schema @ Value::Object(_)) if found.is_none() => found = Some(schema),
            Some(Value::Object(_)) => {
                return Err("it has two schemas, keep one of parameters, input_schema, inputSchema".to_owned());
            }
            Some(_) => return Err(format!("{key} is not an object, write a JSON Schema there")),
        }
    }
    Ok(found.unwrap_or_else(|| json!({"type": "object", "properties": {}})))
}

fn read_exec(exec: Value, declared: &dyn Fn(&str) -> bool) -> Result<Exec, String> {
    let Value::Object(mut exec) = exec else {
        return Err("exec is not an object, write {\"command\":[…]}".to_owned());
    };
    if let Some(key) = exec.keys().find(|key| !EXEC.contains(&key.as_str())) {
        return Err(format!("exec.{key} is unknown, exec may have {}", EXEC[..9].join(", ")));
    }
    for key in ["http", "mcp"] {
        if exec.contains_key(key) {
            return Err(format!("exec.{key} is not supported by this version, use exec.command"));
        }
    }
    exec.retain(|_, value| !value.is_null());
    let command = match exec.remove("command") {
        Some(Value::Array(items)) => strings(items).ok_or("exec.command must hold strings only")?,
        Some(Value::String(_)) => {
            return Err(
                "exec.command is one string, write a list: [\"program\",\"argument\"] (there is no shell)".to_owned()
            );
        }
        _ => return Err("exec has no command, write \"command\":[\"program\",\"argument\"]".to_owned()),
    };
    let env = match exec.remove("env") {
        Some(Value::Array(names)) => strings(names).filter(|names| names.iter().all(|name| is_variable(name))),
        None => Some(Vec::new()),
        _ => None,
    };
    let class = match exec.remove("class") {
        Some(Value::String(word)) => Class::of(&word),
        None => Some(Class::default()),
        _ => None,
    };
    Ok(Exec {
        command: Template::read(&command, declared)?,
        class: class.ok_or("exec.class must be \"read\", \"write\" or \"danger\"")?,
        env: env.ok_or("exec.env must be a list of names of environment variables, such as [\"GITHUB_TOKEN\"]")?,
        timeout: take(&mut exec, "timeout", "a time above 0, such as \"30s\" or 30", time)?,
        cache: take(&mut exec, "cache", "a time to live above 0, such as \"10m\" or 600", time)?,
        return_directly: take(&mut exec, "return_directly", "true or false", Value::as_bool)?.unwrap_or(false),
        cwd: take(&mut exec, "cwd", "a folder", |v| v.as_str().filter(|s| !s.is_empty()).map(str::to_owned))?,
        max_output: take(&mut exec, "max_output", "a number of bytes, such as 65536 or \"64K\"", bytes)?
            .map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        limits: match exec.remove("limits") {
            None => Limits::default(),
            Some(Value::Object(limits)) => read_limits(limits)?,
            Some(_) => return Err("exec.limits must be an object, such as {\"memory\":\"1G\"}".to_owned()),
        },
    })
}

fn read_limits(mut limits: Map<String, Value>) -> Result<Limits, String> {
    let found = Limits {
        cpu: take(&mut limits, "cpu", "a time above 0, such as \"10s\"", time)?,
        memory: take(&mut limits, "memory", "a number of bytes, such as \"1G\"", bytes)?,
        files: take(&mut limits, "files", "a number above 0", |v| v.as_u64().filter(|n| *n > 0))?,
        processes: take(&mut limits, "processes", "a number above 0", |v| v.as_u64().filter(|n| *n > 0))?,
    };
    match limits.keys().next() {
        Some(key) => Err(format!("exec.limits.{key} is unknown, there are cpu, memory, files and processes")),
        None => Ok(found),
    }
}

/// Takes the member `key`, if it is there, as `read` understands it.
fn take<T>(
    exec: &mut Map<String, Value>,
    key: &str,
    wanted: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, String> {
    match exec.remove(key) {
        None => Ok(None),
        Some(value) => read(&value).map(Some).ok_or_else(|| format!("exec: {key} must be {wanted}, not {value}")),
    }
}

fn strings(items: Vec<Value>) -> Option<Vec<String>> {
    items.into_iter().map(|item| if let Value::String(text) = item { Some(text) } else { None }).collect()
}

/// The name of an environment variable that a tools file may let through. The one that holds the arguments is not for others.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name != "TOOL_ARGUMENTS"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn error(text: &str) -> String {
        Tools::read(text).unwrap_err().to_string()
    }

    #[test]
    fn every_spelling_lists_the_same() {
        let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
        let want =
            format!(r#"[{{"type":"function","function":{{"name":"w","description":"d","parameters":{schema}}}}}]"#);
        for entry in [
            format!(
                r#"{{"type":"function","function":{{"name":"w","description":"d","parameters":{schema}}},"exec":{{"command":["w"]}}}}"#
            ),
            format!(
                r#"{{"type":"function","name":"w","description":"d","parameters":{schema},"exec":{{"command":["w","{{city}}"]}}}}"#
            ),
            format!(r#"{{"name":"w","description":"d","input_schema":{schema},"exec":{{"command":["w"]}}}}"#),
            format!(
                r#"{{"name":"w","description":"d","inputSchema":{schema},"annotations":{{"readOnlyHint":true}},"exec":{{"command":["w"]}}}}"#
            ),
        ] {
            for text in [format!("[{entry}]"), format!("{{\"tools\":[{entry}]}}")] {
                let tools = Tools::read(&text).unwrap();
                assert_eq!(tools.list(|_| true), want);
                assert_eq!(
                    tools.get("w").unwrap().exec.as_ref().unwrap().class,
                    Class::Write,
                    "no annotation grants a class"
                );
                assert!(tools.get("W").is_none());
            }
        }
    }

    #[test]
    fn all_members_of_exec() {
        let tools = Tools::read(
            r#"[{"name":"a","exec":{"command":["x"],"class":"read","timeout":"1.5s","cache":600,"env":["A_TOKEN"],"return_directly":true,
            "cwd":"sub","max_output":"64K","limits":{"cpu":2,"memory":"1G","files":64,"processes":9}}},{"name":"b"},{"type":"web_search"}]"#,
        )
        .unwrap();
        let exec = tools.get("a").unwrap().exec.as_ref().unwrap();
        assert_eq!((exec.timeout, exec.cache), (Some(Duration::from_millis(1500)), Some(Duration::from_secs(600))));
        assert_eq!((exec.class, exec.return_directly, exec.max_output), (Class::Read, true, Some(65_536)));
        assert_eq!((exec.env.join(","), exec.cwd.as_deref()), ("A_TOKEN".to_owned(), Some("sub")));
        assert_eq!((exec.limits.memory, exec.limits.files), (Some(1 << 30), Some(64)));
        assert!(tools.get("b").unwrap().exec.is_none());
        assert!(tools.list(|tool| tool.name == "b").ends_with(r#"{"type":"web_search"}]"#));
    }

    #[test]
    fn mistakes_name_the_tool_and_the_remedy() {
        for (text, want) in [
            ("", "not JSON: EOF while parsing a value at line 1 column 0, mend it there"),
            ("7", "neither an array of tools"),
            ("{}", "write {\"tools\":[…]}"),
            (r#"{"mcpServers":{"git":{}}}"#, r#"mcpServers ("git") is not supported by this version"#),
            ("[1]", "tool 1: not an object"),
            (r#"[{"type":"function","function":{}}]"#, "tool 1: it has no name"),
            (r#"[{"name":"../x"}]"#, r#"tool 1 ("../x"): the name must be 1 to 128"#),
            (r#"[{"name":"a"},{"name":"a"}]"#, r#"tool 2 ("a"): another tool has this name"#),
            (r#"[{"name":"a","name":"b"}]"#, "stands twice"),
            (
                r#"[{"name":"a","parameters":{"type":"objekt"}}]"#,
                r#"tool 1 ("a"): parameters: the schema is not valid"#,
            ),
            (r#"[{"name":"a","parameters":[]}]"#, "parameters is not an object"),
            (r#"[{"name":"a","exec":{}}]"#, "exec has no command"),
            (r#"[{"name":"a","exec":{"command":"ls -l"}}]"#, "there is no shell"),
            (r#"[{"name":"a","exec":{"command":["ls",1]}}]"#, "strings only"),
            (r#"[{"name":"a","exec":{"command":["ls","{x}"]}}]"#, "{x} in the command is no declared argument"),
            (
                r#"[{"name":"a","exec":{"command":["ls"],"timout":1}}]"#,
                "exec.timout is unknown, exec may have command, class, timeout",
            ),
            (
                r#"[{"name":"a","exec":{"http":{"url":"x"}}}]"#,
                "exec.http is not supported by this version, use exec.command",
            ),
            (r#"[{"name":"a","exec":{"command":["ls"],"timeout":0}}]"#, "timeout must be a time above 0"),
            (r#"[{"name":"a","exec":{"command":["ls"],"class":"safe"}}]"#, "\"read\", \"write\" or \"danger\""),
            (r#"[{"name":"a","exec":{"command":["ls"],"env":["A=b"]}}]"#, "names of environment variables"),
            (r#"[{"name":"a","exec":{"command":["ls"],"limits":{"cores":1}}}]"#, "exec.limits.cores is unknown"),
        ] {
            let said = error(text);
            assert!(said.contains(want) && !said.contains('\n'), "{text}: {said}");
        }
    }

    #[test]
    fn any_change_of_a_definition_changes_its_hash() {
        let hash = |text: &str| Tools::read(text).unwrap().iter().next().unwrap().hash;
        let a = hash(r#"[{"name":"a","exec":{"command":["ls"]}}]"#);
        assert_eq!(a, hash(r#"[ {"exec":{"command":["ls"]}, "name":"a"} ]"#));
        assert_ne!(a, hash(r#"[{"name":"a","exec":{"command":["ls","-l"]}}]"#));
    }
}
