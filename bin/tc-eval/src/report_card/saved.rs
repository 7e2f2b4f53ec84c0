//! Report cards in files.

use crate::draft::Draft;
use anyhow::{Context, Result, bail};
use score::deviation::CardLine;
use std::io::Write;
use std::path::Path;

/// Reads the lines of a saved card.
///
/// # Errors
/// When the file cannot be read, or a line is not one of a card.
pub fn read(path: &Path) -> Result<Vec<CardLine>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: write a card with --save {name}"))?;
    let mut lines = Vec::new();
    for (n, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let line: CardLine = serde_json::from_str(line)
            .with_context(|| format!("{name}, line {n}: not a line of a report card; write one with --save"))?;
        if line.api.is_empty() {
            bail!("{name}, line {n}: names no api; write a card with --save");
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Writes a card. A full disk leaves the old file as it was.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, card: &str) -> Result<()> {
    let unwritable =
        || format!("{}: cannot be written, and is as it was; free space or name another file", path.display());
    let mut draft = Draft::create(path).with_context(unwritable)?;
    draft.write_all(card.as_bytes()).with_context(unwritable)?;
    draft.finish().with_context(unwritable)
}
