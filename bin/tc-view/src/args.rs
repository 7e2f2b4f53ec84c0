//! The arguments, and the view that they select for this terminal and environment.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, ValueEnum};
use event::payload::Message;
use event::{Event, Kind, Raw, View};
use std::path::PathBuf;
use view::{FORMS, FormRow, Surface};

/// Events for people: text as it streams, a card for each call, a report, or the final answer as JSON.
///
/// Control characters in the text of a model or a tool are written out (\x1b, \u202e), never sent.
/// The exit status is 2 after an `error` event.
#[derive(Debug, Parser)]
#[command(name = "tc-view", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files of events; standard input without any, or for `-`; with --follow also the address of a
    /// session
    pub files: Vec<PathBuf>,
    /// Go on as the file or the session grows, until Ctrl-C. A file is followed by its name, also
    /// before it is there; a session of tc-serve (http://HOST:PORT/v1/sessions/ID) also through lost
    /// connections and restarts, until it is removed
    #[arg(long)]
    pub follow: bool,
    /// The form; `term` on a terminal, else `text`
    #[arg(short, long, value_name = "FORM", value_parser = form())]
    format: Option<FormRow>,
    /// Whether to use colours, bold and dim; `always` colours plain text too
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    color: Colour,
    /// After Ctrl-C read on until the input ends, to show what the commands before this one still
    /// write
    #[arg(short, long)]
    pub ignore_interrupts: bool,
    /// Leave out what the user asked, for whoever has typed it at the same terminal
    #[arg(long, hide_short_help = true)]
    no_questions: bool,
    /// The name of the conversation for react --continue, which `json` adds
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    conversation: Option<String>,
    /// Add messages, arguments, results and error messages to the spans of `otlp`
    #[arg(long)]
    contents: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(flatten)]
    pub common: args::Common,
}

/// The service whose session is followed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceArgs {
    /// A file with the key for the service on its first line (else the variable TC_SERVE_KEY)
    #[arg(long, value_name = "FILE", requires = "follow")]
    pub key_file: Option<PathBuf>,
    /// Send the key over http to another machine, where anybody on the way can read it
    #[arg(long, requires = "follow")]
    pub allow_insecure: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-stream -t tools.json 'Is it raining?' | tc-accumulate |
    tool-exec -t tools.json | tc-view
  tc-view chat.ndjson
  tc-view --follow chat.ndjson
  tc-view --follow http://127.0.0.1:8790/v1/sessions/3fa9…
  tc-view --format answer chat.ndjson
  tc-view --format json chat.ndjson | jq -r .calls
  tc-view --format html chat.ndjson >chat.html
  tc-view --format otlp chat.ndjson >trace.jsonl

Without --color, the first of these that applies decides: NO_COLOR is not empty (never), \
CLICOLOR_FORCE is neither empty nor 0 (always), CLICOLOR is 0 (never).";

/// The parser of `--format`: the names of the forms, which `--help` lists.
fn form() -> impl TypedValueParser<Value = FormRow> {
    let names: Vec<_> = FORMS
        .iter()
        .map(|form| PossibleValue::new(form.name).help(form.help))
        .collect();
    PossibleValuesParser::new(names).map(|name| {
        *FORMS
            .iter()
            .find(|form| form.name == name)
            .unwrap_or(&FORMS[0])
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Colour {
    /// On a terminal, unless environment variables decide otherwise
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

impl Colour {
    /// Resolves `auto` by the common environment variables of <https://no-color.org> and
    /// <https://bixense.com/clicolors>. `get` reads a variable; an empty one counts as not set.
    fn or_environment(self, get: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        if self != Colour::Auto {
            self
        } else if get("NO_COLOR").is_some() {
            Colour::Never
        } else if get("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
            Colour::Always
        } else if get("CLICOLOR").is_some_and(|value| value == "0") {
            Colour::Never
        } else {
            Colour::Auto
        }
    }
}

impl Args {
    /// Whether the view draws on a terminal, where a message on standard error would be drawn over.
    pub(crate) fn draws(&self) -> bool {
        self.format.unwrap_or(FORMS[0]).name == FORMS[0].name && stdio::terminal().is_some()
    }

    /// The view that `--format` names, or the default.
    pub(crate) fn view(&self) -> Box<dyn View> {
        let surface = Surface {
            size: stdio::terminal,
            is_terminal: stdio::stdout().is_terminal(),
            colour: match self.color.or_environment(|name| std::env::var(name).ok()) {
                Colour::Auto => None,
                colour => Some(colour == Colour::Always),
            },
            no_time: self.common.no_time,
            contents: self.contents,
            conversation: self.conversation.as_deref(),
        };
        let view = (self.format.unwrap_or(FORMS[0]).view)(&surface);
        if self.no_questions {
            Box::new(WithoutQuestions(view))
        } else {
            view
        }
    }
}

/// A view that gets no message of the user.
struct WithoutQuestions(Box<dyn View>);

impl View for WithoutQuestions {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let of_user = |message: Raw<'_>| message.get_str("role").as_deref() == Some("user");
        let is_question =
            event.kind() == Kind::Message && Message::read(event).message.with(of_user);
        if !is_question {
            self.0.push(event, out);
        }
    }

    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        self.0.interrupt(out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.0.finish(out);
    }

    fn shows_notices(&self) -> bool {
        self.0.shows_notices()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_comes_before_the_environment() {
        use Colour::{Always, Auto, Never};
        for (option, set, expected) in [
            (Auto, &[][..], Auto),
            (Auto, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], Never),
            (
                Auto,
                &[("NO_COLOR", ""), ("CLICOLOR_FORCE", "1"), ("CLICOLOR", "0")],
                Always,
            ),
            (Auto, &[("CLICOLOR_FORCE", "0"), ("CLICOLOR", "0")], Never),
            (Auto, &[("CLICOLOR_FORCE", "0"), ("CLICOLOR", "1")], Auto),
            (Always, &[("NO_COLOR", "1")], Always),
            (Never, &[("CLICOLOR_FORCE", "1")], Never),
        ] {
            let get = |name: &str| {
                set.iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(option.or_environment(get), expected, "{option:?} {set:?}");
        }
    }
}
