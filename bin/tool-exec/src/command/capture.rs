//! The output of a command while it is read.

use redact::Redactor;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncReadExt};

/// One output of a command.
pub struct Capture {
    pipe: Option<Pin<Box<dyn AsyncRead>>>,
    /// What of it is kept.
    pub bytes: Vec<u8>,
    /// How much came, in bytes.
    pub seen: u64,
    max: usize,
}

impl Capture {
    /// Captures at most `max` bytes of `pipe`.
    pub fn new(pipe: Option<impl AsyncRead + 'static>, max: usize) -> Self {
        let pipe = pipe.map(|pipe| Box::pin(pipe) as Pin<Box<dyn AsyncRead>>);
        Capture { pipe, bytes: Vec::new(), seen: 0, max }
    }

    /// Whether more may come.
    pub fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads once. `true`: the command has written more than it may, and its output is not read any more.
    pub async fn read(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else { return false };
        match pipe.read_buf(&mut self.bytes).await {
            Ok(n) if n > 0 => self.seen += n as u64,
            _ => self.pipe = None,
        }
        let is_over = self.bytes.len() > self.max;
        if is_over {
            self.bytes.truncate(self.max);
            self.pipe = None;
        }
        is_over
    }

    /// Whether more came than is kept.
    pub fn was_cut(&self) -> bool {
        self.seen > self.bytes.len() as u64
    }
}

/// How much of an output `tool_progress` has shown, in bytes.
#[derive(Default)]
pub struct ProgressMark(usize);

impl ProgressMark {
    /// The whole characters that have come since the last call, without secrets. What may be the beginning of a secret waits for
    /// the rest of it.
    pub fn more(&mut self, output: &Capture, redactor: &Redactor) -> Option<String> {
        let rest = output.bytes.get(self.0..)?;
        let whole = match std::str::from_utf8(rest) {
            // A character that is not yet whole waits for its end.
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            _ => rest.len(),
        };
        let end = if output.is_open() { redactor.settled(&rest[..whole]) } else { whole };
        self.0 += end;
        (end > 0).then(|| redactor.text(&tool::text(&rest[..end]).0).into_owned())
    }
}
