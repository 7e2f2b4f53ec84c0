//! What the model reads of an output: no secret, no binary data, and of a long one the head and the
//! tail. The whole goes into a file.

use ::store::PrivateFolder;
use redact::Redactor;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tool::{Status, ToolAnswer};

/// Makes outputs readable. Every way to run a tool hands its outputs to it.
#[derive(Debug)]
pub(crate) struct Outputs {
    redactor: Redactor,
    /// How many bytes of an output the model reads, unless its tool has a limit of its own.
    max: usize,
    /// How many bytes the folder of whole outputs may hold; 0: there is no folder.
    limit: u64,
    /// Opened for the first output that needs it; `None` where it cannot be used.
    spill: OnceCell<Option<Spill>>,
}

impl Outputs {
    /// `redactor` takes the secrets of this process out of every output. The model reads at most
    /// `max` bytes of an output; whole outputs take up at most `limit` bytes of disk, 0 keeps none.
    pub(crate) fn new(redactor: Redactor, max: usize, limit: u64) -> Self {
        Outputs {
            redactor,
            max,
            limit,
            spill: OnceCell::new(),
        }
    }

    /// Replaces the secrets of this process in texts.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// How many bytes of an output the model reads, unless its tool has a limit of its own.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// `bytes` without secrets.
    pub(crate) fn redacted(&self, bytes: &[u8]) -> Vec<u8> {
        let mut clean = bytes.to_vec();
        self.redactor.pieces(&mut [&mut clean]);
        clean
    }

    /// The beginning of an output that was cut, without what may be the beginning of a secret at
    /// its end.
    pub(crate) fn settled<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[..self.redactor.settled(bytes)]
    }

    /// The answer that is the output `bytes` as the model reads it: at most `max` bytes of it, the
    /// limit of its tool.
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

    /// Keeps an output whole, without its secrets, in a file that ends in `extension`; returns the
    /// path.
    ///
    /// # Errors
    /// Why it is not kept, for the model.
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

/// Where the whole output is. Its digest is a part of the path, or is in the text: a command that
/// writes such a line itself cannot know the digest of what it writes.
fn place(kept: Result<&str, &String>, bytes: &[u8]) -> String {
    match kept {
        Ok(path) => format!("; the whole output is in {path}"),
        Err(why) => format!(
            "; the whole output (sha256 {}) is not kept: {why}",
            tool::hex(&tool::sha256(bytes))
        ),
    }
}

// Whole outputs on disk, of which the model reads only a part: each file is named by the SHA-256
// digest of what it holds.

/// The extension of a file where the caller's own cannot be one.
const ANY: &str = "bin";

/// The folder of whole outputs. When it holds more than its limit, the files that were written
/// first are removed.
#[derive(Debug)]
pub(crate) struct Spill {
    folder: PrivateFolder,
    /// How many bytes the folder may hold.
    limit: u64,
    /// How many it held when it was last looked at, and what was written since.
    held: Cell<u64>,
}

impl Spill {
    /// Where the folder is: `$XDG_CACHE_HOME/toolpipe/outputs`, else under `~/.cache`; `None` where
    /// neither variable is set.
    pub(crate) fn default_folder() -> Option<PathBuf> {
        PrivateFolder::default_path("outputs")
    }

    /// Opens the folder, and makes it with those above it if it is missing. `limit` is how many
    /// bytes it may hold.
    ///
    /// # Errors
    /// When it is a link, belongs to another user, others may write into it, or it cannot be made.
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

    /// Keeps `bytes` and returns the path of their file, which ends in `extension` (letters and
    /// digits). The caller has taken secrets out of the bytes.
    ///
    /// # Errors
    /// When the disk is full or broken, or the bytes are more than the folder may hold; nothing is
    /// left of the file.
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
            return Ok(self.folder.path().join(name)); // the same output was kept before
        }
        if self.held.get() + length > self.limit {
            // More than is needed, so that the folder is not looked through for each output.
            self.held
                .set(self.prune((self.limit - length).min(self.limit / 4 * 3)));
        }
        let path = self.folder.write(name, bytes)?;
        self.held.set(self.held.get() + length);
        Ok(path)
    }

    /// Removes the oldest files until the folder holds at most `most` bytes; returns how many it
    /// holds.
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
        // A file that was cut is written again.
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
