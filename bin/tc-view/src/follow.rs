//! `--follow`: a file or a session that grows, as the input of the view.
//!
//! A [`Source`] gives pieces of bytes for as long as there may be more. A thread writes them into a
//! pipe, and the view reads the pipe as it reads any other: there is one path for lines, signals and
//! a reader that leaves.

mod address;
mod file;
mod session;

use crate::args::Args;
use anyhow::{Result, anyhow, bail};
use event::View;
use event::payload::{self, Warning};
use file::GrowingFile;
use session::Session;
use std::io::{self, PipeWriter, Write, pipe};
use std::path::Path;
use std::thread::Builder;
use stdio::{Failure, Filter, FilterEnd, Input, message};

/// The name of this command in messages.
const COMMAND: &str = "tc-view";

/// The most bytes that are read at once, and the longest beginning of a line that is held back until
/// the rest of the line is there.
const BLOCK: usize = 64 * 1024;

/// Something that grows.
trait Source: Send {
    /// Waits for what comes next.
    ///
    /// # Errors
    /// One line that says why nothing more comes.
    fn next(&mut self) -> Result<Piece<'_>>;
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    /// Whole lines. A line longer than [`BLOCK`] comes in parts, and the last line may lack its
    /// line feed.
    Lines(&'a [u8]),
    /// The next lines do not continue the ones before: the code and the text of a warning.
    Anew(&'static str, String),
    /// Nothing comes at present, for this reason.
    Waiting(String),
    /// Nothing comes any more, for this reason.
    End(&'static str),
}

/// Shows the operand to `view`, and goes on as it grows. What has an end of its own, such as a FIFO,
/// is read to that end.
///
/// # Errors
/// One line for what cannot be followed, or cannot be followed any more.
pub(crate) fn follow(args: &Args, filter: &Filter, view: &mut dyn View) -> Result<FilterEnd> {
    let Some(mut source) = source(args)? else {
        return Ok(stdio::view(filter, view)?);
    };
    let limit = Failure::limit("the thread that follows cannot be started");
    let (reader, writer) = pipe().map_err(&limit)?;
    let draws = args.draws();
    let name = filter.files.first().map(|path| path.display().to_string());
    let thread = Builder::new()
        .spawn(move || forward(source.as_mut(), writer, draws))
        .map_err(&limit)?;
    let input = Input::followed(reader, &name.unwrap_or_default(), filter.max_line);
    let end = stdio::view_input(filter, input, view)?;
    // After a signal the thread still waits, and ends with the process.
    if end.signal.is_none() {
        let lost = |_| Err(anyhow!("the thread that follows has failed"));
        if let Some(reason) = thread.join().unwrap_or_else(lost)? {
            message(COMMAND, reason);
        }
    }
    Ok(end)
}

/// What to follow; `None` for what is read as any input is.
fn source(args: &Args) -> Result<Option<Box<dyn Source>>> {
    let path = match &args.files[..] {
        [] => return Ok(None),
        [path] => path,
        [_, further, ..] => bail!(
            "--follow {}: one file or session is followed at a time, follow the others with further commands",
            further.display()
        ),
    };
    if let Some(url) = address::url(path) {
        return Ok(Some(Box::new(Session::open(url, &args.service)?)));
    }
    if path == Path::new("-") {
        return Ok(None);
    }
    Ok(GrowingFile::open(path)?.map(|file| Box::new(file) as Box<dyn Source>))
}

/// Whether an operand is the address of a session, which only `--follow` reads.
pub(crate) fn is_url(path: &Path) -> bool {
    address::url(path).is_some()
}

/// Writes what comes into the pipe, until its end, whose reason it returns, or until nobody reads.
fn forward(
    source: &mut dyn Source,
    mut pipe: PipeWriter,
    draws: bool,
) -> Result<Option<&'static str>> {
    let mut is_line_end = true;
    loop {
        let written = match source.next()? {
            Piece::Lines(lines) => {
                is_line_end = lines.last().is_none_or(|byte| *byte == b'\n');
                pipe.write_all(lines)
            }
            Piece::Anew(code, text) => {
                let is_cut = !std::mem::replace(&mut is_line_end, true);
                pipe.write_all(if is_cut { b"\n" } else { b"" })
                    .and_then(|()| warn(&mut pipe, code, &text))
            }
            // A line that the view does not know of would be drawn over.
            Piece::Waiting(text) if draws && is_line_end => warn(&mut pipe, "waiting", &text),
            Piece::Waiting(text) => {
                message(COMMAND, &text);
                Ok(())
            }
            Piece::End(reason) => return Ok(Some(reason)),
        };
        // Where the view reads no more, the process ends.
        if written.is_err() {
            return Ok(None);
        }
    }
}

/// Writes a `warning` event.
fn warn(pipe: &mut PipeWriter, code: &str, text: &str) -> io::Result<()> {
    let mut line = Vec::new();
    let warning = Warning::new(COMMAND, code, text);
    payload::line(&mut line, &warning.into(), None, 0, None);
    line.push(b'\n');
    pipe.write_all(&line)
}
