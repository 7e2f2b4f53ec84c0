//! A file that gets its name when it is complete.

use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file that is being written beside the one that it will replace. A full disk, a signal or a
/// second writer leaves the old file whole; of two writers the last to finish wins.
#[derive(Debug)]
pub(crate) struct LabelDraft {
    file: BufWriter<File>,
    /// Where it is, and the name that it gets. `None` for what is not an ordinary file (a pipe,
    /// /dev/stdout), which is written to directly.
    rename: Option<(PathBuf, PathBuf)>,
}

impl LabelDraft {
    /// Begins a file that will be `path`. A symbolic link is followed; permissions of a file that
    /// is replaced are kept.
    ///
    /// # Errors
    /// When the folder cannot be written.
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
            // The name of the file comes first, so that a draft that a killed process left explains
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

    /// Gives the file its name, once its bytes are on the disk.
    ///
    /// # Errors
    /// When the disk is full or broken; the old file is unchanged then.
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

/// Writes a file at once. A full disk leaves the old one as it was.
///
/// # Errors
/// When the file cannot be written.
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
            // It fails where somebody else removed the file, which is as good.
            let _ = std::fs::remove_file(draft);
        }
    }
}
