//! `kill -9` at any point of a turn: the log holds whole lines, no call that writes runs twice, and
//! every call has one result or waits for a person.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{self, Dir, Live, Out, events, kill, run_in, script, turn};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Command, Stdio};
use testkit::Random;
use testkit::places::is_tried;

/// The calls of the turn: one of each tool.
const IDS: [&str; 5] = ["read", "write", "danger", "slow", "fail"];

/// Each tool appends a line to a file of its own when it begins.
fn tools() -> Vec<Value> {
    let tool = |name: &str, rest: &str, class: &str| {
        script(
            name,
            &format!("echo x >>ran-{name}; {rest}"),
            json!({"class": class, "timeout": "20s"}),
        )
    };
    vec![
        tool("read", "echo r", "read"),
        tool("write", "echo w", "write"),
        tool("danger", "echo d", "danger"),
        tool("slow", "sleep 0.05; echo s", "write"),
        tool("fail", "echo f >&2; exit 3", "write"),
    ]
}

fn input() -> String {
    turn(&IDS.map(|id| (id, id, json!({}))))
}

/// How a run names the file `log`, from which it continues and to which all of its output goes.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// As the log; standard output is a pipe.
    Log,
    /// As what it resumes from and as its journal; standard output is appended to it, too.
    Stdout,
}

impl Way {
    fn command(self, dir: &Dir, args: &[&str]) -> Command {
        let names: &[&str] = match self {
            Way::Log => &["--log", "log"],
            Way::Stdout => &["--resume", "log", "--journal", "./log"],
        };
        let mut command = harness::command(dir, &tools(), &[names, args].concat());
        if let Way::Stdout = self {
            command.stdout(
                OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(dir.path("log"))
                    .unwrap(),
            );
        }
        command
    }

    /// A run over `input` to its end. Its events are what it has added to the log.
    fn run(self, dir: &Dir, input: &str, args: &[&str]) -> Out {
        let before = whole(&dir.read("log")).len();
        let mut command = self.command(dir, args);
        command.stdin(File::open(dir.write("in", input)).unwrap());
        let mut out = harness::run_command_without_input(command);
        if let Way::Stdout = self {
            out.events = events(&dir.read("log")).split_off(before);
        }
        out
    }
}

fn ran(dir: &Dir, id: &str) -> usize {
    dir.read(&format!("ran-{id}")).lines().count()
}

/// The log up to its last whole line as events. Every line of it is JSON.
fn whole(log: &str) -> Vec<Value> {
    events(&log[..log.rfind('\n').map_or(0, |at| at + 1)])
}

/// The approval of the danger call, as a person types it.
fn approval() -> String {
    let dir = Dir::new();
    let out = run_in(
        &dir,
        &tools(),
        &input(),
        &["--log", "log", "--allow", "danger"],
    );
    assert_eq!(out.outcome("danger").0, "pending", "{}", out.errors);
    let pending = run_in(&dir, &tools(), "", &["--resume", "log", "--list-pending"]).text;
    pending
        .lines()
        .find(|line| line.starts_with("danger:"))
        .unwrap()
        .to_owned()
}

/// Checks what a run left that was stopped, continues it, and checks that nothing is lost and
/// nothing that writes has run twice.
fn check(dir: &Dir, way: Way, approval: &str, what: &str) {
    let before = dir.read("log");
    let left = whole(&before);
    for id in IDS {
        let is_started = left
            .iter()
            .any(|e| e["type"] == "tool_use" && e["tool_id"] == id);
        assert!(
            is_started || ran(dir, id) == 0,
            "{what}: {id} ran, and its start is not in the log:\n{before}"
        );
    }
    let committed = left.iter().any(|e| e["message"]["role"] == "assistant");
    // The turn is tried again from its input where the log lacks the message.
    let again = if committed { String::new() } else { input() };
    let out = way.run(dir, &again, &["--approve-call", approval]);
    let log = dir.read("log");
    assert!(
        log.ends_with('\n') && (out.status == 0 || out.status == 1 || out.status == 3),
        "{what}: {} {}",
        out.status,
        out.errors
    );
    let all = events(&log); // every line is whole
    let mut is_waiting = false;
    for id in IDS {
        let times = ran(dir, id);
        assert!(
            times <= 1 || id == "read",
            "{what}: {id} ran {times} times\n{log}"
        );
        let results: Vec<&str> = all
            .iter()
            .filter(|e| e["type"] == "tool_result" && e["tool_id"] == id && e["resumed"] != true)
            .map(|e| e["status"].as_str().unwrap())
            .filter(|status| *status != "pending")
            .collect();
        let sent = all
            .iter()
            .filter(|e| e["message"]["tool_call_id"] == id)
            .count();
        let waits = out
            .of("tool_result")
            .iter()
            .any(|e| e["tool_id"] == id && e["status"] == "pending");
        is_waiting |= waits;
        assert_eq!(
            results.len(),
            usize::from(!waits),
            "{what}: {id} has one result or waits\n{log}"
        );
        assert!(
            sent <= 1 && !(waits && sent > 0),
            "{what}: {id} has {sent} messages\n{log}"
        );
        assert!(
            waits || is_waiting || sent == 1,
            "{what}: {id} has no message\n{log}"
        );
        assert!(
            !waits || id != "read",
            "{what}: a call that only reads waits for nobody"
        );
    }
    assert_eq!(is_waiting, out.status == 3, "{what}: {}", out.errors);
    // Nobody says anything: nothing more happens.
    let still = way.run(dir, "", &[]);
    assert_eq!(
        (still.status, still.of("tool_use").len()),
        (if is_waiting { 3 } else { 1 }, 0),
        "{what}: {}",
        still.text
    );
}

/// Kills runs at random points: after so many bytes of the output and then, so that the points
/// between two lines are reached too, after so many turns of a loop that does nothing.
fn kill_at_random(way: Way, seeds: std::ops::Range<u64>) {
    let approval = approval();
    let length = {
        let dir = Dir::new();
        run_in(
            &dir,
            &tools(),
            &input(),
            &["--log", "log", "--approve-call", &approval],
        )
        .text
        .len()
    };
    for seed in seeds.filter(|seed| is_tried(*seed as usize, 4)) {
        let mut random = Random::new(seed);
        let dir = Dir::new();
        let args = [
            "--approve-call",
            &approval,
            "--jobs",
            if seed % 2 == 0 { "1" } else { "5" },
        ];
        dir.write("in", input());
        let mut child = way
            .command(&dir, &args)
            .stdin(File::open(dir.path("in")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let bytes = random.below(length) as u64;
        let spins = random.below(2000);
        let mut out = child.stdout.take();
        let is_read = match &mut out {
            Some(out) => out
                .read_exact(&mut vec![0; usize::try_from(bytes).unwrap()])
                .is_ok(),
            None => {
                let length = || dir.path("log").metadata().unwrap().len();
                while length() < bytes && child.try_wait().unwrap().is_none() {
                    std::thread::yield_now();
                }
                length() >= bytes
            }
        };
        (0..spins).for_each(|_| std::thread::yield_now());
        kill(child.id(), "KILL");
        child.wait().unwrap();
        drop(out);
        let what = format!(
            "{way:?}, seed {seed}, killed after {bytes} bytes and {spins} turns ({is_read})"
        );
        check(&dir, way, &approval, &what);
    }
}

#[test]
fn a_run_that_is_killed_at_a_random_point_goes_on_1() {
    kill_at_random(Way::Log, 0..50);
}

#[test]
fn a_run_that_is_killed_at_a_random_point_goes_on_2() {
    kill_at_random(Way::Log, 50..100);
}

#[test]
fn a_run_that_is_killed_at_a_random_point_goes_on_3() {
    kill_at_random(Way::Log, 100..150);
}

#[test]
fn a_run_that_is_killed_at_a_random_point_goes_on_4() {
    kill_at_random(Way::Log, 150..200);
}

#[test]
fn a_run_that_appends_to_what_it_resumes_from_and_is_killed_goes_on() {
    kill_at_random(Way::Stdout, 200..250);
}

#[test]
fn a_run_whose_disk_is_full_at_any_line_goes_on() {
    full_disk(Way::Log, 251);
}

#[test]
fn a_run_that_appends_to_what_it_resumes_from_and_whose_disk_is_full_goes_on() {
    full_disk(Way::Stdout, 751);
}

fn full_disk(way: Way, step: usize) {
    let approval = approval();
    let length = {
        let dir = Dir::new();
        run_in(
            &dir,
            &tools(),
            &input(),
            &["--log", "log", "--approve-call", &approval],
        );
        dir.read("log").len()
    };
    for room in (0..length).step_by(step) {
        let dir = Dir::new();
        let empty = json!({"type": "content_delta", "text": ""})
            .to_string()
            .len()
            + 1;
        let filled = json!({"type": "content_delta", "text": "x".repeat(64 * 1024 - room - empty)})
            .to_string()
            + "\n";
        dir.write("log", &filled);
        let file = dir.write("tools.json", json!(tools()).to_string());
        let names = match way {
            Way::Log => "--log log",
            Way::Stdout => "--resume log --journal log >>log",
        };
        let script = format!(
            "trap '' XFSZ; ulimit -f 64; exec '{}' --tools '{}' --approve-call {approval} {names}",
            env!("CARGO_BIN_EXE_tool-exec"),
            file.display()
        );
        let mut small = Command::new("bash");
        small.args(["-c", &script]).current_dir(dir.path("."));
        small
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let out = harness::run_command(small, &input());
        assert!(
            dir.read("log").ends_with('\n') && out.status == 2,
            "{room}: {} {}",
            out.status,
            out.errors
        );
        // Where standard output is the full file itself, nobody can read the results.
        for id in IDS.iter().filter(|_| matches!(way, Way::Log)) {
            let (status, text) = out.outcome(id);
            assert_eq!(
                text.contains("was not run"),
                ran(&dir, id) == 0,
                "{room}: {id} {status} {text}"
            );
        }
        check(
            &dir,
            way,
            &approval,
            &format!("{way:?}, {room} bytes of room"),
        );
    }
}

#[test]
fn of_two_runs_that_resume_one_log_at_once_one_does_the_work() {
    let approval = approval();
    for n in 0..10 {
        let way = if n % 2 == 0 { Way::Log } else { Way::Stdout };
        let dir = Dir::new();
        dir.write("log", input());
        let start = || {
            let mut command = way.command(&dir, &["--approve-call", &approval]);
            command.stdin(Stdio::null()).spawn().unwrap()
        };
        let one = start();
        let two = start();
        let statuses =
            [one, two].map(|child| child.wait_with_output().unwrap().status.code().unwrap());
        // The second one is refused while the first one works, and finds nothing to do after it.
        assert!(
            matches!(statuses, [0, 1 | 2] | [1 | 2, 0]),
            "{n}: {statuses:?}"
        );
        check(&dir, way, &approval, &format!("two runs, {way:?}, {n}"));
        assert!(IDS.iter().all(|id| ran(&dir, id) == 1), "{n}");
    }
}

#[test]
fn a_run_that_is_killed_leaves_a_log_that_is_free_at_once() {
    let dir = Dir::new();
    let wait = script(
        "wait",
        "echo x >>ran-wait; until [ -e go ]; do sleep 0.01; done",
        json!({"class": "write"}),
    );
    let mut live = Live::new(&dir, std::slice::from_ref(&wait), &["--log", "log"]);
    turn(&[("a", "wait", json!({}))])
        .lines()
        .for_each(|line| live.send(line));
    live.until("tool_use");
    harness::wait_until("the call runs", || ran(&dir, "wait") == 1);
    live.signal("KILL");
    assert_eq!(live.end().0, -9);
    // What the call started may still be ended; the call is not run again.
    let out = run_in(&dir, &[wait], "", &["--log", "log"]);
    assert_eq!(
        (out.status, out.outcome("a").0, ran(&dir, "wait")),
        (3, "pending", 1),
        "{}",
        out.errors
    );
}
