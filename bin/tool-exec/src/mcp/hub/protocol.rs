//! What a hub and its clients say to each other over the socket: one JSON object a line, with one
//! member that names the message.
//!
//! A client begins with `{"hello":{"version":1,"servers":"DIGEST"}}`, where `DIGEST` is that of
//! `mcpServers` in its tools file and of its `--sandbox`. The hub answers
//! `{"welcome":{"version":1}}`, or `{"refused":{"why":"…"}}` and closes. Then, in any order:
//!
//! | from the client | meaning |
//! | --- | --- |
//! | `{"call":{"id":1,"server":"s","tool":"t","definition":"DIGEST","arguments":{}}}` | call a tool; `id` is the client's, `definition` the digest of what was locked |
//! | `{"cancel":{"id":1,"why":"…"}}` | cancels the call; the hub sends no answer to it |
//! | `{"check":{}}` | compare the tools of all servers with the lock |
//!
//! | from the hub | meaning |
//! | --- | --- |
//! | `{"step":{"id":1,"progress":0.5,"message":"…"}}` | how far a call has come |
//! | `{"result":{"id":1,"result":{}}}` | the `tools/call` result of a call |
//! | `{"failed":{"id":1,"why":"…","ran":"no","blocked":false}}` | a call has no result; `ran`: whether its server may have acted on it, `no`, `maybe` or (the server has answered that it failed) `answered`; `blocked`: tools are not as they were locked |
//! | `{"checked":{"changes":["…"]}}` | what differs from the lock, line by line |
//!
//! When a connection closes, the hub cancels the calls that it has open.

use serde_json::{Value, json};
use tool::CallFailure;

/// The version of these messages.
pub const VERSION: u64 = 1;
/// The longest line, in bytes: a message of a server and what surrounds it, with room for escapes.
pub const LONGEST: usize = 64 << 20;

/// From a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// The first message: the digest of its servers, and its version.
    Hello { version: u64, servers: String },
    /// A call.
    Call {
        id: u64,
        server: String,
        tool: String,
        definition: String,
        arguments: Value,
    },
    /// Cancels a call.
    Cancel { id: u64, why: String },
    /// Compare all tools with the lock.
    Check,
}

/// From the hub.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The client may go on.
    Welcome { version: u64 },
    /// It may not.
    Refused { why: String },
    /// How far a call has come.
    Step {
        id: u64,
        progress: Option<f64>,
        message: String,
    },
    /// The result of a call.
    Result { id: u64, result: Value },
    /// A call has no result; whether tools are not as they were locked.
    Failed {
        id: u64,
        failure: CallFailure,
        is_blocked: bool,
    },
    /// What differs from the lock.
    Checked { changes: Vec<String> },
}

impl Request {
    /// The message as a line.
    pub fn line(&self) -> Vec<u8> {
        line(match self {
            Request::Hello { version, servers } => {
                json!({"hello": {"version": version, "servers": servers}})
            }
            Request::Call {
                id,
                server,
                tool,
                definition,
                arguments,
            } => {
                json!({"call": {"id": id, "server": server, "tool": tool, "definition": definition, "arguments": arguments}})
            }
            Request::Cancel { id, why } => json!({"cancel": {"id": id, "why": why}}),
            Request::Check => json!({"check": {}}),
        })
    }

    /// Reads a line; `None` if it is not such a message.
    pub fn read(line: &[u8]) -> Option<Request> {
        let (kind, of) = message(line)?;
        Some(match &*kind {
            "hello" => Request::Hello {
                version: of["version"].as_u64()?,
                servers: text(&of, "servers")?,
            },
            "call" => Request::Call {
                id: of["id"].as_u64()?,
                server: text(&of, "server")?,
                tool: text(&of, "tool")?,
                definition: text(&of, "definition")?,
                arguments: of
                    .get("arguments")
                    .filter(|arguments| arguments.is_object())?
                    .clone(),
            },
            "cancel" => Request::Cancel {
                id: of["id"].as_u64()?,
                why: text(&of, "why")?,
            },
            "check" => Request::Check,
            _ => return None,
        })
    }
}

impl Reply {
    /// The message as a line.
    pub fn line(&self) -> Vec<u8> {
        line(match self {
            Reply::Welcome { version } => json!({"welcome": {"version": version}}),
            Reply::Refused { why } => json!({"refused": {"why": why}}),
            Reply::Step {
                id,
                progress,
                message,
            } => {
                json!({"step": {"id": id, "progress": progress, "message": message}})
            }
            Reply::Result { id, result } => json!({"result": {"id": id, "result": result}}),
            Reply::Failed {
                id,
                failure,
                is_blocked,
            } => {
                let ran = match failure {
                    CallFailure::NotRun(_) => "no",
                    CallFailure::MayHaveRun(_) => "maybe",
                    CallFailure::Answered(_) => "answered",
                };
                json!({"failed": {"id": id, "why": failure.why(), "ran": ran, "blocked": is_blocked}})
            }
            Reply::Checked { changes } => json!({"checked": {"changes": changes}}),
        })
    }

    /// Reads a line; `None` if it is not such a message.
    pub fn read(line: &[u8]) -> Option<Reply> {
        let (kind, mut of) = message(line)?;
        Some(match &*kind {
            "welcome" => Reply::Welcome {
                version: of["version"].as_u64()?,
            },
            "refused" => Reply::Refused {
                why: text(&of, "why")?,
            },
            "step" => Reply::Step {
                id: of["id"].as_u64()?,
                progress: of["progress"].as_f64(),
                message: text(&of, "message")?,
            },
            "result" => Reply::Result {
                id: of["id"].as_u64()?,
                result: of.get_mut("result")?.take(),
            },
            "failed" => {
                let why = text(&of, "why")?;
                let failure = match of["ran"].as_str() {
                    Some("no") => CallFailure::NotRun(why),
                    Some("answered") => CallFailure::Answered(why),
                    _ => CallFailure::MayHaveRun(why),
                };
                Reply::Failed {
                    id: of["id"].as_u64()?,
                    failure,
                    is_blocked: of["blocked"] == true,
                }
            }
            "checked" => {
                let changes = of["changes"]
                    .as_array()?
                    .iter()
                    .map(|line| line.as_str().map(str::to_owned));
                Reply::Checked {
                    changes: changes.collect::<Option<_>>()?,
                }
            }
            _ => return None,
        })
    }
}

fn line(message: Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn message(line: &[u8]) -> Option<(String, Value)> {
    match serde_json::from_slice(line).ok()? {
        Value::Object(members) if members.len() == 1 => members.into_iter().next(),
        _ => None,
    }
}

fn text(of: &Value, key: &str) -> Option<String> {
    of.get(key)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back_as_they_were_written() {
        let arguments: Value =
            serde_json::from_str(r#"{"n":23456789012345678901234,"t":"\n\u0000"}"#).unwrap();
        let (s, t) = ("a\nb".to_owned(), "c".to_owned());
        for request in [
            Request::Hello {
                version: 1,
                servers: s.clone(),
            },
            Request::Call {
                id: 7,
                server: s.clone(),
                tool: t.clone(),
                definition: t.clone(),
                arguments: arguments.clone(),
            },
            Request::Cancel {
                id: 7,
                why: s.clone(),
            },
            Request::Check,
        ] {
            let line = request.line();
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert_eq!(Request::read(&line), Some(request));
        }
        for reply in [
            Reply::Welcome { version: 1 },
            Reply::Refused { why: s.clone() },
            Reply::Step {
                id: 1,
                progress: Some(0.5),
                message: s.clone(),
            },
            Reply::Step {
                id: 1,
                progress: None,
                message: t,
            },
            Reply::Result {
                id: 2,
                result: arguments,
            },
            Reply::Failed {
                id: 3,
                failure: CallFailure::NotRun(s.clone()),
                is_blocked: true,
            },
            Reply::Failed {
                id: 3,
                failure: CallFailure::MayHaveRun(s.clone()),
                is_blocked: false,
            },
            Reply::Failed {
                id: 3,
                failure: CallFailure::Answered(s.clone()),
                is_blocked: false,
            },
            Reply::Checked { changes: vec![s] },
        ] {
            assert_eq!(Reply::read(&reply.line()), Some(reply));
        }
        for line in [
            "",
            "{}",
            "[]",
            r#"{"call":{}}"#,
            r#"{"hello":1}"#,
            r#"{"check":{},"cancel":{}}"#,
        ] {
            assert_eq!(Request::read(line.as_bytes()), None, "{line}");
        }
    }
}
