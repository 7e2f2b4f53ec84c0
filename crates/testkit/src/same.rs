//! Comparisons that print only the first difference of large texts.

use std::fmt::Display;

/// Characters shown before the first difference.
const BEFORE: usize = 80;
/// Characters shown from the first difference on.
const BEHIND: usize = 160;

/// A value that is compared line by line.
pub trait Lines {
    /// Returns the lines.
    fn lines(&self) -> Vec<String>;
}

impl Lines for str {
    fn lines(&self) -> Vec<String> {
        // Unlike `str::lines`, this keeps the line ends.
        self.split_inclusive('\n').map(str::to_owned).collect()
    }
}

impl Lines for String {
    fn lines(&self) -> Vec<String> {
        Lines::lines(self.as_str())
    }
}

impl Lines for Vec<u8> {
    fn lines(&self) -> Vec<String> {
        Lines::lines(&*String::from_utf8_lossy(self))
    }
}

impl Lines for Vec<String> {
    fn lines(&self) -> Vec<String> {
        self.clone()
    }
}

/// Panics unless both values are equal. The message has the first difference and the text around
/// it.
#[track_caller]
pub fn same<T: Lines + PartialEq + ?Sized, C: Display>(
    got: &T,
    want: &T,
    context: impl FnOnce() -> C,
) {
    if got != want {
        panic!("{}: {}", context(), difference(&got.lines(), &want.lines()));
    }
}

/// Describes the first line that differs, around its first different character.
fn difference(got: &[String], want: &[String]) -> String {
    let at = got.iter().zip(want).take_while(|(a, b)| a == b).count();
    let [a, b] = [want.get(at), got.get(at)];
    let same = match (a, b) {
        (Some(a), Some(b)) => a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let line = |line: Option<&String>, at: usize| match line {
        Some(line) => format!("{:?}", part(line, at)),
        None => "(no line)".to_owned(),
    };
    format!(
        "line {} differs at character {} ({} lines expected, {} came)\n  before:   {}\n  expected: {}\n  came:     {}",
        at + 1,
        same + 1,
        want.len(),
        got.len(),
        line(at.checked_sub(1).and_then(|before| want.get(before)), 0),
        line(a, same),
        line(b, same),
    )
}

/// Returns the characters of a text around the position `at`.
fn part(text: &str, at: usize) -> String {
    let from = at.saturating_sub(BEFORE);
    let shown: String = text.chars().skip(from).take(at - from + BEHIND).collect();
    let start = if from > 0 { "…" } else { "" };
    let end = if text.chars().count() > at + BEHIND {
        "…"
    } else {
        ""
    };
    format!("{start}{shown}{end}")
}

/// Shortens a text for a message: removes the middle of a long one.
pub fn short(text: &str) -> String {
    const SHOWN: usize = 1500;
    let count = text.chars().count();
    if count <= 2 * SHOWN {
        return text.to_owned();
    }
    let start: String = text.chars().take(SHOWN).collect();
    let end: String = text.chars().skip(count - SHOWN).collect();
    format!("{start}\n… {} characters …\n{end}", count - 2 * SHOWN)
}

#[cfg(test)]
mod tests {
    use super::{difference, short};

    #[test]
    fn the_first_difference_of_large_texts_is_shown() {
        let line = |middle: &str| format!("{}{middle}{}", "a".repeat(100_000), "b".repeat(100_000));
        let want = ["first".to_owned(), line("x"), "last".to_owned()];
        let got = ["first".to_owned(), line("y"), "other".to_owned()];
        let shown = difference(&got, &want);
        assert!(shown.starts_with("line 2 differs at character 100001 (3 lines expected, 3 came)"));
        assert!(shown.contains("aaxbb") && shown.contains("aaybb") && shown.contains("first"));
        assert!(shown.len() < 1000, "{shown}");
        let shown = difference(&got[..1], &want);
        assert!(shown.contains("came:     (no line)"), "{shown}");
    }

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        assert_eq!(short("é"), "é");
        let shown = short(&format!("start{}end", "é".repeat(9000)));
        assert!(
            shown.starts_with("start")
                && shown.ends_with("end")
                && shown.contains("… 6008 characters …")
        );
    }
}
