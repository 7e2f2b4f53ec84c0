//! The recorded bodies of `fixtures/streams`.

use std::fs;
use std::path::{Path, PathBuf};

/// One recorded body.
pub struct Body {
    /// The API; its folder has that name.
    #[allow(dead_code, reason = "not every test replays them")]
    pub api: String,
    /// `API/FILE`.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
}

impl Body {
    /// The file with its expected events.
    #[allow(dead_code, reason = "not every test compares them")]
    pub fn events(&self) -> PathBuf {
        self.path.with_extension("events.ndjson")
    }
}

/// All of them, in the order of their names.
pub fn bodies() -> Vec<Body> {
    let mut out = Vec::new();
    for folder in read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/streams")) {
        for path in read(&folder) {
            let file = last(&path);
            let is_body = [".sse", ".ndjson", ".json"]
                .iter()
                .any(|end| file.ends_with(end));
            if is_body && !file.ends_with(".events.ndjson") {
                out.push(Body {
                    api: last(&folder),
                    name: format!("{}/{file}", last(&folder)),
                    path,
                });
            }
        }
    }
    assert!(!out.is_empty(), "no recorded bodies");
    out
}

/// The paths in a folder, sorted; none for a file.
fn read(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

fn last(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
