//! The configurations of other clients of MCP, as tools files: those of VS Code
//! (<https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>), Zed
//! (<https://zed.dev/docs/ai/mcp>) and opencode (<https://opencode.ai/docs/mcp-servers>), with the
//! comments and the last commas that these have, and that of Codex, which is TOML.

use anyhow::{Context, bail};
use serde_json::{Map, Value};
use std::borrow::Cow;
use tool::Tools;

/// A server of a configuration.
type Members = Map<String, Value>;

/// The member of a configuration that holds its servers, and how a server is written there.
struct Client {
    place: &'static [&'static str],
    server: fn(Members) -> anyhow::Result<Members>,
}

/// The longer places first: `mcp` is opencode's unless it has `servers`.
const CLIENTS: [Client; 4] = [
    Client {
        place: &["mcp", "servers"],
        server: Ok,
    },
    Client {
        place: &["servers"],
        server: Ok,
    },
    Client {
        place: &["context_servers"],
        server: of_zed,
    },
    Client {
        place: &["mcp"],
        server: of_opencode,
    },
];

/// The text of a tools file, or of another client's configuration, as that of a tools file.
///
/// # Errors
/// A server of another client that cannot be written so, with its name.
pub(crate) fn tools_file(text: &str) -> anyhow::Result<Cow<'_, str>> {
    // Nearly every file is one, and each command that has tools waits for this when it starts.
    if Tools::are_in(text) {
        return Ok(Cow::Borrowed(text));
    }
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    let start = text.strip_prefix('\u{feff}').unwrap_or(text);
    let plain = match is_json(start) {
        true => Cow::Borrowed(text),
        false => match without_comments(start) {
            plain if is_json(&plain) => Cow::Owned(plain),
            _ => match of_codex(start)? {
                Some(file) => return Ok(Cow::Owned(file)),
                None if is_yaml(start) => bail!(
                    "that is YAML, which is not read; write the servers as JSON, \
                     {{\"mcpServers\":{{\"NAME\":{{\"command\":\"…\"}}}}}}"
                ),
                None => return Ok(Cow::Borrowed(text)), // whose reader names the mistake
            },
        },
    };
    // What two parsers read differently is refused there, too.
    if !Tools::read_beside_servers(&plain).is_err_and(|e| e.is_no_list()) {
        return Ok(plain);
    }
    let root: Value = serde_json::from_str(plain.trim_start_matches('\u{feff}'))?;
    for client in CLIENTS {
        let pointer = format!("/{}", client.place.join("/"));
        let Some(Value::Object(servers)) = root.pointer(&pointer) else {
            continue;
        };
        let place = client.place.join(".");
        let mut out = Map::new();
        for (name, server) in servers {
            let Value::Object(server) = server else {
                bail!("{place}: {name:?}: it must be an object, such as {{\"command\":\"…\"}}");
            };
            let server = enabled(server.clone())
                .and_then(client.server)
                .with_context(|| format!("{place}: {name:?}"))?;
            out.insert(name.clone(), Value::Object(server));
        }
        let file = Map::from_iter([("mcpServers".to_owned(), Value::Object(out))]);
        return Ok(Cow::Owned(Value::Object(file).to_string()));
    }
    Ok(plain)
}

/// The configuration of Codex (<https://developers.openai.com/codex/mcp>), which is TOML, as a
/// tools file; `None` for what is not one.
fn of_codex(text: &str) -> anyhow::Result<Option<String>> {
    const PLACE: &str = "mcp_servers";
    if !text.contains(PLACE) {
        return Ok(None);
    }
    let is_table = |line: &str| {
        let name = line.trim_start().strip_prefix('[');
        name.is_some_and(|name| name.trim_start().starts_with(PLACE))
    };
    let mut root: Members = match toml::from_str(text) {
        Ok(root) => root,
        Err(e) if text.lines().any(is_table) => bail!("not TOML: {e}"),
        Err(_) => return Ok(None),
    };
    let Some(Value::Object(servers)) = root.remove(PLACE) else {
        return Ok(None);
    };
    let mut out = Map::new();
    for (name, server) in servers {
        let Value::Object(server) = server else {
            bail!("{PLACE}.{name}: it must be a table with a command or a url");
        };
        let server = enabled(server)
            .and_then(codex_server)
            .with_context(|| format!("{PLACE}.{name}"))?;
        out.insert(name, Value::Object(server));
    }
    let file = Map::from_iter([("mcpServers".to_owned(), Value::Object(out))]);
    Ok(Some(Value::Object(file).to_string()))
}

/// A server of Codex. Its values are texts, in which nothing is filled in; variables are named in
/// members of their own.
fn codex_server(mut server: Members) -> anyhow::Result<Members> {
    for (theirs, ours) in [("http_headers", "headers"), ("enabled_tools", "tools")] {
        if let Some(value) = server.remove(theirs) {
            server.insert(ours.to_owned(), value);
        }
    }
    for key in ["env", "headers"] {
        let values = server.get_mut(key).and_then(Value::as_object_mut);
        for (_, value) in values.into_iter().flatten() {
            if let Value::String(text) = value {
                *text = text.replace('$', "$$");
            }
        }
    }
    let mut variables = Vec::new();
    for name in take_list(&mut server, "env_vars")? {
        variables.push(("env", name.clone(), format!("${{{name}}}")));
    }
    if let Some(headers) = server.remove("env_http_headers") {
        let Value::Object(headers) = headers else {
            bail!("env_http_headers must be a table of names of variables");
        };
        for (header, name) in headers {
            let name = name.as_str().context("env_http_headers: not a text")?;
            variables.push(("headers", header, format!("${{{name}}}")));
        }
    }
    if let Some(name) = server.remove("bearer_token_env_var") {
        let name = name.as_str().context("bearer_token_env_var: not a text")?;
        let value = format!("Bearer ${{{name}}}");
        variables.push(("headers", "Authorization".to_owned(), value));
    }
    for (key, name, value) in variables {
        let members = server
            .entry(key)
            .or_insert_with(|| Value::Object(Map::new()));
        let members = members
            .as_object_mut()
            .with_context(|| format!("{key} must be a table"))?;
        members.insert(name, value.into());
    }
    if let Some(seconds) = server.remove("tool_timeout_sec") {
        server.insert("timeout".to_owned(), format!("{seconds}s").into());
    }
    if !take_list(&mut server, "disabled_tools")?.is_empty() {
        bail!("disabled_tools is not read, name those to offer in enabled_tools");
    }
    // What the wait for a start is, and whether Codex starts without the server.
    for key in ["startup_timeout_sec", "startup_timeout_ms", "required"] {
        server.remove(key);
    }
    Ok(server)
}

/// Removes a member that is a list of texts.
fn take_list(server: &mut Members, key: &str) -> anyhow::Result<Vec<String>> {
    let list = match server.remove(key) {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => bail!("{key} must be a list of texts"),
    };
    let text = |item: Value| Some(item.as_str()?.to_owned());
    let texts: Option<_> = list.into_iter().map(text).collect();
    texts.with_context(|| format!("{key} must be a list of texts"))
}

/// Whether a text that is not JSON begins as a mapping or a document of YAML, as the configuration
/// of Goose (<https://block.github.io/goose/docs/guides/config-files>) does.
fn is_yaml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        let key = line
            .split_once(": ")
            .map_or(line.strip_suffix(':'), |(key, _)| Some(key));
        let is_key = |key: &str| {
            let is_plain = |c: char| c.is_alphanumeric() || "_-.\"'".contains(c);
            !key.is_empty() && key.chars().all(is_plain)
        };
        line == "---" || line.starts_with("%YAML") || key.is_some_and(is_key)
    })
}

/// Whether a file has servers of tools.
pub(crate) fn has_servers(text: &str) -> bool {
    tools_file(text).is_ok_and(|text| text.contains("\"mcpServers\""))
}

/// A server whose `enabled` is the contrary of `disabled`.
fn enabled(mut server: Members) -> anyhow::Result<Members> {
    match server.remove("enabled") {
        None | Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => {
            server.insert("disabled".to_owned(), Value::Bool(true));
        }
        Some(_) => bail!("enabled must be true or false"),
    }
    Ok(server)
}

/// A server of Zed, whose command may be an object.
fn of_zed(mut server: Members) -> anyhow::Result<Members> {
    match server.remove("source") {
        None => {}
        Some(Value::String(source)) if source == "custom" => {}
        Some(source) => bail!(
            "source {source} is a server that Zed installs, which is not read; give its command"
        ),
    }
    if let Some(Value::Object(command)) = server.get("command").cloned() {
        server.remove("command");
        for (key, value) in command {
            let key = if key == "path" { "command" } else { &key };
            server.insert(key.to_owned(), value);
        }
    }
    Ok(server)
}

/// A server of opencode: a command line, or an address.
fn of_opencode(mut server: Members) -> anyhow::Result<Members> {
    match server.remove("type").as_ref().and_then(Value::as_str) {
        None | Some("local" | "remote") => {}
        Some(kind) => bail!("type must be \"local\" or \"remote\", not {kind:?}"),
    }
    if let Some(Value::Array(line)) = server.get("command").cloned() {
        let mut words = line.into_iter();
        server.insert("command".to_owned(), words.next().unwrap_or_default());
        server.insert("args".to_owned(), words.collect());
    }
    if let Some(variables) = server.remove("environment") {
        server.insert("env".to_owned(), variables);
    }
    // In milliseconds, for the answer with the tools.
    server.remove("timeout");
    for key in ["env", "headers"] {
        let values = server.get_mut(key).and_then(Value::as_object_mut);
        for (name, value) in values.into_iter().flatten() {
            if let Value::String(text) = value {
                if text.contains("{file:") {
                    bail!(
                        "{key}.{name}: {{file:…}} is not read, write ${{NAME}} and set the variable"
                    );
                }
                *text = text.replace('$', "$$").replace("{env:", "${");
            }
        }
    }
    Ok(server)
}

/// JSON without comments and without commas before closing brackets, each replaced by a space, so
/// that places in messages stay.
fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = match rest[0] {
            b'"' => {
                comma = None;
                let mut end = 1;
                while end < rest.len() && rest[end] != b'"' {
                    end += if rest[end] == b'\\' { 2 } else { 1 };
                }
                at += end + 1;
                continue;
            }
            b'/' if rest.starts_with(b"//") => rest.iter().position(|b| *b == b'\n'),
            b'/' if rest.starts_with(b"/*") => rest[2..]
                .windows(2)
                .position(|pair| pair == b"*/")
                .map(|n| n + 4),
            other => {
                match (other, comma) {
                    (b',', _) => comma = Some(at),
                    (b']' | b'}', Some(before)) => (out[before], comma) = (b' ', None),
                    _ if other.is_ascii_whitespace() => {}
                    _ => comma = None,
                }
                at += 1;
                continue;
            }
        };
        let end = at + end.unwrap_or(rest.len());
        for byte in &mut out[at..end] {
            if !byte.is_ascii_whitespace() {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Only whole characters were replaced.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_of_other_clients_are_tools_files() {
        let usual = r#"{"mcpServers":{"h":{"command":"./s","args":["-x"],"env":{"A":"${B}"}}}}"#;
        let remote =
            r#"{"mcpServers":{"h":{"url":"https://h/mcp","headers":{"A":"Bearer ${B}"}}}}"#;
        let off = r#"{"mcpServers":{"h":{"command":"s","disabled":true}}}"#;
        for (text, want) in [
            (usual, usual),
            (
                r#"{"servers":{"h":{"command":"./s","args":["-x"],"env":{"A":"${B}"}}},"inputs":[]}"#,
                usual,
            ),
            (
                r#"{"theme":"x","mcp":{"inputs":[],"servers":{"h":{"command":"./s","args":["-x"],"env":{"A":"${B}"}}}}}"#,
                usual,
            ),
            (
                r#"{"context_servers":{"h":{"source":"custom","command":"./s","args":["-x"],"env":{"A":"${B}"}}}}"#,
                usual,
            ),
            (
                r#"{"context_servers":{"h":{"command":{"path":"./s","args":["-x"],"env":{"A":"${B}"}}}}}"#,
                usual,
            ),
            (
                r#"{"mcp":{"h":{"type":"local","command":["./s","-x"],"environment":{"A":"{env:B}"},"enabled":true,"timeout":5000}}}"#,
                usual,
            ),
            (
                r#"{"mcp":{"h":{"type":"remote","url":"https://h/mcp","headers":{"A":"Bearer {env:B}"}}}}"#,
                remote,
            ),
            (r#"{"mcp":{"h":{"command":["s"],"enabled":false}}}"#, off),
            (
                "model = \"gpt-5-codex\"\n[mcp_servers.h]\ncommand = \"./s\"\nargs = [\"-x\"]\nstartup_timeout_sec = 20\n[mcp_servers.h.env]\nA = \"$B\"\n",
                r#"{"mcpServers":{"h":{"command":"./s","args":["-x"],"env":{"A":"$$B"}}}}"#,
            ),
            (
                "[mcp_servers.h]\nurl = \"https://h/mcp\"\nenv_http_headers = { A = \"C\" }\nbearer_token_env_var = \"B\"\nenabled_tools = [\"x\"]\ntool_timeout_sec = 45\n",
                r#"{"mcpServers":{"h":{"url":"https://h/mcp","tools":["x"],"headers":{"A":"${C}","Authorization":"Bearer ${B}"},"timeout":"45s"}}}"#,
            ),
            (
                "mcp_servers = { h = { command = \"s\", enabled = false } }",
                off,
            ),
            (
                "// servers\n{\"servers\": {\"h\": {\"command\": \"./s\", /* \" */ \"args\": [\"-x\",], \"env\": {\"A\": \"${B}\"},},}, // https://x\n}",
                usual,
            ),
        ] {
            let value = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
            let got = value(&tools_file(text).unwrap());
            let mut want = value(want);
            if text.contains("[\"s\"]") {
                want["mcpServers"]["h"]["args"] = Value::Array(Vec::new());
            }
            assert_eq!(got, want, "{text}");
            assert!(has_servers(text), "{text}");
        }
        // Text is kept, and what is not JSON either way stays for its reader.
        let text = r#"{"tools": [{"name": "a", "description": "// no, /* no */"}]}"#;
        assert!(matches!(tools_file(text), Ok(Cow::Borrowed(same)) if same == text));
        for text in ["{\"servers\":", "{'servers':{}}", "/* {}"] {
            assert_eq!(tools_file(text).unwrap(), text);
        }
    }

    #[test]
    fn what_is_not_read_is_refused_by_its_name() {
        for (text, want) in [
            (
                r#"{"context_servers":{"h":{"source":"extension","settings":{}}}}"#,
                r#"context_servers: "h": source "extension""#,
            ),
            (
                r#"{"mcp":{"h":{"command":["s"],"environment":{"A":"{file:~/key}"}}}}"#,
                r#"mcp: "h": env.A: {file:…}"#,
            ),
            (
                r#"{"mcp":{"h":{"type":"stdio","command":["s"]}}}"#,
                r#"type must be "local""#,
            ),
            (r#"{"servers":{"h":1}}"#, r#"servers: "h": it must be"#),
            (
                "GOOSE_MODEL: x\nextensions:\n  h:\n    cmd: s\n",
                "that is YAML",
            ),
            ("# servers\n---\nmcpServers: []\n", "that is YAML"),
            ("[mcp_servers.h]\ncommand = s\n", "not TOML: "),
            ("[mcp_servers]\nh = 1\n", "mcp_servers.h: it must be"),
            (
                "[mcp_servers.h]\ncommand = \"s\"\ndisabled_tools = [\"x\"]\n",
                "disabled_tools is not read",
            ),
        ] {
            let said = format!("{:#}", tools_file(text).unwrap_err());
            assert!(said.contains(want), "{said}");
        }
    }
}
