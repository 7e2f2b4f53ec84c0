//! Attempts at one turn, until something of an answer is written.

use super::opening::Opening;
use super::trouble;
use crate::output::{Clock, Out};
use crate::stream::{Interrupt, Pulse, ResponseEnd, Watch, end, write_events};
use crate::turn::ToolsForm;
use anyhow::{Context, Result};
use client::{Body, Error, Limits, Network, Recording, Response, Speed, Trouble, Wait, What};
use event::payload::Warning;
use std::time::Duration;
use stdio::Failure;
use tokio::time::Instant;
use upstream::tape::{Exchange, Head};
use upstream::{End, Request, Stream};

/// The longest body of an error that is read.
const ERROR_BODY: usize = 1 << 20;

/// One turn and all it needs.
pub struct Attempts<'a, 's> {
    pub opening: &'a mut Opening<'s>,
    /// Whether the tools go into the prompt if the provider refuses them.
    pub is_open: bool,
    pub network: Option<Network>,
    pub watch: &'a Watch,
    pub out: &'a mut Out,
}

/// How one attempt ended.
enum Attempt {
    Ended,
    Signal(i32),
    Failed(Trouble),
}

impl Attempts<'_, '_> {
    /// Asks, again if it must be, and writes the events. Returns the signal that ended it, if one did.
    ///
    /// # Errors
    /// Failures of standard output, a request that cannot be made.
    pub async fn run(mut self) -> Result<Option<i32>> {
        let connection = self.opening.settings.connection;
        let deadline = connection.timeout.map(|time| Instant::now() + time);
        let (mut attempt, mut retries, mut form) = (1, 0, self.opening.turn.form);
        let mut refusal: Option<String> = None;
        loop {
            let turn = &self.opening.turn;
            let request = turn.request(form)?;
            let mut stream = Stream::new(turn.api, turn.stream_options(&request, attempt, form));
            let stats = stream.stats();
            stats.retries = Some(u64::from(retries)).filter(|n| *n > 0);
            stats.fallbacks = Some(u64::from(form.is_whole) + u64::from(refusal.is_some())).filter(|n| *n > 0);
            let trouble = match self.attempt(&request, &mut stream, deadline).await? {
                Attempt::Ended => {
                    let was_live = self.opening.recorder.as_ref().is_none_or(|r| r.has_recorded());
                    if let Some(refusal) = refusal.filter(|_| was_live) {
                        self.opening.auto().refused(&refusal);
                    }
                    return Ok(None);
                }
                Attempt::Signal(signal) => return Ok(Some(signal)),
                Attempt::Failed(trouble) => trouble,
            };
            if let (true, ToolsForm::Native, Some(words)) = (self.is_open, form.tools, trouble.refuses_tools()) {
                let message = format!("{words}; the same is asked again with the tools in the prompt");
                self.warn("tools_refused", &message);
                self.out.messages().verbose(&message);
                form.tools = self.opening.turn.tag();
                refusal = Some(words);
                attempt += 1;
                continue;
            }
            let may_fall_back = connection.falls_back && self.opening.turn.options.stream && !form.is_whole;
            if may_fall_back && trouble.refuses_streaming() {
                self.out.messages().verbose("streaming is refused; the whole answer is asked for at once");
                form.is_whole = true;
                continue;
            }
            let wait = trouble.wait(retries + 1);
            let fits = |wait: &Wait| {
                let time = self.scaled(wait.time);
                wait.is_granted() && deadline.is_none_or(|deadline| Instant::now() + time < deadline)
            };
            let Some(wait) = wait.as_ref().filter(|wait| retries < connection.retries && fits(wait)) else {
                let advice = wait.and_then(|wait| wait.advice());
                let (clock, redactor) = (Clock::default(), self.opening.turn.redactor());
                trouble::write(&trouble, advice.as_deref(), redactor, &mut stream, &mut clock.sink(None, self.out));
                return Ok(None);
            };
            self.announce(&trouble, wait);
            self.out.flush()?;
            let limits = Limits { idle: None, deadline };
            tokio::select! {
                biased;
                interrupt = self.watch.interrupt() => {
                    let signal = interrupt.signal()?;
                    self.end(&mut stream, End::Cancelled);
                    return Ok(Some(signal));
                }
                slept = limits.sleep(self.scaled(wait.time)) => if let Err(error) = slept {
                    self.end(&mut stream, end(&error));
                    return Ok(None);
                }
            }
            attempt += 1;
            retries += 1;
        }
    }

    /// Ends a stream at no time.
    fn end(&mut self, stream: &mut Stream, end: End) {
        stream.finish(end, &mut Clock::default().sink(None, self.out));
    }

    fn warn(&mut self, code: &str, message: &str) {
        self.out.event(Warning::new("llm-stream", code, message));
    }

    /// Reports a long wait before it begins: in the stream, and to a person who sits before it.
    fn announce(&mut self, trouble: &Trouble, wait: &Wait) {
        let message = format!("{}; the same is asked again {}", trouble::message(trouble), wait.when());
        let message = self.opening.turn.redactor().text(&message).into_owned();
        if wait.is_announced() {
            self.warn("retry_wait", &message);
        }
        if wait.is_announced() && self.scaled(wait.time) == wait.time {
            self.out.messages().always(&message);
        } else {
            self.out.messages().verbose(&message);
        }
    }

    /// A wait between attempts; shorter where a tape is played faster than it was recorded.
    fn scaled(&self, wait: Duration) -> Duration {
        match (self.network.is_some(), self.opening.settings.speed) {
            (true, _) => wait,
            (false, Speed::Times(times)) => wait.div_f64(times),
            (false, Speed::Max) => Duration::ZERO,
        }
    }

    async fn attempt(&mut self, request: &Request, stream: &mut Stream, deadline: Option<Instant>) -> Result<Attempt> {
        let turn = &self.opening.turn;
        if let Some(recorder) = &mut self.opening.recorder {
            match recorder.answer(turn.model(), request) {
                Ok(Some(exchange)) => {
                    self.out.messages().verbose("the tape answers");
                    let (head, mut body) = played(&exchange, self.opening.settings.speed);
                    return Ok(self.answer(head, &mut body, stream).await?.0);
                }
                Ok(None) => {}
                Err(miss) => return Ok(Attempt::Failed(Trouble::Miss(miss))),
            }
        }
        let recorder = self.opening.recorder.as_ref();
        let recording = recorder.map(|r| r.begin(turn.api, turn.model(), request, |name| turn.is_secret(name)));
        let network = self.network.as_ref().context("neither a network nor a tape that answers")?;
        self.out.flush()?;
        self.out.messages().request(request);
        let limits = Limits { idle: Some(self.opening.settings.connection.idle_timeout), deadline };
        let answered = tokio::select! {
            biased;
            answered = network.send(request, limits, recording) => answered,
            interrupt = self.watch.interrupt() => {
                let signal = interrupt.signal()?;
                self.end(stream, End::Cancelled);
                return Ok(Attempt::Signal(signal));
            }
        };
        let Response { head, mut body } = match answered {
            Ok(response) => response,
            Err((error, recorded)) => {
                self.keep(recorded);
                return Ok(Attempt::Failed(Trouble::Lost(error)));
            }
        };
        let (attempt, lost) = self.answer(head, &mut body, stream).await?;
        if !matches!(attempt, Attempt::Signal(_)) {
            self.keep(body.recorded(lost.as_ref()));
        }
        Ok(attempt)
    }

    /// Reads an answer that has begun. Also returns what its bytes were lost by.
    async fn answer(
        &mut self,
        head: Head,
        body: &mut Body,
        stream: &mut Stream,
    ) -> Result<(Attempt, Option<Error>), Failure> {
        self.out.messages().at(format_args!("HTTP {}", head.status), Some(head.after));
        let end = if (200..300).contains(&head.status) {
            write_events(body, stream, None, self.watch, self.out).await?
        } else {
            match self.error_body(body).await? {
                (_, Err(signal)) => ResponseEnd::Signal(signal),
                (bytes, Ok(lost)) => {
                    // A server may repeat the key that it was sent. Later the text is cut, and a part of a key would not be recognised.
                    let text = self.opening.turn.redactor().text(&String::from_utf8_lossy(&bytes)).into_owned();
                    return Ok((Attempt::Failed(Trouble::Refused(head, text)), lost));
                }
            }
        };
        Ok(match end {
            ResponseEnd::Ended(lost) => (Attempt::Ended, lost),
            ResponseEnd::Lost(error) => (Attempt::Failed(Trouble::Lost(error.clone())), Some(error)),
            ResponseEnd::Signal(signal) => {
                self.end(stream, End::Cancelled);
                (Attempt::Signal(signal), None)
            }
        })
    }

    /// The body of an error, as far as it comes, and what it was lost by, or the signal.
    async fn error_body(&mut self, body: &mut Body) -> Result<(Vec<u8>, Result<Option<Error>, i32>), Failure> {
        let mut bytes = vec![];
        let mut pulse = Pulse::default();
        loop {
            let next = match self.watch.seen(pulse.is_due()) {
                Some(interrupt) => Err(interrupt),
                None => tokio::select! {
                    biased;
                    piece = body.next() => Ok(piece.what),
                    interrupt = self.watch.interrupt() => Err(interrupt),
                },
            };
            match next.map_err(Interrupt::signal) {
                Err(signal) => return Ok((bytes, Err(signal?))),
                Ok(What::Bytes(more)) if bytes.len() < ERROR_BODY => bytes.extend_from_slice(more),
                Ok(What::Bytes(_) | What::End) => return Ok((bytes, Ok(None))),
                Ok(What::Lost(error)) => return Ok((bytes, Ok(Some(error)))),
            }
        }
    }

    fn keep(&mut self, exchange: Option<Box<Exchange>>) {
        if let (Some(recorder), Some(exchange)) = (&mut self.opening.recorder, exchange) {
            recorder.keep(*exchange);
        }
    }
}

/// A recorded answer. Without a head the connection failed before, which the end of the recording tells.
fn played(exchange: &Exchange, speed: Speed) -> (Head, Body) {
    let head = exchange.head.clone().unwrap_or(Head { status: 200, ..Head::default() });
    (head, Body::of_recording(Recording::of(exchange), speed))
}
