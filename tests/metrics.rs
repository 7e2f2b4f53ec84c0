//! Metrics against other programs: the numbers by Python, the text, the rules and the queries by
//! promtool; and the docs against what is rendered.

use event::Scanner;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use testkit::places::{count, is_named_tried};
use testkit::{Scratch, finish, needs, program, root};
use view::{Metrics, OpenStreams, ServiceState};

/// The logs of the fixtures.
fn logs() -> Vec<PathBuf> {
    let views = testkit::folders(&root().join("fixtures/views"));
    let views = views
        .into_iter()
        .map(|(_, folder)| folder.join("in.ndjson"));
    let logs = fs::read_dir(root().join("fixtures/logs")).expect("a folder");
    let logs = logs.map(|entry| entry.expect("an entry").path());
    logs.chain(views)
        .filter(|log| is_named_tried(&log.to_string_lossy(), 3))
        .collect()
}

#[test]
fn the_numbers_of_every_log_are_those_of_sorted_truth() {
    if !needs::programs(&["python3", "promtool"]) {
        return;
    }
    let check = Command::new("python3")
        .arg(root().join("tests/metrics/check.py"))
        .arg(program("tc-view"))
        .arg(count("3", "12"))
        .args(logs())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let ran = finish(check.expect("python3"), None);
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
}

/// The metrics that a service and a log have, with their kinds.
fn rendered() -> BTreeMap<String, String> {
    let lines = [
        r#"{"type":"tool_use","tool_id":"a","tool_name":"t","status":"running"}"#,
        r#"{"type":"tool_result","tool_id":"a","tool_name":"t","status":"success","duration_ms":1}"#,
    ];
    let mut page = Vec::new();
    for mut metrics in [Metrics::histograms(), Metrics::exact(true)] {
        let mut scanner = Scanner::default();
        for line in lines {
            let event = scanner.read(line).expect("an event");
            metrics.push(&mut OpenStreams::default(), &event, None);
        }
        metrics.render(0, Some(&ServiceState::default()), &mut page);
    }
    let page = String::from_utf8(page).expect("UTF-8");
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .map(|line| line.split_once(' ').expect("a kind"))
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect()
}

/// The names of metrics in a text, without the ends of the samples of histograms.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c));
    let words = words.map(|word| word.trim_end_matches(':'));
    let names = words.filter(|word| word.starts_with("toolpipe_"));
    names
        .map(|name| {
            let ends = ["_bucket", "_sum", "_count"];
            ends.iter()
                .find_map(|end| name.strip_suffix(end))
                .unwrap_or(name)
        })
        .collect()
}

fn file(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

#[test]
fn the_docs_have_every_metric_and_dashboard_and_rules_no_other() {
    let rendered = rendered();
    let all: BTreeSet<&str> = rendered.keys().map(String::as_str).collect();
    let page = file("docs/metrics.md");
    assert_eq!(names(&page), all, "docs/metrics.md");
    for row in page.lines().filter(|line| line.starts_with("| `toolpipe_")) {
        let kind = row.split(" | ").nth(1).unwrap_or_default();
        for name in names(row) {
            let is_right = match rendered[name].as_str() {
                "histogram" | "summary" => kind == "times",
                other => kind == other,
            };
            let is_mapping = kind.starts_with("`gen_ai.");
            assert!(is_right || is_mapping, "{name}: {kind}");
        }
    }
    for (path, least) in [
        ("docs/metrics/dashboard.json", 23),
        ("docs/metrics/alerts.yml", 4),
        ("docs/metrics/alerts.test.yml", 4),
    ] {
        let text = file(path);
        let named = names(&text);
        assert!(named.len() >= least, "{path} names {}", named.len());
        let unknown: Vec<_> = named.difference(&all).collect();
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
    // Only times have parts.
    let dashboard = file("docs/metrics/dashboard.json");
    for part in ["_bucket", "_sum", "_count"] {
        for before in dashboard.split(part).map(|text| {
            let from = text.rfind("toolpipe_").unwrap_or(text.len());
            &text[from..]
        }) {
            if let Some(kind) = rendered.get(before) {
                assert_eq!(kind, "summary", "{before}{part}");
            }
        }
    }
}

/// The queries of a dashboard.
fn queries(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let own = members.get("expr").and_then(Value::as_str);
            let below = members.values().flat_map(queries);
            own.map(str::to_owned).into_iter().chain(below).collect()
        }
        Value::Array(items) => items.iter().flat_map(queries).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn promtool_takes_the_rules_and_the_queries_and_each_alert_fires_as_its_test_says() {
    if !needs::programs(&["promtool"]) {
        return;
    }
    let promtool = |words: &[&str]| {
        let ran = Command::new("promtool").args(words).output();
        let ran = ran.expect("promtool");
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(ran.status.success(), "{words:?}\n{said}");
        said
    };
    let path = |name: &str| root().join("docs/metrics").join(name).display().to_string();
    promtool(&["check", "rules", &path("alerts.yml")]);
    promtool(&["test", "rules", &path("alerts.test.yml")]);
    // Each alert has a test in which it fires and one in which it does not.
    let tests = file("docs/metrics/alerts.test.yml");
    for alert in file("docs/metrics/alerts.yml").split("alert: ").skip(1) {
        let name = alert.lines().next().unwrap_or_default();
        let fires = format!("alertname: {name}\n");
        assert!(tests.contains(&fires), "{name} fires in no test");
    }
    let dashboard = serde_json::from_str(&file("docs/metrics/dashboard.json")).expect("JSON");
    let queries = queries(&dashboard);
    assert!(queries.len() >= 30, "{}", queries.len());
    let mut rules = String::from("groups:\n- name: queries\n  rules:\n");
    for (number, query) in queries.iter().enumerate() {
        let query = query
            .replace("$__rate_interval", "5m")
            .replace("$job", "toolpipe");
        assert!(!query.contains('$'), "{query}");
        let query = Value::from(query);
        rules += &format!("  - record: query:number{number}\n    expr: {query}\n");
    }
    let folder = Scratch::new();
    folder.write("rules.yml", &rules);
    promtool(&[
        "check",
        "rules",
        &folder.path("rules.yml").display().to_string(),
    ]);
}
