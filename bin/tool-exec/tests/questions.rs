//! The question on the terminal, as a person sees and answers it.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::terminal::{Terminal, can_have_a_terminal};
use crate::harness::{Dir, END, START, call, message, script, tool, turn, wait_until};
use serde_json::{Value, json};

/// A tool that leaves a trace of each time it ran.
fn leaves(name: &str, class: &str) -> Value {
    let mut tool = script(name, "echo \"$1\" >>ran", json!({"class": class}));
    tool["exec"]["command"]
        .as_array_mut()
        .unwrap()
        .extend([json!("sh"), json!("{text}")]);
    tool
}

fn tools() -> [Value; 3] {
    [
        leaves("look", "read"),
        leaves("put", "write"),
        leaves("rm", "danger"),
    ]
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

#[test]
fn a_yes_runs_the_call_and_anything_else_does_not() {
    if !can_have_a_terminal() {
        return;
    }
    for (typed, status, decision) in [
        ("y\n", "success", Some("approved")),
        ("YES\n", "success", Some("approved")),
        ("\n", "denied", Some("denied")),
        ("n\n", "denied", Some("denied")),
        ("yo\n", "denied", Some("denied")),
        ("a\n", "denied", Some("denied")),
        ("\u{1b}[200~y\n\u{1b}[201~", "denied", Some("denied")),
        ("\u{4}", "pending", None),
    ] {
        let dir = Dir::new();
        let mut terminal = Terminal::new(
            &dir,
            &tools(),
            &turn(&[("a", "rm", text("x"))]),
            &["--no-time"],
            80,
        );
        terminal.prompts(1);
        terminal.type_in(typed);
        let (out, screen) = terminal.end(&dir);
        assert_eq!(out.outcome("a").0, status, "{typed:?}: {screen}");
        assert_eq!(
            out.of("approval")
                .first()
                .map(|e| e["decision"].as_str().unwrap()),
            decision,
            "{typed:?}"
        );
        assert!(out.of("approval").iter().all(|e| e["source"] == "terminal"));
        assert_eq!(
            (dir.read("ran") == "x\n", out.status),
            (status == "success", if status == "pending" { 3 } else { 0 })
        );
    }
}

#[test]
fn the_question_shows_the_tool_the_command_all_arguments_and_the_hash_33_34_35() {
    if !can_have_a_terminal() {
        return;
    }
    let hidden = "a\u{202e}b\rc\u{8}d\u{1b}[2Je\u{200b}f\u{200d}g\u{a0}h\u{9b}i\u{e0041}j\u{2800}k\u{115f}l\u{34f}m";
    let long = format!("{}end of it", "0123456789".repeat(500));
    for columns in [80, 40] {
        let dir = Dir::new();
        let arguments =
            json!({"text": hidden, "a": long, "b": "\n  | \"text\": \"harmless\"\n[y/N] "});
        let input = turn(&[("a", "rm", arguments.clone())]);
        let mut terminal = Terminal::new(&dir, &tools(), &input, &[], columns);
        terminal.prompts(1);
        let screen = terminal.screen();
        terminal.type_in("\n");
        let (out, _) = terminal.end(&dir);
        let odd = |c: char| c != '\n' && (c.is_control() || tool::is_unclear(c));
        // Our own two sequences mark pastes.
        let shown = screen.replace("\u{1b}[?2004h", "");
        assert!(!shown.contains(odd), "{shown:?}");
        let escapes = "\\u202e \\r \\u0008 \\u001b[2J \\u200b \\u200d \\u00a0 \\u009b \\udb40\\udc41 \\u2800 \\u115f \\u034f";
        for escape in escapes.split(' ') {
            assert!(
                shown.replace("\n  : ", "").contains(escape),
                "{escape} at {columns}: {shown}"
            );
        }
        let joined = shown.replace("\n  : ", "");
        assert!(
            joined.contains(&format!("  |   \"a\": \"{long}\"")),
            "{joined}"
        );
        assert!(
            joined.contains("\n  | \"sh\"\n  | \"-c\"\n")
                && joined.contains("\narguments: 5 lines, "),
            "{joined}"
        );
        assert!(joined.contains(&format!(
            "  | {}\n",
            out.of("approval")[0]["hash"].as_str().unwrap()
        )));
        // Every row is ours: it has a mark or is one of the lines that we write.
        for row in shown.lines().filter(|row| !row.is_empty()) {
            let is_ours = [
                "  | ",
                "  : ",
                "tool-exec: warning: ",
                "tool-exec: may the tool \"rm\" run?",
                "why",
                "command",
                "arguments: ",
                "call and hash",
                "Run \"rm\" once?",
            ];
            assert!(is_ours.iter().any(|mark| row.starts_with(mark)), "{row:?}");
            assert!(
                row.starts_with("tool-exec")
                    || row.starts_with("Run")
                    || row.chars().count() <= columns.into(),
                "{row:?}"
            );
        }
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    if !can_have_a_terminal() {
        return;
    }
    let dir = Dir::new();
    let input = turn(&[("a", "rm", text("x")), ("b", "rm", text("y"))]);
    let mut terminal = Terminal::new(&dir, &tools(), &input, &["--no-time"], 80);
    terminal.type_in("y\ny\ny\n");
    terminal.prompts(1);
    // A paste with an answer to the next question in it.
    terminal.type_in("\ny\ny\n");
    terminal.prompts(2);
    terminal.type_in("\u{4}");
    let (out, screen) = terminal.end(&dir);
    assert_eq!(
        (
            out.outcome("a").0,
            out.outcome("b").0,
            dir.read("ran").as_str()
        ),
        ("denied", "pending", ""),
        "{screen}"
    );
}

#[test]
fn always_counts_for_one_tool_of_class_write() {
    if !can_have_a_terminal() {
        return;
    }
    let dir = Dir::new();
    let calls = [
        ("a", "put", text("1")),
        ("b", "rm", text("2")),
        ("c", "put", text("3")),
        ("d", "look", text("4")),
    ];
    let mut terminal = Terminal::new(
        &dir,
        &tools(),
        &turn(&calls),
        &["--no-time", "--ask", "all"],
        80,
    );
    terminal.prompts(1);
    terminal.type_in("a\n");
    terminal.prompts(2);
    terminal.type_in("a\n");
    terminal.prompts(3);
    terminal.type_in("y\n");
    let (out, screen) = terminal.end(&dir);
    assert!(
        screen.contains("a: yes, always") && screen.matches("[y/N] ").count() == 3,
        "{screen}"
    );
    let statuses = ["a", "b", "c", "d"].map(|id| out.outcome(id).0);
    assert_eq!(statuses, ["success", "denied", "success", "success"]);
}

#[test]
fn the_stream_and_other_calls_go_on_while_a_question_is_open() {
    if !can_have_a_terminal() {
        return;
    }
    let dir = Dir::new();
    let calls = [
        ("a", "rm", text("x")),
        ("b", "put", text("y")),
        ("c", "slow", text("z")),
    ];
    let slow = script("slow", "sleep 1000", json!({"timeout": "100ms"}));
    let mut all = tools().to_vec();
    all.push(slow);
    let mut lines: Vec<String> = vec![START.to_owned()];
    lines.extend(
        (0..)
            .zip(&calls)
            .map(|(n, (id, name, arguments))| call(n, id, name, arguments)),
    );
    lines.extend([
        message(&calls),
        END.to_owned(),
        r#"{"type":"content_delta","stream":"other","text":"still there"}"#.to_owned(),
    ]);
    let mut terminal = Terminal::new(
        &dir,
        &all,
        &lines.join("\n"),
        &["--no-time", "--order", "completion"],
        80,
    );
    terminal.prompts(1);
    wait_until("b ran", || dir.read("ran") == "y\n");
    wait_until("the lines pass", || dir.read("out").contains("still there"));
    wait_until("the time-out holds", || {
        dir.read("out").contains("\"timeout\"")
    });
    terminal.type_in("y\n");
    let (out, _) = terminal.end(&dir);
    assert_eq!(
        (out.outcome("a").0, out.outcome("b").0, out.outcome("c").0),
        ("success", "success", "timeout")
    );
}

#[test]
fn a_question_that_output_may_have_drawn_over_is_shown_again() {
    if !can_have_a_terminal() {
        return;
    }
    let dir = Dir::new();
    let gate = dir.path("gate");
    std::process::Command::new("mkfifo")
        .arg(&gate)
        .status()
        .unwrap();
    let waits = script(
        "waits",
        &format!("read line <'{}'", gate.display()),
        json!({}),
    );
    let mut all = tools().to_vec();
    all.push(waits);
    let input = turn(&[("b", "waits", json!({})), ("a", "rm", text("x"))]);
    let mut terminal = Terminal::piped(&dir, &all, &input, &["--no-time"], 80);
    terminal.prompts(1);
    std::fs::write(&gate, "go\n").unwrap();
    terminal.prompts(2);
    let screen = terminal.screen();
    assert_eq!(
        screen.matches("may the tool \"rm\" run?").count(),
        2,
        "{screen}"
    );
    terminal.type_in("y\n");
    let (out, _) = terminal.end(&dir);
    assert_eq!(
        (out.outcome("a").0, out.of("approval").len()),
        ("success", 1)
    );
}

#[test]
fn an_interrupt_at_the_question_leaves_the_call_pending() {
    if !can_have_a_terminal() {
        return;
    }
    let dir = Dir::new();
    let mut terminal = Terminal::new(
        &dir,
        &tools(),
        &turn(&[("a", "rm", text("x")), ("b", "rm", text("y"))]),
        &["--no-time"],
        80,
    );
    terminal.prompts(1);
    terminal.type_in("\u{3}"); // the terminal sends SIGINT
    let (out, screen) = terminal.end(&dir);
    assert_eq!(
        (out.status, out.outcome("a").0, out.outcome("b").0),
        (130, "pending", "pending"),
        "{screen}"
    );
    assert!(
        screen.ends_with("\u{1b}[?2004l") && dir.read("ran").is_empty(),
        "{screen:?}"
    );
}

#[test]
fn a_terminal_without_a_sandbox_is_warned_about_once() {
    if !can_have_a_terminal() {
        return;
    }
    let dir = Dir::new();
    let mut terminal = Terminal::new(
        &dir,
        &tools(),
        &turn(&[("a", "rm", text("x")), ("b", "rm", text("y"))]),
        &[],
        80,
    );
    terminal.prompts(1);
    terminal.type_in("n\n");
    terminal.prompts(2);
    terminal.type_in("n\n");
    let (_, screen) = terminal.end(&dir);
    assert_eq!(
        screen.matches("could type into this terminal").count(),
        1,
        "{screen}"
    );
    let dir = Dir::new();
    let quiet = Terminal::new(
        &dir,
        &[tool("put", &["true"], json!({}))],
        &turn(&[("a", "put", json!({}))]),
        &[],
        80,
    );
    assert_eq!(quiet.end(&dir).0.errors, "", "nothing was asked");
}
