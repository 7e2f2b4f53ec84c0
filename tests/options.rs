//! The options of all commands: a letter means the same in each.

use std::collections::BTreeMap;
use std::process::Stdio;

const COMMANDS: [&str; 9] = [
    "llm-stream",
    "react",
    "tag-parse",
    "tc-detect",
    "tc-accumulate",
    "tool-exec",
    "tc-view",
    "tc-eval",
    "tc-serve",
];

/// The letter of each long option that has one, for all commands.
const LETTERS: [(&str, char); 17] = [
    ("--api", 'a'),
    ("--checker", 'c'),
    ("--continue", 'c'), // of react, which has no checkers
    ("--dialect", 'd'),
    ("--format", 'f'),
    ("--help", 'h'),
    ("--ignore-interrupts", 'i'),
    ("--jobs", 'j'),
    ("--log", 'l'),
    ("--model", 'm'),
    ("--quiet", 'q'),
    ("--replay", 'r'),
    ("--system", 's'),
    ("--tools", 't'),
    ("--verbose", 'v'),
    ("--version", 'V'),
    ("--view", 'f'), // of react, which hands it to tc-view as --format
];

/// What a script prints.
fn printed(script: &str) -> (String, String) {
    let output = testkit::bash(script, testkit::root())
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let [out, err] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (out, err)
}

/// The options that a command's help lists: the letter, if it has one, and the long name.
fn options(help: &str) -> Vec<(Option<char>, String)> {
    let mut options = Vec::new();
    for line in help
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'))
    {
        let mut words = line
            .split([' ', ',', '=', '['])
            .filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let letter = first.chars().nth(1).filter(|_| first.len() == 2);
        let long = if letter.is_some() {
            words.next().unwrap_or_default()
        } else {
            first
        };
        if long.starts_with("--") {
            options.push((letter, long.to_owned()));
        }
    }
    options
}

#[test]
fn a_letter_means_the_same_in_every_command() {
    let letters: BTreeMap<&str, char> = LETTERS.into();
    for command in COMMANDS {
        let (help, err) = printed(&format!("{command} --help"));
        let options = options(&help);
        assert!(
            options.len() > 4 && err.is_empty(),
            "{command}: {help}{err}"
        );
        for (letter, long) in options {
            assert_eq!(
                letter,
                letters.get(long.as_str()).copied(),
                "{command} {long}"
            );
        }
    }
}

#[test]
fn every_command_proposes_what_was_meant() {
    for (line, says) in [
        ("llm-stream --modle x hi", "did you mean '--model'?"),
        (
            "llm-stream --system-prompt x hi",
            "did you mean '--system'?",
        ),
        ("llm-stream --tools-mode nativ hi", "did you mean 'native'?"),
        ("llm-stream -model x hi", "did you mean '--model'?"),
        (
            "llm-stream --model m --temperature 0 --seed 1 hi",
            "write --param temperature=0",
        ),
        (
            "llm-stream --model m --api gemini --max-tokens=5 hi",
            "write --param 'generationConfig={\"maxOutputTokens\":5}'",
        ),
        (
            "llm-stream --model m why is the sky blue",
            "put quotes around the whole prompt",
        ),
        (
            "llm-stream --model m '-5 degrees: cold?'",
            "write -- before a prompt",
        ),
        ("react --modle x hi", "did you mean '--model'?"),
        (
            "react why is the sky blue",
            "put quotes around the whole question",
        ),
        (
            "react '-5 degrees: cold?'",
            "a question that begins with a dash goes after --question",
        ),
        ("tag-parse --dialekt hermes", "did you mean '--dialect'?"),
        ("tc-detect --checkers full", "did you mean '--checker'?"),
        ("tc-accumulate --tool x.json", "did you mean '--tools'?"),
        ("tool-exec --tool x.json", "did you mean '--tools'?"),
        ("tc-eval --checkers full", "did you mean '--checker'?"),
        ("tc-view --formats json", "did you mean '--format'?"),
        ("tc-view --format jsn", "did you mean 'json'?"),
    ] {
        let (out, err) = printed(&format!("{line}; echo status $?"));
        let command = line.split(' ').next().unwrap_or_default();
        assert_eq!(
            (out.as_str(), err.lines().count()),
            ("status 2\n", 1),
            "{line}: {err}"
        );
        assert!(
            err.starts_with(&format!("{command}: ")) && err.contains(says),
            "{line}: {err}"
        );
    }
}

/// One parser reads the value of `--dialect` in all commands.
#[test]
fn a_dialect_is_named_in_the_same_way_everywhere() {
    let commands = [
        "llm-stream -r fixtures/tapes/huts.tape --no-time -d",
        "tag-parse </dev/null -d",
        "tc-eval explain fixtures/tapes/huts.tape -d",
        "tc-eval label fixtures/tapes/huts.tape -d",
        "tc-serve -r fixtures/tapes/huts.tape --unix /nonexistent/socket -d",
    ];
    for command in commands {
        for names in ["auto", "hermes", "qwen"] {
            let (_, err) = printed(&format!("{command} {names}"));
            assert!(!err.contains("dialect"), "{command} {names}: {err}");
        }
        for (names, why) in [
            ("hermse", "unknown dialect 'hermse', did you mean 'hermes'?"),
            (
                "''",
                "no name, give one of tag-parse --list-dialects, or auto",
            ),
            ("auto,hermes", "unknown dialect 'auto'"),
        ] {
            let (_, err) = printed(&format!("{command} {names}"));
            assert!(err.contains(why), "{command} {names}: {err}");
        }
    }
}
