//! Calls in reasoning, in every dialect of the table: what may still turn out to be rehearsed is
//! not whole.

use super::outcome::Outcome;
use super::reader::{Found, Reader, Text};
use super::texts::{HUT, PING, excepted, tools};
use serde_json::Value;
use toolpipe_tag::Dialect;

/// The calls of this text that were emitted before its end, and with it, when it comes by single
/// characters.
fn read(reader: &mut Reader, dialect: &str, text: &str, prefill: Option<&str>) -> (Found, Found) {
    let tools = tools();
    let input = Text {
        dialect,
        text,
        tools: Some(&tools),
        prefill,
        finish: "stop",
    };
    let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
    let mut before = Found::default();
    let mut all = Found::default();
    reader.open(&input, &letters, &mut before);
    reader.parse(&input, &letters, false, &mut all);
    (before, all)
}

/// Whether whoever reads the calls so far may start one.
fn may_start(found: &Found) -> bool {
    found
        .calls
        .iter()
        .any(|c| c.done || serde_json::from_str::<Value>(&c.arguments).is_ok())
}

#[test]
fn a_call_in_reasoning_waits_for_the_end_of_the_text() {
    let mut reader = Reader::new();
    let mut wrong = Vec::new();
    let mut waited = 0;
    for dialect in Dialect::all() {
        let Some((open, close)) = dialect.reasoning() else {
            continue;
        };
        let call = dialect.calls(&[HUT]);
        for name in [dialect.name, "auto"] {
            let thought = format!("{open}I could {call}");
            let (before, all) = read(&mut reader, name, &thought, Some(""));
            let always = dialect.call_always_ends_reasoning();
            if may_start(&before) != always {
                wrong.push(format!("{} as {name}: {thought}\n{before:?}", dialect.name));
            }
            waited += usize::from(!always && all.calls.iter().any(|c| c.done));
            let closed = format!("{thought} but no.{close}Done.");
            let (_, all) = read(&mut reader, name, &closed, Some(""));
            if !always && may_start(&all) && !dialect.call_closes_reasoning() {
                wrong.push(format!("{} as {name}: {closed}\n{all:?}", dialect.name));
            }
        }
    }
    assert!(waited > 20, "{waited} calls ended reasoning");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Where the prompt cannot open reasoning, neither answers nor calls are held back to see whether
/// they are reasoning.
#[test]
fn what_is_read_right_without_the_name_is_read_right_with_it() {
    let mut reader = Reader::new();
    let tools = tools();
    let mut wrong = Vec::new();
    for dialect in Dialect::all().iter().filter(|d| d.may_begin_in_reasoning()) {
        let Some((_, close)) = dialect.reasoning() else {
            continue;
        };
        let call = dialect.calls(&[HUT]);
        let mut texts = vec![
            (format!("Two beds.{close}Yes."), 0),
            (format!("Two beds.\n{close}\nYes.\n{call}"), 1),
            (
                format!(
                    "I could {}, or\n{close}\nYes.\n{call}",
                    dialect.calls(&[PING])
                ),
                1,
            ),
        ];
        if excepted("text before", dialect) {
            texts.truncate(1);
        }
        for (text, calls) in texts {
            let right = |name: &str, reader: &mut Reader| {
                let input = Text {
                    dialect: name,
                    text: &text,
                    tools: Some(&tools),
                    prefill: None,
                    finish: "stop",
                };
                let (outcome, mut why) = reader.every(&input, false);
                let (reasoning, content) = text.split_once(close).unwrap_or_default();
                let content = content.replace(&call, "");
                let same = |a: &str, b: &str| a.trim() == b.trim();
                let lasting: Outcome = outcome.lasting(true);
                if !(same(&outcome.text(true), reasoning)
                    && same(&outcome.text(false), &content)
                    && lasting.calls().len() == calls)
                {
                    why.push(format!(
                        "{} as {name}: {text}\n{:#?}",
                        dialect.name,
                        outcome.lines()
                    ));
                }
                why
            };
            let named = right(dialect.name, &mut reader);
            if !named.is_empty() && right("auto", &mut reader).is_empty() {
                wrong.extend(named);
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
