//! The options of all commands: a letter means the same in each.

use std::collections::BTreeMap;
use std::process::Stdio;

const COMMANDS: [&str; 14] = [
    "llm-stream",
    "react",
    "tag-parse",
    "tc-detect",
    "tc-accumulate",
    "tool-exec",
    "tc-view",
    "tc-eval",
    "tc-serve",
    "tc-eval label",
    "tc-eval explain",
    "tc-eval diff",
    "tc-eval merge",
    "tc-eval fit",
];

/// The letter of each long option that has one, for all commands.
const LETTERS: [(&str, char); 18] = [
    ("--api", 'a'),
    ("--attach", 'a'), // of react, where --api has no letter
    ("--checker", 'c'),
    ("--continue", 'c'), // of react, which has no checkers
    ("--dialect", 'd'),
    ("--format", 'f'),
    ("--help", 'h'),
    ("--ignore-interrupts", 'i'),
    ("--jobs", 'j'),
    ("--log", 'l'),
    ("--model", 'm'),
    ("--output", 'o'),
    ("--quiet", 'q'),
    ("--replay", 'r'),
    ("--system", 's'),
    ("--tools", 't'),
    ("--verbose", 'v'),
    ("--version", 'V'),
];

/// The letters that stand for two long options, and why that is one meaning to whoever types them.
const SHARED_LETTERS: [(char, &str); 2] = [
    (
        'a',
        "the users of react know -a as --attachment of other programs, and its --api has no letter",
    ),
    (
        'c',
        "react has no checkers, and its users know -c as --continue of other programs",
    ),
];

/// The options of one name that mean different things in two commands, and why the name stays. All
/// others mean the same wherever they are: a number of the same things, a file of the same kind.
const DIFFERENT: [(&str, &str); 5] = [
    (
        "--key-file",
        "the file of a service's keys: tc-serve has the keys of its clients, tc-view sends the one on the first line",
    ),
    (
        "--list",
        "a list in place of what the command does: tools, conversations, or what each checker did",
    ),
    (
        "--max-output",
        "how much a command may write: for a call, and in tc-serve for an answer",
    ),
    (
        "--partial",
        "what is not final yet: arguments that are still coming, or counts of a part of a corpus",
    ),
    (
        "--timeout",
        "how long the command's own work may take: a call of tool-exec, a request of llm-stream",
    ),
];

/// The options whose value is written in another way in one command, and why.
const OTHER_VALUES: [(&str, &str, &str); 4] = [
    (
        "tag-parse",
        "--dialect",
        "it alone reads a text by several dialects",
    ),
    (
        "react",
        "--replay",
        "a log, which has the answers of the model and the results of the tools",
    ),
    ("tool-exec", "--replay", "the results of a log"),
    ("react", "--expect", "a log, as for its --replay"),
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
            let has_other = matches!(
                (command, &*long),
                ("react", "--api")
                    | ("llm-stream", "--attach")
                    | ("react" | "tool-exec", "--replay")
            );
            let expected = letters.get(long.as_str()).filter(|_| !has_other);
            assert_eq!(letter, expected.copied(), "{command} {long}");
        }
    }
}

#[test]
fn no_letter_stands_for_two_options() {
    let mut longs: BTreeMap<char, Vec<&str>> = BTreeMap::new();
    for (long, letter) in LETTERS {
        longs.entry(letter).or_default().push(long);
    }
    let shared: Vec<char> = longs
        .iter()
        .filter(|(_, longs)| longs.len() > 1)
        .map(|(letter, _)| *letter)
        .collect();
    assert_eq!(
        shared,
        SHARED_LETTERS.map(|(letter, _)| letter),
        "{longs:?}"
    );
}

/// The value of each option of a help text, as the help writes it; empty for a flag.
fn values(help: &str) -> BTreeMap<String, String> {
    let rows = help.lines().map(str::trim_start);
    let rows = rows.filter(|row| row.starts_with('-'));
    rows.filter_map(|row| {
        let (_, long) = row.split_once("--")?;
        // An explanation on the same line follows two spaces.
        let long = long.split("  ").next().unwrap_or_default().trim_end();
        let end = long.find([' ', '=', '[']).unwrap_or(long.len());
        let value = long[end..].trim_start_matches([' ', '=']);
        Some((format!("--{}", &long[..end]), value.to_owned()))
    })
    .collect()
}

#[test]
fn options_of_one_name_take_one_kind_of_value() {
    let mut seen: BTreeMap<String, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for command in COMMANDS {
        let (help, _) = printed(&format!("COLUMNS=300 {command} --help"));
        for (long, value) in values(&help) {
            let is_other = OTHER_VALUES
                .iter()
                .any(|(c, o, _)| *c == command && *o == long);
            if !is_other {
                seen.entry(long)
                    .or_default()
                    .entry(value)
                    .or_default()
                    .push(command);
            }
        }
    }
    let several = seen.iter().filter(|(_, values)| values.len() > 1);
    let several: Vec<_> = several.collect();
    assert!(several.is_empty(), "write one value name: {several:?}");
    // The names of old options do not come back with another meaning.
    for (long, commands) in [("--log", vec!["react", "tool-exec"]), ("--steps", vec![])] {
        let has: Vec<&str> = seen
            .get(long)
            .into_iter()
            .flatten()
            .flat_map(|(_, commands)| commands.clone())
            .collect();
        assert_eq!(has, commands, "{long}");
    }
    for (long, why) in DIFFERENT {
        let commands = seen
            .get(long)
            .into_iter()
            .flatten()
            .map(|(_, commands)| commands.len())
            .sum::<usize>();
        assert!(
            commands > 1,
            "{long} is in one command alone, so that this needs no reason: {why}"
        );
    }
}

#[test]
fn old_names_of_options_are_understood_for_a_release() {
    for line in [
        "tc-serve --log --steps 3 --version",
        "tc-serve -l --version",
        "react --steps 3 --version",
        "react --view text --version",
    ] {
        let (out, err) = printed(line);
        assert!(out.contains(' ') && err.is_empty(), "{line}: {out}{err}");
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
            "llm-stream --model m --temprature 0 hi",
            "did you mean '--temperature'?",
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
            "put a question that begins with a dash after --question",
        ),
        ("tag-parse --dialekt hermes", "did you mean '--dialect'?"),
        ("tc-detect --checkers full", "did you mean '--checker'?"),
        ("tc-accumulate --tool x.json", "did you mean '--tools'?"),
        ("tool-exec --tool x.json", "did you mean '--tools'?"),
        ("tc-eval --checkers full", "did you mean '--checker'?"),
        ("react -f jsn hi", "did you mean 'json'?"),
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
