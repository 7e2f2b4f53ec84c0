//! The member `mcpServers` of a tools file, in the format of other MCP clients with a few added
//! members.

use crate::approval::Class;
use crate::canonical::{Hash, canonical, digest};
use crate::exec::{AllowedAddresses, Sandbox};
use crate::members::{FLAG, MemberKind, Members, TEXT, TIME, strings};
use crate::variables::unknown_variable;
use event::shell_word;
use event::{Glob, Raw};
use serde_json::Value;
use std::time::Duration;

/// The servers of a tools file, in file order.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    /// The servers that are not disabled.
    pub list: Vec<McpServer>,
    /// The value of `mcpServers`, as JSON.
    pub text: String,
}

/// A server and the settings for its tools.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// The server's name in the tools file.
    pub name: String,
    /// How to connect to the server.
    pub link: ServerLink,
    /// The classes of the server's tools.
    pub class: ClassRule,
    /// Maximum run time of a call, or `None` for the runner's default.
    pub timeout: Option<Duration>,
    /// If the list is not empty, only tools whose names match one of these patterns are offered.
    pub offered: Vec<Glob>,
}

/// How to connect to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerLink {
    /// Start a program and exchange messages over its standard input and output.
    Stdio(Program),
    /// Connect to an HTTP server ("streamable HTTP").
    Http(Endpoint),
}

/// A program that serves tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The command line, whose first item is the program.
    pub command: Vec<String>,
    /// Environment variables and their values, which may refer to the caller's own variables (see
    /// [`crate::fill`]).
    pub env: Vec<(String, String)>,
    /// The working folder, relative to the folder of the tools file, or `None` for the caller's
    /// own.
    pub cwd: Option<String>,
    /// The sandbox that the program requests, or `None` for the default sandbox of all commands.
    pub sandbox: Option<Sandbox>,
}

/// An HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The URL of the server.
    pub url: String,
    /// Headers of each request, whose values may refer to environment variables (see
    /// [`crate::fill`]).
    pub headers: Vec<(String, String)>,
    /// Addresses outside the public internet that the client may still connect to.
    pub allow: AllowedAddresses,
}

/// The classes of a server's tools: the first pattern that matches a tool's name decides. A tool
/// that no pattern matches is `danger`, whatever the server says about it.
#[derive(Clone, Debug, Default)]
pub struct ClassRule(Vec<(Glob, Class)>);

impl ClassRule {
    /// Returns the class of the tool that the server names `tool`.
    pub fn of(&self, tool: &str) -> Class {
        self.0
            .iter()
            .find(|(glob, _)| glob.matches(tool))
            .map_or(Class::Danger, |(_, class)| *class)
    }

    fn read(value: &Value) -> Option<ClassRule> {
        let class = |value: &Value| value.as_str().and_then(Class::of);
        match value {
            Value::String(_) => Some(ClassRule(vec![(Glob::new("*"), class(value)?)])),
            Value::Object(rules) => rules
                .iter()
                .map(|(glob, value)| Some((Glob::new(glob), class(value)?)))
                .collect::<Option<_>>()
                .map(ClassRule),
            _ => None,
        }
    }
}

/// The known members of a server.
const MEMBERS: [&str; 13] = [
    "type", "command", "args", "env", "cwd", "sandbox", "url", "headers", "allow", "class",
    "timeout", "tools", "disabled",
];

/// The members that are valid for only one kind of link.
const LINKS: [&str; 6] = ["args", "env", "cwd", "sandbox", "headers", "allow"];

/// Members of other clients that are ignored here. None of them may grant permissions: only `class`
/// does.
const IGNORED: [&str; 8] = [
    "autoApprove",
    "alwaysAllow",
    "trust",
    "description",
    "icon",
    "gallery",
    "version",
    "note",
];

impl Servers {
    /// Parses the value of `mcpServers`, given as JSON.
    ///
    /// # Errors
    /// Returns the first mistake and how to fix it.
    pub fn read(text: &str) -> Result<Servers, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("mcpServers: {e}"))?;
        let Value::Object(members) = value else {
            return Err("mcpServers must be an object: {\"NAME\":{\"command\":\"…\"}}".to_owned());
        };
        let mut list = Vec::new();
        for (name, server) in members {
            list.extend(
                McpServer::read(&name, server).map_err(|e| format!("mcpServers: {name:?}: {e}"))?,
            );
        }
        Ok(Servers {
            list,
            text: text.to_owned(),
        })
    }

    /// Returns a digest of the servers and all their settings in the file.
    pub fn hash(&self) -> Hash {
        digest([Raw::parse(&self.text)
            .map(canonical)
            .unwrap_or_default()
            .as_bytes()])
    }

    /// Replaces the working folder of each program with the one that `settle` returns for it.
    ///
    /// # Errors
    /// Returns the first error of `settle`, with the name of its server.
    pub fn settle_folders(
        &mut self,
        settle: impl Fn(&str) -> Result<String, String>,
    ) -> Result<(), String> {
        for server in &mut self.list {
            if let ServerLink::Stdio(Program { cwd: Some(cwd), .. }) = &mut server.link {
                *cwd =
                    settle(cwd).map_err(|e| format!("mcpServers: {:?}: cwd: {e}", server.name))?;
            }
        }
        Ok(())
    }

    /// Returns the server with this name, or `None` if the file does not list it.
    pub fn get(&self, name: &str) -> Option<&McpServer> {
        self.list.iter().find(|server| server.name == name)
    }
}

impl McpServer {
    /// Returns the working folder of the server's program, relative to the folder of the tools
    /// file, or `None` for the caller's own.
    pub fn cwd(&self) -> Option<&str> {
        match &self.link {
            ServerLink::Stdio(program) => program.cwd.as_deref(),
            ServerLink::Http(_) => None,
        }
    }

    /// Parses a server. Returns `None` if the server is disabled.
    fn read(name: &str, mut value: Value) -> Result<Option<McpServer>, String> {
        if let Some(members) = value.as_object_mut() {
            members.retain(|key, _| !IGNORED.contains(&key.as_str()));
        }
        // Gemini CLI and Windsurf use these names for the URL.
        for alias in ["httpUrl", "serverUrl"] {
            let members = value.as_object_mut();
            if let Some((members, url)) = members.and_then(|m| m.remove(alias).map(|url| (m, url)))
                && members.insert("url".to_owned(), url).is_some()
            {
                return Err(format!(
                    "it has a second address in {alias}, keep one of them"
                ));
            }
        }
        let mut members = Members::of(value, "", &MEMBERS, "{\"command\":\"…\"}")?;
        let is_disabled = members.take("disabled", &FLAG)?.unwrap_or(false);
        let is_name = |name: &str| {
            !name.is_empty() && name.len() <= 128 && !name.chars().any(event::is_hidden)
        };
        if !is_name(name) {
            return Err(
                "the name must be 1 to 128 characters that can be seen, rename it".to_owned(),
            );
        }
        let kind = members.take("type", &TEXT)?;
        let link = match (kind.as_deref(), members.has("command"), members.has("url")) {
            (Some("sse"), ..) => {
                return Err(
                    "the transport sse was replaced by another in 2025, use \"type\":\"http\""
                        .to_owned(),
                );
            }
            (None | Some("stdio"), true, false) => ServerLink::Stdio(Program::read(&mut members)?),
            (None | Some("http" | "streamable-http" | "streamableHttp"), false, true) => {
                ServerLink::Http(Endpoint::read(&mut members)?)
            }
            (None | Some("stdio" | "http" | "streamable-http" | "streamableHttp"), ..) => {
                return Err("give it either a command (a program) or a url (an HTTP server), as its type wants".to_owned());
            }
            (Some(_), ..) => return Err("type must be \"stdio\" or \"http\"".to_owned()),
        };
        // A member for the other kind of link would have no effect, so it is rejected.
        if let Some(key) = LINKS.iter().find(|key| members.has(key)) {
            return Err(format!("{key} is for another type of server, leave it out"));
        }
        let class = MemberKind(
            "\"read\", \"write\" or \"danger\", or one of them for each name: {\"get_*\":\"read\"}",
            ClassRule::read,
            true,
        );
        let tools = MemberKind("a list of names, such as [\"get_*\"]", strings, true);
        let offered = members.take("tools", &tools)?.unwrap_or_default();
        let server = McpServer {
            name: name.to_owned(),
            link,
            class: members.take("class", &class)?.unwrap_or_default(),
            timeout: members.take("timeout", &TIME)?,
            offered: offered.iter().map(|glob| Glob::new(glob)).collect(),
        };
        Ok(Some(server).filter(|_| !is_disabled))
    }

    /// Whether the tool that the server names `tool` is offered to the model.
    pub fn offers(&self, tool: &str) -> bool {
        self.offered.is_empty() || self.offered.iter().any(|glob| glob.matches(tool))
    }

    /// Returns the command or URL that is started or connected to, for people.
    pub fn target(&self) -> String {
        match &self.link {
            ServerLink::Stdio(program) => {
                let words: Vec<_> = program
                    .command
                    .iter()
                    .map(|word| shell_word(word))
                    .collect();
                words.join(" ")
            }
            ServerLink::Http(endpoint) => endpoint.url.clone(),
        }
    }
}

impl Program {
    fn read(members: &mut Members) -> Result<Program, String> {
        let mut command: Vec<String> = members.take("command", &TEXT)?.into_iter().collect();
        let args = MemberKind("a list of strings", strings, false);
        command.extend(members.take("args", &args)?.unwrap_or_default());
        if command.iter().any(|item| item.contains("${")) {
            return Err("variables are filled in for env and headers only, where no list of processes shows them".to_owned());
        }
        if command.iter().any(|item| item.contains('\0')) {
            return Err("command and args must not hold the character U+0000".to_owned());
        }
        let env = MemberKind(
            "an object of texts, {\"NAME\":\"value\"}, or a list of names to let through",
            variables,
            false,
        );
        let sandbox = members.value("sandbox");
        let env = members.take("env", &env)?.unwrap_or_default();
        fillable("env", &env)?;
        Ok(Program {
            command,
            env,
            cwd: members.take("cwd", &TEXT)?,
            sandbox: sandbox
                .map(|value| Sandbox::read(value, "sandbox"))
                .transpose()?,
        })
    }
}

impl Endpoint {
    fn read(members: &mut Members) -> Result<Endpoint, String> {
        let url = members.take("url", &TEXT)?.unwrap_or_default();
        if url.contains("${") {
            return Err("variables are filled in for env and headers only".to_owned());
        }
        let headers = MemberKind(
            "an object of texts, {\"Authorization\":\"Bearer $NAME\"}",
            texts,
            false,
        );
        let headers = members.take("headers", &headers)?.unwrap_or_default();
        fillable("headers", &headers)?;
        Ok(Endpoint {
            url,
            headers,
            allow: AllowedAddresses::take(members)?,
        })
    }
}

/// Rejects placeholders that other clients can fill in and this one cannot, such as VS Code's
/// `${input:key}`, which prompts a person. They must not reach a server as literal text.
fn fillable(member: &str, texts: &[(String, String)]) -> Result<(), String> {
    match texts
        .iter()
        .find_map(|(name, text)| Some((name, unknown_variable(text)?)))
    {
        None => Ok(()),
        Some((name, unknown)) => Err(format!(
            "{member}.{name}: {unknown} is not filled in here, write ${{NAME}} and set the variable NAME"
        )),
    }
}

/// Parses the environment of a program: names with values, or names alone, whose values are taken
/// from the caller's environment.
fn variables(value: &Value) -> Option<Vec<(String, String)>> {
    let variables = match value {
        Value::Array(_) => strings(value)?
            .into_iter()
            .map(|name| (name.clone(), format!("${{{name}}}")))
            .collect(),
        _ => texts(value)?,
    };
    let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    variables
        .iter()
        .all(|(name, value)| is_name(name) && !value.contains('\0'))
        .then_some(variables)
}

/// Returns the members of an object of strings. Numbers and booleans are converted to their JSON
/// text.
fn texts(value: &Value) -> Option<Vec<(String, String)>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    value
        .as_object()?
        .iter()
        .map(|(key, value)| Some((key.clone(), text(value)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> McpServer {
        Servers::read(&format!("{{\"s\":{text}}}"))
            .unwrap()
            .list
            .remove(0)
    }

    #[test]
    fn the_forms_of_other_clients_are_read() {
        let one = server(
            r#"{"type":"stdio","command":"npx","args":["-y","x y"],"env":{"A":"$B","N":5},"cwd":"d","alwaysAllow":["*"],"icon":null}"#,
        );
        assert_eq!(
            one.link,
            ServerLink::Stdio(Program {
                command: vec!["npx".to_owned(), "-y".to_owned(), "x y".to_owned()],
                env: vec![
                    ("A".to_owned(), "$B".to_owned()),
                    ("N".to_owned(), "5".to_owned())
                ],
                cwd: Some("d".to_owned()),
                sandbox: None,
            })
        );
        assert_eq!(
            (one.target().as_str(), one.class.of("x"), one.offers("x")),
            ("npx -y 'x y'", Class::Danger, true)
        );
        for key in ["httpUrl", "serverUrl"] {
            let one = server(&format!(r#"{{"{key}":"https://h/mcp"}}"#));
            assert_eq!(one.target(), "https://h/mcp");
        }
        for kind in [r#""type":"http","#, r#""type":"streamable-http","#, ""] {
            let http = server(&format!(
                r#"{{{kind}"url":"https://h/mcp","headers":{{"A":"Bearer $B"}}}}"#
            ));
            let headers = vec![("A".to_owned(), "Bearer $B".to_owned())];
            assert_eq!(
                http.link,
                ServerLink::Http(Endpoint {
                    url: "https://h/mcp".to_owned(),
                    headers,
                    allow: AllowedAddresses::default()
                })
            );
        }
        assert!(
            Servers::read(r#"{"s":{"command":"x","disabled":true}}"#)
                .unwrap()
                .list
                .is_empty()
        );
        let let_through = server(r#"{"command":"x","env":["A_TOKEN"]}"#);
        assert!(
            matches!(let_through.link, ServerLink::Stdio(p) if p.env == [("A_TOKEN".to_owned(), "${A_TOKEN}".to_owned())])
        );
    }

    #[test]
    fn only_the_file_grants_a_class_and_the_first_pattern_counts() {
        let rules = server(
            r#"{"command":"x","class":{"get_*":"read","*":"write"},"tools":["get_*","put"],"timeout":"5s"}"#,
        );
        assert_eq!(
            (rules.class.of("get_a"), rules.class.of("put")),
            (Class::Read, Class::Write)
        );
        assert!(rules.offers("get_x") && rules.offers("put") && !rules.offers("del"));
        assert_eq!(rules.timeout, Some(Duration::from_secs(5)));
        let some = server(r#"{"command":"x","class":{"get_*":"read"}}"#);
        assert_eq!(
            (some.class.of("get_a"), some.class.of("rm")),
            (Class::Read, Class::Danger)
        );
        assert_eq!(
            server(r#"{"command":"x","class":"read"}"#).class.of("rm"),
            Class::Read
        );
    }

    #[test]
    fn mistakes_name_the_server_and_the_remedy() {
        for (text, want) in [
            ("[]", "mcpServers must be an object"),
            (r#"{"git":1}"#, r#"mcpServers: "git": it must be an object"#),
            (r#"{"git":{}}"#, "give it either a command"),
            (
                r#"{"git":{"command":"a","url":"b"}}"#,
                "give it either a command",
            ),
            (
                r#"{"git":{"type":"http","command":"a"}}"#,
                "give it either a command",
            ),
            (
                r#"{"git":{"type":"sse","url":"b"}}"#,
                "use \"type\":\"http\"",
            ),
            (r#"{"git":{"type":"ws","url":"b"}}"#, "type must be"),
            (
                r#"{"git":{"command":"a","args":"b"}}"#,
                "args must be a list of strings",
            ),
            (
                r#"{"git":{"command":"a","args":["${KEY}"]}}"#,
                "variables are filled in for env and headers only",
            ),
            (
                r#"{"git":{"command":"a","env":{"A=b":"c"}}}"#,
                "env must be",
            ),
            (
                r#"{"git":{"command":"a","env":{"A":"x ${input:the-key}"}}}"#,
                "env.A: ${input:the-key} is not filled in here",
            ),
            (
                r#"{"git":{"url":"https://a","headers":{"A":"${command:f}"}}}"#,
                "headers.A: ${command:f} is not filled in here",
            ),
            (
                r#"{"git":{"url":"https://a","httpUrl":"https://b"}}"#,
                "a second address in httpUrl",
            ),
            (r#"{"git":{"command":"a","class":"safe"}}"#, "class must be"),
            (
                r#"{"git":{"command":"a","clas":"read"}}"#,
                "clas is unknown",
            ),
            (
                r#"{"g\u202e":{"command":"a"}}"#,
                "characters that can be seen",
            ),
        ] {
            let said = Servers::read(text).unwrap_err();
            assert!(
                said.contains(want) && !said.contains('\n'),
                "{text}: {said}"
            );
        }
    }
}
