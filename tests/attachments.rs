//! Files that belong to a question, and answers that fit a schema: what each API gets, and what react
//! does with the answer.

use crate::pipeline::scratch::Scratch;
use serde_json::{Value, json};
use std::fs;
use testkit::{Server, Turn};

/// The least that is an image and a PDF by its content, and their base64.
const PNG: (&[u8], &str) = (b"\x89PNG\r\n\x1a\n", "iVBORw0KGgo=");
const PDF: (&[u8], &str) = (b"%PDF-1.7", "JVBERi0xLjc=");
const SCHEMA: &str =
    r#"{"type":"object","properties":{"beds":{"type":"integer"}},"required":["beds"]}"#;

/// The files of the tests; their names do not say what they are.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    for (name, bytes) in [
        ("image.txt", PNG.0),
        ("document", PDF.0),
        ("notes.png", b"Bring soap.\n"),
        ("program", b"\x7fELF\0"),
        ("schema", SCHEMA.as_bytes()),
    ] {
        fs::write(scratch.0.join(name), bytes).expect("written");
    }
    scratch
}

/// The body of the request that `llm-stream` would send.
fn body(scratch: &Scratch, api: &str, options: &str) -> Value {
    let (status, out, err) = scratch.run(&format!(
        "cd $SCRATCH; llm-stream --dry-run -a {api} -m m {options} 'Why?'"
    ));
    assert_eq!(status, 0, "{api} {options}: {err}");
    serde_json::from_str(&out).expect("JSON")
}

#[test]
fn each_api_gets_files_in_its_own_form() {
    let scratch = scratch();
    let url = |mime: &str, data: &str| format!("data:{mime};base64,{data}");
    let (png, pdf) = (url("image/png", PNG.1), url("application/pdf", PDF.1));
    for (api, place, image, file) in [
        (
            "openai-chat",
            "/messages/0/content",
            json!({"type": "image_url", "image_url": {"url": png}}),
            json!({"type": "file", "file": {"filename": "document", "file_data": pdf}}),
        ),
        (
            "openai-responses",
            "/input/0/content",
            json!({"type": "input_image", "image_url": png, "detail": "auto"}),
            json!({"type": "input_file", "filename": "document", "file_data": pdf}),
        ),
        (
            "anthropic",
            "/messages/0/content",
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG.1}}),
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF.1}, "title": "document"}),
        ),
        (
            "gemini",
            "/contents/0/parts",
            json!({"inlineData": {"mimeType": "image/png", "data": PNG.1}}),
            json!({"inlineData": {"mimeType": "application/pdf", "data": PDF.1}}),
        ),
    ] {
        let body = body(
            &scratch,
            api,
            "--attach image.txt --attach document --attach notes.png",
        );
        let parts = body
            .pointer(place)
            .and_then(Value::as_array)
            .expect("parts");
        assert_eq!((&parts[1], &parts[2]), (&image, &file), "{api}");
        assert!(
            parts[0].to_string().contains("Why?")
                && parts[3].to_string().contains(r"notes.png:\n\nBring soap."),
            "{body}"
        );
    }
    let body = body(&scratch, "ollama", "--attach image.txt");
    assert_eq!(body["messages"][0]["images"], json!([PNG.1]), "{body}");
}

#[test]
fn files_that_cannot_be_sent_are_errors() {
    let scratch = scratch();
    for (options, says) in [
        ("--attach none", "none: No such file or directory"),
        ("--attach .", ".: Is a directory"),
        (
            "--attach program",
            "program: neither an image (PNG, JPEG, GIF, WebP) nor a PDF nor text",
        ),
        (
            "--attach document -a ollama",
            "document: ollama takes no PDF",
        ),
        (
            "--attach notes.png --attach /dev/zero --max-line 1K",
            "/dev/zero: neither an image",
        ),
        (
            "--attach long --max-line 1K",
            "long: too much for one message with --max-line 1024",
        ),
        ("--schema none", "none: No such file"),
        ("--schema notes.png", "notes.png: "),
        (
            "--schema <(echo '{\"type\": \"str\"}')",
            "/dev/fd/63: JSON Schema has no type \"str\", write string",
        ),
    ] {
        fs::write(scratch.0.join("long"), "a".repeat(1000)).expect("written");
        let (status, out, err) = scratch.run(&format!(
            "cd $SCRATCH; llm-stream --dry-run -m m {options} 'Why?'"
        ));
        assert_eq!(
            (status, &*out, err.lines().count()),
            (2, "", 1),
            "{options}: {err}"
        );
        assert!(
            err.starts_with(&format!("llm-stream: {says}")),
            "{options}: {err}"
        );
    }
}

#[test]
fn each_api_is_asked_for_the_schema_in_its_own_member() {
    let scratch = scratch();
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    for (api, place) in [
        ("openai-chat", "/response_format/json_schema/schema"),
        ("openai-responses", "/text/format/schema"),
        ("anthropic", "/output_config/format/schema"),
        ("gemini", "/generationConfig/responseJsonSchema"),
        ("ollama", "/format"),
        ("mistral", "/response_format/json_schema/schema"),
        ("cohere", "/response_format/schema"),
    ] {
        let body = body(&scratch, api, "--schema schema");
        assert_eq!(body.pointer(place), Some(&schema), "{api}: {body}");
    }
}

/// A model that gives one answer after the other, and the last one again and again.
fn model(answers: &'static [&'static str]) -> Server {
    Server::of_turns(answers.iter().map(|text| Turn::says(text)).collect())
}

fn react(model: &Server, options: &str) -> String {
    format!(
        "cd $SCRATCH; OPENAI_API_KEY=k react --base-url {} -m m -l log {options}",
        model.url
    )
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again_and_the_json_is_printed_alone() {
    let scratch = scratch();
    let model = model(&["Four.", "{\"beds\":\"4\"}", "```json\n{\"beds\": 4}\n```"]);
    let (status, out, err) = scratch.run(&react(&model, "--schema schema 'How many?'"));
    assert_eq!((status, &*out, &*err), (0, "{\"beds\": 4}\n", ""));
    let asked = model.asked();
    let last = |n: usize| {
        let messages = asked[n].body["messages"].as_array().expect("messages");
        messages.last().expect("a message")["content"].to_string()
    };
    assert_eq!(asked.len(), 3);
    assert!(
        last(1).contains("does not fit the JSON Schema"),
        "{}",
        last(1)
    );
    assert!(
        last(2).contains("/beds: must be") && last(2).contains("required"),
        "{}",
        last(2)
    );
    // The next question begins anew, and a view shows all of it.
    let (status, out, _) = scratch.run(&react(&model, "--schema schema --plain 'And now?'"));
    assert!(
        status == 0 && out.contains("> And now?") && out.contains("beds"),
        "{out}"
    );
}

#[test]
fn a_model_that_cannot_is_an_error() {
    let scratch = scratch();
    let model = model(&["Four."]);
    let (status, out, err) = scratch.run(&react(&model, "--schema schema 'How many?'"));
    assert_eq!((status, &*out, model.asked().len()), (2, "", 4), "{err}");
    assert!(
        err.starts_with("react: the answer does not fit schema after 3 further attempts ("),
        "{err}"
    );
    // An error of a stage is reported although no view shows it.
    let (status, out, err) =
        scratch.run("react --tape $SCRATCH/none -m m --schema $SCRATCH/schema 'How many?'");
    assert_eq!((status, &*out), (2, ""), "{err}");
    assert_eq!(err.matches("none").count(), 1, "{err}");
}

#[test]
fn files_go_with_the_first_request_of_a_question_and_stay_in_the_log() {
    let scratch = scratch();
    let model = model(&["A hut."]);
    let (status, _, err) = scratch.run(&react(&model, "-a image.txt 'What is it?'"));
    assert_eq!((status, &*err), (0, ""));
    let (status, _, err) = scratch.run(&react(&model, "'Really?'"));
    assert_eq!((status, &*err), (0, ""));
    let second = model.asked().remove(1).body;
    assert_eq!(second.to_string().matches(PNG.1).count(), 1, "{second}");
    // Not in the options that are kept.
    assert!(
        !scratch
            .run("cd $SCRATCH; react -a no-such.png -m m -l log2 Hi")
            .2
            .contains("go on with")
    );
}
