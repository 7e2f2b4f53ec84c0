//! The attempts at one turn, until a part of an answer is written, the host stops it, the time is
//! over or no further attempt is allowed.

use super::args::{ConnectionArgs, Fallback};
use super::form::{RequestForm, ToolsForm};
use super::host::{Host, Note};
use super::playlist::{PlayedAnswer, Playlist, head};
use super::response::{ResponseEnd, now, write_events};
use super::trouble;
use super::trouble::end;
use super::turn::TurnDraft;
use anyhow::{Context, Result};
use api::tape::{Head, TapeExchange};
use api::{End, Request, Stream};
use client::{
    AttemptPolicy, AttemptTrouble, Attempts, Body, Error, Network, NextAttempt, PieceContent,
    Recorder, Response, Speed, TimeLimits, Wait,
};
use event::payload::Warning;
use std::cell::RefCell;
use std::time::Duration;
use tokio::time::Instant;
use trace::TraceContext;

/// The number of bytes after which the reading of an error's body stops.
const ERROR_BODY: usize = 1 << 20;

/// One turn and all it needs.
pub struct AskTurn<'a, H> {
    /// What to ask.
    pub turn: &'a TurnDraft,
    /// Where the events go.
    pub host: &'a mut H,
    /// How the provider is reached.
    pub connection: ConnectionArgs,
    /// The way to the provider; `None` if every answer is recorded.
    pub network: Option<&'a Network>,
    /// The tape, if one is used.
    pub recorder: Option<&'a RefCell<Recorder>>,
    /// Recorded answers in the place of the provider, if it has any.
    pub playlist: Option<&'a Playlist>,
    /// How fast a recorded answer is played.
    pub speed: Speed,
    /// Whether the tools go into the prompt if the provider refuses them.
    pub may_tag: bool,
    /// The model that is asked instead where the server of this one fails, if there is one.
    pub next: Option<&'a str>,
    /// What a tape is to keep of this turn: empty at first.
    pub recorded: Vec<TapeExchange>,
}

/// How a session ended.
#[derive(Debug)]
pub struct SessionEnd<S> {
    /// What stopped it from outside.
    pub stop: Option<S>,
    /// What a tape is to keep: see [`Recorder::save`].
    pub recorded: Vec<TapeExchange>,
    /// Whether the server failed before the first event, so that [`AskTurn::next`] is to be asked. The
    /// stream has a warning, and has not begun.
    pub fell_back: bool,
    /// The provider's words, if it refused tools and then answered with the tools in the prompt.
    pub refusal: Option<String>,
}

/// How all attempts ended.
enum TurnEnd<S> {
    Ended,
    Stopped(S),
    FellBack,
}

/// How one attempt ended.
enum AttemptEnd<S> {
    Ended,
    Stopped(S),
    Failed(AttemptTrouble),
}

impl<H: Host> AskTurn<'_, H> {
    /// Asks until a part of an answer is written or no further attempt is allowed, and writes the
    /// events. A turn that gives up writes its trouble into the stream and returns no error.
    ///
    /// # Errors
    /// Failures of the host, a request that cannot be made.
    pub async fn run(mut self) -> Result<SessionEnd<H::Stop>> {
        let mut refusal = None;
        let end = self.attempts(&mut refusal).await?;
        Ok(SessionEnd {
            fell_back: matches!(end, TurnEnd::FellBack),
            stop: match end {
                TurnEnd::Stopped(stop) => Some(stop),
                TurnEnd::Ended | TurnEnd::FellBack => None,
            },
            recorded: self.recorded,
            refusal,
        })
    }

    /// The request in this form. That of a long conversation is made by another thread, so that
    /// whoever shares this one does not wait.
    async fn request(&self, form: RequestForm) -> Result<Request> {
        if !self.turn.is_long() {
            return self.turn.request(form);
        }
        let turn = self.turn.clone();
        tokio::task::spawn_blocking(move || turn.request(form)).await?
    }

    async fn attempts(&mut self, refusal: &mut Option<String>) -> Result<TurnEnd<H::Stop>> {
        let deadline = self.connection.timeout.map(|time| Instant::now() + time);
        let mut form = self.turn.form;
        let mut attempts = Attempts::new(AttemptPolicy {
            retries: self.connection.retries(),
            only_lost: self.connection.only_lost,
            may_ask_whole: self.connection.fallback == Fallback::Sync && self.turn.options.stream,
            may_tag: self.may_tag && matches!(form.tools, ToolsForm::Native),
        });
        let mut span = None;
        loop {
            let mut request = self.request(form).await?;
            let mut options = self.turn.stream_options(&request, attempts.number(), form);
            if let Some(caller) = &self.turn.trace {
                // All attempts share one span.
                let span: &TraceContext =
                    span.get_or_insert_with(|| caller.child(&self.turn.span_seed(&request)));
                let headers = span.headers();
                request
                    .headers
                    .extend(headers.map(|(name, value)| (name.to_owned(), value)));
                (options.span, options.caller) = (Some(span.span), Some(caller.span));
            }
            let played = self.playlist.map(Playlist::next);
            let mut stream = Stream::new(
                played.map_or(self.turn.provider.api, |played| played.api),
                options,
            );
            let stats = stream.stats();
            stats.retries = Some(u64::from(attempts.retries())).filter(|n| *n > 0);
            stats.fallbacks = Some(u64::from(attempts.fallbacks())).filter(|n| *n > 0);
            let trouble = match self.attempt(request, played, &mut stream, deadline).await? {
                AttemptEnd::Ended => {
                    let was_live = self.recorder.is_none() || !self.recorded.is_empty();
                    if let Some(refusal) = refusal.as_deref().filter(|_| was_live) {
                        self.turn.keep_refusal(refusal);
                    }
                    return Ok(TurnEnd::Ended);
                }
                AttemptEnd::Stopped(stop) => return Ok(TurnEnd::Stopped(stop)),
                AttemptEnd::Failed(trouble) => trouble,
            };
            self.host.set_time(None, false);
            let fits = |wait: &Wait| {
                deadline.is_none_or(|deadline| Instant::now() + self.scaled(wait.time) < deadline)
            };
            let next = attempts.after(&trouble, fits);
            match next {
                NextAttempt::Tagged(words) => {
                    let message = format!("{words}; asking again with the tools in the prompt");
                    self.warn("tools_refused", &message);
                    self.host.note(Note::Detail(&message));
                    form.tools = self.turn.tag();
                    *refusal = Some(words);
                }
                NextAttempt::Whole => {
                    self.host.note(Note::Detail(
                        "streaming is refused; asking for the whole answer at once",
                    ));
                    form.is_whole = true;
                }
                NextAttempt::GiveUp(_)
                    if self.next.is_some() && trouble::is_of_server(&trouble) =>
                {
                    self.fall_back(&trouble, stream.server());
                    return Ok(TurnEnd::FellBack);
                }
                NextAttempt::GiveUp(advice) => {
                    let redactor = self.turn.redactor();
                    if self.network.is_some() && self.host.has_times() {
                        stream.set_timestamp(now());
                    }
                    trouble::write(
                        &trouble,
                        advice.as_deref(),
                        redactor,
                        &mut stream,
                        self.host.sink(),
                    );
                    return Ok(TurnEnd::Ended);
                }
                NextAttempt::Again(wait) => {
                    self.announce(&trouble, &wait);
                    self.host.flush().await?;
                    let limits = TimeLimits {
                        idle: None,
                        deadline,
                    };
                    tokio::select! {
                        biased;
                        stop = self.host.stop() => {
                            let stop = stop?;
                            self.end(&mut stream, End::Cancelled);
                            return Ok(TurnEnd::Stopped(stop));
                        }
                        slept = limits.sleep(self.scaled(wait.time)) => if let Err(error) = slept {
                            let end = end(&error, stream.server());
                            self.end(&mut stream, end);
                            return Ok(TurnEnd::Ended);
                        }
                    }
                }
            }
        }
    }

    /// Ends a stream without giving a time for its end.
    fn end(&mut self, stream: &mut Stream, end: End) {
        self.host.set_time(None, false);
        stream.finish(end, self.host.sink());
    }

    fn warn(&mut self, code: &str, message: &str) {
        let warning = Warning::new(self.host.command(), code, message);
        self.host.sink().write(0, &warning.into());
    }

    /// Reports that another model is asked. `server` is as for [`trouble::sentence`].
    fn fall_back(&mut self, trouble: &AttemptTrouble, server: Option<&str>) {
        let next = self.next.unwrap_or_default();
        let what = trouble::message(trouble, server);
        let message = format!("{}: {what}; asking {next} instead", self.turn.model());
        let message = self.turn.redactor().text(&message).into_owned();
        self.warn("fallback", &message);
        self.host.note(Note::Important(&message));
    }

    /// Reports a wait before it begins. A long wait becomes a warning in the stream and a message
    /// to the person. A short wait, or the message of one that a replay shortens, is a detail.
    fn announce(&mut self, trouble: &AttemptTrouble, wait: &Wait) {
        let message = format!(
            "{}; asking again {}",
            trouble::message(trouble, None),
            wait.when()
        );
        let message = self.turn.redactor().text(&message).into_owned();
        if wait.is_announced() {
            self.warn("retry_wait", &message);
        }
        let is_important = wait.is_announced() && self.scaled(wait.time) == wait.time;
        self.host.note(if is_important {
            Note::Important(&message)
        } else {
            Note::Detail(&message)
        });
    }

    /// A wait between attempts. Without a network, it follows the speed of the replay.
    fn scaled(&self, wait: Duration) -> Duration {
        match (self.network.is_some(), self.speed) {
            (true, _) => wait,
            (false, Speed::Times(times)) => wait.div_f64(times),
            (false, Speed::Max) => Duration::ZERO,
        }
    }

    async fn attempt(
        &mut self,
        request: Request,
        played: Option<&PlayedAnswer>,
        stream: &mut Stream,
        deadline: Option<Instant>,
    ) -> Result<AttemptEnd<H::Stop>> {
        let (turn, provider) = (self.turn, &self.turn.provider);
        if let Some(PlayedAnswer {
            head, recording, ..
        }) = played
        {
            drop(request);
            if played.is_some_and(|played| played.is_log) {
                stream.read_log();
            }
            let mut body = Body::of_recording(recording.clone(), self.speed);
            return Ok(self.answer(head.clone(), &mut body, stream).await?.0);
        }
        let mut recording = None;
        if let Some(recorder) = self.recorder {
            let answer = recorder
                .borrow_mut()
                .answer(turn.model(), &request, &turn.asked());
            match answer {
                Ok(Some(exchange)) => {
                    if exchange.logged.is_some() {
                        stream.read_log();
                    }
                    self.host.note(Note::Detail("the tape answers"));
                    let recording = recorder.borrow().play(&exchange);
                    let mut body = Body::of_recording(recording, self.speed);
                    return Ok(self
                        .answer(head(exchange.head.as_ref()), &mut body, stream)
                        .await?
                        .0);
                }
                Ok(None) => {}
                Err(miss) => return Ok(AttemptEnd::Failed(AttemptTrouble::Miss(miss))),
            }
            let is_secret = |name: &str| provider.is_secret(name);
            recording = Some(recorder.borrow().begin(
                provider.api,
                turn.model(),
                &request,
                is_secret,
            ));
        }
        let network = self
            .network
            .context("neither a network nor a tape that answers")?;
        self.host.flush().await?;
        self.host.note(Note::Request(&request));
        let limits = TimeLimits {
            idle: Some(self.connection.idle_timeout),
            deadline,
        };
        let answered = tokio::select! {
            biased;
            answered = network.send(request, limits, recording) => answered,
            stop = self.host.stop() => {
                let stop = stop?;
                self.end(stream, End::Cancelled);
                return Ok(AttemptEnd::Stopped(stop));
            }
        };
        let Response { head, mut body } = match answered {
            Ok(response) => response,
            Err((error, recorded)) => {
                self.keep(recorded);
                return Ok(AttemptEnd::Failed(AttemptTrouble::Lost(error)));
            }
        };
        let (attempt, lost) = self.answer(head, &mut body, stream).await?;
        if !matches!(attempt, AttemptEnd::Stopped(_)) {
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
    ) -> Result<(AttemptEnd<H::Stop>, Option<Error>), H::Failure> {
        self.host
            .note(Note::At(&format!("HTTP {}", head.status), Some(head.after)));
        self.host.answered(&head);
        let end = if (200..300).contains(&head.status) {
            write_events(body, stream, self.host).await?
        } else {
            match self.error_body(body).await? {
                (_, Err(stop)) => ResponseEnd::Stopped(stop),
                (bytes, Ok(lost)) => {
                    // A server may repeat the key that it was sent. The text is redacted before it
                    // is shortened, because a part of a key is not recognised.
                    let text = self
                        .turn
                        .redactor()
                        .text(&String::from_utf8_lossy(&bytes))
                        .into_owned();
                    return Ok((
                        AttemptEnd::Failed(AttemptTrouble::Refused(head, text)),
                        lost,
                    ));
                }
            }
        };
        Ok(match end {
            ResponseEnd::Ended(lost) => (AttemptEnd::Ended, lost),
            ResponseEnd::Lost(error) => (
                AttemptEnd::Failed(AttemptTrouble::Lost(error.clone())),
                Some(error),
            ),
            ResponseEnd::Stopped(stop) => {
                self.end(stream, End::Cancelled);
                (AttemptEnd::Stopped(stop), None)
            }
        })
    }

    /// Reads the body of an error until it ends, is lost or reaches `ERROR_BODY`. Returns the
    /// bytes, with the error that cut them, if one did, or what stopped the reading.
    async fn error_body(
        &mut self,
        body: &mut Body,
    ) -> Result<(Vec<u8>, Result<Option<Error>, H::Stop>), H::Failure> {
        let mut bytes = vec![];
        loop {
            let is_due = self.host.is_due();
            let next = match self.host.stopped(is_due) {
                Some(stop) => Err(stop),
                None => tokio::select! {
                    biased;
                    piece = body.next() => Ok(piece.what),
                    stop = self.host.stop() => Err(stop),
                },
            };
            match next {
                Err(stop) => return Ok((bytes, Err(stop?))),
                Ok(PieceContent::Bytes(more)) if bytes.len() < ERROR_BODY => {
                    bytes.extend_from_slice(more)
                }
                Ok(PieceContent::Bytes(_) | PieceContent::End) => return Ok((bytes, Ok(None))),
                Ok(PieceContent::Lost(error)) => return Ok((bytes, Ok(Some(error)))),
            }
        }
    }

    fn keep(&mut self, exchange: Option<Box<TapeExchange>>) {
        self.recorded.extend(exchange.map(|exchange| *exchange));
    }
}
