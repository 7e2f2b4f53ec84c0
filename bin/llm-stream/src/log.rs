//! The log on standard input, which is the conversation so far.

use crate::args::Args;
use crate::out::Out;
use anyhow::Result;
use std::io::IsTerminal;
use stdio::{BadLine, BadLines, Block, Input, Signals};
use upstream::Conversation;

/// Reads standard input to its end; nothing when it is a terminal. Lines that are no events go on as warnings.
///
/// # Errors
/// Under `--strict` the first such line; failures of standard input and output.
pub fn read(args: &Args, signals: &Signals, out: &mut Out) -> Result<Conversation> {
    if std::io::stdin().is_terminal() {
        return Ok(Conversation::default());
    }
    let options = args.common.filter("llm-stream", vec![]);
    let mut input = Input::open(&[], options.max_line)?;
    let mut log = Log::default();
    while let Some(block) = input.block(Some(signals), &mut || Ok(()))? {
        match block {
            Block::Lines(lines) => {
                lines.split_inclusive(|b| *b == b'\n').for_each(|line| log.line(line, options.max_line))
            }
            Block::TooLong(start, length) => log.bad(start, length, TOO_LONG),
        }
    }
    let (conversation, problems) = Conversation::read(&log.text);
    let lines: Vec<&str> = log.text.lines().collect();
    for problem in problems {
        let line = usize::try_from(problem.line - 1).ok().and_then(|at| lines.get(at).copied()).unwrap_or_default();
        log.bad.push(Bad { number: problem.line, start: line.into(), length: line.len() as u64, what: problem.what });
    }
    log.bad.sort_by_key(|bad| bad.number);
    let mut told = BadLines::default();
    for Bad { number, start, length, what } in &log.bad {
        let bad = BadLine { file: "standard input", number: *number, start, length: *length, what };
        told.warn(&options, bad, |warning| out.event(warning))?;
    }
    Ok(conversation)
}

const TOO_LONG: &str = "longer than --max-line";

/// The lines so far. One that cannot be kept leaves an empty line, so that the numbers of the others stay right.
#[derive(Default)]
struct Log {
    text: String,
    lines: u64,
    bad: Vec<Bad>,
}

struct Bad {
    number: u64,
    start: Vec<u8>,
    length: u64,
    what: String,
}

impl Log {
    fn line(&mut self, line: &[u8], max_line: usize) {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        match std::str::from_utf8(line) {
            _ if bare.len() > max_line => self.bad(bare, bare.len() as u64, TOO_LONG),
            Err(_) => self.bad(bare, bare.len() as u64, "not UTF-8"),
            Ok(text) => {
                self.lines += 1;
                self.text.push_str(text);
            }
        }
    }

    fn bad(&mut self, start: &[u8], length: u64, what: &str) {
        self.lines += 1;
        self.text.push('\n');
        self.bad.push(Bad { number: self.lines, start: start.to_vec(), length, what: what.to_owned() });
    }
}
