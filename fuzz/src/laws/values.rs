//! Schemas from strangers: tool lists, the type of bare text, the check of arguments. No panic, no
//! growth, valid JSON out.
//!
//! Input: the length of the schema, the schema, then the text.

use super::{Target, Turn};
use json::{Schema, ToolList, ValueType, equal};
use serde_json::Value;

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "values",
    check,
};

fn check(bytes: &[u8], _: Turn) {
    let [length, rest @ ..] = bytes else { return };
    let (schema, text) = rest.split_at(rest.len().min(usize::from(*length) * 4));
    let (schema, text) = (
        &*String::from_utf8_lossy(schema),
        &*String::from_utf8_lossy(text),
    );
    if let Ok(list) = ToolList::read(schema) {
        let shown = list.openai(|_| true);
        let again = ToolList::read(&shown).unwrap_or_else(|e| panic!("{e}: {shown}"));
        assert_eq!(again.openai(|_| true), shown);
    }
    if let Ok(value) = serde_json::from_str::<Value>(schema) {
        let kind = ValueType::new(&value);
        for kind in [kind.clone(), kind.property("a"), kind.items()] {
            let mut out = String::new();
            let _ = kind.convert(text, &mut out);
            assert!(event::Raw::parse(&out).is_ok(), "{out}");
            if kind.only_string() {
                assert_eq!(
                    event::Raw::parse(&out)
                        .ok()
                        .and_then(|r| r.str().map(|s| s.into_owned()))
                        .as_deref(),
                    Some(text)
                );
            }
        }
        assert!(kind.keys().all(|key| kind.declares(key)));
        if let Ok(schema) = Schema::new(schema) {
            let _ = schema.check(text);
        }
    }
    if let (Ok(a), Ok(b)) = (event::Raw::parse(schema), event::Raw::parse(text)) {
        assert_eq!(equal(a, b), equal(b, a));
        assert!(equal(a, a));
    }
}
