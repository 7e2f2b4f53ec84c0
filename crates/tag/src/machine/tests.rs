use super::*;
use event::{Collect, Scanner};

const CALL: &str = r#"{"type":"content_delta","text":"<tool name=\"g\">{}</tool>"}"#;

/// The lines of a stream with these members in its `stream_start`, after that line.
fn run(start: &str, lines: &[&str]) -> Vec<String> {
    let start = format!(
        r#"{{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"tool-name-tag",{start}}}"#
    );
    let mut tag = Streams::new(Options::default()).begin(&Scanner::default().read(&start).unwrap());
    let lines = std::iter::once(&start[..]).chain(lines.iter().copied());
    Collect::run(&mut tag, lines).split_off(1)
}

#[test]
fn a_native_call_takes_back_every_call_of_the_text_before_it_takes_their_indexes() {
    let native = r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f"}"#;
    assert_eq!(
        run(r#""prefill":"""#, &[CALL, native, CALL]),
        [
            r#"{"type":"tool_call_delta","index":0,"tool_name":"g","arguments":"{}","done":true,"from_text":true}"#,
            r#"{"type":"retract","index":0,"reason":"native_call"}"#,
            r#"{"type":"warning","source":"tag-parse","code":"tag_dropped","message":"dropped the calls in the text before this point, since the provider sends calls of its own"}"#,
            native,
            CALL,
        ]
    );
}

#[test]
fn a_marker_or_a_header_before_a_native_call_is_text() {
    let native = r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f"}"#;
    let end = r#"{"type":"stream_end","finish_reason":"length"}"#;
    for (dialect, text) in [
        ("hermes", "<tool_call>"),
        ("harmony", "<|start|>assistant"),
        ("auto", "<invoke>"),
    ] {
        let start = format!(
            r#"{{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"{dialect}","prefill":""}}"#
        );
        let delta = format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
        let read = |lines: &[&str]| {
            let mut tag =
                Streams::new(Options::default()).begin(&Scanner::default().read(&start).unwrap());
            Collect::run(
                &mut tag,
                std::iter::once(&start[..]).chain(lines.iter().copied()),
            )
            .split_off(1)
        };
        let out: Vec<String> = read(&[&delta, native, end])
            .into_iter()
            .filter(|l| !l.contains("warning"))
            .collect();
        assert_eq!(out, [&delta[..], native, end], "{dialect}");
        // Where the text was cut there, both are left out.
        let out = read(&[&delta, end]);
        assert!(
            out[0].contains("tag_dropped") && out[1..] == [end],
            "{dialect}: {out:?}"
        );
    }
}

#[test]
fn a_list_of_tools_that_cannot_be_read_has_none() {
    let out = run(r#""prefill":"","tools":{"a":1}"#, &[CALL]);
    assert!(
        out[0].contains("tools_unread") && out.iter().all(|line| !line.contains("tool_call_delta")),
        "{out:?}"
    );
}

#[test]
fn a_tool_that_cannot_be_read_is_its_own_trouble() {
    let out = run(
        r#""prefill":"","tools":[{"name":"echo&log"},{"name":"g"},{"name":"g"}]"#,
        &[CALL],
    );
    assert!(
        out[0].contains("tools_unread") && out[0].contains("echo&log"),
        "{out:?}"
    );
    assert!(
        out[1].contains("tools_unread") && out[2].contains("tool_call_delta") && out.len() == 3,
        "{out:?}"
    );
}

/// What a model of this name calls in this text, in whole and letter by letter.
fn calls_by_model(model: &str, text: &str) -> usize {
    let tools = r#"[{"name":"f","parameters":{"type":"object","properties":{"beds":{"type":"integer"}},"required":["beds"]}}]"#;
    let start = format!(
        r#"{{"type":"stream_start","v":1,"model":"{model}","tools_mode":"native","prefill":"","tools":{tools}}}"#
    );
    let streams = Streams::new(Options {
        always: true,
        needs_tools: true,
        by_model: true,
        ..Options::default()
    });
    let delta = |piece: &str| {
        format!(
            r#"{{"type":"content_delta","text":{}}}"#,
            event::quoted(piece)
        )
    };
    let end = r#"{"type":"stream_end","finish_reason":"stop"}"#.to_owned();
    let counts: Vec<usize> = [
        vec![delta(text)],
        text.split_inclusive(|_| true).map(delta).collect(),
    ]
    .into_iter()
    .map(|pieces| {
        let lines: Vec<String> = std::iter::once(start.clone())
            .chain(pieces)
            .chain([end.clone()])
            .collect();
        let mut tag = streams.begin(&Scanner::default().read(&start).unwrap());
        let out = Collect::run(&mut tag, &lines);
        let calls = out
            .iter()
            .filter(|line| line.contains("\"from_text\":true"))
            .count();
        let text_of = |line: &String| {
            let mut scanner = Scanner::default();
            let event = scanner.read(line).unwrap();
            (event.kind() == Kind::ContentDelta)
                .then(|| event.get_str("text").unwrap_or_default().into_owned())
        };
        let content: String = out.iter().filter_map(text_of).collect();
        assert!(calls > 0 || content == text, "{content:?}");
        calls
    })
    .collect();
    assert_eq!(counts[0], counts[1], "{text}");
    counts[0]
}

#[test]
fn a_form_that_prose_can_have_counts_in_its_family_or_alone() {
    let json = r#"{"name": "f", "parameters": {"beds": 2}}"#;
    let muse = " to=f<|message|>{\"beds\": 2}";
    let fence = format!("```json\n{json}\n```");
    let marked = format!("I ask.\n<tool_call>{json}</tool_call>");
    for (model, text, calls) in [
        ("m", json, 1),
        ("m", &*format!("<think>Hm.</think>\n{json}\n"), 1),
        ("m", &format!("{json}\nThat was it."), 0),
        ("m", r#"{"name": "f", "parameters": {"beds": "two"}}"#, 0),
        ("m", r#"{"name": "g", "parameters": {"beds": 2}}"#, 0),
        ("m", muse, 1),
        ("m", &format!("\"{muse}"), 0),
        ("m", &fence, 1),
        ("m", &format!("For example:\n{fence}"), 0),
        (
            "m",
            "Thought: I ask.\nAction: f\nAction Input: {\"beds\": 2}",
            0,
        ),
        ("m", "Action: f\nAction Input: {\"beds\": 2}", 1),
        ("m", &marked, 1),
        ("llama-3.3-70b", &format!("{json}\nThat was it."), 1),
        ("llama-3.3-70b", muse, 0),
        ("llama-3.3-70b", &fence, 0),
        ("qwen2.5-7b", json, 0),
        ("qwen2.5-7b", muse, 0),
        ("qwen2.5-7b", &marked, 1),
    ] {
        assert_eq!(calls_by_model(model, text), calls, "{model}: {text}");
    }
}

#[test]
fn a_stream_may_need_a_list_of_tools_for_calls_in_its_text() {
    let other = r#"{"type":"content_delta","text":"<tool name=\"other\">{}</tool>"}"#;
    for (start, needs_tools, calls) in [
        (r#""prefill":"""#, false, 2),
        (r#""prefill":"""#, true, 0),
        (r#""prefill":"","tools":[]"#, true, 0),
        (r#""prefill":"","tools":[{"name":"g"}]"#, true, 1),
    ] {
        let start = format!(r#"{{"type":"stream_start","v":1,{start}}}"#);
        let streams = Streams::new(Options {
            always: true,
            needs_tools,
            ..Options::default()
        });
        let mut tag = streams.begin(&Scanner::default().read(&start).unwrap());
        let out = Collect::run(&mut tag, [&start, CALL, other]);
        let begun = out
            .iter()
            .filter(|line| line.contains("\"from_text\":true"))
            .count();
        assert_eq!(begun, calls, "{start}: {out:?}");
    }
}

/// The texts of the events that these pieces of text make.
fn texts(tools: Option<&str>, pieces: &[&str]) -> Vec<String> {
    let tools = tools.map_or_else(String::new, |tools| format!(r#","tools":{tools}"#));
    let start =
        format!(r#"{{"type":"stream_start","v":1,"tools_mode":"native","prefill":""{tools}}}"#);
    let streams = Streams::new(Options {
        always: true,
        needs_tools: true,
        ..Options::default()
    });
    let mut tag = streams.begin(&Scanner::default().read(&start).unwrap());
    let delta = |piece: &&str| {
        format!(
            r#"{{"type":"content_delta","text":{}}}"#,
            event::quoted(piece)
        )
    };
    let lines = std::iter::once(start).chain(pieces.iter().map(delta));
    let mut scanner = Scanner::default();
    let mut text = |line: &String| {
        scanner
            .read(line)
            .unwrap()
            .get_str("text")
            .map(Cow::into_owned)
    };
    Collect::run(&mut tag, lines)
        .iter()
        .filter_map(&mut text)
        .collect()
}

#[test]
fn a_word_that_begins_no_call_is_not_held() {
    let tools = Some(r#"[{"name":"reserve"}]"#);
    for pieces in [
        &["Free", " beds", " and", "."],
        &["True", ", so", " it", " is"],
        &["resin", " is", " a", " gum"],
    ] {
        assert_eq!(texts(tools, pieces), pieces);
        assert_eq!(texts(None, pieces), pieces);
    }
    // The name of a tool begins calls of Functionary.
    assert_eq!(texts(tools, &["res", " t", "ext"]), ["res t", "ext"]);
}

#[test]
fn without_tools_nothing_is_held_for_a_call() {
    for pieces in [
        &["{\"na", "me\": \"re", "serve\", \"arguments\": {}", "}"],
        &[
            "<tool_call>\n",
            "{\"name\": \"reserve\"",
            ", \"arguments\": {}}",
            "\n</tool_call>.",
        ],
        &["[reserve(", "a=1", ")", "]."],
    ] {
        assert_eq!(texts(None, pieces), pieces);
        assert_eq!(texts(Some("[]"), pieces), pieces);
    }
    // Reasoning is read all the same.
    assert_eq!(
        texts(None, &["<think>", "hm</thi", "nk>", "Yes"]),
        ["hm", "Yes"]
    );
}

/// The lines that follow a `stream_start` with these tools, as `texts` reads it, with adjacent
/// texts joined.
fn around(
    streams: &Streams,
    tools: &str,
    pieces: &[&str],
    between: &str,
    after: &str,
) -> Vec<String> {
    let start = format!(r#"{{"type":"stream_start","v":1,"prefill":"","tools":{tools}}}"#);
    let mut tag = streams.begin(&Scanner::default().read(&start).unwrap());
    let delta = |piece: &str| {
        format!(
            r#"{{"type":"content_delta","text":{}}}"#,
            event::quoted(piece)
        )
    };
    let end = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    let mut lines: Vec<String> = pieces.iter().map(|piece| delta(piece)).collect();
    lines.extend([between.to_owned(), delta(after), end.to_owned()]);
    let (mut out, mut text) = (Vec::new(), String::new());
    for line in Collect::run(&mut tag, std::iter::once(start).chain(lines)).split_off(1) {
        let mut scanner = Scanner::default();
        let event = scanner.read(&line).unwrap();
        if event.kind() == Kind::ContentDelta {
            text += &event.get_str("text").unwrap();
            continue;
        }
        out.extend(Some(std::mem::take(&mut text)).filter(|text| !text.is_empty()));
        out.push(if event.kind() == Kind::StreamEnd {
            continue;
        } else {
            line
        });
    }
    out
}

const BETWEEN: [&str; 4] = [
    r#"{"type":"server_item","kind":"server_tool_use","data":{}}"#,
    r#"{"type":"thinking","text":"","provider":{"anthropic":{"block":{}}}}"#,
    r#"{"type":"refusal_delta","text":"No."}"#,
    r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f"}"#,
];

#[test]
fn text_that_may_begin_a_call_without_markers_keeps_its_place_before_other_events() {
    let streams = Streams::new(Options {
        always: true,
        needs_tools: true,
        ..Options::default()
    });
    let tools = r#"[{"name":"OKay"},{"name":"f"}]"#;
    for text in [
        "OK",
        "OKay",
        "f",
        "Two: <tool",
        "{\"na",
        "{\"name\": \"f\"",
        "[",
        "[OKa",
        "`",
        "<",
        "print(",
    ] {
        for between in BETWEEN {
            for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                let (first, second) = text.split_at(cut);
                let out = around(&streams, tools, &[first, second], between, "It is sunny.");
                assert_eq!(
                    out,
                    [text, between, "It is sunny."],
                    "{text:?} cut at {cut}"
                );
            }
        }
    }
}

#[test]
fn a_call_whose_marker_was_read_goes_on_after_other_events() {
    let streams = Streams::new(Options {
        always: true,
        needs_tools: true,
        ..Options::default()
    });
    for between in &BETWEEN[..3] {
        for first in [
            "<tool_call>\n",
            "<tool_call>\n{\"na",
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {",
        ] {
            let whole = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
            for cut in 0..first.len() {
                let pieces = first.split_at(cut);
                let out = around(
                    &streams,
                    r#"[{"name":"f"}]"#,
                    &[pieces.0, pieces.1],
                    between,
                    &whole[first.len()..],
                );
                assert!(
                    out.iter().any(|line| line.contains("\"done\":true")),
                    "{first:?} cut at {cut}: {out:?}"
                );
            }
        }
    }
}

#[test]
fn text_that_is_held_comes_out_before_a_message_or_an_error() {
    for after in [
        r#"{"type":"error","code":"x"}"#,
        r#"{"type":"message","message":{"role":"assistant"}}"#,
    ] {
        let held = r#"{"type":"content_delta","text":"hi <tool"}"#;
        let text = |text: &str| format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
        assert_eq!(
            run(r#""prefill":"""#, &[held, after]),
            [text("hi "), text("<tool"), after.to_owned()]
        );
    }
}

/// The id names the first call, so that no later event, such as a `retract`, is taken for one of
/// the first call when it is of the second.
#[test]
fn an_id_that_the_model_writes_twice_is_the_first_calls() {
    let call = "<|tool_call_begin|>functions.g:0<|tool_call_argument_begin|>{}<|tool_call_end|>";
    let text = format!("<|tool_calls_section_begin|>{call}{call}<|tool_calls_section_end|>");
    let start =
        r#"{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"kimi-k2","prefill":""}"#;
    let delta = format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
    let mut tag = Streams::new(Options::default()).begin(&Scanner::default().read(start).unwrap());
    let out = Collect::run(&mut tag, [start, &delta]);
    let begun: Vec<_> = out
        .iter()
        .filter(|line| line.contains("tool_name"))
        .collect();
    assert!(
        begun[0].contains(r#""tool_id":"functions.g:0""#) && !begun[1].contains("tool_id"),
        "{out:?}"
    );
}
