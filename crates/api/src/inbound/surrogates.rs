//! Halves of surrogate pairs in a client's JSON.

/// The same JSON with U+FFFD in place of each half of a surrogate pair that is alone; `None` if
/// each is in a pair. `JSON.stringify` and Python's `json.dumps` write such halves where a text was
/// cut inside an emoji, and serde_json rejects them.
pub(crate) fn without_halves(json: &[u8]) -> Option<Vec<u8>> {
    const REPLACEMENT: &[u8] = b"\\ufffd";
    let mut out: Option<Vec<u8>> = None;
    let (mut kept, mut at) = (0, 0);
    while let Some(next) = json[at..].iter().position(|byte| *byte == b'\\') {
        at += next;
        at += match (unit(&json[at..]), json.get(at + 6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                let out = out.get_or_insert_with(|| Vec::with_capacity(json.len()));
                out.extend_from_slice(&json[kept..at]);
                out.extend_from_slice(REPLACEMENT);
                kept = at + 6;
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        at = at.min(json.len());
    }
    let mut out = out?;
    out.extend_from_slice(&json[kept..]);
    Some(out)
}

/// The code unit of an escape `\uXXXX` at the beginning of `json`.
fn unit(json: &[u8]) -> Option<u16> {
    let digits = json.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| !digits.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_alone_are_replaced_and_pairs_stay() {
        for (json, want) in [
            (r#""x \ud83d y""#, Some(r#""x \ufffd y""#)),
            (r#""\uD83D\ude00 \uDE00""#, Some(r#""\uD83D\ude00 \ufffd""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ud83d\n\ude00""#, Some(r#""\ufffd\n\ufffd""#)),
            (r#""\ude00\ud83d""#, Some(r#""\ufffd\ufffd""#)),
            (r#"{"\ud83d":"\\\ud83d"}"#, Some(r#"{"\ufffd":"\\\ufffd"}"#)),
            (r#""\\ud83d \u00e9 \ud83d\ude00""#, None),
            (r#""\ud83"#, None),
            (r#""\u+d83d""#, None),
            (r#""\ud83"", "\"#, None),
            ("\\", None),
            ("", None),
        ] {
            let got = without_halves(json.as_bytes()).map(|json| String::from_utf8(json).unwrap());
            assert_eq!(got.as_deref(), want, "{json}");
        }
    }
}
