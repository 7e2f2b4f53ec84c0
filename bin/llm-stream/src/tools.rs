//! The tools that were named on the command line, and how the model learns of them.

use crate::args::{Args, Request, ToolsMode};
use anyhow::{Result, anyhow, bail};
use tag::Dialect;

/// The dialect of prompts that name none: any model that follows instructions can write it.
const DEFAULT: &str = "tool-name-tag";

/// The tools of `--tools` in OpenAI's shape, as JSON on one line.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn tools(typed: &Request) -> Result<Option<String>> {
    let Some(path) = &typed.tools else { return Ok(None) };
    let tools = ::args::file(path, tool::Tools::read)?;
    Ok(Some(tools.list(|_| true)))
}

/// The dialect in which the tools are told where they are told in the prompt.
///
/// # Errors
/// An unknown name, or one that native mode has no use for.
pub fn dialect(args: &Args) -> Result<&'static Dialect> {
    let typed = &args.request;
    let name = typed.dialect.as_deref().unwrap_or(DEFAULT);
    if typed.dialect.is_some() && typed.tools_mode == ToolsMode::Native && !args.auto.probe {
        bail!("--dialect {name} is for tools in the prompt: add --tools-mode tag, or auto");
    }
    named(name).map_err(|why| anyhow!("--dialect: {why}"))
}

/// The dialect of this name.
///
/// # Errors
/// Says where the names are to be seen.
pub fn named(name: &str) -> Result<&'static Dialect> {
    Dialect::named(name).ok_or_else(|| anyhow!("unknown dialect {name:?}, see 'tag-parse --list-dialects'"))
}
