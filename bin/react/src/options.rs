//! The options that the stages of the pipeline take.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::ffi::OsString;

/// The stages, by command name.
pub(crate) const ASK: &str = "llm-stream";
pub(crate) const PARSE: &str = "tag-parse";
pub(crate) const MERGE: &str = "tc-accumulate";
pub(crate) const EXEC: &str = "tool-exec";
pub(crate) const VIEW: &str = "tc-view";

/// The options that name the form of the output, by long name.
pub(crate) const FORMAT: &str = "format";
pub(crate) const PLAIN: &str = "plain";
pub(crate) const FORMS: [&str; 2] = [FORMAT, PLAIN];

/// The options that say which server is asked, by long name.
pub(crate) const OF_SERVER: [&str; 9] = [
    "model",
    "api",
    "base-url",
    "api-key-env",
    "api-key-file",
    "api-key-command",
    "header",
    "connect-timeout",
    "idle-timeout",
];

/// All stages, in the order of the pipeline.
pub(crate) const STAGES: [&str; 5] = [ASK, PARSE, MERGE, EXEC, VIEW];

/// An option that react forwards to stages.
#[derive(Debug)]
pub(crate) struct PassedOption {
    /// The long name.
    pub name: &'static str,
    /// The short option letter; `None` if the option has only a long name.
    pub letter: Option<char>,
    /// The name of its value; empty for a flag.
    pub value: &'static str,
    /// The stages that take the option.
    pub stages: &'static [&'static str],
    /// The words that replace `--name` for the stages; empty if they use the same name.
    pub passed: &'static [&'static str],
    help: &'static str,
    /// The name of the option in an earlier release.
    alias: Option<&'static str>,
    /// Whether `-h` also lists the option.
    is_common: bool,
}

const fn row(
    stages: &'static [&'static str],
    name: &'static str,
    value: &'static str,
    help: &'static str,
) -> PassedOption {
    PassedOption {
        name,
        letter: None,
        value,
        stages,
        passed: &[],
        help,
        alias: None,
        is_common: false,
    }
}

impl PassedOption {
    /// Sets the letter. Options with a letter are typed often, so `-h` lists them.
    const fn letter(self, letter: char) -> PassedOption {
        PassedOption {
            letter: Some(letter),
            is_common: true,
            ..self
        }
    }

    const fn common(self) -> PassedOption {
        PassedOption {
            is_common: true,
            ..self
        }
    }

    const fn alias(self, alias: &'static str) -> PassedOption {
        PassedOption {
            alias: Some(alias),
            ..self
        }
    }

    const fn passed(self, passed: &'static [&'static str]) -> PassedOption {
        PassedOption { passed, ..self }
    }

    /// Returns the option as a clap argument.
    fn arg(&self) -> Arg {
        let action = if self.value.is_empty() {
            ArgAction::SetTrue
        } else {
            ArgAction::Append
        };
        let arg = Arg::new(self.name)
            .long(self.name)
            .short(self.letter)
            .help(self.help)
            .action(action)
            .help_heading(self.heading())
            .hide_short_help(!self.is_common)
            .aliases(self.alias);
        let arg = match self.passed {
            // The name of the option in its stage is accepted, too.
            [passed] => arg.alias(passed.trim_start_matches('-')),
            _ => arg,
        };
        if self.value.is_empty() {
            arg
        } else if self.name == FORMAT {
            let forms = view::FORMS.iter();
            let forms = forms.map(|form| PossibleValue::new(form.name).help(form.help));
            let forms = PossibleValuesParser::new(forms).map(OsString::from);
            arg.value_name(self.value).value_parser(forms)
        } else {
            arg.value_name(self.value)
                .value_parser(value_parser!(OsString))
                .allow_hyphen_values(true)
        }
    }

    fn heading(&self) -> &'static str {
        match self.stages {
            [ASK, ..] if self.stages.len() < STAGES.len() => {
                "The model (llm-stream --help has more of each)"
            }
            [EXEC] => "The calls (tool-exec --help has more of each)",
            [VIEW] => "What is shown (tc-view --help has more of each)",
            _ => "Every stage",
        }
    }

    /// Returns the option as typed on the command line.
    pub(crate) fn word(&self) -> OsString {
        format!("--{}", self.name).into()
    }

    /// Returns the words that stand for the option in its stages.
    pub(crate) fn words(&self) -> Vec<OsString> {
        match self.passed {
            [] => vec![self.word()],
            passed => passed.iter().map(OsString::from).collect(),
        }
    }

    /// Returns each occurrence of the option, with its position in the command line and its value.
    fn typed(&'static self, matches: &ArgMatches) -> Vec<TypedOption> {
        let places = matches.indices_of(self.name).into_iter().flatten();
        let typed = |(place, value)| TypedOption {
            place,
            option: self,
            value,
        };
        if self.value.is_empty() {
            let is_typed = matches.get_flag(self.name);
            return places
                .filter(|_| is_typed)
                .map(|at| typed((at, None)))
                .collect();
        }
        let values = matches.get_many::<OsString>(self.name).unwrap_or_default();
        places.zip(values.cloned().map(Some)).map(typed).collect()
    }
}

/// An option as typed.
#[derive(Debug)]
pub(crate) struct TypedOption {
    /// The position in the command line.
    pub place: usize,
    /// The option.
    pub option: &'static PassedOption,
    /// The value; `None` for a flag.
    pub value: Option<OsString>,
}

/// Every option that react forwards. `--tools` and the options that react itself reads are in
/// `args.rs`.
pub(crate) const PASSED: &[PassedOption] = &[
    row(
        &[ASK],
        "model",
        "NAME",
        "A model of the configuration file, or the provider's name of one (env LLM_MODEL)",
    )
    .letter('m'),
    row(
        &[ASK],
        "api",
        "NAME",
        "The API of the server: openai-chat, anthropic, gemini, ollama … (env LLM_API)",
    )
    .common(),
    row(
        &[ASK],
        "base-url",
        "URL",
        "The address of the API (env LLM_BASE_URL)",
    )
    .common(),
    row(
        &[ASK],
        "api-key-env",
        "NAME",
        "The environment variable that holds the key",
    ),
    row(&[ASK], "api-key-file", "FILE", "A file that holds the key"),
    row(
        &[ASK],
        "api-key-command",
        "COMMAND",
        "A shell command that prints the key, such as 'pass show openai'",
    ),
    row(&[ASK], "header", "K: V", "A header of the request"),
    row(&[ASK], "system", "TEXT", "The system prompt").letter('s'),
    row(&[ASK], "temperature", "NUMBER", "How random the answer is"),
    row(
        &[ASK],
        "max-tokens",
        "N",
        "Maximum number of tokens in the answer",
    ),
    row(
        &[ASK],
        "top-p",
        "NUMBER",
        "Only the likeliest tokens, until their probabilities reach this sum",
    ),
    row(&[ASK], "top-k", "N", "Only the N likeliest tokens"),
    row(
        &[ASK],
        "seed",
        "N",
        "Seed for sampling: the same number gives the same answer",
    ),
    row(&[ASK], "stop", "TEXT", "Text that ends the answer"),
    row(
        &[ASK],
        "price",
        "PRICE",
        "Dollars for a million tokens, INPUT/OUTPUT or INPUT/OUTPUT/CACHED",
    ),
    row(
        &[ASK],
        "no-prompt-cache",
        "",
        "Do not mark requests for Anthropic's prompt cache",
    ),
    row(
        &[ASK],
        "param",
        "KEY=JSON",
        "Additional member of the request body",
    ),
    row(
        &[ASK],
        "tools-mode",
        "MODE",
        "How tools are offered to the model: native, tag or auto",
    )
    .common(),
    row(
        &[ASK, PARSE],
        "dialect",
        "NAME",
        "The form in which the model writes calls as text, or auto",
    )
    .letter('d'),
    row(
        &[ASK, PARSE],
        "dialect-file",
        "FILE",
        "A file with your own dialects, for --dialect",
    ),
    row(
        &[ASK],
        "tool-choice",
        "CHOICE",
        "auto, none, required, or the name of the tool to call",
    ),
    row(
        &[ASK],
        "schema",
        "FILE",
        "The JSON Schema that the answer must fit; the model is asked again until it does",
    )
    .common(),
    row(
        &[ASK],
        "prefill",
        "TEXT",
        "The end of the prompt, which the model's text continues",
    ),
    row(
        &[ASK],
        "tape",
        "FILE",
        "A tape to answer from, or to record on (env LLM_TAPE)",
    ),
    row(
        &[ASK],
        "tape-mode",
        "MODE",
        "replay, record or auto (env LLM_TAPE_MODE)",
    ),
    row(
        &[ASK],
        "cut-at",
        "BYTE",
        "Fault: end each recorded answer before this byte",
    ),
    row(
        &[ASK],
        "error-at",
        "BYTE",
        "Fault: break the connection before this byte",
    ),
    row(
        &[ASK],
        "stall-at",
        "BYTE:MS",
        "Fault: stall this long before this byte",
    ),
    row(
        &[ASK],
        "dup-at",
        "BYTE",
        "Fault: duplicate the event that contains this byte",
    ),
    row(
        &[ASK],
        "resplit",
        "N|random:SEED",
        "Fault: split the same bytes differently",
    ),
    row(&[ASK], "retries", "N", "Number of retries of a request"),
    row(&[ASK], "connect-timeout", "TIME", "Longest time to connect"),
    row(
        &[ASK],
        "idle-timeout",
        "TIME",
        "Longest wait for the answer, and for each further piece of it",
    ),
    row(&[ASK], "no-stream", "", "Ask for the whole answer at once"),
    row(
        &[ASK],
        "verbose",
        "",
        "Report each request's address, its status, retries and waits",
    )
    .letter('v'),
    row(
        &[EXEC],
        "jobs",
        "N",
        "How many calls run at once; with --each, how many lines",
    )
    .letter('j'),
    row(&[EXEC], "timeout", "TIME", "How long a call may take").common(),
    row(
        &[EXEC],
        "allow",
        "GLOB",
        "Run only tools whose name matches",
    )
    .common(),
    row(
        &[EXEC],
        "deny",
        "GLOB",
        "Never run tools whose name matches",
    )
    .common(),
    row(
        &[EXEC],
        "ask",
        "CLASS",
        "Ask for approval before calls of this class and above: danger, write, all, none",
    )
    .alias("approve")
    .common(),
    row(
        &[EXEC],
        "policy",
        "FILE",
        "Rules by tool and by argument, and limits of the conversation",
    ),
    row(&[EXEC], "max-output", "BYTES", "How much a call may write"),
    row(&[EXEC], "max-calls", "N", "How many calls of one turn run"),
    row(
        &[EXEC],
        "max-questions",
        "N",
        "How many calls of a turn may wait for approval",
    ),
    row(
        &[EXEC],
        "max-repeats",
        "N",
        "After how many turns with the same result the same call is denied",
    ),
    row(
        &[EXEC],
        "cache",
        "DIR",
        "Keep results of tools that have a `cache` time in this folder",
    ),
    row(
        &[EXEC],
        "order",
        "ORDER",
        "The order of results: call or completion",
    ),
    row(
        &[EXEC],
        "sandbox",
        "HOW",
        "Sandbox for each command: none, landlock or bwrap",
    )
    .common(),
    row(
        &[EXEC],
        "progress",
        "",
        "Show the output of a call as it appears",
    ),
    row(
        &[EXEC],
        "trust",
        "",
        "Use files even if other users can write to them",
    ),
    row(
        &[VIEW],
        FORMAT,
        "FORM",
        "What standard output gets; on a terminal term, else answer; with events, standard input \
         is a log, and without it text of the question",
    )
    .letter('f')
    .alias("view"),
    row(&[VIEW], PLAIN, "", "The same as --format text").passed(&["--format", "text"]),
    row(
        &[VIEW],
        "color",
        "WHEN",
        "Whether to use colours: auto, always or never",
    ),
    row(
        &STAGES,
        "no-time",
        "",
        "Leave out times, so that runs can be compared",
    ),
    row(
        &STAGES,
        "strict",
        "",
        "Exit with status 2 at the first line that is not an event",
    ),
    row(&STAGES, "max-line", "BYTES", "Longest line that is read"),
];

/// Whether the option with this word selects only how a run is shown, so that the conversation does
/// not keep it.
pub(crate) fn is_of_one_run(word: &OsString) -> bool {
    let passed = PASSED.iter().find(|option| option.word() == *word);
    passed.is_some_and(|option| {
        option.stages == [VIEW] || ["verbose", "no-time"].contains(&option.name)
    })
}

/// Whether the value of the option with this word is a path.
pub(crate) fn is_file(word: &OsString) -> bool {
    let passed = PASSED.iter().find(|option| option.word() == *word);
    word == "--tools" || passed.is_some_and(|option| ["FILE", "DIR"].contains(&option.value))
}

/// Returns how react uses the configuration, where `agent` finds the agent that was typed. Options that only `llm-stream` takes are read there if
/// react has no value for them.
pub(crate) fn spec(agent: fn(&ArgMatches) -> Option<String>) -> config::Spec {
    let asks = PASSED.iter().filter(|option| option.stages == [ASK]);
    config::Spec {
        section: "react",
        variables: "REACT",
        model: None,
        shared: asks.map(|option| option.name).collect(),
        routes: false,
        agent: Some(agent),
    }
}

/// Returns the options as clap arguments.
pub(crate) fn all() -> impl Iterator<Item = Arg> {
    PASSED.iter().map(PassedOption::arg)
}

/// Returns the typed options that are forwarded, in the order in which they were typed.
pub(crate) fn typed(matches: &ArgMatches) -> Vec<TypedOption> {
    let mut typed: Vec<_> = PASSED
        .iter()
        .flat_map(|option| option.typed(matches))
        .collect();
    typed.sort_by_key(|typed| typed.place);
    typed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A stage that has lost an option would refuse it only once somebody types it.
    #[test]
    fn each_option_exists_in_each_stage_that_takes_it() {
        for stage in STAGES {
            let help = Command::new(testkit::program(stage)).arg("--help").output();
            let help = String::from_utf8(help.expect("it is built").stdout).expect("UTF-8");
            for option in PASSED
                .iter()
                .filter(|option| option.stages.contains(&stage))
            {
                let name = match option.passed {
                    [name, ..] => (*name).to_owned(),
                    [] => format!("--{}", option.name),
                };
                let takes_value = !option.value.is_empty() || option.passed.len() > 1;
                let is_there = help.lines().any(|line| {
                    let mut words = line.split([' ', ',']).filter(|word| !word.is_empty());
                    let has = words.any(|word| word == name);
                    has && words.next().is_some_and(|next| next.starts_with('<')) == takes_value
                });
                assert!(is_there, "{stage} {name}: {help}");
            }
        }
    }
}
