//! The format of `fixtures/dialects/*.cases`; see `fixtures/dialects/README.md`.

use super::outcome::Outcome;
use std::fmt::Write;
use std::path::Path;

/// One case of a file.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub name: String,
    /// The lines between its name and its text, as they are in the file.
    head: Vec<String>,
    /// The text as it is in the file.
    raw: Vec<String>,
    pub text: String,
    /// The expected result, a line each.
    pub want: Vec<String>,
}

/// A file of cases.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// Everything before the first case.
    head: Vec<String>,
    pub cases: Vec<Case>,
}

/// What the next line belongs to.
enum In {
    Head,
    Text,
    Want,
}

impl File {
    /// Reads a file; panics if it is not a file of cases.
    pub(crate) fn read(path: &Path) -> File {
        let text = std::fs::read_to_string(path).expect("a readable file of cases");
        let mut file = File::default();
        let mut place = In::Head;
        for line in text.lines() {
            let case = file.cases.last_mut();
            match (line.strip_prefix("== "), case, &place) {
                (Some(name), _, In::Head | In::Want) => {
                    file.cases.push(Case {
                        name: name.to_owned(),
                        ..Case::default()
                    });
                    place = In::Head;
                }
                (None, None, _) => file.head.push(line.to_owned()),
                (None, Some(_), In::Head) if line == "---" => place = In::Text,
                (None, Some(case), In::Head) => case.head.push(line.to_owned()),
                (None, Some(_), In::Text) if line == "=>" => place = In::Want,
                (_, Some(case), In::Text) => case.raw.push(line.to_owned()),
                (None, Some(case), In::Want) if !line.is_empty() => case.want.push(line.to_owned()),
                _ => {}
            }
        }
        assert!(
            !matches!(place, In::Text),
            "{}: the last case has no =>",
            path.display()
        );
        for case in &mut file.cases {
            let raw = case.raw.join("\n");
            let escapes = value(&case.head, "escapes").or(value(&file.head, "escapes"));
            case.text = if escapes == Some("yes") {
                unescape(&raw)
            } else {
                raw
            };
        }
        file
    }

    /// What a header says, of this case or else of the file.
    pub(crate) fn header<'a>(&'a self, case: &'a Case, key: &str) -> Option<&'a str> {
        value(&case.head, key).or_else(|| value(&self.head, key))
    }

    /// The file with these outcomes as the expected results.
    pub(crate) fn written(&self, outcomes: &[Outcome]) -> String {
        let mut out = String::new();
        for line in &self.head {
            let _ = writeln!(out, "{line}");
        }
        for (n, (case, outcome)) in self.cases.iter().zip(outcomes).enumerate() {
            let before = if n > 0 { "\n" } else { "" };
            let _ = writeln!(out, "{before}== {}", case.name);
            let lines = outcome.lines();
            for line in case
                .head
                .iter()
                .map(String::as_str)
                .chain(["---"])
                .chain(case.raw.iter().map(String::as_str))
            {
                let _ = writeln!(out, "{line}");
            }
            for line in ["=>"].into_iter().chain(lines.iter().map(String::as_str)) {
                let _ = writeln!(out, "{line}");
            }
        }
        out
    }
}

fn value<'a>(head: &'a [String], key: &str) -> Option<&'a str> {
    head.iter()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .map(str::trim_start)
}

/// `\n`, `\r`, `\t`, `\s` (a space), `\\` and `\u{HEX}`; a line that ends in `\` goes on in the
/// next.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('s') => out.push(' '),
            Some('\n') => {}
            Some('\\') => out.push('\\'),
            Some('u') => {
                let hex: String = letters
                    .by_ref()
                    .take_while(|c| *c != '}')
                    .filter(|c| *c != '{')
                    .collect();
                let c = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32);
                out.push(c.unwrap_or_else(|| panic!("no character: \\u{{{hex}}}")));
            }
            c => panic!("no escape: \\{c:?}"),
        }
    }
    out
}
