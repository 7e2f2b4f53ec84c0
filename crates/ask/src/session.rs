//! Makes the attempts at one turn, until part of a response is written, the host stops the turn,
//! the deadline passes or no further attempt is allowed.

use super::args::{ConnectionArgs, Fallback};
use super::form::{RequestForm, ToolsForm};
use super::host::{Host, Note};
use super::pace::{Pace, is_busy};
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
    RecordedAnswer, Recorder, Response, Speed, TimeLimits, Wait,
};
use event::payload::Warning;
use std::cell::RefCell;
use std::time::Duration;
use tokio::time::Instant;
use trace::TraceContext;

/// The most bytes to read from an error's body.
const ERROR_BODY: usize = 1 << 20;

/// One turn and everything needed to run it.
pub struct AskTurn<'a, H> {
    /// The turn to run.
    pub turn: &'a TurnDraft,
    /// The host that receives the events.
    pub host: &'a mut H,
    /// The connection options.
    pub connection: ConnectionArgs,
    /// The client of the provider; `None` if every response is recorded.
    pub network: Option<&'a Network>,
    /// The pace that this turn shares with other turns of the same server; `None` for a turn alone.
    pub pace: Option<&'a Pace>,
    /// The tape, if one is used.
    pub recorder: Option<&'a RefCell<Recorder>>,
    /// Recorded responses used in place of the provider, if there are any.
    pub playlist: Option<&'a Playlist>,
    /// The replay speed of recorded responses.
    pub speed: Speed,
    /// Whether to put the tools into the prompt if the provider rejects them.
    pub may_tag: bool,
    /// The model to try next if this model's server fails; `None` for the last model.
    pub next: Option<&'a str>,
    /// The exchanges of this turn to record on the tape; initially empty.
    pub recorded: Vec<TapeExchange>,
}

/// How a session ended.
#[derive(Debug)]
pub struct SessionEnd<S> {
    /// What stopped the session from outside, if anything did.
    pub stop: Option<S>,
    /// The exchanges to record on the tape; see [`Recorder::save`].
    pub recorded: Vec<TapeExchange>,
    /// Whether the server failed before the first event, so that [`AskTurn::next`] should be tried.
    /// The stream then has a warning, but has not begun.
    pub fell_back: bool,
    /// The provider's message, if it rejected tools and then responded with the tools in the
    /// prompt.
    pub refusal: Option<String>,
    /// Whether the provider rejected the request for a whole response and was asked for a stream.
    pub needs_stream: bool,
}

/// The progress of the attempts at a turn.
struct Progress {
    deadline: Option<Instant>,
    /// The form of the next request.
    form: RequestForm,
    attempts: Attempts,
    span: Option<TraceContext>,
    /// The provider's message when it rejected tools.
    refusal: Option<String>,
    /// How many turns of the same pace were answered when the server was busy last, or at the start.
    answers: u64,
    /// How often the server was busy while it answered other turns.
    shared: u32,
}

/// The most retries because of a server that is busy with other turns.
const MOST_SHARED: u32 = 20;

impl Progress {
    /// Records that the server is busy. While it answers other turns, the limit is one of all, so
    /// that it does not count as a retry of this one.
    fn share(&mut self, pace: &Pace) {
        let answers = pace.answers();
        if answers > self.answers && self.shared < MOST_SHARED {
            self.shared += 1;
            self.attempts.allow_another();
        }
        self.answers = answers;
    }
}

/// How the last of the attempts ended.
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

impl<'a, H: Host> AskTurn<'a, H> {
    /// Makes attempts until part of a response is written or no further attempt is allowed, and
    /// writes the events. A turn that gives up writes its error into the stream and returns `Ok`.
    ///
    /// # Errors
    /// Failures of the host, and a request that cannot be built.
    pub async fn run(mut self) -> Result<SessionEnd<H::Stop>> {
        let form = self.turn.form;
        let mut progress = Progress {
            deadline: self.connection.timeout.map(|time| Instant::now() + time),
            form,
            attempts: Attempts::new(AttemptPolicy {
                retries: self.connection.retries(),
                only_lost: self.connection.only_lost,
                may_ask_whole: self.connection.fallback == Fallback::Sync
                    && self.turn.options.stream
                    && !form.is_whole,
                may_ask_stream: form.is_whole,
                may_tag: self.may_tag && matches!(form.tools, ToolsForm::Native),
            }),
            span: None,
            refusal: None,
            answers: self.pace.map_or(0, Pace::answers),
            shared: 0,
        };
        let end = self.attempts(&mut progress).await?;
        Ok(SessionEnd {
            fell_back: matches!(end, TurnEnd::FellBack),
            stop: match end {
                TurnEnd::Stopped(stop) => Some(stop),
                TurnEnd::Ended | TurnEnd::FellBack => None,
            },
            recorded: self.recorded,
            refusal: progress.refusal,
            needs_stream: form.is_whole && !progress.form.is_whole,
        })
    }

    async fn attempts(&mut self, progress: &mut Progress) -> Result<TurnEnd<H::Stop>> {
        loop {
            let played = self.playlist.map(Playlist::next);
            let (request, mut stream) = self.prepare(played, progress).await?;
            let deadline = progress.deadline;
            let mut place = None;
            if let Some(pace) = self.pace {
                match self.wait(pace.enter(), deadline, &mut stream).await? {
                    Ok(entered) => place = Some(entered),
                    Err(end) => return Ok(end),
                }
            }
            let trouble = match self.attempt(request, played, &mut stream, deadline).await? {
                AttemptEnd::Ended => {
                    if let Some(place) = &place {
                        place.answered();
                    }
                    self.keep_refusal(progress);
                    return Ok(TurnEnd::Ended);
                }
                AttemptEnd::Stopped(stop) => return Ok(TurnEnd::Stopped(stop)),
                AttemptEnd::Failed(trouble) => trouble,
            };
            self.host.set_time(None, false);
            let pace = self.pace.filter(|_| is_busy(&trouble));
            if let (Some(pace), Some(place)) = (pace, place) {
                place.refused();
                progress.share(pace);
            }
            let fits = |wait: &Wait| {
                deadline.is_none_or(|deadline| Instant::now() + self.scaled(wait.time) < deadline)
            };
            match progress.attempts.after(&trouble, fits) {
                NextAttempt::Tagged(words) => {
                    let message = format!("{words}; asking again with the tools in the prompt");
                    self.warn("tools_refused", &message);
                    self.host.note(Note::Detail(&message));
                    progress.form.tools = self.turn.tag();
                    progress.refusal = Some(words);
                }
                NextAttempt::Whole => {
                    self.host.note(Note::Detail(
                        "streaming is refused; asking for the whole answer at once",
                    ));
                    progress.form.is_whole = true;
                }
                NextAttempt::Stream => {
                    self.host.note(Note::Detail(
                        "the whole answer at once is refused; asking for a stream",
                    ));
                    progress.form.is_whole = false;
                }
                NextAttempt::GiveUp(advice) => {
                    return Ok(self.give_up(&trouble, advice.as_deref(), &mut stream));
                }
                NextAttempt::Again(wait) => {
                    self.announce(&trouble, &wait);
                    if let Some(pace) = pace {
                        pace.hold(self.scaled(wait.time));
                    }
                    let slept = tokio::time::sleep(self.scaled(wait.time));
                    if let Err(end) = self.wait(slept, deadline, &mut stream).await? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Returns the request of the next attempt, and the stream that parses its response. All
    /// attempts share one span.
    async fn prepare(
        &self,
        played: Option<&PlayedAnswer>,
        progress: &mut Progress,
    ) -> Result<(Request, Stream)> {
        let (form, attempts) = (progress.form, &progress.attempts);
        let mut request = self.request(form).await?;
        let mut options = self.turn.stream_options(&request, attempts.number(), form);
        if let Some(caller) = &self.turn.trace {
            let seed = || caller.child(&self.turn.span_seed(&request));
            let span: &TraceContext = progress.span.get_or_insert_with(seed);
            let headers = span.headers();
            request
                .headers
                .extend(headers.map(|(name, value)| (name.to_owned(), value)));
            (options.span, options.caller) = (Some(span.span), Some(caller.span));
        }
        let api = played.map_or(self.turn.provider.api, |played| played.api);
        let mut stream = Stream::new(api, options);
        let stats = stream.stats();
        stats.retries = Some(u64::from(attempts.retries())).filter(|n| *n > 0);
        stats.fallbacks = Some(u64::from(attempts.fallbacks())).filter(|n| *n > 0);
        Ok((request, stream))
    }

    /// Caches that the server rejects tools, unless its response without them was replayed from a
    /// recording.
    fn keep_refusal(&self, progress: &Progress) {
        let was_live = self.recorder.is_none() || !self.recorded.is_empty();
        if let Some(refusal) = progress.refusal.as_deref().filter(|_| was_live) {
            self.turn.keep_refusal(refusal);
        }
    }

    /// Ends the turn without a response, or, if the server failed, leaves the turn to the next
    /// model.
    fn give_up(
        &mut self,
        trouble: &AttemptTrouble,
        advice: Option<&str>,
        stream: &mut Stream,
    ) -> TurnEnd<H::Stop> {
        if let Some(next) = self.next.filter(|_| trouble::is_of_server(trouble)) {
            self.fall_back(next, trouble, stream.server());
            return TurnEnd::FellBack;
        }
        if self.network.is_some() && self.host.has_times() {
            stream.set_timestamp(now());
        }
        let redactor = self.turn.redactor();
        trouble::write(trouble, advice, redactor, stream, self.host.sink());
        TurnEnd::Ended
    }

    /// Waits for a place among the turns that share a pace, or for the next attempt. Returns how the
    /// turn ended if a stop or the deadline ended it during the wait.
    async fn wait<T>(
        &mut self,
        work: impl Future<Output = T>,
        deadline: Option<Instant>,
        stream: &mut Stream,
    ) -> Result<Result<T, TurnEnd<H::Stop>>> {
        self.host.flush().await?;
        let limits = TimeLimits {
            idle: None,
            deadline,
        };
        tokio::select! {
            biased;
            stop = self.host.stop() => {
                let stop = stop?;
                self.end(stream, End::Cancelled);
                Ok(Err(TurnEnd::Stopped(stop)))
            }
            done = limits.wait(work) => Ok(done.map_err(|error| {
                let end = end(&error, stream.server());
                self.end(stream, end);
                TurnEnd::Ended
            })),
        }
    }

    /// Builds the request in this form. For a long conversation another thread builds it, so that
    /// other tasks on this thread do not wait.
    async fn request(&self, form: RequestForm) -> Result<Request> {
        if !self.turn.is_long() {
            return self.turn.request(form);
        }
        let turn = self.turn.clone();
        tokio::task::spawn_blocking(move || turn.request(form)).await?
    }

    /// Ends a stream without an end time.
    fn end(&mut self, stream: &mut Stream, end: End) {
        self.host.set_time(None, false);
        stream.finish(end, self.host.sink());
    }

    fn warn(&mut self, code: &str, message: &str) {
        let warning = Warning::new(self.host.command(), code, message);
        self.host.sink().write(0, &warning.into());
    }

    /// Reports that another model is tried. `server` is as for [`trouble::sentence`].
    fn fall_back(&mut self, next: &str, trouble: &AttemptTrouble, server: Option<&str>) {
        let what = trouble::message(trouble, server);
        let message = format!("{}: {what}; asking {next} instead", self.turn.model());
        let message = self.turn.redactor().text(&message).into_owned();
        self.warn("fallback", &message);
        self.host.note(Note::Important(&message));
    }

    /// Reports a wait before it begins. A long wait is reported as a warning in the stream and a
    /// message to the user. A short wait, or one that a replay shortens, is reported as a detail.
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

    /// Returns the length of a wait between attempts. Without a network, it is scaled by the replay
    /// speed.
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
        if let Some(played) = played {
            let PlayedAnswer {
                head,
                recording,
                is_log,
                ..
            } = played;
            return self
                .play(head.clone(), recording.clone(), *is_log, stream)
                .await;
        }
        let (turn, provider) = (self.turn, &self.turn.provider);
        let mut recording = None;
        if let Some(recorder) = self.recorder {
            let answer = recorder
                .borrow_mut()
                .answer(turn.model(), &request, &turn.asked());
            match answer {
                Ok(Some(exchange)) => {
                    self.host.note(Note::Detail("the tape answers"));
                    let recording = recorder.borrow().play(&exchange);
                    let (head, is_log) = (head(exchange.head.as_ref()), exchange.logged.is_some());
                    return self.play(head, recording, is_log, stream).await;
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

    /// Reads a recorded response. `is_log` is true if it is an event log rather than the provider's
    /// bytes.
    async fn play(
        &mut self,
        head: Head,
        recording: RecordedAnswer,
        is_log: bool,
        stream: &mut Stream,
    ) -> Result<AttemptEnd<H::Stop>> {
        if is_log {
            stream.read_log();
        }
        let mut body = Body::of_recording(recording, self.speed);
        Ok(self.answer(head, &mut body, stream).await?.0)
    }

    /// Reads a response that has begun. Also returns the error that cut the response off, if any.
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
                    // A server may echo the key that it received. The text is redacted before it is
                    // shortened, because a truncated key would not be recognized.
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

    /// Reads the body of an error until it ends, is lost or reaches `ERROR_BODY` bytes. Returns the
    /// bytes and the error that cut them off, if any, or what stopped the reading.
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
