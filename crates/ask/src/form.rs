//! The forms of the request of one turn.

use super::args::ToolsModeArgs;
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use std::path::Path;
use tag::{DEFAULT, Dialect, Dialects};

/// The form of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestForm {
    /// Whether it asks for the whole answer at once, not for a stream.
    pub is_whole: bool,
    /// How the model learns of its tools.
    pub tools: ToolsForm,
}

/// How the model learns of its tools.
#[derive(Clone, Copy, Debug)]
pub enum ToolsForm {
    /// In the request's own member, if there are any.
    Native,
    /// In the prompt, in this dialect.
    Tag(&'static Dialect),
    /// Not at all; earlier calls are text of this dialect.
    Nothing(&'static Dialect),
}

/// What the user asks for. The comments are those of `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ToolsModeChoice {
    /// In the request's own field
    Native,
    /// In the system prompt, in a dialect's form
    Tag,
    /// Whichever the model takes: see 'Tools mode auto'
    Auto,
}

// The dialect of tools in the prompt.

/// The dialects of the table, and those of the user's file at `path`.
///
/// # Errors
/// One line that names the file and, of a mistake in it, the line.
pub fn dialects(path: Option<&Path>) -> Result<Dialects> {
    let mut dialects = Dialects::default();
    if let Some(path) = path {
        let text = args::file(path, |text| anyhow::Ok(text.to_owned()))?;
        dialects.add(&path.display().to_string(), &text)?;
    }
    Ok(dialects)
}

/// The dialect of tools in the prompt: the one that was named, or the only one of the user's file,
/// or the default.
///
/// # Errors
/// An unknown name, or a name in native mode, which has no use for it. `is_probe` allows that.
pub fn dialect(
    dialects: &Dialects,
    tools: &ToolsModeArgs,
    is_probe: bool,
) -> Result<&'static Dialect> {
    let named = tools.dialect.as_deref();
    if let (Some(name), ToolsModeChoice::Native, false) = (named, tools.tools_mode, is_probe) {
        bail!("--dialect {name} is for tools in the prompt: add --tools-mode tag, or auto");
    }
    match (named, dialects.own()) {
        (None, [own]) => Ok(own),
        _ => dialect_named(dialects, named.unwrap_or(DEFAULT))
            .map_err(|why| anyhow!("--dialect: {why}")),
    }
}

/// The dialect of this name.
///
/// # Errors
/// An unknown name; the message tells how to list the names.
pub fn dialect_named(dialects: &Dialects, name: &str) -> Result<&'static Dialect> {
    dialects
        .named(name)
        .ok_or_else(|| anyhow!("unknown dialect {name:?}, see 'tag-parse --list-dialects'"))
}
