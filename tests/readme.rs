//! The commands in the READMEs and in the pages of docs/ that the tests below list work as they are
//! written, and the demo prints `fixtures/demo.txt`, or `fixtures/demo-tag.txt` in tag mode and
//! `fixtures/demo-serve.txt` for the service (`UPDATE=1 cargo test --test main readme::` rewrites
//! them).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use testkit::{Scratch, golden, needs};

/// Runs a script in the root of the repository, with a folder for its temporary files; returns its
/// standard output.
fn run(script: &str) -> String {
    let script = format!("export TMPDIR=$(mktemp -d); trap 'rm -rf \"$TMPDIR\"' EXIT\n{script}");
    let output = testkit::bash(&script, testkit::root())
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(
        output.status.success() && err.is_empty(),
        "{script}\n{}\n{out}\n{err}",
        output.status
    );
    out
}

/// The blocks after the mark `<!-- test -->`, all of which are of this kind.
fn blocks(text: &str, kind: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while lines.by_ref().any(|line| line == "<!-- test -->") {
        assert_eq!(
            lines.next(),
            Some(format!("```{kind}").as_str()),
            "after a mark, of block {}",
            blocks.len() + 1
        );
        blocks.push(
            lines
                .by_ref()
                .take_while(|line| *line != "```")
                .collect::<Vec<_>>()
                .join("\n"),
        );
    }
    blocks
}

#[test]
fn every_pipeline_of_the_readmes_works_as_written() {
    for (page, count) in [
        ("README.md", 1),
        ("docs/pipelines.md", 6),
        ("bin/llm-stream/README.md", 1),
        ("bin/tag-parse/README.md", 1),
        ("bin/tc-detect/README.md", 2),
    ] {
        let text = std::fs::read_to_string(testkit::root().join(page)).expect(page);
        let blocks = blocks(&text, "sh");
        assert_eq!(blocks.len(), count, "marked pipelines of {page}");
        for block in blocks
            .iter()
            .filter(|block| needs::script(&format!("a pipeline of {page}"), block))
        {
            assert!(!run(block).is_empty(), "it prints nothing:\n{block}");
        }
    }
}

/// What each line of the README's first screen prints, in order. The first line installs the commands.
const FIRST_LINES: [(&str, &[&str]); 6] = [
    ("cargo install ", &[]),
    ("export LLM_TAPE=", &[]),
    (
        "react -t ",
        &["-> note ", "<- note done", "noted: The hut is booked."],
    ),
    ("grep lake ", &["> Lake hut\tsunday\t12", "\n\nSunday: "]),
    ("react -c ", &["> And in German?", "\n\nAm Sonntag: "]),
    // A replay reads no configuration, so it prints the answer alone here.
    ("react --replay ", &["Vier Betten"]),
];

/// Takes the place of cargo: the build of the README's first line takes minutes, and is that of the
/// commands which are built already.
const CARGO: &str = r#"#!/bin/sh
set -eu
[ "$*" = 'install --locked --path bin/toolpipe' ]
grep -qx 'name = "toolpipe"' bin/toolpipe/Cargo.toml
mkdir -p ~/.cargo/bin
ln -s "$TOOLPIPE" ~/.cargo/bin/toolpipe
"#;

/// A clone of what is here now, committed or not.
const CLONE: &str = r#"umask 022
export GIT_DIR=$PWD/repository GIT_WORK_TREE=$ROOT
git init -q
git add -A
git -c user.name=test -c user.email=test@localhost commit -qm test
unset GIT_DIR GIT_WORK_TREE
git clone -q repository clone"#;

/// The first lines, typed one after the other in a fresh clone. Nothing but the lines puts a command
/// of ours in PATH, and whatever goes to the network meets a closed port.
#[test]
fn the_first_lines_of_the_readme_work_as_written() {
    if !needs::programs(&["git"]) {
        return;
    }
    let folder = Scratch::new();
    let toolpipe = testkit::program("toolpipe");
    assert!(
        toolpipe.exists(),
        "toolpipe is missing, run cargo build, which builds all commands"
    );
    fs::create_dir(folder.path("other")).expect("a folder");
    let cargo = folder.write("other/cargo", CARGO);
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("a program");
    let home = folder.path("home");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = [home.join(".cargo/bin"), folder.path("other")].into_iter();
    let path = std::env::join_paths(programs.chain(std::env::split_paths(&path))).expect("a PATH");
    let shell = |script: &str, place: &str| {
        let mut bash = testkit::bash(script, &folder.path(place));
        bash.env_remove("TOOLPIPE_KEEP")
            // A person types them at a terminal, and sees the conversation.
            .env("REACT_FORMAT", "text")
            .env("ROOT", testkit::root())
            .env("TOOLPIPE", &toolpipe)
            .env("HOME", &home)
            .env("PATH", &path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for proxy in ["http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
            bash.env(proxy, "http://127.0.0.1:9");
        }
        testkit::run(bash)
    };
    let cloned = shell(&format!("set -e\n{CLONE}"), "");
    assert_eq!(cloned.status, 0, "{cloned:?}");
    let page = fs::read_to_string(folder.path("clone/README.md")).expect("README.md");
    let (_, block) = page.split_once("```sh\n").expect("a block");
    let (block, _) = block.split_once("```\n").expect("its end");
    let lines: Vec<_> = block.lines().collect();
    // The status of each line follows what it printed.
    let typed: String = lines
        .iter()
        .map(|line| format!("{line}\necho \"\u{1e}$?\u{1e}\"\n"))
        .collect();
    let ran = shell(&typed, "clone");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let printed: Vec<_> = ran.stdout.split('\u{1e}').collect();
    assert_eq!(printed.len(), 2 * lines.len() + 1, "{printed:?}");
    assert_eq!(lines.len(), FIRST_LINES.len(), "{block}");
    for ((line, (begin, wanted)), printed) in lines.iter().zip(FIRST_LINES).zip(printed.chunks(2)) {
        assert!(line.starts_with(begin), "{line} in the place of {begin}");
        assert_eq!(printed[1], "0", "{line}: {}", printed[0]);
        for text in wanted {
            assert!(printed[0].contains(text), "{line}: {}", printed[0]);
        }
    }
    assert_eq!(folder.read("clone/notes.txt"), "The hut is booked.\n");
    let changed = shell("git status --porcelain", "clone");
    assert_eq!((changed.status, changed.stdout.as_str()), (0, ""));
}

#[test]
fn the_readme_names_every_api_and_counts_the_dialects() {
    let page = fs::read_to_string(testkit::root().join("README.md")).expect("README.md");
    let (_, providers) = page.split_once("* **Providers**").expect("the line");
    let providers = providers.split("\n\n").next().unwrap_or_default();
    let providers = providers.split("\n* ").next().unwrap_or_default();
    let named: Vec<_> = providers.split('`').skip(3).step_by(2).collect();
    let refused = run("! llm-stream --api none -m any '?' 2>&1");
    let (_, listed) = refused.split_once("use one of ").expect("the names");
    let mut listed: Vec<_> = listed.split(", ").collect();
    listed.pop();
    for api in &listed {
        assert!(named.contains(api), "{api} is not among {named:?}");
    }
    assert_eq!(named.len(), listed.len(), "{named:?}");
    let dialects = run("tag-parse --list-dialects").lines().skip(1).count();
    assert!(
        page.contains(&format!("[{dialects} dialects](docs/dialects.md)")),
        "{dialects} dialects"
    );
}

#[test]
fn the_commands_for_a_log_that_is_too_long_work_as_written() {
    let page = std::fs::read_to_string(testkit::root().join("docs/protocol.md"))
        .expect("docs/protocol.md");
    let blocks = blocks(&page, "sh");
    let [trim, cut] = &blocks[..] else {
        panic!("{} blocks are marked", blocks.len())
    };
    if !needs::script("the commands of docs/protocol.md", &blocks.concat()) {
        return;
    }
    let sent = run(trim);
    for (text, stays) in [
        ("Be brief.", true),
        ("1", false),
        ("Question 2", true),
        ("Answer 2", true),
        ("Question 3", true),
    ] {
        assert_eq!(sent.contains(text), stays, "{text}: {sent}");
    }
    assert!(run(cut).contains("a long result"));
}

#[test]
fn the_examples_of_the_docs_print_what_is_shown() {
    for (page, least) in [
        ("docs/tag-mode.md", 4),
        ("docs/ci.md", 4),
        ("docs/deviations.md", 1),
        ("docs/reliability.md", 1),
        ("docs/tools-file.md", 2),
        ("docs/serve.md", 2),
        ("docs/serve-sessions.md", 2),
        ("docs/serve-tools.md", 2),
        ("bin/tc-view/README.md", 1),
        ("docs/metrics.md", 1),
    ] {
        let text = std::fs::read_to_string(testkit::root().join(page)).expect(page);
        let blocks = blocks(&text, "console");
        assert!(
            blocks.len() >= least,
            "only {} examples of {page} are marked",
            blocks.len()
        );
        let can_run = |block: &&String| needs::script(&format!("an example of {page}"), block);
        blocks
            .iter()
            .filter(can_run)
            .for_each(|block| prints_what_is_shown(block));
    }
}

#[test]
fn the_files_for_operators_name_options_that_there_are() {
    let page =
        std::fs::read_to_string(testkit::root().join("docs/serve-operation.md")).expect("the page");
    let help = run("tc-serve --help");
    let mut options = 0;
    for block in page.split("<!-- options -->\n").skip(1) {
        let block = block.split("\n```\n").next().unwrap_or_default();
        let words = block.split([' ', '"', ',', '\n']);
        for option in words.filter(|word| word.starts_with("--") && *word != "--create-home") {
            assert!(help.contains(&format!("{option} ")), "{option} in {block}");
            options += 1;
        }
    }
    assert!(options >= 7, "only {options} options");
}

/// A typed line follows `$ ` and continues after `> `; the rest of the block is its output.
fn prints_what_is_shown(block: &str) {
    let (typed, printed): (Vec<_>, Vec<_>) = block
        .lines()
        .partition(|l| l.starts_with("$ ") || l.starts_with("> "));
    let typed: Vec<_> = typed.iter().map(|line| &line[2..]).collect();
    assert_eq!(
        run(&typed.join("\n")).trim_end(),
        printed.join("\n"),
        "{block}"
    );
}

#[test]
fn the_demo_is_plain_in_a_pipe_and_what_it_prints_can_be_typed_again() {
    demo("", "fixtures/demo.txt");
}

#[test]
fn the_demo_in_tag_mode_is_the_same_conversation() {
    let native = demo("", "fixtures/demo.txt");
    let tag = demo("--tag", "fixtures/demo-tag.txt");
    assert!(
        tag.contains("\n<tool name=\"find_huts\">{"),
        "what the model wrote is shown: {tag}"
    );
    // Apart from that and from the options of llm-stream no line differs.
    let (before, rest) = tag
        .split_once("-- What the model wrote")
        .expect("a part of its own");
    let (_, after) = rest.split_once("\n-- ").expect("another part");
    let same = format!("{before}-- {after}")
        .replace("huts-tag.tape", "huts.tape")
        .replace(" --tools-mode tag", "");
    assert_eq!(same, native);
}

#[test]
fn the_demo_of_the_service_shows_the_calls_and_ends() {
    if !needs::programs(&["curl", "jq"]) {
        return;
    }
    let shown = demo_prints("--serve", "fixtures/demo-serve.txt");
    let (_, calls) = shown.split_once("-> find_huts ").expect("the first call");
    assert!(
        calls
            .lines()
            .nth(1)
            .is_some_and(|line| line.starts_with("-> forecast ")),
        "{shown}"
    );
}

/// Runs the demo with the commands of this build and from another folder, and compares its output
/// with a file.
fn demo_prints(option: &str, golden: &str) -> String {
    let built = run("dirname \"$(command -v llm-stream)\"");
    let shown = run(&format!(
        "root=$PWD; export TOOLPIPE_BIN=$(dirname \"$(command -v llm-stream)\"); cd / && \"$root/bin/demo\" {option}"
    ));
    assert!(!shown.contains('\u{1b}'), "{shown}");
    // The folder of the commands is shown from the repository's root where it lies below it, and
    // whole where it does not.
    let built = built.trim();
    let short = built.replacen(&testkit::root().display().to_string(), "$PWD", 1);
    let shown = shown.replace(&short, "$PWD/target/debug");
    let wrong = golden::compare(&testkit::root().join(golden), shown.as_bytes());
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    shown
}

/// The same, and runs the commands that the demo shows.
fn demo(option: &str, golden: &str) -> String {
    let shown = demo_prints(option, golden);
    let (_, by_hand) = shown
        .split_once("root of the repository:\n")
        .expect("the pipeline at the end");
    let again = run(&by_hand.replace("PATH=$PWD/target/debug:", "PATH="));
    assert!(
        again.contains("-> reserve") && again.contains("sleeping bags"),
        "{again}"
    );
    shown
}
