//! The way to a hub that runs already.

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

/// How long a hub may take to answer a greeting.
const GREETING: Duration = Duration::from_secs(10);
/// How long it may take to compare the tools of its servers with the lock.
const CHECK: Duration = Duration::from_secs(120);

/// Why a call has no result whose hub has ended.
const GONE: &str = "its hub has exited";

/// A hub. Cheap to clone; each request has a connection of its own.
#[derive(Clone, Debug)]
pub(crate) struct HubClient {
    path: PathBuf,
    /// The digest of the servers that are wanted.
    servers: String,
    is_blocked: Rc<Cell<bool>>,
}

/// A call that a hub has taken. The hub cancels it when this is dropped.
#[derive(Debug)]
pub(crate) struct HubCall {
    hub: Connection,
    is_blocked: Rc<Cell<bool>>,
}

impl HubClient {
    /// Greets the hub that the environment names, if it names one. `servers` is the digest of the
    /// servers that are wanted.
    ///
    /// # Errors
    /// When it is gone, belongs to another user, or was started with other servers.
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

    /// A connection on which the hub takes a request.
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

    /// Whether a call failed since tools are not as they were locked.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    /// What differs between the lock and the tools that the servers have now, line by line.
    ///
    /// # Errors
    /// When the hub is gone.
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

    /// Hands a call with arguments, a JSON object, to the hub.
    ///
    /// # Errors
    /// Why nothing of it was sent, for the model.
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
        // After an error the line has no end, and the hub does not take it for a request.
        hub.send(&request).await.map_err(|_| GONE.to_owned())?;
        Ok(HubCall {
            hub,
            is_blocked: Rc::clone(&self.is_blocked),
        })
    }
}

impl HubCall {
    /// Waits for the next news of the call. May be dropped while it waits, and called again.
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
