//! Report cards in files.

use anyhow::{Context, Result, bail};
use score::deviation::CardLine;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The most bytes of a card. One has a few lines for each model.
const LIMIT: u64 = 64 << 20;

/// Reads the lines of a saved card.
///
/// # Errors
/// When the file cannot be read, or a line is not one of a card.
pub(super) fn read(path: &Path) -> Result<Vec<CardLine>> {
    let name = path.display();
    let missing = || format!("{name}: write a card with --save {name}");
    let mut text = String::new();
    let read = File::open(path)
        .and_then(|file| file.take(LIMIT + 1).read_to_string(&mut text))
        .with_context(missing)?;
    if read as u64 > LIMIT {
        bail!(
            "{name}: longer than {} MiB, so not a report card; write one with --save",
            LIMIT >> 20
        );
    }
    let mut lines = Vec::new();
    for (n, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let line: CardLine = serde_json::from_str(line).with_context(|| {
            format!("{name}, line {n}: not a line of a report card; write one with --save")
        })?;
        if line.key.api.is_empty() {
            bail!("{name}, line {n}: names no api; write a card with --save");
        }
        lines.push(line);
    }
    Ok(lines)
}
