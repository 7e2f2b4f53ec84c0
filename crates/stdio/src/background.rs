//! Input that a thread of its own reads, for commands that wait for more than their input.

use crate::{Block, Failure, Input, reader_gone, thread};
use std::path::PathBuf;

/// What the thread hands over.
#[derive(Debug)]
pub enum Piece {
    /// Whole lines of the input of that name.
    Lines(Vec<u8>, Box<str>),
    /// The beginning of a line that is too long, its length in bytes, and the name of its input.
    TooLong(Vec<u8>, u64, Box<str>),
    /// An input has ended, another one follows.
    Next,
    /// All inputs have ended.
    End,
    /// Reading failed, or the reader of standard output has gone.
    Failed(Failure),
}

/// Opens and reads the inputs in a thread, which hands each piece to `send` and waits there while
/// the command has no room for it. `send` returns whether more is wanted. After [`Piece::End`] the
/// thread waits until the reader of standard output goes away.
///
/// # Errors
/// [`Failure::Limit`] when the thread cannot be started; whatever else fails is a piece.
pub fn read_in_thread(
    files: Vec<PathBuf>,
    max_line: usize,
    mut send: impl FnMut(Piece) -> bool + Send + 'static,
) -> Result<(), Failure> {
    thread(move || {
        let failure = match read(&files, max_line, &mut send) {
            Ok(wanted) if !wanted || !send(Piece::End) || !reader_gone(None) => return,
            Ok(_) => Failure::Gone,
            Err(failure) => failure,
        };
        send(Piece::Failed(failure));
    })
}

/// Reads to the end; returns whether more was wanted until then.
fn read(
    files: &[PathBuf],
    max_line: usize,
    send: &mut impl FnMut(Piece) -> bool,
) -> Result<bool, Failure> {
    let mut input = Input::open(files, max_line)?;
    loop {
        let name = input.now();
        let piece = match input.block(None, &mut || Ok(()))? {
            Some(Block::Lines(lines)) => Piece::Lines(lines.to_vec(), Box::from(&*name)),
            Some(Block::TooLong(start, length)) => {
                Piece::TooLong(start.to_vec(), length, Box::from(&*name))
            }
            None => Piece::Next,
        };
        if matches!(piece, Piece::Next) && !input.advance() {
            return Ok(true);
        }
        if !send(piece) {
            return Ok(false);
        }
    }
}
