//! Cached results on disk: one file per result, named by its key and readable only by this user.

use crate::stream::since_1970;
use ::store::PrivateFolder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tool::{Hash, Status, ToolAnswer};

/// The folder of cached results.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PrivateFolder,
}

impl Cache {
    /// Returns the default folder: `$XDG_CACHE_HOME/toolpipe/results`, or
    /// `~/.cache/toolpipe/results`. Returns `None` if neither XDG_CACHE_HOME nor HOME is set.
    pub(crate) fn default_folder() -> Option<PathBuf> {
        PrivateFolder::default_path("results")
    }

    /// Opens the folder, creating it if it is missing; with `parents`, its parent folders too.
    ///
    /// # Errors
    /// If the folder is a symbolic link, belongs to another user, is writable by others, or cannot
    /// be created.
    pub(crate) fn open(folder: &Path, parents: bool) -> anyhow::Result<Self> {
        Ok(Cache {
            folder: PrivateFolder::open(folder, parents)?,
        })
    }

    /// Returns the result stored under `key` if it is not older than `life` and its whole output
    /// still exists; otherwise removes its file. Files that are incomplete or may have been written
    /// by another user are ignored.
    pub(crate) fn get(&self, key: &Hash, life: Duration) -> Option<ToolAnswer> {
        let name = name(key);
        let answer = self
            .kept(&name)
            .filter(|kept| kept.is_valid(life))
            .map(KeptResult::answer);
        if answer.is_none() {
            self.folder.remove(&name);
        }
        answer
    }

    /// Reads the file with this name. Returns `None` if it is missing or incomplete.
    fn kept(&self, name: &OsStr) -> Option<KeptResult> {
        serde_json::from_slice(&self.folder.read(name)?).ok()
    }

    /// Returns statistics of the folder without changing it.
    pub(crate) fn stats(&self) -> CacheStats {
        let mut all = CacheStats::default();
        for entry in self.folder.entries() {
            let Some(kept) = self.kept(&entry.name) else {
                continue;
            };
            let is_expired = !kept.is_valid(Duration::from_millis(kept.life));
            all.all.count(entry.bytes, is_expired);
            all.tools
                .entry(kept.tool_name)
                .or_default()
                .count(entry.bytes, is_expired);
        }
        all
    }

    /// Stores a successful result; any other result is ignored. The file gets its name only once it
    /// is complete.
    ///
    /// # Errors
    /// If writing fails, for example because the disk is full. No partial file is left.
    pub(crate) fn put(
        &self,
        key: &Hash,
        tool: &str,
        life: Duration,
        answer: &ToolAnswer,
    ) -> std::io::Result<()> {
        if answer.status != Status::Success {
            return Ok(());
        }
        let kept = KeptResult {
            made: millis(since_1970()),
            life: millis(life),
            tool_name: tool.to_owned(),
            output_bytes: answer.output_bytes,
            truncated: answer.truncated,
            binary: answer.binary,
            replaced: answer.replaced,
            output: answer.output.clone(),
            output_file: answer.output_file.clone(),
        };
        let mut text = serde_json::to_vec(&kept)?;
        text.push(b'\n');
        self.folder.write(&name(key), &text).map(|_| ())
    }
}

/// Statistics of a whole cache or of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct CacheCounts {
    /// The number of results.
    pub entries: u64,
    /// The total size of their files, in bytes.
    pub bytes: u64,
    /// The number of expired results. Each is removed when its call is made again.
    pub expired: u64,
}

/// Statistics of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct CacheStats {
    /// The totals.
    #[serde(flatten)]
    pub all: CacheCounts,
    /// The results of each tool, by its name.
    pub tools: BTreeMap<String, CacheCounts>,
}

impl CacheCounts {
    fn count(&mut self, bytes: u64, is_expired: bool) {
        self.entries += 1;
        self.bytes += bytes;
        self.expired += u64::from(is_expired);
    }
}

/// A file of the cache. Times are in milliseconds.
#[derive(Debug, Deserialize, Serialize)]
struct KeptResult {
    /// When the result was written, since 1970.
    made: u64,
    /// How long the result was valid when it was written.
    #[serde(default)]
    life: u64,
    #[serde(default)]
    tool_name: String,
    output_bytes: u64,
    truncated: bool,
    binary: bool,
    replaced: bool,
    output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_file: Option<String>,
}

impl KeptResult {
    /// Returns the stored answer.
    fn answer(self) -> ToolAnswer {
        ToolAnswer {
            output_bytes: self.output_bytes,
            truncated: self.truncated,
            binary: self.binary,
            replaced: self.replaced,
            output_file: self.output_file,
            exit_code: Some(0),
            cached: true,
            ..ToolAnswer::new(Status::Success, self.output)
        }
    }

    /// Whether the result is not older than `life`, is not from the future (the clock may have been
    /// set back), and its output file, if any, exists.
    fn is_valid(&self, life: Duration) -> bool {
        let file = self.output_file.as_ref();
        let age = since_1970().checked_sub(Duration::from_millis(self.made));
        age.is_some_and(|age| age <= life) && file.is_none_or(|file| Path::new(file).is_file())
    }
}

fn name(key: &Hash) -> OsString {
    format!("{}.json", tool::hex(key)).into()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scratch::{ScratchFolder, unused_name};

    fn answer() -> ToolAnswer {
        ToolAnswer {
            output_bytes: 3,
            ..ToolAnswer::new(Status::Success, "é\n")
        }
    }

    #[test]
    fn what_was_kept_comes_back_until_it_is_too_old() {
        let path = unused_name();
        let _dir = ScratchFolder::make(&path).unwrap();
        let cache = Cache::open(&path.join("c"), false).unwrap();
        let life = Duration::from_secs(60);
        cache.put(&[1; 32], "t", life, &answer()).unwrap();
        let got = cache.get(&[1; 32], life).unwrap();
        assert_eq!(
            (got.output.as_str(), got.output_bytes, got.cached),
            ("é\n", 3, true)
        );
        assert!(cache.get(&[2; 32], Duration::MAX).is_none());
        cache
            .put(&[3; 32], "t", life, &ToolAnswer::new(Status::Error, "x"))
            .unwrap();
        assert_eq!(cache.folder.entries().len(), 1, "errors are not kept");
        // The recorded time decides, so the test need not wait. A time in the future counts as
        // expired, as after setting the clock back.
        let old = std::fs::read_to_string(path.join("c").join(name(&[1; 32]))).unwrap();
        for made in ["1", "99999999999999"] {
            let at = old.find("\"made\":").unwrap() + 7;
            let text = format!("{}{made}{}", &old[..at], &old[at + 13..]);
            cache
                .folder
                .write(&name(&[1; 32]), text.as_bytes())
                .unwrap();
            assert!(cache.get(&[1; 32], life).is_none(), "{made}");
            assert!(cache.folder.entries().is_empty(), "removed: {made}");
        }
    }

    #[test]
    fn a_file_that_is_incomplete_or_whose_output_is_gone_does_not_count() {
        let path = unused_name();
        let _dir = ScratchFolder::make(&path).unwrap();
        let cache = Cache::open(&path.join("c"), false).unwrap();
        cache.folder.write(&name(&[1; 32]), b"{\"made\":").unwrap();
        assert!(cache.get(&[1; 32], Duration::MAX).is_none(), "half a file");
        let file = path.join("whole.txt");
        std::fs::write(&file, "x").unwrap();
        let long = ToolAnswer {
            output_file: Some(file.to_str().unwrap().to_owned()),
            truncated: true,
            ..answer()
        };
        cache.put(&[1; 32], "t", Duration::MAX, &long).unwrap();
        assert_eq!(
            cache.get(&[1; 32], Duration::MAX).unwrap(),
            ToolAnswer {
                cached: true,
                exit_code: Some(0),
                ..long
            }
        );
        std::fs::remove_file(file).unwrap();
        assert!(cache.get(&[1; 32], Duration::MAX).is_none());
    }
}
