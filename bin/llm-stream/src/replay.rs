//! `--replay`: reads recorded bodies and tapes as streams, one after another.

use crate::args::Args;
use crate::host::{StdoutHost, StopWatch, runtime};
use crate::input;
use crate::output::{Messages, Out};
use ::ask::{
    COMMAND, Host, ResponseEnd, ToolsModeChoice, dialects, end, named_dialect, write_events,
};
use anyhow::{Context, Result, bail};
use api::tape::{Tape, TapeExchange};
use api::{Api, LOOKED_AT, RecordingForm, Stream, StreamOptions, recognise, unrecognised};
use client::{Body, FileBody, RecordedAnswer};
use json::ToolList;
use redact::Redactor;
use serde_json::Value;
use std::io;
use std::path::Path;
use std::time::SystemTime;
use stdio::{Failure, Status, unreadable};

/// Writes the events of all files. Returns status 2 if any `error` event was written or a file
/// could not be read, otherwise 0.
///
/// # Errors
/// Fails with one line for invalid arguments and for a file that does not exist, and if standard
/// output fails.
pub(crate) fn replay(args: &Args) -> Result<Status> {
    let files = &args.replay.files;
    for path in files.iter().filter(|path| *path != Path::new("-")) {
        // All names are checked before anything is written, so that a wrong one does not waste half
        // of the work.
        std::fs::metadata(path).map_err(|e| unreadable(path, &e))?;
    }
    let tools_mode = &args.request.tools_mode;
    let dialects = dialects(tools_mode.dialect_file.as_deref())?;
    let mut dialect = named_dialect(&dialects, tools_mode)?;
    if tools_mode.tools_mode == ToolsModeChoice::Tag && dialect.is_none() {
        dialect = Some(dialects.find(tag::DEFAULT)?);
    }
    let mut options = StreamOptions {
        dialect: dialect.map(|dialect| dialect.name.to_owned()),
        prefill: tools_mode.prefill.clone(),
        max_frame: Some(args.common.max_line),
        words: COMMAND,
        ..StreamOptions::default()
    };
    // In tag mode every stream is read in tag mode, whatever the recording says.
    if tools_mode.tools_mode == ToolsModeChoice::Tag {
        options.tools_mode = Some("tag".to_owned());
        options.tools = input::tools(&args.request.tools)?;
    }
    let no_time = args.common.no_time;
    let messages = Messages::new(args.verbose, no_time, Redactor::default());
    runtime()?.block_on(async {
        let mut replay = ReplayRun {
            args,
            options,
            watch: StopWatch::new()?,
            out: Out::new(no_time, messages),
            status: Status::Done,
        };
        for path in files {
            if let Err(e) = replay.file(path).await {
                if e.is::<Failure>() {
                    return Err(e);
                }
                replay.out.messages().always(format_args!("{e:#}"));
                replay.status = Status::Error;
            }
            if replay.is_stopped() {
                break;
            }
        }
        replay.out.flush()?;
        Ok(if replay.status == Status::Done && replay.out.has_error() {
            Status::Error
        } else {
            replay.status
        })
    })
}

/// Opens the body at `path`; `-` is standard input.
fn open(path: &Path) -> io::Result<FileBody> {
    if path != Path::new("-") {
        return FileBody::open(path);
    }
    let stdin = stdio::stdin(); // that of this thread, which may not be the one that reads
    FileBody::of_reader("-".to_owned(), || Ok(stdin))
}

struct ReplayRun<'s> {
    args: &'s Args,
    /// The settings that apply to every stream, whatever the recording says.
    options: StreamOptions,
    watch: StopWatch,
    out: Out,
    status: Status,
}

impl ReplayRun<'_> {
    async fn file(&mut self, path: &Path) -> Result<()> {
        let name = event::quoted(&path.to_string_lossy());
        let mut body = open(path).map_err(|e| unreadable(path, &e))?;
        let Some(start) = self
            .ahead(&mut body, path, |bytes| !bytes.is_empty())
            .await?
        else {
            return Ok(());
        };
        let named = self.args.request.provider.api;
        if RecordingForm::of_named(start, named) != RecordingForm::Body {
            return self.tape(&mut body, path, &name).await;
        }
        let known = |bytes: &[u8]| bytes.len() >= LOOKED_AT || recognise(bytes, false).is_some();
        let api = match named {
            Some(api) => api,
            None => {
                let Some(start) = self.ahead(&mut body, path, known).await? else {
                    return Ok(());
                };
                recognise(start, true)
                    .with_context(|| format!("{}: {}", path.display(), unrecognised(start)))?
            }
        };
        self.out
            .messages()
            .verbose(format_args!("{}: {}", path.display(), api.name()));
        let body = if self.args.faults.faults(&self.args.connection).any() {
            let Some(bytes) = self.ahead(&mut body, path, |_| false).await? else {
                return Ok(());
            };
            self.recorded(RecordedAnswer::of_bytes(bytes.to_vec()))
        } else {
            Body::of_file(body)
        };
        let mut stream = Stream::new(api, self.options.clone());
        stream.read_several();
        self.write(body, stream, &name).await
    }

    /// Replays all exchanges of a tape.
    async fn tape(&mut self, body: &mut FileBody, path: &Path, name: &str) -> Result<()> {
        let Some(bytes) = self.ahead(body, path, |_| false).await? else {
            return Ok(());
        };
        let file = path.display();
        let text = std::str::from_utf8(bytes)
            .with_context(|| format!("{file}: not UTF-8, a tape is text"))?;
        let tape = Tape::read(text).with_context(|| file.to_string())?;
        if tape.exchanges.is_empty() {
            let what = if tape.is_log() { "log" } else { "tape" };
            bail!("{file}: the {what} holds no answer of a model, so there is nothing to replay");
        }
        for exchange in &tape.exchanges {
            let status = exchange.head.as_ref().map_or(0, |head| head.status);
            self.out.messages().verbose(format_args!(
                "{file}, line {}: {}, HTTP {status}",
                exchange.line, exchange.api
            ));
            self.exchange(exchange, name).await?;
            if self.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    /// Reads more of `body` until `enough` returns true for all bytes read so far, or the file
    /// ends. Returns `None` if a signal arrives first.
    async fn ahead<'b>(
        &mut self,
        body: &'b mut FileBody,
        path: &Path,
        enough: impl FnMut(&[u8]) -> bool,
    ) -> Result<Option<&'b [u8]>> {
        if body.may_wait() {
            self.out.flush()?;
        }
        tokio::select! {
            biased;
            interrupt = self.watch.interrupt() => {
                self.status = Status::Signal(interrupt?);
                Ok(None)
            }
            bytes = body.ahead(enough) => Ok(bytes.map(Some).map_err(|e| unreadable(path, &e))?),
        }
    }

    /// Whether a signal arrived, so that no further stream starts.
    fn is_stopped(&mut self) -> bool {
        if let Some(signal) = self.watch.signal() {
            self.status = Status::Signal(signal);
        }
        matches!(self.status, Status::Signal(_))
    }

    /// Replays one exchange of a tape.
    async fn exchange(&mut self, exchange: &TapeExchange, name: &str) -> Result<()> {
        let of_log = exchange.logged.as_ref().map(|_| Api::OpenaiChat);
        let typed = self.args.request.provider.api;
        let Some(api) = Api::from_name(&exchange.api).or(typed).or(of_log) else {
            bail!(
                "line {} of the tape: the API \"{}\" is unknown, name it with --api",
                exchange.line,
                exchange.api
            );
        };
        let model = Some(exchange.model.clone()).filter(|m| !m.is_empty());
        let mut options = StreamOptions {
            model,
            ..self.options.clone()
        };
        if options.tools_mode.is_none() {
            options.tools = asked(&exchange.request.body);
            options.tools_mode = Some(
                if options.tools.is_some() {
                    "native"
                } else {
                    "none"
                }
                .to_owned(),
            );
        }
        let mut stream = Stream::new(api, options);
        if exchange.logged.is_some() {
            stream.read_log();
        }
        let recording = RecordedAnswer::of(exchange);
        match &exchange.head {
            Some(head) if !(200..300).contains(&head.status) => {
                let mut host = StdoutHost::new(&self.watch, &self.out, Some(name));
                host.set_time(recording.ended, false);
                stream.retry_after(client::retry_after(head, SystemTime::now()));
                stream.error_body(head.status, &exchange.body(), None, host.sink());
                host.check()?;
                Ok(())
            }
            _ => {
                let body = self.recorded(recording);
                self.write(body, stream, name).await
            }
        }
    }

    fn recorded(&self, mut recording: RecordedAnswer) -> Body {
        let faults = self.args.faults.faults(&self.args.connection);
        faults.apply(&mut recording);
        Body::of_recording(recording, self.args.replay.speed)
    }

    /// Writes the events of one body.
    async fn write(&mut self, mut body: Body, mut stream: Stream, name: &str) -> Result<()> {
        let mut host = StdoutHost::new(&self.watch, &self.out, Some(name));
        match write_events(&mut body, &mut stream, &mut host).await? {
            ResponseEnd::Ended(_) => {}
            ResponseEnd::Lost(error) => {
                host.set_time(None, false);
                stream.finish(end(&error, None), host.sink());
            }
            ResponseEnd::Stopped(signal) => self.status = Status::Signal(signal),
        }
        Ok(())
    }
}

/// Returns the tools of a recorded request in OpenAI's format, as JSON on one line; `None` if it
/// has none.
fn asked(body: &Value) -> Option<String> {
    let tools = ToolList::read(&body.get("tools")?.to_string()).ok()?;
    Some(tools.openai(|_| true))
}
