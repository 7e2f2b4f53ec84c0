//! An index file that is read as a whole, changed, and rewritten. Unchanged lines stay byte for
//! byte.

use crate::draft;
use anyhow::{Context, Result, bail};
use score::Label;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// An index file.
pub(super) struct LabelIndex {
    path: PathBuf,
    /// The content when the file was read; `None` if it did not exist.
    read: Option<String>,
    /// The lines to write: those of the file, with changes and new labels.
    lines: Vec<String>,
}

impl LabelIndex {
    /// Reads the index at `path`. A missing file is an empty index.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if a line is not a label.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let read = text(path)?;
        let lines = read
            .iter()
            .flat_map(|text| text.lines())
            .map(str::to_owned)
            .collect();
        let index = LabelIndex {
            path: path.to_owned(),
            read,
            lines,
        };
        index.labels()?;
        Ok(index)
    }

    /// Returns the labels with the numbers of their lines, from 0 on. Blank lines are skipped.
    ///
    /// # Errors
    /// Fails if a line is not a label.
    pub(super) fn labels(&self) -> Result<Vec<(usize, Label)>> {
        let mut out = Vec::new();
        for (n, line) in self
            .lines
            .iter()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let label: Label = serde_json::from_str(line).with_context(|| {
                format!(
                    "{}, line {}: not a label; fix or remove it",
                    self.path.display(),
                    n + 1
                )
            })?;
            if label.file.is_empty() {
                bail!(
                    "{}, line {}: the label names no file; fix or remove it",
                    self.path.display(),
                    n + 1
                );
            }
            out.push((n, label));
        }
        Ok(out)
    }

    /// Appends a label.
    pub(super) fn add(&mut self, label: &Label) {
        self.lines.push(line(label));
    }

    /// Sets members of the label in line `n`; the other members and their order stay.
    pub(super) fn set(&mut self, n: usize, members: Vec<(&str, Value)>) {
        let Some(line) = self.lines.get_mut(n) else {
            return;
        };
        if let Ok(Value::Object(mut label)) = serde_json::from_str(line) {
            label.extend(
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value)),
            );
            *line = event::safe_json(&Value::Object(label).to_string()).into_owned();
        }
    }

    /// Writes the index. If the disk is full, the old index stays unchanged.
    ///
    /// # Errors
    /// Fails if the file cannot be written. Also fails, without writing, if another process changed
    /// the file since it was read: the labels of that process would be lost.
    pub(super) fn write(&mut self) -> Result<()> {
        let name = self.path.display();
        if self.path.is_file() && text(&self.path)? != self.read {
            bail!(
                "{name}: another process changed it meanwhile, and nothing was written; run the command again"
            );
        }
        let mut out = self.lines.join("\n");
        out.push('\n');
        draft::write(&self.path, &out)?;
        self.read = Some(out);
        Ok(())
    }
}

/// Returns a label as a line of an index, with hidden characters escaped.
pub(super) fn line(label: &Label) -> String {
    // A struct of strings and JSON always has a form in JSON.
    let line = serde_json::to_string(label).unwrap_or_default();
    event::safe_json(&line).into_owned()
}

/// Returns the text of the file; `None` if the file does not exist, or if it is a device or a pipe,
/// which is only written.
fn text(path: &Path) -> Result<Option<String>> {
    if path.exists() && !path.is_file() {
        return Ok(None);
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e)
            .with_context(|| format!("{}: an index is a file of lines of JSON", path.display())),
    }
}
