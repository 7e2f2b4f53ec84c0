//! The text of a file that a person names, and the error if it cannot be read.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The most bytes of such a file. A device such as `/dev/zero` has no end.
const MOST: u64 = 64 << 20;

const REMEDY: &str = "check the path and its permissions";

/// The error for a file that cannot be read, with its name and the remedy.
pub fn unreadable(path: &Path, error: &Error) -> Error {
    let text = format!("{}: {error}, {REMEDY}", path.display());
    Error::new(error.kind(), text)
}

/// Reads the text file at `path`, which has at most 64 MiB.
///
/// # Errors
/// When the file cannot be read, is longer, or is not UTF-8. The text of the error has the remedy.
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
