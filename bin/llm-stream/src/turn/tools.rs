//! The tools of a turn, and the dialect of its prompt.

use super::form::ToolsMode;
use anyhow::{Result, anyhow, bail};
use std::path::Path;
use tag::Dialect;

/// The dialect of prompts that name none: any model that follows instructions can write it.
const DEFAULT: &str = "tool-name-tag";

/// The tools of the file at `path` in OpenAI's shape, as JSON on one line.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn read(path: &Path) -> Result<String> {
    Ok(args::file(path, tool::Tools::read)?.list(|_| true))
}

/// The dialect of tools in the prompt: the one that was named, or the default.
///
/// # Errors
/// An unknown name, or a name in native mode, which has no use for it. `is_probe` allows that.
pub fn dialect(named: Option<&str>, mode: ToolsMode, is_probe: bool) -> Result<&'static Dialect> {
    if let (Some(name), ToolsMode::Native, false) = (named, mode, is_probe) {
        bail!("--dialect {name} is for tools in the prompt: add --tools-mode tag, or auto");
    }
    dialect_named(named.unwrap_or(DEFAULT)).map_err(|why| anyhow!("--dialect: {why}"))
}

/// The dialect of this name.
///
/// # Errors
/// An unknown name; the message tells how to list the names.
pub fn dialect_named(name: &str) -> Result<&'static Dialect> {
    Dialect::named(name).ok_or_else(|| anyhow!("unknown dialect {name:?}, see 'tag-parse --list-dialects'"))
}
