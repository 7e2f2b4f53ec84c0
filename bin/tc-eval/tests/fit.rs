//! `tc-eval fit`: a table of a corpus, and the test of tables on other sources.

use crate::run::Folder;

const TEXT: &str = "{\"type\":\"stream_start\",\"v\":1,\"api\":\"anthropic\",\"model\":\"claude-x\"}\n\
    {\"type\":\"content_delta\",\"text\":\"Let me look at it.\"}\n";
const CALL: &str =
    "{\"type\":\"tool_call_delta\",\"index\":0,\"tool_id\":\"a\",\"tool_name\":\"f\"}\n";
const END: &str = "{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}\n";

/// A corpus of four streams from two repositories: two call after text, and two do not call.
fn corpus() -> Folder {
    let folder = Folder::new();
    folder.write("call.ndjson", format!("{TEXT}{CALL}{END}"));
    folder.write("text.ndjson", format!("{TEXT}{END}"));
    let mut index = String::new();
    for repository in ["a/a", "b/b"] {
        for (file, has_call) in [("call.ndjson", true), ("text.ndjson", false)] {
            index += &format!(
                "{{\"id\":\"{repository}-{file}\",\"file\":\"{file}\",\"source\":\"{repository}:x\",\"has_tool_call\":{has_call}}}\n"
            );
        }
    }
    folder.write("index.ndjson", index);
    folder
}

#[test]
fn the_table_counts_each_stream_once() {
    let folder = corpus();
    let out = folder.command(&["fit", "."]).output().expect("a run");
    let table = String::from_utf8_lossy(&out.stdout).into_owned();
    for row in [
        "text 2 2",
        "api anthropic 2 2",
        "model claude 2 2",
        "before 8 2",
        "after plain 0 2 2",
        "after intent 8 2 2",
    ] {
        assert!(table.lines().any(|line| line == row), "{row}: {table}");
    }
    let out = folder
        .command(&["fit", ".", "--output", "mine.table"])
        .output()
        .expect("a run");
    assert!(
        out.status.success() && folder.read("mine.table") == table,
        "{out:?}"
    );
    let out = folder
        .command(&["fit", ".", "--output", "/dev/full"])
        .output()
        .expect("a run");
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        out.status.code() == Some(2) && err.contains("/dev/full") && err.lines().count() == 1,
        "{err}"
    );
}

#[test]
fn each_source_is_judged_with_the_table_of_the_others() {
    let folder = corpus();
    let out = folder
        .command(&[
            "fit",
            ".",
            "--folds",
            "1000",
            "-c",
            "auto",
            "-c",
            "first-chunk",
        ])
        .output()
        .expect("a run");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let row = |checker: &str| {
        let line = text
            .lines()
            .find(|line| line.split_whitespace().nth(1) == Some(checker))
            .unwrap_or_default();
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        row("auto").get(2..6),
        Some(&["4", "2", "0", "100.00"].map(str::to_owned)[..]),
        "{text}"
    );
    assert_eq!(
        row("first-chunk").get(2..6),
        Some(&["4", "2", "2", "0.00"].map(str::to_owned)[..]),
        "{text}"
    );
    let out = folder
        .command(&["fit", ".", "--folds", "2", "-c", "psychic"])
        .output()
        .expect("a run");
    assert!(
        out.status.code() == Some(2)
            && String::from_utf8_lossy(&out.stderr).contains("unknown checker 'psychic'")
    );
}

#[test]
fn auto_decides_by_the_table_that_is_named() {
    let folder = corpus();
    let waited = |table: &str, args: &[&str]| {
        let row = "text 1000 1000\napi anthropic 1000 1000\nbefore 8 1000\n";
        folder.write("mine.table", format!("{row}{table}"));
        folder.write(
            "long.ndjson",
            format!(
                "{TEXT}{}{END}",
                TEXT.lines()
                    .nth(1)
                    .map(|l| format!("{l}\n"))
                    .unwrap_or_default()
                    .repeat(50)
            ),
        );
        folder.write(
            "one.ndjson",
            "{\"id\":\"x\",\"file\":\"long.ndjson\",\"has_tool_call\":false}\n",
        );
        let out = folder
            .command(&[&["one.ndjson", "-c", "auto", "--list"], args].concat())
            .output()
            .expect("a run");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    // After an announcement a call always follows, by this table; by the other never.
    let always: String =
        "0 8 16 24 32 40 50 60 70 80 90 100 110 120 130 140 150 160 180 200 220 240 260 280 320 360 400"
            .split(' ')
            .map(|edge| format!("after intent {edge} 1000 0\n"))
            .collect();
    let never = always.replace(" 1000 0\n", " 0 100000\n");
    let late = waited(&always, &["--table", "mine.table"]);
    let early = waited(&never, &["--table", "mine.table"]);
    assert!(
        late.contains("the stream ended") && !early.contains("the stream ended"),
        "{late}{early}"
    );
    folder.write("mine.table", "text one\n");
    let out = folder
        .command(&[".", "-c", "auto", "--table", "mine.table"])
        .output()
        .expect("a run");
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        out.status.code() == Some(2)
            && err.contains("mine.table: line 1")
            && err.lines().count() == 1,
        "{err}"
    );
}
