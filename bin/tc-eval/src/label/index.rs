//! An index that is read whole, changed and written again. Lines that no change concerns stay byte
//! for byte.

use crate::draft;
use anyhow::{Context, Result, bail};
use score::Label;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// An index file.
pub(super) struct LabelIndex {
    path: PathBuf,
    /// The file as it was read; `None` if it did not exist.
    read: Option<String>,
    /// The lines of the file, of which some are new or changed.
    lines: Vec<String>,
}

impl LabelIndex {
    /// Reads the index at `path`. An index that does not exist is empty.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is not a label.
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

    /// The labels with the numbers of their lines, from 0 on. Blank lines have no label.
    ///
    /// # Errors
    /// When a line is not a label.
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

    /// Sets members of the label in line `n`; all other members stay, in their order.
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

    /// Writes the index. A full disk leaves the old one as it was.
    ///
    /// # Errors
    /// When the file cannot be written, or another process changed it since it was read: then
    /// nothing is written, so that no label of the other process is lost.
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

/// A label as a line of an index. Hidden characters are written as escapes.
pub(super) fn line(label: &Label) -> String {
    // A struct of strings and JSON always has a form in JSON.
    let line = serde_json::to_string(label).unwrap_or_default();
    event::safe_json(&line).into_owned()
}

/// The text of the file; `None` if the file does not exist yet, or is a device or a pipe, to which
/// the index is only written.
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
