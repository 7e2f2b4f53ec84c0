//! The forms that the request of a turn can take.

use super::args::ToolsModeArgs;
use anyhow::{Context, Result, bail};
use std::path::Path;
use tag::{Dialect, Dialects};

/// The form of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestForm {
    /// Whether the whole response is requested at once instead of a stream. If the first request of
    /// a turn has this form, a stream is requested where the provider rejects it.
    pub is_whole: bool,
    /// How tools are presented to the model.
    pub tools: ToolsForm,
}

/// How tools are presented to the model.
#[derive(Clone, Copy, Debug)]
pub enum ToolsForm {
    /// In the request's own member for tools, if there are any tools.
    Native,
    /// In the prompt, in this dialect.
    Tag(&'static Dialect),
    /// The model gets no tools. Earlier calls are written as text in this dialect.
    Nothing(&'static Dialect),
}

// The dialect for tools in the prompt.

/// Returns the built-in dialects and those of the user's file at `path`.
///
/// # Errors
/// A one-line error that names the file and, if the file has a mistake, the line.
pub fn dialects(path: Option<&Path>) -> Result<Dialects> {
    let mut dialects = Dialects::default();
    if let Some(path) = path {
        let text = args::file(path, |text| anyhow::Ok(text.to_owned()))?;
        dialects.add(&path.display().to_string(), &text)?;
    }
    Ok(dialects)
}

/// Returns the dialect that the user names, or the dialect of a file that contains exactly one. The
/// model writes this dialect in every mode. Returns `None` for `auto`.
///
/// # Errors
/// If the name is unknown, or if the file has several dialects, since a prompt uses only one.
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
