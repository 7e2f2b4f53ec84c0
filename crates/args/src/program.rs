//! How one command of this project starts another: as a file of its own, or as a part of the one
//! binary that has all commands (`bin/toolpipe`).

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Finds the `main` of a command by its name.
type FindMain = fn(&OsStr) -> Option<fn() -> ExitCode>;

/// The commands of this process, if it is the binary that has all of them.
static ALL: OnceLock<FindMain> = OnceLock::new();

/// States that this process is the binary that has all commands: it can run each that `find` has.
pub fn has_all_commands(find: FindMain) {
    ALL.get_or_init(|| find);
}

/// The `main` of the command `name`, if [`command`] leads to this program: a thread of this
/// process can run it.
pub fn main_of(name: &str) -> Option<fn() -> ExitCode> {
    let main = ALL.get()?(name.as_ref())?;
    let words = command(name);
    let id = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    (id(Path::new(&words[0]))? == id(&own_file()?)?).then_some(main)
}

/// The first words of the command line that runs the command `name` of this project: the file
/// beside this program, else this program where it has all commands, else `name` as `PATH` has it.
pub fn command(name: &str) -> Vec<OsString> {
    let own = own_file();
    let beside = own.as_ref().map(|path| path.with_file_name(name));
    match (beside.filter(|path| path.is_file()), own) {
        (Some(file), _) => vec![file.into()],
        (None, Some(own)) if ALL.get().is_some() => vec![own.into(), name.into()],
        _ => vec![name.into()],
    }
}

/// The first words of the command line that runs the command `name` again, which this process is.
pub fn again(name: &str) -> Vec<OsString> {
    match own_file() {
        Some(own) if ALL.get().is_some() => vec![own.into(), name.into()],
        Some(own) => vec![own.into()],
        None => vec![name.into()],
    }
}

fn own_file() -> Option<PathBuf> {
    std::env::current_exe().ok()
}
