//! What was typed.

use crate::options::{self, ASK, FORMS, TypedOption};
use ::args::Document;
use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, Parser};
use redact::Redactor;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The forms of the output that react itself knows.
pub(crate) const ANSWER: &str = "answer";
pub(crate) const EVENTS: &str = "events";
pub(crate) const JSON: &str = "json";

const EXAMPLES: &str = "\
Any other option of llm-stream goes after --.

As the COMMAND of tc-serve (tc-serve -- 'react -t tools.json -m NAME') react answers each \
request: its messages are the conversation, and its last \
message the question.

Otherwise text on standard input is appended to the question: a pipe or a file is read to its \
end, at most --max-line bytes. A terminal and /dev/null count as empty. Only with -f events it is \
a log of events, which is the conversation so far.

In a pipe, a file or x=$(react …), standard output is the answer alone, or nothing after a \
failure; warnings and errors are on standard error. -f text is the conversation as text.

Exit status: 0 the model answered; 2 an error; 3 a call needs approval (asked on the terminal \
if there is one); 130 and 143 after SIGINT and SIGTERM. Unless it is 0, the last line is the \
command that continues.

Examples:
  export OPENAI_API_KEY=…; tools=fixtures/tools/tools.json
  react -t $tools -m gpt-5-mini -l trip.ndjson 'Is a hut free on Sunday?'
  react -c -m gpt-5 'And on Monday?'
  react -a hut.jpg --schema hut.schema.json 'What is on the picture?' | jq .
  message=$(git diff | react -m gpt-5-mini 'Write a commit message for this.')
  react -f events -m gpt-5-mini 'And on Monday?' <trip.ndjson | tc-view
  react -m gpt-5-mini --each --rows out.ndjson 'In French:' <words.txt
  git diff | react @commit
  react -t $tools --replay trip.ndjson
  react -t $tools -m gpt-5-mini -l trip.ndjson --question '-5 degrees: cold?'";

/// The agent loop, put together with pipes
///
/// The model calls tools, tool-exec runs them, and their results go back to the model, until it
/// answers without a call. Every event is appended to a log, which is the conversation, the
/// checkpoint and the trace: with the same --log, react continues where it stopped.
#[derive(Debug, Parser)]
#[command(
    name = "react",
    version,
    max_term_width = 100,
    override_usage = "react [OPTIONS] [@AGENT] [QUESTION] [-- OPTIONS OF llm-stream]",
    after_help = EXAMPLES
)]
pub(crate) struct Own {
    /// An agent of the configuration file, whose options count like typed ones
    #[arg(value_name = "@AGENT")]
    first: Option<String>,
    /// The question
    #[arg(value_name = "QUESTION")]
    second: Option<String>,
    /// What the words are, without the agent.
    #[arg(skip)]
    question: Option<String>,
    /// The same as @AGENT
    #[arg(long, value_name = "AGENT", hide_short_help = true)]
    agent: Option<String>,
    /// The question, where it begins with a dash or looks like an agent
    #[arg(
        id = "text",
        long = "question",
        value_name = "TEXT",
        allow_hyphen_values = true
    )]
    text: Option<String>,
    /// A file that belongs to the question: an image, a PDF or text (may be given many times)
    #[arg(short, long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
    /// The tools that the model may call: a tools file, a program, a folder of programs or an
    /// OpenAPI document (may be given many times)
    #[arg(short, long, value_name = "FILE")]
    pub tools: Vec<PathBuf>,
    /// The conversation so far, to which this one is appended [default: a file of its own,
    /// for --continue]
    #[arg(short, long, value_name = "FILE", allow_hyphen_values = true)]
    pub log: Option<PathBuf>,
    /// Continue the last conversation, or the one of this name (--list has the names), with the
    /// options that it had
    #[arg(
        short,
        long = "continue",
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with = "log"
    )]
    pub continued: Option<Option<String>>,
    /// List the stored conversations, the last one first, and stop
    #[arg(long)]
    pub list: bool,
    /// List the names for --model, and stop: those of the configuration file, and those that the
    /// server lists
    #[arg(long, hide_short_help = true)]
    pub models: bool,
    /// Ask about each line of standard input, --jobs at once, and print a row for each:
    /// {"input":…,"answer":…}, or the members of --schema; {{.}} in QUESTION is the line, {{.field}}
    /// a member of a line that is a JSON object. Nobody is asked for an approval
    #[arg(long, conflicts_with_all = ["attach", "log", "continued", "list", "replay", "expect",
        "approve_call", "deny_call", "answer_call", "print_pipeline"])]
    pub each: bool,
    /// With --each, append the rows to this file, and leave out the lines whose rows it has
    #[arg(long, value_name = "FILE", requires = "each", hide_short_help = true)]
    pub rows: Option<PathBuf>,
    /// With --each, print the rows as they come, not in the order of their lines
    #[arg(long, requires = "each", hide_short_help = true)]
    pub unordered: bool,
    /// Do not store the conversation for --continue (env TOOLPIPE_KEEP=0)
    #[arg(long, hide_short_help = true)]
    pub no_keep: bool,
    /// Replay this log: the answers of the model, the results of the tools and the approvals come
    /// from it, and nothing runs; without a question also the questions
    #[arg(long, value_name = "LOG", allow_hyphen_values = true)]
    pub replay: Option<PathBuf>,
    /// After the run, compare its log with this one by meaning (tc-eval diff): status 1 if they
    /// differ
    #[arg(long, value_name = "LOG", allow_hyphen_values = true)]
    pub expect: Option<PathBuf>,
    /// At most N answers of the model
    #[arg(long, value_name = "N", default_value_t = 20, alias = "steps")]
    pub max_steps: usize,
    /// Run this call, which waited for approval or may have run before the log was cut
    #[arg(
        long,
        value_name = "ID:HASH",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub approve_call: Vec<OsString>,
    /// Refuse this call; a question that is given too is asked after that
    #[arg(
        long,
        value_name = "ID:HASH",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub deny_call: Vec<OsString>,
    /// The result of this call, which has run
    #[arg(
        long,
        value_name = "ID:HASH=RESULT",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub answer_call: Vec<OsString>,
    /// Whether llm-stream, tag-parse, tc-accumulate and tc-view are threads of react, where one
    /// program has all commands, or processes as in --print-pipeline
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value_t,
        hide_short_help = true
    )]
    pub stages: StageKind,
    /// Print the pipeline as a line for bash, and stop
    #[arg(long)]
    pub print_pipeline: bool,
    #[command(flatten)]
    show: config::ShowArgs,
    /// Print the man page or the completions of a shell, and stop
    #[arg(
        long,
        value_name = "DOCUMENT",
        value_enum,
        exclusive = true,
        hide_short_help = true
    )]
    generate: Option<Document>,
    /// Options of llm-stream
    #[arg(last = true, hide = true)]
    pub rest: Vec<OsString>,
}

impl Own {
    /// The question among the words.
    fn question_of_words(&mut self) -> Result<Option<String>, clap::Error> {
        let conflict = |one: &str, other: &str| {
            let text = format!("the argument '{one}' cannot be used with '{other}'\n");
            clap::Error::raw(ErrorKind::ArgumentConflict, text)
        };
        let (first, second) = (self.first.take(), self.second.take());
        let question = match first {
            Some(word) if agent_of_word(&word).is_some() => match self.agent {
                Some(_) => return Err(conflict(&word, "--agent <AGENT>")),
                None => second,
            },
            first => {
                if let Some(word) = second {
                    let mut e = clap::Error::new(ErrorKind::UnknownArgument);
                    e.insert(ContextKind::InvalidArg, ContextValue::String(word));
                    return Err(e);
                }
                first
            }
        };
        match (&question, &self.text) {
            (Some(_), Some(_)) => Err(conflict("[QUESTION]", "--question <TEXT>")),
            _ => Ok(question),
        }
    }
}

/// The name of the agent, if this word is `@NAME`.
fn agent_of_word(word: &str) -> Option<&str> {
    word.strip_prefix('@')
        .filter(|name| config::is_agent_name(name))
}

/// The name of the agent that was typed.
pub(crate) fn agent(matches: &ArgMatches) -> Option<String> {
    let typed = |id| matches.get_one::<String>(id).map(String::as_str);
    let word = || typed("first").and_then(agent_of_word);
    typed("agent").or_else(word).map(str::to_owned)
}

/// How stages that start no processes run.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum StageKind {
    /// As threads, where this program has their commands.
    #[default]
    Threads,
    /// As processes.
    Processes,
}

/// The complete command line.
#[derive(Debug)]
pub(crate) struct Args {
    /// The options that react itself reads.
    pub own: Own,
    /// The options for stages, in the order in which they were typed.
    passed: Vec<TypedOption>,
    /// What the command that goes on has again: the words of each option.
    again: Vec<Vec<OsString>>,
}

impl Args {
    /// Returns the options for a stage.
    pub(crate) fn of_stage(&self, stage: &str) -> Vec<OsString> {
        let rest = self.own.rest.iter().filter(|_| stage == ASK).cloned();
        let typed = self.typed(|typed| typed.option.stages.contains(&stage));
        typed.into_iter().chain(rest).collect()
    }

    /// Returns the recording as an option for a stage.
    pub(crate) fn recording(&self, option: &str) -> impl Iterator<Item = OsString> {
        let log = self.own.replay.clone().map(|log| match log.is_relative() {
            // The prefix keeps a path that starts with a dash from being parsed as an option.
            true => OsString::from(std::path::Path::new(".").join(log)),
            false => log.into(),
        });
        let option = OsString::from(option);
        log.into_iter().flat_map(move |log| [option.clone(), log])
    }

    /// Takes an option out of those for the stages; returns its last value.
    pub(crate) fn take(&mut self, name: &str) -> Option<OsString> {
        let taken = self
            .passed
            .extract_if(.., |typed| typed.option.name == name);
        taken.last().and_then(|typed| typed.value)
    }

    /// The options of these names, for a stage that takes no others.
    pub(crate) fn of_name(&self, names: &[&str]) -> Vec<OsString> {
        self.typed(|typed| names.contains(&typed.option.name))
    }

    /// Returns the form of the output that was named; `None` if none was.
    pub(crate) fn form(&self) -> Option<&str> {
        let mut typed = self.passed.iter().rev();
        let named = typed.find(|typed| FORMS.contains(&typed.option.name))?;
        // --plain has no value.
        named
            .value
            .as_ref()
            .map_or(Some("text"), |form| form.to_str())
    }

    /// Whether standard input is a log and not text of the question. Only the command line decides,
    /// never the input.
    pub(crate) fn takes_log(&self) -> bool {
        self.form() == Some(EVENTS)
    }

    /// Returns the longest line that is read, in bytes.
    ///
    /// # Errors
    /// Fails if `--max-line` is not a size.
    pub(crate) fn max_line(&self) -> anyhow::Result<usize> {
        let typed = self.of_name(&["max-line"]);
        let typed = typed.last().and_then(|value| value.to_str());
        ::args::bytes(typed.unwrap_or(::args::MAX_LINE)).map_err(|e| anyhow!("--max-line: {e}"))
    }

    /// Returns the path of the answer's schema; `None` without `--schema`.
    pub(crate) fn schema(&self) -> Option<&Path> {
        let mut typed = self
            .passed
            .iter()
            .filter(|typed| typed.option.name == "schema");
        typed
            .next()
            .and_then(|typed| Some(Path::new(typed.value.as_ref()?)))
    }

    /// Returns the files that several processes read, each with its option name: several stages
    /// read a tools file, and `llm-stream` is started again for each turn.
    pub(crate) fn shared_files(&self) -> impl Iterator<Item = (&str, &Path)> {
        let Own { tools, replay, .. } = &self.own;
        let tools = tools.iter().map(|path| ("tools", path.as_path()));
        let replay = replay.iter().map(|path| ("replay", path.as_path()));
        let passed = self.passed.iter().filter_map(|typed| {
            let is_file = options::is_file(&typed.option.word());
            let path = typed.value.as_deref().filter(|_| is_file)?;
            Some((typed.option.name, Path::new(path)))
        });
        tools.chain(replay).chain(passed)
    }

    fn typed(&self, is_meant: impl Fn(&TypedOption) -> bool) -> Vec<OsString> {
        let meant = self.passed.iter().filter(|typed| is_meant(typed));
        let words =
            meant.flat_map(|typed| typed.option.words().into_iter().chain(typed.value.clone()));
        words.collect()
    }

    /// Returns the options that the command for continuing the run repeats.
    pub(crate) fn again(&self) -> impl Iterator<Item = &OsString> {
        self.again.iter().flatten().chain(self.rest())
    }

    /// The options of `llm-stream` with the word before them.
    fn rest(&self) -> impl Iterator<Item = &OsString> {
        static END: LazyLock<OsString> = LazyLock::new(|| "--".into());
        let end = (!self.own.rest.is_empty()).then(|| &*END);
        end.into_iter().chain(&self.own.rest)
    }

    /// Returns the options for the next question of this conversation, from any folder: paths are
    /// absolute, and options with secrets are left out, as are those that select how this run is
    /// shown.
    pub(crate) fn kept(&self) -> Vec<OsString> {
        let redactor = Redactor::of_environment(environment());
        let has_secret = |words: &[OsString]| {
            words.iter().any(|word| {
                let text = word.to_string_lossy();
                redactor.url(&text) != text
            })
        };
        let again = self.again.iter().filter(|words| !has_secret(words));
        let again = again.filter(|words| !options::is_of_one_run(&words[0]));
        let rest: Vec<_> = self.rest().cloned().collect();
        again
            .flat_map(|words| {
                let is_file = options::is_file(&words[0]);
                words.iter().enumerate().map(move |(at, word)| {
                    let path = Path::new(word);
                    if at == 1 && is_file && path.exists() {
                        std::path::absolute(path).map_or_else(|_| word.clone(), Into::into)
                    } else {
                        word.clone()
                    }
                })
            })
            .chain(if has_secret(&rest) { Vec::new() } else { rest })
            .collect()
    }

    /// Removes the defaults of the configuration from the options that the next run gets: that run
    /// reads the configuration itself. `is_typed` reports whether the option with a long name was
    /// typed.
    pub(crate) fn without_defaults(mut self, is_typed: impl Fn(&str) -> bool) -> Args {
        self.again.retain(|words| {
            let name = words[0].to_str().and_then(|word| word.strip_prefix("--"));
            name.is_some_and(&is_typed)
        });
        self
    }

    /// Adds the options that were typed for an earlier run, except those that were typed now. They
    /// replace the defaults of the configuration.
    ///
    /// # Errors
    /// When this release does not understand an option.
    pub(crate) fn after(mut self, earlier: &[OsString]) -> anyhow::Result<Args> {
        let words = [OsString::from("react")];
        let parsed = Args::try_parse_from(words.iter().chain(earlier));
        let earlier = parsed.map_err(|e| {
            let text = e.to_string();
            let first = text.lines().next().unwrap_or_default();
            anyhow!("the options of the last run are not understood ({first}), use --log with options of your own")
        })?;
        let keys = |again: &[Vec<OsString>]| -> Vec<OsString> {
            again.iter().map(|words| key(&words[0])).collect()
        };
        let (typed, typed_then) = (keys(&self.again), keys(&earlier.again));
        // Earlier releases stored how a run was shown.
        let is_new = |word: &OsString| !typed.contains(&key(word)) && !options::is_of_one_run(word);
        // Typed then, and not now.
        let is_kept = |word: &OsString| is_new(word) && typed_then.contains(&key(word));
        if is_kept(&"--tools".into()) {
            self.own.tools = earlier.own.tools;
        }
        if is_kept(&"--max-steps".into()) {
            self.own.max_steps = earlier.own.max_steps;
        }
        self.passed.retain(|default| {
            config::is_merged(default.option.name) || !is_kept(&default.option.word())
        });
        if self.own.rest.is_empty() {
            self.own.rest = earlier.own.rest;
        }
        let again = earlier.again.into_iter();
        self.again.extend(again.filter(|words| is_new(&words[0])));
        let passed = earlier.passed.into_iter();
        self.passed
            .extend(passed.filter(|typed| is_new(&typed.option.word())));
        Ok(self)
    }

    /// Returns the question; `None` if the command line has none.
    pub(crate) fn question(&self) -> Option<&str> {
        self.own.question.as_deref().or(self.own.text.as_deref())
    }

    /// Returns the user's decisions about calls, as options for `tool-exec`.
    pub(crate) fn decisions(&self) -> Vec<OsString> {
        let Own {
            approve_call,
            deny_call,
            answer_call,
            ..
        } = &self.own;
        [
            ("--approve-call", approve_call),
            ("--deny-call", deny_call),
            ("--answer-call", answer_call),
        ]
        .into_iter()
        .flat_map(|(option, calls)| {
            calls
                .iter()
                .flat_map(move |call| [option.as_ref(), call.as_ref()])
        })
        .map(OsStr::to_owned)
        .collect()
    }
}

/// What an option sets: two names of one option are the same.
fn key(word: &OsString) -> OsString {
    if word == "--plain" {
        "--format".into()
    } else {
        word.clone()
    }
}

/// Returns the environment variables that are valid UTF-8.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

impl CommandFactory for Args {
    fn command() -> Command {
        Own::command().args(options::all())
    }

    fn command_for_update() -> Command {
        Args::command()
    }
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Args, clap::Error> {
        let mut own = Own::from_arg_matches(matches)?;
        own.question = own.question_of_words()?;
        let mut typed = options::typed(matches);
        // The two options set one thing: a default of one gives way to the other.
        let is_form = |typed: &TypedOption| FORMS.contains(&typed.option.name);
        if let Some(last) = typed.iter().rfind(|typed| is_form(typed)) {
            let last = last.option.name;
            typed.retain(|typed| !is_form(typed) || typed.option.name == last);
        }
        let words = |typed: &TypedOption| {
            let words = [typed.option.word()].into_iter().chain(typed.value.clone());
            (typed.place, words.collect())
        };
        let mut again: Vec<(usize, Vec<OsString>)> = typed.iter().map(words).collect();
        let mut add = |name: &str, option: &str, value: OsString| {
            let is_typed =
                matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
            if let Some(at) = matches.index_of(name).filter(|_| is_typed) {
                again.push((at, vec![option.into(), value]));
            }
        };
        if let Some(replay) = &own.replay {
            add("replay", "--replay", replay.into());
        }
        add("max_steps", "--max-steps", own.max_steps.to_string().into());
        let places = matches.indices_of("tools").into_iter().flatten();
        let tools = own
            .tools
            .iter()
            .map(|tools| vec!["--tools".into(), tools.into()]);
        again.extend(places.zip(tools));
        again.sort_by_key(|(at, _)| *at);
        let again = again.into_iter().map(|(_, words)| words).collect();
        Ok(Args {
            passed: typed,
            own,
            again,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Args::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Parser for Args {}

/// Returns a suggestion for the unknown argument `unknown`.
pub(crate) fn remedy(unknown: &str) -> Option<String> {
    if !unknown.starts_with('-') {
        return Some("put quotes around the whole question: react 'QUESTION'".to_owned());
    }
    let typed = std::env::args().any(|word| word.starts_with(unknown) && word.contains(' '));
    typed.then(|| "put a question that begins with a dash after --question".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
