//! The views on small conversations, and on random events.

#![expect(clippy::unwrap_used, reason = "a test")]

use crate::events::any_event;
use event::{Scanner, View};
use proptest::prelude::*;
use testkit::Emulator;
use toolpipe_view::{self as view, Term, Terminal, is_hidden};

/// The output of a view for `lines`: one piece an event, and one for the end.
fn pieces(view: &mut dyn View, lines: &[String]) -> Vec<String> {
    let mut scanner = Scanner::default();
    let mut pieces = Vec::new();
    for line in lines {
        let mut out = Vec::new();
        view.push(&scanner.read(line).unwrap(), &mut out);
        pieces.push(String::from_utf8(out).unwrap());
    }
    let mut out = Vec::new();
    view.finish(&mut out);
    pieces.push(String::from_utf8(out).unwrap());
    pieces
}

fn lines(text: &str) -> Vec<String> {
    text.trim().lines().map(|l| l.trim().to_owned()).collect()
}

fn on(columns: usize, rows: usize, colour: bool) -> Terminal {
    Terminal {
        columns,
        rows,
        colour,
    }
}

const TURN: &str = r#"
    {"type":"message","message":{"role":"user","content":"Which hut?"}}
    {"type":"stream_start","v":1,"api":"openai-chat"}
    {"type":"thinking","text":"\n\nTwo look-ups."}
    {"type":"content_delta","text":"\n\nLet me "}
    {"type":"content_delta","text":"see."}
    {"type":"tool_call","index":0,"tool_id":"a","tool_name":"huts","arguments":{"day":"saturday"},"commit":"balanced"}
    {"type":"tool_use","tool_id":"a","tool_name":"huts","status":"running","input_summary":"saturday"}
    {"type":"tool_call","index":1,"tool_id":"b","tool_name":"weather","arguments":{"day":"saturday","n":2},"commit":"balanced"}
    {"type":"tool_use","tool_id":"b","tool_name":"weather","status":"running","input_summary":"saturday"}
    {"type":"tool_result","tool_id":"b","tool_name":"weather","status":"error","output":"no\nstation","exit_code":3,"duration_ms":12.4}
    {"type":"content_delta","text":" One moment."}
    {"type":"tool_result","tool_id":"a","tool_name":"huts","status":"success","output":"Lake hut\t12 beds","duration_ms":1234}
    {"type":"message","message":{"role":"assistant","content":"Let me see. One moment.","tool_calls":[]}}
    {"type":"stream_end","finish_reason":"tool_calls"}
    {"type":"session_stats","prompt_tokens":10,"completion_tokens":20,"total_tokens":30}
    {"type":"message","message":{"role":"tool","tool_call_id":"a","content":"Lake hut\t12 beds"}}
"#;

#[test]
fn text_has_a_line_for_the_start_and_the_end_of_a_call() {
    let text = pieces(&mut view::text(false, false), &lines(TURN)).concat();
    let expected = r#"> Which hut?

thinking: Two look-ups.

Let me see.

-> huts {"day":"saturday"}
-> weather {"day":"saturday","n":2}

 One moment.

<- huts done, 1.2 s: Lake hut 12 beds
<- weather error, exit 3, 12 ms: no station
"#;
    assert_eq!(text, expected);
    // However fast the tools are, the results are shown when the model's turn is over.
    let mut early = lines(TURN);
    let huts = early.remove(11);
    let weather = early.remove(9);
    early.insert(7, huts);
    early.insert(10, weather);
    assert_eq!(
        pieces(&mut view::text(false, false), &early).concat(),
        expected
    );
    let text = pieces(&mut view::text(false, true), &lines(TURN)).concat();
    assert!(
        text.contains("<- huts done: Lake hut 12 beds\n") && !text.contains("12 ms"),
        "{text}"
    );
}

/// A call that waits for a person, in a turn that is over.
const WAITING: &str = r#"
{"type":"stream_start","v":1}
{"type":"tool_call","index":0,"tool_id":"c1","tool_name":"reserve","arguments":{}}
{"type":"message","message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"reserve","arguments":"{}"}}]}}
{"type":"stream_end","finish_reason":"tool_calls"}
{"type":"tool_result","tool_id":"c1","tool_name":"reserve","status":"pending","output":"It waits."}
"#;

#[test]
fn a_call_that_was_approved_has_its_result_in_every_view() {
    let start = r#"{"type":"stream_start","v":1}"#;
    let text = r#"{"type":"content_delta","text":"Meanwhile."}"#;
    let end = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    let approval = r#"{"type":"approval","tool_id":"c1","tool_name":"reserve","hash":"54fb","decision":"approved","by":"ann","reason":"Four beds are enough."}"#;
    let run = r#"{"type":"tool_use","tool_id":"c1","tool_name":"reserve","input_summary":""}"#;
    let result = r#"{"type":"tool_result","tool_id":"c1","tool_name":"reserve","status":"success","output":"reserved"}"#;
    let message = r#"{"type":"message","message":{"role":"tool","tool_call_id":"c1","name":"reserve","content":"reserved"}}"#;
    let many: String = (0..300)
        .map(|n| format!("{start}\n{{\"type\":\"tool_call\",\"tool_id\":\"m{n}\",\"tool_name\":\"f\",\"arguments\":{{}}}}\n{end}\n{{\"type\":\"tool_result\",\"tool_id\":\"m{n}\",\"tool_name\":\"f\",\"status\":\"success\",\"output\":\"\"}}\n"))
        .collect();
    let ran = format!("{approval}\n{run}\n{result}\n{message}\n");
    for (what, rest) in [
        ("at once", ran.clone()),
        (
            "and then the model goes on",
            format!("{ran}{start}\n{text}\n{end}"),
        ),
        (
            "after another turn",
            format!("{start}\n{text}\n{end}\n{ran}"),
        ),
        (
            "within another turn",
            format!("{start}\n{text}\n{ran}{text}\n{end}"),
        ),
        (
            "within a turn without an end",
            format!("{start}\n{text}\n{ran}"),
        ),
        ("after many calls", format!("{many}{ran}")),
        (
            "within a turn after many calls",
            format!("{many}{start}\n{text}\n{ran}"),
        ),
        ("by a message alone", format!("{approval}\n{message}\n")),
    ] {
        let log = lines(&format!("{WAITING}{rest}"));
        let shown = pieces(&mut view::text(false, true), &log).concat();
        assert_eq!(
            shown
                .matches("<- reserve waits for approval: It waits.\n")
                .count(),
            1,
            "{what}: {shown}"
        );
        assert_eq!(
            shown.matches("<- reserve done: reserved\n").count(),
            1,
            "{what}: {shown}"
        );
        let approved = "[reserve: approved by ann: Four beds are enough.]\n";
        assert!(shown.contains(approved), "{what}: {shown}");
        let mut screen = Emulator::new(60, 2000);
        for piece in pieces(&mut Term::new(on(60, 2000, false), true), &log) {
            screen.write(&piece);
        }
        let shown = screen.text();
        assert!(shown.contains("✓ reserve"), "{what}: {shown}");
        for report in [
            pieces(&mut view::markdown(true), &log),
            pieces(&mut view::html(true), &log),
        ] {
            let report = report.concat();
            assert!(
                report.contains("reserved") && report.contains("by ann: Four beds are enough."),
                "{what}: {report}"
            );
        }
    }
}

#[test]
fn no_card_arrives_after_the_end_of_its_stream() {
    let log = std::fs::read_to_string(testkit::root().join("fixtures/views/arriving/in.ndjson"))
        .expect("a log");
    let log = lines(&log);
    let mut seen = Vec::new();
    let mut screen = Emulator::new(60, 50);
    for piece in pieces(&mut Term::new(on(60, 50, false), true), &log) {
        screen.write(&piece);
        seen.push(screen.text());
    }
    for (at, line) in log
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains("stream_end"))
    {
        assert!(
            seen[at - 1].contains("arriving") && !seen[at].contains("arriving"),
            "{line}: {}",
            seen[at]
        );
    }
    // The end of the input is the end of a stream.
    assert!(!screen.text().contains("arriving"), "{}", screen.text());
}

#[test]
fn cards_change_in_place_and_text_goes_on_above_them() {
    let mut screen = Emulator::new(60, 24);
    let mut seen = Vec::new();
    for piece in pieces(&mut Term::new(on(60, 24, true), false), &lines(TURN)) {
        screen.write(&piece);
        seen.push(screen.text());
    }
    let running = "Let me see.\n\n  ● huts  day: saturday                             running\n  \
                   ● weather  day: saturday, n: 2                    running";
    assert!(seen[8].ends_with(running), "{}", seen[8]);
    assert!(
        seen[10].contains("Let me see. One moment.\n\n  ● huts"),
        "{}",
        seen[10]
    );
    let expected = "❯ Which hut?

Two look-ups.

Let me see. One moment.

  ✓ huts  day: saturday                               1.2 s
    Lake hut 12 beds
  ✗ weather  day: saturday, n: 2       error, exit 3, 12 ms
    no station

· 10 in · 20 out";
    assert_eq!(screen.text(), expected);
}

#[test]
fn a_log_of_messages_alone_is_shown_too() {
    let log = lines(
        r#"
        {"type":"message","message":{"role":"system","content":"never shown"}}
        {"type":"message","message":{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"image_url"}]}}
        {"type":"message","message":{"role":"assistant","content":null,"reasoning":"hm","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}}
        {"type":"message","message":{"role":"tool","tool_call_id":"x","content":"2"}}
        {"type":"message","message":{"role":"assistant","content":"It is 2."}}
        "#,
    );
    let expected = "> Hi[image_url]\n\nthinking: hm\n\n-> f {\"a\":1}\n<- f done: 2\n\nIt is 2.\n";
    assert_eq!(
        pieces(&mut view::text(false, false), &log).concat(),
        expected
    );
    let json = pieces(&mut view::JsonView::default(), &log).concat();
    let call =
        r#"{"tool_id":"x","tool_name":"f","arguments":{"a":1},"status":"answered","output":"2"}"#;
    assert_eq!(
        json,
        format!("{{\"text\":\"It is 2.\",\"calls\":[{call}]}}\n")
    );
}

#[test]
fn json_is_the_final_answer() {
    let mut log = lines(TURN);
    log.extend(lines(
        r#"
        {"type":"stream_start","v":1}
        {"type":"thinking","text":"So"}
        {"type":"content_delta","text":"Lake "}
        {"type":"content_delta","text":"hut."}
        {"type":"message","message":{"role":"assistant","content":"Lake hut."}}
        {"type":"stream_end","finish_reason":"stop"}
        {"type":"session_stats","prompt_tokens":1,"completion_tokens":2}
        {"type":"error","stream":"other","code":"tape_miss","message":"no \u001b such"}
        "#,
    ));
    let json = pieces(&mut view::JsonView::default(), &log).concat();
    let expected = concat!(
        r#"{"text":"Lake hut.","reasoning":"So","calls":["#,
        r#"{"tool_id":"a","tool_name":"huts","arguments":{"day":"saturday"},"status":"success","output":"Lake hut\t12 beds"},"#,
        r#"{"tool_id":"b","tool_name":"weather","arguments":{"day":"saturday","n":2},"status":"error","exit_code":3,"output":"no\nstation"}],"#,
        r#""finish_reason":"stop","usage":{"prompt_tokens":11,"completion_tokens":22,"total_tokens":30}}"#,
        "\n",
        r#"{"stream":"other","text":"","calls":[],"error":{"code":"tape_miss","message":"no \u001b such"}}"#,
        "\n"
    );
    assert_eq!(json, expected);
}

#[test]
fn deltas_that_nobody_merged_refusals_and_retractions() {
    let log = lines(
        r#"
        {"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"{\"x\""}
        {"type":"tool_call_delta","index":0,"arguments":":1}"}
        {"type":"tool_call","index":0,"tool_id":"b","tool_name":"g","arguments":null,"arguments_text":"{\"p","error":{"code":"incomplete","message":"cut at the token limit"}}
        {"type":"tool_call","index":1,"tool_id":"c","tool_name":"h","arguments":{}}
        {"type":"retract","index":1,"reason":"stream_failed"}
        {"type":"stream_end","finish_reason":"length"}
        {"type":"error","source":"llm-stream","code":"disconnected","message":"the peer left","retryable":true}
        {"type":"decision","tool_call":true,"checker":"full","reason":"a call began"}
        "#,
    );
    let expected = r#"-> g {"p
-> h {}
<- h taken back
-> f {"x":1}
warning: the answer was cut at the token limit
error: llm-stream: the peer left (disconnected)
[a tool call (full: a call began)]
<- g refused: incomplete: cut at the token limit
"#;
    assert_eq!(
        pieces(&mut view::text(false, false), &log).concat(),
        expected
    );
}

#[test]
fn a_result_that_comes_after_its_turn_finds_its_call() {
    let log = lines(
        r#"
        {"type":"tool_call","index":0,"tool_id":"call_0","tool_name":"f","arguments":{}}
        {"type":"stream_end","finish_reason":"tool_calls"}
        {"type":"stream_start","v":1}
        {"type":"decision","tool_call":false,"checker":"full","reason":"none"}
        {"type":"content_delta","text":"So"}
        {"type":"tool_result","tool_id":"call_0","tool_name":"f","status":"success","output":"1"}
        {"type":"stream_end","finish_reason":"stop"}
        {"type":"stream_start","v":1}
        {"type":"tool_call","index":0,"tool_id":"call_0","tool_name":"g","arguments":{}}
        "#,
    );
    let expected = "-> f {}\n\nSo\n\n[no tool call (full: none)]\n<- f done: 1\n\n-> g {}\n";
    assert_eq!(
        pieces(&mut view::text(false, false), &log).concat(),
        expected
    );
    let mut screen = Emulator::new(40, 20);
    pieces(&mut Term::new(on(40, 20, false), false), &log)
        .iter()
        .for_each(|p| screen.write(p));
    let text = screen.text();
    let names: Vec<_> = text.lines().filter_map(|l| l.get(..7)).collect();
    assert_eq!(names, ["  ○ f", "· no t", "  ✓ f", "  ○ g"]);
}

#[test]
fn words_move_down_whole_and_wide_characters_do_not_break_a_card() {
    let log = lines(
        r#"
        {"type":"content_delta","text":"The quick brown fo"}
        {"type":"content_delta","text":"xes jump. 天気はどうですか天気はどうですか"}
        {"type":"tool_result","tool_id":"a","tool_name":"天気","status":"success","output":"晴れ🙂晴れ🙂晴れ🙂晴れ🙂晴れ🙂","duration_ms":3}
        "#,
    );
    let mut screen = Emulator::new(24, 20);
    pieces(&mut Term::new(on(24, 20, false), false), &log)
        .iter()
        .for_each(|p| screen.write(p));
    let expected = "The quick brown foxes
jump. 天気はどうですか
天気はどうですか

  ✓ 天気         3.0 ms
    晴れ🙂晴れ🙂晴れ🙂…";
    assert_eq!(screen.text(), expected);
}

#[test]
fn after_an_interrupt_nothing_is_drawn_again() {
    let log = lines(
        r#"
        {"type":"content_delta","text":"Some **text"}
        {"type":"tool_use","tool_id":"a","tool_name":"f","status":"running"}
        {"type":"tool_use","tool_id":"b","tool_name":"g","status":"running"}
        {"type":"content_delta","text":"** and"}
        {"type":"tool_progress","tool_id":"b","tool_name":"g","text":"half"}
        {"type":"tool_result","tool_id":"a","tool_name":"f","status":"cancelled","output":"The command was ended before it was done."}
        {"type":"tool_result","tool_id":"b","tool_name":"g","status":"success","output":"1"}
        "#,
    );
    let mut scanner = Scanner::default();
    let mut view = Term::new(on(40, 20, false), true);
    let mut out = Vec::new();
    for line in &log[..3] {
        view.push(&scanner.read(line).unwrap(), &mut out);
    }
    assert!(view.interrupt(&mut out), "calls are running");
    out.clear();
    for line in &log[3..] {
        view.push(&scanner.read(line).unwrap(), &mut out);
    }
    view.finish(&mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(
        !text.contains("\u{1b}[A") && !text.contains("\u{1b}[J"),
        "{text:?}"
    );
    assert_eq!(
        text.matches("f\u{1b}").count() + text.matches("g\u{1b}").count(),
        2,
        "{text:?}"
    );
    assert!(!view.interrupt(&mut Vec::new()), "no call is running");
}

#[test]
fn a_call_that_is_taken_back_while_it_runs_keeps_its_card_in_the_next_turn() {
    let log = lines(
        r#"
        {"type":"tool_use","tool_id":"a","tool_name":"f","status":"running"}
        {"type":"retract","tool_id":"a","reason":"reasoning"}
        {"type":"stream_start","stream":"other","v":1}
        {"type":"tool_use","stream":"other","tool_id":"b","tool_name":"g","status":"running"}
        {"type":"tool_result","tool_id":"a","tool_name":"f","status":"cancelled","output":""}
        "#,
    );
    let mut screen = Emulator::new(40, 20);
    pieces(&mut Term::new(on(40, 20, false), true), &log)
        .iter()
        .for_each(|p| screen.write(p));
    let text = screen.text();
    let names: Vec<_> = text.lines().filter_map(|l| l.get(..7)).collect();
    assert_eq!(names, ["  – f", "[other]", "  – g"], "{text}");
}

#[test]
fn more_cards_than_rows_are_counted() {
    let log: Vec<_> = (0..50)
        .map(|n| format!(r#"{{"type":"tool_call","index":{n},"tool_id":"{n}","tool_name":"f{n}","arguments":{{}}}}"#))
        .collect();
    let mut screen = Emulator::new(40, 10);
    let pieces = pieces(&mut Term::new(on(40, 10, false), false), &log);
    pieces[..50].iter().for_each(|p| screen.write(p));
    assert!(screen.text().starts_with("  ○ f0"), "{}", screen.text());
    assert!(
        screen.text().ends_with("… and 43 more calls"),
        "{}",
        screen.text()
    );
    screen.write(&pieces[50]);
    let text = screen.text();
    let names: Vec<_> = text
        .lines()
        .map(|l| l.split_whitespace().nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(names, (0..50).map(|n| format!("f{n}")).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn no_control_character_gets_out(
        log in prop::collection::vec(any_event(), 0..12),
        columns in 1..120_usize,
        rows in 1..30_usize,
        colour: bool,
        no_time: bool,
    ) {
        let text = pieces(&mut view::text(false, no_time), &log).concat();
        prop_assert!(!text.contains(is_hidden), "{text:?}");
        let json = pieces(&mut view::JsonView::default(), &log).concat();
        prop_assert!(!json.chars().any(|c| c.is_control() && c != '\n'), "{json:?}");
        // The emulator stops at any sequence that is not one of ours, and at anything in the last
        // column.
        let mut screen = Emulator::new(columns.max(8), rows.max(4));
        for piece in pieces(&mut Term::new(on(columns, rows, colour), no_time), &log) {
            screen.write(&piece);
        }
        prop_assert!(colour || screen.colours == 0);
        prop_assert!(!screen.text().contains(is_hidden));
        prop_assert_eq!(screen.lost, 0, "the cursor left the top of the screen");
    }
}
