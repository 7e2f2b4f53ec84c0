//! The protocol between a hub and its clients over the socket: one JSON object per line, whose only
//! member names the message. A client opens a connection for each request.
//!
//! A client starts with `{"hello":{"version":2,"servers":"DIGEST"}}`, where `DIGEST` covers the
//! `mcpServers` in its tools file and its `--sandbox`. The hub responds with
//! `{"welcome":{"version":2}}`, or with `{"refused":{"why":"…"}}` and closes. After the welcome the
//! client may send a request:
//!
//! | from the client | meaning |
//! | --- | --- |
//! | `{"call":{"server":"s","tool":"t","definition":"DIGEST","arguments":{}}}` | call a tool; `definition` is the digest of its locked definition. A traced call also has `traceparent`, and `tracestate` if the caller sent one |
//! | `{"check":{}}` | compare the tools of all servers with the lock file |
//!
//! | from the hub | meaning |
//! | --- | --- |
//! | `{"step":{"progress":0.5,"message":"…"}}` | progress of the call |
//! | `{"result":{}}` | the `tools/call` result of the call |
//! | `{"failed":{"why":"…","ran":"no","blocked":false}}` | the call has no result; `ran` is whether its server may have acted on it: `no`, `maybe`, or `answered` (the server reported the failure); `blocked` is whether tools differ from the lock file |
//! | `{"checked":{"changes":["…"]}}` | the differences from the lock file, one per line |
//!
//! When a client closes its connection, the hub cancels the client's call.

use crate::mcp::lines::ServerLines;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::net::UnixStream;
use tool::{CallFailure, CallStep};

/// The version of the protocol.
pub(super) const VERSION: u64 = 2;

/// The maximum line length, in bytes: a server's message with its envelope, and room for escapes.
const LONGEST: usize = 64 << 20;

/// A message from a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HubRequest {
    /// The first message: the protocol version and the digest of the client's servers.
    Hello { version: u64, servers: String },
    /// Call a tool.
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
    /// Compare all tools with the lock file.
    Check {},
}

/// A message from the hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reply {
    /// The client may send its request.
    Welcome { version: u64 },
    /// The client is rejected, for this reason.
    Refused { why: String },
    /// Progress of the call.
    Step(CallStep),
    /// The result of the call.
    Result(Value),
    /// The call has no result; `blocked` is whether tools differ from the lock file.
    Failed {
        #[serde(flatten)]
        failure: CallFailure,
        blocked: bool,
    },
    /// The differences from the lock file, one per line.
    Checked { changes: Vec<String> },
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Connection(ServerLines<UnixStream>);

impl Connection {
    /// Returns the end that uses this socket.
    pub(super) fn new(socket: UnixStream) -> Self {
        Connection(ServerLines::new(socket, LONGEST))
    }

    /// Sends a message. If the future is dropped early, a partial line was sent, which the other
    /// end does not accept as a message.
    ///
    /// # Errors
    /// If the other end has closed.
    pub(super) async fn send(&mut self, message: &impl Serialize) -> std::io::Result<()> {
        self.0.write(&line(message)).await
    }

    /// Returns the next message, or `None` if the other end has closed or sent something else.
    /// Cancel-safe.
    pub(super) async fn next<M: DeserializeOwned>(&mut self) -> Option<M> {
        let line = self.0.next().await.ok()??;
        serde_json::from_slice(&line).ok()
    }
}

/// Encodes a message as a line.
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
