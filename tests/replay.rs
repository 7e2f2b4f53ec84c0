//! A run from its log alone: the same events, what a change leads to, and faults.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use testkit::places::is_tried;
use testkit::{Ran, Scratch};

/// The recorded run: a question with three turns and five tools, of which one waited for a person,
/// and a further question.
const LOG: &str = "fixtures/replay/trip.ndjson";

/// A folder that holds the log and the tools of the run, whose programs do not exist.
fn folder() -> Scratch {
    let folder = Scratch::new();
    fs::copy(testkit::root().join(LOG), folder.join("trip.ndjson")).expect("the log");
    let tools = fs::read_to_string(testkit::root().join("fixtures/replay/tools.json"));
    let tools = tools
        .expect("the tools")
        .replace("\"echo\"", "\"/nowhere/echo\"");
    fs::write(folder.join("tools.json"), tools).expect("a file");
    folder
}

/// Runs a script there; a request would fail, since nothing listens.
fn run(folder: &Scratch, script: &str) -> Ran {
    let mut bash = testkit::bash(script, folder);
    bash.env("LLM_BASE_URL", "http://127.0.0.1:9")
        .env("TMPDIR", &**folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    testkit::run(bash)
}

/// The events of a log without their times.
fn events(log: &str) -> Vec<Value> {
    let times = ["t", "timestamp", "duration_ms", "first_event_ms"];
    let without_times = |mut event: Value| {
        if let Some(members) = event.as_object_mut() {
            members.retain(|name, _| !times.contains(&name.as_str()));
        }
        event
    };
    testkit::events(log)
        .into_iter()
        .map(without_times)
        .collect()
}

#[test]
fn a_run_is_played_again_from_its_log_alone() {
    let folder = folder();
    let recorded = folder.read("trip.ndjson");
    let count = |what: &str| recorded.matches(what).count();
    assert_eq!(count(r#"{"type":"stream_start""#), 4);
    assert_eq!(
        (
            count(r#""status":"success""#),
            count(r#"{"type":"approval""#)
        ),
        (5, 1)
    );
    for (name, tools) in [("with", "--tools tools.json "), ("without", "")] {
        let ran = run(
            &folder,
            &format!("react {tools}--replay trip.ndjson --log {name}.ndjson --plain"),
        );
        assert_eq!((ran.status, &*ran.stderr), (0, ""), "{}", ran.stdout);
        let replayed = folder.read(&format!("{name}.ndjson"));
        let (ours, theirs) = (events(&replayed), events(&recorded));
        for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours, theirs, "{name} tools, line {}", at + 1);
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

/// A question of its own is answered from the recording, with its approvals, and no further question
/// of the recording is asked: one of the command line, with text on standard input or without, and
/// one of a request, as the COMMAND of `tc-serve` gets it.
#[test]
fn a_question_is_answered_from_the_recording_alone() {
    let folder = folder();
    let question = "Is a hut free on Saturday, for four of us? Reserve and pay one by a lake.";
    let react = "react --tools tools.json --no-time --log run.ndjson -f json";
    for (name, script) in [
        (
            "a question",
            format!("{react} --replay trip.ndjson '{question}'"),
        ),
        (
            "a question with text",
            // The text is behind an empty line.
            format!(
                "sed 's/of us? Reserve/of us?\\\\n\\\\nReserve/' trip.ndjson >joined.ndjson; \
                 echo '{}' | {react} --replay joined.ndjson '{}'",
                &question[43..],
                &question[..42]
            ),
        ),
        (
            "a request",
            "head -1 trip.ndjson | TOOLPIPE_REQUEST_ID=1 \
             react --tools tools.json --no-time --replay trip.ndjson | tee run.ndjson"
                .to_owned(),
        ),
    ] {
        let ran = run(&folder, &format!("rm -f run.ndjson; {script}"));
        assert_eq!(ran.status, 0, "{name}: {}", ran.stderr);
        let log = folder.read("run.ndjson");
        let count = |what: &str| log.matches(what).count();
        let (turns, approvals) = (count(r#""stream_start""#), count(r#"{"type":"approval""#));
        assert_eq!(
            (turns, approvals, count("German?")),
            (3, 1, 0),
            "{name}: {log}"
        );
    }
}

#[test]
fn what_has_changed_is_named_and_nothing_runs() {
    let react = "react --tools tools.json --replay trip.ndjson --log run.ndjson";
    let exec = r#"sed s/walk/stroll/g trip.ndjson >none.ndjson; echo '{"type":"message","message":{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"forecast","arguments":{"day":"DAY"}}}]}}' |
        tool-exec --tools tools.json --replay trip.ndjson >run.ndjson"#;
    for (change, command, status, words) in [
        (
            "",
            format!("{react} 'Is a hut free?'"),
            2,
            "differs first at messages[0].content: \"Is a hut free?\" here, \"Is a hut free on Saturday",
        ),
        (
            "",
            format!("{react} --system 'Be brief.'"),
            2,
            "differs first at system: \"Be brief.\" here, nothing on the tape",
        ),
        (
            "sed -i 's/forecast of a day/forecast/' tools.json",
            react.to_owned(),
            2,
            "differs first at tools[1].function.description: \"The weather forecast.\" here",
        ),
        (
            // The result, but not the message that the model got of it.
            r#"sed -i '/"tool_result"/s/rain from noon/sun/' trip.ndjson"#,
            react.to_owned(),
            2,
            "content: \"saturday: sun, 1 to 11 degrees\\n\" here, \"saturday: rain from noon",
        ),
        (
            r#"sed -i '/"tool_call_delta"/s/urday/day/' trip.ndjson"#,
            react.to_owned(),
            2,
            "differs first at its argument day: ",
        ),
        (
            r#"sed -i '/_delta/s/"tool_name":"walk"/"tool_name":"forecast"/' trip.ndjson"#,
            react.to_owned(),
            2,
            "tool_calls[2].function.name: \"forecast\" here, \"walk\" on the tape",
        ),
        (
            "",
            exec.replace("DAY", "sunday"),
            2,
            "(line 24) differs first at its argument day: \"sunday\" here, \"saturday\" in the recording",
        ),
        (
            "",
            exec.replace("DAY", "saturday").replace("}}]", "}},{\"id\":\"y\",\"function\":{\"name\":\"forecast\",\"arguments\":{\"day\":\"saturday\"}}}]"),
            2,
            "the same call of forecast is recorded 1 times, and all of them were played",
        ),
        (
            "",
            exec.replace("forecast", "walk").replace("day", "hut").replace("replay trip", "replay none"),
            2,
            "no call of walk is recorded",
        ),
    ] {
        let folder = folder();
        let ran = run(&folder, &format!("{change}\n{command}"));
        assert_eq!(ran.status, status, "{change} {command}: {}", ran.stderr);
        let log = folder.read("run.ndjson");
        let error = events(&log).into_iter().find(|e| e["code"] == "tape_miss");
        let error = error.unwrap_or_else(|| panic!("{change} {command}: {}", ran.stderr));
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{change} {command}: {message}");
    }
}

/// How the answers ended, by fault.
fn ends(folder: &Scratch, fault: &str, places: &[usize]) -> BTreeMap<String, usize> {
    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
    // One line an answer: its end, its errors, whether its message came, and its calls.
    let script = format!(
        "set +o pipefail; question=$(head -n 1 trip.ndjson)
        for at in {}; do
            echo \"$question\" | llm-stream --tape trip.ndjson --idle-timeout 1s {fault} 2>/dev/null | tc-accumulate 2>/dev/null |
                jq -rs --arg at $at '[(map(select(.type == \"stream_end\")) | map(.finish_reason) | join(\",\")),
                    (map(select(.type == \"error\").code) | join(\",\")),
                    (map(select(.type == \"message\")) | length),
                    (map(select(.type == \"tool_call\" and .error == null) | \"\\(.tool_name)\\(.arguments)\") | join(\" \"))] | join(\";\")'
        done",
        places.join(" "),
    );
    let ran = run(folder, &script);
    assert_eq!((ran.status, &*ran.stderr), (0, ""), "{fault}");
    let mut ends = BTreeMap::new();
    for line in ran.stdout.lines() {
        *ends.entry(line.to_owned()).or_default() += 1;
    }
    ends
}

#[test]
fn each_fault_at_50_places_ends_as_documented() {
    if !testkit::needs::programs(&["jq"]) {
        return;
    }
    let folder = folder();
    // The lines of the first answer that the model's side wrote.
    let log = folder.read("trip.ndjson");
    let later = [
        "\"tool_call\"",
        "\"tool_use\"",
        "\"tool_result\"",
        "\"message\"",
    ];
    let is_first = |line: &&str| {
        !later
            .iter()
            .any(|kind| line.starts_with(&format!("{{\"type\":{kind}")))
    };
    let lines: Vec<&str> = log.lines().skip(1).filter(is_first).collect();
    let end = lines
        .iter()
        .position(|line| line.starts_with("{\"type\":\"stream_end\""));
    let body = lines[..=end.expect("an end")]
        .iter()
        .map(|line| line.len() + 1)
        .sum::<usize>();
    let places: Vec<usize> = (0..50).map(|n| n * (body - 2) / 49).collect();
    let is_end = |n: usize| n < 2 || n >= places.len() - 2;
    let places: Vec<usize> = (0..50)
        .filter(|n| is_end(*n) || is_tried(*n, 4))
        .map(|n| places[n])
        .collect();
    let count = places.len();
    let whole = ends(&folder, "", &[0]);
    let whole = whole.keys().next().expect("an answer");
    assert!(whole.starts_with("tool_calls;;1;find_huts{"), "{whole}");
    for (fault, reason, code) in [
        ("--cut-at $at", "cut", "disconnected"),
        ("--error-at $at", "cut", "disconnected"),
        ("--stall-at $at:600000", "cut", "timeout"),
    ] {
        let ends = ends(&folder, fault, &places);
        println!("{fault}: {ends:?}");
        assert_eq!(ends.values().sum::<usize>(), count);
        // No message: nothing but a call that only reads could have begun.
        for end in ends.keys() {
            let start = format!("{reason};{code};0;");
            assert!(end.starts_with(&start), "{fault}: {end}");
            let calls = end.rsplit(';').next().expect("calls");
            assert!(whole.contains(calls), "{fault}: {end}");
        }
    }
    let resplit = ends(&folder, "--resplit random:$at", &places);
    println!("--resplit: {resplit:?}");
    assert_eq!(resplit, BTreeMap::from([(whole.clone(), count)]));
    let twice = ends(&folder, "--dup-at $at", &places);
    println!("--dup-at: {twice:?}");
    assert_eq!(twice.values().sum::<usize>(), count);
    for end in twice.keys() {
        // A piece of arguments that comes twice makes no other call.
        let calls = end.rsplit(';').next().expect("calls");
        let known = calls.split(' ').all(|call| whole.contains(call));
        assert!(end.starts_with("tool_calls;;1;") && known, "{end}");
    }
}

#[test]
fn an_expectation_is_compared_by_meaning() {
    let folder = folder();
    let react = "react --tools tools.json --replay trip.ndjson";
    let same = run(&folder, &format!("{react} --expect trip.ndjson >/dev/null"));
    assert_eq!((same.status, &*same.stderr), (0, ""));
    let script = format!(
        "sed 's/3 hours/4 hours/' trip.ndjson >other.ndjson; {react} --expect other.ndjson >/dev/null"
    );
    let other = run(&folder, &script);
    assert_eq!(other.status, 1, "{}", other.stderr);
    assert!(
        other.stderr.contains("3 hours") && other.stderr.contains("4 hours"),
        "{}",
        other.stderr
    );
    let none = run(&folder, &format!("{react} --expect none.ndjson"));
    assert_eq!(
        (none.status, none.stdout.as_str()),
        (2, ""),
        "{}",
        none.stderr
    );
    let itself = run(&folder, "react --replay trip.ndjson --log trip.ndjson");
    assert_eq!(itself.status, 2, "{}", itself.stderr);
}
