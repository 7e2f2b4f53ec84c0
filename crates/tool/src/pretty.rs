//! JSON on several lines, for people.

use event::{Raw, quoted};

/// A checked value on several lines, two spaces deeper at each level. Digits stay; strings are
/// escaped in one way. Values nest at most 128 deep ([`event::MAX_DEPTH`]), so the recursion is
/// bounded.
pub fn pretty(value: Raw<'_>) -> String {
    let mut out = String::new();
    push(&mut out, value, 0);
    out
}

fn push(out: &mut String, value: Raw<'_>, depth: usize) {
    if value.is_object() {
        let members: Vec<_> = value.entries().collect();
        block(out, ['{', '}'], depth, members, |out, (key, member)| {
            out.push_str(&quoted(&key));
            out.push_str(": ");
            push(out, member, depth + 1);
        });
    } else if value.is_array() {
        block(
            out,
            ['[', ']'],
            depth,
            value.items().collect(),
            |out, item| push(out, item, depth + 1),
        );
    } else if let Some(text) = value.str() {
        out.push_str(&quoted(&text));
    } else {
        out.push_str(value.text());
    }
}

fn block<T>(
    out: &mut String,
    marks: [char; 2],
    depth: usize,
    items: Vec<T>,
    mut write: impl FnMut(&mut String, T),
) {
    let indent = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    out.push(marks[0]);
    let last = items.len();
    for (n, item) in (1..).zip(items) {
        indent(out, depth + 1);
        write(out, item);
        if n < last {
            out.push(',');
        }
    }
    if last > 0 {
        indent(out, depth);
    }
    out.push(marks[1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_a_line() {
        let text = r#"{"a":[1.50,{}],"b":{"c":"x\ny","d":[]},"e":null}"#;
        let want = "{\n  \"a\": [\n    1.50,\n    {}\n  ],\n  \"b\": {\n    \"c\": \"x\\ny\",\n    \"d\": []\n  },\n  \"e\": null\n}";
        assert_eq!(pretty(Raw::parse(text).unwrap()), want);
    }
}
