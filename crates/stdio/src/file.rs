//! Reads a file that a person has named; formats the error if it cannot be read.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The maximum size of such a file in bytes. A device such as `/dev/zero` has no end.
const MOST: u64 = 64 << 20;

const REMEDY: &str = "check the path and its permissions";

/// Returns the error for a file that cannot be read, with its name and the remedy.
pub fn unreadable(path: &Path, error: &Error) -> Error {
    let text = format!("{}: {error}, {REMEDY}", path.display());
    Error::new(error.kind(), text)
}

/// Reads the text file at `path`. The maximum size is 64 MiB.
///
/// # Errors
/// If the file cannot be read, is larger than that, or is not UTF-8. The message includes the
/// remedy.
pub fn file_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes));
    read.map_err(|e| Error::new(e.kind(), format!("{e}, {REMEDY}")))?;
    if bytes.len() as u64 > MOST {
        let text = "longer than 64 MiB, name another file";
        return Err(Error::new(ErrorKind::FileTooLarge, text));
    }
    String::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "not UTF-8, write the file as UTF-8"))
}
