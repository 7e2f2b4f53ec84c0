//! One turn: attempts, until a part of an answer is written, a signal arrives, the time is over or no further attempt is
//! allowed.

use super::opening::Opening;
use super::trouble;
use crate::output::{Clock, Out};
use crate::stream::{Interrupt, Pulse, ResponseEnd, Watch, end, write_events};
use crate::turn::ToolsForm;
use anyhow::{Context, Result};
use client::{
    AttemptPolicy, Attempts, Body, Error, Network, NextAttempt, PieceContent, Recording, Response, Speed, TimeLimits,
    Trouble, Wait,
};
use event::payload::Warning;
use std::time::Duration;
use stdio::Failure;
use tokio::time::Instant;
use upstream::tape::{Exchange, Head};
use upstream::{End, Request, Stream};

/// The number of bytes after which the reading of an error's body stops.
const ERROR_BODY: usize = 1 << 20;

/// One turn and all it needs.
pub struct AskSession<'a, 's> {
    pub opening: &'a mut Opening<'s>,
    /// Whether the tools go into the prompt if the provider refuses them.
    pub may_tag: bool,
    pub network: Option<Network>,
    pub watch: &'a Watch,
    pub out: &'a mut Out,
}

/// How one attempt ended.
enum AttemptEnd {
    Ended,
    Signal(i32),
    Failed(Trouble),
}

impl AskSession<'_, '_> {
    /// Asks until a part of an answer is written or no further attempt is allowed, and writes the events. A turn that gives up
    /// writes its trouble into the stream and returns no error. Returns the signal that ended it, if one did.
    ///
    /// # Errors
    /// Failures of standard output, a request that cannot be made.
    pub async fn run(mut self) -> Result<Option<i32>> {
        let connection = self.opening.settings.connection;
        let deadline = connection.timeout.map(|time| Instant::now() + time);
        let mut form = self.opening.turn.form;
        let mut attempts = Attempts::new(AttemptPolicy {
            retries: connection.retries,
            may_ask_whole: connection.falls_back && self.opening.turn.options.stream,
            may_tag: self.may_tag && matches!(form.tools, ToolsForm::Native),
        });
        let mut refusal: Option<String> = None;
        loop {
            let turn = &self.opening.turn;
            let request = turn.request(form)?;
            let mut stream = Stream::new(turn.api, turn.stream_options(&request, attempts.number(), form));
            let stats = stream.stats();
            stats.retries = Some(u64::from(attempts.retries())).filter(|n| *n > 0);
            stats.fallbacks = Some(u64::from(attempts.fallbacks())).filter(|n| *n > 0);
            let trouble = match self.attempt(&request, &mut stream, deadline).await? {
                AttemptEnd::Ended => {
                    let was_live = self.opening.recorder.as_ref().is_none_or(|r| r.has_recorded());
                    if let Some(refusal) = refusal.filter(|_| was_live) {
                        self.opening.auto().refused(&refusal);
                    }
                    return Ok(None);
                }
                AttemptEnd::Signal(signal) => return Ok(Some(signal)),
                AttemptEnd::Failed(trouble) => trouble,
            };
            let fits = |wait: &Wait| deadline.is_none_or(|deadline| Instant::now() + self.scaled(wait.time) < deadline);
            match attempts.after(&trouble, fits) {
                NextAttempt::Tagged(words) => {
                    let message = format!("{words}; asking again with the tools in the prompt");
                    self.warn("tools_refused", &message);
                    self.out.messages().verbose(&message);
                    form.tools = self.opening.turn.tag();
                    refusal = Some(words);
                }
                NextAttempt::Whole => {
                    self.out.messages().verbose("streaming is refused; asking for the whole answer at once");
                    form.is_whole = true;
                }
                NextAttempt::GiveUp(advice) => {
                    let (clock, redactor) = (Clock::default(), self.opening.turn.redactor());
                    let sink = &mut clock.sink(None, self.out);
                    trouble::write(&trouble, advice.as_deref(), redactor, &mut stream, sink);
                    return Ok(None);
                }
                NextAttempt::Again(wait) => {
                    self.announce(&trouble, &wait);
                    self.out.flush()?;
                    let limits = TimeLimits { idle: None, deadline };
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
                }
            }
        }
    }

    /// Ends a stream without giving a time for its end.
    fn end(&mut self, stream: &mut Stream, end: End) {
        stream.finish(end, &mut Clock::default().sink(None, self.out));
    }

    fn warn(&mut self, code: &str, message: &str) {
        self.out.event(Warning::new("llm-stream", code, message));
    }

    /// Reports a wait before it begins. A long wait becomes a warning in the stream and a message to the person. A short wait,
    /// or the message of one that a replay shortens, shows only in verbose mode.
    fn announce(&mut self, trouble: &Trouble, wait: &Wait) {
        let message = format!("{}; asking again {}", trouble::message(trouble), wait.when());
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

    /// A wait between attempts. Without a network, it follows the speed of the replay.
    fn scaled(&self, wait: Duration) -> Duration {
        match (self.network.is_some(), self.opening.settings.speed) {
            (true, _) => wait,
            (false, Speed::Times(times)) => wait.div_f64(times),
            (false, Speed::Max) => Duration::ZERO,
        }
    }

    async fn attempt(
        &mut self,
        request: &Request,
        stream: &mut Stream,
        deadline: Option<Instant>,
    ) -> Result<AttemptEnd> {
        let turn = &self.opening.turn;
        if let Some(recorder) = &mut self.opening.recorder {
            match recorder.answer(turn.model(), request) {
                Ok(Some(exchange)) => {
                    self.out.messages().verbose("the tape answers");
                    let (head, mut body) = played(&exchange, self.opening.settings.speed);
                    return Ok(self.answer(head, &mut body, stream).await?.0);
                }
                Ok(None) => {}
                Err(miss) => return Ok(AttemptEnd::Failed(Trouble::Miss(miss))),
            }
        }
        let recorder = self.opening.recorder.as_ref();
        let recording = recorder.map(|r| r.begin(turn.api, turn.model(), request, |name| turn.is_secret(name)));
        let network = self.network.as_ref().context("neither a network nor a tape that answers")?;
        self.out.flush()?;
        self.out.messages().request(request);
        let limits = TimeLimits { idle: Some(self.opening.settings.connection.idle_timeout), deadline };
        let answered = tokio::select! {
            biased;
            answered = network.send(request, limits, recording) => answered,
            interrupt = self.watch.interrupt() => {
                let signal = interrupt.signal()?;
                self.end(stream, End::Cancelled);
                return Ok(AttemptEnd::Signal(signal));
            }
        };
        let Response { head, mut body } = match answered {
            Ok(response) => response,
            Err((error, recorded)) => {
                self.keep(recorded);
                return Ok(AttemptEnd::Failed(Trouble::Lost(error)));
            }
        };
        let (attempt, lost) = self.answer(head, &mut body, stream).await?;
        if !matches!(attempt, AttemptEnd::Signal(_)) {
            self.keep(body.recorded(lost.as_ref()));
        }
        Ok(attempt)
    }

    /// Reads an answer that has begun. Also returns the error that cut the answer, if one did.
    async fn answer(
        &mut self,
        head: Head,
        body: &mut Body,
        stream: &mut Stream,
    ) -> Result<(AttemptEnd, Option<Error>), Failure> {
        self.out.messages().at(format_args!("HTTP {}", head.status), Some(head.after));
        let end = if (200..300).contains(&head.status) {
            write_events(body, stream, None, self.watch, self.out).await?
        } else {
            match self.error_body(body).await? {
                (_, Err(signal)) => ResponseEnd::Signal(signal),
                (bytes, Ok(lost)) => {
                    // A server may repeat the key that it was sent. The text is redacted before it is shortened, because a part
                    // of a key is not recognised.
                    let text = self.opening.turn.redactor().text(&String::from_utf8_lossy(&bytes)).into_owned();
                    return Ok((AttemptEnd::Failed(Trouble::Refused(head, text)), lost));
                }
            }
        };
        Ok(match end {
            ResponseEnd::Ended(lost) => (AttemptEnd::Ended, lost),
            ResponseEnd::Lost(error) => (AttemptEnd::Failed(Trouble::Lost(error.clone())), Some(error)),
            ResponseEnd::Signal(signal) => {
                self.end(stream, End::Cancelled);
                (AttemptEnd::Signal(signal), None)
            }
        })
    }

    /// Reads the body of an error until it ends, is lost or reaches `ERROR_BODY`. Returns the bytes, with the error that cut
    /// them, if one did, or the signal that ended the reading.
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
                Ok(PieceContent::Bytes(more)) if bytes.len() < ERROR_BODY => bytes.extend_from_slice(more),
                Ok(PieceContent::Bytes(_) | PieceContent::End) => return Ok((bytes, Ok(None))),
                Ok(PieceContent::Lost(error)) => return Ok((bytes, Ok(Some(error)))),
            }
        }
    }

    fn keep(&mut self, exchange: Option<Box<Exchange>>) {
        if let (Some(recorder), Some(exchange)) = (&mut self.opening.recorder, exchange) {
            recorder.keep(*exchange);
        }
    }
}

/// A recorded answer. A recording without a head comes from a connection that failed. It gets status 200, so that its body is
/// read to the end, which reports the failure.
fn played(exchange: &Exchange, speed: Speed) -> (Head, Body) {
    let head = exchange.head.clone().unwrap_or(Head { status: 200, ..Head::default() });
    (head, Body::of_recording(Recording::of(exchange), speed))
}
