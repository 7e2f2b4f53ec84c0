//! The recorded bodies in `fixtures/streams`, and ways to split their bytes.

use std::fs;
use std::path::{Path, PathBuf};

/// A recorded body in `fixtures/streams`.
pub struct Body {
    /// The name of the API, which is also the name of the folder.
    pub api: String,
    /// The name, as `API/FILE`.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
}

impl Body {
    /// Reads the body.
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("a recorded body can be read")
    }

    /// Returns the path of the file with the expected events.
    pub fn events(&self) -> PathBuf {
        self.path.with_extension("events.ndjson")
    }
}

/// Returns the folder of the recorded bodies.
fn bodies_root() -> PathBuf {
    std::env::var_os("BODIES").map_or_else(
        || crate::process::root().join("fixtures/streams"),
        PathBuf::from,
    )
}

/// Whether the bodies are the project's own, whose contents tests may rely on.
pub fn bodies_are_ours() -> bool {
    std::env::var_os("BODIES").is_none()
}

/// Returns all recorded bodies, sorted by name. `BODIES` sets another folder of bodies, with a
/// folder for each API: the laws that need no labels must hold for these, too.
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

/// Returns the folders in `root` with their names, sorted by name.
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

/// A pseudorandom number generator with a fixed seed.
pub struct Random(u64);

impl Random {
    /// Creates a generator; the same seed gives the same numbers.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 20) as usize % end
    }
}

/// Cuts `all` into pieces of pseudorandom lengths: many short ones, some long.
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
