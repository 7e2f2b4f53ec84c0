//! The servers of a tools file: each is started when it is needed, and again after it has ended.

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

/// How long a server may take until its tools are known. Programs that are downloaded first (npx,
/// uvx) take their time.
const START: Duration = Duration::from_secs(60);

/// How long to wait for a server that is just being started, before it is left to end with this
/// process.
const CLOSE: Duration = Duration::from_secs(1);

const UNKNOWN: &str = "the tools file has no such server";

/// The servers of a tools file. Only tools that are as they were locked are called.
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
    /// Takes the secrets of this process, and those that it gives to servers, out of what is shown.
    pub redactor: Redactor,
    slots: HashMap<String, tokio::sync::Mutex<ServerSlot>>,
    /// Whether a server was found whose tools are not as they were locked.
    is_blocked: Cell<bool>,
}

/// A server's place.
#[derive(Debug, Default)]
struct ServerSlot {
    running: Option<Rc<RunningServer>>,
    was_started: bool,
}

/// A server that runs.
#[derive(Debug)]
struct RunningServer {
    session: Rc<McpSession>,
    checked: tokio::sync::Mutex<Checked>,
}

/// What the last comparison of a server's tools with the lock found.
#[derive(Debug, Default)]
struct Checked {
    /// How many changes the server had reported before its tools were listed for it.
    changes: u64,
    /// Tools that are not as they were locked; no call of them runs any more.
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
    /// The servers of the tools file in `folder`, with the tools that were locked. `confines` their
    /// programs; `redactor` takes secrets out of what is shown.
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

    /// A digest of the servers, of what confines them, and of the folders that they run in: that of
    /// a hub and of its clients must be the same. A client's policy is about the folder that a link
    /// leads to now.
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

    /// Whether a server was found whose tools are not as they were locked.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    /// Starts the server of this name, unless it runs. Waits for it as long as a start may take.
    ///
    /// # Errors
    /// Why it does not run, for the model.
    pub(crate) async fn ready(&self, name: &str) -> Result<(), String> {
        let started = tokio::time::timeout(START, self.running(name)).await;
        started.unwrap_or_else(|_| Err(late())).map(drop)
    }

    /// The session with the server of this name, for a call of `tool`. Lists the server's tools
    /// first if it reported a change since they were last compared with the lock. Whoever drops the
    /// future leaves the comparison to the next call.
    ///
    /// # Errors
    /// Why the call cannot be made, for the model.
    pub(crate) async fn session(&self, name: &str, tool: &str) -> Result<Rc<McpSession>, String> {
        let running = self.running(name).await?;
        let server = self.server(name)?;
        let mut checked = running.checked.lock().await;
        // The count is taken before the list is asked for: a change that is reported meanwhile
        // makes the next call ask again.
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

    /// The server of this name, which is started unless it runs.
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

    /// Starts all servers, and returns their tools in the order of the file.
    ///
    /// # Errors
    /// The first that does not start.
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

    /// Starts the server at this place of the file, and returns its tools.
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

    /// What differs between the tools that were locked and those that the servers have.
    pub(crate) fn changes(&self, all: &[(&McpServer, Vec<Definition>)]) -> Vec<Change> {
        all.iter()
            .flat_map(|(server, tools)| differences(self.locked(server), tools))
            .collect()
    }

    /// What differs between the tools that were locked and those that the servers have now, line by
    /// line. Starts servers that have ended.
    ///
    /// # Errors
    /// The first server that does not start or does not answer.
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

    /// A tool as it was locked.
    pub(crate) fn definition(&self, server: &str, tool: &str) -> Option<&Definition> {
        self.lock
            .server(server)?
            .tools
            .iter()
            .find(|locked| locked.tool == tool)
    }

    /// The lock over these tools.
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

    /// Ends the server at this place of the file.
    async fn close_at(&self, index: usize) {
        let Some(slot) = self.slots.get(&self.servers.list[index].name) else {
            return;
        };
        // A server that is just being started holds its place; it ends with this process.
        let Ok(mut slot) = tokio::time::timeout(CLOSE, slot.lock()).await else {
            return;
        };
        let running = slot.running.take().and_then(Rc::into_inner);
        if let Some(session) = running.and_then(|running| Rc::into_inner(running.session)) {
            session.close().await;
        }
    }

    /// Shows what differs from the lock, and returns the names of the tools that must not be
    /// called.
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
        // A tool that is new is not offered, so it cannot be called.
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

/// Why a server that takes too long to start is given up.
fn late() -> String {
    format!("it did not answer within {START:?}")
}

/// The tools that the tools file offers.
fn offered(server: &McpServer, mut tools: Vec<Definition>) -> Vec<Definition> {
    tools.retain(|tool| server.offers(&tool.tool));
    tools
}
