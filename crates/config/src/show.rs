//! `--show-config`: each option, its value, and where that is from.

use crate::file::ConfigFile;
use crate::options::{KnownOption, Values};
use crate::resolve::{Configured, Origin};
use anyhow::Result;
use clap::Command;
use std::fmt::Write;
use stdio::Status;

/// A line for each option that has a value, and one for each model and each agent of the file.
pub(crate) fn lines(configured: &Configured, command: &Command) -> Result<Vec<[String; 3]>> {
    let mut lines = vec![];
    let path = ConfigFile::usual_path().map_or(
        "none: neither XDG_CONFIG_HOME nor HOME is set".to_owned(),
        |path| path.display().to_string(),
    );
    let state = if configured.file().is_some() {
        "read"
    } else {
        "no such file"
    };
    lines.push(["config".to_owned(), path, state.to_owned()]);
    for found in configured.all(command, configured.model(), false)? {
        let usual = &found.option.usual;
        let value = match &found.origin {
            Origin::Usual if usual.is_empty() || usual == "false" => continue,
            Origin::Usual => usual.clone(),
            _ => text(&found.option, &found.values),
        };
        lines.push([found.option.key(), value, found.origin.to_string()]);
        for (values, origin) in found.added.iter().rev() {
            lines.push([
                found.option.key(),
                text(&found.option, values),
                origin.to_string(),
            ]);
        }
    }
    if let Some(file) = configured.file() {
        for model in &file.models {
            let mut value = model.asked().to_owned();
            let fallbacks: Vec<_> = file
                .fallbacks(model)
                .iter()
                .map(|model| model.name.as_str())
                .collect();
            for (word, names) in [
                ("also", model.aliases.join(", ")),
                ("then", fallbacks.join(", ")),
            ] {
                if !names.is_empty() {
                    value += &format!(" ({word} {names})");
                }
            }
            lines.push([
                format!("models.{}", model.name),
                value,
                file.place_of(model),
            ]);
        }
        for agent in configured.agents() {
            let keys: Vec<_> = agent.options.keys().collect();
            lines.push([
                format!("agents.{}", agent.name),
                keys.join(", "),
                file.place_of_agent(agent),
            ]);
        }
    }
    Ok(lines)
}

fn text(option: &KnownOption, values: &Values) -> String {
    let text = |value: &Option<std::ffi::OsString>| {
        let text = value
            .as_ref()
            .map_or("true".into(), |value| value.to_string_lossy());
        match text.split_once(':') {
            Some((name, secret))
                if option.long == "header"
                    && redact::is_secret_header(name.trim())
                    && !secret.contains('$') =>
            {
                format!("{name}: [redacted]")
            }
            _ if option.long == "base-url" => redact::Redactor::default().url(&text),
            _ => text.into_owned(),
        }
    };
    let texts: Vec<_> = values.iter().map(text).collect();
    if texts.is_empty() {
        "false".to_owned()
    } else {
        texts.join(", ")
    }
}

/// Prints the lines with their columns below each other.
pub(crate) fn print(lines: &[[String; 3]]) -> Result<Status> {
    let lines: Vec<[String; 3]> = lines
        .iter()
        .map(|line| line.clone().map(|cell| visible(&cell)))
        .collect();
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let (first, second) = (width(0), width(1).min(40));
    let mut out = stdio::Output::new();
    for [key, value, origin] in &lines {
        out.put(format!("{key:first$}  {value:second$}  {origin}\n").as_bytes())?;
    }
    out.flush()?;
    Ok(Status::Done)
}

/// `text` on one line, with each hidden character as an escape.
fn visible(text: &str) -> String {
    let write = |c: char, out: &mut String| write!(out, "{}", c.escape_unicode());
    event::escaped(text, write).replace('\n', "\\n")
}
