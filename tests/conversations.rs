//! Conversations that react keeps: `--continue`, `--list`, and what happens where none can be kept.

use crate::pipeline::scratch::{ASK, QUESTION, Scratch};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use testkit::Server;

/// How react is called where conversations are kept.
const KEPT: &str =
    "unset TOOLPIPE_KEEP; export XDG_STATE_HOME=$SCRATCH/state OPENAI_API_KEY=k; react --plain";

/// The folder of the conversations.
fn folder(scratch: &Scratch) -> PathBuf {
    scratch.0.join("state/toolpipe/conversations")
}

/// The names of what is kept, sorted.
fn kept(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(folder(scratch)).into_iter().flatten();
    let names = entries.map(|e| e.expect("an entry").file_name());
    let mut names: Vec<_> = names.map(|n| n.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_last_conversation_goes_on_with_its_options() {
    let scratch = Scratch::new();
    let model = Server::counting();
    let base = format!("--base-url {} --api openai-chat", model.url);
    fs::write(scratch.0.join("tools.json"), "[]").expect("written");
    let run = |line: &str| {
        let (status, out, err) = scratch.run(line);
        assert_eq!((status, &*err), (0, ""), "{line}: {out}");
        out
    };
    run(&format!(
        "cd $SCRATCH; {KEPT} {base} -m one -t tools.json --header 'X-Api-Key: $OPENAI_API_KEY' -s 'My key is ghp_0123456789abcdefghijklmnopqrstuvwxyz' 'First?'"
    ));
    run(&format!("{KEPT} {base} -m two 'Other?'"));
    assert_eq!(model.asked().len(), 2);
    let out = run(&format!("{KEPT} -c 'And then?'"));
    let asked = model.asked().remove(0).body;
    assert!(
        out.contains("3 messages.") && asked["model"] == "two",
        "{out}{asked}"
    );
    // The list has the last one first.
    let list = run(&format!("{KEPT} --list"));
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].ends_with("Other?") && lines[1].contains("  one   "),
        "{list}"
    );
    assert!(lines[0] > lines[1], "names sort by time: {list}");
    // Another one by its name, with another model, from another folder.
    let name = lines[1].split(' ').next().expect("a name");
    run(&format!(
        "cd /; {KEPT} -c={name} --model three -s 'Be brief.' --no-stream 'And?'"
    ));
    let request = model.asked().remove(0);
    assert!(
        request.body["model"] == "three"
            && request.body["messages"]
                .as_array()
                .is_some_and(|m| m.len() == 4),
        "{}",
        request.body
    );
    assert_eq!(request.header("x-api-key"), Some("k"));
    // Now it is the last one, with the options of its last run. A secret is in no file.
    run(&format!("{KEPT} -c 'Once more?'"));
    assert_eq!(model.asked().remove(0).body["model"], "three");
    for file in kept(&scratch) {
        let path = folder(&scratch).join(&file);
        let text = fs::read(&path).expect("a file");
        assert!(
            !String::from_utf8_lossy(&text).contains("ghp_0123456789"),
            "{file}"
        );
        let mode = path.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let mode = folder(&scratch)
        .metadata()
        .expect("a folder")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn calls_that_wait_are_listed_and_answered() {
    let scratch = Scratch::new();
    let ask = ASK.replace("react", KEPT).replace("--log $SCRATCH/log", "");
    let (status, _, err) = scratch.run(&format!("{ask} --ask write {QUESTION}"));
    assert!(status == 3 && err.contains("--log "), "{err}");
    let (_, list, _) = scratch.run(&format!("{KEPT} --list"));
    assert!(list.contains("  [1 waiting] We are four and"), "{list}");
    let id = err
        .rsplit_once("--approve-call ")
        .and_then(|(_, rest)| rest.split(' ').next());
    let line = format!("{KEPT} -c --approve-call {}", id.expect("an id"));
    let (status, out, err) = scratch.run(&line);
    assert_eq!((status, &*err), (0, ""), "{out}");
    assert!(out.contains("sleeping bags"), "{out}");
    let (_, list, _) = scratch.run(&format!("{KEPT} --list"));
    assert!(!list.contains("waiting"), "{list}");
}

#[test]
fn what_cannot_go_on_is_an_error_with_a_remedy() {
    let scratch = Scratch::new();
    let one = |line: &str, says: &str| {
        let (status, out, err) = scratch.run(&format!("{KEPT} {line}"));
        assert_eq!(
            (status, &*out, err.lines().count()),
            (2, "", 1),
            "{line}: {err}"
        );
        assert!(err.contains(says), "{line}: {err}");
    };
    one(
        "-c Hi",
        "has no conversation to continue, ask without --continue",
    );
    one("-c=none Hi", "has no conversation none, see react --list");
    one("-c=../x Hi", "has no conversation ../x");
    one("-c -l x Hi", "cannot be used with");
    let (status, list, _) = scratch.run(&format!("{KEPT} --list"));
    assert_eq!((status, &*list), (0, ""));
    // What fails before anything happens leaves nothing behind.
    one("-t no-such-file -m m Hi", "no-such-file");
    assert_eq!(kept(&scratch), [""; 0]);
    // A link is no conversation, whatever it leads to.
    fs::write(
        scratch.0.join("log"),
        "{\"role\":\"user\",\"content\":\"Hi\"}\n",
    )
    .expect("written");
    symlink(scratch.0.join("log"), folder(&scratch).join("link.ndjson")).expect("a link");
    one("-c=link Hi", "has no conversation link");
    one("-c Hi", "has no conversation to continue");
    // The last one is in use.
    fs::rename(scratch.0.join("log"), folder(&scratch).join("a.ndjson")).expect("moved");
    let lock = fs::File::create(folder(&scratch).join("a.ndjson.lock")).expect("a file");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    one("-c Hi", "another react works on ");
    drop(lock);
    // What cannot be read (here since it is larger than memory) is not an empty file.
    let huge = |name: &str| {
        let file = fs::File::create(folder(&scratch).join(name)).expect("a file");
        file.set_len(1 << 40).expect("a sparse file");
    };
    let limited = |line: &str| {
        let (status, out, err) = scratch.run(&format!("ulimit -v 8000000; {KEPT} {line}"));
        assert_eq!((status, &*out), (2, ""), "{line}: {err}");
        err
    };
    huge("a.options");
    assert!(limited("-c Hi").contains("/a.options: "));
    huge("a.ndjson");
    assert!(limited("--list").contains("/a.ndjson: "));
    // The folder is not this user's alone.
    fs::set_permissions(folder(&scratch), PermissionsExt::from_mode(0o777)).expect("set");
    one("--list", "run chmod 700 ");
}

#[test]
fn a_run_that_cannot_be_kept_runs_nevertheless() {
    let scratch = Scratch::new();
    let ask = ASK.replace("react", KEPT).replace("--log $SCRATCH/log", "");
    fs::write(scratch.0.join("file"), "").expect("written");
    for home in ["$SCRATCH/file", "/proc/none"] {
        let ask = ask.replace("$SCRATCH/state", home);
        let (status, out, err) = scratch.run(&format!("{ask} {QUESTION}"));
        assert!(status == 0 && out.contains("sleeping bags"), "{out}{err}");
        assert!(
            err.lines().count() == 1
                && err.starts_with("react: this conversation is not kept for --continue: "),
            "{err}"
        );
    }
    for none in [
        ask.replace("--plain", "--plain --no-keep"),
        ask.replace("unset TOOLPIPE_KEEP", "TOOLPIPE_KEEP=0"),
    ] {
        let (status, _, err) = scratch.run(&format!("{none} {QUESTION}"));
        assert_eq!((status, &*err), (0, ""));
    }
    assert!(!scratch.0.join("state").exists());
}

/// The disk is full where conversations are: the run is not harmed, and nothing stays.
#[test]
fn a_full_disk_keeps_no_conversation_and_harms_no_run() {
    if !testkit::needs::programs(&["bwrap"]) {
        return;
    }
    let scratch = Scratch::new();
    fs::create_dir(scratch.0.join("state")).expect("made");
    let ask = ASK.replace("react", KEPT).replace("--log $SCRATCH/log", "");
    let inside = format!(
        "head -c 1M /dev/zero >$SCRATCH/state/fill 2>/dev/null; {ask} {QUESTION}; ls -A $SCRATCH/state/toolpipe/conversations"
    );
    fs::write(scratch.0.join("inside"), inside).expect("written");
    let (status, out, err) = scratch
        .run("bwrap --dev-bind / / --size 65536 --tmpfs $SCRATCH/state bash $SCRATCH/inside");
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.contains("sleeping bags"), "{out}");
    assert!(
        !out.contains(".ndjson") && !out.contains(".options"),
        "{out}"
    );
    assert!(
        err.lines().count() == 1
            && err.starts_with("react: this conversation is not kept for --continue: ")
            && err.contains("No space left"),
        "{err}"
    );
}

/// Each has a log of its own.
#[test]
fn two_at_once_do_not_meet() {
    let scratch = Scratch::new();
    let model = Server::counting();
    let ask = format!("{KEPT} --base-url {} --api openai-chat -m m", model.url);
    let (status, _, err) =
        scratch.run(&format!("({ask} One?) & one=$!; ({ask} Two?) && wait $one"));
    assert_eq!((status, &*err), (0, ""));
    let (_, list, _) = scratch.run(&format!("{KEPT} --list"));
    assert!(
        list.contains("One?") && list.contains("Two?") && list.lines().count() == 2,
        "{list}"
    );
}
