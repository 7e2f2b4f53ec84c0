//! The sandboxes of a run, from what was typed.

use crate::args::Args;
use crate::command::confine::Sandboxes;
use crate::command::confine::protect::{ProtectedFile, standard_files};
use crate::command::folder_of;
use crate::command::program::HUB;
use crate::mcp::{Confines, LockFile};
use crate::store::{Cache, Spill};
use std::path::PathBuf;
use tool::Tools;

/// What confines the commands of these tools.
///
/// # Errors
/// A sandbox that cannot be had, or a list that opens a file of this program.
pub fn sandboxes(args: &Args, tools: &Tools) -> anyhow::Result<Sandboxes> {
    Sandboxes::check(
        args.confining.sandbox,
        tools,
        &folder_of(&args.tools),
        &own_files(args),
    )
}

/// What confines the servers of tools that are programs.
pub fn confines(args: &Args) -> Confines {
    Confines {
        least: args.confining.sandbox,
        protected: own_files(args),
    }
}

/// The files of this program, which no command may write. Some of them need not exist yet.
fn own_files(args: &Args) -> Vec<ProtectedFile> {
    let keeping = &args.keeping;
    let mut all = vec![("the tools file", args.tools.clone())];
    let lists = [
        ("the log", keeping.log.as_slice()),
        ("the log", &keeping.resume),
        ("the journal", keeping.journal.as_slice()),
        ("the policy", args.permissions.policy.as_slice()),
    ];
    all.extend(
        lists
            .into_iter()
            .flat_map(|(what, paths)| paths.iter().map(move |path| (what, path.clone()))),
    );
    all.push((
        "the lock file",
        LockFile::new(args.servers.lock.as_deref(), &args.tools).path,
    ));
    let hub = std::env::var_os(HUB)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let cache = keeping
        .cache
        .clone()
        .or_else(Cache::default_folder)
        .filter(|_| !keeping.no_cache);
    let places = [
        ("the hub's socket", hub),
        ("the cache", cache),
        ("the folder of whole outputs", Spill::default_folder()),
    ];
    all.extend(
        places
            .into_iter()
            .filter_map(|(what, path)| Some((what, path?))),
    );
    all.into_iter()
        .map(|(what, path)| ProtectedFile { what, path })
        .chain(standard_files())
        .collect()
}
