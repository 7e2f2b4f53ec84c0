//! `tc-eval report-card` as a user runs it.

use crate::run::Folder;
use std::path::Path;

/// The deviations of recordings of fixtures/streams, which were read by hand: `FILE: CODE CODE …`.
const ROWS: &str = include_str!("report_card/rows.txt");

fn fixtures() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .display()
        .to_string()
}

#[test]
fn each_recording_shows_its_deviations_and_no_others() {
    let folder = Folder::new();
    let fixtures = fixtures();
    let ran = folder.run(&["report-card", "--format", "json", &fixtures]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let mut wrong = Vec::new();
    for line in ROWS.lines().filter(|line| !line.is_empty()) {
        let (file, codes) = line.split_once(':').expect("FILE: CODES");
        let ran = folder.run(&[
            "report-card",
            "--format",
            "json",
            &format!("{fixtures}/streams/{file}"),
        ]);
        let found: Vec<String> = ran
            .lines()
            .iter()
            .filter_map(|line| Some(line["deviation"].as_str()?.to_owned()))
            .collect();
        if found.join(" ") != codes.trim() {
            wrong.push(format!("{file}: {} and not{codes}", found.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The deviations that no recording in `fixtures/` shows.
const MADE_UP: [&str; 6] = [
    "id_twice",
    "name_framed",
    "extra_text",
    "invalid_arguments",
    "no_finish",
    "other_warning",
];

#[test]
fn deviations_without_a_recording_show_in_a_made_up_log() {
    let folder = Folder::new();
    let warnings = ["id_twice", "name_repaired", "extra_text", "bad_json_path"]
        .map(|code| format!("{{\"type\":\"warning\",\"code\":\"{code}\",\"message\":\"x\"}}\n"))
        .concat();
    let call = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"oops","done":true}"#;
    folder.write(
        "a.ndjson",
        format!("{{\"type\":\"stream_start\",\"v\":1,\"api\":\"openai-chat\"}}\n{warnings}{call}\n{{\"type\":\"stream_end\",\"finish_reason\":\"tool_calls\"}}\n"),
    );
    let ran = folder.run(&["report-card", "--format", "json", "a.ndjson"]);
    let found: Vec<_> = ran
        .lines()
        .iter()
        .map(|line| line["deviation"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(found, MADE_UP, "{}", ran.err);
}

#[test]
fn every_deviation_of_the_table_shows_in_some_recording() {
    let ran = Folder::new().run(&["report-card", "--format", "json", &fixtures()]);
    let found: Vec<String> = ran
        .lines()
        .iter()
        .filter_map(|line| Some(line["deviation"].as_str()?.to_owned()))
        .collect();
    for deviation in score::deviation::DEVIATIONS {
        let code = deviation.code;
        let is_found = found.iter().any(|known| known == code);
        assert!(
            is_found || MADE_UP.contains(&code),
            "no recording shows {code}"
        );
    }
}

#[test]
fn a_place_is_the_event_and_the_end_of_its_frame() {
    let folder = Folder::new();
    let file = format!(
        "{}/streams/openai-chat/row-07-name-repeated.sse",
        fixtures()
    );
    let ran = folder.run(&["report-card", "--format", "json", &file]);
    let line = ran
        .lines()
        .into_iter()
        .find(|line| line["deviation"] == "name_repeated")
        .expect("the deviation");
    let body = std::fs::read(&file).expect("the body");
    let offset = usize::try_from(line["example"]["offset"].as_u64().expect("a number"))
        .expect("a small number");
    let before = String::from_utf8_lossy(&body[..offset]);
    // The third chunk is the first that has the name again.
    assert_eq!(before.matches("data:").count(), 3, "{before}");
    assert_eq!(line["example"]["event"], 3);
    assert_eq!(
        (line["row"].as_str(), line["seen"].as_u64()),
        (Some("row-07"), Some(1))
    );
}

const START: &str = r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}"#;
const STOP: &str =
    r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

fn body(end: &str) -> String {
    format!("data: {START}{end}{end}data: {STOP}{end}{end}data: [DONE]{end}{end}")
}

#[test]
fn an_expected_card_fails_when_deviations_appear_or_vanish() {
    let folder = Folder::new();
    folder.write("rec/a.sse", body("\n"));
    let saved = folder.run(&["report-card", "rec", "--save", "card.ndjson"]);
    assert_eq!(saved.status, Some(0), "{}", saved.err);
    assert_eq!(saved.out, "openai-chat / m: 1 stream\n  no deviation\n");
    let same = folder.run(&["report-card", "rec", "--expect", "card.ndjson"]);
    assert_eq!(
        (same.status, same.out.as_str(), same.err.as_str()),
        (Some(0), "", "")
    );

    // More recordings of the same kind change counts only.
    folder.write("rec/b.sse", body("\n"));
    assert_eq!(
        folder
            .run(&["report-card", "rec", "--expect", "card.ndjson"])
            .status,
        Some(0)
    );

    folder.write("rec/c.sse", format!(": keep-alive\n{}", body("\r\n")));
    let new = folder.run(&["report-card", "rec", "--expect", "card.ndjson"]);
    assert_eq!(new.status, Some(1));
    let lines: Vec<&str> = new.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", new.out);
    assert!(
        lines[0]
            .starts_with("openai-chat / m: crlf is new (lines end with CRLF), rec/c.sse, byte "),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains("comments is new"), "{}", lines[1]);

    folder.run(&["report-card", "rec", "--save", "card.ndjson"]);
    std::fs::remove_file(folder.path("rec/c.sse")).expect("removed");
    let gone = folder.run(&[
        "report-card",
        "rec",
        "--expect",
        "card.ndjson",
        "--format",
        "markdown",
    ]);
    assert_eq!(gone.status, Some(1));
    assert!(
        gone.err.contains("crlf is gone") && gone.err.contains("comments is gone"),
        "{}",
        gone.err
    );
    assert!(gone.out.starts_with("| streams of |"), "{}", gone.out);

    // A group without recordings cannot be checked, which must fail too.
    let edited = folder
        .read("card.ndjson")
        .replace("\"model\":\"m\"", "\"model\":\"other\"");
    folder.write("card.ndjson", edited);
    let missing = folder.run(&["report-card", "rec", "--expect", "card.ndjson"]);
    assert_eq!(missing.status, Some(1));
    assert!(
        missing
            .out
            .contains("openai-chat / other: no recording of it"),
        "{}",
        missing.out
    );
}

#[test]
fn the_card_of_the_same_recordings_is_the_same_bytes() {
    let folder = Folder::new();
    let fixtures = fixtures();
    for name in ["one", "two"] {
        assert_eq!(
            folder
                .run(&["report-card", &fixtures, "--save", name])
                .status,
            Some(0)
        );
    }
    assert_eq!(folder.read("one"), folder.read("two"));
    assert_eq!(
        folder
            .run(&["report-card", &fixtures, "--expect", "one"])
            .status,
        Some(0)
    );
}

#[test]
fn names_from_recordings_cannot_write_markup_or_reach_the_terminal() {
    let folder = Folder::new();
    let evil = r"<script>x</script>|\u001b[2J\u202e\nopenai-chat: 9 streams";
    folder.write(
        "a.sse",
        body("\r\n").replace("\"model\":\"m\"", &format!("\"model\":\"{evil}\"")),
    );
    for form in ["text", "json", "markdown"] {
        let ran = folder.run(&["report-card", "a.sse", "--format", form]);
        assert_eq!(ran.status, Some(0), "{}", ran.err);
        assert!(
            !ran.out.contains(['\u{1b}', '\u{202e}']),
            "{form}: {:?}",
            ran.out
        );
        assert_eq!(
            ran.out.matches("\nopenai-chat: 9").count(),
            0,
            "{form}: {}",
            ran.out
        );
        if form == "markdown" {
            assert!(!ran.out.contains("<script"), "{}", ran.out);
            assert!(
                ran.out.lines().all(|line| line.matches('|').count() == 6),
                "{}",
                ran.out
            );
        }
    }
}

#[test]
fn a_full_disk_leaves_the_card_that_was_there() {
    let folder = Folder::new();
    folder.write("a.sse", body("\n"));
    // /dev/full is not an ordinary file, so it is written directly and shows the error of a full
    // disk.
    let ran = folder.run(&["report-card", "a.sse", "--save", "/dev/full"]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.err.starts_with("tc-eval: /dev/full: cannot be written"),
        "{}",
        ran.err
    );
    folder.write("card.ndjson", "old\n");
    let bad = folder.run(&["report-card", "missing.sse", "--save", "card.ndjson"]);
    assert_eq!(
        (bad.status, folder.read("card.ndjson").as_str()),
        (Some(2), "old\n")
    );
}

#[test]
fn what_is_not_a_recording_is_named_or_skipped() {
    let folder = Folder::new();
    folder.write("rec/a.sse", body("\n"));
    folder.write("rec/notes.txt", "not a recording");
    let ran = folder.run(&["report-card", "rec"]);
    assert_eq!(ran.status, Some(0));
    assert_eq!(
        ran.err,
        "tc-eval: 1 file of the folders is not a recording and was skipped\n"
    );
    let named = folder.run(&["report-card", "rec/notes.txt"]);
    assert_eq!(named.status, Some(2));
    assert_eq!((named.out.as_str(), named.err.lines().count()), ("", 1));
    folder.write("card", "{}\n");
    for card in ["card", "none", "/dev/zero"] {
        let ran = folder.run(&["report-card", "rec/a.sse", "--expect", card]);
        assert_eq!(ran.status, Some(2), "{card}");
        assert!(
            ran.err.contains("--save") && ran.err.lines().count() == 1,
            "{}",
            ran.err
        );
    }
}
