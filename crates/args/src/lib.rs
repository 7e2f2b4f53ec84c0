//! What all commands share: the common options, usage errors on one line, and the end of `main`.

mod brief;
mod generate;
pub mod program;

pub use generate::Document;

use anyhow::{Context as _, anyhow, bail};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Parser};
use event::unit::{self, UnitError};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stdio::{Failure, Status};
use trace::TraceContext;

/// The usual `--max-line`.
pub const MAX_LINE: &str = "64M";

/// The options of every command that reads events.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Leave out times (`t`, `timestamp`, `duration_ms`) from the events this command writes, so
    /// that runs can be compared
    #[arg(long, help_heading = "Common options")]
    pub no_time: bool,
    /// Exit with status 2 at the first line that is not an event, instead of passing it on as a
    /// warning
    #[arg(long, help_heading = "Common options")]
    pub strict: bool,
    /// Longest line that is read, in bytes (K, M and G are understood)
    #[arg(long, value_name = "BYTES", default_value = MAX_LINE, value_parser = bytes, help_heading = "Common options")]
    pub max_line: usize,
    /// Print the man page or the completions of a shell, and stop
    #[arg(
        long,
        value_name = "DOCUMENT",
        value_enum,
        exclusive = true,
        help_heading = "Common options"
    )]
    generate: Option<Document>,
}

impl Common {
    /// The driver's settings for `command` over `files`.
    pub fn filter(&self, command: &'static str, files: Vec<PathBuf>) -> stdio::Filter {
        let Common {
            no_time,
            strict,
            max_line,
            ..
        } = *self;
        let emit = stdio::Emit::Events;
        let (stop_when_settled, ignore_interrupts) = (false, false);
        stdio::Filter {
            command,
            files,
            no_time,
            strict,
            max_line,
            emit,
            stop_when_settled,
            ignore_interrupts,
        }
    }
}

/// Reads a number of bytes above 0: `4096`, `64K`, `64M`, `1G` (powers of 1024).
///
/// # Errors
/// What is wrong with the text, for a usage message.
pub fn bytes(text: &str) -> Result<usize, String> {
    let size = unit::size(text).map_err(|e| e.to_string())?;
    usize::try_from(size)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| UnitError::Range.to_string())
}

/// Reads the text file `path` and returns the result of `read`.
///
/// # Errors
/// Those of [`stdio::file_text`] and of `read`; the error names the file.
pub fn file<T, E>(path: &Path, read: impl FnOnce(&str) -> Result<T, E>) -> anyhow::Result<T>
where
    Result<T, E>: anyhow::Context<T, E>,
{
    let name = || path.display().to_string();
    let text = stdio::file_text(path).with_context(name)?;
    read(&text).with_context(name)
}

/// Reads a text of at most `most` bytes; `None` if it is only white space. Line ends at its end do
/// not count, as in the shell's `$(…)`. `name` is where it comes from.
///
/// # Errors
/// When it cannot be read, is longer (no more than that is read of it) or is not UTF-8.
pub fn text(from: &mut dyn Read, name: &str, most: usize) -> anyhow::Result<Option<String>> {
    let mut bytes = Vec::new();
    from.take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| anyhow!("{name}: {e}"))?;
    if bytes.len() > most {
        bail!("{name}: larger than {most} bytes; raise --max-line or shorten it");
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        anyhow!(
            "{name}, line {line}: not UTF-8, convert it first, as with iconv -f LATIN1 -t UTF-8"
        )
    })?;
    let text = text.trim_end_matches(['\n', '\r']);
    Ok((!text.trim().is_empty()).then(|| text.to_owned()))
}

/// Runs a command: parses its arguments and ends with the status of `work`. A usage error is one
/// line and status 2; [`Failure::Gone`] anywhere under an error is a silent 0.
pub fn run<A: Parser>(work: impl FnOnce(A) -> anyhow::Result<Status>) -> ExitCode {
    run_with(|_| None, work)
}

/// As [`run`]. For an argument that the command does not have, `remedy` may return what to write
/// instead; else a similar option is suggested.
pub fn run_with<A: Parser>(
    remedy: impl Fn(&str) -> Option<String>,
    work: impl FnOnce(A) -> anyhow::Result<Status>,
) -> ExitCode {
    run_with_defaults(remedy, |_, _| Ok((vec![], ())), |args, ()| work(args))
}

/// An option that nobody typed, with a value from elsewhere.
#[derive(Clone, Debug)]
pub struct DefaultOption {
    /// Its long name, with the dashes.
    pub option: String,
    /// Its value; `None` for an option without one.
    pub value: Option<OsString>,
    /// Where the value is, for messages.
    pub origin: String,
}

impl DefaultOption {
    /// The word of the command line.
    pub fn word(&self) -> OsString {
        let mut word = OsString::from(&self.option);
        if let Some(value) = &self.value {
            word.push("=");
            word.push(value);
        }
        word
    }
}

/// As [`run_with`]. `defaults` finds options that were not typed, by what was; `work` gets what
/// else it finds.
pub fn run_with_defaults<A: Parser, D>(
    remedy: impl Fn(&str) -> Option<String>,
    defaults: impl FnOnce(&clap::Command, &ArgMatches) -> anyhow::Result<(Vec<DefaultOption>, D)>,
    work: impl FnOnce(A, D) -> anyhow::Result<Status>,
) -> ExitCode {
    let known = A::command();
    let command = known.get_name().to_owned();
    let refuse = |text: &str| {
        stdio::message(&command, text);
        ExitCode::from(Status::Error.code())
    };
    let typed = stdio::arguments();
    if let Some(text) = single_dash(&known, &typed) {
        return refuse(&text);
    }
    let mut known = if brief::is_asked_for(typed.iter().skip(1).filter_map(|word| word.to_str())) {
        brief::of(known, &command)
    } else {
        known
    };
    let mut matches = match known.try_get_matches_from_mut(&typed) {
        Ok(matches) => matches,
        Err(e) if !e.use_stderr() => return ExitCode::from(print(&command, &e).code()),
        Err(e) => return refuse(&usage(&command, &e, remedy)),
    };
    // Looked for before the arguments that a command requires.
    if let Some(document) = matches.get_one::<Document>("generate") {
        return ExitCode::from(document.print(A::command()).code());
    }
    let (options, found) = match defaults(&known, &matches) {
        Ok(found) => found,
        Err(e) => return refuse(&format!("{e:#}")),
    };
    if !options.is_empty() {
        let words = typed.iter().take(1).cloned();
        let words = words.chain(options.iter().map(DefaultOption::word));
        let words = words.chain(typed.iter().skip(1).cloned());
        matches = match known.try_get_matches_from_mut(words) {
            Ok(matches) => matches,
            Err(e) => return refuse(&misfit(&command, &e, &options)),
        };
    }
    let args = A::from_arg_matches_mut(&mut matches);
    let args = match args.map_err(|e| e.format(&mut A::command())) {
        Ok(args) => args,
        Err(e) => return refuse(&usage(&command, &e, remedy)),
    };
    let status = match work(args, found) {
        Ok(status) => status,
        Err(e) if matches!(e.downcast_ref::<Failure>(), Some(Failure::Gone)) => Status::Done,
        Err(e) => {
            stdio::message(&command, &format!("{e:#}"));
            Status::Error
        }
    };
    ExitCode::from(status.code())
}

/// The message for a default that its option does not take: it begins with the place of the value.
pub fn misfit(command: &str, e: &clap::Error, options: &[DefaultOption]) -> String {
    let text = usage(command, e, |_| None);
    let named = context(e, ContextKind::InvalidArg).unwrap_or_default();
    let name = named.split([' ', '=']).next().unwrap_or_default();
    match options.iter().find(|default| default.option == name) {
        Some(default) => format!("{}: {text}", default.origin),
        None => text,
    }
}

/// Prints `--help` and `--version`. A reader that leaves (`--help | head -1`) is not an error.
fn print(command: &str, e: &clap::Error) -> Status {
    let mut stdout = stdio::stdout();
    let printed = match stdout.is_terminal() {
        true => e.print(),
        false => stdout.write_all(e.render().to_string().as_bytes()),
    };
    match printed {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            stdio::message(command, &Failure::Write(e).to_string());
            Status::Error
        }
        _ => Status::Done,
    }
}

/// The message for a long option behind one dash: clap would read `-model` as `-m odel`.
fn single_dash(command: &clap::Command, typed: &[OsString]) -> Option<String> {
    let words = typed
        .iter()
        .skip(1)
        .map(|word| word.to_str().unwrap_or_default())
        .take_while(|word| *word != "--");
    let name = |word: &'_ str| {
        word.strip_prefix('-')?
            .split('=')
            .next()
            .filter(|name| name.len() > 1)
            .map(str::to_owned)
    };
    let long = |name: &String| {
        command
            .get_arguments()
            .any(|option| option.get_long() == Some(name))
    };
    let name = words.filter_map(name).find(long)?;
    Some(format!(
        "-{name}: did you mean '--{name}'? see '{} --help'",
        command.get_name()
    ))
}

/// The message for a usage error: clap's first paragraph on one line, and a remedy.
fn usage(command: &str, e: &clap::Error, remedy: impl Fn(&str) -> Option<String>) -> String {
    let text = e.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = first
        .trim_start_matches("error: ")
        .split_whitespace()
        .collect();
    let what = words.join(" ");
    let what = what.trim_end_matches(',');
    let unknown =
        context(e, ContextKind::InvalidArg).filter(|_| e.kind() == ErrorKind::UnknownArgument);
    if let Some(remedy) = unknown.and_then(remedy) {
        return format!("{what}, {remedy}");
    }
    match context(e, ContextKind::SuggestedArg).or_else(|| context(e, ContextKind::SuggestedValue))
    {
        // The list of all values would push the likely one off the line.
        Some(similar) => {
            let what = what.split(" [possible values").next().unwrap_or(what);
            format!("{what}, did you mean '{similar}'? see '{command} --help'")
        }
        None => format!("{what}, see '{command} --help'"),
    }
}

fn context(e: &clap::Error, kind: ContextKind) -> Option<&str> {
    match e.get(kind)? {
        ContextValue::String(text) => Some(text),
        ContextValue::Strings(texts) => texts.first().map(String::as_str),
        _ => None,
    }
}

/// Writes a warning if the option `old` was typed, whose name is `new` now.
pub fn warn_of_old_name(command: &str, old: &str, new: &str) {
    let typed = std::env::args_os()
        .skip(1)
        .take_while(|word| word != "--")
        .any(|word| word.to_string_lossy().split('=').next() == Some(old));
    if typed {
        let text = format!("write {new} for {old}, which goes with the next release");
        stdio::message(command, &text);
    }
}

/// The trace context of this process, from the environment variables `TRACEPARENT` and
/// `TRACESTATE` (<https://opentelemetry.io/docs/specs/otel/context/env-carriers/>).
pub fn trace() -> Option<TraceContext> {
    let [parent, state] = trace::VARIABLES.map(|name| std::env::var(name).ok());
    TraceContext::of(&parent?, state.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// A command for the tests.
    #[derive(Debug, Parser)]
    #[command(name = "it")]
    struct It {
        #[arg(short, long)]
        model: Option<String>,
        #[arg(long, value_parser = ["tag", "native"])]
        form: Option<String>,
    }

    #[test]
    fn a_usage_error_is_one_line_that_names_what_was_meant() {
        let said = |typed: &[&str]| {
            let typed: Vec<&str> = ["it"].into_iter().chain(typed.iter().copied()).collect();
            let words: Vec<OsString> = typed.iter().map(OsString::from).collect();
            let remedy = |unknown: &str| (unknown == "--seed").then(|| "write --form".to_owned());
            single_dash(&It::command(), &words).unwrap_or_else(|| {
                usage(
                    "it",
                    &It::try_parse_from(typed).expect_err("an error"),
                    remedy,
                )
            })
        };
        assert_eq!(
            said(&["--modle", "x"]),
            "unexpected argument '--modle' found, did you mean '--model'? see 'it --help'"
        );
        assert_eq!(
            said(&["--modle=x"]),
            "unexpected argument '--modle' found, did you mean '--model'? see 'it --help'"
        );
        assert_eq!(
            said(&["--seed", "1"]),
            "unexpected argument '--seed' found, write --form"
        );
        assert_eq!(
            said(&["--zzz"]),
            "unexpected argument '--zzz' found, see 'it --help'"
        );
        assert_eq!(
            said(&["-model", "x"]),
            "-model: did you mean '--model'? see 'it --help'"
        );
        assert_eq!(
            said(&["-model=x"]),
            "-model: did you mean '--model'? see 'it --help'"
        );
        assert_eq!(
            said(&["--form", "nativ"]),
            "invalid value 'nativ' for '--form <FORM>', did you mean 'native'? see 'it --help'"
        );
        assert!(
            single_dash(
                &It::command(),
                &["it", "-mx", "--model", "--", "-model"].map(OsString::from)
            )
            .is_none()
        );
    }

    #[test]
    fn sizes_are_above_0() {
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(
            bytes("x").unwrap_err(),
            "not a number of bytes, such as 65536 or 64M"
        );
        assert!(bytes("0").is_err() && bytes("-1").is_err());
    }
}
