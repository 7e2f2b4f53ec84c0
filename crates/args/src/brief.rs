//! `-h`: the help on one screen. `--help` is the whole.

use clap::{Arg, Command};
use std::collections::BTreeMap;

/// Lines of the screen that `-h` fits, with two left for the prompt.
const LINES: usize = 48;
/// Columns of that screen.
const COLUMNS: usize = 80;
/// The heading of what every command has.
const COMMON: &str = "Common options";

/// Whether a word of the command line may ask for the short help: `-h`, also behind other letters.
pub(crate) fn is_asked_for<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let mut words = words.take_while(|word| *word != "--");
    words.any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('h'))
}

/// The command whose short help fits the screen: without its examples, and then without options
/// that have no letter, until it fits: first those that every command has, then the last ones under
/// each heading. Its last line names the help that has them.
pub(crate) fn of(command: Command, name: &str) -> Command {
    let parts: Vec<String> = command
        .get_subcommands()
        .map(|part| part.get_name().to_owned())
        .collect();
    let mut command = parts.into_iter().fold(command, |command, part| {
        let full = format!("{name} {part}");
        command.mut_subcommand(part, |part| of(part, &full))
    });
    if fits(&command) {
        return command;
    }
    command = command.after_help(format!("'{name} --help' shows all options, and examples."));
    let is_shown = |arg: &&Arg| !arg.is_hide_set() && !arg.is_hide_short_help_set();
    let can_go = |arg: &&Arg| {
        arg.get_long().is_some() && arg.get_short().is_none() && !arg.is_required_set()
    };
    let mut ranks: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut options: Vec<_> = command
        .get_arguments()
        .filter(is_shown)
        .filter(can_go)
        .map(|arg| {
            let heading = arg.get_help_heading();
            let rank = ranks.entry(heading).or_default();
            *rank += 1;
            ((heading == Some(COMMON), *rank), arg.get_id().clone())
        })
        .collect();
    options.sort_by_key(|(place, _)| *place);
    while let Some((_, id)) = options.pop() {
        if fits(&command) {
            break;
        }
        command = command.mut_arg(id, |arg| arg.hide(true));
    }
    command
}

fn fits(command: &Command) -> bool {
    let mut command = command.clone().term_width(COLUMNS);
    command.render_help().to_string().lines().count() <= LINES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(options: usize) -> Command {
        let letter = Arg::new("last")
            .short('l')
            .long("last")
            .help("Has a letter");
        let common = Arg::new("common").long("common").help_heading(COMMON);
        let names = (0..options).map(|n| &*format!("option-{n}").leak());
        let options = names.map(|name: &'static str| Arg::new(name).long(name));
        Command::new("it")
            .arg(common)
            .args(options)
            .arg(letter)
            .after_help("Examples:\n  it")
    }

    #[test]
    fn what_fits_stays_whole_and_what_does_not_keeps_letters_and_the_first_options() {
        let text = |options| of(command(options), "it").render_help().to_string();
        let small = text(3);
        assert!(small.contains("Examples") && small.contains("--common"));
        let large = text(100);
        assert!(large.lines().count() <= LINES, "{large}");
        assert!(
            large.contains("--last") && large.contains("--option-0"),
            "{large}"
        );
        for gone in ["--common", "--option-99", "Examples"] {
            assert!(!large.contains(gone), "{gone}: {large}");
        }
        assert!(large.ends_with("'it --help' shows all options, and examples.\n"));
    }

    #[test]
    fn h_is_looked_for_among_letters_and_before_the_operands_alone() {
        let asked = |words: &[&str]| is_asked_for(words.iter().copied());
        assert!(asked(&["-h"]) && asked(&["x", "-qh"]));
        assert!(!asked(&["--help"]) && !asked(&["--", "-h"]) && !asked(&["h"]));
    }
}
