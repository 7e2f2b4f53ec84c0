//! Every number of a report is computed again from the list of answers, by `independent/check.py`
//! with scikit-learn, scipy and statsmodels. Where Python has no such libraries the test reports
//! that it is skipped (`.ci/run` installs them).

use crate::run::{Folder, root};
use std::process::Command;
use testkit::needs;

#[test]
fn other_libraries_compute_the_same_numbers() {
    let Some(python) = needs::python("numpy, scipy, sklearn, statsmodels") else {
        return;
    };
    let folder = Folder::new();
    let corpus = root().join("fixtures").canonicalize().unwrap();
    let corpus = corpus.to_str().unwrap();
    let run = |more: &[&str]| {
        let checkers = ["-c", "first-chunk", "-c", "lookahead:200", "-c", "full"];
        folder.run(&[&[corpus], &checkers[..], more].concat())
    };
    assert_eq!(
        run(&[
            "--save-baseline",
            "baseline.ndjson",
            "--output",
            "first.json"
        ])
        .status,
        Some(0)
    );
    // Some answers of the earlier run were others, in both directions.
    let changed: Vec<String> = folder
        .read("baseline.ndjson")
        .lines()
        .enumerate()
        .map(|(number, line)| match number % 9 {
            1 => line.replace(r#""answer":"no""#, r#""answer":"yes""#),
            2 => line.replace(r#""answer":"yes""#, r#""answer":"no""#),
            _ => line.to_owned(),
        })
        .collect();
    folder.write("baseline.ndjson", changed.join("\n") + "\n");
    let compared = run(&["--baseline", "baseline.ndjson", "--output", "report.json"]);
    assert_eq!(compared.status, Some(1), "{}", compared.err);
    folder.write("list.ndjson", run(&["--list"]).out);

    let check = |report: &str| {
        Command::new(&python)
            .arg(root().join("bin/tc-eval/tests/independent/check.py"))
            .args([folder.path(report), folder.path("list.ndjson")])
            .arg("--index")
            .arg(root().join("fixtures/index.ndjson"))
            .arg("--baseline")
            .arg(folder.path("baseline.ndjson"))
            .output()
            .unwrap()
    };
    let ran = check("report.json");
    let printed =
        String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{printed}");
    assert!(printed.contains(" numbers compared, 0 differ"), "{printed}");

    // One number that is wrong is found.
    let report = folder
        .read("report.json")
        .replacen(r#""fixed": "#, r#""fixed": 1"#, 1);
    folder.write("wrong.json", report);
    assert_eq!(check("wrong.json").status.code(), Some(1));
}
