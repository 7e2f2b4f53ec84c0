//! `--follow`: a growing file or session as the input of the view.
//!
//! A thread writes the output of a [`Source`] into a pipe, which the view reads like any other
//! input. A signal ends the source, which closes the pipe.

mod file;
#[cfg_attr(not(feature = "network"), path = "follow/session/absent.rs")]
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

/// The command name in messages.
const COMMAND: &str = "tc-view";

/// Maximum number of bytes read at once. The start of a longer line is forwarded before the line is
/// complete.
const BLOCK: usize = 64 * 1024;

/// A growing file or session.
trait Source: Send {
    /// Waits for the next piece.
    ///
    /// # Errors
    /// Fails with one line that says why the source can no longer be followed.
    fn next(&mut self) -> Result<Piece<'_>>;
}

/// A piece of a [`Source`].
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    /// Whole lines. A line longer than [`BLOCK`] arrives in parts, and the last line may lack its
    /// line feed.
    Lines(&'a [u8]),
    /// The next lines do not continue the previous ones. The fields are the code and the text of a
    /// warning.
    Restart(&'static str, String),
    /// The source has no output yet, for this reason.
    Waiting(String),
    /// The source has ended, for this reason. A file never ends.
    #[cfg_attr(not(feature = "network"), allow(dead_code))]
    End(&'static str),
    /// A signal stopped the command.
    Stopped,
}

/// Shows the operand in `view` as it grows. Standard input, a FIFO or a device is read to its end.
///
/// # Errors
/// Fails with one line that says why the operand cannot be followed, or can no longer be followed.
pub(crate) fn follow(args: &Args, filter: &Filter, view: &mut dyn View) -> Result<FilterEnd> {
    let Some(mut source) = source(args, filter)? else {
        return Ok(stdio::view(filter, view)?);
    };
    let limit = Failure::limit("the thread that follows cannot be started");
    let (reader, writer) = pipe().map_err(&limit)?;
    let draws = args.draws();
    let name = filter.files.first().map(|path| path.display().to_string());
    let thread = Builder::new()
        .spawn(move || forward(source.as_mut(), writer, draws))
        .map_err(&limit)?;
    let input = Input::of_pipe(reader, &name.unwrap_or_default(), filter.max_line);
    let end = stdio::view_input(filter, input, view)?;
    // After a signal there is nothing to report, and a host name lookup may still block the thread.
    if end.signal.is_none() {
        let lost = |_| Err(anyhow!("the thread that follows has failed"));
        if let Some(reason) = thread.join().unwrap_or_else(lost)? {
            message(COMMAND, reason);
        }
    }
    Ok(end)
}

/// Opens the operand; returns `None` if the input ends by itself and needs no following.
fn source(args: &Args, filter: &Filter) -> Result<Option<Box<dyn Source>>> {
    let path = match &args.files[..] {
        [] => return Ok(None),
        [path] if path == Path::new("-") => return Ok(None),
        [path] => path,
        [_, second, ..] => bail!(
            "--follow {}: one file or session is followed at a time, follow the others with further commands",
            second.display()
        ),
    };
    if let Some(url) = url(path) {
        return Ok(Some(Box::new(Session::open(url, &args.service, filter)?)));
    }
    Ok(GrowingFile::open(path, filter)?.map(|file| Box::new(file) as Box<dyn Source>))
}

/// Returns the operand as an http or https URL; `None` if it is not one.
fn url(operand: &Path) -> Option<&str> {
    let text = operand.to_str()?;
    let is_url = |scheme: &str| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    (is_url("http://") || is_url("https://")).then_some(text)
}

/// Whether an operand is the URL of a session, which only `--follow` reads.
pub(crate) fn is_url(path: &Path) -> bool {
    url(path).is_some()
}

/// Writes the pieces of the source into the pipe until the source ends, or the view stops reading.
/// Returns the reason if the source ended.
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
            Piece::Restart(code, text) => {
                let is_cut = !std::mem::replace(&mut is_line_end, true);
                pipe.write_all(if is_cut { b"\n" } else { b"" })
                    .and_then(|()| warn(&mut pipe, code, &text))
            }
            // The view would draw over a message on standard error.
            Piece::Waiting(text) if draws && is_line_end => warn(&mut pipe, "waiting", &text),
            Piece::Waiting(text) => {
                message(COMMAND, &text);
                Ok(())
            }
            Piece::End(reason) => return Ok(Some(reason)),
            Piece::Stopped => return Ok(None),
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_and_https_are_addresses() {
        assert_eq!(url(Path::new("HTTPS://h/x")), Some("HTTPS://h/x"));
        for file in ["log.ndjson", "http", "httpx://h", "./http://h", ""] {
            assert_eq!(url(Path::new(file)), None, "{file}");
        }
    }
}
