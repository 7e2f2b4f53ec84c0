//! Standard input: text of the question, or with `--format events` a log.
//!
//! Only the option decides, never the content: text from elsewhere, such as a diff, may contain
//! lines that look like events, and must not become messages of the conversation.

use crate::args::Args;
use anyhow::{Context, bail};
use api::RecordingForm;
use event::{Raw, Scanner};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use stdio::{InputBlock, Patience};

/// The content of standard input.
#[derive(Debug)]
pub(crate) enum Given {
    /// Only white space, or not read.
    Nothing,
    /// Text of the question.
    Text(String),
    /// A file with the lines of a log, which is the conversation so far.
    Log(PathBuf),
}

/// Reads standard input to its end. A log is copied into a file in `folder`, because it may be
/// large.
///
/// # Errors
/// Fails if standard input cannot be read, and for text that is not UTF-8 or longer than
/// `--max-line`, or a log with a line that is not an event.
pub(crate) fn read(args: &Args, folder: &Path) -> anyhow::Result<Given> {
    if args.takes_log() {
        return log(args, folder);
    }
    let text = text(args)?;
    if text.as_deref().is_some_and(is_log) {
        stdio::message(
            "react",
            "standard input is a log, and becomes text of the question; with -f events it is the \
             conversation so far",
        );
    }
    Ok(text.map_or(Given::Nothing, Given::Text))
}

/// Whether every line of a text is an event or a chat message, and at least as many of them are
/// events of ours as not.
fn is_log(text: &str) -> bool {
    let mut scanner = Scanner::default();
    text.starts_with('{')
        && RecordingForm::of(text.as_bytes()) == RecordingForm::Log
        && text
            .lines()
            .all(|line| refusal(&mut scanner, line).is_none())
}

/// Returns why a line cannot be part of a log.
fn refusal(scanner: &mut Scanner, line: &str) -> Option<String> {
    let error = scanner.read(line).err()?;
    let is_message = || {
        let message = Raw::parse(line).ok()?;
        let role = message.get("role")?;
        (message.get("type").is_none() && role.is_str()).then_some(())
    };
    if line.trim_ascii().is_empty() || is_message().is_some() {
        return None;
    }
    Some(error.to_string())
}

/// Copies the log on standard input into a file.
///
/// # Errors
/// Fails at the first line that is not an event. Only a last line without a line feed may be one
/// that was cut; `llm-stream` warns of it, as of any log.
fn log(args: &Args, folder: &Path) -> anyhow::Result<Given> {
    let path = folder.join("standard-input.ndjson");
    let cannot = || path.display().to_string();
    let mut file = BufWriter::new(File::create(&path).with_context(cannot)?);
    let _patience = Patience::new("react", LOG_WAITS);
    let most = args.max_line()?;
    let mut input = stdio::Input::open(&[], most)?;
    let mut scanner = Scanner::default();
    let (mut number, mut has_events) = (0, false);
    while let Some(block) = input.block(None, &mut || Ok(()))? {
        let lines = match block {
            InputBlock::Lines(lines) => lines,
            InputBlock::TooLong(..) => bail!("standard input, line {}: {TOO_LONG}", number + 1),
        };
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            number += 1;
            let is_whole = line.ends_with(b"\n");
            if line.len() - usize::from(is_whole) > most {
                bail!("standard input, line {number}: {TOO_LONG}");
            }
            let what = match std::str::from_utf8(line) {
                Ok(line) => refusal(&mut scanner, line.trim_end_matches('\n')),
                Err(_) => Some("not UTF-8".to_owned()),
            };
            if let Some(what) = what.filter(|_| is_whole || !has_events) {
                bail!(
                    "standard input, line {number}: not an event ({what}); -f events reads a log, \
                     leave it out to ask about a text"
                );
            }
            has_events |= !line.trim_ascii().is_empty();
            file.write_all(line).with_context(cannot)?;
            if !is_whole {
                file.write_all(b"\n").with_context(cannot)?;
            }
        }
    }
    file.flush().with_context(cannot)?;
    Ok(match has_events {
        true => Given::Log(path),
        false => Given::Nothing,
    })
}

/// Whether standard input may have content: it is a pipe, a file or a socket, and neither a terminal
/// nor another device, such as `/dev/null`.
pub(crate) fn may_have_content() -> bool {
    let kind = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|stdin| File::from(stdin).metadata())
        .map(|meta| meta.file_type());
    kind.is_ok_and(|kind| !kind.is_char_device())
}

/// Reads text to its end; `None` if it contains only white space.
///
/// A pipe is silent both before a slow program writes and if no program ever writes to it. Any
/// timeout would be a guess, so this waits until the end, and prints a message meanwhile.
///
/// # Errors
/// Fails if standard input cannot be read, is not UTF-8, or is longer than `--max-line`.
pub(crate) fn text(args: &Args) -> anyhow::Result<Option<String>> {
    let _patience = Patience::new("react", TEXT_WAITS);
    ::args::text(&mut io::stdin().lock(), "standard input", args.max_line()?)
}

const TOO_LONG: &str = "longer than --max-line, raise it";

const TEXT_WAITS: &str = "still reading standard input to its end, as text of the question; add \
                          </dev/null if there is none";

const LOG_WAITS: &str = "still reading standard input to its end, as the conversation so far; add \
                         </dev/null if there is none";
