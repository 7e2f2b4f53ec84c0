//! The log on standard input, which is the conversation so far.

use anyhow::{Result, bail};
use event::payload::Warning;
use std::io::IsTerminal;
use stdio::{Block, Failure, Input, Signals};
use upstream::Conversation;

use crate::out::Out;

/// How much of a bad line its warning carries, in bytes.
const CARRIED: usize = 64 * 1024;

/// Reads standard input to its end; nothing when it is a terminal. Lines that are no events go on as warnings.
///
/// # Errors
/// Under `strict` the first such line; failures of standard input and output.
pub fn read(max_line: usize, strict: bool, signals: &Signals, out: &mut Out) -> Result<Conversation> {
    if std::io::stdin().is_terminal() {
        return Ok(Conversation::default());
    }
    let mut input = Input::open(&[], max_line)?;
    let mut log = Vec::new();
    let mut long = vec![];
    while let Some(block) = input.block(Some(signals), &mut || Ok(()))? {
        match block {
            Block::Lines(lines) => log.extend_from_slice(lines),
            Block::TooLong(start, length) => {
                let line = line_feeds(&log) + 1;
                long.push((line, String::from_utf8_lossy(start).into_owned(), length));
                log.push(b'\n'); // an empty line in its place keeps the numbers right
            }
        }
    }
    let text = String::from_utf8_lossy(&log);
    let (conversation, problems) = Conversation::read(&text);
    for (line, start, length) in long {
        bad(line, "longer than --max-line", &start, length, strict, out)?;
    }
    for problem in problems {
        let at = usize::try_from(problem.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let line = text.lines().nth(at).unwrap_or_default();
        bad(problem.line, &problem.what, line, line.len() as u64, strict, out)?;
    }
    Ok(conversation)
}

fn line_feeds(log: &[u8]) -> u64 {
    log.iter().filter(|b| **b == b'\n').count() as u64
}

fn bad(line: u64, what: &str, raw: &str, length: u64, strict: bool, out: &mut Out) -> Result<()> {
    if strict {
        let failure = Failure::Strict { file: "standard input".to_owned(), line, what: what.to_owned() };
        bail!(failure);
    }
    let mut end = raw.len().min(CARRIED);
    while !raw.is_char_boundary(end) {
        end -= 1;
    }
    stdio::message("llm-stream", &format!("standard input, line {line}: not a message ({what}), passed over"));
    out.event(&Warning {
        source: "llm-stream",
        code: "not_an_event",
        message: &format!("line {line} of standard input is not an event: {what}"),
        raw: Some(&raw[..end]),
        raw_bytes: (end as u64 != length).then_some(length),
        line: Some(line),
        ..Warning::default()
    });
    Ok(())
}
