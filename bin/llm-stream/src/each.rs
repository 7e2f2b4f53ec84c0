//! `--each`: a turn for each line of standard input, several at once, each in a stream of its own.

use crate::args::Args;
use crate::ask::{Models, Opening, Way};
use crate::host::{StdoutHost, StopWatch, runtime};
use crate::output::Out;
use ::ask::{Host, Pace, SessionEnd};
use anyhow::{Result, bail};
use api::{Conversation, End, InputLine, QuestionTemplate, Stream, StreamOptions};
use client::Network;
use config::Configured;
use event::Json;
use event::payload::Message;
use std::os::fd::AsFd;
use std::rc::Rc;
use stdio::{Failure, Input, InputBlock, Status};
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::{JoinSet, LocalSet};

/// Asks about each line of standard input, and writes the events of all answers as they come, with
/// the names of their streams. Returns status 2 if any `error` event was written, otherwise 0.
///
/// # Errors
/// Fails with one line for invalid arguments or files, if standard input cannot be read, and if
/// standard output fails.
pub(crate) fn each(args: Args, configured: &Configured) -> Result<Status> {
    let jobs = args.jobs.get();
    let mut opening = Opening::new(args, configured)?;
    let is_offline = opening.is_offline();
    if opening.has_tape() && !is_offline {
        bail!("answers to many lines are not recorded on a tape: leave --each or --tape-mode out");
    }
    opening.models.turn.check_model()?;
    if !is_offline {
        opening.take_key()?;
    }
    let question = QuestionTemplate::read(opening.args.prompt.as_deref().unwrap_or_default());
    let redactor = opening.models.turn.redactor().clone();
    let asked = runtime()?.block_on(async {
        let watch = StopWatch::new()?;
        let out = opening.out();
        opening.report_server(out.messages());
        let network = (!is_offline).then(|| opening.network()).transpose()?;
        let may_tag = opening.decide(network.as_ref(), &watch, &out).await?;
        let each = Each {
            opening,
            question,
            network,
            pace: Pace::new(jobs),
            may_tag,
            watch,
            out,
        };
        LocalSet::new().run_until(each.run(jobs)).await
    });
    asked.map_err(|error| match error.is::<Failure>() {
        true => error,
        false => anyhow::anyhow!("{}", redactor.text(&format!("{error:#}"))),
    })
}

/// What the turns of all lines share.
struct Each {
    opening: Opening,
    question: QuestionTemplate,
    network: Option<Network>,
    pace: Pace,
    may_tag: bool,
    watch: StopWatch,
    out: Out,
}

impl Each {
    /// Reads a line whenever fewer than `jobs` turns are open. After a signal the open turns end
    /// as `cancelled`.
    async fn run(self, jobs: usize) -> Result<Status> {
        let mut lines = lines(self.opening.filter.max_line)?;
        let each = Rc::new(self);
        let mut turns = JoinSet::new();
        let (mut number, mut is_open) = (0_u64, true);
        while is_open || !turns.is_empty() {
            let line = tokio::select! {
                biased;
                stop = each.watch.interrupt(), if is_open => {
                    stop?;
                    is_open = false;
                    continue;
                }
                Some(ended) = turns.join_next() => {
                    ended??;
                    continue;
                }
                line = lines.recv(), if is_open && turns.len() < jobs => line,
            };
            number += 1;
            match line {
                None => is_open = false,
                Some(Err(failure)) => return Err(failure.into()),
                Some(Ok(line)) => {
                    let each = Rc::clone(&each);
                    turns.spawn_local(async move { each.turn(number, line).await });
                }
            }
        }
        each.out.flush()?;
        Ok(match each.watch.signal() {
            Some(signal) => Status::Signal(signal),
            None if each.out.has_error() => Status::Error,
            None => Status::Done,
        })
    }

    /// Makes the turn of one line. What is wrong with the line, or with its turn alone, is an error
    /// in its stream.
    async fn turn(&self, number: u64, line: RawLine) -> Result<()> {
        let mut name = event::quoted(&number.to_string());
        let answered = match self.prepare(number, line, &mut name) {
            Ok(None) => return Ok(()),
            Ok(Some(models)) => {
                let way = Way {
                    network: self.network.as_ref(),
                    pace: Some(&self.pace),
                    may_tag: self.may_tag,
                };
                let (watch, out) = (&self.watch, &self.out);
                let opening = &self.opening;
                opening.answer(&models, Some(&name), way, watch, out).await
            }
            Err(what) => Err(what),
        };
        match answered {
            Ok(SessionEnd { .. }) => {}
            Err(error) if error.is::<Failure>() => return Err(error),
            Err(error) => self.fail(&name, &format!("{error:#}")),
        }
        Ok(self.out.flush()?)
    }

    /// Returns the turn of a line, and changes `name`, as JSON, to the name that the line gives to
    /// its stream. Writes the question. Returns `None` for a line of white space.
    fn prepare(&self, number: u64, line: RawLine, name: &mut String) -> Result<Option<Models>> {
        let line = match line {
            RawLine::Line(bytes) => String::from_utf8(bytes),
            RawLine::TooLong(length) => {
                bail!("line {number} has {length} bytes, more than --max-line: raise it")
            }
        };
        let Ok(line) = line else {
            bail!("line {number} is not UTF-8: convert it first, as with iconv -f LATIN1 -t UTF-8");
        };
        let Some(line) = InputLine::read(&line) else {
            return Ok(None);
        };
        let mut models = self.opening.models.clone();
        let files = &self.opening.files;
        let most = self.opening.filter.max_line;
        let conversation = line.object().filter(|line| {
            let is_list = |messages: event::Raw<'_>| messages.is_array();
            self.opening.args.prompt.is_none() && line.get("messages").is_some_and(is_list)
        });
        if let Some(line) = conversation {
            if let Some(given) = line.get("stream").filter(|given| given.is_str()) {
                *name = event::safe_json(given.text()).into_owned();
            }
            let (conversation, problems) = Conversation::read(line.text());
            if let Some(problem) = problems.first() {
                bail!("{}", problem.what);
            }
            models.converse(&conversation, None, files, most)?;
            return Ok(Some(models));
        }
        let question = self.question.fill(&line).map_err(anyhow::Error::msg)?;
        let asked = models.converse(&Conversation::default(), Some(&question), files, most)?;
        if let Some(message) = &asked {
            let message = Message {
                message: Json::of(message),
                ..Message::default()
            };
            self.out.write(Some(name), 0, None, &message.into());
        }
        Ok(Some(models))
    }

    /// Writes a stream that has only an error.
    fn fail(&self, name: &str, message: &str) {
        let turn = &self.opening.models.turn;
        let options = StreamOptions {
            model: Some(turn.model().to_owned()),
            redactor: turn.redactor().clone(),
            ..StreamOptions::default()
        };
        let mut stream = Stream::new(turn.provider.api, options);
        let mut host = StdoutHost::new(&self.watch, &self.out, Some(name));
        stream.error("invalid_request", message, false, host.sink());
        stream.finish(End::Eof, host.sink());
    }
}

/// A line of standard input.
enum RawLine {
    Line(Vec<u8>),
    /// Longer than `--max-line`, with its length.
    TooLong(u64),
}

/// Reads standard input in a thread, one line at a time, so that an input of any length takes no
/// memory.
fn lines(max_line: usize) -> Result<Receiver<Result<RawLine, Failure>>, Failure> {
    let (send, lines) = mpsc::channel(1);
    let stdin = stdio::stdin().as_fd().try_clone_to_owned();
    let stdin = stdin.map_err(Failure::limit("standard input cannot be read"))?;
    stdio::thread(move || {
        let mut input = Input::of_pipe(stdin, "standard input", max_line);
        loop {
            let sent = match input.block(None, &mut || Ok(())) {
                Ok(None) => return,
                Ok(Some(InputBlock::TooLong(_, length))) => {
                    send.blocking_send(Ok(RawLine::TooLong(length)))
                }
                Ok(Some(InputBlock::Lines(lines))) => lines
                    .split_inclusive(|byte| *byte == b'\n')
                    .try_for_each(|line| {
                        let bare = line.strip_suffix(b"\n").unwrap_or(line);
                        send.blocking_send(Ok(match bare.len() > max_line {
                            true => RawLine::TooLong(bare.len() as u64),
                            false => RawLine::Line(bare.to_vec()),
                        }))
                    }),
                Err(failure) => send.blocking_send(Err(failure)),
            };
            if sent.is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}
