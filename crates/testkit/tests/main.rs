//! How a test binary starts, and that it ends. Each test runs its own binary again as somebody else
//! would start it.

use std::process::{Command, Stdio};
use toolpipe_testkit::start::LIFETIME_VARIABLE;

/// The variable that makes a test the one that runs in the other process.
const INSIDE: &str = "TESTKIT_INSIDE";

/// This test alone, in a process of its own that `script` starts by `"$@"`.
fn again(script: &str, test: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .arg(std::env::current_exe().expect("a path"))
        .args(["--exact", "--nocapture", test])
        .env(INSIDE, "yes");
    shell
}

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

#[test]
fn children_have_default_signals_an_empty_input_and_a_umask_of_ours() {
    if is_inside() {
        let script = "grep SigIgn /proc/self/status; umask; cat 2>&1; echo end";
        let status = Command::new("sh").args(["-c", script]).status();
        assert!(status.expect("sh runs").success());
        return;
    }
    let script = r#"trap '' HUP INT QUIT TERM; umask 077; exec "$@""#;
    let test = "children_have_default_signals_an_empty_input_and_a_umask_of_ours";
    for closed in ["", " <&-"] {
        let mut shell = again(&format!("{script}{closed}"), test);
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        // Somebody's keyboard: open, and nobody types.
        let keyboard = child.stdin.take();
        let ran = toolpipe_testkit::finish(child, None);
        drop(keyboard);
        assert_eq!(ran.status, 0, "{ran:?}");
        let (_, printed) = ran.stdout.split_once("SigIgn:\t").expect("a mask");
        let (mask, rest) = printed.split_once('\n').expect("a line");
        let mask = u64::from_str_radix(mask, 16).expect("a number");
        assert_eq!(mask & 0x7fff_ffff, 0, "{ran:?}");
        assert!(rest.starts_with("0022\nend\n"), "{ran:?}");
    }
}

#[test]
fn a_child_that_never_ends_is_killed_and_fails_its_test() {
    if is_inside() {
        // A test that waits for a process that nobody ends, below another one.
        let status = Command::new("sh")
            .args(["-c", "sleep 1000; exit 0"])
            .status();
        assert!(status.expect("sh runs").success());
        return;
    }
    let test = "a_child_that_never_ends_is_killed_and_fails_its_test";
    let output = again(r#"exec "$@""#, test)
        .env(LIFETIME_VARIABLE, "1")
        .output()
        .expect("sh runs");
    assert_eq!(output.status.code(), Some(101), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("testkit: killed process"), "{said}");
}

#[test]
fn a_test_that_waits_in_its_own_process_ends_with_its_binary() {
    if is_inside() {
        loop {
            std::thread::park();
        }
    }
    let test = "a_test_that_waits_in_its_own_process_ends_with_its_binary";
    let output = again(r#"exec "$@""#, test)
        .env(LIFETIME_VARIABLE, "0")
        .output()
        .expect("sh runs");
    assert_eq!(output.status.code(), Some(101), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("one of them waits forever"), "{said}");
}

#[test]
fn another_program_of_the_same_name_counts_as_missing() {
    if is_inside() {
        assert!(!toolpipe_testkit::needs::programs(&["parallel"]));
        return;
    }
    let folder = toolpipe_testkit::Scratch::new();
    let path = folder.to_str().expect("a path").to_owned();
    // As moreutils' program answers.
    folder.write(
        "parallel",
        "#!/bin/sh\necho 'parallel: invalid option' >&2\nexit 1\n",
    );
    let script = format!(r#"chmod +x {path}/parallel; PATH={path}:$PATH; unset CI; exec "$@""#);
    let test = "another_program_of_the_same_name_counts_as_missing";
    let output = again(&script, test).output().expect("sh runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        said.contains("missing: parallel; install parallel"),
        "{said}"
    );
}
