//! Values of a notation that live as long as the table.

/// A marker, with ⏎ for a newline.
pub(super) fn marker(text: &str) -> Result<&'static str, String> {
    let text = lines(text);
    match text.len() {
        0 => Err("a marker is empty; expected its text".to_owned()),
        1..=256 if !text.trim().is_empty() => Ok(keep(text)),
        1..=256 => Err("a marker is white space; expected its text".to_owned()),
        _ => Err("a marker has more than 256 bytes; expected a shorter one".to_owned()),
    }
}

/// What is before, between and after two of `slot`.
pub(super) fn around(
    text: &str,
    slot: &str,
) -> Result<(&'static str, &'static str, &'static str), String> {
    match text.split(slot).collect::<Vec<_>>()[..] {
        [open, between, close] => Ok((keep(lines(open)), keep(lines(between)), keep(lines(close)))),
        _ => Err(format!(
            "'{text}' does not have {slot} twice; expected what is before, between and after two"
        )),
    }
}

/// The text with its newlines, which may be written as ⏎.
pub(super) fn lines(text: &str) -> String {
    text.replace('⏎', "\n")
}

/// Text that lives as long as the table.
pub(super) fn keep(text: impl Into<String>) -> &'static str {
    Box::leak(text.into().into_boxed_str())
}

/// Values that live as long as the table.
pub(super) fn all<T>(values: Vec<T>) -> &'static [T] {
    Box::leak(values.into_boxed_slice())
}

/// A value that lives as long as the table.
pub(super) fn one<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
