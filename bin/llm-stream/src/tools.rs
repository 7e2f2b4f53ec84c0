//! A file of tools.

use anyhow::Result;
use std::path::Path;

/// The tools of the file at `path` in OpenAI's shape, as JSON on one line.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn read(path: &Path) -> Result<String> {
    Ok(args::file(path, tool::Tools::read)?.list(|_| true))
}
