//! How recordings are read: what a label or a user says of them, and where their events are from.

use crate::split::Sizes;
use anyhow::{Result, bail};
use api::{Api, StreamOptions, Words};
use event::Event;
use json::ToolList;
use score::Label;
use tag::{Dialects, UnknownDialect};

/// The events are those of `llm-stream --replay`.
const WORDS: Words = Words {
    source: "llm-stream",
    overflow: "leave old messages out of the log, lower max_tokens, or ask a model with a longer context",
    no_tools: None,
    other_api: "use --api",
    max_frame: "--max-line",
};

/// The origin of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EventOrigin {
    /// The number of its stream in the file, from 1 on; 0 for an event between the streams of a
    /// log, such as a result.
    pub part: u64,
    /// The bytes of the file that had been read when the event was known: its frame ends there, or
    /// its line of a log or a tape.
    pub offset: u64,
    /// Recorded milliseconds: of a tape since the request, of a log since the beginning of the
    /// stream (its field `t`). `None` where the recording has no times.
    pub ms: Option<f64>,
}

/// A callback that receives the events of a recording.
pub(super) type Take<'t> = dyn FnMut(&Event<'_>, EventOrigin) + 't;

/// How to read a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadSettings {
    /// The API of a body; without it the body shows its API.
    pub api: Option<Api>,
    /// The number of the stream to read, from 1 on; `None` reads all streams.
    pub part: Option<u64>,
    /// The requested model, used if the recording has no model.
    pub model: Option<String>,
    /// The tools of the request as JSON in any provider's shape, if known; they become `tools` of
    /// `stream_start` where the recording has none. A list that cannot be read counts as unknown.
    pub tools: Option<String>,
    /// `tag` where calls are text, with the dialect.
    pub tools_mode: Option<String>,
    /// See `tools_mode`.
    pub dialect: Option<String>,
    /// Maximum bytes of a frame of a body or a line of a log; 64 MiB by default.
    pub max_line: Option<usize>,
    /// Whether a line of a log that is not an event is an error; by default it is skipped.
    pub strict: bool,
    /// The sizes of the pieces in which bytes reach the decoder; by default lines, or the reads of
    /// a tape.
    pub pieces: Option<Sizes>,
}

impl ReadSettings {
    /// Whether the stream with this number is to be read.
    pub(super) fn reads(&self, part: u64) -> bool {
        self.part.is_none_or(|wanted| wanted == part)
    }

    /// Returns the tools in OpenAI's shape, on one line; `None` if they are unknown.
    pub(super) fn tools(&self) -> Option<String> {
        openai_tools(self.tools.as_deref()?)
    }

    /// The fields of `stream_start` where the recording has none of them.
    pub(super) fn options(&self) -> StreamOptions {
        let tools = self.tools();
        let tools_mode = self
            .tools_mode
            .clone()
            .or_else(|| tools.as_deref().map(native_or_none));
        StreamOptions {
            tools,
            tools_mode,
            dialect: self.dialect.clone(),
            model: self.model.clone(),
            max_frame: self.max_line,
            words: WORDS,
            ..StreamOptions::default()
        }
    }
}

/// Converts a list of tools from any provider's shape to OpenAI's, on one line. Returns `None` if
/// the list cannot be read.
pub(super) fn openai_tools(json: &str) -> Option<String> {
    Some(ToolList::read(json).ok()?.openai(|_| true))
}

/// Returns the `tools_mode` of a request with these tools.
pub(super) fn native_or_none(tools: &str) -> String {
    if tools == "[]" { "none" } else { "native" }.to_owned()
}

impl ReadSettings {
    /// Returns the settings for the recording of `label`.
    ///
    /// # Errors
    /// Fails if the label has an unknown API, mode or dialect, or contradicts itself.
    pub(crate) fn of_label(label: &Label) -> Result<Self> {
        check(label)?;
        Ok(ReadSettings {
            api: label
                .api
                .as_deref()
                .map(api)
                .transpose()
                .map_err(|e| anyhow::anyhow!(e))?,
            part: label.part,
            model: label.model.clone(),
            tools: label.tools.as_ref().map(|tools| tools.get().to_owned()),
            tools_mode: label
                .tools_mode
                .clone()
                .or_else(|| label.dialect.as_ref().map(|_| "tag".to_owned())),
            dialect: label.dialect.clone(),
            ..ReadSettings::default()
        })
    }
}

/// Returns the API with this name.
///
/// # Errors
/// Returns a line that lists all names.
pub(crate) fn api(name: &str) -> Result<Api, String> {
    let names = || Api::ALL.map(Api::name).join(", ");
    Api::from_name(name)
        .ok_or_else(|| format!("the API \"{name}\" is unknown; use one of: {}", names()))
}

/// Returns the dialect for a value of `--dialect`.
///
/// # Errors
/// Fails if no dialect has this name.
pub(crate) fn dialect(names: &str) -> Result<String, UnknownDialect> {
    Dialects::default().chosen(Some(names))?;
    Ok(names.to_owned())
}

/// Rejects a label whose fields would be ignored or misread.
fn check(label: &Label) -> Result<()> {
    if let Some(mode) = label
        .tools_mode
        .as_deref()
        .filter(|mode| !["native", "tag", "none"].contains(mode))
    {
        bail!("the tools_mode \"{mode}\" of the label is unknown; use one of: native, tag, none");
    }
    if let Some(name) = label
        .dialect
        .as_deref()
        .filter(|names| dialect(names).is_err())
    {
        bail!("the dialect \"{name}\" of the label is unknown; see tag-parse --list-dialects");
    }
    // Requests may list tools that the provider runs, without a name, so the items are not looked
    // at.
    if label
        .tools
        .as_ref()
        .is_some_and(|tools| !tools.get().trim_start().starts_with(['[', '{']))
    {
        bail!("the tools of the label are not a list of tools; correct them or leave them out");
    }
    if label.has_tool_call == Some(false) && !label.calls.is_empty() {
        bail!("the label has calls, and its has_tool_call is false; correct one of them");
    }
    Ok(())
}

/// The options of commands that read single recordings, which have no label.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RecordingArgs {
    /// The API of a body that does not show it
    #[arg(short, long, value_name = "NAME", value_parser = api)]
    pub api: Option<Api>,
    /// `tag` if the calls of a recording are text
    #[arg(long, value_name = "MODE", value_parser = ["native", "tag", "none"])]
    pub tools_mode: Option<String>,
    /// The dialect of that text, or auto: any
    #[arg(short, long, value_name = "NAME", value_parser = dialect)]
    pub dialect: Option<String>,
}

impl RecordingArgs {
    /// How such a recording is read.
    pub(crate) fn settings(&self) -> ReadSettings {
        ReadSettings {
            api: self.api,
            tools_mode: self.tools_mode.clone(),
            dialect: self.dialect.clone(),
            ..ReadSettings::default()
        }
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AnswerKind {
    /// Lines of words
    Text,
    /// JSON objects, one a line
    Json,
}
