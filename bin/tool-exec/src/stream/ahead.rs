//! Reading the input ahead, so that the answers that it holds already count before a call is looked
//! at.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Hands `look` every line of the inputs before they are read, if all of them are files on disk:
/// those can be read twice. Returns whether they are.
pub fn read_ahead(files: &[PathBuf], mut look: impl FnMut(&str)) -> bool {
    let stdin = [PathBuf::from("-")];
    let files = if files.is_empty() { &stdin[..] } else { files };
    let mut all = Vec::new();
    for path in files {
        let reader: Box<dyn Read> = if path == Path::new("-") {
            match Stdin::new() {
                Some(stdin) => Box::new(stdin),
                None => return false,
            }
        } else {
            // Looked at before it is opened: a pipe that is opened and closed again costs its
            // writer its reader.
            match path
                .metadata()
                .ok()
                .filter(|m| m.is_file())
                .and_then(|_| File::open(path).ok())
            {
                Some(file) => Box::new(file),
                None => return false,
            }
        };
        all.push(BufReader::new(reader));
    }
    let mut line = Vec::new();
    for mut reader in all {
        while matches!(reader.read_until(b'\n', &mut line), Ok(n) if n > 0) {
            if let Ok(line) = std::str::from_utf8(&line) {
                look(line.trim_end_matches(['\n', '\r']));
            }
            line.clear();
        }
    }
    true
}

/// Standard input that is a file on disk, read from its current offset without moving that.
struct Stdin {
    file: OwnedFd,
    at: u64,
}

impl Stdin {
    fn new() -> Option<Self> {
        let stdin = std::io::stdin();
        let meta = rustix::fs::fstat(&stdin).ok()?;
        if rustix::fs::FileType::from_raw_mode(meta.st_mode) != rustix::fs::FileType::RegularFile {
            return None;
        }
        let at = rustix::fs::tell(&stdin).ok()?;
        Some(Stdin {
            file: rustix::io::dup(&stdin).ok()?,
            at,
        })
    }
}

impl Read for Stdin {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = rustix::io::pread(&self.file, into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
