//! Asks the user to confirm proposed labels.

use super::index::LabelIndex;
use super::seen::{self, SeenCalls};
use crate::read::ReadSettings;
use anyhow::{Context, Result};
use score::{Label, visible};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use tag::lint::Lint;

/// Maximum number of characters shown of a text.
const SHOWN: usize = 1500;

/// Asks on the terminal about each unconfirmed label of `index`. Each answer is written to the file
/// immediately, so no answer is lost.
///
/// # Errors
/// Fails if the process has no terminal, or if the index cannot be read or written.
pub(super) fn confirm(path: &Path, lint: &Lint) -> Result<()> {
    let mut index = LabelIndex::open(path)?;
    let open: Vec<(usize, Label)> = index
        .labels()?
        .into_iter()
        .filter(|(_, label)| label.has_tool_call.is_none())
        .collect();
    if open.is_empty() {
        stdio::message(
            "tc-eval",
            &format!("{}: every label is confirmed", path.display()),
        );
        return Ok(());
    }
    let mut terminal = ConfirmTerminal::open()?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let count = open.len();
    for (n, (line, label)) in (1..).zip(open) {
        let seen = one(&folder.join(&label.file), &label, lint);
        terminal.show(&format!("\n{n} of {count}: {}\n", heading(&label)))?;
        match &seen {
            Ok(seen) => terminal.show(&shown(seen))?,
            Err(e) => {
                terminal.show(&format!("  {}\n", visible(&format!("{e:#}"), SHOWN)))?;
                continue;
            }
        }
        match terminal.ask()? {
            Confirmation::Quit => break,
            Confirmation::Skip => {}
            Confirmation::Is(has_call) => {
                let mut members = vec![("has_tool_call", Value::Bool(has_call))];
                if !has_call {
                    members.push(("calls", Value::Array(Vec::new())));
                }
                if has_call && label.calls.is_empty() {
                    terminal.show(
                        "  Write its calls into the index by hand; the reading found none.\n",
                    )?;
                }
                index.set(line, members);
                index.write()?;
            }
        }
    }
    Ok(())
}

/// Reads the stream of a label again.
fn one(path: &Path, label: &Label, lint: &Lint) -> Result<SeenCalls> {
    seen::read(path, &ReadSettings::of_label(label)?, lint)?
        .pop()
        .context("the recording has no stream")
}

fn heading(label: &Label) -> String {
    let mut out = visible(&label.file, 300);
    if let Some(part) = label.part {
        out += &format!(", stream {part}");
    }
    for name in [&label.api, &label.provider, &label.model]
        .into_iter()
        .flatten()
    {
        out += " / ";
        out += &visible(name, 80);
    }
    out
}

/// Returns the stream as text for people, with hidden characters escaped for the terminal.
fn shown(seen: &SeenCalls) -> String {
    let mut out = String::new();
    let mut text = |what: &str, text: &str| {
        if !text.is_empty() {
            out += &format!("  {what}: {}\n", visible(text, SHOWN));
        }
    };
    text("text", &seen.before);
    for call in seen.calls() {
        let arguments = call
            .arguments
            .as_ref()
            .map_or("(cut or not JSON)", |json| json.get());
        text("call", &format!("{} {arguments}", call.name));
    }
    text("text after it", &seen.after);
    text("tags", &seen.tags().join(", "));
    out
}

enum Confirmation {
    Is(bool),
    Skip,
    Quit,
}

struct ConfirmTerminal {
    output: File,
    input: BufReader<File>,
}

impl ConfirmTerminal {
    fn open() -> Result<Self> {
        let open = || OpenOptions::new().read(true).write(true).open("/dev/tty");
        let missing = "--confirm needs a terminal to ask on; without one, write has_tool_call into the index by hand";
        Ok(ConfirmTerminal {
            output: open().context(missing)?,
            input: BufReader::new(open().context(missing)?),
        })
    }

    fn show(&mut self, text: &str) -> Result<()> {
        self.output
            .write_all(text.as_bytes())
            .context("the terminal")
    }

    fn ask(&mut self) -> Result<Confirmation> {
        loop {
            self.show(
                "  Does it call a tool that the client must run? [y]es, [n]o, [s]kip, [q]uit: ",
            )?;
            let mut line = String::new();
            if self.input.read_line(&mut line).context("the terminal")? == 0 {
                return Ok(Confirmation::Quit);
            }
            return Ok(match line.trim() {
                "y" | "yes" => Confirmation::Is(true),
                "n" | "no" => Confirmation::Is(false),
                "s" | "skip" => Confirmation::Skip,
                "q" | "quit" => Confirmation::Quit,
                // An empty line, or a word pasted by mistake, does not confirm the label.
                _ => continue,
            });
        }
    }
}
