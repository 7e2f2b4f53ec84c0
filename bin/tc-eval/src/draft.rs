//! A file that is written under a temporary name until it is complete.

use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A draft, written beside the file that it will replace. A full disk, a signal or a second writer
/// leaves the old file intact; if two writers finish, the last one wins.
#[derive(Debug)]
pub(crate) struct LabelDraft {
    file: BufWriter<File>,
    /// The path of the draft, and the path that it will get. `None` if the target is not a regular
    /// file (a pipe, /dev/stdout), which is written directly.
    rename: Option<(PathBuf, PathBuf)>,
}

impl LabelDraft {
    /// Starts a draft for `path`. Symbolic links are followed; the permissions of a replaced file
    /// are kept.
    ///
    /// # Errors
    /// Fails if the folder is not writable.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let existing = target.metadata().ok();
        if existing.as_ref().is_some_and(|meta| !meta.is_file()) {
            let file = BufWriter::new(OpenOptions::new().write(true).open(&target)?);
            return Ok(LabelDraft { file, rename: None });
        }
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        for attempt in 0_u32.. {
            // The target's name comes first, so that a draft left by a killed process explains
            // itself.
            let mut draft = name.to_owned();
            draft.push(format!(".{}-{attempt}.draft", std::process::id()));
            let draft = target.with_file_name(draft);
            match OpenOptions::new().write(true).create_new(true).open(&draft) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists && attempt < 1000 => {}
                Err(e) => return Err(e),
                Ok(file) => {
                    let this = LabelDraft {
                        file: BufWriter::new(file),
                        rename: Some((draft, target)),
                    };
                    if let Some(meta) = existing {
                        this.file.get_ref().set_permissions(meta.permissions())?;
                    }
                    return Ok(this);
                }
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Renames the draft to its target, once its bytes are on the disk.
    ///
    /// # Errors
    /// Fails if the disk is full or broken; the old file is then unchanged.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((draft, target)) = &self.rename {
            self.file.get_ref().sync_all()?;
            std::fs::rename(draft, target)?;
            self.rename = None;
        }
        Ok(())
    }
}

/// Replaces a file atomically. If the disk is full, the old file stays unchanged.
///
/// # Errors
/// Fails if the file cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = LabelDraft::create(path).and_then(|mut draft| {
        draft.write_all(text.as_bytes())?;
        draft.finish()
    });
    written.with_context(|| {
        format!(
            "{}: cannot be written, and is as it was; free space or name another file",
            path.display()
        )
    })
}

impl Write for LabelDraft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for LabelDraft {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.rename {
            // Removal fails if another process has already removed the draft, which is fine.
            let _ = std::fs::remove_file(draft);
        }
    }
}
