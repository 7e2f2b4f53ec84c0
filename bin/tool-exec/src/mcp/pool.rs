//! The servers of a tools file. Each is started on first use, and restarted after it has ended.

use super::Confines;
use super::session::McpSession;
use redact::Redactor;
use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinSet;
use tool::Hash;
use tool::mcp::{Change, Definition, Lock, LockedServer, McpServer, Servers, differences};
use toolbox::{LockFile, show};

/// How long a server may take to start and list its tools. Programs that are downloaded first (npx,
/// uvx) need long.
const START: Duration = Duration::from_secs(60);

/// How long closing waits for a server that is still starting. After that the server ends with this
/// process.
const CLOSE: Duration = Duration::from_secs(1);

const UNKNOWN: &str = "the tools file has no such server";

/// The servers of a tools file. Only tools that match the lock file are called.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The servers.
    pub servers: Servers,
    lock: Lock,
    /// The lock file.
    pub file: LockFile,
    /// The folder of the tools file.
    folder: PathBuf,
    confines: Confines,
    /// Redacts the secrets of this process and those passed to servers in messages.
    pub redactor: Redactor,
    slots: HashMap<String, tokio::sync::Mutex<ServerSlot>>,
    /// Whether the tools of any server were found to differ from the lock file.
    is_blocked: Cell<bool>,
}

/// The state of one server.
#[derive(Debug, Default)]
struct ServerSlot {
    running: Option<Rc<RunningServer>>,
    was_started: bool,
}

/// A running server.
#[derive(Debug)]
struct RunningServer {
    session: Rc<McpSession>,
    checked: tokio::sync::Mutex<Checked>,
}

/// The result of the last comparison of a server's tools with the lock file.
#[derive(Debug, Default)]
struct Checked {
    /// How many changes the server had reported before that comparison.
    changes: u64,
    /// The tools that differ from the lock file; calls to them are rejected.
    changed: Vec<String>,
}

impl RunningServer {
    fn new(session: McpSession, changed: Vec<String>) -> Self {
        RunningServer {
            session: Rc::new(session),
            checked: tokio::sync::Mutex::new(Checked {
                changes: 0,
                changed,
            }),
        }
    }
}

impl Pool {
    /// Returns the servers of the tools file in `folder`. `lock` holds the accepted tools and
    /// `file` is the lock file. `confines` applies to server programs; `redactor` redacts secrets
    /// in messages.
    pub(crate) fn new(
        servers: Servers,
        (lock, file): (Lock, LockFile),
        folder: &Path,
        confines: Confines,
        redactor: Redactor,
    ) -> Self {
        let slots = servers
            .list
            .iter()
            .map(|server| (server.name.clone(), tokio::sync::Mutex::default()))
            .collect();
        Pool {
            servers,
            lock,
            file,
            folder: folder.to_owned(),
            confines,
            redactor,
            slots,
            is_blocked: Cell::new(false),
        }
    }

    /// Returns a digest of the servers, their minimum sandbox, and their resolved working folders.
    /// A hub and its clients must have the same digest. The folders are included because a client's
    /// policy applies to the current targets of links.
    pub(crate) fn hash(&self) -> Hash {
        let folders = self
            .servers
            .list
            .iter()
            .flat_map(|server| [server.cwd().unwrap_or_default(), "\0"]);
        let folders: String = folders.collect();
        tool::sha256(
            &[
                &self.servers.hash()[..],
                self.confines.least.name().as_bytes(),
                folders.as_bytes(),
            ]
            .concat(),
        )
    }

    /// Whether the tools of any server were found to differ from the lock file.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    /// Starts the server with this name unless it is running, and waits until it is ready or the
    /// time for starting is over.
    ///
    /// # Errors
    /// The reason why the server is not running, for the model.
    pub(crate) async fn ready(&self, name: &str) -> Result<(), String> {
        let started = tokio::time::timeout(START, self.running(name)).await;
        started.unwrap_or_else(|_| Err(late())).map(drop)
    }

    /// Returns the session with the server of this name, for a call of `tool`. If the server has
    /// reported a change since its tools were last compared with the lock file, they are listed and
    /// compared again first. If this future is dropped, the comparison is left to the next call.
    ///
    /// # Errors
    /// The reason why the call cannot be made, for the model.
    pub(crate) async fn session(&self, name: &str, tool: &str) -> Result<Rc<McpSession>, String> {
        let running = self.running(name).await?;
        let server = self.server(name)?;
        let mut checked = running.checked.lock().await;
        // The count is read before the list is requested, so that a change reported in between
        // makes the next call compare again.
        let changes = running.session.changes();
        if checked.changes != changes {
            let listed = running.session.tools(name).await;
            let tools = listed.map_err(|e| {
                format!("its tools have changed, and cannot be compared with the lock: {e}")
            })?;
            *checked = Checked {
                changes,
                changed: self.check(server, &offered(server, tools)),
            };
        }
        if checked.changed.iter().any(|changed| changed == tool) {
            return Err(format!(
                "the server describes the tool {tool:?} differently from the lock file, so it \
                 is not called; the user must review the change and run {}",
                self.file.update()
            ));
        }
        Ok(Rc::clone(&running.session))
    }

    /// Returns the server with this name, starting it unless it is running.
    async fn running(&self, name: &str) -> Result<Rc<RunningServer>, String> {
        let server = self.server(name)?;
        let mut slot = self.slots.get(name).ok_or(UNKNOWN)?.lock().await;
        if let Some(running) = slot
            .running
            .as_ref()
            .filter(|running| !running.session.is_lost())
        {
            return Ok(Rc::clone(running));
        }
        if slot.was_started {
            crate::say(&format!(
                "the server {name:?} has ended and is started again"
            ));
        }
        slot.running = None;
        slot.was_started = true;
        let (session, tools) = self.start(server).await?;
        let running = Rc::new(RunningServer::new(session, self.check(server, &tools)));
        slot.running = Some(Rc::clone(&running));
        Ok(running)
    }

    fn server(&self, name: &str) -> Result<&McpServer, String> {
        self.servers.get(name).ok_or_else(|| UNKNOWN.to_owned())
    }

    /// Starts all servers and returns their tools, in the order of the file.
    ///
    /// # Errors
    /// If a server does not start; the first such server is reported.
    pub(crate) async fn start_all(
        self: &Rc<Self>,
    ) -> anyhow::Result<Vec<(&McpServer, Vec<Definition>)>> {
        let mut starting = JoinSet::new();
        for index in 0..self.servers.list.len() {
            let pool = Rc::clone(self);
            starting.spawn_local(async move { (index, pool.start_at(index).await) });
        }
        let mut all = starting.join_all().await;
        all.sort_by_key(|(index, _)| *index);
        let tools = self.servers.list.iter().zip(all);
        tools
            .map(|(server, (_, tools))| Ok((server, tools?)))
            .collect()
    }

    /// Starts the server at this index of the file and returns its tools.
    async fn start_at(&self, index: usize) -> anyhow::Result<Vec<Definition>> {
        let server = &self.servers.list[index];
        let failed = |e: String| {
            let text = format!("the server {:?} ({}): {e}", server.name, server.target());
            anyhow::Error::msg(self.redactor.text(&text).into_owned())
        };
        let (session, tools) = self.start(server).await.map_err(failed)?;
        if let Some(slot) = self.slots.get(&server.name) {
            let mut slot = slot.lock().await;
            (slot.running, slot.was_started) =
                (Some(Rc::new(RunningServer::new(session, Vec::new()))), true);
        }
        Ok(tools)
    }

    /// Returns the differences between the locked tools and the given tools of the servers.
    pub(crate) fn changes(&self, all: &[(&McpServer, Vec<Definition>)]) -> Vec<Change> {
        all.iter()
            .flat_map(|(server, tools)| differences(self.locked(server), tools))
            .collect()
    }

    /// Returns the differences between the locked tools and the current tools of the servers, one
    /// per line. Servers that have ended are restarted.
    ///
    /// # Errors
    /// If a server does not start or does not respond; the first such server is reported.
    pub(crate) async fn check_all(&self) -> anyhow::Result<Vec<String>> {
        let mut lines = Vec::new();
        for server in &self.servers.list {
            let failed = |e: String| anyhow::anyhow!("the server {:?}: {e}", server.name);
            let listing = async {
                self.session(&server.name, "")
                    .await?
                    .tools(&server.name)
                    .await
            };
            let listed = tokio::time::timeout(START, listing)
                .await
                .unwrap_or_else(|_| Err(late()));
            let tools = offered(server, listed.map_err(failed)?);
            lines.extend(
                differences(self.locked(server), &tools)
                    .iter()
                    .flat_map(Change::lines),
            );
        }
        Ok(lines)
    }

    /// Returns a tool's locked definition, or `None` if it is not locked.
    pub(crate) fn definition(&self, server: &str, tool: &str) -> Option<&Definition> {
        self.lock
            .server(server)?
            .tools
            .iter()
            .find(|locked| locked.tool == tool)
    }

    /// Returns a lock of these tools.
    pub(crate) fn lock_of(all: &[(&McpServer, Vec<Definition>)]) -> Lock {
        let servers = all.iter().map(|(server, tools)| LockedServer {
            name: server.name.clone(),
            tools: tools.clone(),
        });
        Lock {
            servers: servers.collect(),
        }
    }

    /// Ends all servers.
    pub(crate) async fn close(self: &Rc<Self>) {
        let mut closing = JoinSet::new();
        for index in 0..self.servers.list.len() {
            let pool = Rc::clone(self);
            closing.spawn_local(async move { pool.close_at(index).await });
        }
        closing.join_all().await;
    }

    /// Ends the server at this index of the file.
    async fn close_at(&self, index: usize) {
        let Some(slot) = self.slots.get(&self.servers.list[index].name) else {
            return;
        };
        // A server that is still starting holds the lock of its slot; it ends with this process.
        let Ok(mut slot) = tokio::time::timeout(CLOSE, slot.lock()).await else {
            return;
        };
        let running = slot.running.take().and_then(Rc::into_inner);
        if let Some(session) = running.and_then(|running| Rc::into_inner(running.session)) {
            session.close().await;
        }
    }

    /// Reports the differences from the lock file, and returns the names of the tools that must not
    /// be called.
    fn check(&self, server: &McpServer, tools: &[Definition]) -> Vec<String> {
        let changes = differences(self.locked(server), tools);
        if !changes.is_empty() {
            self.is_blocked.set(true);
            show(&changes);
            crate::say(&format!(
                "these tools are blocked; to accept them, run {}",
                self.file.update()
            ));
        }
        // New tools are not offered, so the model cannot call them.
        let name = |change| match change {
            Change::New(of) | Change::Removed(of) | Change::Changed { new: of, .. } => of.tool,
        };
        changes.into_iter().map(name).collect()
    }

    fn locked(&self, server: &McpServer) -> &[Definition] {
        self.lock
            .server(&server.name)
            .map_or(&[], |locked| &locked.tools)
    }

    async fn start(&self, server: &McpServer) -> Result<(McpSession, Vec<Definition>), String> {
        let opening = async {
            let session =
                McpSession::start(server, &self.folder, &self.confines, &self.redactor).await?;
            let tools = session.tools(&server.name).await?;
            Ok((session, offered(server, tools)))
        };
        match tokio::time::timeout(START, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(late()),
        }
    }
}

/// Returns the message for a server that took too long to start.
fn late() -> String {
    format!("it did not answer within {START:?}")
}

/// Returns the tools that the tools file offers.
fn offered(server: &McpServer, mut tools: Vec<Definition>) -> Vec<Definition> {
    tools.retain(|tool| server.offers(&tool.tool));
    tools
}
