//! The tools file: a list of tools, and how to run each of them.
//!
//! The file may be any list that [`json::ToolList`] parses. Each entry may have a member `exec`.

use super::canonical::Hash;
use super::exec::{CommandRun, Exec, McpRun, RunnerKind};
use super::mcp::{Definition, McpServer, Servers};
use super::{canonical, exec, mcp};
use event::Raw;
use json::{Schema, ToolEntry, ToolFault, ToolList, ToolPlace, ToolsError};
use std::collections::HashMap;
use std::rc::Rc;

/// A mistake in a tools file, as one line with the way to fix it. The caller prefixes the message
/// with the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The text is not a valid list of tools.
    #[error(transparent)]
    List(#[from] ToolsError),
    /// The `exec` of one tool is invalid.
    #[error("{0}: {1}")]
    Exec(ToolPlace, String),
    /// `mcpServers` is invalid.
    #[error("{0}")]
    Servers(String),
}

impl FileError {
    /// Whether the mistake is that an object has neither a list of tools nor `mcpServers`.
    pub fn is_no_list(&self) -> bool {
        matches!(self, FileError::List(ToolsError::NoArray))
    }

    /// Whether the mistake is that two tools have the same name.
    pub fn is_taken_name(&self) -> bool {
        matches!(self, FileError::List(ToolsError::Tool(_, ToolFault::Twice)))
    }
}

/// One tool.
#[derive(Debug)]
pub struct Tool {
    /// The name of the tool; see [`json::is_name`].
    pub name: String,
    /// The schema of the parameters, as one line of JSON.
    pub parameters: String,
    /// The compiled schema.
    pub schema: Schema,
    /// How the tool is run, or `None` if its calls cannot be run here and so fail.
    pub exec: Option<Exec>,
    /// The digest of the whole definition. It ties a cached result to the exact tool that produced
    /// it.
    pub hash: Hash,
}

/// The tools of a file, in file order.
#[derive(Debug, Default)]
pub struct Tools {
    listed: ToolList,
    tools: Vec<Rc<Tool>>,
    by_name: HashMap<String, usize>,
}

impl Tools {
    /// Parses the text of a tools file.
    ///
    /// # Errors
    /// Returns the first mistake.
    pub fn read(text: &str) -> Result<Self, FileError> {
        Tools::of_list(ToolList::read(text)?)
    }

    /// Like [`Tools::read`], for a caller that starts the servers of `mcpServers`. The servers'
    /// tools are added with [`Tools::add`].
    ///
    /// # Errors
    /// Returns the first mistake.
    pub fn read_beside_servers(text: &str) -> Result<(Self, Servers), FileError> {
        let (list, servers) = ToolList::read_beside_servers(text)?;
        let servers = servers
            .map(|text| Servers::read(&text))
            .transpose()
            .map_err(FileError::Servers)?;
        Ok((Tools::of_list(list)?, servers.unwrap_or_default()))
    }

    /// Whether [`Tools::read_beside_servers`] would find tools or servers in a text, whether or not
    /// they are valid.
    pub fn are_in(text: &str) -> bool {
        ToolList::is_in(text)
    }

    fn of_list(listed: ToolList) -> Result<Self, FileError> {
        let mut tools = Tools {
            listed,
            ..Tools::default()
        };
        for (number, entry) in (1..).zip(tools.listed.iter()) {
            let place = ToolPlace {
                number,
                name: Some(entry.name.clone()),
            };
            let tool = Tool::read(entry, place)?;
            tools.by_name.insert(tool.name.clone(), tools.tools.len());
            tools.tools.push(Rc::new(tool));
        }
        Ok(tools)
    }

    /// Replaces the working folder of each command with the one that `settle` returns for it. Must
    /// be called before the tools are shared.
    ///
    /// # Errors
    /// Returns the first error of `settle`, with the name of its tool.
    pub fn settle_folders(
        &mut self,
        settle: impl Fn(&str) -> Result<String, String>,
    ) -> Result<(), FileError> {
        for (number, tool) in (1..).zip(&mut self.tools) {
            let Some(tool) = Rc::get_mut(tool) else {
                continue;
            };
            let place = ToolPlace {
                number,
                name: Some(tool.name.clone()),
            };
            if let Some(Exec {
                run: RunnerKind::Command(CommandRun { cwd: Some(cwd), .. }),
                ..
            }) = &mut tool.exec
            {
                *cwd = settle(cwd).map_err(|e| FileError::Exec(place, format!("exec.cwd: {e}")))?;
            }
        }
        Ok(())
    }

    /// Appends a tool of a server.
    ///
    /// # Errors
    /// Returns an error if another tool has the same name or if the schema cannot be used.
    pub fn add(&mut self, definition: &Definition, server: &McpServer) -> Result<(), FileError> {
        let entry = definition.entry(&mcp::offered_name(&definition.server, &definition.tool));
        let place = ToolPlace {
            number: self.tools.len() + 1,
            name: Some(entry.name.clone()),
        };
        let mut tool = Tool::read(&entry, place)?;
        tool.exec = Some(Exec {
            run: RunnerKind::Mcp(McpRun {
                server: definition.server.clone(),
                tool: definition.tool.clone(),
                definition: definition.hash(),
                cwd: server.cwd().map(str::to_owned),
            }),
            class: server.class.of(&definition.tool),
            timeout: server.timeout,
            cache: None,
            return_directly: false,
            max_output: None,
            max_result: None,
        });
        tool.hash = definition.hash();
        self.listed.add(entry)?;
        self.by_name.insert(tool.name.clone(), self.tools.len());
        self.tools.push(Rc::new(tool));
        Ok(())
    }

    /// Returns the tool whose name is exactly `name`, or `None` if there is none.
    pub fn get(&self, name: &str) -> Option<&Rc<Tool>> {
        self.by_name.get(name).map(|n| &self.tools[*n])
    }

    /// Returns all tools, in file order.
    pub fn iter(&self) -> std::slice::Iter<'_, Rc<Tool>> {
        self.tools.iter()
    }

    /// Returns the list for a request (see [`ToolList::openai`]): the tools for whose names
    /// `offered` is true, without their `exec`.
    pub fn list(&self, offered: impl Fn(&str) -> bool) -> String {
        self.listed.openai(|tool| offered(&tool.name))
    }
}

/// Whether a schema declares a key: it does if it accepts the key in an object without other
/// members.
fn declares(schema: &Schema, key: &str) -> bool {
    let one = format!("{{{}:0}}", event::quoted(key));
    Raw::parse(&one).is_ok_and(|one| schema.undeclared(one).is_none())
}

impl Tool {
    /// Whether the tool declares an argument named `key`.
    pub fn declares(&self, key: &str) -> bool {
        declares(&self.schema, key)
    }

    /// Parses the tool of the entry at `place`.
    ///
    /// # Errors
    /// Returns an error if the schema or `exec` is invalid.
    fn read(entry: &ToolEntry, place: ToolPlace) -> Result<Tool, FileError> {
        let wrong = |what: String| FileError::Exec(place.clone(), what);
        let whole = Raw::parse(&entry.text).map_err(|e| wrong(e.to_string()))?;
        let mut parameters = Vec::new();
        event::minify(
            &mut parameters,
            entry.parameters.as_deref().unwrap_or(json::NO_PARAMETERS),
        );
        let parameters = String::from_utf8(parameters).unwrap_or_default();
        let schema =
            Schema::new(&parameters).map_err(|e| ToolsError::Tool(place.clone(), e.into()))?;
        let declared = |key: &str| declares(&schema, key);
        // Next to `exec` they would silently have no effect.
        let function = whole.get("function");
        let beside = |name: &&&str| {
            whole.get(name).is_some() || function.is_some_and(|inner| inner.get(name).is_some())
        };
        if let Some(name) = exec::MEMBERS.iter().find(beside) {
            return Err(wrong(format!(
                "{name} belongs into exec, write \"exec\":{{\"{name}\":…}}"
            )));
        }
        let exec = match (whole.get("exec"), whole.at(&["function", "exec"])) {
            (Some(_), Some(_)) => return Err(wrong("it has exec twice, keep one".to_owned())),
            (exec, inner) => exec.or(inner),
        };
        let exec = exec.and_then(|exec| serde_json::from_str(exec.text()).ok());
        let exec = exec
            .map(|exec| Exec::read(exec, &declared))
            .transpose()
            .map_err(wrong)?;
        if let Some(exec) = &exec {
            exec.check_places(&|name| schema.always_has(name))
                .map_err(wrong)?;
        }
        let hash = canonical::digest([canonical::canonical(whole).as_bytes()]);
        Ok(Tool {
            name: entry.name.clone(),
            parameters,
            schema,
            exec,
            hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;
    use std::time::Duration;

    fn error(text: &str) -> String {
        Tools::read(text).unwrap_err().to_string()
    }

    #[test]
    fn every_spelling_lists_the_same() {
        let schema =
            r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
        let want = format!(
            r#"[{{"type":"function","function":{{"name":"w","description":"d","parameters":{schema}}}}}]"#
        );
        for entry in [
            format!(
                r#"{{"type":"function","function":{{"name":"w","description":"d","parameters":{schema}}},"exec":{{"command":["w"]}}}}"#
            ),
            format!(
                r#"{{"type":"function","name":"w","description":"d","parameters":{schema},"exec":{{"command":["w","{{city}}"]}}}}"#
            ),
            format!(
                r#"{{"name":"w","description":"d","input_schema":{schema},"exec":{{"command":["w"]}}}}"#
            ),
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
            "cwd":"sub","max_output":"64K","max_result":100,"limits":{"cpu":2,"memory":"1G","files":64,"processes":9}}},{"name":"b"},{"type":"web_search"}]"#,
        )
        .unwrap();
        let exec = tools.get("a").unwrap().exec.as_ref().unwrap();
        assert_eq!(
            (exec.timeout, exec.cache),
            (
                Some(Duration::from_millis(1500)),
                Some(Duration::from_secs(600))
            )
        );
        assert_eq!((exec.class, exec.return_directly), (Class::Read, true));
        assert_eq!(
            (exec.max_output, exec.max_result),
            (Some(65_536), Some(100))
        );
        let crate::RunnerKind::Command(run) = &exec.run else {
            panic!("not a command")
        };
        assert_eq!(
            (run.env.join(","), run.cwd.as_deref()),
            ("A_TOKEN".to_owned(), Some("sub"))
        );
        assert_eq!(
            (run.limits.memory, run.limits.files),
            (Some(1 << 30), Some(64))
        );
        assert!(tools.get("b").unwrap().exec.is_none());
        assert!(
            tools
                .list(|name| name == "b")
                .ends_with(r#"{"type":"web_search"}]"#)
        );
    }

    #[test]
    fn mistakes_name_the_tool_and_the_remedy() {
        for (text, want) in [
            (
                "",
                "not JSON: EOF while parsing a value at line 1 column 0, fix it there",
            ),
            ("7", "neither an array of tools"),
            ("{}", "write {\"tools\":[…]}"),
            (
                r#"{"mcpServers":{"git":{}}}"#,
                r#"mcpServers ("git") is for tool-exec alone"#,
            ),
            ("[1]", "tool 1: not an object"),
            (
                r#"[{"type":"function","function":{}}]"#,
                "tool 1: it has no name",
            ),
            (
                r#"[{"name":"../x"}]"#,
                r#"tool 1 ("../x"): the name must be 1 to 128"#,
            ),
            (
                r#"[{"name":"a"},{"name":"a"}]"#,
                r#"tool 2 ("a"): another tool has this name"#,
            ),
            (r#"[{"name":"a","name":"b"}]"#, "appears twice"),
            (
                r#"[{"name":"a","parameters":{"required":1}}]"#,
                r#"tool 1 ("a"): parameters: the schema is not valid"#,
            ),
            (
                r#"[{"name":"a","parameters":[]}]"#,
                "parameters is not an object",
            ),
            (r#"[{"name":"a","exec":{}}]"#, "exec has no command"),
            (
                r#"[{"name":"a","exec":{"command":"ls -l"}}]"#,
                "there is no shell",
            ),
            (
                r#"[{"name":"a","exec":{"command":["ls",1]}}]"#,
                "strings only",
            ),
            (
                r#"[{"name":"a","exec":{"command":["ls","{x}"]}}]"#,
                "{x} in the command is not a declared argument",
            ),
            (
                r#"[{"name":"a","parameters":{"properties":{"x":{"type":"string"},"y":{}},"required":["x","y"]},"exec":{"command":["cp","{x}","{y}","{x}"]}}]"#,
                "item 3 of the command has {y}, which may be missing, and item 4 would move to its place: list \"y\" under \"required\"",
            ),
            (
                r#"[{"name":"a","exec":{"command":["ls"],"timout":1}}]"#,
                "exec.timout is unknown, exec may have command, env, cwd, limits, sandbox, class, timeout",
            ),
            (
                r#"[{"name":"a","command":["ls"],"exec":{"class":"read"}}]"#,
                r#"tool 1 ("a"): command belongs into exec, write "exec":{"command":…}"#,
            ),
            (
                r#"[{"type":"function","function":{"name":"a","timeout":5},"exec":{"command":["ls"]}}]"#,
                "timeout belongs into exec",
            ),
            (
                r#"[{"name":"a","exec":{"http":{"url":"x"}}}]"#,
                "exec.http.url must begin with https:// or http://",
            ),
            (
                r#"[{"name":"a","exec":{"http":{"url":"https://h/"},"env":["A"]}}]"#,
                "exec.env is for a command and exec.http for a request, keep one of them",
            ),
            (
                r#"[{"name":"a","exec":{"command":["ls"],"timeout":0}}]"#,
                "timeout must be a time above 0",
            ),
            (
                r#"[{"name":"a","exec":{"command":["ls"],"class":"safe"}}]"#,
                "\"read\", \"write\" or \"danger\"",
            ),
            (
                r#"[{"name":"a","exec":{"command":["ls"],"env":["A=b"]}}]"#,
                "names of environment variables",
            ),
            (
                r#"[{"name":"a","exec":{"command":["ls"],"limits":{"cores":1}}}]"#,
                "exec.limits.cores is unknown",
            ),
        ] {
            let said = error(text);
            assert!(
                said.contains(want) && !said.contains('\n'),
                "{text}: {said}"
            );
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
