//! The cache: what makes two calls the same, who may have written into it, and many processes at
//! once.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{self, Dir, Out, command, events, message, run_command, run_in, script, tool};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

fn input(name: &str) -> String {
    message(&[("i", name, json!({}))]) + "\n"
}

fn executable(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Output, and whether it is from the cache.
fn got(out: &Out) -> (String, bool) {
    (
        out.outcome("i").1.trim().to_owned(),
        out.result("i")["cached"] == true,
    )
}

#[test]
fn another_program_of_the_same_name_does_not_answer() {
    let dir = Dir::new();
    let kept = json!({"class": "read", "cache": "1h"});
    // The folder of another tools file, with its own ./get.
    let tools = [tool("get", &["./get"], kept.clone())];
    let go = |folder: &str| {
        std::fs::create_dir_all(dir.path(folder)).unwrap();
        let file = dir.write(&format!("{folder}/tools.json"), json!(tools).to_string());
        let mut plain = std::process::Command::new(env!("CARGO_BIN_EXE_tool-exec"));
        plain
            .args(["--cache", "kept", "--tools"])
            .arg(file)
            .current_dir(dir.path("."));
        plain
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        got(&run_command(plain, &input("get")))
    };
    executable(&dir.path("a/get"), "#!/bin/sh\necho a\n");
    executable(&dir.path("b/get"), "#!/bin/sh\necho b\n");
    assert_eq!(
        (go("a"), go("a")),
        (("a".into(), false), ("a".into(), true))
    );
    assert_eq!(go("b"), ("b".into(), false));
    // The program changes, with the same length.
    executable(&dir.path("a/get"), "#!/bin/sh\necho c\n");
    assert_eq!(
        (go("a"), go("a")),
        (("c".into(), false), ("c".into(), true))
    );
    // Another PATH, also for what a script starts.
    executable(&dir.path("one/fetch"), "#!/bin/sh\necho 1\n");
    executable(&dir.path("two/fetch"), "#!/bin/sh\necho 2\n");
    for found in [
        tool("get", &["fetch"], kept.clone()),
        script("get", "fetch", kept.clone()),
    ] {
        let go = |folder: &str| {
            let mut command = command(&dir, std::slice::from_ref(&found), &["--cache", "kept"]);
            let path =
                std::env::join_paths([dir.path(folder), "/usr/bin".into(), "/bin".into()]).unwrap();
            got(&run_command(
                {
                    command.env("PATH", path);
                    command
                },
                &input("get"),
            ))
        };
        assert_eq!(
            (go("one"), go("one")),
            (("1".into(), false), ("1".into(), true))
        );
        assert_eq!(go("two"), ("2".into(), false));
    }
    // A script that an interpreter runs, and a file that an option names.
    for (command, texts) in [
        (&["sh", "a/script"][..], ["echo x", "echo y"]),
        (&["dd", "status=none", "if=a/script"][..], ["x\n", "y\n"]),
    ] {
        let run = tool("get", command, kept.clone());
        let go = || {
            got(&run_in(
                &dir,
                std::slice::from_ref(&run),
                &input("get"),
                &["--cache", "kept"],
            ))
        };
        dir.write("a/script", texts[0]);
        assert_eq!((go(), go()), (("x".into(), false), ("x".into(), true)));
        dir.write("a/script", texts[1]);
        assert_eq!(go(), ("y".into(), false));
    }
}

#[test]
fn another_folder_limit_or_definition_does_not_answer() {
    let dir = Dir::new();
    let go = |exec: Value, args: &[&str]| {
        let tools = [script("get", "pwd; echo x >>/dev/null", exec)];
        let mut all = vec!["--cache", "kept"];
        all.extend(args);
        got(&run_in(&dir, &tools, &input("get"), &all)).1
    };
    std::fs::create_dir(dir.path("sub")).unwrap();
    let plain = || json!({"cache": "1h"});
    assert_eq!((go(plain(), &[]), go(plain(), &[])), (false, true));
    assert!(!go(json!({"cache": "1h", "cwd": "sub"}), &[]));
    assert!(!go(json!({"cache": "2h"}), &[]));
    assert!(!go(plain(), &["--max-result", "5"]));
    assert!(go(plain(), &[]), "nothing else has changed");
}

#[test]
fn a_link_a_folder_for_all_and_a_planted_file_are_refused_79() {
    let dir = Dir::new();
    let tools = [script("get", "echo x", json!({"cache": "1h"}))];
    let go = |cache: &str| run_in(&dir, &tools, &input("get"), &["--cache", cache]);
    assert_eq!((got(&go("real")).1, got(&go("real")).1), (false, true));
    symlink(dir.path("real"), dir.path("link")).unwrap();
    for link in ["link", "link/", "link//", "link/."] {
        let out = go(link);
        assert!(
            out.status == 2 && out.text.is_empty() && out.errors.contains("links are not followed"),
            "{link}: {}",
            out.errors
        );
    }
    let file = || {
        std::fs::read_dir(dir.path("real"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    };
    std::fs::set_permissions(file(), PermissionsExt::from_mode(0o666)).unwrap();
    assert!(!got(&go("real")).1, "another user may have written it");
    // The folder must be private from the start.
    std::fs::set_permissions(dir.path("real"), PermissionsExt::from_mode(0o777)).unwrap();
    let out = go("real");
    assert!(
        out.status == 2 && out.errors.contains("chmod 700"),
        "{}",
        out.errors
    );
    std::fs::write(dir.path("plain"), "").unwrap();
    assert!(go("plain").errors.contains("not a folder"));
}

/// Each file is complete, whoever reads it when.
#[test]
fn many_processes_share_a_cache_80() {
    let dir = Dir::new();
    let tools = [script(
        "get",
        "head -c 60000 /dev/zero | tr '\\0' x; echo run >>runs",
        json!({"class": "read", "cache": "1h"}),
    )];
    dir.write("in", input("get"));
    let first = command(&dir, &tools, &["--cache", "kept", "in"]);
    let start = |_| {
        let mut next = std::process::Command::new(first.get_program());
        next.args(first.get_args()).current_dir(dir.path("."));
        next.stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..24).map(start).collect();
    for child in children {
        let out = child.wait_with_output().unwrap();
        let all = events(std::str::from_utf8(&out.stdout).unwrap());
        let result = all
            .iter()
            .find(|event| event["type"] == "tool_result")
            .unwrap();
        assert_eq!(
            (
                result["status"].as_str(),
                result["output"].as_str().unwrap().len()
            ),
            (Some("success"), 60_000)
        );
        assert!(out.stderr.is_empty());
    }
    let files: Vec<_> = std::fs::read_dir(dir.path("kept"))
        .unwrap()
        .map(|file| file.unwrap())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let before = dir.read("runs");
    let last = run_in(&dir, &tools, &input("get"), &["--cache", "kept"]);
    assert!(got(&last).1 && dir.read("runs") == before);
}

#[test]
fn a_full_disk_stops_no_call() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("kept")).unwrap();
    std::fs::set_permissions(dir.path("kept"), PermissionsExt::from_mode(0o700)).unwrap();
    // No file may grow, but the one in memory with the arguments: as on a disk that is full.
    let print = "head -c 4000 /dev/zero | tr '\\0' x";
    let tools = [script("get", print, json!({"cache": "1h"}))];
    let exec = command(&dir, &tools, &["--cache", "kept"]);
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", "ulimit -f 1; trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(exec.get_program())
        .args(exec.get_args());
    limited
        .current_dir(dir.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let out = run_command(limited, &input("get"));
    assert_eq!(
        (out.outcome("i"), out.status),
        (("success", &*"x".repeat(4000)), 0)
    );
    assert!(
        out.errors.contains("the cache cannot be written")
            && out.errors.contains("going on without"),
        "{}",
        out.errors
    );
    assert_eq!(
        std::fs::read_dir(dir.path("kept")).unwrap().count(),
        0,
        "nothing is half written"
    );
}

#[test]
fn the_counts_of_a_cache() {
    let dir = Dir::new();
    let stats = |args: &[&str]| {
        let mut all = vec!["--cache-stats"];
        all.extend(args);
        let out = run_in(&dir, &[], "", &all);
        assert_eq!((out.status, out.text.lines().count()), (0, 1));
        serde_json::from_str::<Value>(&out.text).unwrap()
    };
    assert_eq!(
        stats(&[]),
        json!({"entries": 0, "bytes": 0, "expired": 0, "tools": {}})
    );
    let tools = [
        script("a", "echo x", json!({"cache": "1h"})),
        script("b", "echo x", json!({"cache": "1ms"})),
        script("c", "exit 1", json!({"cache": "1h"})),
    ];
    for name in ["a", "b", "c"] {
        run_in(&dir, &tools, &input(name), &[]);
    }
    harness::wait_until("a result is too old", || stats(&[])["expired"] == 1);
    let found = stats(&[]);
    assert_eq!(
        (
            &found["entries"],
            &found["tools"]["a"]["entries"],
            &found["tools"]["b"]["expired"]
        ),
        (&json!(2), &json!(1), &json!(1))
    );
    assert!(found["bytes"].as_u64().unwrap() > 100 && found["tools"].get("c").is_none());
    assert_eq!(
        stats(&[
            "--cache",
            dir.path("xdg/toolpipe/results").to_str().unwrap()
        ]),
        found,
        "nothing is removed"
    );
    // One that is too old is removed when its call comes again.
    assert!(!got(&run_in(&dir, &tools, &input("b"), &[])).1);
}
