//! `--baseline` and `--save-baseline`, with a full disk, a second writer, and files that somebody
//! damaged.

use crate::shell::Folder;
use serde_json::Value;
use testkit::needs;

/// Saves a baseline of two checkers over the fixtures as `base`.
fn saved(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder
        .good("tc-eval fixtures --checker first-chunk --checker full --save-baseline base >report");
    folder
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_baseline_has_a_line_for_each_stream_in_the_order_of_the_corpus() {
    let folder = saved("baseline-lines");
    let base = folder.read("base");
    let lines: Vec<Value> = base.lines().map(json).collect();
    assert_eq!(lines[0]["checkers"], json(r#"["first-chunk","full"]"#));
    assert_eq!(lines[0]["corpora"], json(r#"["fixtures"]"#));
    assert_eq!(lines[0]["tc_eval_baseline"], 1);
    let labels: Vec<Value> = folder
        .read("fixtures/index.ndjson")
        .lines()
        .map(json)
        .collect();
    let labels: Vec<&Value> = labels
        .iter()
        .filter(|label| !label["has_tool_call"].is_null())
        .collect();
    assert_eq!(lines.len(), labels.len() + 2);
    assert_eq!(lines[lines.len() - 1]["end"], labels.len());
    let list = folder.good("tc-eval fixtures --checker first-chunk --checker full --list");
    let listed: Vec<Value> = list.lines().map(json).collect();
    for (line, label) in lines[1..].iter().zip(labels) {
        assert_eq!(line["id"], label["id"]);
        assert_eq!(line["has_tool_call"], label["has_tool_call"], "{line}");
        assert_eq!(line["outcomes"].as_array().map(Vec::len), Some(2), "{line}");
        for (place, checker) in ["first-chunk", "full"].into_iter().enumerate() {
            let listed = listed
                .iter()
                .find(|listed| listed["id"] == line["id"] && listed["checker"] == checker)
                .unwrap();
            let outcome = &line["outcomes"][place];
            assert_eq!(outcome["answer"], listed["answer"], "{line}");
            assert_eq!(outcome["at"]["events"], listed["event"], "{line}");
            assert_eq!(outcome["at"]["chars"], listed["chars"], "{line}");
        }
    }
}

#[test]
fn the_same_run_differs_in_nothing_in_any_order_of_the_baseline() {
    if !needs::programs(&["sed"]) {
        return;
    }
    let folder = saved("baseline-same");
    let command = "tc-eval fixtures --checker first-chunk --checker full --format json --baseline";
    let same = json(&folder.good(&format!("{command} base")));
    let baseline = &same["baseline"];
    assert_eq!(
        baseline["compared"],
        folder.read("base").lines().count() - 2
    );
    for checker in baseline["checkers"].as_array().unwrap() {
        for count in ["broken", "fixed", "changed", "earlier", "later"] {
            assert_eq!(checker[count], 0, "{count}");
        }
        assert_eq!(checker["p"], 1.0);
    }
    let shuffle = "head -n 1 base; sed '1d;$d' base | sort -t : -k 5; tail -n 1 base";
    let shuffled = json(&folder.good(&format!("({shuffle}) > shuffled; {command} shuffled")));
    assert_ne!(folder.read("shuffled"), folder.read("base"));
    assert_eq!(shuffled["baseline"], same["baseline"]);
}

/// The chance that of so many changes, each as likely for the better as for the worse, as few or
/// fewer are of the rarer kind, on both sides.
fn sign_test(a: u64, b: u64) -> f64 {
    let n = a + b;
    let mut term = 0.5_f64.powi(n as i32);
    let mut sum = 0.0;
    for k in 0..=a.min(b) {
        sum += term;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    (2.0 * sum).min(1.0)
}

#[test]
fn a_stream_that_was_right_fails_the_run_by_its_name() {
    if !needs::programs(&["sed"]) {
        return;
    }
    let folder = Folder::new("baseline-broken");
    // The answers of the whole reading in the name of the first chunk's: what a worse version would
    // look like.
    folder.good("tc-eval fixtures --checker full --save-baseline full >report; sed '1s/full/first-chunk/' full > base");
    let ran =
        folder.run("tc-eval fixtures --checker first-chunk --format json --show 3 --baseline base");
    assert_eq!(ran.status, 1, "{}", ran.err);
    let report = json(&ran.out);
    let change = &report["baseline"]["checkers"][0];
    let broken = change["broken"].as_u64().unwrap();
    assert!(broken > 20, "{change}");
    let fixed = change["fixed"].as_u64().unwrap();
    let p = change["p"].as_f64().unwrap();
    assert!((p - sign_test(broken, fixed)).abs() < 1e-9, "{change}");
    let named = change["broken_streams"].as_array().unwrap();
    assert_eq!(named.len(), 3, "--show 3");
    // Standard error names them as well, for who reads no JSON.
    let first = named[0]["id"].as_str().unwrap();
    assert!(
        ran.err
            .contains(&format!("first-chunk: fixtures {first} was yes, is no: ")),
        "{}",
        ran.err
    );
    assert!(ran.err.contains(&format!("{broken} broken")), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 4, "{}", ran.err);
    // The other way round nothing is worse.
    folder.good(
        "tc-eval fixtures --checker first-chunk --save-baseline first >report; sed '1s/first-chunk/full/' first > base",
    );
    let ran = folder.run("tc-eval fixtures --checker full --format json --baseline base");
    let better = json(&ran.out);
    assert_eq!(better["baseline"]["checkers"][0]["fixed"], broken);
    assert_eq!(better["baseline"]["checkers"][0]["broken"], change["fixed"]);
}

#[test]
fn a_requirement_on_the_baseline_replaces_the_rule() {
    if !needs::programs(&["sed"]) {
        return;
    }
    let folder = Folder::new("baseline-require");
    folder.good("tc-eval fixtures --checker full --save-baseline full >report; sed '1s/full/first-chunk/' full > base");
    let command = "tc-eval fixtures --checker first-chunk --baseline base >report --require";
    folder.good(&format!("{command} 'baseline.broken<=10000'"));
    assert_eq!(
        folder
            .run(&format!("{command} 'baseline.broken<=3'"))
            .status,
        1
    );
    // A requirement on something else does not.
    assert_eq!(folder.run(&format!("{command} 'recall>=0'")).status, 1);
    folder.refused("tc-eval fixtures --checker full --require 'baseline.broken<=3'");
}

#[test]
fn streams_that_are_new_or_gone_are_named_and_do_not_fail() {
    if !needs::programs(&["sed"]) {
        return;
    }
    let folder = saved("baseline-new");
    let edit = "sed '1d;$d' base | tail -n +6 > middle; n=$(wc -l < middle)";
    folder.good(&format!(
        "{edit}; (head -n 1 base; cat middle; echo '{{\"end\":'$n'}}') > fewer"
    ));
    let command = "tc-eval fixtures --checker first-chunk --checker full --format json --baseline";
    let more = json(&folder.good(&format!("{command} fewer")));
    assert_eq!(
        (&more["baseline"]["new"], &more["baseline"]["vanished"]),
        (&json("5"), &json("0"))
    );
    assert_eq!(
        more["baseline"]["new_streams"].as_array().map(Vec::len),
        Some(5)
    );
    let edit = "sed '1d;$d' base > middle; sed -n '2,4{s/\"id\":\"/\"id\":\"gone /;p}' base >> middle; n=$(wc -l < middle)";
    folder.good(&format!(
        "{edit}; (head -n 1 base; cat middle; echo '{{\"end\":'$n'}}') > more"
    ));
    let fewer = json(&folder.good(&format!("{command} more")));
    assert_eq!(
        (&fewer["baseline"]["new"], &fewer["baseline"]["vanished"]),
        (&json("0"), &json("3"))
    );
    let gone = fewer["baseline"]["vanished_streams"][0]["id"]
        .as_str()
        .unwrap();
    assert!(gone.starts_with("gone "), "{gone}");
}

#[test]
fn a_file_that_is_damaged_or_of_another_kind_is_one_line() {
    if !needs::programs(&["sed"]) {
        return;
    }
    let folder = saved("baseline-damaged");
    let count = folder.read("base").lines().count();
    for (make, says) in [
        ("head -n 100 base", "bad: cut after line 100"),
        ("head -c 5000 base", "the line is not valid"),
        ("sed '$d' base", "its last line is missing"),
        ("sed 5d base", "1 streams are missing"),
        ("cat base base", "follows the last line"),
        (
            "sed '1s/\"tc_eval_baseline\":1/\"tc_eval_baseline\":2/' base",
            "a baseline of format 2",
        ),
        (
            "sed '1s/first-chunk\",\"full/a\",\"b/' base",
            "a baseline of a, b, and this run has full",
        ),
        (
            "sed '1s/\"first-chunk\",//' base",
            "another number of answers",
        ),
        ("sed '4s/\"yes\"\\|\"no\"/\"perhaps\"/' base", "bad, line 4"),
        (
            "cat fixtures/index.ndjson",
            "not a baseline, write one with --save-baseline",
        ),
        ("true", "not a baseline"),
        ("head -c 3000000 /dev/zero", "longer than a line"),
        (
            "sed 's/\"id\":\"/\"id\":\"other /' base",
            "a baseline of other streams",
        ),
    ] {
        let err = folder.refused(&format!(
            "{make} > bad; tc-eval fixtures --checker full --baseline bad"
        ));
        assert!(err.contains(says), "{make}: {err}");
    }
    let err = folder.refused("tc-eval fixtures --checker full --baseline missing");
    assert!(
        err.contains("missing: No such file") && err.contains("--save-baseline"),
        "{err}"
    );
    assert!(count > 200, "the fixtures have {count} lines");
}

#[test]
fn a_full_disk_leaves_the_old_file_whole() {
    let folder = saved("baseline-full");
    let before = folder.read("base");
    // A limit on the size of files fails a write as a full disk does, once its signal is ignored.
    let save = "tc-eval fixtures --checker full --save-baseline base >/dev/null";
    let err = folder.refused(&format!("trap '' XFSZ; ulimit -f 8; {save}"));
    assert!(
        err.contains("base: the baseline cannot be written"),
        "{err}"
    );
    assert_eq!(folder.read("base"), before);
    assert_eq!(
        folder.names(),
        ["base", "fixtures", "report"],
        "no draft is left"
    );
    // The signal kills the process: the draft stays, the file is whole.
    let killed = folder.run(&format!("ulimit -f 8; {save}"));
    assert_ne!(killed.status, 0);
    assert_eq!(folder.read("base"), before);
    let err = folder.refused("tc-eval fixtures --checker full --save-baseline /dev/full");
    assert!(
        err.contains("/dev/full: the baseline cannot be written"),
        "{err}"
    );
    let err = folder.refused("tc-eval fixtures --checker full --save-baseline no/such/folder/base");
    assert!(err.contains("no/such/folder/base"), "{err}");
}

#[test]
fn of_two_writers_one_wins_and_the_file_is_whole() {
    let folder = saved("baseline-writers");
    let one =
        "tc-eval fixtures --checker first-chunk --checker full --save-baseline both >/dev/null";
    folder.good(&format!(
        "for i in 1 2 3 4; do {one} & pids+=\" $!\"; done; for pid in $pids; do wait $pid || exit; done"
    ));
    assert_eq!(folder.read("both"), folder.read("base"));
    assert_eq!(folder.names(), ["base", "both", "fixtures", "report"]);
}

#[test]
fn a_link_is_followed_permissions_are_kept_and_a_device_is_written() {
    let folder = saved("baseline-link");
    let save = "tc-eval fixtures --checker first-chunk --checker full --save-baseline";
    folder.good(&format!(
        "mkdir deep; echo old > deep/real; chmod 640 deep/real; ln -s deep/real link; {save} link >/dev/null"
    ));
    assert_eq!(
        folder.good("readlink link; stat -c %a deep/real; ls deep"),
        "deep/real\n640\nreal\n"
    );
    assert_eq!(folder.read("deep/real"), folder.read("base"));
    assert_eq!(
        folder.good(&format!("{save} /dev/stderr 2>&1 >/dev/null")),
        folder.read("base")
    );
}

#[test]
fn a_failing_gate_keeps_its_baseline() {
    if !needs::programs(&["sed"]) {
        return;
    }
    let folder = Folder::new("baseline-ratchet");
    folder.good("tc-eval fixtures --checker full --save-baseline full >report; sed '1s/full/first-chunk/' full > base");
    let before = folder.read("base");
    let ran = folder
        .run("tc-eval fixtures --checker first-chunk --baseline base --save-baseline base >report");
    assert_eq!(
        (ran.status, folder.read("base") == before),
        (1, true),
        "{}",
        ran.err
    );
    folder.good("tc-eval fixtures --checker full --baseline full --save-baseline full >report");
    folder.good("tc-eval fixtures --checker first-chunk --save-baseline base >report");
    assert_ne!(folder.read("base"), before);
}

/// A label of the recording `body.sse` with this id.
fn label(id: &str) -> String {
    let id = serde_json::to_string(id).expect("a text is JSON");
    format!(
        "{{\"id\":{id},\"file\":\"body.sse\",\"api\":\"openai-chat\",\"has_tool_call\":true,\"calls\":[]}}\n"
    )
}

#[test]
fn hostile_ids_are_compared_and_printed_without_effect() {
    if !needs::programs(&["sed"]) {
        return;
    }
    let folder = Folder::new("baseline-hostile");
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    folder.write("body.sse", body);
    let ids = [
        "a\nb",
        "\u{1b}[31mred",
        "\",\"end\":1",
        "{\"end\":2}",
        "<script>",
        "x\u{202e}y",
        "a\tb",
        "é\u{0}",
        " ",
    ];
    folder.write(
        "index.ndjson",
        &ids.iter().fold(String::new(), |all, id| all + &label(id)),
    );
    folder.good("tc-eval . --checker full --save-baseline base >report");
    let same =
        json(&folder.good("tc-eval index.ndjson --checker full --format json --baseline base"));
    assert_eq!(same["baseline"]["compared"], ids.len());
    // The stream has no call, so that the label is wrong, and a baseline in which each answer is
    // right names all of them.
    folder.good("sed -i 's/\"answer\":\"no\"/\"answer\":\"yes\"/' base");
    for form in ["table", "json", "markdown", "html", "junit"] {
        let ran = folder.run(&format!(
            "tc-eval . --checker full --format {form} --baseline base"
        ));
        assert_eq!(ran.status, 1, "{form} {}", ran.err);
        for text in [&ran.out, &ran.err] {
            assert!(!text.contains(['\u{1b}', '\u{0}']), "{form}: {text}");
            assert!(
                form == "json" || !text.contains('\u{202e}'),
                "{form}: {text}"
            );
            assert!(
                form == "json" || !text.contains("<script>") || text == &ran.err || form == "table",
                "{form}: {text}"
            );
        }
        assert_eq!(
            ran.err
                .lines()
                .filter(|line| line.contains(" was yes, is no: "))
                .count(),
            ids.len(),
            "{}",
            ran.err
        );
    }
}
