//! Several sources as one tools file.

use crate::folder_of;
use anyhow::bail;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::Path;
use tool::Tools;

/// The tools of sources, in their order.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    tools: Vec<Value>,
    servers: Map<String, Value>,
    /// The source of each name.
    names: HashMap<String, String>,
}

impl Merge {
    /// Adds the tools and the servers of the tools file at `path`. Its paths become absolute, since
    /// they begin in its own folder.
    ///
    /// # Errors
    /// The first mistake in it, or a name that another source has.
    pub(crate) fn add_file(&mut self, text: &str, path: &Path) -> anyhow::Result<()> {
        // Mistakes are named with their place in this file, and what two parsers read differently
        // is refused.
        Tools::read_beside_servers(text)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut root: Value = serde_json::from_str(text)?;
        let folder = folder_of(path);
        if let Some(Value::Object(servers)) = root.get_mut("mcpServers").map(Value::take) {
            for (name, mut server) in servers {
                absolute_server(&mut server, &folder);
                if self.servers.insert(name.clone(), server).is_some() {
                    bail!("another source has the server {name:?}, too, rename one of them");
                }
            }
        }
        let list = match root {
            Value::Array(list) => list,
            mut root => {
                let inner = root.pointer_mut("/result/tools").map(Value::take);
                let list = root.get_mut("tools").map(Value::take).or(inner);
                match list {
                    Some(Value::Array(list)) => list,
                    _ => Vec::new(),
                }
            }
        };
        let absolute = |mut entry: Value| {
            absolute_exec(&mut entry, &folder);
            entry
        };
        self.add(list.into_iter().map(absolute).collect(), path)
    }

    /// Adds entries of the source at `path`.
    ///
    /// # Errors
    /// A name that another source has.
    pub(crate) fn add(&mut self, entries: Vec<Value>, path: &Path) -> anyhow::Result<()> {
        let source = path.display().to_string();
        let text = Value::Array(entries.clone()).to_string();
        for tool in Tools::read(&text)?.iter() {
            if let Some(other) = self.names.insert(tool.name.clone(), source.clone()) {
                bail!(
                    "{other} has a tool {:?}, too; rename one of them, or leave one source out",
                    tool.name
                );
            }
        }
        self.tools.extend(entries);
        Ok(())
    }

    /// The text of the tools file.
    pub(crate) fn text(self) -> String {
        let mut root = Map::from_iter([("tools".to_owned(), Value::Array(self.tools))]);
        if !self.servers.is_empty() {
            root.insert("mcpServers".to_owned(), Value::Object(self.servers));
        }
        Value::Object(root).to_string()
    }
}

/// Makes a path absolute that begins in `folder`; `~` and places for arguments, which are refused
/// in paths, stay.
fn make_absolute(path: &mut Value, folder: &Path) {
    if let Value::String(text) = path
        && !text.is_empty()
        && !text.starts_with('~')
        && let Some(whole) = folder.join(&*text).to_str()
    {
        *text = whole.to_owned();
    }
}

/// Makes the paths of a command, its working folder and its sandbox absolute. A program without a
/// slash is looked up in `PATH`.
fn absolute_command(program: Option<&mut Value>, members: &mut Value, folder: &Path) {
    if let Some(program) =
        program.filter(|name| name.as_str().is_some_and(|name| name.contains('/')))
    {
        make_absolute(program, folder);
    }
    members
        .get_mut("cwd")
        .into_iter()
        .for_each(|cwd| make_absolute(cwd, folder));
    for list in ["read", "write"] {
        let paths = members.pointer_mut(&format!("/sandbox/{list}"));
        let paths = paths.and_then(Value::as_array_mut).into_iter().flatten();
        paths.for_each(|path| make_absolute(path, folder));
    }
}

/// Makes the paths of an entry of any shape absolute.
fn absolute_exec(entry: &mut Value, folder: &Path) {
    for place in ["/exec", "/function/exec"] {
        if let Some(exec) = entry.pointer_mut(place) {
            let mut program = exec.pointer("/command/0").cloned();
            absolute_command(program.as_mut(), exec, folder);
            if let (Some(place), Some(program)) = (exec.pointer_mut("/command/0"), program) {
                *place = program;
            }
        }
    }
    let declared = entry.get_mut("functionDeclarations");
    let declared = declared.and_then(Value::as_array_mut).into_iter().flatten();
    declared.for_each(|entry| absolute_exec(entry, folder));
}

fn absolute_server(server: &mut Value, folder: &Path) {
    let mut program = server.get("command").cloned();
    absolute_command(program.as_mut(), server, folder);
    if let (Some(place), Some(program)) = (server.get_mut("command"), program) {
        *place = program;
    }
}
