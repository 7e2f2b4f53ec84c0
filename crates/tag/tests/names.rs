//! Names of listed tools with framing around them, in every dialect.

use crate::reading::{Item, PLAIN, letters, read};
use std::collections::BTreeMap;
use toolpipe_tag::{Dialect, PromptCall};

/// Names that mean the tool `f`, and the dialects that read each as text: those whose headers have
/// `functions.` themselves or take another body behind it, and, of a name that begins as no listed
/// tool's, those whose forms prose could hold.
const FRAMED: [(&str, &[&str]); 4] = [
    ("functions.f", &["beam", "harmony", "kimi-k2", "muse-atem"]),
    ("default_api.f", &["harmony", "kimi-k2"]),
    (
        "functions_f_1",
        &["harmony", "kimi-k2", "pythonic", "react", "tool-code"],
    ),
    (TOKEN, &[]),
];

/// Many dialects end a name at a character that no name has, so that this is text in them. Where
/// the name is a string of JSON, it is read.
const TOKEN: &str = "f<|channel|>commentary";

/// Here a token behind a name is the next field of a header.
const HEADERS: [&str; 2] = ["beam", "harmony"];

#[test]
fn a_framed_name_is_the_listed_tool_with_a_warning_or_text() {
    let mut wrong = Vec::new();
    let mut unread = BTreeMap::<&str, Vec<&str>>::new();
    for dialect in Dialect::all() {
        for (name, _) in FRAMED {
            let text = dialect.calls(&[PromptCall {
                id: "call_0",
                name,
                arguments: r#"{"a": 1, "s": "x y"}"#,
            }]);
            for found in [
                read(dialect.name, PLAIN, [&*text]),
                read(dialect.name, PLAIN, letters(&text)),
            ] {
                let is_said = found
                    .items
                    .iter()
                    .any(|item| matches!(item, Item::Warning("name_repaired", ..)));
                let calls: Vec<_> = found.calls().into_iter().filter(|call| call.2).collect();
                match &calls[..] {
                    [] => {
                        let names = unread.entry(name).or_default();
                        if names.last() != Some(&dialect.name) {
                            names.push(dialect.name);
                        }
                    }
                    [(tool, ..)] if tool == "f" && is_said => {}
                    [(tool, ..)]
                        if tool == "f" && name == TOKEN && HEADERS.contains(&dialect.name) => {}
                    _ => wrong.push(format!("{}, {text:?}: {:?}", dialect.name, found.items)),
                }
            }
        }
    }
    for (name, dialects) in FRAMED {
        let found = unread.remove(name).unwrap_or_default();
        if name == TOKEN {
            assert!(!found.contains(&"hermes"), "{found:?}");
        } else if found != dialects {
            wrong.push(format!("{name} is text in {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
