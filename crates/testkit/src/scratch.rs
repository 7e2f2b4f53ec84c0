//! Temporary folders and files, removed when their test ends.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder, which is removed when this value is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

impl Scratch {
    /// Creates an empty folder with a unique name.
    pub fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolpipe-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.join(name)
    }

    /// Writes a file in the folder, and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.join(name), content).unwrap();
        self.join(name)
    }

    /// Reads the file `name`; returns an empty text if the file does not exist.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.join(name)).unwrap_or_default()
    }

    /// Returns the processes whose working directory is in the folder, as `PID name`, whatever
    /// started them. Inside a PID namespace their ids differ from these.
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

/// A file in a folder of its own; both are removed together.
#[derive(Debug)]
pub struct File {
    _folder: Scratch,
    path: String,
}

impl File {
    /// Creates a file with this name.
    pub fn new(name: &str, content: impl AsRef<[u8]>) -> File {
        let file = File::absent(name);
        fs::write(file.path(), content).unwrap();
        file
    }

    /// Returns the path of a file that does not exist yet.
    pub fn absent(name: &str) -> File {
        let folder = Scratch::new();
        let path = folder.path(name).to_str().unwrap().to_owned();
        File {
            _folder: folder,
            path,
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &str {
        &self.path
    }
}
