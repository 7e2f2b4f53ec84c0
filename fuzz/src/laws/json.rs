//! Arguments as text, against serde_json: what is whole, what is repaired, what can be shown of a
//! beginning, literals of other languages.
//!
//! Input: a seed of the pieces, then the text.

use super::input::text_pieces;
use super::{Target, Turn};
use json::{JsonScanner, Literal, LiteralProgress, Notation, apply, best_reading, repair};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "json",
    check,
};

/// Whether some object has a key twice, and how deep the value is; read by serde_json.
struct Facts {
    twice: bool,
    depth: u32,
}

impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct See;
        impl<'de> Visitor<'de> for See {
            type Value = Facts;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Facts, A::Error> {
                let (mut keys, mut all) = (
                    Vec::<String>::new(),
                    Facts {
                        twice: false,
                        depth: 0,
                    },
                );
                while let Some((key, inner)) = map.next_entry::<String, Facts>()? {
                    all = Facts {
                        twice: all.twice | inner.twice | keys.contains(&key),
                        depth: all.depth.max(inner.depth),
                    };
                    keys.push(key);
                }
                Ok(Facts {
                    depth: all.depth + 1,
                    ..all
                })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Facts, A::Error> {
                let mut all = Facts {
                    twice: false,
                    depth: 0,
                };
                while let Some(inner) = seq.next_element::<Facts>()? {
                    all = Facts {
                        twice: all.twice | inner.twice,
                        depth: all.depth.max(inner.depth),
                    };
                }
                Ok(Facts {
                    depth: all.depth + 1,
                    ..all
                })
            }
            fn visit_str<E>(self, _: &str) -> Result<Facts, E> {
                Ok(Facts {
                    twice: false,
                    depth: 0,
                })
            }
            fn visit_bool<E>(self, _: bool) -> Result<Facts, E> {
                Ok(Facts {
                    twice: false,
                    depth: 0,
                })
            }
            fn visit_unit<E>(self) -> Result<Facts, E> {
                Ok(Facts {
                    twice: false,
                    depth: 0,
                })
            }
            fn visit_i64<E>(self, _: i64) -> Result<Facts, E> {
                Ok(Facts {
                    twice: false,
                    depth: 0,
                })
            }
            fn visit_u64<E>(self, _: u64) -> Result<Facts, E> {
                Ok(Facts {
                    twice: false,
                    depth: 0,
                })
            }
            fn visit_f64<E>(self, _: f64) -> Result<Facts, E> {
                Ok(Facts {
                    twice: false,
                    depth: 0,
                })
            }
        }
        d.deserialize_any(See)
    }
}

/// The most brackets inside each other, if the brackets alone are counted.
fn depth(text: &str) -> usize {
    let (mut now, mut most, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for c in text.bytes() {
        match c {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' if !quoted => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

fn flags(s: &JsonScanner) -> [bool; 6] {
    [
        s.is_valid(),
        s.is_balanced(),
        s.is_closed(),
        s.is_whole(),
        s.is_blank(),
        s.is_in_text(),
    ]
}

fn begins(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(p), Value::String(w)) => w.starts_with(p.as_str()),
        (Value::Array(p), Value::Array(w)) => {
            p.len() <= w.len() && p.iter().zip(w).all(|(p, w)| begins(p, w))
        }
        (Value::Object(p), Value::Object(w)) => {
            p.len() <= w.len()
                && p.iter()
                    .zip(w)
                    .all(|((pk, p), (wk, w))| pk == wk && begins(p, w))
        }
        _ => part == whole,
    }
}

fn literal(mut literal: Literal, pieces: &[&str]) -> Result<(String, usize), &'static str> {
    let (mut out, mut rest, mut taken) = (String::new(), String::new(), 0);
    for piece in pieces {
        rest.push_str(piece);
        match literal.push(&rest, &mut out) {
            LiteralProgress::More(n) => {
                assert!(rest.len() - n <= 12, "{rest:?} is held");
                taken += n;
                rest.drain(..n);
            }
            LiteralProgress::End(n) => return Ok((out, taken + n)),
            LiteralProgress::Invalid(_, why) => return Err(why),
        }
    }
    Err("more")
}

fn check(bytes: &[u8], turn: Turn) {
    let [seed, text @ ..] = bytes else { return };
    let text = &*String::from_utf8_lossy(text);
    let pieces = text_pieces(text, *seed);

    // The scanner: no split shows, and it agrees with serde_json.
    let mut whole = JsonScanner::default();
    let taken = whole.push(text);
    let (mut cut, mut took) = (JsonScanner::default(), 0);
    for piece in &pieces {
        let n = cut.push(piece);
        took += n;
        if n < piece.len() {
            break;
        }
    }
    assert_eq!(
        (took, flags(&cut)),
        (taken, flags(&whole)),
        "scanner in pieces"
    );
    let oracle: Result<&serde_json::value::RawValue, _> = serde_json::from_str(text);
    if depth(text) <= 128 {
        assert_eq!(
            whole.is_whole() && taken == text.len(),
            oracle.is_ok(),
            "the scanner and serde_json: {oracle:?}"
        );
        assert_eq!(
            event::Raw::parse(text).is_ok(),
            oracle.is_ok(),
            "Raw and serde_json: {oracle:?}"
        );
        if let Err(e) = &oracle {
            // serde_json reads four bytes after `\u` before it looks at them.
            assert!(
                !e.is_eof() || whole.is_valid() || text.contains("\\u"),
                "a beginning by serde_json: {e}"
            );
        }
    }
    // The strict check.
    let value = serde_json::from_str::<Value>(text);
    let facts = serde_json::from_str::<Facts>(text);
    let checked = json::check(text);
    if checked.is_ok() {
        assert!(value.is_ok() || depth(text) > 126, "{:?}", value.err());
        assert!(facts.as_ref().is_ok_and(|f| !f.twice) || depth(text) > 126 || facts.is_err());
    }
    let is_plain_object =
        value.as_ref().is_ok_and(Value::is_object) && facts.as_ref().is_ok_and(|f| !f.twice);
    // Without arbitrary precision, serde_json refuses what is infinite.
    if is_plain_object && !text.contains(['e', 'E']) && text.len() < 300 {
        assert!(checked.is_ok(), "{checked:?}");
    }
    // Repair.
    for unwrap in [false, true] {
        if let Some(repaired) = repair(text, unwrap) {
            assert!(json::check(&repaired.text).is_ok(), "{repaired:?}");
            assert!(
                serde_json::from_str::<serde_json::Map<String, Value>>(&repaired.text).is_ok()
                    || depth(&repaired.text) > 126,
                "{repaired:?}"
            );
            assert_eq!(
                apply(text, &repaired.repairs).as_deref(),
                Some(&repaired.text[..]),
                "{repaired:?}"
            );
            assert!(!is_plain_object, "a valid object was edited: {repaired:?}");
            assert!(!repaired.repairs.is_empty(), "{repaired:?}");
        }
    }
    // The best reading, and cut texts.
    let reading = best_reading(text);
    assert!(event::Raw::parse(&reading).is_ok(), "{reading}");
    if turn.takes(0) && is_plain_object && text.len() < 200 && depth(text) < 100 {
        let value = value.unwrap();
        assert_eq!(reading, text.trim_matches([' ', '\n', '\r', '\t']));
        for (at, _) in text.char_indices() {
            let start = &text[..at];
            let part: Value = serde_json::from_str(&best_reading(start))
                .unwrap_or_else(|e| panic!("{e}: {}", best_reading(start)));
            assert!(begins(&part, &value), "{part} of {start}");
            if serde_json::from_str::<Value>(start).is_err() {
                assert!(repair(start, true).is_none(), "cut, and repaired: {start}");
                let mut s = JsonScanner::default();
                s.push(start);
                assert!(!s.is_closed() || s.is_blank(), "cut, and closed: {start}");
            }
        }
    }
    // Literals of other notations.
    let new: [fn() -> Literal; 5] = [
        || Literal::value(Notation::Python),
        || Literal::arguments(Notation::Python, vec!["a".into(), "b".into()]),
        || Literal::value(Notation::Gemma { quote: "<|\"|>" }),
        || Literal::arguments(Notation::Gemma { quote: "<|\"|>" }, vec![]),
        || Literal::arguments(Notation::Gemma { quote: "<escape>" }, vec![]),
    ];
    for (law, new) in (1..).zip(new) {
        if !turn.takes(law) {
            continue;
        }
        let whole = literal(new(), &[text]);
        assert_eq!(literal(new(), &pieces), whole, "a literal in pieces");
        if let Ok((out, _)) = whole {
            assert!(
                serde_json::from_str::<&serde_json::value::RawValue>(&out).is_ok(),
                "{text:?} gave {out:?}"
            );
            assert!(!out.chars().any(char::is_control), "{out:?}");
        }
    }
}
