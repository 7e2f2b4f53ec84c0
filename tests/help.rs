//! `--help` of every command fits the terminal, and its paragraphs are wrapped once.

/// The commands within a command.
const SUBCOMMANDS: [&str; 6] = [
    "tc-eval label",
    "tc-eval explain",
    "tc-eval diff",
    "tc-eval report-card",
    "tc-eval merge",
    "tc-eval fit",
];

/// The help of a command on a terminal of this width.
fn help(command: &str, columns: usize) -> String {
    let output = testkit::bash(
        &format!("COLUMNS={columns} {command} --help"),
        testkit::root(),
    )
    .output()
    .expect("bash runs");
    assert!(output.status.success(), "{command} --help: {output:?}");
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
