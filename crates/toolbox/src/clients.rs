//! The configurations of other clients of MCP, as tools files: those of VS Code
//! (<https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>), Zed
//! (<https://zed.dev/docs/ai/mcp>) and opencode (<https://opencode.ai/docs/mcp-servers>), with the
//! comments and the last commas that these have.

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
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    let start = text.strip_prefix('\u{feff}').unwrap_or(text);
    let plain = match is_json(start) {
        true => Cow::Borrowed(text),
        false => match without_comments(start) {
            plain if is_json(&plain) => Cow::Owned(plain),
            _ => return Ok(Cow::Borrowed(text)), // whose reader names the mistake
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
        ] {
            let said = format!("{:#}", tools_file(text).unwrap_err());
            assert!(said.contains(want), "{said}");
        }
    }
}
