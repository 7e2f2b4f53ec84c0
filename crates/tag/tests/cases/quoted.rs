//! What is quoted is text, in every dialect of the table: in code, behind a quotation mark, and in
//! an answer that is JSON.

use super::texts::{ALL, HUT, PING, every, gives, is_text, one_in};
use serde_json::json;
use toolpipe_tag::Dialect;

#[test]
fn quoted_in_a_fence() {
    let text = |d: &Dialect| {
        Some(format!(
            "It goes like this:\n````\n{}\n````\nSee?",
            d.calls(&[HUT, PING])
        ))
    };
    every("quoted in a fence", ALL, true, text, |_, text, found| {
        is_text(found, text)
    });
}

/// A fence is a call only where it is what the dialect writes round its calls; a marked call inside
/// it is quoted.
#[test]
fn quoted_in_a_fence_of_any_word() {
    for word in [
        "xml",
        "json",
        "tool_call",
        "tool",
        "tool_code",
        "text",
        "python",
    ] {
        let text = |d: &Dialect| {
            let call = d.calls(&[HUT]);
            let marked =
                !call.contains("```") && !call.starts_with(['{', '[']) || call.starts_with("[TOOL");
            marked.then(|| format!("It goes like this:\n```{word}\n{call}\n```\nSee?"))
        };
        one_in(3, "quoted in a fence", 64, true, text, |_, text, found| {
            is_text(found, text)
        });
    }
}

#[test]
fn quoted_in_inline_code() {
    let text = |d: &Dialect| {
        let call = d.calls(&[HUT]).replace('\n', " ");
        (!call.contains('`')).then(|| format!("Write `{call}` then."))
    };
    every("quoted in inline code", 68, true, text, |_, text, found| {
        is_text(found, text)
    });
}

/// The quotation marks that docs/tag-mode.md promises.
const QUOTES: [&str; 21] = [
    "\"", "'", "“", "”", "„", "‟", "‘", "’", "‚", "‛", "«", "»", "‹", "›", "「", "」", "『", "』",
    "〝", "＂", "＇",
];

#[test]
fn right_behind_a_quotation_mark() {
    for mark in QUOTES {
        for (calls, least) in [(&[HUT][..], ALL), (&[HUT, PING], 35)] {
            // One mark quotes one call, or one section of calls.
            let text = |d: &Dialect| {
                let mut text = d.calls(calls);
                if text.starts_with(" to=") {
                    // Muse's first header begins in the prompt.
                    text.insert_str(0, "<|start|>assistant");
                }
                let one = calls.len() == 1
                    || d.calls(&[HUT, PING]).len() < d.calls(&[HUT]).len() + d.calls(&[PING]).len();
                one.then(|| format!("The page said {mark}{text}{mark} there."))
            };
            one_in(
                8,
                "quoted by a mark",
                least,
                mark == "\"" || mark == "“",
                text,
                |_, text, found| {
                    is_text(found, text)?;
                    if found.warned("tag_unparsed") > 0 {
                        Err("a warning".to_owned())
                    } else {
                        Ok(())
                    }
                },
            );
        }
    }
}

/// What follows a quoted call is read as ever.
#[test]
fn a_call_after_a_quoted_one() {
    let text = |d: &Dialect| {
        Some(format!(
            "They said “{}” there.\n{}",
            d.calls(&[PING]),
            d.calls(&[HUT])
        ))
    };
    every("text before", 67, true, text, |d, _, found| {
        if found.calls().len() == 1 && found.calls()[0].0 == HUT.name {
            Ok(())
        } else {
            Err(format!("{}: {:?}", d.name, found.calls()))
        }
    });
}

/// The same inside reasoning that a call would end.
#[test]
fn quoted_in_reasoning() {
    let text = |d: &Dialect| {
        let (open, close) = d.reasoning()?;
        Some(format!(
            "{open}They said “{}” there.{close}Done.",
            d.calls(&[HUT])
        ))
    };
    every("quoted in reasoning", 69, true, text, |d, text, found| {
        let (open, close) = d.reasoning().unwrap_or_default();
        let (reasoning, content) = text[open.len()..].split_once(close).unwrap_or_default();
        if !found.calls().is_empty()
            || found.text(true) != reasoning
            || found.text(false) != content
        {
            return Err("not all of it is reasoning".to_owned());
        }
        Ok(())
    });
}

/// An answer that is JSON, whose strings hold a call: escaped as JSON is, and as models write it.
#[test]
fn inside_a_string_of_json() {
    let escaped = |d: &Dialect| {
        let note = format!("see {} there", d.calls(&[HUT]));
        Some(json!({"tags": ["a", note], "beds": 4, "note": note}).to_string())
    };
    every("inside JSON", ALL, true, escaped, |_, text, found| {
        is_text(found, text)
    });
    let pretty = |d: &Dialect| {
        Some(format!(
            "[\n  {{\n    \"tags\": [\n      {}\n    ]\n  }}\n]",
            json!(format!("see\t{}", d.calls(&[PING])))
        ))
    };
    every("inside JSON", ALL, true, pretty, |_, text, found| {
        is_text(found, text)
    });
    let raw = |d: &Dialect| {
        let call = d.calls(&[PING]);
        (!call.contains('"')).then(|| format!("{{\"note\": \"see\n{call}\nthere\"}}"))
    };
    every("inside JSON", 37, true, raw, |_, text, found| {
        is_text(found, text)
    });
    let string = |d: &Dialect| Some(json!(format!("see {} there", d.calls(&[PING]))).to_string());
    every("inside JSON", ALL, true, string, |_, text, found| {
        is_text(found, text)
    });
}

#[test]
fn behind_an_answer_that_is_json() {
    let text = |d: &Dialect| {
        Some(format!(
            "{{\"tags\": [\"a\"], \"note\": \"</think>\"}}\n{}",
            d.calls(&[HUT])
        ))
    };
    every("text before", 67, true, text, |_, text, found| {
        gives(found, &[HUT], text.lines().next().unwrap_or_default())
    });
}
