//! What a user reads after a mistake: one line that begins with the command, and of which a terminal
//! of 80 columns shows what to do.

use std::process::Stdio;

/// A command line in a folder of its own, and the words of the message that say what to do.
const MISTAKES: [(&str, &str); 73] = [
    ("llm-stream", "name one with --model"),
    ("llm-stream hi", "name one with --model"),
    ("llm-stream -m x --tools nowhere.json hi", "check the path"),
    ("llm-stream -m x --tools bad.json hi", "line 1 column 2"),
    ("llm-stream -m x --api nope hi", "use one of"),
    (
        "llm-stream -m x --base-url ftp://x hi",
        "write it as https://",
    ),
    (
        "llm-stream -m x --header broken hi",
        "write it as 'X-Title: my app'",
    ),
    ("llm-stream -m x --param temperature hi", "KEY=JSON"),
    (
        "llm-stream -m x --param temperature=hot hi",
        "a text needs quotes",
    ),
    ("llm-stream --replay nowhere", "check the path"),
    (
        "llm-stream -m x --tape nowhere hi",
        "record one with --tape-mode",
    ),
    (
        "llm-stream -m x --api anthropic hi",
        "export ANTHROPIC_API_KEY",
    ),
    (
        "llm-stream -m x --tools-mode tag --dialect nope hi",
        "tag-parse --list-dialects",
    ),
    ("llm-stream -m x --timeout soon hi", "such as 500ms"),
    (
        "llm-stream -m x --max-line 3X hi",
        "a number of bytes, such as",
    ),
    ("llm-stream -m x why is it", "put quotes around"),
    ("tag-parse --dialect nope", "see tag-parse --list-dialects"),
    ("tag-parse --tools nowhere.json", "check the path"),
    (
        "tag-parse --show-dialect nope",
        "see tag-parse --list-dialects",
    ),
    ("tag-parse extra", "check the path"),
    ("tc-detect --checker nope", "use one of"),
    ("tc-accumulate --tools nowhere.json", "check the path"),
    ("tc-accumulate --tools bad.json", "line 1 column 2"),
    ("tc-accumulate --emit-on never", "[possible values"),
    ("tc-accumulate --as nope", "did you mean"),
    ("tool-exec", "--tools"),
    ("tool-exec --tools nowhere.json", "check the path"),
    ("tool-exec --tools bad.json", "line 1 column 2"),
    (
        "tool-exec --tools tools.json --policy nowhere",
        "check the path",
    ),
    (
        "tool-exec --tools tools.json --approve-call x",
        "write ID:HASH",
    ),
    (
        "tool-exec --tools tools.json --sandbox strong",
        "not one of",
    ),
    ("tool-exec --tools tools.json --jobs 0", "above 0"),
    (
        "tool-exec --tools tools.json --log /nowhere/x",
        "check the path",
    ),
    ("tc-view nowhere", "check the path"),
    ("tc-view .", "check the path"),
    ("tc-view --format nope", "[possible values"),
    ("tc-view --follow http://127.0.0.1:1/x", "write http://HOST"),
    ("tc-eval", "<CORPORA>"),
    ("tc-eval nowhere", "check the path"),
    ("tc-eval .", "make one with tc-eval label"),
    ("tc-eval one -c nope", "use one of"),
    ("tc-eval one -c mine=cmd:", "write a name and a command"),
    ("tc-eval one -c full -c full", "choose another name"),
    ("tc-eval one --require x", "write METRIC"),
    ("tc-eval one --require 'recal>=1'", "did you mean"),
    ("tc-eval one --require 'x:recall>=1'", "it has first-chunk"),
    (
        "tc-eval one --require 'baseline.broken<=0'",
        "add --baseline",
    ),
    ("tc-eval one --only x", "use id=GLOB"),
    ("tc-eval one --only api=nope", "name a corpus"),
    ("tc-eval one --output r.pdf", "use one of .txt, .json"),
    ("tc-eval one --by nope", "one of api"),
    (
        "tc-eval one --baseline nowhere",
        "write it with --save-baseline",
    ),
    ("tc-eval one --resplit 0", "use a size"),
    ("tc-eval one", "tc-eval label --confirm one"),
    ("tc-eval explain nowhere", "check the path"),
    ("tc-eval explain one", "with --stream ID"),
    ("tc-eval explain one --stream nope", "tc-eval --list"),
    ("tc-eval diff a", "<B>"),
    ("tc-eval diff a b", "check the path"),
    ("tc-eval merge bad.json", "run tc-eval --partial again"),
    ("tc-eval merge nowhere", "check the path"),
    ("tc-eval fit nowhere", "check the path"),
    ("tc-eval label nowhere", "check the path"),
    ("tc-eval label --confirm .", "make one with tc-eval label"),
    ("tc-eval label --output /nowhere/x bad.json", "make it"),
    ("tc-serve --listen nope", "write it as 127.0.0.1:8790"),
    ("tc-serve --listen 0.0.0.0:0", "write the"),
    ("tc-serve --key-file nowhere", "check the path"),
    ("tc-serve --tools tools.json", "--sessions"),
    ("tc-serve --allow-origin x", "write it as https://"),
    ("tc-serve --pass x", "write it as /api/tags"),
    ("tc-serve --retain x --sessions s", "write an age as"),
    ("toolpipe nope", "[possible values"),
];

#[test]
fn every_message_fits_its_remedy() {
    let folder = testkit::Scratch::new();
    for (name, text) in [
        ("bad.json", "not json\n"),
        ("tools.json", "[]\n"),
        (
            "one/index.ndjson",
            "{\"id\":\"a\",\"file\":\"a.sse\",\"has_tool_call\":null}\n",
        ),
        ("one/a.sse", "data: [DONE]\n\n"),
    ] {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let mut wrong = Vec::new();
    for (line, remedy) in MISTAKES {
        let output = testkit::bash(line, &folder)
            .env_remove("LLM_MODEL")
            .env_remove("OPENAI_API_KEY")
            .env_remove("ANTHROPIC_API_KEY")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .expect("bash runs");
        let err = String::from_utf8_lossy(&output.stderr);
        let first = err.lines().next().unwrap_or_default();
        let command = line.split(' ').next().unwrap_or_default();
        let at = first.find(remedy).map(|at| first[..at].chars().count());
        let is_seen = at.is_some_and(|at| at < 80 && first.starts_with(&format!("{command}: ")));
        if !is_seen || output.status.code() != Some(2) {
            wrong.push(format!(
                "{line} ({:?}, {:?} at {at:?})\n{err}",
                output.status.code(),
                remedy
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        MISTAKES.len(),
        wrong.join("\n")
    );
}
