//! The commands in README.md and those of the commands, docs/pipelines.md, docs/protocol.md, docs/tag-mode.md, docs/ci.md, docs/serve.md and docs/metrics.md work
//! as they are written, and the demo prints `fixtures/demo.txt`, or `fixtures/demo-tag.txt` in tag
//! mode and `fixtures/demo-serve.txt` for the service (`UPDATE=1 cargo test --test main readme::` rewrites
//! them).

use std::fs;
use std::io::Write;
use std::process::Stdio;
use testkit::{Request, Scratch, Server, golden, needs};

/// Runs a script in the root of the repository, with a folder for its temporary files; returns its
/// standard output.
fn run(script: &str) -> String {
    let script = format!("export TMPDIR=$(mktemp -d); trap 'rm -rf \"$TMPDIR\"' EXIT\n{script}");
    let output = testkit::bash(&script, testkit::root())
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(
        output.status.success() && err.is_empty(),
        "{script}\n{}\n{out}\n{err}",
        output.status
    );
    out
}

/// The blocks after the mark `<!-- test -->`, all of which are of this kind.
fn blocks(text: &str, kind: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while lines.by_ref().any(|line| line == "<!-- test -->") {
        assert_eq!(
            lines.next(),
            Some(format!("```{kind}").as_str()),
            "after a mark, of block {}",
            blocks.len() + 1
        );
        blocks.push(
            lines
                .by_ref()
                .take_while(|line| *line != "```")
                .collect::<Vec<_>>()
                .join("\n"),
        );
    }
    blocks
}

#[test]
fn every_pipeline_of_the_readmes_works_as_written() {
    for (page, count) in [
        ("README.md", 1),
        ("docs/pipelines.md", 4),
        ("bin/llm-stream/README.md", 1),
        ("bin/tag-parse/README.md", 2),
        ("bin/tc-detect/README.md", 2),
    ] {
        let text = std::fs::read_to_string(testkit::root().join(page)).expect(page);
        let blocks = blocks(&text, "sh");
        assert_eq!(blocks.len(), count, "marked pipelines of {page}");
        for block in blocks
            .iter()
            .filter(|block| needs::script(&format!("a pipeline of {page}"), block))
        {
            assert!(!run(block).is_empty(), "it prints nothing:\n{block}");
        }
    }
}

/// What a model of OpenAI's API answers: a call of the tool that the question is about, the result
/// of a call, or the question itself with the number of messages before it.
fn model(request: &Request) -> String {
    let messages = request.body["messages"].as_array().expect("messages");
    let last = messages.last().expect("a question");
    let text = last["content"].as_str().expect("a text");
    let has_tools = request.body["tools"].is_array();
    let (delta, reason) = match last["role"].as_str() {
        Some("user") if has_tools && text.starts_with("Note") => {
            let function = serde_json::json!({"name": "note", "arguments": r#"{"text":"The hut is booked."}"#});
            let call = serde_json::json!({"index": 0, "id": "call_1", "type": "function", "function": function});
            (serde_json::json!({"tool_calls": [call]}), "tool_calls")
        }
        Some("user") => {
            let answer = format!("{} before: {text}", messages.len() - 1);
            (serde_json::json!({"content": answer}), "stop")
        }
        _ => (serde_json::json!({"content": text}), "stop"),
    };
    let chunk = serde_json::json!({
        "id": "1", "object": "chat.completion.chunk", "created": 1, "model": request.body["model"],
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    });
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

/// The five lines of the first page, without the download, whose files `release.rs` and
/// `packaging/try` try.
#[test]
fn the_first_lines_of_the_readme_work_as_written() {
    if !needs::programs(&["git"]) {
        return;
    }
    let server = Server::answering(|_, request, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\n{}\r\n",
            testkit::SSE
        );
        stream
            .write_all((head + &model(request)).as_bytes())
            .is_err()
    });
    let page = fs::read_to_string(testkit::root().join("README.md")).expect("README.md");
    let (_, block) = page.split_once("```sh\n").expect("a block");
    let lines: Vec<_> = block.lines().take(5).collect();
    let folder = Scratch::new();
    let note = testkit::root().join("fixtures/tools/note.sh");
    fs::copy(note, folder.join("note.sh")).expect("a copy");
    let shell = |line: &str| {
        let mut bash = testkit::bash(line, &folder);
        bash.env_remove("TOOLPIPE_KEEP")
            .env("HOME", &*folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .env("XDG_CONFIG_HOME", folder.join("config"))
            .env("LLM_BASE_URL", server.at("/v1"))
            .env("OPENAI_API_KEY", "none")
            .env("LLM_MODEL", "small")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let ran = testkit::run(bash);
        assert_eq!(
            (ran.status, ran.stderr.as_str()),
            (0, ""),
            "{line}: {}",
            ran.stdout
        );
        ran.stdout
    };
    shell(
        "git init -q && echo before >file && git add file && echo after >file && chmod go-w . note.sh",
    );
    let [note, commit, german, replay, download] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert!(shell(note).contains("noted: The hut is booked."));
    assert_eq!(folder.read("notes.txt"), "The hut is booked.\n");
    let shown = shell(commit);
    assert!(
        shown.contains("0 before: Write a commit message") && shown.contains("+after"),
        "{shown}"
    );
    assert!(shell(german).contains("2 before: And in German?"));
    shell(&note.replace("-t", "-l trip.ndjson -t"));
    let asked = server.asked().len();
    assert!(shell(replay).contains("noted: The hut is booked."));
    assert_eq!(server.asked().len(), 0, "after {asked} requests");
    assert_eq!(folder.read("notes.txt").lines().count(), 2);
    assert!(
        download.contains("/toolpipe-x86_64-linux.tar.gz | tar xz"),
        "{download}"
    );
}

#[test]
fn the_commands_for_a_log_that_is_too_long_work_as_written() {
    let page = std::fs::read_to_string(testkit::root().join("docs/protocol.md"))
        .expect("docs/protocol.md");
    let blocks = blocks(&page, "sh");
    let [trim, cut] = &blocks[..] else {
        panic!("{} blocks are marked", blocks.len())
    };
    if !needs::script("the commands of docs/protocol.md", &blocks.concat()) {
        return;
    }
    let sent = run(trim);
    for (text, stays) in [
        ("Be brief.", true),
        ("1", false),
        ("Question 2", true),
        ("Answer 2", true),
        ("Question 3", true),
    ] {
        assert_eq!(sent.contains(text), stays, "{text}: {sent}");
    }
    assert!(run(cut).contains("a long result"));
}

#[test]
fn the_examples_of_the_docs_print_what_is_shown() {
    for (page, least) in [
        ("docs/tag-mode.md", 4),
        ("docs/ci.md", 4),
        ("docs/serve.md", 5),
        ("bin/tc-view/README.md", 1),
        ("docs/metrics.md", 1),
    ] {
        let text = std::fs::read_to_string(testkit::root().join(page)).expect(page);
        let blocks = blocks(&text, "console");
        assert!(
            blocks.len() >= least,
            "only {} examples of {page} are marked",
            blocks.len()
        );
        let can_run = |block: &&String| needs::script(&format!("an example of {page}"), block);
        blocks
            .iter()
            .filter(can_run)
            .for_each(|block| prints_what_is_shown(block));
    }
}

#[test]
fn the_files_for_operators_name_options_that_there_are() {
    let page = std::fs::read_to_string(testkit::root().join("docs/serve.md")).expect("the page");
    let help = run("tc-serve --help");
    let mut options = 0;
    for block in page.split("<!-- options -->\n").skip(1) {
        let block = block.split("\n```\n").next().unwrap_or_default();
        let words = block.split([' ', '"', ',', '\n']);
        for option in words.filter(|word| word.starts_with("--") && *word != "--create-home") {
            assert!(help.contains(&format!("{option} ")), "{option} in {block}");
            options += 1;
        }
    }
    assert!(options >= 7, "only {options} options");
}

/// A typed line follows `$ ` and continues after `> `; the rest of the block is its output.
fn prints_what_is_shown(block: &str) {
    let (typed, printed): (Vec<_>, Vec<_>) = block
        .lines()
        .partition(|l| l.starts_with("$ ") || l.starts_with("> "));
    let typed: Vec<_> = typed.iter().map(|line| &line[2..]).collect();
    assert_eq!(
        run(&typed.join("\n")).trim_end(),
        printed.join("\n"),
        "{block}"
    );
}

#[test]
fn the_demo_is_plain_in_a_pipe_and_what_it_prints_can_be_typed_again() {
    demo("", "fixtures/demo.txt");
}

#[test]
fn the_demo_in_tag_mode_is_the_same_conversation() {
    let native = demo("", "fixtures/demo.txt");
    let tag = demo("--tag", "fixtures/demo-tag.txt");
    assert!(
        tag.contains("\n<tool name=\"find_huts\">{"),
        "what the model wrote is shown: {tag}"
    );
    // Apart from that and from the options of llm-stream no line differs.
    let (before, rest) = tag
        .split_once("-- What the model wrote")
        .expect("a part of its own");
    let (_, after) = rest.split_once("\n-- ").expect("another part");
    let same = format!("{before}-- {after}")
        .replace("huts-tag.tape", "huts.tape")
        .replace(" --tools-mode tag", "");
    assert_eq!(same, native);
}

#[test]
fn the_demo_of_the_service_shows_the_calls_and_ends() {
    let shown = demo_prints("--serve", "fixtures/demo-serve.txt");
    let (_, calls) = shown.split_once("-> find_huts ").expect("the first call");
    assert!(
        calls
            .lines()
            .nth(1)
            .is_some_and(|line| line.starts_with("-> forecast ")),
        "{shown}"
    );
}

/// Runs the demo with the commands of this build and from another folder, and compares its output
/// with a file.
fn demo_prints(option: &str, golden: &str) -> String {
    let built = run("dirname \"$(command -v llm-stream)\"");
    let shown = run(&format!(
        "root=$PWD; export TOOLPIPE_BIN=$(dirname \"$(command -v llm-stream)\"); cd / && \"$root/bin/demo\" {option}"
    ));
    assert!(!shown.contains('\u{1b}'), "{shown}");
    // The folder of the commands is shown from the repository's root where it lies below it, and
    // whole where it does not.
    let built = built.trim();
    let short = built.replacen(&testkit::root().display().to_string(), "$PWD", 1);
    let shown = shown.replace(&short, "$PWD/target/debug");
    let wrong = golden::compare(&testkit::root().join(golden), shown.as_bytes());
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    shown
}

/// The same, and runs the commands that the demo shows.
fn demo(option: &str, golden: &str) -> String {
    let shown = demo_prints(option, golden);
    let (_, by_hand) = shown
        .split_once("root of the repository:\n")
        .expect("the pipeline at the end");
    let again = run(&by_hand.replace("PATH=$PWD/target/debug:", "PATH="));
    assert!(
        again.contains("-> reserve") && again.contains("sleeping bags"),
        "{again}"
    );
    shown
}
