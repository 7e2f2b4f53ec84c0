//! What a command writes to its standard error, on the standard error of this process.

use super::lines::{Line, Lines};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::mpsc::{SyncSender, sync_channel};
use stdio::Failure;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

/// How many lines wait for a slow reader of standard error; further ones are dropped, since no client may wait for it.
const WAITING: usize = 1024;
/// The longest line that is shown, in bytes. The rest of a longer line is left out.
const LINE: usize = 4096;
/// How much of each request is shown, in bytes.
const SHOWN: usize = 64 << 10;

/// The standard error of this process, for all commands.
#[derive(Clone, Debug)]
pub struct ErrorLog(SyncSender<String>);

/// The standard error of one command.
#[derive(Debug)]
pub struct CommandErrors {
    pipe: Option<ChildStderr>,
    lines: Lines,
    request: RequestLog,
}

/// What one request writes to standard error.
#[derive(Clone, Debug)]
pub struct RequestLog {
    log: ErrorLog,
    id: String,
    /// How much of it may still be shown, in bytes.
    left: usize,
}

impl ErrorLog {
    /// A log that is written by a thread of its own.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub fn new() -> Result<ErrorLog, Failure> {
        let (lines, taken) = sync_channel::<String>(WAITING);
        stdio::thread(move || {
            for line in taken {
                // The error is ignored: a log that nobody can read must not end the service.
                let _ = std::io::stderr().lock().write_all(line.as_bytes());
            }
        })?;
        Ok(ErrorLog(lines))
    }

    /// The log of the request `id`.
    pub fn of_request(&self, id: &str) -> RequestLog {
        RequestLog { log: self.clone(), id: id.to_owned(), left: SHOWN }
    }
}

impl RequestLog {
    /// Writes one line, in which no control character is raw.
    pub fn line(&mut self, text: &str) {
        if self.left == 0 {
            return;
        }
        let mut line = format!("tc-serve: request {}: ", self.id);
        // A line without text takes as much room as its beginning does.
        let length = line.len() + text.len() + 1;
        if length > self.left {
            self.left = 0;
            line.push_str("its command writes more to standard error than is shown\n");
        } else {
            self.left -= length;
            line.push_str(&event::escaped(text, |c, out| write!(out, "\\u{{{:x}}}", u32::from(c))));
            line.push('\n');
        }
        // The error is ignored: a full log drops lines.
        let _ = self.log.0.try_send(line);
    }
}

impl CommandErrors {
    /// Shows what comes out of `pipe`.
    pub fn new(pipe: ChildStderr, request: RequestLog) -> CommandErrors {
        CommandErrors { pipe: Some(pipe), lines: Lines::new(LINE), request }
    }

    /// Reads to the end. May be dropped and called again.
    pub async fn read(&mut self) {
        let mut block = [0; 4096];
        let CommandErrors { pipe, lines, request } = self;
        let mut take = |line: Line<'_>| {
            let (bytes, rest) = match line {
                Line::Whole(bytes) => (bytes, ""),
                Line::TooLong(bytes) => (bytes, " …"),
            };
            request.line(&format!("{}{rest}", String::from_utf8_lossy(bytes)));
        };
        while let Some(open) = pipe {
            match open.read(&mut block).await {
                Ok(count) if count > 0 => lines.push(&block[..count], &mut take),
                _ => {
                    *pipe = None;
                    lines.finish(&mut take);
                }
            }
        }
    }
}
