//! The input, read in a thread of its own while commands run.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use stdio::{Block, Failure, Input};
use tokio::sync::mpsc;

/// What the thread sends.
#[derive(Debug)]
pub enum Piece {
    /// Whole lines of the input of that name.
    Lines(Vec<u8>, Box<str>),
    /// The beginning of a line that is too long, and its length.
    TooLong(Vec<u8>, u64, Box<str>),
    /// An input has ended; lines are counted anew.
    Next,
    /// All inputs have ended.
    End,
    /// Reading failed, or the reader of standard output has gone.
    Failed(Failure),
}

/// An input that has ended.
pub fn nothing() -> mpsc::Receiver<Piece> {
    let (send, receive) = mpsc::channel(1);
    let _ = send.try_send(Piece::End); // there is room for one
    receive
}

/// Opens and reads the inputs in a thread. At most a few blocks wait, so a slow reader of standard output slows the input too.
/// After the end the thread waits for the reader of standard output to go away.
///
/// # Errors
/// When the thread cannot be started.
pub fn start(files: Vec<PathBuf>, max_line: usize) -> Result<mpsc::Receiver<Piece>, Failure> {
    let (send, receive) = mpsc::channel(4);
    stdio::thread(move || {
        let piece = match read(&files, max_line, &send) {
            Ok(()) if send.blocking_send(Piece::End).is_err() || !stdio::reader_gone(None) => return,
            Ok(()) => Piece::Failed(Failure::Gone),
            Err(failure) => Piece::Failed(failure),
        };
        let _ = send.blocking_send(piece); // nobody listens any more
    })?;
    Ok(receive)
}

/// Reads to the end, or until nobody listens any more.
fn read(files: &[PathBuf], max_line: usize, send: &mpsc::Sender<Piece>) -> Result<(), Failure> {
    let mut input = Input::open(files, max_line)?;
    loop {
        let name: Rc<str> = input.now();
        let piece = match input.block(None, &mut || Ok(()))? {
            Some(Block::Lines(lines)) => Piece::Lines(lines.to_vec(), name.as_ref().into()),
            Some(Block::TooLong(start, length)) => Piece::TooLong(start.to_vec(), length, name.as_ref().into()),
            None => Piece::Next,
        };
        if matches!(piece, Piece::Next) && !input.advance() {
            return Ok(());
        }
        if send.blocking_send(piece).is_err() {
            return Ok(());
        }
    }
}

/// Shows `look` every line of the inputs before they are read, if all of them are files on disk: those can be read twice. Gives whether
/// they were.
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
            // Looked at before it is opened: opening a pipe would take its writer's first reader away.
            match path.metadata().ok().filter(|m| m.is_file()).and_then(|_| File::open(path).ok()) {
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

/// Standard input that is a file on disk, read from where it stands without moving it.
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
        Some(Stdin { file: rustix::io::dup(&stdin).ok()?, at })
    }
}

impl Read for Stdin {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = rustix::io::pread(&self.file, into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
