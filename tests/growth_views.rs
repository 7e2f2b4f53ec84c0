//! Law 4, linear, of the views: the search of `growth.rs` with the forms of `tc-view`. The input is
//! many calls or streams that are all open at once, then one event about each of them. For four
//! times as many a view may take eight times the processor's time and write eight times the bytes.

use crate::pipeline::cost::{Cost, judge, none_is_wrong, now};
use event::Scanner;
use view::{FORMS, FormRow, Surface};

/// Events that open a call or a turn each; `#` is a number.
const OPENED: &[&str] = &[
    r#"{"type":"content_delta","stream":"s#","text":"x"}"#,
    r#"{"type":"content_delta","choice":#,"text":"x"}"#,
    r#"{"type":"tool_call_delta","index":#,"tool_name":"f","arguments":"{"}"#,
    r#"{"type":"tool_call","index":#,"tool_id":"a#","tool_name":"f","arguments":{},"commit":"final"}"#,
    r#"{"type":"tool_call","stream":"s#","index":0,"tool_id":"a","tool_name":"f","arguments":{},"commit":"final"}"#,
    r#"{"type":"tool_use","tool_id":"a#","tool_name":"f","status":"running","input_summary":""}"#,
];

/// Events about a call or a turn each.
const NAMED: &[&str] = &[
    r#"{"type":"stream_start","stream":"s#","v":1}"#,
    r#"{"type":"content_delta","stream":"s#","text":"x"}"#,
    r#"{"type":"tool_call_delta","index":#,"arguments":"}"}"#,
    r#"{"type":"tool_call","index":#,"tool_id":"a#","tool_name":"f","arguments":{},"commit":"final"}"#,
    r#"{"type":"tool_progress","tool_id":"a#","tool_name":"f","text":"x"}"#,
    r#"{"type":"tool_result","tool_id":"a#","tool_name":"f","status":"success","output":"x"}"#,
    r#"{"type":"tool_result","stream":"s#","tool_id":"a","tool_name":"f","status":"success","output":"x"}"#,
    r#"{"type":"retract","index":#,"reason":"x"}"#,
    r#"{"type":"message","stream":"s#","message":{"role":"assistant","content":"x"}}"#,
    r#"{"type":"message","message":{"role":"tool","tool_call_id":"a#","content":"x"}}"#,
    r#"{"type":"session_stats","stream":"s#","prompt_tokens":1}"#,
    r#"{"type":"stream_end","stream":"s#","finish_reason":"cancelled"}"#,
];

const SURFACE: Surface = Surface {
    size: || Some((80, 24)),
    is_terminal: true,
    colour: Some(true),
    no_time: false,
    contents: true,
    conversation: None,
};

/// Shows every event of one kind, then every event of another.
fn run(form: &FormRow, kinds: [&str; 2], n: usize) -> Cost {
    let (mut scanner, mut out, mut written) = (Scanner::default(), Vec::new(), 0);
    let mut view = (form.view)(&SURFACE);
    let lines: Vec<String> = kinds
        .iter()
        .flat_map(|kind| (0..n / 2).map(|i| kind.replace('#', &i.to_string())))
        .collect();
    let start = now();
    for line in &lines {
        view.push(&scanner.read(line).expect("an event"), &mut out);
        written += std::mem::take(&mut out).len();
    }
    view.finish(&mut out);
    Cost {
        micros: now() - start,
        written: written + out.len(),
    }
}

#[test]
fn events_about_many_calls_and_streams_that_are_open() {
    let mut wrong = Vec::new();
    // Metrics keep a bounded number of calls and streams; a search through those has a bound, too.
    for form in FORMS.iter().filter(|form| form.name != "openmetrics") {
        for opened in OPENED {
            for named in NAMED {
                judge(
                    || format!("{}, {opened} and {named}", form.name),
                    &mut wrong,
                    |n| run(form, [opened, named], n),
                );
            }
        }
    }
    none_is_wrong(&wrong);
}
