//! A corpus: iterates over the labels of an `index.ndjson`, and locates their recordings.

use anyhow::{Context, Result, anyhow, bail};
use score::Label;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum length of an index line in bytes. The largest part of a label is the tool list of a
/// request, so a longer line belongs to another kind of file.
const MAX_LINE: u64 = 16 << 20;

/// The file name of an index in its folder.
const INDEX: &str = "index.ndjson";

/// A recorded stream with its label.
#[derive(Clone, Debug)]
pub(crate) struct CorpusEntry {
    /// The index that names it, as the user typed it.
    pub corpus: Arc<str>,
    /// Its line in the index, from 1 on.
    pub line: u64,
    /// Its label.
    pub label: Label,
    /// Where its recording is.
    pub path: PathBuf,
}

/// Reads the labels of `corpus` in order, one line at a time. `corpus` is an index, the folder that
/// holds one, or `-` for an index on standard input. Recordings are relative to the folder of the
/// index, and to the current folder for `-`.
///
/// # Errors
/// When the index cannot be opened. A line that is not a label is an error in its place, and the
/// next line follows; a line of more than 16 MiB, and a failed read, are the last item.
pub(crate) fn entries(corpus: &Path) -> Result<Entries> {
    let name: Arc<str> = corpus.to_string_lossy().into();
    let (reader, folder): (Box<dyn Read + Send>, PathBuf) = if corpus == Path::new("-") {
        (Box::new(std::io::stdin()), PathBuf::new())
    } else {
        let index = if corpus.is_dir() {
            corpus.join(INDEX)
        } else {
            corpus.to_owned()
        };
        let file = File::open(&index).map_err(|e| missing(corpus, &index, &e))?;
        (
            Box::new(file),
            index.parent().map(Path::to_owned).unwrap_or_default(),
        )
    };
    let reader = BufReader::with_capacity(64 << 10, reader);
    Ok(Entries {
        name,
        folder,
        reader,
        buffer: Vec::new(),
        line: 0,
        has_ended: false,
    })
}

fn missing(corpus: &Path, index: &Path, e: &std::io::Error) -> anyhow::Error {
    let index = index.display();
    if corpus.is_dir() && e.kind() == std::io::ErrorKind::NotFound {
        return anyhow!(
            "{}: the folder holds no {INDEX}; make one with tc-eval label",
            corpus.display()
        );
    }
    anyhow!("{index}: {e}; check the path and its permissions")
}

/// Iterates over the labels of one corpus in order; see [`entries`].
pub(crate) struct Entries {
    name: Arc<str>,
    folder: PathBuf,
    reader: BufReader<Box<dyn Read + Send>>,
    /// The current line, in a reused buffer.
    buffer: Vec<u8>,
    line: u64,
    has_ended: bool,
}

impl Entries {
    /// Treats the labels as a part of the corpus in the folder `root`. Recordings are relative to
    /// `root`, which also names the corpus, so that all parts count as one corpus.
    pub(crate) fn of_root(self, root: &Path) -> Self {
        Entries {
            name: root.to_string_lossy().into(),
            folder: root.to_owned(),
            ..self
        }
    }

    /// Reads the next line into the buffer; returns `false` at the end.
    fn read(&mut self) -> Result<bool> {
        self.buffer.clear();
        let read = (&mut self.reader)
            .take(MAX_LINE + 1)
            .read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|e| anyhow!("{e}; check the path and its permissions"))?;
        if read as u64 > MAX_LINE {
            bail!(
                "longer than {} MiB; an index has one label a line",
                MAX_LINE >> 20
            );
        }
        // Some editors start a file with a byte order mark.
        if self.line == 1 && self.buffer.starts_with("\u{feff}".as_bytes()) {
            self.buffer.drain(..3);
        }
        Ok(read > 0)
    }

    fn entry(&self) -> Result<CorpusEntry> {
        let label: Label = serde_json::from_slice(&self.buffer)
            .map_err(|e| anyhow!("not a label: {}; see tc-eval label --help", reason(&e)))?;
        if label.file.is_empty() {
            bail!("the label names no file; write \"file\":\"PATH\"");
        }
        if label.id.is_empty() {
            bail!("the label has no id; write \"id\":\"NAME\"");
        }
        let path = self.folder.join(&label.file);
        Ok(CorpusEntry {
            corpus: Arc::clone(&self.name),
            line: self.line,
            label,
            path,
        })
    }
}

/// Returns the reason without serde's line number, which counts only within this label.
fn reason(e: &serde_json::Error) -> String {
    let text = e.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} at byte {}", e.column()),
        None => text,
    }
}

impl Iterator for Entries {
    type Item = Result<CorpusEntry>;

    fn next(&mut self) -> Option<Result<CorpusEntry>> {
        loop {
            if self.has_ended {
                return None;
            }
            self.line += 1;
            let item = match self.read() {
                Ok(false) => return None,
                Ok(true) if self.buffer.trim_ascii().is_empty() => continue,
                Ok(true) => self.entry(),
                Err(e) => {
                    self.has_ended = true;
                    Err(e)
                }
            };
            return Some(item.with_context(|| format!("{}, line {}", self.name, self.line)));
        }
    }
}
