//! The journal: each start and each result is on disk before anything else happens, so that no call runs twice after a crash.

use anyhow::Context;
use event::Payload;
use event::payload;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file to which lines are appended and synced.
#[derive(Debug)]
pub struct Journal {
    file: File,
    name: String,
    /// Whether standard output is the same file: then lines are written there, and only synced here.
    is_stdout: bool,
}

impl Journal {
    /// Opens the file, and creates it if it is missing. A last line that was cut gets a line feed, so that the next line is separate.
    ///
    /// # Errors
    /// When it cannot be opened or written.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let open = || -> std::io::Result<(File, bool)> {
            let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
            let (meta, out) = (file.metadata()?, rustix::fs::fstat(std::io::stdout())?);
            let is_stdout = meta.dev() == out.st_dev && meta.ino() == out.st_ino;
            if meta.is_file() && meta.len() > 0 {
                let mut last = [0];
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
                if last != *b"\n" {
                    file.write_all(b"\n")?;
                }
            }
            Ok((file, is_stdout))
        };
        let (file, is_stdout) =
            open().with_context(|| format!("{name}: the journal cannot be used, check the path"))?;
        Ok(Journal { file, name, is_stdout })
    }

    /// Whether standard output is this very file.
    pub fn is_stdout(&self) -> bool {
        self.is_stdout
    }

    /// Appends the event and waits until it is on disk; where standard output is this file, waits for what was written there.
    ///
    /// # Errors
    /// When the disk is full or broken: nothing may run then.
    pub fn record<'p>(
        &mut self,
        payload: impl Into<Payload<'p>>,
        stream: Option<&str>,
        choice: u32,
    ) -> anyhow::Result<()> {
        let mut line = Vec::new();
        if !self.is_stdout {
            payload::line(&mut line, &payload.into(), stream, choice, None);
            line.push(b'\n');
        }
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .with_context(|| format!("{}: the journal cannot be written, free some space", self.name))
    }
}
