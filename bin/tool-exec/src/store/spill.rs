//! Whole outputs on disk, of which the model reads only a part: each file is named by the SHA-256
//! digest of what it holds.

use super::folder::PrivateFolder;
use std::cell::Cell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The extension of a file where the caller's own cannot be one.
const ANY: &str = "bin";

/// The folder of whole outputs. When it holds more than its limit, the files that were written
/// first are removed.
#[derive(Debug)]
pub struct Spill {
    folder: PrivateFolder,
    /// How many bytes the folder may hold.
    limit: u64,
    /// How many it held when it was last looked at, and what was written since.
    held: Cell<u64>,
}

impl Spill {
    /// Where the folder is: `$XDG_CACHE_HOME/toolpipe/outputs`, else under `~/.cache`; `None` where
    /// neither variable is set.
    pub fn default_folder() -> Option<PathBuf> {
        PrivateFolder::default_path("outputs")
    }

    /// Opens the folder, and makes it with those above it if it is missing. `limit` is how many
    /// bytes it may hold.
    ///
    /// # Errors
    /// When it is a link, belongs to another user, others may write into it, or it cannot be made.
    pub fn open(folder: &Path, limit: u64) -> anyhow::Result<Self> {
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
    pub fn keep(&self, bytes: &[u8], extension: &str) -> std::io::Result<PathBuf> {
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
mod tests {
    use super::*;
    use crate::command::scratch::{HomeNames, Scratch};

    #[test]
    fn an_output_is_kept_once_under_the_name_of_its_digest() {
        let path = HomeNames::new().next().unwrap();
        let _dir = Scratch::make(&path).unwrap();
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
        let path = HomeNames::new().next().unwrap();
        let _dir = Scratch::make(&path).unwrap();
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
