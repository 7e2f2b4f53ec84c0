//! Values that hold closing markers, in every dialect whose values are written as they are: a
//! closing marker in a value is the value's, in line and on a line of its own, however the text is
//! cut.

use super::outcome::{Item, Outcome};
use super::reader::{Reader, Text};
use serde_json::{Value, json};
use testkit::places::{hash, is_tried};
use toolpipe_tag::{Dialect, PromptCall};

const PLACE: &str = "the value";

/// The text of a call of `save` whose `text` is this value, as it is, before another parameter or
/// as the only one.
fn call(dialect: &Dialect, value: &str, last: bool) -> String {
    let arguments = if last {
        json!({ "text": PLACE })
    } else {
        json!({"text": PLACE, "mode": "new"})
    };
    dialect
        .calls(&[PromptCall {
            id: "",
            name: "save",
            arguments: &arguments.to_string(),
        }])
        .replacen(PLACE, value, 1)
}

/// Whether values are written as they are: line ends are not escaped.
fn is_raw(dialect: &Dialect) -> bool {
    dialect
        .calls(&[PromptCall {
            id: "",
            name: "save",
            arguments: r#"{"text": "a\nb"}"#,
        }])
        .contains("a\nb")
}

/// The closing markers behind a value: its own, and those of the call and of the section.
fn closers(dialect: &Dialect) -> (String, Vec<String>) {
    let text = call(dialect, PLACE, true);
    let (_, tail) = text
        .split_once(PLACE)
        .expect("the value stands in the text");
    let start = ["]<]minimax[>[", "<|close|>", "<"]
        .into_iter()
        .find(|start| tail.contains(start))
        .unwrap_or("<");
    let mut markers = tail
        .split(start)
        .skip(1)
        .map(|rest| format!("{start}{}", rest.trim_end()));
    (markers.next().unwrap_or_default(), markers.collect())
}

/// Values that hold these markers.
fn values(closers: &[String]) -> Vec<String> {
    let mut out = vec![
        format!("one {} two", closers.join(" ")),
        format!("one{}two", closers.concat()),
        format!("one\n{}\ntwo", closers.join("\n")),
        format!(
            "one\n\n{}\n\ntwo\n{}\nthree",
            closers.join("\n\n"),
            closers.concat()
        ),
        closers.concat(),
    ];
    for closer in closers {
        let spaced = closer
            .strip_suffix('>')
            .map_or(closer.clone(), |stem| format!("{stem} >"));
        out.extend([
            format!("one {closer} two"),
            format!("one\n{closer}\ntwo"),
            format!("one\n{spaced}\ntwo"),
            format!("one\n{closer}{closer}\n{closer}\ntwo"),
            format!("{closer}\ntwo"),
            format!("one\n{closer}"),
        ]);
    }
    out
}

fn tools(typed: &Value) -> String {
    let properties = json!({"text": typed, "mode": {"type": "string"}});
    json!([{"type": "function", "function": {"name": "save", "parameters": {"type": "object", "properties": properties}}}])
        .to_string()
}

/// One call whose arguments are these, and nothing else.
fn is_call(outcome: &Outcome, arguments: &Value) -> bool {
    let lasting = outcome.lasting(true);
    let [("save", found, _)] = lasting.calls()[..] else {
        return false;
    };
    let text = outcome.text(false) + &outcome.text(true);
    lasting.0.len() == 1 + usize::from(!text.is_empty())
        && text.trim().is_empty()
        && serde_json::from_str::<Value>(found).is_ok_and(|found| found == *arguments)
}

/// What is wrong where `text` is to be one call with these arguments, read as `name`: this
/// dialect's name, or `auto`.
fn misread(
    reader: &mut Reader,
    dialect: &Dialect,
    name: &str,
    text: &str,
    tools: &str,
    arguments: &Value,
) -> Vec<String> {
    let input = Text {
        dialect: name,
        text,
        tools: Some(tools),
        prefill: Some(""),
        finish: "stop",
    };
    let (outcome, mut wrong) = reader.every(&input, false);
    if !is_call(&outcome, arguments) {
        wrong.push(format!("{:#?}", outcome.lines()));
    }
    wrong
        .into_iter()
        .map(|why| format!("{} as {name}: {text}\n{why}", dialect.name))
        .collect()
}

#[test]
fn a_value_holds_every_closer_but_its_own() {
    let mut reader = Reader::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    let only = std::env::var("CASES").unwrap_or_default();
    let types = [
        json!({"type": "string"}),
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ];
    for dialect in Dialect::all()
        .iter()
        .filter(|d| is_raw(d) && d.name.contains(&only))
    {
        count += 1;
        let (own, others) = closers(dialect);
        assert!(
            !own.is_empty() && !others.is_empty(),
            "{}: {own:?}, {others:?}",
            dialect.name
        );
        for (n, value) in values(&others).iter().enumerate() {
            let last = n % 2 == 0;
            let tools = tools(&types[n / 2 % 2]);
            let text = call(dialect, value, last);
            let arguments = if last {
                json!({ "text": value })
            } else {
                json!({"text": value, "mode": "new"})
            };
            for name in [dialect.name, "auto"] {
                if !is_tried(hash(text.as_bytes()) as usize ^ name.len(), 3) {
                    continue;
                }
                wrong.extend(misread(
                    &mut reader,
                    dialect,
                    name,
                    &text,
                    &tools,
                    &arguments,
                ));
            }
        }
    }
    assert!(count >= 20 || !only.is_empty(), "only {count} dialects");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The text with white space before the end of each closing tag.
fn spaced(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(end) = rest
        .find("</")
        .and_then(|at| Some(at + rest[at..].find('>')?))
    {
        out.extend([&rest[..end], " >"]);
        rest = &rest[end + 1..];
    }
    out + rest
}

#[test]
fn closing_tags_hold_white_space() {
    let mut reader = Reader::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    let tools = tools(&json!({"type": "string"}));
    let arguments = json!({"text": "a b", "mode": "new"});
    let call = PromptCall {
        id: "",
        name: "save",
        arguments: &arguments.to_string(),
    };
    for dialect in Dialect::all() {
        let written = dialect.calls(&[call]);
        let text = spaced(&written);
        count += usize::from(text != written);
        for name in [dialect.name, "auto"] {
            wrong.extend(misread(
                &mut reader,
                dialect,
                name,
                &text,
                &tools,
                &arguments,
            ));
        }
    }
    assert!(count >= 30, "only {count} dialects");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The value's closer is missing: the closers of the call end it at the end of the text and before
/// another call.
#[test]
fn a_value_without_its_closer_is_closed_with_its_call() {
    let mut reader = Reader::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    let tools = tools(&json!({"type": "string"}));
    let arguments = json!({ "text": "one two" });
    for dialect in Dialect::all().iter().filter(|d| is_raw(d)) {
        let (own, _) = closers(dialect);
        let one = call(dialect, "one two", true);
        let (head, tail) = one.split_once(&own).expect("the value's closer");
        // Strings between delimiters have no end without the second.
        if tail.trim().is_empty() || !own.contains(['/', '｜']) && !own.starts_with("<|close|>") {
            continue;
        }
        count += 1;
        let open = format!("{head}{tail}");
        let both = dialect.calls(
            &[PromptCall {
                id: "",
                name: "save",
                arguments: &arguments.to_string(),
            }; 2],
        );
        let twice = both.replacen(&own, "", 1);
        for name in [dialect.name, "auto"] {
            for (text, calls) in [(&open, 1), (&twice, 2)] {
                let input = Text {
                    dialect: name,
                    text,
                    tools: Some(&tools),
                    prefill: Some(""),
                    finish: "stop",
                };
                let (outcome, mut why) = reader.every(&input, false);
                let trim = |found: &str| {
                    serde_json::from_str(&found.replace("\\n", "")).unwrap_or(Value::Null)
                };
                let found = outcome.lasting(true);
                let found: Vec<Value> = found
                    .calls()
                    .iter()
                    .map(|(_, found, _)| trim(found))
                    .collect();
                if found != vec![arguments.clone(); calls] || !outcome.text(false).trim().is_empty()
                {
                    why.push(format!("{:#?}", outcome.lines()));
                }
                wrong.extend(
                    why.into_iter()
                        .map(|why| format!("{} as {name}: {text}\n{why}", dialect.name)),
                );
            }
            // What was cut there may have gone on.
            let cut = Text {
                dialect: name,
                text: &open,
                tools: Some(&tools),
                prefill: Some(""),
                finish: "length",
            };
            let (outcome, why) = reader.every(&cut, false);
            wrong.extend(why);
            if !outcome.lasting(true).calls().is_empty() {
                wrong.push(format!(
                    "{} as {name}, cut: {open}\n{:#?}",
                    dialect.name,
                    outcome.lines()
                ));
            }
        }
    }
    assert!(count >= 16, "only {count} dialects");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Behind closers that may be the end, the value is held for a while and then goes on; where that
/// is does not depend on the cuts.
#[test]
fn a_value_is_not_held_for_long() {
    const HELD: usize = 4096;
    let mut reader = Reader::new();
    let tools = tools(&json!({"type": "string"}));
    let head = "<tool_call>\n<function=save>\n<parameter=text>\none";
    for length in (HELD - 60..HELD + 20).chain([8000]) {
        let text = format!(
            "{head}\n</function>\n</tool_call>\n{}",
            "two ".repeat(length / 4) + &"-".repeat(length % 4)
        );
        let input = Text {
            dialect: "qwen3-coder-xml",
            text: &text,
            tools: Some(&tools),
            prefill: Some(""),
            finish: "stop",
        };
        let mut read = |size: usize, cut: bool| {
            let pieces: Vec<&str> = (0..text.len())
                .step_by(size)
                .map(|at| &text[at..text.len().min(at + size)])
                .collect();
            let mut outcome = Outcome::default();
            reader.parse(&input, &pieces, cut, &mut outcome);
            outcome
        };
        let whole = read(text.len(), false);
        for size in [1, 7, 4096] {
            assert_eq!(
                read(size, false).lasting(true).lines(),
                whole.lasting(true).lines(),
                "{length}, {size}"
            );
        }
        match whole.calls().len() {
            1 => assert!(length < HELD, "{length}: {:?}", whole.lines()),
            calls => assert!(
                calls == 0 && length + 40 > HELD,
                "{length}: {:?}",
                whole.lines()
            ),
        }
        let Some(Item::Call { arguments, .. }) = read(7, true).0.into_iter().next() else {
            panic!("no call")
        };
        assert!(
            arguments.len() > length || length < HELD,
            "{length}: {}",
            arguments.len()
        );
    }
}
