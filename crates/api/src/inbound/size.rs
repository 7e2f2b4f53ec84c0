//! How many values a body holds: each takes some hundred bytes of memory once it is read, so that a
//! body of many small ones takes 70 times its length.

/// The most JSON values that a request may have. A long conversation of an agent has some ten
/// thousand.
pub(crate) const MOST_VALUES: usize = 250_000;

/// Whether `json` has more values than [`MOST_VALUES`], counted by its commas and opening brackets
/// outside strings. The text may be invalid.
pub(crate) fn has_too_many(json: &[u8]) -> bool {
    // Each value is behind a comma, a bracket or a colon, and takes another byte.
    if json.len() < MOST_VALUES {
        return false;
    }
    values(json) > MOST_VALUES
}

/// How many values there are, by commas and opening brackets outside strings.
fn values(json: &[u8]) -> usize {
    let (mut values, mut in_string, mut at) = (0, false, 0);
    while at < json.len() {
        match json[at] {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
        at += 1;
    }
    values
}

/// How many bytes a request takes once its body is read: its texts, and what each value takes
/// besides.
pub fn inbound_size(json: &[u8]) -> usize {
    json.len() + values(json) * VALUE
}

/// The bytes of a value besides its text, and of its place in a list or an object.
const VALUE: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_strings() {
        let list = |value: &str, count: usize| format!("[{}]", vec![value; count].join(","));
        assert!(has_too_many(list("1", MOST_VALUES + 1).as_bytes()));
        assert!(has_too_many(list("[]", MOST_VALUES / 2 + 1).as_bytes()));
        assert!(!has_too_many(list("1", MOST_VALUES).as_bytes()));
        assert!(!has_too_many(
            list(r#"",,[{\",,""#, MOST_VALUES / 2).as_bytes()
        ));
        assert!(!has_too_many(
            format!("\"{}\"", "{".repeat(2 * MOST_VALUES)).as_bytes()
        ));
    }
}
