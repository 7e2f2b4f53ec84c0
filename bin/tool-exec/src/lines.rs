//! Blocks of bytes as the lines that they are.

use crate::input::Piece;
use event::{Event, Scanner, payload};
use stdio::{BadLine, BadLines, Failure, Filter};

/// One line of a block.
#[derive(Debug)]
pub enum Line<'a> {
    /// An event, and its bytes with the line feed. In place of a line that is not an event this is its `warning`.
    Event(Event<'a>, &'a [u8]),
    /// A blank line, with its line feed.
    Blank(&'a [u8]),
}

/// Cuts pieces into lines, and counts them.
#[derive(Debug)]
pub struct Lines {
    filter: Filter,
    scanner: Scanner,
    number: u64,
    bad: BadLines,
    warning: Warning,
}

/// The `warning` that takes the place of a line.
#[derive(Debug, Default)]
struct Warning {
    line: Vec<u8>,
    scanner: Scanner,
}

impl Lines {
    /// Under the rules of `filter`: `--strict` and `--max-line`.
    pub fn new(filter: Filter) -> Self {
        let (scanner, bad, warning) = (Scanner::default(), BadLines::default(), Warning::default());
        Lines { filter, scanner, number: 0, bad, warning }
    }

    /// The next line of `piece` after its first `at` bytes; `None` when there is none. Moves `at` past it.
    ///
    /// # Errors
    /// [`Failure::Strict`]: write out what came before the line.
    pub fn next<'a>(&'a mut self, piece: &'a Piece, at: &mut usize) -> Result<Option<Line<'a>>, Failure> {
        let Lines { filter, scanner, number, bad, warning } = self;
        let (file, start, length, what) = match piece {
            Piece::Lines(bytes, file) if *at < bytes.len() => {
                let rest = &bytes[*at..];
                let line = rest.split_inclusive(|b| *b == b'\n').next().unwrap_or(rest);
                *at += line.len();
                *number += 1;
                let bare = line.strip_suffix(b"\n").unwrap_or(line);
                let what = match std::str::from_utf8(bare) {
                    _ if bare.len() > filter.max_line => TOO_LONG.to_owned(),
                    Err(_) => "not UTF-8".to_owned(),
                    Ok(text) => match scanner.read(text) {
                        Ok(event) => return Ok(Some(Line::Event(event, line))),
                        Err(_) if bare.trim_ascii().is_empty() => return Ok(Some(Line::Blank(line))),
                        Err(e) => e.to_string(),
                    },
                };
                (file, bare, bare.len() as u64, what)
            }
            Piece::TooLong(start, length, file) if *at == 0 => {
                *at = 1;
                *number += 1;
                (file, start.as_slice(), *length, TOO_LONG.to_owned())
            }
            Piece::Next => {
                *number = 0;
                return Ok(None);
            }
            _ => return Ok(None),
        };
        let line = BadLine { file, number: *number, start, length, what: &what };
        warning.line.clear();
        bad.warn(filter, line, |event| payload::line(&mut warning.line, event, None, 0, None))?;
        let text = std::str::from_utf8(&warning.line).unwrap_or_default();
        Ok(warning.scanner.read(text).ok().map(|event| Line::Event(event, text.as_bytes())))
    }
}

const TOO_LONG: &str = "longer than --max-line";
