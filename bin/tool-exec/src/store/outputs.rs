//! Converts outputs to what the model reads: text with secrets redacted, no binary data, and only
//! the head and tail of a long output. The whole output goes to a file.

use ::store::PrivateFolder;
use redact::Redactor;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tool::{Status, ToolAnswer};

/// Converts outputs to text. All kinds of tools use it.
#[derive(Debug)]
pub(crate) struct Outputs {
    redactor: Redactor,
    /// How many bytes of an output the model gets, unless its tool sets its own limit.
    max: usize,
    /// How many bytes the folder of whole outputs may hold. 0 means no folder.
    limit: u64,
    /// Opened for the first output that needs it. `None` if the folder cannot be used.
    spill: OnceCell<Option<Spill>>,
}

impl Outputs {
    /// Returns a converter. `redactor` redacts the secrets of this process in every output. The
    /// model gets at most `max` bytes of an output. Whole outputs take up at most `limit` bytes on
    /// disk; 0 keeps none.
    pub(crate) fn new(redactor: Redactor, max: usize, limit: u64) -> Self {
        Outputs {
            redactor,
            max,
            limit,
            spill: OnceCell::new(),
        }
    }

    /// Returns the redactor of this process's secrets.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns how many bytes of an output the model gets, unless its tool sets its own limit.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Returns `bytes` with secrets redacted.
    pub(crate) fn redacted(&self, bytes: &[u8]) -> Vec<u8> {
        let mut clean = bytes.to_vec();
        self.redactor.pieces(&mut [&mut clean]);
        clean
    }

    /// Returns the start of a truncated output, without a trailing part that may be the start of a
    /// secret.
    pub(crate) fn settled<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[..self.redactor.settled(bytes)]
    }

    /// Returns the answer for the output `bytes`. The model gets at most `max` bytes, the limit of
    /// the tool; `None` means the default.
    pub(crate) fn readable(&self, bytes: &[u8], max: Option<usize>) -> ToolAnswer {
        let length = bytes.len() as u64;
        let bytes = self.redacted(bytes);
        if let Some(kind) = tool::binary(&bytes) {
            let kept = self.keep_redacted(&bytes, kind.extension);
            let text = format!(
                "[The output is {}, {} bytes{}]",
                kind.name,
                bytes.len(),
                place(kept.as_deref(), &bytes)
            );
            return ToolAnswer {
                output_bytes: length,
                truncated: true,
                binary: true,
                output_file: kept.ok(),
                ..ToolAnswer::new(Status::Success, text)
            };
        }
        let (text, replaced) = tool::text(&bytes);
        let mut output_file = None;
        let shown = tool::shorten(&text, max.unwrap_or(self.max), |left_out| {
            let kept = self.keep_redacted(&bytes, "txt");
            let place = place(kept.as_deref(), &bytes);
            output_file = kept.ok();
            format!("{left_out} bytes are left out here{place}")
        });
        ToolAnswer {
            output_bytes: length,
            truncated: matches!(shown, Cow::Owned(_)),
            replaced,
            output_file,
            ..ToolAnswer::new(Status::Success, shown)
        }
    }

    /// Writes a whole output, with secrets redacted, to a file with this extension; returns its
    /// path.
    ///
    /// # Errors
    /// The reason why the output is not kept, for the model.
    pub(crate) fn keep(&self, bytes: &[u8], extension: &str) -> Result<String, String> {
        self.keep_redacted(&self.redacted(bytes), extension)
    }

    fn keep_redacted(&self, bytes: &[u8], extension: &str) -> Result<String, String> {
        if self.limit == 0 {
            return Err("whole outputs are not kept here".to_owned());
        }
        let spill = self
            .spill
            .get_or_init(|| self.open())
            .as_ref()
            .ok_or("there is no folder for whole outputs")?;
        let path = spill.keep(bytes, extension).map_err(|e| e.to_string())?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn open(&self) -> Option<Spill> {
        let open = |folder: &Path| Spill::open(folder, self.limit);
        let folder = Spill::default_folder()
            .ok_or_else(|| anyhow::anyhow!("neither HOME nor XDG_CACHE_HOME is set"));
        folder
            .and_then(|folder| open(&folder))
            .inspect_err(|e| {
                let text = format!(
                    "whole outputs are not kept: {e:#}, or turn it off with --keep-outputs 0"
                );
                crate::say(&text);
            })
            .ok()
    }
}

/// Returns the note about where the whole output is. Its digest is in the path or in the text. A
/// command that prints a forged note cannot include the digest of its own output.
fn place(kept: Result<&str, &String>, bytes: &[u8]) -> String {
    match kept {
        Ok(path) => format!("; the whole output is in {path}"),
        Err(why) => format!(
            "; the whole output (sha256 {}) is not kept: {why}",
            tool::hex(&tool::sha256(bytes))
        ),
    }
}

// Whole outputs on disk, of which the model gets only a part. Each file is named by the SHA-256
// digest of its content.

/// The extension used if the caller's is invalid.
const ANY: &str = "bin";

/// The folder of whole outputs. When it exceeds its limit, the oldest files are removed.
#[derive(Debug)]
pub(crate) struct Spill {
    folder: PrivateFolder,
    /// How many bytes the folder may hold.
    limit: u64,
    /// How many bytes the folder holds: its size when last measured, plus what was written since.
    held: Cell<u64>,
}

impl Spill {
    /// Returns the folder: `$XDG_CACHE_HOME/toolpipe/outputs`, or `~/.cache/toolpipe/outputs`.
    /// Returns `None` if neither XDG_CACHE_HOME nor HOME is set.
    pub(crate) fn default_folder() -> Option<PathBuf> {
        PrivateFolder::default_path("outputs")
    }

    /// Opens the folder, creating it and its parents if missing. `limit` is the maximum size in
    /// bytes.
    ///
    /// # Errors
    /// If the folder is a symbolic link, belongs to another user, is writable by others, or cannot
    /// be created.
    pub(crate) fn open(folder: &Path, limit: u64) -> anyhow::Result<Self> {
        let folder = PrivateFolder::open(folder, true)?;
        let spill = Spill {
            folder,
            limit,
            held: Cell::new(0),
        };
        spill.held.set(spill.prune(limit));
        Ok(spill)
    }

    /// Writes `bytes` to a file and returns its path, which ends in `extension` (letters and
    /// digits). The caller must have redacted secrets.
    ///
    /// # Errors
    /// If writing fails, for example because the disk is full, or if the bytes exceed the folder's
    /// limit. No partial file is left.
    pub(crate) fn keep(&self, bytes: &[u8], extension: &str) -> std::io::Result<PathBuf> {
        let length = bytes.len() as u64;
        if length > self.limit {
            return Err(std::io::Error::other(format!(
                "it is longer than the {} bytes that may be kept",
                self.limit
            )));
        }
        let is_extension = (1..=16).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric());
        let name = format!(
            "{}.{}",
            tool::hex(&tool::sha256(bytes)),
            if is_extension { extension } else { ANY }
        );
        let name = OsStr::new(&name);
        if self.folder.size(name) == Some(length) {
            return Ok(self.folder.path().join(name)); // the same output was stored before
        }
        if self.held.get() + length > self.limit {
            // Frees more than needed, so that not every output causes a scan of the folder.
            self.held
                .set(self.prune((self.limit - length).min(self.limit / 4 * 3)));
        }
        let path = self.folder.write(name, bytes)?;
        self.held.set(self.held.get() + length);
        Ok(path)
    }

    /// Removes the oldest files until the folder holds at most `most` bytes. Returns its remaining
    /// size.
    fn prune(&self, most: u64) -> u64 {
        let mut entries = self.folder.entries();
        entries.sort();
        let mut held = entries.iter().map(|entry| entry.bytes).sum::<u64>();
        for entry in entries {
            if held <= most {
                break;
            }
            self.folder.remove(&entry.name);
            held -= entry.bytes;
        }
        held
    }
}

#[cfg(test)]
mod spill_tests {
    use super::*;
    use crate::command::scratch::{ScratchFolder, unused_name};

    #[test]
    fn an_output_is_kept_once_under_the_name_of_its_digest() {
        let path = unused_name();
        let _dir = ScratchFolder::make(&path).unwrap();
        let spill = Spill::open(&path.join("a/outputs"), 1 << 20).unwrap();
        let kept = spill.keep(b"abc", "txt").unwrap();
        // FIPS 180-2, appendix B.1.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(kept, path.join("a/outputs").join(format!("{digest}.txt")));
        assert_eq!(std::fs::read(&kept).unwrap(), b"abc");
        assert_eq!(spill.keep(b"abc", "txt").unwrap(), kept);
        for extension in ["", "../x", "a/b", "a b"] {
            assert!(
                spill
                    .keep(b"abc", extension)
                    .unwrap()
                    .ends_with(format!("{digest}.bin")),
                "{extension}"
            );
        }
        // A truncated file is written again.
        std::fs::write(&kept, b"ab").unwrap();
        assert_eq!(
            std::fs::read(spill.keep(b"abc", "txt").unwrap()).unwrap(),
            b"abc"
        );
    }

    #[test]
    fn the_oldest_outputs_make_room_for_new_ones() {
        let path = unused_name();
        let _dir = ScratchFolder::make(&path).unwrap();
        let spill = Spill::open(&path.join("o"), 1000).unwrap();
        let all: Vec<PathBuf> = (0..30u8)
            .map(|n| spill.keep(&[n; 100], "bin").unwrap())
            .collect();
        let held = |spill: &Spill| {
            spill
                .folder
                .entries()
                .iter()
                .map(|entry| entry.bytes)
                .sum::<u64>()
        };
        assert!(
            held(&spill) <= 1000 && held(&spill) >= 500,
            "{}",
            held(&spill)
        );
        assert!(all[29].exists() && !all[0].exists());
        assert!(
            spill
                .keep(&[0; 1001], "bin")
                .unwrap_err()
                .to_string()
                .contains("1000 bytes")
        );
        let smaller = Spill::open(&path.join("o"), 200).unwrap();
        assert!(held(&smaller) <= 200);
    }
}
