//! `docs/events.schema.json` is made from the descriptions of the event kinds, and events fit it.
//! `UPDATE=1 cargo test --test main schema::` rewrites the file. The lines of all recorded cases and
//! bodies are checked where they are printed, in `cases.rs` and `streams.rs`.

use crate::pipeline::schema::misfits;
use testkit::golden;

#[test]
fn the_file_is_what_the_kinds_describe() {
    let schema: serde_json::Value = serde_json::from_str(&event::payload::schema()).expect("JSON");
    let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
    let difference = golden::compare(
        &testkit::root().join("docs/events.schema.json"),
        text.as_bytes(),
    );
    assert_eq!(
        difference, None,
        "UPDATE=1 cargo test --test main schema:: rewrites the file"
    );
}

#[test]
fn events_of_other_types_and_further_fields_fit() {
    for line in [
        r#"{"type":"x"}"#,
        r#"{"type":"content_delta","text":"a","choice":1,"t":0.5,"stream":"s","more":[]}"#,
        r#"{"type":"tool_call_delta","index":0,"arguments":"{"}"#,
    ] {
        assert_eq!(misfits(line.as_bytes()), Vec::<String>::new());
    }
}

#[test]
fn what_no_command_writes_does_not_fit() {
    for line in [
        r#"{"type":"content_delta"}"#,
        r#"{"type":"content_delta","text":7}"#,
        r#"{"type":"content_delta","text":"a","choice":-1}"#,
        r#"{"type":"stream_end","finish_reason":"tired"}"#,
        r#"{"type":"tool_call","tool_id":"a","tool_name":"f"}"#,
        r#"{"type":"tool_call","tool_id":"a","tool_name":"f","arguments":"{}"}"#,
        r#"{"type":"tool_result","tool_id":"a","tool_name":"f","status":"done"}"#,
    ] {
        assert_ne!(misfits(line.as_bytes()), Vec::<String>::new(), "{line}");
    }
}
