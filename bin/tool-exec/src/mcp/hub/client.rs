//! The way to a hub that runs already.

use super::protocol::{LONGEST, Reply, Request, VERSION, line, read};
use crate::command::program::HUB;
use crate::mcp::session::{Outcome, Step};
use crate::mcp::stdio::Lines;
use anyhow::{Context, bail};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream as StdStream;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tool::{CallFailure, Hash, McpRun, hex};

/// How long a hub may take to answer a greeting.
const GREETING: Duration = Duration::from_secs(10);
/// How long it may take to compare the tools of its servers with the lock.
const CHECK: Duration = Duration::from_secs(120);
/// How much news of one call waits for a slow reader.
const NEWS: usize = 64;
/// How many requests wait for a hub that does not read.
const REQUESTS: usize = 64;

/// A connection to a hub. Cheap to clone; any number of calls may be open at once.
#[derive(Clone, Debug)]
pub struct HubClient(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The connection before anything runs on it.
    stream: RefCell<Option<StdStream>>,
    /// Where requests go that are to be written, once there was one.
    to: RefCell<Option<mpsc::Sender<Vec<u8>>>>,
    calls: RefCell<HashMap<u64, mpsc::Sender<Outcome>>>,
    next: Cell<u64>,
    is_lost: Cell<bool>,
    is_blocked: Cell<bool>,
}

/// A call that a hub has taken.
#[derive(Debug)]
pub struct HubCall {
    id: u64,
    news: mpsc::Receiver<Outcome>,
    client: HubClient,
}

impl Drop for HubCall {
    fn drop(&mut self) {
        self.client.0.calls.borrow_mut().remove(&self.id);
    }
}

impl HubClient {
    /// Connects to the hub that the environment names, if it names one, and greets it. `servers` is
    /// the digest of the servers that are wanted.
    ///
    /// # Errors
    /// When it is gone, belongs to another user, or was started with other servers.
    pub fn find(servers: &Hash) -> anyhow::Result<Option<HubClient>> {
        let Some(path) = std::env::var_os(HUB).filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        let name = path.to_string_lossy().into_owned();
        let gone = || {
            format!(
                "the hub {name} ({HUB}) does not answer, start the command under a new hub or unset {HUB}"
            )
        };
        let mut stream = StdStream::connect(&path).with_context(gone)?;
        let peer = rustix::net::sockopt::socket_peercred(&stream).with_context(gone)?;
        if peer.uid != rustix::process::geteuid() {
            bail!("the hub {name} ({HUB}) belongs to another user, unset {HUB}");
        }
        stream.set_read_timeout(Some(GREETING))?;
        stream.set_write_timeout(Some(GREETING))?;
        let hello = Request::Hello {
            version: VERSION,
            servers: hex(servers),
        };
        stream.write_all(&line(&hello)).with_context(gone)?;
        match read_reply(&stream).with_context(gone)? {
            Reply::Welcome { .. } => {}
            Reply::Refused { why } => bail!("the hub {name} ({HUB}) refuses this command: {why}"),
            _ => bail!(gone()),
        }
        let inner = Inner {
            stream: RefCell::new(Some(stream)),
            to: RefCell::default(),
            calls: RefCell::default(),
            next: Cell::new(0),
            is_lost: Cell::new(false),
            is_blocked: Cell::new(false),
        };
        Ok(Some(HubClient(Rc::new(inner))))
    }

    /// Whether a call failed since tools are not as they were locked.
    pub fn is_blocked(&self) -> bool {
        self.0.is_blocked.get()
    }

    /// What differs between the lock and the tools that the servers have now, line by line.
    ///
    /// # Errors
    /// When the hub is gone.
    pub fn check(&self) -> anyhow::Result<Vec<String>> {
        let stream = self.0.stream.borrow();
        let mut stream = stream.as_ref().context("the hub is in use")?;
        stream.set_read_timeout(Some(CHECK))?;
        stream
            .write_all(&line(&Request::Check {}))
            .context("the hub is gone")?;
        match read_reply(stream).context("the hub is gone")? {
            Reply::Checked { changes } => Ok(changes),
            _ => bail!("the hub answers something else"),
        }
    }

    /// Hands a call with arguments, a JSON object, to the connection.
    ///
    /// # Errors
    /// Why nothing of it was sent, for the model.
    pub async fn call(&self, tool: &McpRun, arguments: &str) -> Result<HubCall, String> {
        let arguments = serde_json::from_str(arguments).map_err(|e| e.to_string())?;
        let id = self.0.next.replace(self.0.next.get() + 1);
        let (send, news) = mpsc::channel(NEWS);
        self.0.calls.borrow_mut().insert(id, send);
        let call = HubCall {
            id,
            news,
            client: self.clone(),
        };
        let (server, name, definition) = (
            tool.server.clone(),
            tool.tool.clone(),
            hex(&tool.definition),
        );
        self.send(&Request::Call {
            id,
            server,
            tool: name,
            definition,
            arguments,
        })
        .await?;
        Ok(call)
    }

    async fn send(&self, request: &Request) -> Result<(), String> {
        let gone = || "the hub that runs it is gone".to_owned();
        if self.0.is_lost.get() {
            return Err(gone());
        }
        if let Some(stream) = self.0.stream.take() {
            let open = || {
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream)
            };
            let (from, write) = open().map_err(|e| e.to_string())?.into_split();
            let (to, requests) = mpsc::channel(REQUESTS);
            *self.0.to.borrow_mut() = Some(to);
            tokio::task::spawn_local(write_all(write, requests));
            tokio::task::spawn_local(listen(from, self.clone()));
        }
        let to = self.0.to.borrow().clone().ok_or_else(gone)?;
        to.send(line(request)).await.map_err(|_| gone())
    }
}

impl HubCall {
    /// Waits for the next news of the call. May be dropped while it waits, and called again.
    pub async fn next(&mut self) -> Outcome {
        let gone = || CallFailure::may_have_run("the hub that runs it is gone");
        self.news
            .recv()
            .await
            .unwrap_or_else(|| Outcome::Done(Err(gone())))
    }

    /// Tells the hub that nobody waits for the call any more.
    pub async fn cancel(&self, why: &str) {
        let cancel = Request::Cancel {
            id: self.id,
            why: why.to_owned(),
        };
        let _ = tokio::time::timeout(Duration::from_millis(200), self.client.send(&cancel)).await;
    }
}

/// Writes requests, each as a whole also when nobody waits for it any more.
async fn write_all(mut to: OwnedWriteHalf, mut requests: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = requests.recv().await {
        if to.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Hands what the hub writes to the calls, until it is gone.
async fn listen(from: OwnedReadHalf, client: HubClient) {
    let mut lines = Lines::new(from, LONGEST);
    while let Ok(Some(line)) = lines.next().await {
        let (id, news) = match read(&line) {
            Some(Reply::Step {
                id,
                progress,
                message,
            }) => (id, Outcome::Step(Step { progress, message })),
            Some(Reply::Result { id, result }) => (id, Outcome::Done(Ok(result))),
            Some(Reply::Failed {
                id,
                why,
                ran,
                blocked,
            }) => {
                let is_blocked = &client.0.is_blocked;
                is_blocked.set(is_blocked.get() || blocked);
                (id, Outcome::Done(Err(CallFailure { why, ran })))
            }
            _ => continue,
        };
        let call = client.0.calls.borrow().get(&id).cloned();
        match (call, &news) {
            (Some(call), Outcome::Step(_)) => {
                let _ = call.try_send(news); // what a slow reader cannot take is left out
            }
            (Some(call), Outcome::Done(_)) => {
                let _ = call.send(news).await; // the call was cancelled
            }
            (None, _) => {}
        }
    }
    client.0.is_lost.set(true);
    client.0.calls.borrow_mut().clear();
}

/// Reads one reply, while nothing else reads.
fn read_reply(stream: &StdStream) -> std::io::Result<Reply> {
    let mut line = Vec::new();
    // The hub writes one reply to one request, so nothing of the next one is taken.
    BufReader::with_capacity(1 << 16, stream.take(LONGEST as u64)).read_until(b'\n', &mut line)?;
    read(&line).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}
