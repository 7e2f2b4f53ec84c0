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

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tool::Ran;

/// The version of these messages.
pub const VERSION: u64 = 1;

/// The longest line, in bytes: a message of a server and what surrounds it, with room for escapes.
pub const LONGEST: usize = 64 << 20;

/// From a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// The first message: the digest of its servers, and its version.
    Hello { version: u64, servers: String },
    /// A call.
    Call {
        id: u64,
        server: String,
        tool: String,
        definition: String,
        arguments: Map<String, Value>,
    },
    /// Cancels a call.
    Cancel { id: u64, why: String },
    /// Compare all tools with the lock.
    Check {},
}

/// From the hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
        why: String,
        ran: Ran,
        blocked: bool,
    },
    /// What differs from the lock.
    Checked { changes: Vec<String> },
}

/// A message as a line.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads a line; `None` if it is not such a message.
pub fn read<'l, M: Deserialize<'l>>(line: &'l [u8]) -> Option<M> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back_as_they_were_written() {
        let arguments: Map<String, Value> =
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
            Request::Check {},
        ] {
            let line = line(&request);
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert_eq!(read(&line), Some(request));
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
                result: arguments.into(),
            },
            Reply::Failed {
                id: 3,
                why: s.clone(),
                ran: Ran::No,
                blocked: true,
            },
            Reply::Failed {
                id: 3,
                why: s.clone(),
                ran: Ran::Maybe,
                blocked: false,
            },
            Reply::Failed {
                id: 3,
                why: s.clone(),
                ran: Ran::Answered,
                blocked: false,
            },
            Reply::Checked { changes: vec![s] },
        ] {
            assert_eq!(read(&line(&reply)), Some(reply));
        }
        for line in [
            "",
            "{}",
            "[]",
            r#"{"call":{}}"#,
            r#"{"hello":1}"#,
            r#"{"check":{},"cancel":{}}"#,
        ] {
            assert_eq!(read::<Request>(line.as_bytes()), None, "{line}");
        }
    }
}
