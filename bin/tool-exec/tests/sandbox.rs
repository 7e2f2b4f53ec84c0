//! What a command in a sandbox can reach, and what happens where a sandbox cannot be had. The
//! numbers are those of fixtures/hostile-inputs.md. Each test runs as this user, and where that is root
//! as an ordinary user too.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::needs::{self, skip};
use crate::harness::terminal::{Terminal, can_have_a_terminal};
use crate::harness::users::{User, as_user, open_dir, users};
use crate::harness::{self, Dir, Out, command, run_command, runs, script, tool, turn, wait_until};
use serde_json::{Value, json};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The sandboxes that this machine has, and the users that can use them.
fn sandboxes() -> Vec<(&'static str, User)> {
    let mut all = Vec::new();
    for kind in ["landlock", "bwrap"] {
        if kind == "bwrap" && !needs::programs(&["bwrap"]) {
            continue;
        }
        for user in users() {
            let dir = open_dir();
            let tools = [tool("true", &["true"], json!({}))];
            let out = run_command(
                as_user(user, &dir, command(&dir, &tools, &["--sandbox", kind])),
                "",
            );
            match out.status {
                2 => {
                    assert!(out.errors.contains("is unavailable"), "{}", out.errors);
                    skip(&format!("{kind} as {user:?}: {}", out.errors.trim()));
                }
                _ => all.push((kind, user)),
            }
        }
    }
    all
}

/// The outcomes of one call of each of `tools`, which are run as `user` under `--sandbox kind`.
fn run(dir: &Dir, tools: &[Value], (kind, user): (&str, User), home: &Path) -> Out {
    let mut command = command(dir, tools, &["--sandbox", kind, "--no-time"]);
    command.env("HOME", home);
    let calls: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .map(|name| (name, name, json!({})))
        .collect();
    let out = run_command(as_user(user, dir, command), &turn(&calls));
    assert_eq!(
        out.of("tool_result").len(),
        tools.len(),
        "{kind} as {user:?}: {}",
        out.errors
    );
    out
}

#[test]
fn a_file_outside_the_lists_is_neither_read_nor_written() {
    for sandbox in sandboxes() {
        let dir = open_dir();
        let home = open_dir();
        std::fs::create_dir(home.path(".ssh")).unwrap();
        std::fs::set_permissions(home.path(".ssh"), PermissionsExt::from_mode(0o777)).unwrap();
        let canary = home.write("canary", "canary-5170");
        std::fs::set_permissions(&canary, PermissionsExt::from_mode(0o666)).unwrap();
        let path = |name: &str| home.path(name).display().to_string();
        let tools = [
            script("write", &format!("echo key >{}", path(".ssh/x")), json!({})),
            script("read", &format!("cat {}", path("canary")), json!({})),
            script("truncate", &format!(": >{}", path("canary")), json!({})),
            script(
                "remove",
                &format!("rm -f {0} && [ ! -e {0} ] && echo gone", path("canary")),
                json!({}),
            ),
            script("list", &format!("ls {}", path(".")), json!({})),
            script("here", "echo x >here", json!({})),
            script("root", "echo x >/toolpipe-test-of-a-sandbox", json!({})),
            script(
                "rights",
                "while read -r line; do case $line in CapEff*) echo \"$line\" ;; esac; done </proc/$$/status",
                json!({}),
            ),
            script(
                "home",
                "echo kept >~/x && cat ~/x && sh -c 'echo $$' >/dev/null && ls >/dev/null",
                json!({}),
            ),
        ];
        let out = run(&dir, &tools, sandbox, &home.path("."));
        for name in ["write", "read", "truncate", "list", "here", "root"] {
            assert_eq!(
                out.outcome(name).0,
                "error",
                "{sandbox:?} {name}: {}",
                out.outcome(name).1
            );
        }
        let denied = if sandbox.0 == "landlock" {
            "Permission denied"
        } else {
            "o such file"
        };
        assert!(
            out.outcome("read").1.contains(denied),
            "{sandbox:?}: {}",
            out.outcome("read").1
        );
        assert!(!out.text.contains("canary-5170"));
        assert_eq!(
            (home.read("canary").as_str(), home.path(".ssh/x").exists()),
            ("canary-5170", false),
            "{sandbox:?}"
        );
        assert!(!dir.path("here").exists());
        assert_eq!(
            out.outcome("rights").1,
            "CapEff:\t0000000000000000\n",
            "{sandbox:?}"
        );
        // What it may do: write to its own home, run programs of the system, read its working
        // folder.
        assert_eq!(out.outcome("home"), ("success", "kept\n"), "{sandbox:?}");
    }
}

#[test]
fn the_settings_of_the_system_are_not_written() {
    for sandbox in sandboxes() {
        let dir = open_dir();
        // Should it be written after all, it gets the value that it has.
        let write = "f=/proc/sys/vm/swappiness; v=$(cat $f) && echo $v >$f && echo written";
        let out = run(
            &dir,
            &[script("write", write, json!({}))],
            sandbox,
            Path::new("/nonexistent"),
        );
        assert_eq!(out.outcome("write").0, "error", "{sandbox:?}");
        assert!(
            !out.outcome("write").1.contains("written"),
            "{sandbox:?}: {}",
            out.outcome("write").1
        );
    }
}

#[test]
fn the_lists_open_what_they_name_and_no_more() {
    for sandbox in sandboxes() {
        let dir = open_dir();
        let place = open_dir();
        let path = |name: &str| place.path(name).display().to_string();
        for name in ["in", "out", "neither"] {
            std::fs::create_dir(place.path(name)).unwrap();
            std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(0o777)).unwrap();
            let file = place.write(&format!("{name}/file"), name);
            std::fs::set_permissions(file, PermissionsExt::from_mode(0o666)).unwrap();
        }
        // A link in the list is the place that it leads to.
        std::os::unix::fs::symlink(place.path("in"), place.path("link")).unwrap();
        let lists = json!({"sandbox": {"read": [path("link")], "write": [path("out")]}});
        let tools = [
            script(
                "read",
                &format!("cat {}/file {}/file", path("link"), path("in")),
                lists.clone(),
            ),
            script(
                "write",
                &format!(
                    "echo new >{0}/file && mkdir {0}/d && mv {0}/file {0}/d/file",
                    path("out")
                ),
                lists.clone(),
            ),
            script(
                "change",
                &format!("echo new >{}/file", path("in")),
                lists.clone(),
            ),
            script(
                "neither",
                &format!("cat {}/file", path("neither")),
                lists.clone(),
            ),
        ];
        let out = run(&dir, &tools, sandbox, Path::new("/nonexistent"));
        assert_eq!(out.outcome("read"), ("success", "inin"), "{sandbox:?}");
        assert_eq!(out.outcome("write"), ("success", ""), "{sandbox:?}");
        assert_eq!(place.read("out/d/file"), "new\n");
        assert_eq!(
            (out.outcome("change").0, out.outcome("neither").0),
            ("error", "error"),
            "{sandbox:?}"
        );
        assert_eq!(place.read("in/file"), "in");
    }
}

#[test]
fn a_tool_may_ask_for_a_sandbox_that_the_user_did_not() {
    let Some((kind, user)) = sandboxes().into_iter().next() else {
        return;
    };
    let dir = open_dir();
    let place = open_dir();
    place.write("canary", "canary-5171");
    let read = format!("cat {}", place.path("canary").display());
    let tools = [
        script("more", &read, json!({"sandbox": kind})),
        script("none", &read, json!({})),
    ];
    let out = run(&dir, &tools, ("none", user), Path::new("/nonexistent"));
    assert_eq!(
        (out.outcome("more").0, out.outcome("none")),
        ("error", ("success", "canary-5171"))
    );
}

/// A listener and a socket on this machine, and how many connections and datagrams came.
struct Listeners(TcpListener, UdpSocket);

impl Listeners {
    fn new() -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        Listeners(tcp, udp)
    }

    fn tcp(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    fn udp(&self) -> u16 {
        self.1.local_addr().unwrap().port()
    }

    /// Whether a connection and a datagram came.
    fn came(&self) -> (bool, bool) {
        (self.0.accept().is_ok(), self.1.recv(&mut [0; 8]).is_ok())
    }
}

/// Tools that send by TCP and by UDP.
fn senders(to: &Listeners, more: &Value) -> [Value; 2] {
    let send = |name: &str, how: &str, port: u16| {
        tool(
            name,
            &[
                "bash",
                "-c",
                &format!("echo x >/dev/{how}/127.0.0.1/{port}"),
            ],
            more.clone(),
        )
    };
    [send("tcp", "tcp", to.tcp()), send("udp", "udp", to.udp())]
}

#[test]
fn without_a_word_of_its_tool_a_command_has_no_network_of_any_kind() {
    for sandbox in sandboxes() {
        let to = Listeners::new();
        let out = run(
            &open_dir(),
            &senders(&to, &json!({})),
            sandbox,
            Path::new("/nonexistent"),
        );
        assert_eq!(
            (out.outcome("tcp").0, to.came()),
            ("error", (false, false)),
            "{sandbox:?}"
        );
        if sandbox.0 == "landlock" {
            assert!(
                out.outcome("tcp").1.contains("Permission denied"),
                "{}",
                out.outcome("tcp").1
            );
            assert!(
                out.outcome("udp").1.contains("unreachable"),
                "{}",
                out.outcome("udp").1
            );
        }
        let to = Listeners::new();
        let out = run(
            &open_dir(),
            &senders(&to, &json!({"sandbox": {"network": true}})),
            sandbox,
            Path::new("/nonexistent"),
        );
        assert_eq!(
            (out.outcome("tcp").0, out.outcome("udp").0, to.came()),
            ("success", "success", (true, true)),
            "{sandbox:?}"
        );
    }
}

#[test]
fn landlock_opens_the_ports_of_a_list_and_closes_tcp_alone_where_the_tool_says_so() {
    for sandbox in sandboxes()
        .into_iter()
        .filter(|(kind, _)| *kind == "landlock")
    {
        let to = Listeners::new();
        let other = Listeners::new();
        let ports = json!({"sandbox": {"network": [to.tcp()]}});
        let [here, _] = senders(&to, &ports);
        let [mut there, _] = senders(&other, &ports);
        there["name"] = json!("other");
        let out = run(
            &open_dir(),
            &[here, there],
            sandbox,
            Path::new("/nonexistent"),
        );
        assert_eq!(
            (out.outcome("tcp").0, out.outcome("other").0),
            ("success", "error"),
            "{}",
            out.text
        );
        assert_eq!((to.came().0, other.came().0), (true, false));
        let to = Listeners::new();
        let out = run(
            &open_dir(),
            &senders(&to, &json!({"sandbox": {"network": "no-tcp"}})),
            sandbox,
            Path::new("/nonexistent"),
        );
        assert_eq!((out.outcome("tcp").0, to.came().0), ("error", false));
    }
}

#[test]
fn ports_under_bubblewrap_are_refused() {
    let dir = Dir::new();
    let tools = [tool(
        "t",
        &["true"],
        json!({"sandbox": {"with": "bwrap", "network": [443]}}),
    )];
    let out = run_command(command(&dir, &tools, &[]), &turn(&[("a", "t", json!({}))]));
    assert_eq!((out.status, out.text.as_str()), (2, ""));
    assert!(
        out.errors.contains("bwrap cannot tell apart"),
        "{}",
        out.errors
    );
}

#[test]
fn the_environment_and_the_files_of_tool_exec_are_out_of_reach_16() {
    for (kind, user) in sandboxes() {
        let dir = open_dir();
        let log = dir.write("log.ndjson", "");
        std::fs::set_permissions(&log, PermissionsExt::from_mode(0o666)).unwrap();
        let tries = "read pid <pid; for p in $pid $PPID 1; do \
            tr '\\0' '\\n' </proc/$p/environ; cat /proc/$p/cmdline; ls -l /proc/$p/fd; for n in 0 1 2 3 4 5 6 7 8 9; do echo evil >>/proc/$p/fd/$n; done; \
            done 2>/dev/null; kill -STOP $pid $PPID; echo evil >>log.ndjson; :";
        let tools = [script("try", tries, json!({}))];
        let mut command = command(&dir, &tools, &["--sandbox", kind, "--no-time"]);
        command.env("CANARY_SETTING", "canary-5172");
        let mut command = as_user(user, &dir, command);
        command.stdout(std::fs::OpenOptions::new().append(true).open(&log).unwrap());
        let mut child = command.spawn().unwrap();
        dir.write("pid", format!("{}\n", child.id()));
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, turn(&[("a", "try", json!({}))]).as_bytes()).unwrap();
        drop(input);
        let pid = child.id().to_string();
        wait_until("tool-exec was stopped", || !runs(&pid));
        child.wait().unwrap();
        let text = dir.read("log.ndjson");
        assert!(!text.contains("canary-5172"), "{kind} {user:?}: {text}");
        assert!(
            text.lines().all(|line| line.starts_with('{')),
            "{kind} {user:?}: {text}"
        );
        assert_eq!(
            harness::events(&text)
                .iter()
                .filter(|e| e["type"] == "tool_result")
                .count(),
            1
        );
    }
}

#[test]
fn the_terminal_of_a_question_is_out_of_reach() {
    if !can_have_a_terminal() {
        return;
    }
    for (kind, _) in sandboxes()
        .into_iter()
        .filter(|(_, user)| *user == User::This)
    {
        let dir = Dir::new();
        let write = "for t in /dev/pts/[0-9]* /dev/tty; do printf typed-by-a-tool >$t; done; ls /dev/pts/ | grep -c [0-9]; :";
        let tools = [
            script("look", write, json!({"class": "read"})),
            script("rm", "true", json!({"class": "danger"})),
        ];
        let input = turn(&[("a", "look", json!({})), ("b", "rm", json!({}))]);
        let mut terminal =
            Terminal::new(&dir, &tools, &input, &["--no-time", "--sandbox", kind], 80);
        terminal.prompts(1);
        terminal.type_in("n\n");
        let (out, screen) = terminal.end(&dir);
        assert_eq!(
            (out.outcome("a").0, out.outcome("b").0),
            ("success", "denied"),
            "{kind}: {screen}"
        );
        assert!(
            !screen.contains("typed-by-a-tool") && !screen.contains("warning: without a sandbox"),
            "{kind}: {screen}"
        );
    }
}

#[test]
fn shared_memory_of_system_v_goes_with_its_call() {
    if !needs::programs(&["ipcmk"]) {
        return;
    }
    for sandbox in sandboxes() {
        let before = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        let out = run(
            &open_dir(),
            &[script("make", "ipcmk -M 4097", json!({}))],
            sandbox,
            Path::new("/nonexistent"),
        );
        let after = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        assert_eq!(
            out.outcome("make").0,
            "success",
            "{sandbox:?}: {}",
            out.outcome("make").1
        );
        assert!(
            !after
                .lines()
                .any(|line| line.contains(" 4097 ") && !before.contains(line)),
            "{sandbox:?}: {after}"
        );
    }
}

#[test]
fn a_place_that_has_become_a_link_is_not_followed() {
    let Some((kind, user)) = sandboxes().into_iter().next() else {
        return;
    };
    let dir = open_dir();
    let place = open_dir();
    for name in ["work", "work/out", "other"] {
        std::fs::create_dir(place.path(name)).unwrap();
        std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(0o777)).unwrap();
    }
    let path = |name: &str| place.path(name).display().to_string();
    let swap = format!(
        "rmdir {0} && ln -s {1} {0}",
        path("work/out"),
        path("other")
    );
    let tools = [
        script(
            "swap",
            &swap,
            json!({"class": "read", "sandbox": {"with": kind, "write": [path("work")]}}),
        ),
        script(
            "follow",
            &format!("echo x >{}/x", path("other")),
            json!({"sandbox": {"with": kind, "write": [path("work/out")]}}),
        ),
    ];
    let mut command = command(&dir, &tools, &["--jobs", "1", "--no-time"]);
    command.env("HOME", "/nonexistent");
    let out = run_command(
        as_user(user, &dir, command),
        &turn(&[("a", "swap", json!({})), ("b", "follow", json!({}))]),
    );
    assert_eq!(out.outcome("a"), ("success", ""));
    let (status, output) = out.outcome("b");
    assert!(
        status == "error"
            && output.contains("could not be started")
            && output.contains("has become a link"),
        "{output}"
    );
    assert!(!place.path("other/x").exists());
}

#[test]
fn a_write_list_that_covers_a_file_of_tool_exec_is_refused() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("kept")).unwrap();
    std::fs::create_dir(dir.path("free")).unwrap();
    let log = dir.write("kept/log.ndjson", "");
    std::os::unix::fs::symlink(dir.path("kept"), dir.path("free/link")).unwrap();
    std::fs::hard_link(&log, dir.path("free/again")).unwrap();
    for (list, what) in [
        ("kept", "the journal"),
        ("kept/log.ndjson", "the journal"),
        ("free/link", "the journal"),
        ("free/again", "the journal"),
        (".", "the tools file"),
        ("free/..", "the tools file"),
        ("/", "the tools file"),
    ] {
        let tools = [script(
            "t",
            "echo ran >free/ran",
            json!({"class": "read", "sandbox": {"write": ["free", list]}}),
        )];
        let out = run_command(
            command(&dir, &tools, &["--journal", log.to_str().unwrap()]),
            &turn(&[("a", "t", json!({}))]),
        );
        assert_eq!((out.status, out.text.as_str()), (2, ""), "{list}");
        assert!(
            out.errors.contains(&format!("{list:?} holds {what} ("))
                && out.errors.lines().count() == 1,
            "{}",
            out.errors
        );
        assert!(!dir.path("free/ran").exists());
    }
}

#[test]
fn no_file_of_tool_exec_is_a_place_to_write_whether_it_exists_or_not() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("kept")).unwrap();
    let tools = [script("t", "true", json!({"sandbox": {"write": ["kept"]}}))];
    let out = run_command(
        command(&dir, &tools, &["--log", "kept/log.ndjson"]),
        &turn(&[("a", "t", json!({}))]),
    );
    assert!(
        out.status == 2
            && out
                .errors
                .contains("\"kept\" holds the log (kept/log.ndjson)"),
        "{}",
        out.errors
    );
    dir.write("kept/policy.toml", "");
    let out = run_command(
        command(&dir, &tools, &["--policy", "kept/policy.toml"]),
        &turn(&[("a", "t", json!({}))]),
    );
    assert!(
        out.status == 2
            && out
                .errors
                .contains("\"kept\" holds the policy (kept/policy.toml)"),
        "{}",
        out.errors
    );
    let out = run_command(
        command(&dir, &tools, &["--lock", "kept/lock"]),
        &turn(&[("a", "t", json!({}))]),
    );
    assert!(
        out.status == 2
            && out
                .errors
                .contains("\"kept\" holds the lock file (kept/lock)"),
        "{}",
        out.errors
    );
    let mut under_hub = command(&dir, &tools, &[]);
    under_hub.env("TOOLPIPE_HUB", dir.path("kept/socket"));
    let out = run_command(under_hub, &turn(&[("a", "t", json!({}))]));
    assert!(
        out.status == 2 && out.errors.contains("\"kept\" holds the hub's socket ("),
        "{}",
        out.errors
    );
}

#[test]
fn the_file_that_standard_output_goes_to_is_no_place_to_write() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("out")).unwrap();
    let log = std::fs::File::create(dir.path("out/log")).unwrap();
    let tools = [script("t", "true", json!({"sandbox": {"write": ["out"]}}))];
    let mut command = command(&dir, &tools, &[]);
    command.stdout(log);
    let out = run_command(command, &turn(&[("a", "t", json!({}))]));
    assert_eq!(out.status, 2);
    assert!(
        out.errors.contains("\"out\" holds standard output ("),
        "{}",
        out.errors
    );
}

#[test]
fn a_place_that_does_not_exist_is_an_error_before_anything_runs() {
    for list in ["read", "write"] {
        let dir = Dir::new();
        let tools = [script("t", "true", json!({"sandbox": {list: ["missing"]}}))];
        let out = run_command(command(&dir, &tools, &[]), &turn(&[("a", "t", json!({}))]));
        assert_eq!((out.status, out.text.as_str()), (2, ""));
        assert!(
            out.errors
                .contains(&format!("exec.sandbox.{list}: \"missing\" (")),
            "{}",
            out.errors
        );
    }
}

#[test]
fn a_sandbox_that_cannot_be_had_stops_before_anything_runs() {
    // Without bubblewrap in PATH.
    for (options, more) in [
        (&["--sandbox", "bwrap"][..], json!({})),
        (&[][..], json!({"sandbox": "bwrap"})),
    ] {
        let dir = Dir::new();
        let tools = [tool("t", &["/bin/sh", "-c", "echo ran >ran"], more)];
        let mut command = command(&dir, &tools, options);
        command.env("PATH", dir.path("."));
        let out = run_command(command, &turn(&[("a", "t", json!({}))]));
        assert_eq!((out.status, out.text.as_str()), (2, ""));
        assert!(
            out.errors
                .contains("is unavailable: bwrap is not found in PATH")
                && out.errors.lines().count() == 1,
            "{}",
            out.errors
        );
        assert!(!dir.path("ran").exists());
    }
    // With one that does not work.
    let dir = Dir::new();
    let broken = dir.write(
        "bwrap",
        "#!/bin/sh\necho 'bwrap: no permissions' >&2\nexit 1\n",
    );
    std::fs::set_permissions(broken, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = command(
        &dir,
        &[tool("t", &["/bin/sh", "-c", "echo ran >ran"], json!({}))],
        &["--sandbox", "bwrap"],
    );
    command.env("PATH", dir.path("."));
    let out = run_command(command, &turn(&[("a", "t", json!({}))]));
    assert_eq!((out.status, out.text.as_str()), (2, ""));
    assert!(
        out.errors
            .contains("--sandbox bwrap is unavailable: bwrap: no permissions"),
        "{}",
        out.errors
    );
    assert!(!dir.path("ran").exists());
}

#[test]
fn without_a_network_namespace_landlock_needs_a_word_of_the_tool() {
    if !sandboxes().iter().any(|(kind, _)| *kind == "landlock") {
        return;
    }
    // A place where no namespace can be made: bubblewrap's own.
    let dir = open_dir();
    let mut outcomes = Vec::new();
    for network in [json!(false), json!("no-tcp")] {
        let tools = [script(
            "t",
            "echo ran",
            json!({"sandbox": {"network": network}}),
        )];
        let inner = command(&dir, &tools, &["--no-time", "--trust"]);
        let mut outer = Command::new("bwrap");
        outer.args([
            "--unshare-user",
            "--disable-userns",
            "--cap-drop",
            "ALL",
            "--bind",
            "/",
            "/",
            "--dev-bind",
            "/dev",
            "/dev",
            "--",
        ]);
        outer
            .arg(inner.get_program())
            .args(inner.get_args())
            .current_dir(inner.get_current_dir().unwrap());
        outer
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !matches!(Command::new("bwrap").args(["--unshare-user", "--disable-userns", "--bind", "/", "/", "true"]).status(), Ok(s) if s.success())
        {
            return skip("no bwrap with --disable-userns");
        }
        let out = run_command(outer, &turn(&[("a", "t", json!({}))]));
        outcomes.push((out.status, out.errors, out.text));
    }
    let [off, no_tcp] = &outcomes[..] else {
        unreachable!()
    };
    assert_eq!((off.0, off.2.as_str()), (2, ""), "{}", off.1);
    assert!(
        off.1.contains("network namespaces are unavailable") && off.1.contains("\"no-tcp\""),
        "{}",
        off.1
    );
    assert!(
        no_tcp.0 == 0 && no_tcp.2.contains(r#""output":"ran\n""#),
        "{} {}",
        no_tcp.1,
        no_tcp.2
    );
}
