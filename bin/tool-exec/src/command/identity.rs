//! What a command is, for the key of its result: the files that really run and what they find
//! around them. A result counts only where all of it is the same.

use super::program;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The content of a program counts up to this length, in bytes; of a longer one its size and times
/// do.
const HASHED: u64 = 1 << 20;

/// The program, the files that its command line names, the folder it runs in, and its environment
/// but for what differs from call to call. `names` are the variables that its tool lets through.
pub fn identity(program: &Path, argv: &[String], folder: &Path, names: &[String]) -> Vec<Vec<u8>> {
    let mut all = vec![
        folder
            .canonicalize()
            .unwrap_or_else(|_| folder.to_owned())
            .as_os_str()
            .as_bytes()
            .to_vec(),
    ];
    all.push(file(program, HASHED).unwrap_or_default());
    // A script that an interpreter is to run, or a file that it is to read.
    for item in argv.iter().skip(1) {
        let after = item.split_once('=').map(|(_, value)| value); // of `--file=NAME`
        all.extend(
            [Some(item.as_str()), after]
                .map(|name| file(&folder.join(name?), 0))
                .map(Option::unwrap_or_default),
        );
    }
    let own = [OsStr::new("HOME"), OsStr::new("TMPDIR")]; // a new folder for each call
    for (name, value) in program::environment(names, Path::new(""), "") {
        let is_own = own.contains(&&*name) && value.is_empty();
        if !is_own && name != "TOOL_ARGUMENTS" {
            all.extend([name.as_bytes().to_vec(), value.as_bytes().to_vec()]);
        }
    }
    all
}

/// Where a file really is, what tells it from an earlier one, and the digest of its content if it
/// has at most `hashed` bytes. `None`: it is not a file.
fn file(path: &Path, hashed: u64) -> Option<Vec<u8>> {
    let real = path.canonicalize().ok()?;
    let meta = real.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut all = real.as_os_str().as_bytes().to_vec();
    let times = [
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec(),
    ];
    all.extend(format!("\0{} {} {} {times:?}", meta.dev(), meta.ino(), meta.size()).into_bytes());
    if meta.size() <= hashed
        && let Ok(content) = std::fs::read(&real)
    {
        all.extend(tool::sha256(&content));
    }
    Some(all)
}
