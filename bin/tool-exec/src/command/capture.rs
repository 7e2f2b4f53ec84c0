//! The output of a command while it is read.

use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncReadExt};
use tool::{CommandProgress, ProgressLines};

/// One output of a command.
pub struct Capture {
    pipe: Option<Pin<Box<dyn AsyncRead>>>,
    /// What of it is kept.
    pub bytes: Vec<u8>,
    /// How much came, in bytes.
    pub seen: u64,
    /// Why it could not be read to its end.
    pub failure: Option<std::io::Error>,
    /// The latest report of how far it has come, until it is taken.
    pub report: Option<CommandProgress>,
    /// Takes reports out, if it may hold some.
    reports: Option<ProgressLines>,
    max: usize,
}

impl Capture {
    /// Captures at most `max` bytes of `pipe`.
    pub fn new(pipe: impl AsyncRead + 'static, max: usize) -> Self {
        Capture {
            pipe: Some(Box::pin(pipe)),
            bytes: Vec::new(),
            seen: 0,
            failure: None,
            report: None,
            reports: None,
            max,
        }
    }

    /// As [`Capture::new`], without the lines that report how far the command has come.
    pub fn with_reports(pipe: impl AsyncRead + 'static, max: usize) -> Self {
        Capture {
            reports: Some(ProgressLines::default()),
            ..Capture::new(pipe, max)
        }
    }

    /// Whether more may come.
    pub fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads once. `true`: the command has written more than it may, and its output is not read any
    /// more.
    pub async fn read(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        match pipe.read_buf(&mut self.bytes).await {
            Ok(0) => self.pipe = None,
            Ok(n) => self.seen += n as u64,
            Err(e) => (self.pipe, self.failure) = (None, Some(e)),
        }
        if let Some(reports) = &mut self.reports {
            let (taken, report) = reports.take(&mut self.bytes, self.pipe.is_none());
            self.seen -= taken as u64;
            self.report = report.or(self.report.take());
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
