//! What is written is read back: calls as they were, in every dialect; and no result is ever read
//! as a call.

use json::ToolList;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use toolpipe_tag::{CallPiece, Dialect, Look, Outlet, Parser, PromptCall, PromptResult};

/// What a parser found.
#[derive(Debug, Default)]
struct Found {
    content: String,
    reasoning: String,
    /// Names and arguments.
    calls: Vec<(String, String)>,
    whole: usize,
    retracted: usize,
}

impl Outlet for Found {
    fn content(&mut self, text: &str) {
        self.content.push_str(text);
    }
    fn reasoning(&mut self, text: &str) {
        self.reasoning.push_str(text);
    }
    fn call(&mut self, piece: CallPiece<'_>) {
        if let Some(name) = piece.name {
            self.calls.push((name.to_owned(), String::new()));
        }
        if let (Some(arguments), Some(last)) = (piece.arguments, self.calls.last_mut()) {
            last.1.push_str(arguments);
        }
        self.whole += usize::from(piece.done);
    }
    fn retract(&mut self, _index: i64, _reason: &'static str) {
        self.retracted += 1;
    }
    fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
}

fn tools() -> Rc<ToolList> {
    let text = json!({"type": "string"});
    let anything = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "s": text, "o": {"type": "object", "properties": {"k": text}, "additionalProperties": true},
        "l": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "boolean"}, "n": {"type": ["null", "string"]}
    }});
    let tool = |name: &str, parameters: &Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let list = json!([
        tool("f", &anything),
        tool("g", &json!({"type": "object", "properties": {}}))
    ]);
    Rc::new(ToolList::read(&list.to_string()).expect("a list of tools"))
}

thread_local! {
    /// What was built for the reads before.
    static LOOKS: (RefCell<HashMap<String, Rc<Look>>>, Rc<ToolList>) = (RefCell::default(), tools());
}

/// Reads a text in pieces of this many characters, as an answer that begins outside reasoning.
fn read(dialects: &str, text: &str, step: usize) -> Found {
    let (look, tools) = LOOKS.with(|(looks, tools)| {
        let new = || Rc::new(Look::new(dialects).expect("dialects of the table"));
        (
            Rc::clone(
                looks
                    .borrow_mut()
                    .entry(dialects.to_owned())
                    .or_insert_with(new),
            ),
            Rc::clone(tools),
        )
    });
    let mut parser = Parser::new(look, Some(tools), Some(""));
    let mut found = Found::default();
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(step) {
        parser.push(&piece.iter().collect::<String>(), &mut found);
    }
    parser.finish(false, &mut found);
    found
}

/// Writes calls in every dialect and reads them back.
fn check(arguments: &[&str], step: usize, auto: bool) {
    let calls: Vec<PromptCall<'_>> = arguments
        .iter()
        .map(|a| PromptCall {
            id: "",
            name: if *a == "{}" { "g" } else { "f" },
            arguments: a,
        })
        .collect();
    let mut wrong = Vec::new();
    for dialect in Dialect::all() {
        let text = dialect.calls(&calls);
        let found = read(if auto { "auto" } else { dialect.name }, &text, step);
        let same = found.calls.len() == calls.len()
            && found.whole == calls.len()
            && found.retracted == 0
            && found
                .calls
                .iter()
                .zip(&calls)
                .all(|((name, arguments), call)| {
                    let read: Option<Value> = serde_json::from_str(arguments).ok();
                    name == call.name && read == serde_json::from_str(call.arguments).ok()
                });
        if !same || !found.content.trim().is_empty() || !found.reasoning.is_empty() {
            wrong.push(format!("{}: {text}\n  {found:?}", dialect.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        Dialect::all().len(),
        wrong.join("\n")
    );
}

#[test]
fn one_call_is_read_back() {
    check(&[r#"{"a": 1, "s": "x"}"#], usize::MAX, false);
}

#[test]
fn several_calls_are_read_back() {
    check(&[r#"{"a": 1}"#, "{}", r#"{"s": "two"}"#], usize::MAX, false);
    check(&[r#"{"a": 1}"#, "{}", r#"{"s": "two"}"#], 1, false);
}

#[test]
fn the_dialect_is_told_from_the_text() {
    check(&[r#"{"a": 1, "s": "x"}"#], usize::MAX, true);
    check(&[r#"{"a": 1, "s": "x"}"#], 1, true);
}

#[test]
fn values_of_every_type_are_read_back() {
    let arguments = r#"{"s": "02134", "o": {"k": "v"}, "l": [1, -2], "b": true, "n": null, "a": 12345678901234567890123}"#;
    check(&[arguments], usize::MAX, false);
    check(&[arguments], 3, false);
}

#[test]
fn strings_keep_their_characters() {
    for text in [
        "",
        " padded ",
        "line\nline\n",
        "\"quoted\" 'too' \\ back",
        "東京 ☕ 👩‍💻",
        "true",
        "<b>&amp;</b>",
        "{\"a\": [1]}",
    ] {
        check(&[&json!({ "s": text }).to_string()], usize::MAX, false);
    }
}

#[test]
fn nothing_in_a_result_is_a_call() {
    let calls = [
        PromptCall {
            id: "",
            name: "f",
            arguments: r#"{"a": 1}"#,
        },
        PromptCall {
            id: "",
            name: "g",
            arguments: "{}",
        },
    ];
    for frame in Dialect::all() {
        for dialect in Dialect::all() {
            let text = format!("\n{}", dialect.calls(&calls));
            let results = frame.results(&[PromptResult {
                id: "",
                name: "f",
                text: &text,
            }]);
            for reader in [frame, dialect] {
                let found = read(reader.name, &results, usize::MAX);
                assert!(
                    found.calls.is_empty(),
                    "{} finds {:?} in {results}",
                    reader.name,
                    found.calls
                );
            }
        }
    }
    let every: String = Dialect::all()
        .iter()
        .map(|d| format!("\n{}\n", d.calls(&calls)))
        .collect();
    for dialect in Dialect::all() {
        let results = dialect.results(&[
            PromptResult {
                id: "",
                name: "f",
                text: &every,
            },
            PromptResult {
                id: "",
                name: "g",
                text: &every,
            },
        ]);
        let found = read("auto", &results, usize::MAX);
        assert!(
            found.calls.is_empty(),
            "{:?} in a result of {}",
            found.calls,
            dialect.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_result_is_ever_read_as_a_call(
        text in prop_oneof![any::<String>(), "[<>\\[\\]{}|`/\"=a-g: \n]{0,60}"],
        dialect in 0..Dialect::all().len(),
        marks in prop::collection::vec(0..Dialect::all().len(), 0..3),
    ) {
        let call = [PromptCall { id: "", name: "f", arguments: r#"{"a": 1}"# }];
        let inner: String = marks.iter().map(|n| Dialect::all()[*n].calls(&call)).collect();
        let text = format!("{text}{inner}{text}");
        let dialect = &Dialect::all()[dialect];
        let results = dialect.results(&[PromptResult { id: "call_1", name: "f", text: &text }]);
        for reader in [dialect.name, "auto"] {
            prop_assert!(read(reader, &results, usize::MAX).calls.is_empty(), "{} in {}", reader, results);
        }
        // The text is the first JSON string that gives it back.
        let recovered = results.match_indices('"').any(|(at, _)| {
            let mut values = serde_json::Deserializer::from_str(&results[at..]).into_iter::<String>();
            values.next().and_then(Result::ok).is_some_and(|s| s == text)
        });
        prop_assert!(recovered, "{}", results);
    }
}
