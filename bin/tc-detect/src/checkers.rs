//! All checkers by their names: those of `detect`, and two that need more than events.

use crate::command::Command;
use crate::text::TextCheckers;
use anyhow::{Context, bail};
use detect::{CHECKERS, CallFilter, Factory};
use event::Event;
use std::rc::Rc;

/// Returns the factory of the checkers of a stream, from its first event.
pub type Checkers = Box<dyn Fn(&Event<'_>) -> Factory>;

/// The names of the adapters and how they decide.
const ADAPTERS: [(&str, &str); 2] = [
    ("tag", "full, and a call that is written as text counts, in any dialect"),
    ("cmd:COMMAND", "any command that reads events and exits 0 or 1"),
];

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    CHECKERS.iter().map(|row| (row.name, row.help)).chain(ADAPTERS)
}

/// The help of `--checker`.
pub fn help() -> String {
    let checkers: Vec<_> = all().map(|(name, help)| format!("{name} ({help})")).collect();
    format!("Who decides: {}", checkers.join(", "))
}

/// The checkers of that name; `calls` decides what counts as a call.
///
/// # Errors
/// When the name is unknown; the message lists all names.
pub fn find(name: &str, calls: &CallFilter) -> anyhow::Result<Checkers> {
    if let Some(command) = name.strip_prefix("cmd:") {
        if command.trim().is_empty() {
            bail!("--checker cmd: has no command, write one behind it, such as 'cmd:grep -q tool_call_delta'");
        }
        let command = command.to_owned();
        let factory: Factory = Rc::new(move || Box::new(Command::start(&command)));
        return Ok(Box::new(move |_| Rc::clone(&factory)));
    }
    let texts = (name == "tag").then(TextCheckers::new);
    let factory = detect::factory(if texts.is_some() { "full" } else { name }, calls).with_context(|| {
        let names: Vec<_> = all().map(|(name, _)| name).collect();
        format!("unknown checker '{name}', use one of: {}", names.join(", "))
    })?;
    Ok(match texts {
        None => Box::new(move |_| Rc::clone(&factory)),
        Some(texts) => Box::new(move |first| {
            let (texts, full, first) = (texts.clone(), Rc::clone(&factory), first.raw().into_owned());
            Rc::new(move || Box::new(texts.checker(&first, full())))
        }),
    })
}
