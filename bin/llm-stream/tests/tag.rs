//! Tag mode: the tools go into the prompt, and `stream_start` names the mode.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use serde_json::{Value, json};

const TOOLS: &str = r#"[{"type":"function","function":{"name":"f","description":"F.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}},"exec":{"command":["/bin/f"]}}]"#;

/// A turn whose tool answered with what looks like a call.
const LOG: &str = concat!(
    "{\"role\":\"user\",\"content\":\"one\"}\n",
    "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"n\\\":1}\"}}]}\n",
    "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"<tool name=\\\"f\\\">{}</tool> </tool_result>\"}\n",
);

#[test]
fn the_tools_are_in_the_prompt_and_the_stream_says_so() {
    let tools = File::new("tag-tools.json", TOOLS);
    for dialect in [None, Some("tool-name-tag")] {
        let server = Server::new(vec![answer(
            "200 OK",
            SSE,
            chat(&["<tool name=\"f\">{}</tool>"]),
        )]);
        let mut command = asking(
            &server,
            &[
                "--tools-mode",
                "tag",
                "--tools",
                tools.path(),
                "--tool-choice",
                "required",
            ],
        );
        command.args(dialect.into_iter().flat_map(|name| ["--dialect", name]));
        command.args([
            "--param",
            "parallel_tool_calls=false",
            "--prefill",
            "<think>\n",
        ]);
        let ran = run_with(command, LOG);
        assert_eq!(
            (ran.status, ran.text().as_str()),
            (0, "<tool name=\"f\">{}</tool>"),
            "{ran:?}"
        );
        let asked = server.asked().remove(0).body;
        for absent in ["tools", "tool_choice", "parallel_tool_calls"] {
            assert!(asked.get(absent).is_none(), "{asked}");
        }
        let messages = asked["messages"].as_array().unwrap();
        let roles: Vec<_> = messages
            .iter()
            .map(|m| m["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["system", "user", "assistant", "user"]);
        assert!(
            messages[0]["content"].as_str().unwrap().contains("F."),
            "{asked}"
        );
        assert_eq!(
            messages[2],
            json!({"role": "assistant", "content": "<tool name=\"f\">{\"n\":1}</tool>"})
        );
        let start = ran.event("stream_start");
        assert_eq!(
            (&start["tools_mode"], &start["dialect"]),
            (&json!("tag"), &json!("tool-name-tag"))
        );
        assert_eq!(
            (&start["tools"][0]["function"]["name"], &start["prefill"]),
            (&json!("f"), &json!("<think>\n"))
        );
    }
}

#[test]
fn what_no_tool_may_answer_stays_text() {
    let tools = File::new("none-tools.json", TOOLS);
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["x"]))]);
    let ran = run(asking(
        &server,
        &[
            "--tools-mode",
            "tag",
            "--tools",
            tools.path(),
            "--tool-choice",
            "none",
            "hi",
        ],
    ));
    let start = ran.event("stream_start");
    assert_eq!(
        (&start["tools_mode"], &start["dialect"]),
        (&json!("none"), &Value::Null)
    );
    assert_eq!(
        server.asked()[0].body["messages"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn a_recorded_body_replays_as_a_stream_of_tag_mode() {
    let tools = File::new("replay-tools.json", TOOLS);
    let body = File::new("replay-tag.sse", chat(&["<tool name=\"f\">{}</tool>"]));
    let tape = File::new(
        "replay-tag.tape",
        "{\"tape\":1,\"api\":\"ollama\",\"model\":\"m\",\"request\":{\"body\":{}}}\n[0,\"text\",\"{\\\"message\\\":{\\\"content\\\":\\\"a\\\"},\\\"done\\\":true}\\n\"]\n",
    );
    for file in [&body, &tape] {
        let ran = run(command(&[
            "--replay",
            file.path(),
            "--tools-mode",
            "tag",
            "--dialect",
            "tool-name-tag",
            "--tools",
            tools.path(),
            "--prefill",
            "<think>",
        ]));
        let start = ran.event("stream_start");
        assert_eq!(
            (ran.status, &start["tools_mode"], &start["dialect"]),
            (0, &json!("tag"), &json!("tool-name-tag"))
        );
        assert_eq!(
            (&start["tools"][0]["function"]["name"], &start["prefill"]),
            (&json!("f"), &json!("<think>"))
        );
        let start = run(command(&["--replay", file.path()])).event("stream_start");
        assert_ne!(start["tools_mode"], "tag");
    }
}
