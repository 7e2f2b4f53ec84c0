//! Folders and files that go with their test.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty folder, which is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

impl Scratch {
    /// Makes a folder that nothing else has.
    pub fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolpipe-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.join(name)
    }

    /// Writes a file, and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.join(name), content).unwrap();
        self.join(name)
    }

    /// The content of the file `name`, or an empty text if the file does not exist.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.join(name)).unwrap_or_default()
    }

    /// The processes that run in it, as `PID name`, wherever they come from. Their numbers inside of
    /// a PID namespace differ from these.
    pub fn processes(&self) -> Vec<String> {
        let folder = self.canonicalize().unwrap();
        let all = fs::read_dir("/proc").unwrap().flatten();
        let here = all.filter(|process| {
            fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder))
        });
        here.map(|process| {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            format!("{} {}", process.file_name().display(), name.trim_end())
        })
        .collect()
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file in a folder of its own, which is removed with it.
#[derive(Debug)]
pub struct File {
    _folder: Scratch,
    path: String,
}

impl File {
    /// Writes a file of this name.
    pub fn new(name: &str, content: impl AsRef<[u8]>) -> File {
        let file = File::absent(name);
        fs::write(file.path(), content).unwrap();
        file
    }

    /// The path of a file that does not exist yet.
    pub fn absent(name: &str) -> File {
        let folder = Scratch::new();
        let path = folder.path(name).to_str().unwrap().to_owned();
        File {
            _folder: folder,
            path,
        }
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }
}
