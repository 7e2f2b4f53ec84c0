//! A shell that finds the built `tc-eval`, in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The fixtures of the project.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .canonicalize()
        .expect("the project has fixtures")
}

/// A new folder with the fixtures linked into it; it is removed with this value.
pub(crate) struct Folder(PathBuf);

/// What a script printed, and how it ended.
pub(crate) struct Ran {
    pub out: String,
    pub err: String,
    pub status: i32,
}

impl Folder {
    /// A folder for the test `name`.
    pub(crate) fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        std::os::unix::fs::symlink(fixtures(), path.join("fixtures"))
            .expect("a link to the fixtures");
        Folder(path)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("the file can be written");
    }

    /// The files and folders in it, by name.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the folder can be read");
        let mut names: Vec<_> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    /// Runs a script of bash here; it fails when any stage of a pipe fails.
    pub(crate) fn run(&self, script: &str) -> Ran {
        let bin = Path::new(env!("CARGO_BIN_EXE_tc-eval"))
            .parent()
            .expect("a folder of commands");
        let path = format!(
            "{}:{}",
            bin.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut shell = Command::new("bash");
        shell
            .args(["-o", "pipefail", "-c", script])
            .current_dir(&self.0)
            .env_clear();
        shell
            .env("PATH", path)
            .env("LC_ALL", "C")
            .env("HOME", &self.0)
            .env("NO_COLOR", "1");
        let output = shell.stdin(Stdio::null()).output().expect("bash runs");
        let [out, err] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ran {
            out,
            err,
            status: output.status.code().unwrap_or(-1),
        }
    }

    /// Runs a script that must end with 0 and returns what it prints.
    pub(crate) fn good(&self, script: &str) -> String {
        let Ran { out, err, status } = self.run(script);
        assert_eq!((status, err.as_str()), (0, ""), "{script}\n{out}");
        out
    }

    /// Runs a script that must end with 2 and one line of `tc-eval`, and returns the line.
    pub(crate) fn refused(&self, script: &str) -> String {
        let Ran { out, err, status } = self.run(script);
        assert_eq!(
            (status, err.lines().count()),
            (2, 1),
            "{script}\n{out}{err}"
        );
        assert!(err.starts_with("tc-eval: "), "{script}\n{err}");
        err
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
