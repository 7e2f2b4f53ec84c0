//! Tools that need no JSON: programs that describe themselves, beside tools files, for every
//! command that takes `--tools`.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use testkit::{Ran, Scratch, bash, root};
use testkit::{Server, Step, sse_head};

/// A call of a tool, as `tc-accumulate` gets it.
fn call(tool: &str, arguments: &Value) -> String {
    let delta = json!({"type": "tool_call_delta", "index": 0, "tool_id": "a", "tool_name": tool, "arguments": arguments.to_string()});
    format!(
        "{}\n{delta}\n{}\n",
        json!({"type": "stream_start", "v": 1}),
        json!({"type": "stream_end", "finish_reason": "tool_calls"})
    )
}

/// Makes an executable file.
fn program(folder: &Scratch, name: &str, text: &str) {
    let path = folder.write(name, text);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

fn in_folder(folder: &Path, script: &str) -> Ran {
    bash(script, folder).output().expect("bash runs").into()
}

/// Runs a call of a tool of these sources.
fn runs(folder: &Scratch, sources: &str, tool: &str, arguments: &Value) -> Ran {
    folder.write("call", call(tool, arguments));
    in_folder(
        folder,
        &format!("tc-accumulate {sources} call | tool-exec {sources}"),
    )
}

const WORDS: &str = "#!/bin/sh\n# @describe Prints its words.\n# @option --at! <INT> A number\n# @option --tag* Tags\n# @flag --loud\n\
    # @arg word! A word\n# @arg rest* More\nprintf '<%s>' \"$@\"; echo; cat\n";

#[test]
fn a_program_is_a_tool_and_its_values_stay_values() {
    let folder = Scratch::new();
    program(&folder, "words.sh", WORDS);
    let arguments = json!({"at": 3, "tag": ["-x", "$(id); 'a b'"], "loud": true, "word": "--help", "rest": ["*", "-"]});
    let ran = runs(&folder, "-t ./words.sh", "words", &arguments);
    let result = ran.event("tool_result");
    let want = "<--at=3><--tag=-x><--tag=$(id); 'a b'><--loud><--><--help><*><->\n".to_owned()
        + &arguments.to_string();
    assert_eq!(
        result["output"].as_str().unwrap().trim_end(),
        want,
        "{ran:?}"
    );
    // What does not fit its schema does not run.
    for wrong in [
        json!({"at": "x", "word": "a"}),
        json!({"at": 1}),
        json!({"at": 1, "word": "a", "other": 1}),
    ] {
        let ran = runs(&folder, "-t words.sh", "words", &wrong);
        assert_eq!(ran.event("tool_result")["status"], "invalid", "{ran:?}");
    }
}

#[test]
fn sources_mix_and_each_keeps_its_own_folder() {
    let folder = Scratch::new();
    program(&folder, "words.sh", WORDS);
    for name in ["a", "b"] {
        std::fs::create_dir(folder.join(name)).unwrap();
        program(
            &folder,
            &format!("{name}/run"),
            &format!("#!/bin/sh\necho {name} $PWD\n"),
        );
        let exec = json!({"command": ["./run"], "cwd": ".", "class": "read"});
        let tools = match name {
            "a" => json!([{"name": name, "exec": exec}]),
            _ => json!({"tools": [{"type": "function", "function": {"name": name}, "exec": exec}]}),
        };
        folder.write(&format!("{name}/tools.json"), tools.to_string());
    }
    let sources = "-t a/tools.json -t words.sh -t b/tools.json";
    for name in ["a", "b"] {
        let ran = runs(&folder, sources, name, &json!({}));
        let want = format!(
            "{name} {}\n",
            folder.join(name).canonicalize().unwrap().display()
        );
        assert_eq!(ran.event("tool_result")["output"], want, "{ran:?}");
    }
    // The model is offered all of them, by every command alike.
    let names = |ran: Ran, at: &str| -> Vec<String> {
        let list: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
        let tools = list
            .pointer(at)
            .and_then(Value::as_array)
            .unwrap_or_else(|| panic!("{ran:?}"));
        let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
        tools.iter().map(name).collect()
    };
    let listed = in_folder(&folder, &format!("tool-exec {sources} --list"));
    assert_eq!(names(listed, ""), ["a", "words", "b"]);
    let asked = in_folder(
        &folder,
        &format!("llm-stream {sources} -m m --dry-run hi </dev/null"),
    );
    assert_eq!(names(asked, "/tools"), ["a", "words", "b"]);
    // What --describe prints is a tools file that works from any folder.
    let described = in_folder(
        &folder,
        "tool-exec --describe a/tools.json --describe words.sh >b/all.json && cd / && tool-exec -t \"$OLDPWD/b/all.json\" --list",
    );
    assert_eq!(names(described, ""), ["a", "words"]);
    // Two tools of one name are refused with both sources.
    program(&folder, "a.sh", "#!/bin/sh\n# @describe A.\n");
    let ran = in_folder(&folder, "tool-exec -t a/tools.json -t a.sh --list");
    assert!(
        ran.refusal()
            .contains("a.sh: a/tools.json has a tool \"a\", too; rename one of them"),
        "{ran:?}"
    );
}

#[test]
fn a_program_that_cannot_be_a_tool_is_refused_with_the_remedy() {
    let folder = Scratch::new();
    let cases = [
        ("none.sh", "#!/bin/sh\n", 0o755, "no description"),
        (
            "off.sh",
            "#!/bin/sh\n# @describe X.\n",
            0o644,
            "off.sh: not executable, run: chmod +x ./off.sh",
        ),
        (
            "a b.sh",
            "#!/bin/sh\n# @describe X.\n",
            0o755,
            "write # @meta name NAME",
        ),
        (
            "typo.sh",
            "#!/bin/sh\n# @describe X.\n# @option city x\n",
            0o755,
            "typo.sh: line 3: @option city x: no name",
        ),
        (
            "class.sh",
            "#!/bin/sh\n# @describe X.\n# @meta class safe\n",
            0o755,
            "\"read\", \"write\" or \"danger\"",
        ),
        (
            "open.sh",
            "#!/bin/sh\n# @describe X.\n",
            0o777,
            "open.sh: it can be written by other users",
        ),
    ];
    for (name, text, mode, want) in cases {
        let path = folder.write(name, text);
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let ran = in_folder(&folder, &format!("tool-exec -t './{name}' --list"));
        assert!(ran.refusal().contains(want), "{name}: {ran:?}");
    }
    // A tools file on a file system where every file may be executed is a tools file.
    let path = folder.write("tools.json", " \n[{\"name\":\"a\"}]");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(
        in_folder(&folder, "tool-exec -t tools.json --list").status,
        0
    );
}

/// The two answers of a model that takes a note.
fn note_taker() -> Server {
    let chunk = |choice: Value| {
        let data = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
        format!("data: {data}\n\n")
    };
    let call = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "note", "arguments": "{\"text\":\"The hut is booked.\"}"}});
    let turns = [
        (
            json!({"role": "assistant", "tool_calls": [call]}),
            "tool_calls",
        ),
        (json!({"role": "assistant", "content": "Noted."}), "stop"),
    ];
    let script = turns.map(|(delta, finish)| {
        let text = chunk(json!({"index": 0, "delta": delta}))
            + &chunk(json!({"index": 0, "delta": {}, "finish_reason": finish}));
        vec![sse_head(), Step::Send((text + "data: [DONE]\n\n").into())]
    });
    Server::new(script.into_iter().collect())
}

#[test]
fn react_takes_a_program_as_it_is() {
    let folder = Scratch::new();
    let server = note_taker();
    let note = root().join("fixtures/tools/note.sh");
    let mut react = bash(
        &format!(
            "react -t {} -m m --tools-mode native --base-url {}/v1 'Note that the hut is booked.' </dev/null",
            note.display(),
            server.url
        ),
        &folder,
    );
    react
        .env("NOTES_FILE", folder.join("notes.txt"))
        .env("TMPDIR", &*folder);
    let ran = Ran::from(react.output().expect("bash runs"));
    assert!(ran.status == 0 && ran.stdout.contains("Noted."), "{ran:?}");
    assert_eq!(folder.read("notes.txt"), "The hut is booked.\n");
    let asked = server.asked();
    assert_eq!(
        asked[0].body.pointer("/tools/0/function/description"),
        Some(&json!("Writes a note into the user's notes."))
    );
}

#[test]
fn react_hands_every_source_to_its_stages() {
    let printed = in_folder(
        root(),
        "react -t fixtures/tools/note.sh -t fixtures/tools/tools.json -m m --print-pipeline Hi",
    );
    let both = "--tools fixtures/tools/note.sh --tools fixtures/tools/tools.json";
    assert_eq!(printed.stdout.matches(both).count(), 3, "{printed:?}");
}
