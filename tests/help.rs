//! `--help` of every command fits the terminal, and its paragraphs are wrapped once.

use std::collections::BTreeSet;

/// The commands within a command.
const SUBCOMMANDS: [&str; 5] = [
    "tc-eval label",
    "tc-eval explain",
    "tc-eval diff",
    "tc-eval merge",
    "tc-eval fit",
];

/// The help of a command on a terminal of this width.
fn help(command: &str, columns: usize) -> String {
    printed(&format!("{command} --help"), columns)
}

fn printed(command: &str, columns: usize) -> String {
    let output = testkit::bash(&format!("COLUMNS={columns} {command}"), testkit::root())
        .output()
        .expect("bash runs");
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Lines that are broken although the next word would have fitted: signs of a paragraph that was
/// wrapped twice.
fn ragged(text: &str, columns: usize) -> Vec<String> {
    let mut found = Vec::new();
    // Lines of an example or of a list, which are not a paragraph.
    let mut is_example = false;
    for pair in text.lines().collect::<Vec<_>>().windows(2) {
        let [line, next] = pair else { continue };
        is_example = (is_example
            || ["Example", "A tools file:", "Commands:"]
                .iter()
                .any(|begin| line.starts_with(begin)))
            && !line.trim().is_empty();
        let goes_on = ![line, next].iter().any(|line| line.trim().is_empty())
            && indent(line) == indent(next)
            && !next.trim_start().starts_with(['-', '[', '<']);
        let word = next.split_whitespace().next().unwrap_or_default();
        if !is_example
            && goes_on
            && !line.ends_with(':')
            && line.chars().count() + 1 + word.chars().count() <= columns
        {
            found.push(format!("{line}\n{next}"));
        }
    }
    found
}

/// The long options that a help text lists.
fn options(text: &str) -> BTreeSet<&str> {
    let option = |line: &str| line.trim_start().starts_with('-');
    text.lines()
        .filter(|line| option(line))
        .filter_map(|line| {
            line.split([' ', ',', '=', '['])
                .find(|word| word.starts_with("--"))
        })
        .collect()
}

#[test]
fn the_short_help_fits_one_screen_or_names_the_help_that_has_the_rest() {
    for command in testkit::COMMANDS
        .into_iter()
        .chain(SUBCOMMANDS)
        .chain(["toolpipe"])
    {
        let short = printed(&format!("{command} -h"), 80);
        let lines = short.lines().count();
        let widest = short.lines().map(|line| line.chars().count()).max();
        assert!(lines <= 50, "{command} -h has {lines} lines:\n{short}");
        assert!(widest <= Some(80), "{command} -h is too wide:\n{short}");
        let whole = help(command, 80);
        let (short_options, all) = (options(&short), options(&whole));
        assert!(
            short_options.is_subset(&all) && all.len() > 2,
            "{command}: {whole}"
        );
        // What has a letter is typed often.
        let letters = whole.lines().map(str::trim_start).filter(|line| {
            line.starts_with('-') && line.chars().nth(1).is_some_and(char::is_alphabetic)
        });
        for line in letters {
            let letter = &line[..2];
            assert!(
                short.contains(&format!("  {letter}")),
                "{command} -h lacks {letter}:\n{short}"
            );
        }
        if short_options != all {
            let names_the_whole = short.contains("see more with '--help'")
                || short.contains(&format!("'{command} --help'"));
            assert!(names_the_whole, "{command} -h:\n{short}");
        }
    }
}

#[test]
fn help_texts_fit_and_wrap_once() {
    let mut wrong = Vec::new();
    for command in testkit::COMMANDS.into_iter().chain(SUBCOMMANDS) {
        // Examples are typed as they are shown, so they must not be wrapped.
        let text = help(command, 300);
        let examples = text
            .lines()
            .skip_while(|line| !line.starts_with("Example"))
            .filter(|line| line.starts_with("  "));
        let long = examples.filter(|line| line.chars().count() > 80);
        wrong.extend(long.map(|line| format!("{command}, an example of over 80 columns: {line}")));
        for columns in [80, 100] {
            let text = help(command, columns);
            let long = text.lines().filter(|line| line.chars().count() > columns);
            wrong
                .extend(long.map(|line| format!("{command}, {columns} columns, too long: {line}")));
            wrong.extend(
                ragged(&text, columns)
                    .into_iter()
                    .map(|lines| format!("{command}, {columns} columns, ragged:\n{lines}")),
            );
        }
    }
    assert!(
        wrong.is_empty(),
        "{} lines:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
