//! What a hub and its clients say to each other over the socket: one JSON object a line, with one
//! member that names the message. A client makes a connection for each request.
//!
//! It begins with `{"hello":{"version":2,"servers":"DIGEST"}}`, where `DIGEST` is that of
//! `mcpServers` in its tools file and of its `--sandbox`. The hub answers
//! `{"welcome":{"version":2}}`, or `{"refused":{"why":"…"}}` and closes. Then the client may ask:
//!
//! | from the client | meaning |
//! | --- | --- |
//! | `{"call":{"server":"s","tool":"t","definition":"DIGEST","arguments":{}}}` | call a tool; `definition` is the digest of what was locked. A traced call also has `traceparent`, and `tracestate` if the caller sent one |
//! | `{"check":{}}` | compare the tools of all servers with the lock |
//!
//! | from the hub | meaning |
//! | --- | --- |
//! | `{"step":{"progress":0.5,"message":"…"}}` | how far the call has come |
//! | `{"result":{}}` | the `tools/call` result of the call |
//! | `{"failed":{"why":"…","ran":"no","blocked":false}}` | the call has no result; `ran`: whether its server may have acted on it, `no`, `maybe` or (the server has answered that it failed) `answered`; `blocked`: tools are not as they were locked |
//! | `{"checked":{"changes":["…"]}}` | what differs from the lock, line by line |
//!
//! When a client closes its connection, the hub cancels the call of it.

use crate::mcp::lines::ServerLines;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::net::UnixStream;
use tool::{CallFailure, CallStep};

/// The version of these messages.
pub(super) const VERSION: u64 = 2;

/// The longest line, in bytes: a message of a server and what surrounds it, with room for escapes.
const LONGEST: usize = 64 << 20;

/// From a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HubRequest {
    /// The first message: the digest of its servers, and its version.
    Hello { version: u64, servers: String },
    /// A call.
    Call {
        server: String,
        tool: String,
        definition: String,
        arguments: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        traceparent: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tracestate: Option<String>,
    },
    /// Compare all tools with the lock.
    Check {},
}

/// From the hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reply {
    /// The client may ask.
    Welcome { version: u64 },
    /// It may not.
    Refused { why: String },
    /// How far the call has come.
    Step(CallStep),
    /// The result of the call.
    Result(Value),
    /// The call has no result; whether tools are not as they were locked.
    Failed {
        #[serde(flatten)]
        failure: CallFailure,
        blocked: bool,
    },
    /// What differs from the lock.
    Checked { changes: Vec<String> },
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Connection(ServerLines<UnixStream>);

impl Connection {
    /// The end that is this socket.
    pub(super) fn new(socket: UnixStream) -> Self {
        Connection(ServerLines::new(socket, LONGEST))
    }

    /// Sends a message. Whoever drops the future before it is done has sent a part of a line, which
    /// the other end does not take for a message.
    ///
    /// # Errors
    /// When the other end is closed.
    pub(super) async fn send(&mut self, message: &impl Serialize) -> std::io::Result<()> {
        self.0.write(&line(message)).await
    }

    /// The next message; `None`: the other end is closed, or sends something else. May be dropped
    /// while it waits, and called again.
    pub(super) async fn next<M: DeserializeOwned>(&mut self) -> Option<M> {
        let line = self.0.next().await.ok()??;
        serde_json::from_slice(&line).ok()
    }
}

/// A message as a line.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use tool::MayHaveRun;

    #[test]
    fn messages_read_back_as_they_were_written() {
        let arguments: Map<String, Value> =
            serde_json::from_str(r#"{"n":23456789012345678901234,"t":"\n\u0000"}"#).unwrap();
        let s = "a\nb".to_owned();
        let t = "c".to_owned();
        let read = |line: &[u8]| serde_json::from_slice::<HubRequest>(line).ok();
        for request in [
            HubRequest::Hello {
                version: 1,
                servers: s.clone(),
            },
            HubRequest::Call {
                server: s.clone(),
                tool: t.clone(),
                definition: t.clone(),
                arguments: arguments.clone(),
                traceparent: Some(s.clone()),
                tracestate: None,
            },
            HubRequest::Check {},
        ] {
            let line = line(&request);
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert_eq!(read(&line), Some(request));
        }
        let failed = |ran, blocked| Reply::Failed {
            failure: CallFailure {
                why: s.clone(),
                ran,
            },
            blocked,
        };
        for reply in [
            Reply::Welcome { version: 1 },
            Reply::Refused { why: s.clone() },
            Reply::Step(CallStep {
                progress: Some(0.5),
                message: s.clone(),
            }),
            Reply::Step(CallStep {
                progress: None,
                message: t,
            }),
            Reply::Result(arguments.into()),
            failed(MayHaveRun::No, true),
            failed(MayHaveRun::Maybe, false),
            failed(MayHaveRun::Answered, false),
            Reply::Checked {
                changes: vec![s.clone()],
            },
        ] {
            assert_eq!(serde_json::from_slice(&line(&reply)).ok(), Some(reply));
        }
        for line in [
            "",
            "{}",
            "[]",
            r#"{"call":{}}"#,
            r#"{"hello":1}"#,
            r#"{"check":{},"hello":{}}"#,
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }
}
