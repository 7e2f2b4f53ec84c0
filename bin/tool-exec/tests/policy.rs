//! Policies: every example of docs/policy.md, what counts over a conversation, and the loop guard.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, END, Live, START, call, message, run_in, script, tool, turn};
use serde_json::{Value, json};
use std::path::Path;

/// The blocks of the page with that language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(fence.as_str())
        .skip(1)
        .map(|rest| rest.split("\n```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_example_of_the_page_holds() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md");
    let page = std::fs::read_to_string(page).unwrap();
    let tools: Vec<Value> = serde_json::from_str(&blocks(&page, "json")[0]).unwrap();
    let policies = blocks(&page, "toml");
    let tables = blocks(&page, "text");
    assert!(policies.len() == tables.len() && policies.len() >= 5);
    for (policy, table) in policies.iter().zip(&tables) {
        let dir = Dir::new();
        dir.write("policy.toml", policy);
        let mut live = Live::new(&dir, &tools, &["--policy", "policy.toml"]);
        for (n, line) in table.lines().enumerate() {
            let (name, rest) = line.split_once(' ').unwrap();
            let (arguments, status) = rest.rsplit_once(' ').unwrap();
            let arguments: Value = serde_json::from_str(arguments.trim()).unwrap();
            live.send(&message(&[(&format!("c{n}"), name, arguments)]));
            let result = live.until("tool_result");
            assert_eq!(
                result["status"], status,
                "{line}\nunder\n{policy}\n{result}"
            );
        }
    }
}

/// A tool that leaves a trace of each time it ran.
fn put(class: &str) -> Value {
    let mut put = script("put", "echo \"$1\" >>ran", json!({"class": class}));
    put["exec"]["command"]
        .as_array_mut()
        .unwrap()
        .extend([json!("sh"), json!("{text}")]);
    put
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

fn asked(id: &str, arguments: &str) -> String {
    turn(&[(id, "put", text(arguments))])
}

#[test]
fn a_mistake_in_a_policy_is_one_line_and_nothing_runs() {
    let dir = Dir::new();
    for (policy, says) in [
        (
            "aprove = \"all\"",
            "policy.toml: line 1: unknown field `aprove`",
        ),
        (
            "[[rule]]\ntool = \"put\"\nwhen.txt = { regex = \"x\" }\nthen = \"deny\"",
            "policy.toml: line 1: no tool that the rule matches has an argument \"txt\"",
        ),
    ] {
        dir.write("policy.toml", policy);
        let out = run_in(
            &dir,
            &[put("write")],
            &asked("a", "x"),
            &["--policy", "policy.toml"],
        );
        assert_eq!(
            (out.status, out.text.as_str(), out.errors.lines().count()),
            (2, "", 1),
            "{}",
            out.errors
        );
        assert!(out.errors.contains(says), "{}", out.errors);
    }
    let out = run_in(
        &dir,
        &[put("write")],
        &asked("a", "x"),
        &["--policy", "none.toml"],
    );
    assert!(
        out.status == 2 && out.errors.contains("none.toml"),
        "{}",
        out.errors
    );
    assert_eq!(dir.read("ran"), "");
}

#[test]
fn a_policy_that_others_could_have_written_is_refused_83() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    let policy = dir.write("policy.toml", "approve = \"none\"");
    std::fs::set_permissions(&policy, PermissionsExt::from_mode(0o666)).unwrap();
    let out = run_in(
        &dir,
        &[put("write")],
        &asked("a", "x"),
        &["--policy", "policy.toml"],
    );
    assert_eq!(
        (out.status, out.text.as_str(), out.errors.lines().count()),
        (2, "", 1),
        "{}",
        out.errors
    );
    assert!(out.errors.contains("--trust"), "{}", out.errors);
    let out = run_in(
        &dir,
        &[put("write")],
        &asked("a", "x"),
        &["--policy", "policy.toml", "--trust"],
    );
    assert_eq!(out.outcome("a").0, "success");
}

#[test]
fn a_policy_narrows_what_was_typed_and_never_widens_it() {
    for (policy, args, status) in [
        ("approve = \"all\"", &["--ask", "none"][..], "pending"),
        ("approve = \"none\"", &["--ask", "write"], "pending"),
        ("approve = \"write\"", &[], "pending"),
        ("approve = \"none\"", &["--deny", "put"], "denied"),
        ("allow = [\"put\"]", &["--allow", "other"], "denied"),
        ("allow = [\"other\"]", &["--allow", "put"], "denied"),
        ("deny = [\"put\"]", &["--allow", "put"], "denied"),
        ("max_calls = 0", &[], "denied"),
        (
            "approve = \"write\"\nmax_questions = 0",
            &["--max-questions", "9"],
            "denied",
        ),
        (
            "rule = [{ tool = \"put\", then = \"allow\" }]",
            &["--ask", "all"],
            "success",
        ),
        (
            "rule = [{ tool = \"put\", then = \"allow\" }]",
            &["--deny", "put"],
            "denied",
        ),
        (
            "rule = [{ tool = \"put\", then = \"ask\" }]",
            &["--ask", "none"],
            "pending",
        ),
    ] {
        let dir = Dir::new();
        dir.write("policy.toml", policy);
        let args: Vec<&str> = [&["--policy", "policy.toml"], args].concat();
        let out = run_in(&dir, &[put("write")], &asked("a", "x"), &args);
        assert_eq!(
            out.outcome("a").0,
            status,
            "{policy} {args:?}: {}",
            out.text
        );
    }
}

#[test]
fn a_rule_that_decides_leaves_an_event_and_an_approval_does_not_lift_a_denial() {
    let dir = Dir::new();
    dir.write(
        "policy.toml",
        "rule = [{ tool = \"*\", then = \"allow\", when.text = { regex = \"[xy]\" } }]",
    );
    let allowed = run_in(
        &dir,
        &[put("danger")],
        &asked("a", "x"),
        &["--policy", "policy.toml"],
    );
    let events = allowed.of("approval");
    assert_eq!(
        (events.len(), &events[0]["source"], &events[0]["decision"]),
        (1, &json!("policy"), &json!("approved"))
    );
    let waits = run_in(
        &dir,
        &[put("danger")],
        &asked("a", "z"),
        &["--policy", "policy.toml", "--no-time"],
    );
    dir.write("log", &waits.text);
    let yes = waits.reference("a");
    dir.write(
        "policy.toml",
        "rule = [{ tool = \"*\", then = \"deny\", reason = \"no more of it\" }]",
    );
    let args = [
        "--policy",
        "policy.toml",
        "--resume",
        "log",
        "--approve-call",
        &yes,
    ];
    let out = run_in(&dir, &[put("danger")], "", &args);
    assert!(
        out.outcome("a").0 == "denied" && out.outcome("a").1.contains("no more of it"),
        "{}",
        out.text
    );
    assert_eq!(
        (
            &out.of("approval")[0]["source"],
            &out.of("approval")[0]["decision"]
        ),
        (&json!("policy"), &json!("denied"))
    );
    assert_eq!(dir.read("ran"), "x\n");
}

#[test]
fn limits_count_over_the_whole_log() {
    let dir = Dir::new();
    dir.write("policy.toml", "[limits]\ncalls = 3");
    for (n, status) in ["success", "success", "success", "denied"]
        .into_iter()
        .enumerate()
    {
        let id = format!("c{n}");
        let args = ["--policy", "policy.toml", "--log", "log"];
        let out = run_in(&dir, &[put("write")], &asked(&id, &id), &args);
        assert_eq!(out.outcome(&id).0, status, "{}", out.text);
    }
    assert_eq!(dir.read("ran").lines().count(), 3);
    // Tokens, by the events of earlier turns.
    dir.write("policy.toml", "[limits]\ntokens = 100");
    for (tokens, status) in [(99, "success"), (100, "denied")] {
        dir.write(
            "log",
            format!("{{\"type\":\"session_stats\",\"total_tokens\":{tokens}}}\n"),
        );
        let out = run_in(
            &dir,
            &[put("write")],
            &asked("t", "t"),
            &["--policy", "policy.toml", "--resume", "log"],
        );
        assert_eq!(out.outcome("t").0, status);
    }
    // The time since the first call, and a start in the log's future, as after a clock was set
    // back.
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    for (policy, at, status) in [
        ("[limits]\ntime = \"1h\"", now - 3_500_000, "success"),
        ("[limits]\ntime = \"1h\"", now - 3_700_000, "denied"),
        (
            "rule = [{ tool = \"put\", rate = \"1/1h\" }]",
            now - 3_700_000,
            "success",
        ),
        (
            "rule = [{ tool = \"put\", rate = \"1/1h\" }]",
            now - 3_500_000,
            "denied",
        ),
        (
            "rule = [{ tool = \"put\", rate = \"1/1h\" }]",
            now + 9_000_000,
            "denied",
        ),
    ] {
        dir.write("policy.toml", policy);
        dir.write(
            "log",
            format!("{{\"type\":\"tool_use\",\"tool_id\":\"old\",\"tool_name\":\"put\",\"timestamp\":{at}}}\n"),
        );
        let out = run_in(
            &dir,
            &[put("write")],
            &asked("r", "r"),
            &["--policy", "policy.toml", "--resume", "log"],
        );
        assert_eq!(out.outcome("r").0, status, "{policy}: {}", out.text);
    }
}

#[test]
fn a_limit_holds_within_one_turn_and_before_the_message() {
    for class in ["read", "write"] {
        let dir = Dir::new();
        dir.write("policy.toml", "rule = [{ tool = \"put\", limit = 2 }]");
        let ids = ["a", "b", "c", "d"];
        let calls: Vec<_> = ids.iter().map(|id| (*id, "put", text(id))).collect();
        let out = run_in(
            &dir,
            &[put(class)],
            &turn(&calls),
            &["--policy", "policy.toml", "--jobs", "4"],
        );
        assert_eq!(
            ids.map(|id| out.outcome(id).0),
            ["success", "success", "denied", "denied"],
            "{class}"
        );
        assert_eq!(dir.read("ran").lines().count(), 2);
    }
}

#[test]
fn the_same_call_with_the_same_result_is_not_run_for_ever() {
    let dir = Dir::new();
    let same = tool("same", &["echo", "same"], json!({"class": "read"}));
    let other = script(
        "other",
        "echo x >>count; wc -l <count",
        json!({"class": "read"}),
    );
    let mut statuses = Vec::new();
    for n in 0..5 {
        let a = format!("a{n}");
        let b = format!("b{n}");
        let lines = [
            START.to_owned(),
            call(0, &a, "same", &json!({"a": "1", "b": "2"})),
            call(1, &b, "other", &json!({})),
            message(&[
                (&a, "same", json!({"b": "2", "a": "1"})),
                (&b, "other", json!({})),
            ]),
            END.to_owned(),
        ];
        let out = run_in(
            &dir,
            &[same.clone(), other.clone()],
            &lines.join("\n"),
            &["--log", "log"],
        );
        statuses.push((out.outcome(&a).0.to_owned(), out.outcome(&b).0.to_owned()));
        if n == 3 {
            assert!(
                out.outcome(&a)
                    .1
                    .contains("change the arguments, try another way"),
                "{}",
                out.text
            );
        }
    }
    let [same_, other_]: [Vec<&str>; 2] = [
        statuses.iter().map(|s| s.0.as_str()).collect(),
        statuses.iter().map(|s| s.1.as_str()).collect(),
    ];
    assert_eq!(same_, ["success", "success", "success", "denied", "denied"]);
    assert_eq!(other_, ["success"; 5], "its result changes");
    // A user's message begins another task.
    let again = dir.read("log") + "{\"role\":\"user\",\"content\":\"again\"}\n";
    dir.write("log", again);
    let next = turn(&[("z", "same", json!({"a": "1", "b": "2"}))]);
    assert_eq!(
        run_in(&dir, std::slice::from_ref(&same), &next, &["--log", "log"])
            .outcome("z")
            .0,
        "success"
    );
    // The calls of one turn do not repeat each other.
    let ids: Vec<String> = (0..6).map(|n| format!("p{n}")).collect();
    let calls: Vec<_> = ids
        .iter()
        .map(|id| (id.as_str(), "same", json!({})))
        .collect();
    let out = run_in(&dir, std::slice::from_ref(&same), &turn(&calls), &[]);
    assert!(ids.iter().all(|id| out.outcome(id).0 == "success"));
    // 0 turns the guard off.
    let input: String = ids
        .iter()
        .map(|id| message(&[(id, "same", json!({}))]) + "\n")
        .collect();
    let out = run_in(&dir, &[same], &input, &["--max-repeats", "0"]);
    assert!(
        ids.iter().all(|id| out.outcome(id).0 == "success"),
        "{}",
        out.text
    );
}

/// A tool whose argument `v` may be anything, which leaves a trace of each time it ran.
fn any() -> Value {
    let exec = json!({"command": ["sh", "-c", "echo x >>ran"], "class": "write"});
    let properties = json!({"v": {}, "n": {"type": "number"}, "o": {"type": ["string", "null"]}});
    json!({"name": "any", "parameters": {"type": "object", "properties": properties}, "exec": exec})
}

#[test]
fn names_of_members_and_other_spellings_of_a_number_pass_no_denial() {
    let policy = "[[rule]]\ntool = \"*\"\nwhen.v = { path = \"/etc/**\" }\nthen = \"deny\"\n\
                  [[rule]]\ntool = \"*\"\nwhen.n = { regex = \"1000|0|9007199254740992\" }\nthen = \"deny\"\n\
                  [[rule]]\ntool = \"*\"\nwhen.n = { regex = \"7\" }\nthen = \"allow\"\n";
    for (arguments, status) in [
        (
            json!({"v": {"files": {"/etc/cron.d/x": "* * * * * root id"}}}),
            "denied",
        ),
        (json!({"v": [{"/srv/../etc/passwd": null}]}), "denied"),
        (json!({"v": {"files": {"/srv/x": "y"}}}), "pending"),
        (serde_json::from_str(r#"{"n":1000}"#).unwrap(), "denied"),
        (serde_json::from_str(r#"{"n":1000.0}"#).unwrap(), "denied"),
        (serde_json::from_str(r#"{"n":1e3}"#).unwrap(), "denied"),
        (serde_json::from_str(r#"{"n":-0}"#).unwrap(), "denied"),
        (
            serde_json::from_str(r#"{"n":9007199254740993}"#).unwrap(),
            "denied",
        ),
        (serde_json::from_str(r#"{"n":1001}"#).unwrap(), "pending"),
        (serde_json::from_str(r#"{"n":7}"#).unwrap(), "success"),
        (serde_json::from_str(r#"{"n":7.0}"#).unwrap(), "pending"),
    ] {
        let dir = Dir::new();
        dir.write("policy.toml", format!("approve = \"write\"\n{policy}"));
        let out = run_in(
            &dir,
            &[any()],
            &turn(&[("a", "any", arguments)]),
            &["--policy", "policy.toml"],
        );
        assert_eq!(out.outcome("a").0, status, "{}", out.text);
        assert_eq!(dir.read("ran").is_empty(), status != "success");
    }
}

#[test]
fn other_spellings_and_null_do_not_pass_the_loop_guard() {
    let dir = Dir::new();
    dir.write("policy.toml", "max_repeats = 2");
    let mut live = Live::new(&dir, &[any()], &["--policy", "policy.toml"]);
    let spellings = [
        r#"{"n":1}"#,
        r#"{"n":1.0}"#,
        r#"{"n":1e0,"o":null}"#,
        r#"{"o":null,"n":0.1e1}"#,
        r#"{"n":2}"#,
    ];
    let statuses = spellings.iter().enumerate().map(|(n, arguments)| {
        live.send(&message(&[(
            &format!("c{n}"),
            "any",
            serde_json::from_str(arguments).unwrap(),
        )]));
        live.until("tool_result")["status"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    assert_eq!(
        statuses.collect::<Vec<_>>(),
        ["success", "success", "denied", "denied", "success"]
    );
}

#[test]
fn rules_of_paths_are_about_the_folder_in_which_a_command_really_runs() {
    let dir = Dir::new();
    let root = dir.path(".").canonicalize().unwrap();
    for name in ["work", "etc"] {
        std::fs::create_dir(dir.path(name)).unwrap();
    }
    std::os::unix::fs::symlink("../etc", dir.path("work/here")).unwrap();
    let look = script("look", "pwd -P", json!({"cwd": "work/here"}));
    let deny = format!(
        "[[rule]]\ntool = \"*\"\nwhen.text = {{ path = \"{}/etc/**\" }}\nthen = \"deny\"\n",
        root.display()
    );
    let allow = format!(
        "[[rule]]\ntool = \"*\"\nwhen.text = {{ path = \"{}/work/**\" }}\nthen = \"allow\"\n",
        root.display()
    );
    let right = allow.replace("/work/", "/etc/");
    for (rule, status) in [(&deny, "denied"), (&allow, "pending"), (&right, "success")] {
        dir.write("policy.toml", format!("approve = \"write\"\n{rule}"));
        let out = run_in(
            &dir,
            std::slice::from_ref(&look),
            &turn(&[("a", "look", text("passwd"))]),
            &["--policy", "policy.toml"],
        );
        assert_eq!(out.outcome("a").0, status, "{rule}: {}", out.text);
    }
    // A command that changes the link, or puts one in the place of the folder, moves no later one.
    dir.write(
        "policy.toml",
        format!("approve = \"write\"\n{right}[[rule]]\ntool = \"sh_*\"\nthen = \"allow\"\n"),
    );
    let relink = script("sh_relink", "ln -sfn ../work work/here", json!({}));
    let replace = script("sh_replace", "mv etc old && ln -s work etc", json!({}));
    let calls = [
        ("a", "sh_relink", json!({})),
        ("b", "look", text("x")),
        ("c", "sh_replace", json!({})),
        ("d", "look", text("x")),
    ];
    let out = run_in(
        &dir,
        &[look, relink, replace],
        &turn(&calls),
        &["--policy", "policy.toml", "--jobs", "1"],
    );
    assert_eq!(
        out.outcome("b"),
        ("success", format!("{}/etc\n", root.display()).as_str()),
        "{}",
        out.text
    );
    let (status, said) = out.outcome("d");
    assert!(
        status == "error"
            && said.contains("could not be started")
            && said.contains("has become a link"),
        "{said}"
    );
}

#[test]
fn a_clock_that_is_set_back_and_a_total_of_0_open_no_limit() {
    let later = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis()
        + 3_600_000;
    let used = json!({"type": "tool_use", "tool_id": "z", "tool_name": "put", "status": "running", "timestamp": later - 100});
    let result = json!({"type": "tool_result", "tool_id": "z", "tool_name": "put", "status": "success", "output": "", "timestamp": later});
    let stats = |total: Value| json!({"type": "session_stats", "prompt_tokens": 90, "completion_tokens": 20, "total_tokens": total});
    let parts =
        json!({"type": "session_stats", "prompt_tokens": u64::MAX, "completion_tokens": 20});
    for (limit, log, says) in [
        (
            "time = \"10h\"",
            format!("{used}\n{result}\n"),
            "the clock was set back",
        ),
        (
            "tokens = 100",
            format!("{}\n", stats(json!(0))),
            "has used 110",
        ),
        (
            "tokens = 100",
            format!("{}\n", stats(json!(null))),
            "has used 110",
        ),
        (
            "tokens = 100",
            format!("{}\n", stats(json!(500))),
            "has used 500",
        ),
        (
            "tokens = 100",
            format!("{parts}\n"),
            "has used 18446744073709551615",
        ),
    ] {
        let dir = Dir::new();
        dir.write("policy.toml", format!("[limits]\n{limit}"));
        dir.write("log", log);
        let out = run_in(
            &dir,
            &[put("write")],
            &asked("a", "x"),
            &["--policy", "policy.toml", "--resume", "log"],
        );
        let (status, said) = out.outcome("a");
        assert!(
            status == "denied" && said.contains(says) && dir.read("ran").is_empty(),
            "{limit}: {status} {said}"
        );
    }
}
