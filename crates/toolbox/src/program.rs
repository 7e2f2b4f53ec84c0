//! A program as a tool: its description, and how its arguments reach it.

use crate::notation::Header;
use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How much of a program is searched for its comment block, in bytes.
const HEAD: u64 = 64 << 10;

/// The first bytes of a file.
fn head(path: &Path, length: u64) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(length).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether a file holds a JSON list or object, by its first character.
pub(crate) fn holds_json(path: &Path) -> std::io::Result<bool> {
    let head = head(path, 512)?;
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&head);
    Ok(head
        .trim_ascii_start()
        .first()
        .is_some_and(|first| b"[{".contains(first)))
}

/// The entries of the tools of the program at `path`.
///
/// # Errors
/// A program that has no description, or a mistake in it.
pub(crate) fn tools(path: &Path) -> anyhow::Result<Vec<Value>> {
    let head = head(path, HEAD)?;
    let text = String::from_utf8_lossy(&head);
    let header = match head.contains(&0) {
        true => None,
        false => Header::read(&text).map_err(|e| anyhow!("{e}"))?,
    };
    let header = header.context(
        "it has no description; write one at its top: # @describe TEXT, and a line # @option --NAME! TEXT for each argument",
    )?;
    let program = std::path::absolute(path)?;
    let program = program
        .to_str()
        .context("its path is not UTF-8, rename it")?;
    let name = match &header.name {
        Some(name) => name.clone(),
        None => name_of(path)?,
    };
    Ok(vec![json!({
        "name": name,
        "description": header.description,
        "parameters": header.schema(),
        "exec": header.exec(program),
    })])
}

/// The name of the tool of a program that has no other: that of its file, without its ending.
fn name_of(path: &Path) -> anyhow::Result<String> {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let name = stem.filter(|stem| {
        stem.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    });
    name.map(str::to_owned).context(
        "the file's name is not one for a tool (A-Z a-z 0-9 _ -), write # @meta name NAME in its comment block",
    )
}
