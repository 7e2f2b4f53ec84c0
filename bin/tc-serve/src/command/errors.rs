//! What a command writes to its standard error, on the standard error of this process.

use super::lines::{Line, Lines};
use crate::log::{Notice, Notices};
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

/// The longest line that is shown, in bytes. The rest of a longer line is left out.
const LINE: usize = 4096;
/// How much of each request is shown, in bytes.
const SHOWN: usize = 64 << 10;

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
    notices: Notices,
    id: Arc<str>,
    /// How much of it may still be shown, in bytes.
    left: usize,
}

impl RequestLog {
    /// The notices about the request `id`.
    pub fn new(notices: Notices, id: &str) -> RequestLog {
        RequestLog {
            notices,
            id: id.into(),
            left: SHOWN,
        }
    }

    /// Notes what is wrong with the command.
    pub fn line(&mut self, text: &str) {
        let id = Arc::clone(&self.id);
        self.write(
            text.len(),
            Notice::Warning {
                code: "command",
                message: text,
                request: Some(&id),
            },
        );
    }

    /// Shows a line that the command wrote.
    fn shown(&mut self, text: &str) {
        let id = Arc::clone(&self.id);
        self.write(text.len(), Notice::Command { request: &id, text });
    }

    fn write(&mut self, length: usize, notice: Notice<'_>) {
        if self.left == 0 {
            return;
        }
        // A line without text takes as much room as its beginning does.
        let length = "tc-serve: request : ".len() + self.id.len() + length + 1;
        if length <= self.left {
            self.left -= length;
            return self.notices.write(notice);
        }
        self.left = 0;
        let message = "its command writes more to standard error than is shown";
        self.notices.write(Notice::Warning {
            code: "command",
            message,
            request: Some(&self.id),
        });
    }
}

impl CommandErrors {
    /// Shows what comes out of `pipe`.
    pub fn new(pipe: ChildStderr, request: RequestLog) -> CommandErrors {
        CommandErrors {
            pipe: Some(pipe),
            lines: Lines::new(LINE),
            request,
        }
    }

    /// Reads to the end. May be dropped and called again.
    pub async fn read(&mut self) {
        let mut block = [0; 4096];
        let CommandErrors {
            pipe,
            lines,
            request,
        } = self;
        let mut take = |line: Line<'_>| {
            let (bytes, rest) = match line {
                Line::Whole(bytes) => (bytes, ""),
                Line::TooLong(bytes) => (bytes, " …"),
            };
            request.shown(&format!("{}{rest}", String::from_utf8_lossy(bytes)));
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
