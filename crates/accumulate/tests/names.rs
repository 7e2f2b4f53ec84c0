//! Names that are nearly a known tool's: the call is that tool's, with a warning.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::{Collect, Kind, Scanner, quoted};
use json::ToolList;
use std::rc::Rc;
use toolpipe_accumulate::{Accumulate, AccumulateOptions};

/// All names in the output of a stream whose call has its name in these pieces: of deltas, of the
/// call, and of the message; and the warnings.
fn outcome(pieces: &[&str], live: bool) -> (Vec<String>, Vec<String>) {
    let tools = r#"[{"name":"find_hut","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}},{"name":"ping"}]"#;
    let options = AccumulateOptions {
        tools: Some(Rc::new(ToolList::read(tools).unwrap())),
        live,
        ..AccumulateOptions::default()
    };
    let mut lines = vec![r#"{"type":"stream_start","v":1,"id":"r1"}"#.to_owned()];
    lines.extend(pieces.iter().map(|piece| {
        format!(
            r#"{{"type":"tool_call_delta","index":0,"tool_name":{}}}"#,
            quoted(piece)
        )
    }));
    lines.extend([
        r#"{"type":"tool_call_delta","index":0,"arguments":"{\"n\":"}"#.to_owned(),
        format!(
            r#"{{"type":"tool_call_delta","index":0,"tool_name":{},"arguments":"1}}"}}"#,
            quoted(pieces.last().unwrap())
        ),
        r#"{"type":"stream_end","finish_reason":"tool_calls"}"#.to_owned(),
    ]);
    let out = Collect::run(&mut Accumulate::new(Rc::new(options)), &lines);
    let (mut names, mut warnings) = (Vec::new(), Vec::new());
    let mut scanner = Scanner::default();
    for line in &out {
        let event = scanner.read(line).unwrap();
        match event.kind() {
            Kind::ToolCallDelta | Kind::ToolCall => {
                names.extend(event.get_str("tool_name").map(|name| name.into_owned()));
            }
            Kind::Message => {
                let message = event.get("message").unwrap();
                for call in message.get("tool_calls").unwrap().items() {
                    let function = call.get("function").unwrap();
                    names.push(function.get_str("name").unwrap().into_owned());
                }
            }
            Kind::Warning => warnings.push(event.get_str("message").unwrap().into_owned()),
            _ => {}
        }
    }
    (names, warnings)
}

#[test]
fn a_framed_name_is_the_known_tool_everywhere_with_one_warning() {
    for pieces in [
        &["find_hut<|channel|>commentary"][..],
        &["functions.find_hut"],
        &["default_api.find_hut"],
        &["functions_find_hut_1"],
        // The name so far each time, and in pieces.
        &["functions.find", "functions.find_hut"],
        &["find_", "hut<|channel|>commentary"],
        &["find_hut<|cha", "find_hut<|channel|>commentary"],
    ] {
        for live in [false, true] {
            let (names, warnings) = outcome(pieces, live);
            assert!(
                names.len() == if live { 3 } else { 2 } && names.iter().all(|n| n == "find_hut"),
                "{pieces:?}: {names:?}"
            );
            let said: Vec<_> = warnings
                .iter()
                .filter(|w| w.ends_with("which is read as the tool find_hut"))
                .collect();
            assert_eq!(said.len(), 1, "{pieces:?}: {warnings:?}");
        }
    }
}

#[test]
fn a_name_that_means_no_tool_stays_as_it_came() {
    for name in [
        "find_hut",
        "ping2",
        "list<|channel|>commentary",
        "other.find_hut",
    ] {
        let (names, warnings) = outcome(&[name], false);
        assert!(
            names.iter().all(|n| n == name) && warnings.is_empty(),
            "{name}: {names:?} {warnings:?}"
        );
    }
}
