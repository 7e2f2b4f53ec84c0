//! Recorded bodies and tapes as streams, one after the other.

use crate::args::{Args, Speed, ToolsMode};
use crate::faults::Faults;
use crate::interrupt::{Stop, Watch, runtime};
use crate::limits::Limits;
use crate::out::{Clock, Out};
use crate::pour::{Poured, pour};
use crate::source::{FileBody, Read, Recorded, Source};
use crate::tools;
use anyhow::{Context, Result, bail};
use json::ToolList;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use stdio::{Failure, Status};
use upstream::tape::{Ending, Exchange, Tape, is_tape};
use upstream::{Api, End, Stream, StreamOptions, recognise};

/// How much of a body is looked at to tell its API.
const LOOKED_AT: usize = 64 * 1024;

/// Replays `--replay FILE…`: 2 when any `error` event was written or a file could not be read, else 0.
pub fn replay(args: &Args) -> Result<Status> {
    for path in args.replay.files.iter().filter(|path| *path != Path::new("-")) {
        // Before anything is written: a wrong name should not cost half of the work.
        std::fs::metadata(path).map_err(|e| unreadable(path, e))?;
    }
    let (typed, dialect) = (&args.request, tools::dialect(args)?);
    let max_frame = Some(args.common.max_line);
    let mut said = StreamOptions { prefill: typed.prefill.clone(), max_frame, ..StreamOptions::default() };
    if typed.tools_mode == ToolsMode::Tag {
        said.tools_mode = Some("tag".to_owned());
        said.dialect = Some(dialect.name.to_owned());
        said.tools = tools::tools(typed)?;
    }
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut replay = Replay {
            api: args.request.api,
            speed: args.replay.speed,
            faults: args.replay.faults(),
            said,
            watch: Watch::new()?,
            out: Out::new(args),
            status: Status::Done,
        };
        for path in &args.replay.files {
            if let Err(e) = replay.file(path).await {
                if e.downcast_ref::<Failure>().is_some() {
                    return Err(e);
                }
                stdio::message("llm-stream", &format!("{e:#}"));
                replay.status = Status::Error;
            }
            if replay.is_stopped() {
                break;
            }
        }
        replay.out.flush()?;
        Ok(if replay.status == Status::Done && replay.out.has_error() { Status::Error } else { replay.status })
    })
}

fn unreadable(path: &Path, e: std::io::Error) -> anyhow::Error {
    anyhow::anyhow!("{}: {e}, check the path and its permissions", path.display())
}

struct Replay {
    api: Option<Api>,
    speed: Speed,
    faults: Faults,
    /// What `stream_start` says whatever was recorded.
    said: StreamOptions,
    watch: Watch,
    out: Out,
    status: Status,
}

impl Replay {
    async fn file(&mut self, path: &Path) -> Result<()> {
        let name = event::quoted(&path.to_string_lossy());
        let mut body = FileBody::open(path).map_err(|e| unreadable(path, e))?;
        let Some(start) = self.ahead(&mut body, path, |bytes| !bytes.is_empty()).await? else { return Ok(()) };
        if is_tape(start) {
            let Some(bytes) = self.ahead(&mut body, path, |_| false).await? else { return Ok(()) };
            let text =
                std::str::from_utf8(bytes).with_context(|| format!("{}: not UTF-8, a tape is text", path.display()))?;
            let tape = Tape::read(text).with_context(|| path.display().to_string())?;
            for exchange in &tape.exchanges {
                let status = exchange.head.as_ref().map_or(0, |head| head.status);
                self.out.verbose().say(format_args!(
                    "{}, line {}: {}, HTTP {status}",
                    path.display(),
                    exchange.line,
                    exchange.api
                ));
                self.exchange(exchange, &name).await?;
                if self.is_stopped() {
                    break;
                }
            }
            return Ok(());
        }
        let api = match self.api {
            Some(api) => api,
            None => {
                let known = |bytes: &[u8]| bytes.len() >= LOOKED_AT || recognise(bytes, false).is_some();
                let Some(start) = self.ahead(&mut body, path, known).await? else { return Ok(()) };
                let Some(api) = recognise(start, true) else {
                    bail!("{}: the API cannot be told from the body, name it with --api", path.display());
                };
                api
            }
        };
        self.out.verbose().say(format_args!("{}: {}", path.display(), api.name()));
        let source = if self.faults.any() {
            let Some(bytes) = self.ahead(&mut body, path, |_| false).await? else { return Ok(()) };
            self.recorded(vec![Read { bytes: bytes.to_vec(), ..Read::default() }], (None, End::Eof))
        } else {
            Source::File(body)
        };
        self.pour(source, Stream::new(api, self.said.clone()), &name).await
    }

    /// Reads `body` on until `enough` is true of all that was read, or the file ends; `None` when a signal comes first.
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
            stop = self.watch.stop() => match stop {
                Stop::Gone => Err(Failure::Gone.into()),
                Stop::Signal(signal) => {
                    self.status = Status::Signal(signal);
                    Ok(None)
                }
            },
            bytes = body.ahead(enough) => bytes.map(Some).map_err(|e| unreadable(path, e)),
        }
    }

    /// Whether a signal came: then no further stream begins.
    fn is_stopped(&mut self) -> bool {
        if let Some(signal) = self.watch.signal() {
            self.status = Status::Signal(signal);
        }
        matches!(self.status, Status::Signal(_))
    }

    /// One exchange of a tape.
    async fn exchange(&mut self, exchange: &Exchange, name: &str) -> Result<()> {
        let Some(api) = Api::from_name(&exchange.api).or(self.api) else {
            bail!("line {} of the tape: the API \"{}\" is unknown, name it with --api", exchange.line, exchange.api);
        };
        let model = Some(exchange.model.clone()).filter(|m| !m.is_empty());
        let mut options = StreamOptions { model, ..self.said.clone() };
        if options.tools_mode.is_none() {
            options.tools = asked(&exchange.request.body);
            options.tools_mode = Some(if options.tools.is_some() { "native" } else { "none" }.to_owned());
        }
        let mut stream = Stream::new(api, options);
        let (reads, end) = timed(exchange);
        match &exchange.head {
            Some(head) if !(200..300).contains(&head.status) => {
                let mut clock = Clock::default();
                clock.set(end.0, false, &self.out);
                stream.error_body(head.status, &exchange.body(), None, &mut clock.sink(Some(name), &mut self.out));
                self.out.check()?;
                Ok(())
            }
            _ => {
                let source = self.recorded(reads, end);
                self.pour(source, stream, name).await
            }
        }
    }

    fn recorded(&self, mut reads: Vec<Read>, mut end: (Option<Duration>, End)) -> Source {
        self.faults.apply(&mut reads, &mut end.1);
        Source::Recorded(Recorded::new(reads, end, self.speed))
    }

    async fn pour(&mut self, mut source: Source, mut stream: Stream, name: &str) -> Result<()> {
        let (poured, end) =
            pour(&mut source, &mut stream, Some(name), Limits::default(), &self.watch, &mut self.out).await?;
        match poured {
            Poured::Ended => {}
            Poured::Broken => stream.finish(end, &mut Clock::default().sink(Some(name), &mut self.out)),
            Poured::Signal(signal) => self.status = Status::Signal(signal),
        }
        Ok(())
    }
}

/// The tools of a recorded request in OpenAI's shape, as JSON on one line; `None` if it has none.
fn asked(body: &Value) -> Option<String> {
    let tools = ToolList::read(&body.get("tools")?.to_string()).ok()?;
    Some(tools.openai(|_| true))
}

/// What came back in an exchange, with times since its request; a tape that stops without an end was cut there.
pub fn timed(exchange: &Exchange) -> (Vec<Read>, (Option<Duration>, End)) {
    let mut at = exchange.head.as_ref().map(|head| head.after).unwrap_or_default();
    let mut reads = vec![];
    for read in &exchange.reads {
        at += read.after;
        reads.push(Read { at: Some(at), stall: Duration::ZERO, bytes: read.bytes.clone() });
    }
    let (after, ending) = exchange.end.unwrap_or((Duration::ZERO, Ending::Eof));
    let end = match ending {
        Ending::Eof => End::Eof,
        Ending::Reset => End::Reset("the connection was lost when this was recorded".to_owned()),
        Ending::Timeout => End::Timeout("the answer stopped for too long when this was recorded".to_owned()),
    };
    (reads, (Some(at + after), end))
}
