//! A long text with its middle left out.

use std::borrow::Cow;

/// `text` if it has at most `max` bytes; else its head and its tail, of together at most `max`
/// bytes, with the line `[NOTE]` between them. `note` gets the number of bytes that are left out.
/// Each end is cut at a line break if one is near, else between two characters.
pub fn shorten(text: &str, max: usize, note: impl FnOnce(usize) -> String) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (head(text, max.div_ceil(2)), tail(text, max / 2));
    let note = note(text.len() - head.len() - tail.len());
    let [before, after] = [head, tail].map(|end| if end.is_empty() { "" } else { "\n" });
    let before = if head.ends_with('\n') { "" } else { before };
    Cow::Owned(format!("{head}{before}[{note}]{after}{tail}"))
}

/// The beginning of `text`, of at most `max` bytes.
fn head(text: &str, max: usize) -> &str {
    let head = event::cut(text, max);
    match head.rfind('\n') {
        Some(at) if at >= head.len() / 4 * 3 => &head[..=at],
        _ => head,
    }
}

/// The end of `text`, of at most `max` bytes.
fn tail(text: &str, max: usize) -> &str {
    let mut from = text.len() - max;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let tail = &text[from..];
    match tail.find('\n') {
        Some(at) if at < tail.len() / 4 => &tail[at + 1..],
        _ => tail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(text: &str, max: usize) -> String {
        shorten(text, max, |n| format!("{n} left out")).into_owned()
    }

    #[test]
    fn both_ends_stay_and_what_is_between_is_counted() {
        assert_eq!(short("abcdef", 6), "abcdef");
        assert_eq!(short("abcdef", 5), "abc\n[1 left out]\nef");
        assert_eq!(short("abcdef", 1), "a\n[5 left out]");
        assert_eq!(short("abcdef", 0), "[6 left out]");
    }

    #[test]
    fn no_character_is_cut() {
        for max in 0..24 {
            let text = "é🦀aé🦀é🦀b🦀";
            let said = short(text, max);
            let left_out: usize = said
                .split(['[', ' '])
                .nth(1)
                .and_then(|n| n.parse().ok())
                .unwrap();
            let kept = said
                .replace(&format!("[{left_out} left out]"), "")
                .replace('\n', "");
            assert!(
                kept.len() <= max && kept.len() + left_out == text.len(),
                "{max}: {said}"
            );
        }
    }

    #[test]
    fn lines_stay_whole_where_their_ends_are_near() {
        let text = (0..100)
            .map(|n| format!("line {n:02}\n"))
            .collect::<String>();
        let said = short(&text, 100);
        assert!(
            said.starts_with("line 00\n") && said.contains("line 05\n[704 left out]\nline 94\n"),
            "{said}"
        );
        // Without line breaks the ends are as long as they may be.
        assert_eq!(
            short(&"x".repeat(100), 10),
            format!("{x}\n[90 left out]\n{x}", x = "xxxxx")
        );
    }
}
