//! A signal that was ignored when a command started stays ignored, as under `nohup` and for what a
//! script starts in the background.

use std::process::Command;
use testkit::{Conversation, kill, needs, program};

const START: &str = r#"{"type":"stream_start","stream":"s1"}"#;
const TEXT: &str = r#"{"type":"content_delta","stream":"s1","text":"Hello"}"#;
const END: &str = r#"{"type":"stream_end","stream":"s1","finish_reason":"stop"}"#;
/// The stream of a provider, for `llm-stream`.
const CHUNK: &str = r#"data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}"#;

/// Commands that answer each line of their input, the lines, and their statuses without a signal.
const FILTERS: [(&[&str], [&str; 3], i32); 4] = [
    (&["tag-parse"], [START, TEXT, END], 0),
    (&["tc-accumulate", "--keep-deltas"], [START, TEXT, END], 0),
    (&["tc-detect"], [START, TEXT, END], 1),
    (
        &["llm-stream", "--api", "openai-chat", "--replay", "-"],
        [CHUNK, CHUNK, "data: [DONE]"],
        0,
    ),
];

fn started(before: &str, words: &[&str]) -> Conversation {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!(r#"{before}exec "$@""#), "sh"])
        .arg(program(words[0]))
        .args(&words[1..]);
    Conversation::start(shell)
}

#[test]
fn an_ignored_signal_stays_ignored_and_another_ends_the_command() {
    for (words, [start, text, end], status) in FILTERS {
        let mut ignoring = started("trap '' HUP INT; ", words);
        ignoring.say(format!("{start}\n\n").as_bytes());
        ignoring.hear();
        for signal in ["INT", "HUP"] {
            assert!(kill(ignoring.id(), signal));
        }
        for line in [text, end] {
            ignoring.say(format!("{line}\n\n").as_bytes());
            ignoring.hear();
        }
        let (_, ended) = ignoring.end();
        assert_eq!(ended, Some(status), "{words:?} that ignores SIGINT");

        let mut heeding = started("", words);
        heeding.say(format!("{start}\n\n").as_bytes());
        heeding.hear();
        assert!(kill(heeding.id(), "INT"));
        let (_, ended) = heeding.end();
        assert_eq!(ended, Some(130), "{words:?}");
    }
}

#[test]
fn a_tool_inherits_what_its_caller_ignores() {
    if !needs::programs(&["grep"]) {
        return;
    }
    let folder = testkit::Scratch::new();
    let tools = r#"[{"name":"mask","parameters":{"type":"object"},"exec":{"command":["grep","SigIgn","/proc/self/status"],"class":"read"}}]"#;
    folder.write("tools.json", tools);
    let call = concat!(
        r#"{"type":"tool_call","stream":"s1","index":0,"tool_id":"c1","tool_name":"mask","arguments":{}}"#,
        "\n",
        r#"{"type":"message","stream":"s1","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"mask","arguments":"{}"}}]}}"#,
        "\n",
        r#"{"type":"stream_end","stream":"s1","finish_reason":"tool_calls"}"#,
        "\n",
    );
    folder.write("turn.ndjson", format!("{START}\n{call}"));
    let masks = ["", "trap '' HUP INT; "].map(|before| {
        let script = format!("{before}tool-exec --tools tools.json <turn.ndjson");
        let mut shell = testkit::bash(&script, &folder);
        shell.stdout(std::process::Stdio::piped());
        let ran = testkit::run(shell);
        let result = ran.event("tool_result");
        let mask = result["output"]
            .as_str()
            .unwrap_or_else(|| panic!("{result}"));
        let (_, mask) = mask.split_once(':').expect("a mask");
        u64::from_str_radix(mask.trim(), 16).expect("a number") & 0b11
    });
    assert_eq!(masks, [0, 0b11]);
}
