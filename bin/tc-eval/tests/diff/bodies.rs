//! The recorded bodies of `fixtures/streams`, and logs made of them.

use accumulate::{Accumulate, AccumulateOptions};
use api::{Api, End, Stream, StreamOptions};
use event::Collect;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// One recorded body.
pub(crate) struct Body {
    pub api: String,
    pub name: String,
    pub path: PathBuf,
}

/// All of them, in the order of their names, but for those whose log knows more than the body
/// shows: that the client offered no tools.
pub(crate) fn bodies() -> Vec<Body> {
    let mut out = Vec::new();
    for folder in paths(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams")) {
        let api = name(&folder);
        for path in paths(&folder)
            .into_iter()
            .filter(|path| !name(path).ends_with(".events.ndjson"))
        {
            let log = fs::read_to_string(path.with_extension("events.ndjson"));
            if log.is_ok_and(|log| !log.contains("\"tools_offered\":0")) {
                out.push(Body {
                    name: format!("{api}/{}", name(&path)),
                    api: api.clone(),
                    path,
                });
            }
        }
    }
    assert!(out.len() > 200, "{} bodies", out.len());
    out
}

fn paths(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

impl Body {
    /// The log of it that is recorded beside it.
    pub(crate) fn recorded(&self) -> String {
        fs::read_to_string(self.path.with_extension("events.ndjson"))
            .expect("recorded events")
            .trim_end()
            .to_owned()
    }

    /// Its events, with the deltas of calls, read in pieces of `size` bytes.
    pub(crate) fn deltas(&self, size: usize) -> Vec<String> {
        let api = Api::from_name(&self.api).expect("an API");
        let mut stream = Stream::new(api, StreamOptions::default());
        let mut out = Collect::default();
        for piece in fs::read(&self.path).expect("a body").chunks(size) {
            stream.push(piece, &mut out);
        }
        stream.finish(End::Eof, &mut out);
        out.lines
    }

    /// What `tc-accumulate --keep-deltas` writes of `lines`.
    pub(crate) fn merged(&self, lines: &[String]) -> Vec<String> {
        let options = AccumulateOptions {
            keep_deltas: true,
            partial: true,
            ..AccumulateOptions::default()
        };
        Collect::run(&mut Accumulate::new(Rc::new(options)), lines)
    }
}
