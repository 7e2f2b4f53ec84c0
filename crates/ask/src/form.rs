//! The forms of the request of one turn.

use super::args::ToolsModeArgs;
use anyhow::{Context, Result, bail};
use std::path::Path;
use tag::{Dialect, Dialects};

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

/// The dialect that the user names, or that of a file which has one: the model writes it, whatever
/// the mode. `None` for `auto`.
///
/// # Errors
/// An unknown name, and several, since a prompt is in one dialect.
pub fn named_dialect(
    dialects: &Dialects,
    tools: &ToolsModeArgs,
) -> Result<Option<&'static Dialect>> {
    let chosen = dialects.chosen(tools.dialect.as_deref());
    let chosen = chosen.context("--dialect")?;
    if let [first, _, ..] = chosen[..] {
        bail!(
            "--dialect: name one, such as {}: a prompt is in one dialect",
            first.name
        );
    }
    Ok(chosen.first().copied())
}
