//! Results on disk: a file for each, named by its key, that this user alone can read.

use anyhow::{Context, bail};
use event::Object;
use rustix::fs::OFlags;
use serde_json::Value;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tool::{Answer, Hash, Status};

/// The folder of results.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    written: u64,
}

impl Cache {
    /// Opens the folder, and makes it if it is not there.
    ///
    /// # Errors
    /// When it is a link, belongs to another user, or others may write into it.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let name = folder.display();
        match DirBuilder::new().recursive(false).mode(0o700).create(folder) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(e).with_context(|| format!("{name}: the cache cannot be made, make the folder above it"));
            }
            _ => {}
        }
        let meta = folder.symlink_metadata().with_context(|| format!("{name}: the cache cannot be used"))?;
        if !meta.is_dir() {
            bail!("{name}: the cache is not a folder (links are not followed), name another");
        }
        if meta.uid() != rustix::process::geteuid().as_raw() {
            bail!("{name}: the cache belongs to another user, name another");
        }
        if meta.mode() & 0o022 != 0 {
            bail!("{name}: others may write into the cache, run chmod 700 on it");
        }
        Ok(Cache { folder: folder.to_owned(), written: 0 })
    }

    /// The result kept under `key`, if it is not older than `life`. A file that is incomplete or that another user may have written does
    /// not count.
    pub fn get(&self, key: &Hash, life: Duration) -> Option<Answer> {
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).ok()?;
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(self.path(key)).ok()?;
        let meta = file.metadata().ok()?;
        if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
            return None;
        }
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let kept: Value = serde_json::from_str(&text).ok()?;
        let made = Duration::from_millis(kept.get("made")?.as_u64()?);
        let age = SystemTime::now().duration_since(UNIX_EPOCH + made).ok()?;
        if age > life {
            return None;
        }
        Some(Answer {
            output_bytes: kept.get("output_bytes")?.as_u64()?,
            replaced: kept.get("replaced")?.as_bool()?,
            exit_code: Some(0),
            cached: true,
            ..Answer::new(Status::Success, kept.get("output")?.as_str()?)
        })
    }

    /// Keeps a complete, successful result; any other one is passed over. The file gets its name when it is complete.
    ///
    /// # Errors
    /// When the disk is full or broken; nothing is left of the file.
    pub fn put(&mut self, key: &Hash, tool: &str, answer: &Answer) -> std::io::Result<()> {
        if answer.status != Status::Success || answer.truncated {
            return Ok(());
        }
        let mut text = Vec::new();
        let mut o = Object::open(&mut text);
        let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        o.int("made", i128::try_from(made).unwrap_or(0))
            .str("tool_name", tool)
            .int("output_bytes", answer.output_bytes);
        o.bool("replaced", answer.replaced).str("output", &answer.output);
        o.close();
        text.push(b'\n');
        self.written += 1;
        let draft = self.folder.join(format!(".{}-{}", std::process::id(), self.written));
        let write = || -> std::io::Result<()> {
            let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(&text)?;
            file.sync_data()?;
            std::fs::rename(&draft, self.path(key))
        };
        write().inspect_err(|_| {
            let _ = std::fs::remove_file(&draft);
        })
    }

    fn path(&self, key: &Hash) -> PathBuf {
        self.folder.join(format!("{}.json", tool::hex(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scratch::{HomeNames, Scratch};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn answer() -> Answer {
        Answer { output_bytes: 3, ..Answer::new(Status::Success, "é\n") }
    }

    #[test]
    fn what_was_kept_comes_back_until_it_is_too_old() {
        let path = HomeNames::new().next().unwrap();
        let _dir = Scratch::make(&path).unwrap();
        let mut cache = Cache::open(&path.join("c")).unwrap();
        cache.put(&[1; 32], "t", &answer()).unwrap();
        let got = cache.get(&[1; 32], Duration::from_secs(60)).unwrap();
        assert_eq!((got.output.as_str(), got.output_bytes, got.cached), ("é\n", 3, true));
        assert!(cache.get(&[1; 32], Duration::ZERO).is_none() && cache.get(&[2; 32], Duration::MAX).is_none());
        let kept = cache.path(&[1; 32]);
        assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.join("c").metadata().unwrap().permissions().mode() & 0o777, 0o700);
        // Only whole results of success are kept.
        for bad in [Answer::new(Status::Error, "x"), Answer { truncated: true, ..answer() }] {
            cache.put(&[3; 32], "t", &bad).unwrap();
        }
        assert_eq!(std::fs::read_dir(&cache.folder).unwrap().count(), 1);
    }

    #[test]
    fn what_others_could_have_planted_is_refused() {
        let path = HomeNames::new().next().unwrap();
        let _dir = Scratch::make(&path).unwrap();
        let real = path.join("c");
        let mut cache = Cache::open(&real).unwrap();
        cache.put(&[1; 32], "t", &answer()).unwrap();
        let (kept, link) = (cache.path(&[1; 32]), cache.path(&[2; 32]));
        symlink(&kept, link).unwrap();
        assert!(cache.get(&[2; 32], Duration::MAX).is_none(), "a link");
        std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(cache.get(&[1; 32], Duration::MAX).is_none(), "writable by others");
        std::fs::write(&kept, "{\"made\":").unwrap();
        assert!(cache.get(&[1; 32], Duration::MAX).is_none(), "half a file");
        let linked = path.join("l");
        symlink(&real, &linked).unwrap();
        assert!(Cache::open(&linked).unwrap_err().to_string().contains("links are not followed"));
        std::fs::set_permissions(&real, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(Cache::open(&real).unwrap_err().to_string().contains("chmod 700"));
    }
}
