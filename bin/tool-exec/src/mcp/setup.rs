//! The combination of a tools file and its lock file, and the commands that only inspect servers:
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

/// The tools and servers of a tools file.
pub(crate) struct Setup {
    /// The tools of the file, and the locked tools of its servers.
    pub tools: Tools,
    /// The servers, none of them started yet.
    pub pool: Rc<Pool>,
}

/// How to treat tools that are not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unlocked {
    /// Fail: no server is used before the user has accepted its tools.
    Refuse,
    /// Continue, because the tools will be shown to the user.
    Show,
}

impl Setup {
    /// Reads a tools file and its lock file. Whether the servers can be confined is checked when
    /// they start.
    ///
    /// # Errors
    /// If either file is invalid, or if a server has no locked tools and `unlocked` is
    /// [`Unlocked::Refuse`].
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

    /// Returns the tools in `text`, a tools file without servers.
    ///
    /// # Errors
    /// If the text is invalid.
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

    /// Returns the owner of the servers: the hub named in the environment, or this process, which
    /// starts servers on demand.
    ///
    /// # Errors
    /// If the hub has ended or was started with other servers.
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

    /// Compares the tools of all servers with the lock file, starting the servers unless a hub has
    /// done so.
    ///
    /// # Errors
    /// If a server does not start, or if its tools differ from the lock file; the differences are
    /// shown.
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

    /// Starts all servers and runs a command with them; see [`hub::run`].
    ///
    /// # Errors
    /// If a server does not start, if its tools differ from the lock file, or if the command does
    /// not start.
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

    /// Starts all servers, shows how their tools have changed, and locks the current tools.
    ///
    /// # Errors
    /// If a server does not start, or if the lock file cannot be written.
    pub(crate) fn update_lock(&self, toolbox: &Toolbox) -> anyhow::Result<()> {
        stream::block_on(async {
            let all = self.pool.start_all().await;
            self.pool.close().await;
            let all = all?;
            let mut changes = self.pool.changes(&all);
            // An unreadable lock file is overwritten, with a warning that the tools could not be
            // compared.
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

/// Adds the locked tools of the servers to the list. A tool with an unusable schema is reported and
/// omitted.
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
