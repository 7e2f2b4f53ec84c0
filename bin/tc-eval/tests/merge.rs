//! Parts of a corpus: `--partial`, `tc-eval merge`, and what `docs/evaluation.md` says of both.

use crate::shell::Folder;
use std::path::Path;
use testkit::needs;

const COUNT: &str = "tc-eval - --root fixtures --partial --checker first-chunk --checker full";
const WHOLE: &str = "tc-eval fixtures --checker first-chunk --checker full --format json";

/// A folder with the parts of every third label as a.part, b.part and c.part.
fn parts(name: &str) -> Folder {
    let folder = Folder::new(name);
    let labels = folder.read("fixtures/index.ndjson");
    for (place, part) in ["a", "b", "c"].into_iter().enumerate() {
        let third: Vec<&str> = labels.lines().skip(place).step_by(3).collect();
        folder.write("third", &(third.join("\n") + "\n"));
        folder.good(&format!("{COUNT} < third > {part}.part"));
    }
    folder
}

#[test]
fn any_division_in_any_order_gives_the_report_of_one_run() {
    if !needs::programs(&["sed"]) {
        return;
    }
    let folder = parts("merge-any");
    let whole = folder.good(WHOLE);
    let merged = |parts: &str| folder.good(&format!("tc-eval merge --format json {parts}"));
    for parts in [
        "a.part b.part c.part",
        "c.part a.part b.part",
        "- < <(cat b.part c.part a.part)",
        "< <(cat c.part b.part a.part)",
    ] {
        assert_eq!(merged(parts), whole, "{parts}");
    }
    // Parts of unequal size, an empty one, and a tree of merges.
    let script = format!(
        "for lines in 1,1p 2,3p 4,200p '201,$p' 10000,10001p; do sed -n $lines fixtures/index.ndjson | {COUNT} > $lines.uneven; done;
         tc-eval merge --partial 4*.uneven 1,*.uneven > left; tc-eval merge --partial 2,*.uneven 10000*.uneven 201*.uneven > right;
         tc-eval merge --format json right left"
    );
    assert_eq!(folder.good(&script), whole);
    // A part of a single thread is the same.
    assert_eq!(
        folder.good(&format!(
            "{COUNT} --jobs 1 < fixtures/index.ndjson | tc-eval merge --format json"
        )),
        whole
    );
}

#[test]
fn requirements_hold_for_the_sum() {
    let folder = parts("merge-require");
    let merge = "tc-eval merge a.part b.part c.part --format json --require";
    let streams = folder.good("wc -l <fixtures/index.ndjson");
    folder.good(&format!("{merge} 'streams=={}'", streams.trim()));
    let ran = folder.run(&format!("{merge} 'first-chunk:recall>=0.99'"));
    assert_eq!(ran.status, 1);
    assert!(
        ran.err.starts_with("tc-eval: first-chunk: recall is 0."),
        "{}",
        ran.err
    );
    let ran = folder.run(&format!(
        "tc-eval merge a.part --require 'streams=={}'",
        streams.trim()
    ));
    assert_eq!(
        ran.status, 1,
        "a part that is missing is noticed by the number of streams"
    );
    let err = folder.refused("tc-eval merge a.part --require 'baseline.broken<=0'");
    assert!(err.contains("baseline"), "{err}");
}

#[test]
fn what_is_not_a_part_of_this_corpus_is_one_line() {
    if !needs::programs(&["sed"]) {
        return;
    }
    let folder = parts("merge-refused");
    folder.good("sed 's/first-chunk/other/' b.part > other; head -c -2 b.part > cut; cat a.part b.part a.part > twice");
    folder.good("sed 's/\"version\":\"[^\"]*\"/\"version\":\"0.0.9\"/' b.part > version; : > empty; cat a.part <(echo) cut > second");
    folder
        .good("(sed -n 1,20p fixtures/index.ndjson) | tc-eval - --root fixtures --partial --checker full > full.part");
    for (parts, says) in [
        (
            "a.part b.part a.part",
            "a.part, line 1: the same counts as a.part, line 1",
        ),
        (
            "c.part twice",
            "twice, line 3: the same counts as twice, line 1",
        ),
        (
            "a.part other",
            "other, line 1: one part counts the checkers first-chunk, full, another other, full",
        ),
        (
            "a.part full.part",
            "full.part, line 1: one part counts the checkers",
        ),
        ("cut", "cut, line 1: not a whole part"),
        ("second", "second, line 3: not a whole part"),
        ("a.part version", "version, line 1: a part of version 0.0.9"),
        (
            "fixtures/index.ndjson",
            "fixtures/index.ndjson, line 1: not a whole part",
        ),
        (
            "empty",
            "no part in empty; write parts with tc-eval --partial",
        ),
        ("< /dev/null", "no part in standard input"),
        ("missing", "missing: No such file"),
        ("fixtures", "fixtures: Is a directory"),
        ("--format json --partial a.part", "--partial"),
    ] {
        let err = folder.refused(&format!("tc-eval merge {parts}"));
        assert!(err.contains(says), "{parts}: {err}");
    }
}

#[test]
fn a_recording_that_cannot_be_read_does_not_fail_the_part_but_the_sum() {
    let folder = Folder::new("merge-unreadable");
    let label = r#"{"id":"gone","file":"gone.sse","has_tool_call":true,"calls":[]}"#;
    let ran = folder.run(&format!(
        "(echo '{label}'; head -n 5 fixtures/index.ndjson) | {COUNT} > part"
    ));
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.err.contains("gone.sse"), "{}", ran.err);
    let err = folder.refused("tc-eval merge part --format json > report");
    assert!(err.contains("1 recording could not be read"), "{err}");
    assert!(folder.read("report").contains("\"unreadable\": 1"));
    // A process that finds its disk full fails, and its part is not taken.
    let err = folder.refused(&format!("{COUNT} < fixtures/index.ndjson > /dev/full"));
    assert!(err.contains("standard output"), "{err}");
}

/// The blocks of code of the page, of a kind.
fn blocks(kind: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evaluation.md");
    let page = std::fs::read_to_string(page).expect("docs/evaluation.md");
    let fence = format!("```{kind}\n");
    let after = page.split(fence.as_str()).skip(1);
    after
        .map(|text| text.split("```").next().expect("a block").to_owned())
        .collect()
}

#[test]
fn the_commands_of_the_page_give_the_report_of_one_run() {
    let page = Folder::new("merge-page");
    let whole = page.good("tc-eval fixtures --checker full --format json");
    let blocks = blocks("sh");
    assert_eq!(blocks.len(), 4, "the commands of docs/evaluation.md");
    for (number, block) in blocks.iter().enumerate() {
        let folder = Folder::new(&format!("merge-page-{number}"));
        if !needs::script("a block of docs/evaluation.md", block) {
            continue;
        }
        let script = block.replace("tc-eval merge", "tc-eval merge --format json");
        let printed = folder.run(&script).out;
        let Some((_, requirement)) = script.split_once(" --require ") else {
            assert_eq!(printed, whole, "{block}");
            continue;
        };
        // A report with a requirement holds the verdict as well.
        let whole = folder
            .run(&format!(
                "tc-eval fixtures --checker full --format json --require {requirement}"
            ))
            .out;
        assert_eq!(printed, whole, "{block}");
    }
}

#[test]
fn the_script_for_spark_gives_the_report_of_one_run() {
    let Some(python) = needs::python("pyspark") else {
        return;
    };
    if !needs::programs(&["java"]) {
        return;
    }
    let folder = Folder::new("merge-spark");
    let scripts = blocks("python");
    let script = scripts.iter().find(|script| script.contains("pyspark"));
    let script = script.expect("a script in docs/evaluation.md");
    folder.write("spark_eval.py", script);
    // A cluster names its machines by itself; a machine without a network does not.
    let python = python.display();
    let spark = format!(
        "SPARK_LOCAL_IP=127.0.0.1 PYSPARK_PYTHON='{python}' '{python}' spark_eval.py \"$(command -v tc-eval)\""
    );
    let run = |arguments: &str| folder.run(&format!("{spark} {arguments} 2>err"));
    let ran = run("fixtures/index.ndjson \"$PWD/fixtures\" 5 --checker first-chunk --checker full");
    assert_eq!(ran.status, 0, "{}", folder.read("err"));
    let count = folder.good("wc -l <fixtures/index.ndjson");
    let whole = format!(
        "{} --require 'streams=={}'",
        WHOLE.replace("tc-eval fixtures", "tc-eval $PWD/fixtures"),
        count.trim()
    );
    assert_eq!(ran.out, folder.good(&whole));
    // A process that fails is a task that fails, and no report.
    let ran = run("fixtures/index.ndjson fixtures 2 --checker no-such-checker");
    assert_ne!((ran.status, ran.out.is_empty()), (0, false));
    assert!(
        folder.read("err").contains("exited with error code 2"),
        "{}",
        folder.read("err")
    );
}
