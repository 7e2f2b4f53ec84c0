//! The allow-list: how models learn of their tools, as the user wrote it down.

use crate::dialect::dialect_named;
use anyhow::{Result, anyhow, bail};
use event::Glob;
use std::path::Path;
use tag::{Dialect, Dialects};

/// How a model learns of its tools.
#[derive(Clone, Copy, Debug)]
pub enum AllowedForm {
    /// In the request's own member.
    Native,
    /// In the prompt, in the dialect that the line names, if it names one.
    Tag(Option<&'static Dialect>),
    /// Not at all.
    None,
}

/// The number and the form of the first line whose pattern fits `name` (`API/MODEL`). Lines are
/// `PATTERN native|tag|none [DIALECT]`; `#` begins a comment.
///
/// # Errors
/// The file and the first invalid line, also behind the one that fits.
pub fn look_up(
    path: &Path,
    text: &str,
    name: &str,
    dialects: &Dialects,
) -> Result<Option<(usize, AllowedForm)>> {
    let mut found = None;
    for (number, line) in (1..).zip(text.lines()) {
        let at = |why: anyhow::Error| anyhow!("{}: line {number}: {why}", path.display());
        let Some((pattern, mode)) = entry(line, dialects).map_err(at)? else {
            continue;
        };
        if found.is_none() && Glob::new(pattern).matches(name) {
            found = Some((number, mode));
        }
    }
    Ok(found)
}

fn entry<'l>(line: &'l str, dialects: &Dialects) -> Result<Option<(&'l str, AllowedForm)>> {
    let words: Vec<&str> = line
        .split_whitespace()
        .take_while(|word| !word.starts_with('#'))
        .collect();
    Ok(Some(match words[..] {
        [] => return Ok(None),
        [pattern, "native"] => (pattern, AllowedForm::Native),
        [pattern, "none"] => (pattern, AllowedForm::None),
        [pattern, "tag"] => (pattern, AllowedForm::Tag(None)),
        [pattern, "tag", name] => (
            pattern,
            AllowedForm::Tag(Some(dialect_named(dialects, name)?)),
        ),
        _ => bail!("not PATTERN native|tag|none [DIALECT], such as: openai-chat/*deepseek-r1* tag"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# mine\n\n\
        openai-chat/*r1*   tag tool-name-tag # no calls of its own\n\
        ollama/*  none\n  openai-chat/*\tnative\r\n*/gemma tag\n";

    fn of(name: &str) -> Option<(usize, &'static str)> {
        look_up(Path::new("list"), LIST, name, &Dialects::default())
            .unwrap()
            .map(|(line, mode)| {
                let word = match mode {
                    AllowedForm::Native => "native",
                    AllowedForm::Tag(Some(dialect)) => dialect.name,
                    AllowedForm::Tag(None) => "tag",
                    AllowedForm::None => "none",
                };
                (line, word)
            })
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        assert_eq!(
            of("openai-chat/deepseek/deepseek-r1:free"),
            Some((3, "tool-name-tag"))
        );
        assert_eq!(of("ollama/gemma"), Some((4, "none")));
        assert_eq!(of("openai-chat/gpt-5"), Some((5, "native")));
        assert_eq!(of("cohere/gemma"), Some((6, "tag")));
        assert_eq!(of("cohere/command"), None);
    }

    #[test]
    fn a_bad_line_is_named_also_behind_the_one_that_fits() {
        for (line, why) in [
            ("ollama/x", "not PATTERN"),
            ("ollama/x maybe", "not PATTERN"),
            ("ollama/x native hermes", "not PATTERN"),
            ("ollama/x tag hermes more", "not PATTERN"),
            ("ollama/x tag nonsense", "unknown dialect \"nonsense\""),
        ] {
            let text = format!("* native\n{line}\n");
            let error = look_up(Path::new("the/list"), &text, "a/b", &Dialects::default())
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("the/list: line 2: ") && error.contains(why),
                "{error}"
            );
        }
    }
}
