//! What a tools file and its lock file say together, and the commands that only look at servers:
//! `--list` and `--update-lock`.

use super::hub::HubClient;
use super::pool::Pool;
use super::{Backend, Confines, hub, session};
use crate::command::program;
use crate::{secrets, stream};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tool::mcp::{Lock, Servers, differences};
use tool::{FileError, Tools};
use toolbox::{LockFile, Toolbox, show};

/// The tools of a tools file, and its servers.
pub(crate) struct Setup {
    /// The tools: those of the file, and those of its servers that are locked.
    pub tools: Tools,
    /// The servers; none has been started.
    pub pool: Rc<Pool>,
}

/// What is done about tools that are not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unlocked {
    /// They are an error: no server whose tools nobody has accepted is used.
    Refuse,
    /// They will be shown.
    Show,
}

impl Setup {
    /// Reads a tools file and its lock file. What `confines` the servers is checked when they
    /// start.
    ///
    /// # Errors
    /// The first mistake in one of them; servers without locked tools, unless they are to be shown.
    pub(crate) fn read(
        toolbox: &Toolbox,
        lock: Option<&Path>,
        unlocked: Unlocked,
        confines: Confines,
    ) -> anyhow::Result<Setup> {
        let (mut list, mut servers) = toolbox.parse(Tools::read_beside_servers)?;
        let folder = &toolbox.folder;
        let name = || toolbox.name.clone();
        list.settle_folders(|cwd| program::settled(folder, cwd))
            .with_context(name)?;
        servers
            .settle_folders(|cwd| program::settled(folder, cwd))
            .map_err(anyhow::Error::msg)
            .with_context(name)?;
        let file = LockFile::new(lock, toolbox);
        let lock = match file.read() {
            _ if servers.list.is_empty() => None,
            Err(e) if unlocked == Unlocked::Refuse => return Err(e),
            read => read.ok().flatten(),
        };
        let missing = servers.list.iter().find(|server| {
            lock.as_ref()
                .is_none_or(|lock| lock.server(&server.name).is_none())
        });
        if let (Some(server), Unlocked::Refuse) = (missing, unlocked) {
            session::check()?;
            let name = &toolbox.name;
            bail!(
                "{name}: the tools of the server {:?} are not locked in {}; to review and accept them run {}",
                server.name,
                file.path.display(),
                file.update()
            );
        }
        let lock = lock.unwrap_or_default();
        add_tools(&mut list, &servers, &lock).with_context(name)?;
        for tool in list
            .iter()
            .filter(|tool| !tool.schema.unknown_types().is_empty())
        {
            let file = &toolbox.name;
            let name = &tool.name;
            let types = tool.schema.unknown_types().join(", ");
            let what = "has types that JSON Schema does not have, write string, number, \
                integer, boolean, object, array or null";
            crate::say(&format!(
                "{file}: the schema of {name:?} {what}; not validated: {types}"
            ));
        }
        let redactor = secrets::redactor(&list, &servers);
        let pool = Rc::new(Pool::new(servers, (lock, file), folder, confines, redactor));
        Ok(Setup { tools: list, pool })
    }

    /// The tools of a text, which has no servers.
    ///
    /// # Errors
    /// The first mistake in it.
    pub(crate) fn of_text(text: &str) -> anyhow::Result<Setup> {
        let tools = Tools::read(text)
            .context("the tools of the log cannot be read, name a tools file with --tools")?;
        let servers = Servers::default();
        let redactor = secrets::redactor(&tools, &servers);
        let none = (Lock::default(), LockFile::new(None, &Toolbox::default()));
        let confines = Confines {
            least: tool::SandboxKind::None,
            protected: vec![],
        };
        let pool = Pool::new(servers, none, Path::new("."), confines, redactor);
        Ok(Setup {
            tools,
            pool: Rc::new(pool),
        })
    }

    /// Where the servers are: with a hub if the environment names one, else this process starts
    /// them when they are needed.
    ///
    /// # Errors
    /// When the hub is gone or was started with other servers.
    pub(crate) fn backend(&self) -> anyhow::Result<Backend> {
        let servers = &self.pool.servers;
        let hub = if servers.list.is_empty() {
            None
        } else {
            stream::block_on(HubClient::find(&self.pool.hash()))?
        };
        if hub.is_none() && !servers.list.is_empty() {
            session::check()?;
        }
        Ok(hub.map_or_else(|| Backend::Own(Rc::clone(&self.pool)), Backend::Hub))
    }

    /// Compares the tools of all servers with the lock. Starts them, unless a hub has done that.
    ///
    /// # Errors
    /// A server that does not start, and tools that are not as they were locked, which are shown.
    pub(crate) fn verify(&self, backend: &Backend) -> anyhow::Result<()> {
        if let Backend::Hub(hub) = backend {
            let changes = stream::block_on(hub.check())?;
            changes.iter().for_each(|line| crate::say(line));
            return if changes.is_empty() {
                Ok(())
            } else {
                self.blocked()
            };
        }
        stream::block_on(async {
            let verified = self.start_verified().await;
            self.pool.close().await;
            verified
        })
    }

    /// Starts all servers, and runs a command with them; see [`hub::run`].
    ///
    /// # Errors
    /// A server that does not start, tools that are not as they were locked, and a command that
    /// does not start.
    pub(crate) fn hub(&self, command: &[PathBuf]) -> anyhow::Result<::stdio::Status> {
        stream::block_on(async {
            if let Err(e) = self.start_verified().await {
                self.pool.close().await;
                return Err(e);
            }
            hub::run(Rc::clone(&self.pool), command).await
        })
    }

    async fn start_verified(&self) -> anyhow::Result<()> {
        let changes = self.pool.changes(&self.pool.start_all().await?);
        show(&changes);
        if changes.is_empty() {
            Ok(())
        } else {
            self.blocked()
        }
    }

    fn blocked(&self) -> anyhow::Result<()> {
        let update = self.pool.file.update();
        bail!(
            "the tools of the servers differ from the lock file, so nothing runs; to accept the \
             changes above run {update}"
        )
    }

    /// Starts all servers, shows what has changed of their tools, and locks them as they are.
    ///
    /// # Errors
    /// A server that does not start, or a lock file that cannot be written.
    pub(crate) fn update_lock(&self, toolbox: &Toolbox) -> anyhow::Result<()> {
        stream::block_on(async {
            let all = self.pool.start_all().await;
            self.pool.close().await;
            let all = all?;
            let mut changes = self.pool.changes(&all);
            // Overwrites an unreadable lock file, but warns: the accepted tools are not compared.
            let locked = self.pool.file.read().unwrap_or_else(|e| {
                crate::say(&format!("{e:#}; all tools are shown as new"));
                None
            });
            let locked = locked.unwrap_or_default();
            for source in &toolbox.described {
                let before = locked.server(&source.name).map(|server| &*server.tools);
                changes.extend(differences(before.unwrap_or_default(), &source.tools));
            }
            show(&changes);
            let mut lock = Pool::lock_of(&all);
            lock.servers.extend(toolbox.described.iter().cloned());
            self.pool.file.write(&lock)?;
            let count: usize = lock.servers.iter().map(|server| server.tools.len()).sum();
            for (server, tools) in &all {
                let name = &server.name;
                let target = server.target();
                crate::say(&format!(
                    "locked: {} tools of {name} ({target})",
                    tools.len()
                ));
            }
            for source in &toolbox.described {
                crate::say(&format!(
                    "locked: {} tools of {}",
                    source.tools.len(),
                    source.name
                ));
            }
            let path = self.pool.file.path.display();
            crate::say(&format!(
                "{path}: {count} tools, {} of them changed",
                changes.len()
            ));
            Ok(())
        })
    }
}

/// Adds the locked tools of the servers to the list. A tool whose schema cannot be used is left
/// out, with a line for people.
fn add_tools(list: &mut Tools, servers: &Servers, lock: &Lock) -> Result<(), FileError> {
    for server in &servers.list {
        for definition in lock
            .server(&server.name)
            .into_iter()
            .flat_map(|locked| &locked.tools)
        {
            if !server.offers(&definition.tool) {
                continue;
            }
            match list.add(definition, server) {
                Err(e) if e.is_taken_name() => return Err(e),
                Err(e) => crate::say(&format!(
                    "a tool of the server {:?} is not offered: {e}",
                    server.name
                )),
                Ok(()) => {}
            }
        }
    }
    Ok(())
}
