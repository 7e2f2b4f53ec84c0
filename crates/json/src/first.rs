//! The first JSON object or array in a text that also holds other things.

use event::Raw;
use std::ops::Range;

/// How many bytes may be scanned twice, for each byte of the text, while brackets in prose are tried and given up.
const PATIENCE: usize = 8;

/// The first complete object or array in `text` and the bytes it takes up. `None` when there is none, or when the text
/// ends inside the first one that could be one. Linear: a bracket in prose costs what was read after it, and once that has
/// come to eight times the text, what was read for a bracket that failed is skipped.
pub fn first_value(text: &str) -> Option<(&str, Range<usize>)> {
    let mut from = 0;
    let mut spent = 0;
    while let Some(found) = text[from..].find(['{', '[']) {
        let start = from + found;
        match Raw::parse_prefix(&text[start..]) {
            Ok(value) => return Some((value.text(), start..start + value.text().len())),
            Err(e) if start + e.at >= text.len() => return None,
            Err(e) => {
                spent += e.at;
                from = start + if spent < PATIENCE * text.len() { 1 } else { e.at.max(1) };
                while !text.is_char_boundary(from) {
                    from += 1;
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_value_among_prose() {
        assert_eq!(first_value("call f with {\"a\":[1]} now").unwrap(), ("{\"a\":[1]}", 12..21));
        assert_eq!(first_value("use [ and {x} like {\"a\":\"}\"}{}").unwrap().0, "{\"a\":\"}\"}");
        assert_eq!(first_value("[1,2] {\"a\":1}").unwrap().0, "[1,2]");
        assert_eq!(first_value("é{é [\"é\"]").unwrap().0, "[\"é\"]");
        for none in ["", "7", "\"x\"", "{\"a\":1", "[[[", "}", "{é"] {
            assert_eq!(first_value(none), None, "{none}");
        }
    }

    #[test]
    fn a_hostile_text_is_not_read_over_and_over() {
        // Each bracket would otherwise be read to the `x` at the end.
        let text = "[\"[\",".repeat(200_000) + "x {\"a\":1}";
        let _ = first_value(&text);
        assert_eq!(first_value(&("[".repeat(300_000) + "]")), None);
    }
}
