//! The client of a running hub.

use super::protocol::{Connection, HubRequest, Reply, VERSION};
use crate::command::program::HUB;
use crate::mcp::CallOutcome;
use anyhow::{Context, bail};
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tool::{CallFailure, Hash, McpRun, hex};
use trace::TraceContext;

/// How long a hub may take to respond to the first message.
const GREETING: Duration = Duration::from_secs(10);
/// How long a hub may take to compare the tools of its servers with the lock file.
const CHECK: Duration = Duration::from_secs(120);

/// Why a call has no result after its hub has ended.
const GONE: &str = "its hub has exited";

/// A client of a hub. Cheap to clone; each request uses its own connection.
#[derive(Clone, Debug)]
pub(crate) struct HubClient {
    path: PathBuf,
    /// The digest of the servers that the hub must have.
    servers: String,
    is_blocked: Rc<Cell<bool>>,
}

/// A call that was sent to a hub. The hub cancels the call on drop.
#[derive(Debug)]
pub(crate) struct HubCall {
    hub: Connection,
    is_blocked: Rc<Cell<bool>>,
}

impl HubClient {
    /// Connects to the hub named in the environment, to check it. Returns `None` if the environment
    /// names no hub. `servers` is the digest of the servers that the hub must have.
    ///
    /// # Errors
    /// If the hub has ended, belongs to another user, or was started with other servers.
    pub(crate) async fn find(servers: &Hash) -> anyhow::Result<Option<HubClient>> {
        let Some(path) = std::env::var_os(HUB).filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        let client = HubClient {
            path: path.into(),
            servers: hex(servers),
            is_blocked: Rc::default(),
        };
        client.connect().await?;
        Ok(Some(client))
    }

    /// Returns a connection on which the hub accepts a request.
    async fn connect(&self) -> anyhow::Result<Connection> {
        let name = self.path.display();
        let gone = || {
            format!(
                "the hub {name} ({HUB}) does not answer, start the command under a new hub or unset {HUB}"
            )
        };
        let greeting = async {
            let stream = UnixStream::connect(&self.path).await.with_context(gone)?;
            let peer = stream.peer_cred().with_context(gone)?;
            if peer.uid() != rustix::process::geteuid().as_raw() {
                bail!("the hub {name} ({HUB}) belongs to another user, unset {HUB}");
            }
            let mut hub = Connection::new(stream);
            let hello = HubRequest::Hello {
                version: VERSION,
                servers: self.servers.clone(),
            };
            hub.send(&hello).await.with_context(gone)?;
            match hub.next().await {
                Some(Reply::Welcome { .. }) => Ok(hub),
                Some(Reply::Refused { why }) => {
                    bail!("the hub {name} ({HUB}) refuses this command: {why}")
                }
                _ => bail!(gone()),
            }
        };
        timeout(GREETING, greeting).await.with_context(gone)?
    }

    /// Whether a call failed while tools differed from the lock file.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    /// Returns the differences between the lock file and the current tools of the servers, one per
    /// line.
    ///
    /// # Errors
    /// If the hub has ended.
    pub(crate) async fn check(&self) -> anyhow::Result<Vec<String>> {
        let mut hub = self.connect().await?;
        let checking = async {
            hub.send(&HubRequest::Check {}).await.ok()?;
            hub.next().await
        };
        match timeout(CHECK, checking).await {
            Ok(Some(Reply::Checked { changes })) => Ok(changes),
            _ => bail!("the hub is gone"),
        }
    }

    /// Sends a call to the hub. `arguments` is a JSON object.
    ///
    /// # Errors
    /// The reason why nothing was sent, for the model.
    pub(crate) async fn call(
        &self,
        tool: &McpRun,
        arguments: &str,
        trace: Option<&TraceContext>,
    ) -> Result<HubCall, String> {
        let request = HubRequest::Call {
            server: tool.server.clone(),
            tool: tool.tool.clone(),
            definition: hex(&tool.definition),
            arguments: serde_json::from_str(arguments).map_err(|e| e.to_string())?,
            traceparent: trace.map(|trace| trace.span.to_string()),
            tracestate: trace.and_then(|trace| trace.state.clone()),
        };
        let mut hub = self.connect().await.map_err(|_| GONE.to_owned())?;
        // If sending fails, the line is incomplete, and the hub does not act on it.
        hub.send(&request).await.map_err(|_| GONE.to_owned())?;
        Ok(HubCall {
            hub,
            is_blocked: Rc::clone(&self.is_blocked),
        })
    }
}

impl HubCall {
    /// Waits for the next report of the call. Cancel-safe.
    pub(crate) async fn next(&mut self) -> CallOutcome {
        match self.hub.next().await {
            Some(Reply::Step(step)) => CallOutcome::Step(step),
            Some(Reply::Result(result)) => CallOutcome::Done(Ok(result)),
            Some(Reply::Failed { failure, blocked }) => {
                self.is_blocked.set(self.is_blocked.get() || blocked);
                CallOutcome::Done(Err(failure))
            }
            _ => CallOutcome::Done(Err(CallFailure::may_have_run(GONE))),
        }
    }
}
