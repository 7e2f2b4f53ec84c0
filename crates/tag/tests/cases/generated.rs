//! What holds for every dialect of the table, in texts that the table's own writer writes: a new
//! row is tested by being there.

use super::outcome::Outcome;
use super::reader::{Found, Reader, Text};
use serde_json::{Value, json};
use testkit::places::{MARKUP, Sample, hash, is_tried};
use toolpipe_tag::{Dialect, PromptCall};

pub(crate) const HUT: PromptCall<'_> = PromptCall {
    id: "",
    name: "find_hut",
    arguments: r#"{"beds": 4}"#,
};
pub(crate) const PING: PromptCall<'_> = PromptCall {
    id: "",
    name: "ping",
    arguments: "{}",
};

/// How many dialects the table has at least.
pub(crate) const ALL: usize = 73;

/// A law, the dialects that cannot express its texts or mean them otherwise, and why.
type Exception = (&'static str, fn(&Dialect) -> bool, &'static str);

const EXCEPTIONS: &[Exception] = &[
    (
        "text before",
        Dialect::begins_messages,
        "a call counts only where a message begins",
    ),
    (
        "an unknown tool, byte for byte",
        Dialect::drops_its_markers,
        "markers that frame other messages too are left out",
    ),
    (
        "an unknown tool warns",
        Dialect::needs_known_tools,
        "without a known tool it is ordinary text: nothing to warn of",
    ),
    (
        "quoted in reasoning",
        Dialect::call_closes_reasoning,
        "reasoning ends with the marker that ends a call",
    ),
];

pub(crate) fn excepted(law: &str, dialect: &Dialect) -> bool {
    EXCEPTIONS
        .iter()
        .any(|(l, has, _)| *l == law && has(dialect))
}

pub(crate) fn tools() -> String {
    let text = json!({"type": "string"});
    let hut = json!({"type": "object", "properties": {
        "beds": {"type": "integer"}, "note": text, "tags": {"type": "array", "items": text},
        "near": {"type": "object", "properties": {"place": text, "on": {"type": "object", "properties": {"day": text}}}}
    }});
    let tool = |name: &str, parameters: &Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    json!([
        tool("find_hut", &hut),
        tool("ping", &json!({"type": "object", "properties": {}}))
    ])
    .to_string()
}

/// Reads a text of each dialect in every way, with its name and without, and hands the outcome to
/// `law`, which says what is wrong with it. At least `least` dialects must be read: neither be
/// excepted nor have no text. Returns how many were.
pub(crate) fn every(
    name: &str,
    least: usize,
    auto: bool,
    text: impl Fn(&Dialect) -> Option<String>,
    law: impl Fn(&Dialect, &str, &Outcome) -> Result<(), String>,
) -> usize {
    one_in(1, name, least, auto, text, law)
}

/// The same for a law with several texts for each dialect: one in `some` of them is tried, and
/// every other one of these without the dialect's name, or all with `LAWS=full`.
pub(crate) fn one_in(
    some: usize,
    name: &str,
    least: usize,
    auto: bool,
    text: impl Fn(&Dialect) -> Option<String>,
    law: impl Fn(&Dialect, &str, &Outcome) -> Result<(), String>,
) -> usize {
    let mut reader = Reader::new();
    let tools = tools();
    let mut wrong = Vec::new();
    let only = std::env::var("CASES").unwrap_or_default();
    let mut read = 0;
    for dialect in Dialect::all().iter().filter(|d| d.name.contains(&only)) {
        let Some(text) = text(dialect).filter(|_| !excepted(name, dialect)) else {
            continue;
        };
        read += 1;
        let number = hash(text.as_bytes()) as usize;
        if !is_tried(number, some) {
            continue;
        }
        for read_as in [dialect.name, "auto"]
            .into_iter()
            .take(1 + usize::from(auto))
        {
            let is_auto = read_as == "auto";
            if is_auto && (!is_tried(!number, 2) || excepted(&format!("auto: {name}"), dialect)) {
                continue;
            }
            let input = Text {
                dialect: read_as,
                text: &text,
                tools: Some(&tools),
                prefill: Some(""),
                finish: "stop",
            };
            let (outcome, mut why) = reader.every(&input, false);
            why.extend(law(dialect, &text, &outcome).err());
            if !why.is_empty() {
                let why = why.join("\n");
                wrong.push(format!(
                    "{} as {read_as}: {text}\n{why}\n{:#?}",
                    dialect.name,
                    outcome.lines()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        read >= least || !only.is_empty(),
        "{name}: {read} dialects read, not {least}"
    );
    read
}

/// Just these calls, and this text of the answer, but for white space at its ends.
pub(crate) fn gives(
    outcome: &Outcome,
    calls: &[PromptCall<'_>],
    content: &str,
) -> Result<(), String> {
    let found = outcome.calls();
    let same = found.len() == calls.len()
        && found.iter().zip(calls).all(|((name, arguments, _), call)| {
            let a = serde_json::from_str::<Value>(arguments);
            let b = serde_json::from_str::<Value>(call.arguments);
            *name == call.name && a.is_ok_and(|a| b.is_ok_and(|b| a == b))
        });
    if !same {
        return Err(format!("calls {found:?}, not {calls:?}"));
    }
    if outcome.lasting(true).calls().len() != calls.len() {
        return Err("a call was taken back".to_owned());
    }
    if outcome.text(false).trim() != content.trim() {
        return Err(format!(
            "content {:?}, not {content:?}",
            outcome.text(false)
        ));
    }
    if outcome.text(true).is_empty() {
        Ok(())
    } else {
        Err(format!("reasoning {:?}", outcome.text(true)))
    }
}

/// No call, and the text as it was.
pub(crate) fn is_text(outcome: &Outcome, text: &str) -> Result<(), String> {
    gives(outcome, &[], text)?;
    if outcome.text(false) == text {
        Ok(())
    } else {
        Err(format!("content {:?}", outcome.text(false)))
    }
}

#[test]
fn one_call() {
    every(
        "one call",
        ALL,
        true,
        |d| Some(d.calls(&[HUT])),
        |_, _, found| gives(found, &[HUT], ""),
    );
}

#[test]
fn two_calls() {
    every(
        "two calls",
        ALL,
        true,
        |d| Some(d.calls(&[HUT, PING])),
        |_, _, found| gives(found, &[HUT, PING], ""),
    );
    every(
        "two calls",
        ALL,
        false,
        |d| Some(d.calls(&[HUT, HUT])),
        |_, _, found| gives(found, &[HUT, HUT], ""),
    );
}

#[test]
fn no_arguments() {
    every(
        "no arguments",
        ALL,
        true,
        |d| Some(d.calls(&[PING])),
        |_, _, found| gives(found, &[PING], ""),
    );
}

#[test]
fn text_before() {
    let text = |d: &Dialect| {
        Some(format!(
            "Let me look for 京都 <one> first.\n{}",
            d.calls(&[HUT])
        ))
    };
    every("text before", 67, true, text, |_, _, found| {
        gives(found, &[HUT], "Let me look for 京都 <one> first.")
    });
}

#[test]
fn text_after() {
    let text = |d: &Dialect| Some(format!("{}\nThat was it ☕, a < b.", d.calls(&[HUT])));
    every("text after", ALL, true, text, |_, _, found| {
        gives(found, &[HUT], "That was it ☕, a < b.")
    });
}

#[test]
fn text_between() {
    let text = |d: &Dialect| {
        Some(format!(
            "{}\nAnd now 東京:\n{}",
            d.calls(&[HUT]),
            d.calls(&[PING])
        ))
    };
    // The text between the calls precedes the second call.
    every("text before", 67, true, text, |_, _, found| {
        gives(found, &[HUT, PING], "And now 東京:")
    });
}

/// Whether a prompt that is not known opened reasoning is guessed; what is a call is not.
#[test]
fn a_prompt_that_is_not_known() {
    let mut reader = Reader::new();
    let tools = tools();
    let mut wrong = Vec::new();
    let mut read = 0;
    for dialect in Dialect::all()
        .iter()
        .filter(|d| !excepted("text before", d))
    {
        read += 1;
        let text = format!("Let me look for 京都.\n{}", dialect.calls(&[HUT]));
        for name in [dialect.name, "auto"] {
            let input = Text {
                dialect: name,
                text: &text,
                tools: Some(&tools),
                prefill: None,
                finish: "stop",
            };
            let (outcome, mut why) = reader.every(&input, false);
            if outcome.calls().len() != 1 || outcome.text(false).trim() != "Let me look for 京都."
            {
                why.push(format!("{:?}", outcome.lines()));
            }
            wrong.extend(
                why.into_iter()
                    .map(|why| format!("{} as {name}: {text}\n{why}", dialect.name)),
            );
        }
    }
    assert!(read >= 55, "{read} dialects read");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The pieces of a text that look like markers.
fn marks(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let pairs = [("<", ">"), ("[", "]"), ("{", "}")];
    for (open, close) in pairs {
        for (at, _) in text.match_indices(open) {
            let Some(end) = text[at..].find(close) else {
                continue;
            };
            let mark = &text[at..at + end + 1];
            if !mark.contains('\n') && !out.contains(&mark) {
                out.push(mark);
            }
        }
    }
    out.extend(text.lines().filter(|line| line.len() < 24));
    out
}

#[test]
fn a_marker_inside_a_string() {
    let mut read = 0;
    for n in 0..16 {
        let arguments = move |d: &Dialect| {
            let text = d.calls(&[HUT]);
            let mark = *marks(&text).get(n)?;
            Some(json!({"note": format!("before {mark} after"), "beds": 4}).to_string())
        };
        read += one_in(
            2,
            "a marker inside a string",
            0,
            false,
            |d| {
                arguments(d).map(|a| {
                    d.calls(&[PromptCall {
                        arguments: &a,
                        ..HUT
                    }])
                })
            },
            |d, _, found| {
                let arguments = arguments(d).unwrap_or_default();
                gives(
                    found,
                    &[PromptCall {
                        arguments: &arguments,
                        ..HUT
                    }],
                    "",
                )
            },
        );
    }
    assert!(read >= 448, "{read} texts read");
}

#[test]
fn nested_values() {
    const DEEP: PromptCall<'_> = PromptCall {
        arguments: r#"{"near": {"place": "<div><b>x</b></div>", "on": {"day": "1}]"}}, "tags": ["a", "[b]"], "note": "<note><beds>2</beds></note>"}"#,
        ..HUT
    };
    every(
        "nested values",
        ALL,
        true,
        |d| Some(d.calls(&[DEEP])),
        |_, _, found| gives(found, &[DEEP], ""),
    );
}

#[test]
fn letters_of_every_length() {
    const WIDE: PromptCall<'_> = PromptCall {
        arguments: r#"{"note": "京都 ☕ 👩‍💻 é", "tags": ["東", "🛖"]}"#,
        ..HUT
    };
    let text = |d: &Dialect| Some(format!("{}\n山小屋 👍", d.calls(&[WIDE])));
    every("letters", ALL, true, text, |_, _, found| {
        gives(found, &[WIDE], "山小屋 👍")
    });
}

#[test]
fn an_unknown_tool_is_text() {
    let other = [PromptCall {
        name: "launch_rocket",
        arguments: r#"{"note": "now"}"#,
        ..HUT
    }];
    every(
        "an unknown tool",
        ALL,
        true,
        |d| Some(d.calls(&other)),
        |d, text, found| match excepted("an unknown tool, byte for byte", d) {
            true if found.calls().is_empty() && found.text(false).contains("now") => Ok(()),
            _ => is_text(found, text),
        },
    );
    every(
        "an unknown tool",
        ALL,
        false,
        |d| Some(d.calls(&other)),
        |d, _, found| match (
            found.warned("tag_unparsed") > 0,
            excepted("an unknown tool warns", d),
        ) {
            (false, false) => Err("no warning".to_owned()),
            (true, true) => Err("a warning".to_owned()),
            _ => Ok(()),
        },
    );
}

/// A text in a string that is a call itself stays text when the call around it fails, wherever that
/// is.
#[test]
fn a_call_inside_a_call_that_fails() {
    let mut reader = Reader::new();
    let tools = tools();
    let mut wrong = Vec::new();
    let mut count = 0;
    for dialect in Dialect::all() {
        let inner = dialect.calls(&[PING]);
        let note = Value::from(inner);
        let whole = dialect.calls(&[PromptCall {
            arguments: &json!({ "note": note }).to_string(),
            ..HUT
        }]);
        // A value without escapes cannot hold closers in the form and place of its own call's.
        let note = note.to_string();
        let Some(from) = whole.find(&note) else {
            continue;
        };
        count += 1;
        let places = Sample::NARROW.between(&whole, MARKUP);
        for at in places.into_iter().filter(|at| *at >= from) {
            let text = format!("{} sorry: \u{1}\"]}} no.", &whole[..at]);
            let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
            for name in [dialect.name, "auto"] {
                let input = Text {
                    dialect: name,
                    text: &text,
                    tools: Some(&tools),
                    prefill: Some(""),
                    finish: "stop",
                };
                for pieces in [&[&text[..]][..], &letters] {
                    let mut found = Found::default();
                    reader.parse(&input, pieces, false, &mut found);
                    if found.calls.iter().any(|c| c.done && c.name == PING.name)
                        || found.all != text
                    {
                        wrong.push(format!(
                            "{} as {name}, {} pieces: {text}\n{found:?}",
                            dialect.name,
                            pieces.len()
                        ));
                    }
                }
            }
        }
    }
    assert!(count > 30, "{count} dialects have escapes");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A model that stops inside a call and continues in prose: an incomplete call is text.
#[test]
fn malformed() {
    let mut reader = Reader::new();
    let tools = tools();
    let mut wrong = Vec::new();
    for dialect in Dialect::all() {
        let whole = dialect.calls(&[HUT]);
        for at in Sample::NARROW.between(&whole, MARKUP) {
            let text = format!("{} sorry, I cannot do that", &whole[..at]);
            for name in [dialect.name, "auto"] {
                let input = Text {
                    dialect: name,
                    text: &text,
                    tools: Some(&tools),
                    prefill: Some(""),
                    finish: "stop",
                };
                let mut found = Found::default();
                reader.parse(&input, &[&text], false, &mut found);
                let done: Vec<_> = found.calls.iter().filter(|c| c.done).collect();
                let right = done.len() <= 1
                    && done.iter().all(|c| {
                        c.name == HUT.name
                            && c.arguments.replace(' ', "") == HUT.arguments.replace(' ', "")
                    });
                if !right || found.all != text {
                    wrong.push(format!("{} as {name}: {text}\n{found:?}", dialect.name));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// No call is whole while another argument may follow, wherever the text is broken off.
#[test]
fn whole_only_when_closed() {
    let mut reader = Reader::new();
    let tools = tools();
    let mut wrong = Vec::new();
    let more = PromptCall {
        arguments: r#"{"beds": 4, "note": "x"}"#,
        ..HUT
    };
    for dialect in Dialect::all() {
        let one = dialect.calls(&[HUT]);
        let two = dialect.calls(&[more]);
        let same = one
            .chars()
            .zip(two.chars())
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum();
        for name in [dialect.name, "auto"] {
            let input = Text {
                dialect: name,
                text: &one,
                tools: Some(&tools),
                prefill: Some(""),
                finish: "length",
            };
            let ends = one
                .char_indices()
                .map(|(at, _)| at)
                .take_while(|at| *at <= same);
            for at in ends {
                let mut found = Found::default();
                reader.parse(&input, &[&one[..at]], true, &mut found);
                if found.calls.iter().any(|c| c.done) {
                    wrong.push(format!(
                        "{} as {name}: {:?} is whole",
                        dialect.name,
                        &one[..at]
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
