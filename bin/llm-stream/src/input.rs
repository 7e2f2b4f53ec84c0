//! Reads the input: standard input, which is a log of the conversation so far or text for the
//! question, the files that belong to the question, and the tool sources.

use crate::args::Args;
use crate::host::runtime;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use api::{Api, Conversation, InboundRequest, attachment, request_event};
use event::Raw;
use event::payload::Warning;
use json::Schema;
use serde_json::Value;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use stdio::{BadLine, BadLines, Filter, Input, InputBlock, Patience, StopSignals, unreadable};
use toolbox::{Access, Toolbox};

/// The content of standard input.
#[derive(Debug, Default)]
pub(crate) struct InputContent {
    /// The conversation in the log.
    pub conversation: Conversation,
    /// The API and the request of the log's last `request` event; `None` if the
    /// log has no such event.
    pub request: Option<(Api, InboundRequest)>,
    /// The text, if no line is a JSON object.
    pub text: Option<String>,
}

impl InputContent {
    /// Reports, with `--verbose`, what was read.
    pub(crate) fn report(&self, messages: &Messages) {
        match (&self.text, self.conversation.messages.len()) {
            (Some(text), _) => {
                messages.verbose(format_args!("standard input: text, {} bytes", text.len()))
            }
            (None, 0) => {}
            (None, count) => {
                messages.verbose(format_args!("standard input: a log, {count} messages"))
            }
        }
    }
}

/// Reads standard input to its end. Returns empty content if it is a terminal, or if a signal ended
/// the wait. Lines of a log that are not events become warnings, which are passed to `warn`.
///
/// # Errors
/// Fails at the first such line with `--strict`, for a message longer than `--max-line`, for text
/// that cannot be sent whole, and if standard input cannot be read.
pub(crate) fn read(
    options: &Filter,
    signals: &StopSignals,
    warn: &mut dyn FnMut(&Warning),
) -> Result<InputContent> {
    if stdio::stdin().is_terminal() {
        return Ok(InputContent::default());
    }
    let mut input = Input::open(&[], options.max_line)?;
    let mut log = InputLog::default();
    // Only a terminal gets the message, because elsewhere no user is watching.
    let is_watched = std::io::stderr().is_terminal();
    let patience = is_watched.then(|| Patience::new("llm-stream", WAITS));
    while let Some(block) = input.block(Some(signals), &mut || Ok(()))? {
        match block {
            InputBlock::Lines(lines) => lines
                .split_inclusive(|b| *b == b'\n')
                .for_each(|line| log.line(line, options.max_line)),
            InputBlock::TooLong(start, length) => log.bad(start, length, TOO_LONG),
        }
        if !log.has_object && log.text.len() > options.max_line {
            break; // too much to be sent, and it may never end
        }
    }
    drop(patience);
    if signals.seen().is_some() {
        return Ok(InputContent::default());
    }
    if let Some(BadInput { number, .. }) = log
        .bad
        .iter()
        .find(|bad| bad.what == TOO_LONG && may_be_message(&bad.start))
    {
        bail!(
            "standard input, line {number}: longer than --max-line, so a message would be missing; \
             raise --max-line"
        );
    }
    if !log.has_object && !options.strict && !Conversation::is_whole(&log.text) {
        return Ok(InputContent {
            text: log.text(options.max_line)?,
            ..InputContent::default()
        });
    }
    let request = last_request(&log.text);
    log.conversation(options, warn)
        .map(|conversation| InputContent {
            conversation,
            request,
            text: None,
        })
}

/// Returns the question: the prompt, followed by the text from standard input and that of `--text`.
pub(crate) fn question(prompt: Option<&str>, texts: [Option<String>; 2]) -> Option<String> {
    let texts = texts.into_iter().flatten().reduce(joined);
    match (prompt, texts) {
        (Some(prompt), Some(text)) if !prompt.is_empty() => Some(joined(prompt.to_owned(), text)),
        (_, Some(text)) => Some(text),
        (prompt, None) => prompt.map(str::to_owned),
    }
}

fn joined(first: String, second: String) -> String {
    format!("{first}\n\n{second}")
}

/// The files that belong to a question. The command reads them before it handles signals: opening a
/// pipe may block forever, and Ctrl-C must end that.
#[derive(Debug, Default)]
pub(crate) struct QuestionFiles {
    /// The text of `--text`.
    pub text: Option<String>,
    /// The schema of the answer.
    pub schema: Option<Value>,
    /// The files of `--attach`.
    attached: Vec<AttachedFile>,
}

#[derive(Debug)]
struct AttachedFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl QuestionFiles {
    /// Reads the files named by the arguments, at most `most` bytes of each text or attached file.
    ///
    /// # Errors
    /// Returns one line that names the file and its fault.
    pub(crate) fn read(args: &Args, most: usize) -> Result<QuestionFiles> {
        let text = args.text.as_deref().map(|path| {
            let name = path.display().to_string();
            ::args::text(&mut open(path)?, &name, most)
        });
        let schema = args.request.schema.as_deref().map(schema);
        let attached = args.attach.iter().map(|path| {
            let mut bytes = Vec::new();
            let read = open(path)?.take(most as u64).read_to_end(&mut bytes);
            read.map_err(|e| unreadable(path, &e))?;
            Ok(AttachedFile {
                path: path.clone(),
                bytes,
            })
        });
        Ok(QuestionFiles {
            text: text.transpose()?.flatten(),
            schema: schema.transpose()?,
            attached: attached.collect::<Result<_>>()?,
        })
    }

    /// Returns the message parts for the attached files.
    ///
    /// # Errors
    /// Fails if a file cannot be sent, or if all of them together are longer than a log line may
    /// be.
    pub(crate) fn attachments(&self, api: Api, most: usize) -> Result<Vec<Value>> {
        let mut parts = Vec::new();
        let mut length = 0;
        for AttachedFile { path, bytes } in &self.attached {
            let name = || path.display().to_string();
            let file = path.file_name().unwrap_or(path.as_os_str());
            let part = attachment(api, &file.to_string_lossy(), bytes).with_context(name)?;
            length += part.to_string().len();
            if length > most.saturating_sub(most / 8) {
                bail!(
                    "{}: too much for one message with --max-line {most}, attach less or raise it",
                    name()
                );
            }
            parts.push(part);
        }
        Ok(parts)
    }
}

fn open(path: &Path) -> Result<File> {
    Ok(File::open(path).map_err(|e| unreadable(path, &e))?)
}

fn schema(path: &Path) -> Result<Value> {
    ::args::file(path, |text| {
        let schema = Schema::new(text)?;
        if let [unknown, ..] = schema.unknown_types() {
            bail!(
                "JSON Schema has no type {unknown:?}, write string, number, integer, boolean, \
                 object, array or null"
            );
        }
        Ok::<_, anyhow::Error>(serde_json::from_str(text)?)
    })
}

const TOO_LONG: &str = "longer than --max-line";

/// The lines so far. A line that cannot be kept leaves an empty line, so that later line numbers
/// stay correct.
#[derive(Default)]
struct InputLog {
    text: String,
    lines: u64,
    /// Whether any line is a JSON object, which makes the input a log.
    has_object: bool,
    bad: Vec<BadInput>,
}

struct BadInput {
    number: u64,
    start: Vec<u8>,
    length: u64,
    what: String,
}

impl InputLog {
    fn line(&mut self, line: &[u8], max_line: usize) {
        let line = line
            .strip_prefix("\u{feff}".as_bytes())
            .filter(|_| self.lines == 0)
            .unwrap_or(line);
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        match std::str::from_utf8(line) {
            _ if bare.len() > max_line => self.bad(bare, bare.len() as u64, TOO_LONG),
            Err(_) => self.bad(bare, bare.len() as u64, "not UTF-8"),
            Ok(text) => {
                self.lines += 1;
                self.has_object |= !self.has_object && is_object(text);
                self.text.push_str(text);
            }
        }
    }

    fn bad(&mut self, start: &[u8], length: u64, what: &str) {
        self.lines += 1;
        self.text.push('\n');
        self.bad.push(BadInput {
            number: self.lines,
            start: start.to_vec(),
            length,
            what: what.to_owned(),
        });
    }

    /// Returns the messages of a log. A warning for each line that is not an event is passed to
    /// `warn`.
    fn conversation(
        mut self,
        options: &Filter,
        warn: &mut dyn FnMut(&Warning),
    ) -> Result<Conversation> {
        let (conversation, problems) = Conversation::read(&self.text);
        let lines: Vec<&str> = self.text.lines().collect();
        let written = lines.iter().filter(|line| !line.trim().is_empty()).count();
        if self.has_object && conversation.messages.is_empty() && problems.len() == written {
            stdio::message("llm-stream", NO_EVENT);
        }
        for problem in problems {
            let line = usize::try_from(problem.line - 1)
                .ok()
                .and_then(|at| lines.get(at).copied())
                .unwrap_or_default();
            let start = line.into();
            let length = line.len() as u64;
            self.bad.push(BadInput {
                number: problem.line,
                start,
                length,
                what: problem.what,
            });
        }
        self.bad.sort_by_key(|bad| bad.number);
        let mut seen = BadLines::default();
        for BadInput {
            number,
            start,
            length,
            what,
        } in &self.bad
        {
            let bad = BadLine {
                file: "standard input",
                number: *number,
                start,
                length: *length,
                what,
            };
            seen.warn(options, bad, &mut *warn)?;
        }
        Ok(conversation)
    }

    /// Returns the text; `None` if it is only white space. Trailing line breaks are dropped, as in
    /// the shell's `$(…)`.
    fn text(self, max_line: usize) -> Result<Option<String>> {
        if let Some(BadInput { number, what, .. }) = self.bad.first() {
            let remedy = if what == TOO_LONG {
                "raise it"
            } else {
                "convert it first, as with iconv -f LATIN1 -t UTF-8"
            };
            bail!("standard input, line {number}: {what}, {remedy}");
        }
        ::args::text(&mut self.text.as_bytes(), "standard input", max_line)
    }
}

/// Whether a line that starts with `start` may be a message of the conversation or its request: an
/// object that does not start like another event.
fn may_be_message(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    match start.strip_prefix(br#"{"type":""#) {
        Some(kind) => kind.starts_with(br#"message""#) || kind.starts_with(br#"request""#),
        None => start.is_empty() || start.starts_with(b"{"),
    }
}

/// Whether the line is a complete JSON object.
fn is_object(line: &str) -> bool {
    line.trim_start().starts_with('{') && Raw::parse(line).is_ok_and(|json| json.is_object())
}

const NO_EVENT: &str = "standard input holds JSON but no event and no message, so nothing of it is \
                        sent; to ask about it, put it into PROMPT: llm-stream \"… $(cat FILE)\"";

/// Returns the last `request` event of a log: the API that the client uses, and its request.
/// Earlier ones belong to earlier turns.
fn last_request(log: &str) -> Option<(Api, InboundRequest)> {
    // A line without the word is not parsed, because a log may be long.
    log.lines()
        .rev()
        .filter(|line| line.contains("\"request\""))
        .find_map(request_event)
}

const WAITS: &str = "still reading standard input to its end before the request is sent; add \
    </dev/null if there is nothing to read";

/// Fetches the document at a URL given with `--tools`.
fn document(url: &str) -> Result<String> {
    let found = runtime()?.block_on(client::document(url))?;
    found
        .context("the server has no document there, check the address (redirects are not followed)")
}

/// Returns the tools from these sources in OpenAI's format, as JSON on one line; `None` without any
/// source.
///
/// # Errors
/// Returns one line that names the source and its fault.
pub(crate) fn tools(sources: &[PathBuf]) -> Result<Option<String>> {
    let access = Access {
        fetch: Some(&document),
        ..Access::default()
    };
    let tools = Toolbox::read_if_any(sources, &access)?;
    let tools = tools
        .map(|tools| tools.parse(tool::Tools::read))
        .transpose()?;
    Ok(tools.map(|tools| tools.list(|_| true)))
}
