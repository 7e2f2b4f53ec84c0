//! Damage to one frame of a recorded body, as an intermediary causes it.

use std::ops::Range;

/// Returns the range of the JSON of each frame that is one object on one line: the data of a
/// server-sent event, or a line of JSON. Among server-sent events, lines without `data:` are
/// skipped: a damaged one would be an unknown field, not a frame.
pub fn frames(body: &[u8]) -> Vec<Range<usize>> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let has_fields = body.split(is_end).any(|line| line.starts_with(b"data:"));
    let mut all = Vec::new();
    let mut at = 0;
    for line in body.split_inclusive(is_end) {
        let field = line.strip_prefix(b"data:");
        let data = field.unwrap_or(line);
        let start = at + line.len() - data.trim_ascii_start().len();
        at += line.len();
        let json = data.trim_ascii();
        let is_frame = field.is_some() || !has_fields;
        if is_frame && json.starts_with(b"{") && json.ends_with(b"}") {
            all.push(start..start + json.len());
        }
    }
    all
}

/// The replacement of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The first half of the frame.
    Half,
    /// The second half of the frame.
    Rest,
    /// An error message of an intermediary.
    Text,
    /// `null`.
    Null,
    /// An object without members.
    Empty,
}

impl Damage {
    /// All kinds of damage.
    pub const ALL: [Damage; 5] = [
        Damage::Half,
        Damage::Rest,
        Damage::Text,
        Damage::Null,
        Damage::Empty,
    ];

    /// Returns the body with `frame` damaged in this way.
    pub fn of(self, body: &[u8], frame: &Range<usize>) -> Vec<u8> {
        let json = &body[frame.clone()];
        let (first, second) = json.split_at(json.len() / 2);
        replaced(
            body,
            frame,
            match self {
                Damage::Half => first,
                Damage::Rest => second,
                Damage::Text => b"Internal Server Error",
                Damage::Null => b"null",
                Damage::Empty => b"{}",
            },
        )
    }
}

/// Returns the body with `frame` replaced by `with`.
pub fn replaced(body: &[u8], frame: &Range<usize>, with: &[u8]) -> Vec<u8> {
    [&body[..frame.start], with, &body[frame.end..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_on_one_line_is_found_and_replaced() {
        for (body, want) in [
            (
                "data: {\"a\":1}\r\n\r\nevent: x\ndata:{\"b\":2}\n\ndata: [DONE]\n\n",
                vec!["{\"a\":1}", "{\"b\":2}"],
            ),
            ("data: {\"a\":1}\n\n{\"error\":1}\n", vec!["{\"a\":1}"]),
            ("{\"a\":1}\n{\"b\":2}\n", vec!["{\"a\":1}", "{\"b\":2}"]),
            ("[{\n\"a\": 1\n}]", vec![]),
        ] {
            let found = frames(body.as_bytes());
            let texts: Vec<&str> = found.iter().map(|frame| &body[frame.clone()]).collect();
            assert_eq!(texts, want);
        }
        let body = b"data: {\"a\":1}\n\n";
        let of = |damage: Damage| damage.of(body, &frames(body)[0]);
        assert_eq!(of(Damage::Half), b"data: {\"a\n\n");
        assert_eq!(of(Damage::Rest), b"data: \":1}\n\n");
        assert_eq!(of(Damage::Null), b"data: null\n\n");
    }
}
