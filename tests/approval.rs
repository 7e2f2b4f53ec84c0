//! What people type at `react`: approval and refusal, options, questions, Ctrl-C while tools
//! run, and two at one log.

use crate::pipeline::scratch::{ASK, QUESTION, Scratch, wait_for};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Command;
use testkit::kill;

/// The id of the call that reserves.
const ID: &str = "call_r3Vb8PsMcY";

/// The tools of the recorded conversation with changes, in the scratch folder.
fn tools(scratch: &Scratch, changes: &[(&str, &str)]) {
    let folder = testkit::root().join("fixtures/tools");
    let text = fs::read_to_string(folder.join("tools.json")).expect("the tools");
    let text = changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    fs::write(
        scratch.0.join("tools.json"),
        text.replace("\"./", &format!("\"{}/", folder.display())),
    )
    .expect("written");
}

/// How react is called with these tools.
fn ask() -> String {
    ASK.replace("fixtures/tools/tools.json", "$SCRATCH/tools.json") + " --plain"
}

/// The tool that reserves needs a person's approval.
fn danger() -> Scratch {
    let scratch = Scratch::new();
    tools(
        &scratch,
        &[("\"class\": \"write\"", "\"class\": \"danger\"")],
    );
    scratch
}

/// The command in the last line of the output, which a person is to type.
fn typed(err: &str) -> &str {
    let last = err.lines().last().unwrap_or_default();
    let at = last
        .find(" with: react ")
        .unwrap_or_else(|| panic!("no command in {err}"));
    &last[at + 7..]
}

#[test]
fn the_last_line_is_the_command_that_approves() {
    let scratch = danger();
    let (status, out, err) = scratch.run(&format!("{} {QUESTION}", ask()));
    assert!(
        status == 3 && out.contains("<- reserve waits for approval"),
        "{status} {out}"
    );
    assert_eq!(err.lines().count(), 2, "{err}");
    let refuses = typed(err.lines().next().expect("a line"));
    assert_eq!(
        refuses,
        typed(&err).replace("--approve-call", "--deny-call")
    );
    let log = scratch.read("log");
    assert!(
        log.contains("Run it with: react --log ") && log.contains(&format!("--approve-call {ID}:")),
        "{log}"
    );
    let command = typed(&err);
    assert!(
        command.starts_with("react --log ") && command.contains(&format!(" --approve-call {ID}:")),
        "{command}"
    );
    assert!(
        !command.contains("We are four"),
        "the question has been asked: {command}"
    );
    let (status, out, err) = scratch.run(command);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(
        out.contains("<- reserve done") && out.contains("sleeping bags"),
        "{out}"
    );
    assert!(scratch.read("reservations").starts_with("Lake hut"));
    let (_, shown, _) = scratch.run("tc-view $SCRATCH/log");
    assert!(
        shown.contains("<- reserve waits for approval") && shown.contains("\n<- reserve done"),
        "{shown}"
    );
}

#[test]
fn a_call_that_is_refused_is_answered_and_the_model_asked_again() {
    let scratch = danger();
    let (_, _, err) = scratch.run(&format!("{} {QUESTION}", ask()));
    let (status, out, err) = scratch.run(&typed(&err).replace("--approve-call", "--deny-call"));
    // The tape has no answer to that request.
    assert!(
        status == 2 && out.contains("<- reserve denied") && out.contains("(tape_miss)"),
        "{out}{err}"
    );
    let log = scratch.read("log");
    assert!(
        log.contains(r#""status":"denied""#) && log.contains("The user refused the call"),
        "{log}"
    );
    assert_eq!(scratch.read("reservations"), "");
}

#[test]
fn a_question_given_meanwhile_is_asked_after_the_call() {
    let scratch = danger();
    scratch.run(&format!("{} {QUESTION}", ask()));
    let before = scratch.read("log");
    // The question waits for the decision: it is in the command to type, quoted.
    let (status, _, err) = scratch.run(&format!(
        "{} --system \"it's; so\" \"-5°: what's \\$HOME?\" -- --speed max",
        ask()
    ));
    assert_eq!(status, 2, "begins with a dash: {err}");
    let (status, _, err) = scratch.run(&format!(
        "{} --system=\"it's; so\" --question \"-5 degrees: what's \\$HOME?\" -- --speed max",
        ask()
    ));
    assert!(
        status == 3 && typed(&err).ends_with(" -- --speed max"),
        "{err}"
    );
    assert!(!scratch.read("log")[before.len()..].contains("degrees"));
    let (status, out, err) = scratch.run(typed(&err));
    assert!(
        status == 2
            && out.contains("<- reserve done")
            && out.contains("> -5 degrees: what's $HOME?"),
        "{out}{err}"
    );
    let log = scratch.read("log");
    let [result, question] = [
        "\"role\":\"tool\",\"tool_call_id\":\"call_r3Vb8PsMcY\"",
        "\"role\":\"user\",\"content\":\"-5 degrees",
    ]
    .map(|text| {
        log.find(text)
            .unwrap_or_else(|| panic!("{text} is not in {log}"))
    });
    assert!(result < question);
    // Now it is in the log, and need not be given again.
    let command = typed(&err);
    assert!(
        !command.contains("degrees") && command.contains(r"--system 'it'\''s; so'"),
        "{err}"
    );
    // Nor is a question lost that `llm-stream` did not take: the tape does not exist.
    let (status, _, err) =
        scratch.run("react --log $SCRATCH/other --model demo --tape $SCRATCH/none 'Why?'");
    assert_eq!(
        (status, err.contains("go on with")),
        (2, false),
        "nothing has happened: {err}"
    );
}

#[test]
fn options_reach_their_stages() {
    let scratch = Scratch::new();
    let base = "--tools=fixtures/tools/tools.json --tape=fixtures/tapes/huts.tape -mdemo -f text";
    let (status, out, err) = scratch.run(&format!(
        "react {base} -l $SCRATCH/one -j1 --progress --timeout=20s --order completion --max-line 1M --no-time --allow '*' {QUESTION}"
    ));
    assert!(
        status == 0 && out.contains("sleeping bags") && err.is_empty(),
        "{status} {out}{err}"
    );
    assert!(scratch.read("one").contains(r#""type":"tool_progress""#));
    let (_, out, _) = scratch.run(&format!(
        "react {base} --log $SCRATCH/two --deny='find_*' {QUESTION}"
    ));
    assert!(out.contains("<- find_huts denied"), "{out}");
    // With another system prompt the request is another one, which the tape does not have.
    let (status, out, _) = scratch.run(&format!(
        "react {base} --log $SCRATCH/three -s 'Be brief.' {QUESTION}"
    ));
    assert!(status == 2 && out.contains(r#""system" here"#), "{out}");
    // Every stage refuses a line that is longer than --max-line.
    let (status, out, err) = scratch.run(&format!(
        "react {base} --log $SCRATCH/four --max-line 100 {QUESTION}"
    ));
    assert!(
        status == 2 && !out.contains("sleeping bags"),
        "{status} {out}{err}"
    );
    let (status, out, _) = scratch.run("react --version");
    assert!(
        status == 0
            && out.starts_with("react ")
            && out
                .trim_start_matches("react ")
                .starts_with(char::is_numeric)
    );
    for (wrong, says) in [
        ("--no-time=1 x", "unexpected value '1' for '--no-time'"),
        ("-t", "a value is required for '--tools <FILE>'"),
        ("--jobs", "a value is required for '--jobs <N>'"),
        ("-x", "unexpected argument '-x'"),
        ("--no-such=1", "unexpected argument '--no-such'"),
        (
            "one --question two",
            "'[QUESTION]' cannot be used with '--question",
        ),
    ] {
        let (status, out, err) = scratch.run(&format!("react {wrong}"));
        assert!(
            (status, out.as_str(), err.lines().count()) == (2, "", 1) && err.contains(says),
            "{wrong}: {err}"
        );
    }
}

#[test]
fn ask_decides_what_a_person_is_asked_and_approve_is_its_old_name() {
    for (typed, status, warns) in [
        ("--ask write", 3, false),
        ("--ask none", 0, false),
        ("--approve=write", 3, true),
        ("--approve none", 0, true),
    ] {
        let scratch = Scratch::new();
        let (ended, out, err) = scratch.run(&format!("{ASK} {typed} --plain {QUESTION}"));
        assert_eq!(ended, status, "{typed}: {out}{err}");
        let warning = "react: write --ask for --approve, which goes with the next release\n";
        assert_eq!(err.matches(warning).count(), usize::from(warns), "{err}");
        assert!(
            !err.replace(warning, "").contains("--approve ") && !err.contains("tool-exec: write"),
            "{err}"
        );
    }
}

/// The tool that finds huts writes to a pipe when it runs, and waits for a line from another.
fn waiting() -> Scratch {
    let scratch = Scratch::new();
    let folder = scratch.0.display();
    assert!(
        Command::new("mkfifo")
            .args([format!("{folder}/started"), format!("{folder}/gate")])
            .status()
            .is_ok_and(|s| s.success())
    );
    let find = "\"command\": [\"./find-huts\", \"{day}\", \"{beds}\"], \"class\": \"read\"";
    let wait = format!(
        "\"command\": [\"sh\", \"-c\", \"echo >{folder}/started; read line <{folder}/gate; ./find-huts $1 $2\", \"sh\", \"{{day}}\", \"{{beds}}\"], \
         \"cwd\": \"{}/fixtures/tools\", \"class\": \"write\"",
        testkit::root().display()
    );
    tools(
        &scratch,
        &[
            (find, &wait),
            ("\"timeout\": \"5s\"", "\"timeout\": \"10m\""),
        ],
    );
    let path = scratch.0.join("tools.json");
    let text = fs::read_to_string(&path).expect("the tools");
    let absolute = format!("{}/fixtures/tools/find-huts $1", testkit::root().display());
    fs::write(path, text.replace("./find-huts $1", &absolute)).expect("written");
    scratch
}

#[test]
fn the_second_ctrl_c_ends_tools_and_their_cards_say_so() {
    let scratch = waiting();
    let mut child = scratch
        .bash(&format!("{} {QUESTION}", ask()))
        .process_group(0)
        .spawn()
        .expect("bash runs");
    fs::read(scratch.0.join("started")).expect("the tool runs");
    let group = format!("-{}", child.id());
    let mut err = child.stderr.take().expect("a pipe");
    assert!(kill(&group, "INT"));
    // The other tool may still run; then the message names it too.
    wait_for(
        &mut err,
        "tool-exec: waiting for running calls to end (find_huts",
    );
    wait_for(&mut err, "), press Ctrl-C again to stop them now\n");
    assert!(kill(&group, "INT"));
    let [mut out, mut rest] = [String::new(), String::new()];
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut out)
        .expect("text");
    err.read_to_string(&mut rest).expect("text");
    assert_eq!(
        child.wait().expect("it ends").code(),
        Some(130),
        "{out}{rest}"
    );
    assert!(out.contains("<- find_huts cancelled"), "{out}{rest}");
    assert!(
        rest.lines().count() == 1 && typed(&rest).starts_with("react --log "),
        "{rest}"
    );
    let log = scratch.read("log");
    assert_eq!(
        log.matches(r#""role":"tool""#).count(),
        2,
        "both calls are answered: {log}"
    );
}

#[test]
fn two_do_not_work_on_one_log() {
    let scratch = waiting();
    let mut first = scratch
        .bash(&format!("exec {} {QUESTION}", ask()))
        .spawn()
        .expect("bash runs");
    fs::read(scratch.0.join("started")).expect("the tool runs");
    let second = format!(
        "ln -s log $SCRATCH/link 2>/dev/null; {}",
        ask().replace("/log ", "/link ")
    );
    let busy = |what: &str| {
        for ask in [ask(), second.clone()] {
            let (status, out, err) = scratch.run(&ask);
            let said =
                err.starts_with("react: another react works on ") && err.lines().count() == 1;
            assert!(
                status == 2 && out.is_empty() && said,
                "{what}: {status} {out}{err}"
            );
        }
    };
    busy("while it runs");
    // A loop that is killed leaves stages behind, which still write to the log.
    assert!(kill(first.id().to_string(), "KILL"));
    first.wait().expect("it ends");
    busy("while its stages run");
    fs::write(scratch.0.join("gate"), "go\n").expect("written");
    // Waits for the last stage.
    let lock = fs::File::open(scratch.0.join("log.lock")).expect("the lock");
    rustix::fs::flock(lock, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    let log = scratch.read("log");
    let runs = log
        .lines()
        .filter(|line| line.contains("\"tool_use\"") && line.contains("find_huts"))
        .count();
    assert!(
        runs == 1 && log.contains(r#""role":"tool""#) && !log.contains("sleeping bags"),
        "the stages ended their turn, and nobody began another: {log}"
    );
}
