//! The fixtures, and splits of their bytes.

use std::fs;
use std::path::{Path, PathBuf};

/// One recorded body of `fixtures/streams`.
pub struct Body {
    /// The API; its folder has that name.
    pub api: String,
    /// `API/FILE`.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
}

impl Body {
    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("a recorded body can be read")
    }

    /// The file with its expected events.
    pub fn events(&self) -> PathBuf {
        self.path.with_extension("events.ndjson")
    }
}

/// The folder of the recorded bodies.
fn bodies_root() -> PathBuf {
    std::env::var_os("BODIES").map_or_else(
        || crate::process::root().join("fixtures/streams"),
        PathBuf::from,
    )
}

/// Whether the bodies are the project's own, of which it is known which kinds there are.
pub fn bodies_are_ours() -> bool {
    std::env::var_os("BODIES").is_none()
}

/// All recorded bodies, in the order of their names. `BODIES` names another folder of bodies, with
/// a folder for each API, on which the laws that need no label hold, too.
pub fn bodies() -> Vec<Body> {
    let mut out = Vec::new();
    for (api, folder) in folders(&bodies_root()) {
        for (file, path) in entries(&folder) {
            let is_body = [".sse", ".ndjson", ".json"]
                .iter()
                .any(|end| file.ends_with(end));
            if is_body && !file.ends_with(".events.ndjson") {
                out.push(Body {
                    api: api.clone(),
                    name: format!("{api}/{file}"),
                    path,
                });
            }
        }
    }
    assert!(!out.is_empty(), "no recorded bodies");
    out
}

/// The folders of `root` with their names, sorted by these.
pub fn folders(root: &Path) -> Vec<(String, PathBuf)> {
    let mut all = entries(root);
    all.retain(|(_, path)| path.is_dir());
    all
}

fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let all = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let all = all.map(|entry| entry.unwrap());
    let mut all: Vec<_> = all
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
            )
        })
        .collect();
    all.sort();
    all
}

/// Numbers that a seed decides.
pub struct Random(u64);

impl Random {
    /// The same numbers for the same seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 20) as usize % end
    }
}

/// Cuts `all` into pieces of lengths that `seed` decides: many short ones, some long.
pub fn cut(all: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut random = Random::new(seed);
    let mut at = 0;
    let mut out = Vec::new();
    while at < all.len() {
        let number = random.next();
        let longest = [1, 3, 17, 64, 4096][(number >> 40) as usize % 5];
        let end = (at + (number >> 20) as usize % (longest + 1)).min(all.len());
        out.push(&all[at..end]);
        at = end;
    }
    out
}
