//! One turn with a provider or a tape: attempts, until something of an answer was written.

use crate::args::{Args, Fallback, Speed};
use crate::http::{Live, Network, elapsed, ending};
use crate::interrupt::Watch;
use crate::limits::{Limits, Pulse};
use crate::mode::Auto;
use crate::out::{Clock, Out};
use crate::pour::{Poured, pour};
use crate::recorder::Recorder;
use crate::retry::Wait;
use crate::source::{Recorded, Source, What};
use crate::trouble::Trouble;
use crate::turn::{Told, Turn};
use anyhow::{Context, Result};
use event::payload::Warning;
use std::time::Duration;
use stdio::Failure;
use tokio::time::Instant;
use upstream::tape::{Exchange, Head};
use upstream::{End, Request, Stream};

/// The longest body of an error that is read.
const ERROR_BODY: usize = 1 << 20;

/// One turn and all it needs.
pub struct Session<'s> {
    pub args: &'s Args,
    pub turn: &'s Turn,
    /// What may be learned when the provider refuses tools; then the same is asked with the tools in the prompt.
    pub auto: Option<Auto<'s>>,
    pub network: Option<Network>,
    pub recorder: Option<&'s mut Recorder>,
    pub watch: &'s Watch,
    pub out: &'s mut Out,
}

enum Attempt {
    Ended,
    Signal(i32),
    Trouble(Trouble),
}

impl Session<'_> {
    /// Asks, again if it must be, and writes the events. Gives the signal that ended it, if one did.
    ///
    /// # Errors
    /// Failures of standard output, a request that cannot be made.
    pub async fn run(mut self) -> Result<Option<i32>> {
        let deadline = self.args.connection.timeout.map(|time| Instant::now() + time);
        let (mut attempt, mut retries, mut way) = (1, 0, self.turn.way);
        let mut refused: Option<String> = None;
        loop {
            let request = self.turn.request(self.args, way)?;
            let mut stream = Stream::new(self.turn.api, self.turn.stream_options(self.args, &request, attempt, way));
            let stats = stream.stats();
            stats.retries = Some(u64::from(retries)).filter(|n| *n > 0);
            stats.fallbacks = Some(u64::from(way.whole) + u64::from(refused.is_some())).filter(|n| *n > 0);
            let trouble = match self.attempt(&request, &mut stream, deadline).await? {
                Attempt::Ended => {
                    let live = self.recorder.is_none_or(|r| r.has_recorded());
                    if let (Some(auto), Some(said)) = (self.auto.filter(|_| live), &refused) {
                        auto.refused(said);
                    }
                    return Ok(None);
                }
                Attempt::Signal(signal) => return Ok(Some(signal)),
                Attempt::Trouble(trouble) => trouble,
            };
            if let (Some(_), Told::Native, Some(said)) = (&self.auto, way.told, trouble.refuses_tools()) {
                let message = format!("{said}; the same is asked again with the tools in the prompt");
                self.out.event(&Warning {
                    source: "llm-stream",
                    code: "tools_refused",
                    message: &message,
                    ..Warning::default()
                });
                self.out.verbose().say(&message);
                way.told = self.turn.tag();
                refused = Some(said);
                attempt += 1;
                continue;
            }
            let may_fall_back = self.args.connection.fallback == Fallback::Sync && self.turn.streams() && !way.whole;
            if may_fall_back && trouble.refuses_streaming() {
                self.out.verbose().say("streaming is refused; the whole answer is asked for at once");
                way.whole = true;
                continue;
            }
            let asked = trouble.wait(retries + 1);
            let fits = |wait: &Wait| {
                let time = self.scaled(wait.time);
                wait.is_granted() && deadline.is_none_or(|deadline| Instant::now() + time < deadline)
            };
            let Some(wait) = asked.as_ref().filter(|wait| retries < self.args.connection.retries && fits(wait)) else {
                let advice = asked.and_then(|wait| wait.advice());
                trouble.write(advice.as_deref(), self.turn.redactor(), &mut stream, self.out);
                return Ok(None);
            };
            self.announce(&trouble, wait);
            let wait = self.scaled(wait.time);
            self.out.flush()?;
            let limits = Limits { idle: None, deadline };
            tokio::select! {
                biased;
                over = limits.over(self.watch) => {
                    let (end, signal) = limits.end(over)?;
                    stream.finish(end, &mut Clock::default().sink(None, self.out));
                    return Ok(signal);
                }
                () = tokio::time::sleep(wait) => {}
            }
            attempt += 1;
            retries += 1;
        }
    }

    /// Reports a long wait before it begins: in the stream, and to a person who would sit before it.
    fn announce(&mut self, trouble: &Trouble, wait: &Wait) {
        if !wait.is_announced() && !self.out.verbose().is_on() {
            return;
        }
        let message = format!("{}; the same is asked again {}", trouble.message(), wait.when());
        let message = self.turn.redactor().text(&message);
        if wait.is_announced() {
            let warning = Warning { source: "llm-stream", code: "retry_wait", message: &message, ..Warning::default() };
            self.out.event(&warning);
        }
        if wait.is_announced() && self.scaled(wait.time) == wait.time {
            stdio::message("llm-stream", &message);
        } else {
            self.out.verbose().say(&message);
        }
    }

    /// A wait between attempts; a tape has no need of it beyond the speed that is asked for.
    fn scaled(&self, wait: Duration) -> Duration {
        match (self.network.is_some(), self.args.replay.speed) {
            (true, _) => wait,
            (false, Speed::Times(times)) => wait.div_f64(times),
            (false, Speed::Max) => Duration::ZERO,
        }
    }

    async fn attempt(&mut self, request: &Request, stream: &mut Stream, deadline: Option<Instant>) -> Result<Attempt> {
        let model = self.turn.model();
        let recorded = match &mut self.recorder {
            Some(recorder) => match recorder.answer(model, request) {
                Ok(recorded) => recorded,
                Err(miss) => return Ok(Attempt::Trouble(Trouble::Miss(miss))),
            },
            None => None,
        };
        if let Some(exchange) = recorded {
            let (head, mut source) = self.play(&exchange);
            self.out.verbose().say("the tape answers");
            return Ok(self.answer(head, &mut source, stream, Limits::default()).await?.0);
        }
        let limits = Limits { idle: Some(self.args.connection.idle_timeout), deadline };
        let mut recording = self.recorder.as_ref().map(|r| r.begin(self.turn, request));
        let sent = Instant::now();
        self.out.flush()?;
        self.out.verbose().request(request, self.turn.redactor());
        let network = self.network.as_ref().context("neither a network nor a tape that answers")?;
        let answered = tokio::select! {
            biased;
            answered = network.send(request, sent) => answered,
            over = limits.over(self.watch) => {
                let (end, signal) = limits.end(over)?;
                if let Some(signal) = signal {
                    stream.finish(end, &mut Clock::default().sink(None, self.out));
                    return Ok(Attempt::Signal(signal));
                }
                Err(end)
            }
        };
        let (head, response) = match answered {
            Ok(answered) => answered,
            Err(end) => {
                self.keep(recording.take().map(|e| Exchange { end: Some((elapsed(sent), ending(&end))), ..e }));
                return Ok(Attempt::Trouble(Trouble::Broken(end)));
            }
        };
        let mut source = Source::Live(Box::new(Live::new(response, &head, sent, recording)));
        let (attempt, end) = self.answer(head, &mut source, stream, limits).await?;
        if let Source::Live(live) = source
            && !matches!(attempt, Attempt::Signal(_))
        {
            self.keep(live.recorded(&end));
        }
        Ok(attempt)
    }

    /// Reads an answer that has begun, and says how its bytes ended.
    async fn answer(
        &mut self,
        head: Head,
        source: &mut Source,
        stream: &mut Stream,
        limits: Limits,
    ) -> Result<(Attempt, End), Failure> {
        self.out.verbose().at(format_args!("HTTP {}", head.status), Some(head.after));
        if !(200..300).contains(&head.status) {
            let (body, end) = self.error_body(source, limits).await?;
            return Ok(match end {
                Err(signal) => {
                    stream.finish(End::Cancelled, &mut Clock::default().sink(None, self.out));
                    (Attempt::Signal(signal), End::Cancelled)
                }
                // A server may repeat the key that it was sent; the text is cut below, and a part of a key would not be recognised any more.
                Ok(end) => {
                    let body = self.turn.redactor().text(&String::from_utf8_lossy(&body)).into_owned();
                    (Attempt::Trouble(Trouble::Refused(head, body)), end)
                }
            });
        }
        let (poured, end) = pour(source, stream, None, limits, self.watch, self.out).await?;
        Ok(match poured {
            Poured::Ended => (Attempt::Ended, end),
            Poured::Broken => (Attempt::Trouble(Trouble::Broken(end.clone())), end),
            Poured::Signal(signal) => {
                stream.finish(End::Cancelled, &mut Clock::default().sink(None, self.out));
                (Attempt::Signal(signal), end)
            }
        })
    }

    /// The body of an error, as far as it comes, and how it ended, or the signal.
    async fn error_body(
        &mut self,
        source: &mut Source,
        limits: Limits,
    ) -> Result<(Vec<u8>, Result<End, i32>), Failure> {
        let mut body = vec![];
        let mut pulse = Pulse::default();
        loop {
            let piece = match limits.passed(self.watch, pulse.is_due()) {
                Some(over) => Err(over),
                None => tokio::select! {
                    biased;
                    piece = source.next() => Ok(piece.what),
                    over = limits.over(self.watch) => Err(over),
                },
            };
            let piece = match piece {
                Ok(piece) => piece,
                Err(over) => match limits.end(over)? {
                    (_, Some(signal)) => return Ok((body, Err(signal))),
                    (end, None) => What::End(end),
                },
            };
            match piece {
                What::Bytes(bytes) if body.len() < ERROR_BODY => body.extend_from_slice(bytes),
                What::Bytes(_) => return Ok((body, Ok(End::Eof))),
                What::End(end) => return Ok((body, Ok(end))),
            }
        }
    }

    /// A recorded answer at the speed that is asked for.
    fn play(&self, exchange: &Exchange) -> (Head, Source) {
        let (reads, end) = crate::replay::timed(exchange);
        // Without a head the connection failed before, which the end says.
        let head = exchange.head.clone().unwrap_or(Head { status: 200, ..Head::default() });
        (head, Source::Recorded(Recorded::new(reads, end, self.args.replay.speed)))
    }

    fn keep(&mut self, exchange: Option<Exchange>) {
        if let (Some(recorder), Some(exchange)) = (&mut self.recorder, exchange) {
            recorder.keep(exchange);
        }
    }
}
