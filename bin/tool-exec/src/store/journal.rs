//! The journal: each start and each result is on disk before anything else happens, so that no call
//! runs twice after a crash.

use super::appended::AppendedFile;
use event::{Payload, payload};
use std::io;

/// A file that holds starts and results alone.
#[derive(Debug)]
pub struct Journal(pub AppendedFile);

impl Journal {
    /// Appends the event and waits until it is on disk.
    ///
    /// # Errors
    /// When the disk is full or broken: nothing may run then.
    pub fn record(
        &mut self,
        payload: &Payload<'_>,
        stream: Option<&str>,
        choice: u32,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        payload::line(&mut line, payload, stream, choice, None);
        line.push(b'\n');
        self.0.append([&line[..]].into_iter())?;
        self.0.sync()
    }
}
