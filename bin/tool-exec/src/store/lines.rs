//! A file as lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

/// Hands `look` every line of `file` that is UTF-8: those of a file from its start, those of a pipe
/// as they come.
///
/// # Errors
/// When it cannot be read.
pub fn lines(file: &File, mut look: impl FnMut(&str)) -> io::Result<()> {
    let mut file = file;
    let _ = file.seek(SeekFrom::Start(0)); // fails for a pipe
    let (mut reader, mut line) = (BufReader::new(file), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        if let Ok(line) = std::str::from_utf8(&line) {
            look(line.trim_end_matches(['\n', '\r']));
        }
        line.clear();
    }
    Ok(())
}
