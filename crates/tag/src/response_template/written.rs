//! Texts as the notation of dialects has them, and keys as TOML has them.

/// A marker in the notation of a call: white space at its ends is any white space, and what has a
/// meaning there is escaped.
pub(super) fn text(marker: &str) -> String {
    let mut out = String::new();
    for c in marker.chars() {
        match c {
            '{' | '(' | '?' | '¦' | '·' | '␣' | '⏎' | '\\' => out.extend(['\\', c]),
            c if c.is_whitespace() => out.push(c),
            c => out.push(c),
        }
    }
    let inside = out.trim();
    let (before, after) = out.split_once(inside).unwrap_or_default();
    format!("{}{}{}", space(before), lines(inside), space(after))
}

/// White space at the end of a marker.
fn space(blank: &str) -> &'static str {
    match blank {
        "" => "",
        blank if blank.contains(['\n', '\r']) => "⏎",
        _ => "␣",
    }
}

/// Text with its newlines as the notation has them.
pub(super) fn lines(text: &str) -> String {
    text.replace('\n', "⏎")
}

/// A TOML string.
pub(super) fn string(text: &str) -> String {
    event::quoted(text)
}

/// A TOML array of strings.
pub(super) fn array(texts: &[impl AsRef<str>]) -> String {
    let all: Vec<String> = texts.iter().map(|text| string(text.as_ref())).collect();
    format!("[{}]", all.join(", "))
}
