//! How one command of this project starts another: as a file of its own, or as a part of the one
//! binary that has all commands (`bin/toolpipe`).

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process is the binary that has all commands.
static HAS_ALL: AtomicBool = AtomicBool::new(false);

/// States that this process is the binary that has all commands: it can run each of them.
pub fn has_all_commands() {
    HAS_ALL.store(true, Ordering::Relaxed);
}

/// The first words of the command line that runs the command `name` of this project: the file
/// beside this program, else this program where it has all commands, else `name` as `PATH` has it.
pub fn command(name: &str) -> Vec<OsString> {
    let own = own_file();
    let beside = own.as_ref().map(|path| path.with_file_name(name));
    match (beside.filter(|path| path.is_file()), own) {
        (Some(file), _) => vec![file.into()],
        (None, Some(own)) if HAS_ALL.load(Ordering::Relaxed) => vec![own.into(), name.into()],
        _ => vec![name.into()],
    }
}

/// The first words of the command line that runs the command `name` again, which this process is.
pub fn again(name: &str) -> Vec<OsString> {
    match own_file() {
        Some(own) if HAS_ALL.load(Ordering::Relaxed) => vec![own.into(), name.into()],
        Some(own) => vec![own.into()],
        None => vec![name.into()],
    }
}

fn own_file() -> Option<PathBuf> {
    std::env::current_exe().ok()
}
