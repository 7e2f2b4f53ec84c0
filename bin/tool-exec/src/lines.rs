//! Blocks of bytes as the lines that they are.

use crate::input::Piece;
use event::{Event, Scanner, payload};
use stdio::{BadLine, BadLines, Failure, Filter};

/// One line of a block.
#[derive(Debug)]
pub enum Line<'a> {
    /// An event, and its bytes with the line feed.
    Event(Event<'a>, &'a [u8]),
    /// A blank line, with its line feed.
    Blank(&'a [u8]),
    /// What takes the place of a line that is no event: a `warning`.
    Bad(Vec<u8>),
}

/// Cuts pieces into lines, and counts them.
#[derive(Debug)]
pub struct Lines {
    filter: Filter,
    scanner: Scanner,
    number: u64,
    bad: BadLines,
}

impl Lines {
    /// Under the rules of `filter`: `--strict` and `--max-line`.
    pub fn new(filter: Filter) -> Self {
        Lines { filter, scanner: Scanner::default(), number: 0, bad: BadLines::default() }
    }

    /// The next line of `piece` after its first `at` bytes; `None` when there is none. Moves `at` past it.
    ///
    /// # Errors
    /// [`Failure::Strict`]: write out what came before the line.
    pub fn next<'a>(&'a mut self, piece: &'a Piece, at: &mut usize) -> Result<Option<Line<'a>>, Failure> {
        let Lines { filter, scanner, number, bad } = self;
        let mut bad_line = |file: &str, number: u64, start: &[u8], length: u64, what: &str| {
            let mut line = Vec::new();
            let found = BadLine { file, number, start, length, what };
            bad.warn(filter, found, |warning| payload::line(&mut line, warning, None, 0, None))?;
            line.push(b'\n');
            Ok(Some(Line::Bad(line)))
        };
        let too_long = "longer than --max-line";
        match piece {
            Piece::Lines(bytes, file) if *at < bytes.len() => {
                let rest = &bytes[*at..];
                let line = rest.split_inclusive(|b| *b == b'\n').next().unwrap_or(rest);
                *at += line.len();
                *number += 1;
                let bare = line.strip_suffix(b"\n").unwrap_or(line);
                if bare.len() > filter.max_line {
                    return bad_line(file, *number, bare, bare.len() as u64, too_long);
                }
                let Ok(text) = std::str::from_utf8(bare) else {
                    return bad_line(file, *number, bare, bare.len() as u64, "not UTF-8");
                };
                match scanner.read(text) {
                    Ok(event) => Ok(Some(Line::Event(event, line))),
                    Err(_) if bare.trim_ascii().is_empty() => Ok(Some(Line::Blank(line))),
                    Err(e) => bad_line(file, *number, bare, bare.len() as u64, &e.to_string()),
                }
            }
            Piece::TooLong(start, length, file) if *at == 0 => {
                *at = 1;
                *number += 1;
                bad_line(file, *number, start, *length, too_long)
            }
            Piece::Next => {
                *number = 0;
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}
