//! Calls with damage in their framing: nothing of them is lost without a word.
//!
//! The text is one call as its dialect writes it, with one mark or one piece of its syntax missing,
//! doubled or cut short. Whatever becomes of it, each word of the model is in the call, in the answer
//! or in a warning; a call that runs has the arguments that were meant, or a warning says that
//! something was wrong; and what stays text has a warning, too.

use crate::reading::{Found, Item, letters};
use json::ToolList;
use serde_json::{Value, json};
use std::rc::Rc;
use testkit::places::{hash, is_tried};
use toolpipe_tag::{Dialect, Look, Parser, PromptCall};

/// One in four texts with one piece damaged is damaged at a second piece, and one in so many of the
/// results is tried.
const TWICE: u64 = 16;

/// Here a value can swallow the next parameter without a word where both the marker behind the one
/// and the marker before the other are damaged: neither is left to be recognised.
const ONCE: [&str; 3] = ["beam", "kimi-k3", "minicpm5-xml"];

/// The words of the model: no dialect has them in its markers.
const WORDS: [&str; 7] = [
    "zq_find", "qplace", "Zoslo", "Znorth", "qnights", "7041", "qopen",
];

const CALL: PromptCall<'_> = PromptCall {
    id: "",
    name: "zq_find",
    arguments: r#"{"qplace": "Zoslo Znorth", "qnights": 7041, "qopen": true}"#,
};

fn tools() -> ToolList {
    let properties = json!({"qplace": {"type": "string"}, "qnights": {"type": "integer"}, "qopen": {"type": "boolean"}});
    let tool =
        json!([{"name": "zq_find", "parameters": {"type": "object", "properties": properties}}]);
    ToolList::read(&tool.to_string()).expect("a list of tools")
}

/// The pieces of a written call: tags, words, white space, and single characters.
fn pieces(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    let mut out = Vec::new();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '<' | '[' => rest[1..]
                .find(['<', '>', '[', ']', '{', '}', '"'])
                .filter(|at| rest[1 + at..].starts_with(['>', ']']))
                .map_or(1, |at| at + 2),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c if c.is_whitespace() => rest
                .find(|c: char| !c.is_whitespace())
                .unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

/// The text with one piece of its framing damaged, in every way.
fn damaged(text: &str) -> Vec<String> {
    let pieces = pieces(text);
    let mut out = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if piece.trim().is_empty() || WORDS.iter().any(|word| piece.contains(word)) {
            continue;
        }
        let short = &piece[..piece.char_indices().next_back().map_or(0, |(at, _)| at)];
        let mut replaced = vec![String::new(), short.to_owned()];
        // Signs twice beside a value may belong to it.
        let beside = [at.wrapping_sub(2), at.wrapping_sub(1), at + 1, at + 2];
        let is_value = |at: &usize| {
            let piece = pieces.get(*at).copied().unwrap_or_default();
            WORDS.iter().any(|word| piece.contains(word))
        };
        if piece.contains(char::is_alphanumeric) || !beside.iter().any(is_value) {
            replaced.push(piece.repeat(2));
        }
        if ["arguments", "parameters"].contains(piece) {
            replaced.extend(["args", "input", "params", "list"].map(str::to_owned));
        }
        for new in replaced {
            out.push(pieces[..at].concat() + &new + &pieces[at + 1..].concat());
        }
    }
    out.sort();
    out.dedup();
    out.retain(|damaged| damaged != text);
    out
}

/// What is wrong with what was found in a damaged text.
fn wrong(found: &Found, tools: &ToolList, text: &str, markers: &[&str]) -> Option<String> {
    let calls: Vec<_> = found
        .calls()
        .into_iter()
        .filter(|(.., done)| *done)
        .collect();
    let warnings: Vec<&Item> = found
        .items
        .iter()
        .filter(|item| matches!(item, Item::Warning(..)))
        .collect();
    let content = found.content();
    let named = |word: &str| {
        warnings
            .iter()
            .any(|item| matches!(item, Item::Warning(_, _, raw) if raw.contains(word)))
    };
    for word in WORDS.iter().filter(|word| text.contains(**word)) {
        // The name of a call that is taken back was in its first piece.
        let in_call = calls
            .iter()
            .any(|(name, arguments, _)| name.contains(word) || arguments.contains(word))
            || (!warnings.is_empty() && found.calls().iter().any(|(name, ..)| name == word));
        if !in_call && !content.contains(word) && !found.reasoning().contains(word) && !named(word)
        {
            return Some(format!("{word:?} is lost"));
        }
    }
    let meant: Value = serde_json::from_str(CALL.arguments).expect("arguments");
    for (name, arguments, _) in calls.iter().filter(|_| warnings.is_empty()) {
        // What is not JSON, or does not fit the schema, never runs.
        let given = serde_json::from_str::<Value>(arguments);
        let Some(given) = given.ok().filter(|_| tools.check(name, arguments).is_ok()) else {
            continue;
        };
        if name != CALL.name || given != meant {
            return Some(format!("{name} {arguments} without a warning"));
        }
    }
    // Where all markers are words or signs, or gone, nothing distinguishes the call from any text.
    // Markers in code are code.
    let has_marker = || {
        markers
            .iter()
            .any(|mark| content.contains(&mark[..mark.len() - 1]))
    };
    (warnings.is_empty() && !content.contains('`') && has_marker())
        .then(|| format!("{content:?} stays text without a warning"))
}

#[test]
fn nothing_of_a_damaged_call_is_lost_without_a_word() {
    let tools = Rc::new(tools());
    let mut tried = 0;
    let mut found_wrong = Vec::new();
    let only = std::env::var("CASES").unwrap_or_default();
    for dialect in Dialect::all().iter().filter(|d| d.name.contains(&only)) {
        let text = dialect.calls(&[CALL]);
        let pieces = pieces(&text);
        let is_marker = |piece: &&str| {
            piece.chars().count() > 3
                && piece.starts_with(['<', '['])
                && piece.contains(char::is_alphanumeric)
        };
        let markers: Vec<&str> = pieces.iter().copied().filter(is_marker).collect();
        let once = damaged(&text);
        let twice: Vec<String> = once
            .iter()
            .filter(|_| !ONCE.contains(&dialect.name))
            .filter(|text| hash(text.as_bytes()).is_multiple_of(4))
            .flat_map(|text| damaged(text))
            .filter(|text| hash(text.as_bytes()).is_multiple_of(TWICE))
            .collect();
        for text in once.into_iter().chain(twice) {
            let number = hash(text.as_bytes()) as usize;
            for names in [dialect.name, "auto"] {
                if !is_tried(number + names.len(), 4) {
                    continue;
                }
                tried += 1;
                let look = Rc::new(Look::new(names).expect("dialects of the table"));
                let read = |pieces: &mut dyn Iterator<Item = &str>| {
                    let mut found = Found::default();
                    let mut parser =
                        Parser::new(Rc::clone(&look), Some(Rc::clone(&tools)), Some(""));
                    pieces.for_each(|piece| parser.push(piece, &mut found));
                    parser.finish(false, &mut found);
                    found
                };
                let whole = read(&mut std::iter::once(&text[..]));
                let single = read(&mut letters(&text));
                if whole.calls() != single.calls() || whole.content() != single.content() {
                    found_wrong.push(format!(
                        "{} as {names}: {text}\n  in letters {:?}\n  whole {:?}",
                        dialect.name, single.items, whole.items
                    ));
                }
                if let Some(why) = wrong(&whole, &tools, &text, &markers) {
                    found_wrong.push(format!("{} as {names}: {why}\n{text}", dialect.name));
                }
            }
        }
    }
    assert!(tried > 500 || !only.is_empty(), "{tried} texts");
    assert!(
        found_wrong.is_empty(),
        "{} of {tried} wrong:\n{}",
        found_wrong.len(),
        found_wrong.join("\n\n")
    );
}
