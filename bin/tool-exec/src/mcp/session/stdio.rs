//! The transport over the standard input and output of a server: one JSON value per line.

use crate::mcp::lines::ServerLines;
use redact::Redactor;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, JsonRpcError, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::{Receiver, Sender};

/// The maximum message size, in bytes. A longer message ends the session, since it may be the
/// answer to any call.
const LONGEST: usize = 16 << 20;

/// The maximum number of requests from a server whose answers it has not read. Otherwise the
/// answers for a server that keeps asking without reading would fill the memory.
pub(super) const MOST_ASKED: usize = 256;

/// The maximum number of faults reported for one server.
const SHOWN: usize = 3;

/// The faults of a server, reported to the user.
#[derive(Clone, Debug)]
pub(crate) struct ServerFaults(Arc<FaultsInner>);

#[derive(Debug)]
struct FaultsInner {
    server: String,
    redactor: Redactor,
    /// The number of faults, and the fault that ended the session.
    seen: Mutex<(usize, Option<String>)>,
}

impl ServerFaults {
    /// Returns a reporter for the server with this name. `redactor` redacts secrets in messages.
    pub(crate) fn new(server: &str, redactor: &Redactor) -> Self {
        let server = server.to_owned();
        let redactor = redactor.clone();
        ServerFaults(Arc::new(FaultsInner {
            server,
            redactor,
            seen: Mutex::default(),
        }))
    }

    /// Reports a fault, unless too many were already reported.
    pub(super) fn report(&self, what: &str) {
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.0 += 1;
        if seen.0 <= SHOWN {
            let more = if seen.0 == SHOWN {
                "; more of it is not shown"
            } else {
                ""
            };
            let text = format!("the server {:?} {what}{more}", self.0.server);
            crate::say(&self.0.redactor.text(&text));
        }
    }

    /// Reports a fault that ends the session.
    fn end(&self, what: &str) {
        self.report(what);
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(what.to_owned());
    }

    /// Returns the fault that ended the session, or `None`.
    pub(crate) fn last(&self) -> Option<String> {
        self.0
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .clone()
    }
}

/// The requests that a server has not answered yet. An answer to any other request is a fault.
#[derive(Clone, Debug, Default)]
struct Open(Arc<Mutex<HashSet<RequestId>>>);

impl Open {
    fn with<T>(&self, act: impl FnOnce(&mut HashSet<RequestId>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The transport to a server that runs as a process.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    from: ServerLines<Receiver>,
    to: Arc<tokio::sync::Mutex<Option<Sender>>>,
    open: Open,
    /// How many requests from the server have no written answer yet.
    asked: Arc<AtomicUsize>,
    faults: ServerFaults,
}

impl StdioTransport {
    /// Returns a transport over the pipes of a server.
    pub(crate) fn new(to: Sender, from: Receiver, faults: ServerFaults) -> Self {
        let to = Arc::new(tokio::sync::Mutex::new(Some(to)));
        StdioTransport {
            from: ServerLines::new(from, LONGEST),
            to,
            open: Open::default(),
            asked: Arc::default(),
            faults,
        }
    }

    /// Returns the next line, or `None` at the end and after a line that is too long.
    async fn read_line(&mut self) -> Option<Vec<u8>> {
        self.from.next().await.unwrap_or_else(|e| {
            if e.kind() == ErrorKind::InvalidData {
                self.faults
                    .end(&format!("wrote a message of more than {LONGEST} bytes"));
            }
            None
        })
    }

    /// Parses a line as a message. Returns `None` if the line is not a message or answers no open
    /// request.
    fn message(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let Ok(mut message) = serde_json::from_slice::<ServerJsonRpcMessage>(line) else {
            let text: String = String::from_utf8_lossy(line).chars().take(80).collect();
            let what = format!(
                "wrote a line that is not a message to its standard output: {text:?}; logs belong to standard error"
            );
            self.faults.report(&what);
            return self.failed(line);
        };
        if let JsonRpcMessage::Error(JsonRpcError {
            id: None, error, ..
        }) = &message
        {
            // The server could not read a request. If only one is open, it must be that one.
            let id = self.open.with(|open| {
                let id = open.iter().next().filter(|_| open.len() == 1).cloned();
                id.inspect(|id| _ = open.remove(id))
            });
            return Some(JsonRpcMessage::error(error.clone(), id));
        }
        let id = match &mut message {
            JsonRpcMessage::Response(response) => Some(&mut response.id),
            JsonRpcMessage::Error(error) => error.id.as_mut(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = id {
            *id = as_sent(id);
            if !self.open.with(|open| open.remove(id)) {
                let id: String = id.to_string().chars().take(80).collect();
                self.faults
                    .report(&format!("answered the request {id:?}, which is not open"));
                return None;
            }
        }
        Some(message)
    }
}

impl StdioTransport {
    /// Converts an invalid line with the id of an open request into an error of that request, since
    /// no other answer to it will follow. Returns `None` for any other line.
    fn failed(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let id: RequestId = serde_json::from_value(value.get("id")?.clone()).ok()?;
        let id = as_sent(&id);
        let is_open = self.open.with(|open| open.remove(&id));
        is_open.then(|| not_a_message(id))
    }
}

/// Returns a request id in the form in which it was sent. Some servers return a numeric id as a
/// string. JSON-RPC requires the same type, but our ids are all numbers, so this is unambiguous,
/// and the official clients for Python (modelcontextprotocol/python-sdk#1720) and TypeScript accept
/// such answers too.
fn as_sent(id: &RequestId) -> RequestId {
    let RequestId::String(text) = id else {
        return id.clone();
    };
    match text.parse() {
        Ok(number) if text[..] == format!("{number}") => RequestId::Number(number),
        _ => id.clone(),
    }
}

/// Returns the fault of a server that keeps sending requests without reading the answers.
pub(super) fn asks_on() -> String {
    format!("asked {MOST_ASKED} times and did not read the answers")
}

/// Returns the error of a request that the server answered incorrectly.
pub(super) fn failed_by_server(id: RequestId, what: String) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(ErrorData::invalid_request(what, None), Some(id))
}

/// Returns the error of a request whose answer is not a message.
pub(super) fn not_a_message(id: RequestId) -> ServerJsonRpcMessage {
    failed_by_server(id, "its answer is not a message of MCP".to_owned())
}

impl Transport<RoleClient> for StdioTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message {
            self.open.with(|open| open.insert(request.id.clone()));
        }
        let is_answer = matches!(
            message,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
        );
        let asked = is_answer.then(|| Arc::clone(&self.asked));
        let to = Arc::clone(&self.to);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut to = to.lock().await;
            let Some(to) = to.as_mut() else {
                return Err(std::io::ErrorKind::NotConnected.into());
            };
            to.write_all(&line).await?;
            if let Some(asked) = asked {
                asked.fetch_sub(1, Ordering::Relaxed);
            }
            to.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = self.read_line().await?;
            if !line.trim_ascii().is_empty()
                && let Some(message) = self.message(&line)
            {
                let is_request = matches!(message, JsonRpcMessage::Request(_));
                if is_request && self.asked.fetch_add(1, Ordering::Relaxed) >= MOST_ASKED {
                    self.faults.end(&asks_on());
                    return None;
                }
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A server that reads its input notices the end. Any other server is ended by its
        // supervisor.
        if let Ok(mut to) = self.to.try_lock() {
            *to = None;
        }
        Ok(())
    }
}
