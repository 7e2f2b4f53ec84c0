//! Command lines that the reader of a report can paste into a shell.

use event::shell_word;

/// Returns the command that shows where and why a checker decided about a stream. The last argument
/// is the name and value of the option that selects the checker.
pub fn explain(corpus: &str, stream: &str, [name, value]: [&str; 2]) -> String {
    format!(
        "tc-eval explain {}{}{}",
        operand(corpus),
        option("--stream", stream),
        option(name, value)
    )
}

/// Returns the command with which a person confirms the labels in `indexes`. Standard input is left
/// out, because the command cannot write to it.
pub fn confirm<'p>(indexes: impl Iterator<Item = &'p str>) -> String {
    let files = indexes.filter(|index| *index != "-");
    files.fold("tc-eval label --confirm".to_owned(), |command, index| {
        format!("{command} {}", operand(index))
    })
}

/// Returns the command that prints a byte range of a file.
pub fn bytes(file: &str, range: std::ops::Range<usize>) -> String {
    format!(
        "tail -c +{} {} | head -c {}",
        range.start + 1,
        operand(file),
        range.len()
    )
}

/// Returns an option with its value, joined by `=` if the value would be parsed as an option.
fn option(name: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!(" {name}{between}{}", shell_word(value))
}

/// Returns a path in a form that no command parses as an option.
fn operand(path: &str) -> String {
    if path.starts_with('-') {
        shell_word(&format!("./{path}")).into_owned()
    } else {
        shell_word(path).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_are_not_shell_word() {
        assert_eq!(
            explain(
                "fixtures/index.ndjson",
                "openai-12",
                ["--checker", "lookahead:200"]
            ),
            "tc-eval explain fixtures/index.ndjson --stream openai-12 --checker lookahead:200"
        );
    }

    #[test]
    fn words_that_a_shell_or_a_parser_would_take_apart_stay_whole() {
        assert_eq!(
            explain("-x", "-1", ["--checker", "cmd:python3 a.py"]),
            "tc-eval explain ./-x --stream=-1 --checker 'cmd:python3 a.py'"
        );
    }

    #[test]
    fn a_shell_reads_back_what_was_shell_word() {
        for word in [
            "",
            "-",
            "a b",
            "it's",
            "$(id)\n\x1b[1m\u{202e}1",
            "\\n'\\",
            "é中👩",
            "*?[!x]",
            "#x",
            "a\t\u{e0041}",
        ] {
            let script = format!("printf %s {}", shell_word(word));
            let out = std::process::Command::new("bash")
                .args(["-c", &script])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), word, "{script}");
        }
    }
}
