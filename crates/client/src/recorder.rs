//! A tape in use: replays responses from it and records responses on it.

use crate::{RecordedAnswer, ReplayFaults};
use api::tape::{self, AskedOfLog, Canonical, Miss, NextOfLog, Tape, TapeError, TapeExchange};
use api::{Api, Request};
use redact::{Redactor, is_secret_header};
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

/// How a tape is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeMode {
    /// Every response comes from the tape.
    Replay,
    /// Every response comes from the provider and is recorded.
    Record,
    /// Recorded responses are replayed; all others come from the provider and are recorded.
    Auto,
}

/// A tape in use.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    mode: TapeMode,
    tape: Tape,
    redactor: Redactor,
    faults: ReplayFaults,
}

/// Why a tape cannot be used. Each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The file does not exist.
    #[error("{path}: the tape does not exist", path = .0.display())]
    Missing(PathBuf),
    /// The file cannot be read.
    #[error("{path}: {1}, check the path and its permissions", path = .0.display())]
    Read(PathBuf, io::Error),
    /// The file is not a tape.
    #[error("{path}: {1}", path = .0.display())]
    Tape(PathBuf, TapeError),
    /// Recording was requested on a log of events, which can only be replayed.
    #[error("{path}: a log of events, which only answers; leave out --tape-mode, or name a tape to record on", path = .0.display())]
    Log(PathBuf),
    /// The file cannot be written.
    #[error("{path}: {1}, the answer was not recorded", path = .0.display())]
    Write(PathBuf, io::Error),
}

impl Recorder {
    /// Opens the tape at `path`. A tape to record on may be missing.
    ///
    /// # Errors
    /// See [`RecorderError`].
    pub fn open(path: PathBuf, mode: TapeMode) -> Result<Recorder, RecorderError> {
        let tape = match std::fs::read_to_string(&path) {
            Ok(text) => Tape::read(&text).map_err(|e| RecorderError::Tape(path.clone(), e))?,
            Err(e) if e.kind() == ErrorKind::NotFound && mode != TapeMode::Replay => {
                Tape::default()
            }
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(RecorderError::Missing(path)),
            Err(e) => return Err(RecorderError::Read(path, e)),
        };
        if tape.is_log() && mode != TapeMode::Replay {
            return Err(RecorderError::Log(path));
        }
        Ok(Recorder {
            path,
            mode,
            tape,
            redactor: Redactor::default(),
            faults: ReplayFaults::default(),
        })
    }

    /// Sets the redactor that removes secrets from requests and recordings.
    pub fn set_redactor(&mut self, redactor: &Redactor) {
        self.redactor = redactor.clone();
    }

    /// Sets the faults to inject into each response from the tape.
    pub fn set_faults(&mut self, faults: ReplayFaults) {
        self.faults = faults;
    }

    /// Returns the recorded response of an exchange, with the faults injected.
    pub fn play(&self, exchange: &TapeExchange) -> RecordedAnswer {
        let mut recording = RecordedAnswer::of(exchange);
        self.faults.apply(&mut recording);
        recording
    }

    /// Whether every response comes from the tape.
    pub fn is_offline(&self) -> bool {
        self.mode == TapeMode::Replay
    }

    /// Returns the API and the model of the first request, or `None` unless every response comes
    /// from the tape.
    pub fn first(&self) -> Option<(Api, String)> {
        let first = self.tape.exchanges.first().filter(|_| self.is_offline())?;
        Some((Api::from_name(&first.api)?, first.model.clone()))
    }

    /// Whether the tape is a log of events.
    pub fn is_log(&self) -> bool {
        self.tape.is_log()
    }

    /// Returns the next part of a log that answers what a turn asks.
    pub fn next_of_log(&self, asked: &AskedOfLog<'_>) -> NextOfLog<'_> {
        self.tape.next_of_log(asked)
    }

    /// Returns the recorded response, or `None` if the request must be sent. A log is searched by
    /// `asked`, a tape by the request.
    ///
    /// # Errors
    /// [`Miss`] if the response is not recorded and every response must come from the tape.
    pub fn answer(
        &mut self,
        model: &str,
        request: &Request,
        asked: &AskedOfLog<'_>,
    ) -> Result<Option<TapeExchange>, Miss> {
        if self.mode == TapeMode::Record {
            return Ok(None);
        }
        if self.tape.is_log() {
            return self
                .tape
                .take_logged(asked)
                .map(|found| Some(found.clone()));
        }
        match self.tape.take(&self.canonical(model, request)) {
            Ok(exchange) => Ok(Some(exchange.clone())),
            Err(_) if self.mode == TapeMode::Auto => Ok(None),
            Err(miss) => Err(miss),
        }
    }

    /// Whether [`Recorder::answer`] would answer this request from the tape.
    pub fn has_answer(&self, model: &str, request: &Request) -> bool {
        self.mode != TapeMode::Record
            && self
                .tape
                .clone()
                .take(&self.canonical(model, request))
                .is_ok()
    }

    /// Starts a recording with the request. `is_secret` returns whether the header with this name
    /// has a secret value; the recording contains only the names of such headers.
    pub fn begin(
        &self,
        api: Api,
        model: &str,
        request: &Request,
        is_secret: impl Fn(&str) -> bool,
    ) -> Box<TapeExchange> {
        let hidden = request
            .headers
            .iter()
            .filter(|(name, _)| is_secret_header(name) || is_secret(name));
        Box::new(TapeExchange {
            api: api.name().to_owned(),
            model: model.to_owned(),
            request: tape::RecordedRequest {
                method: request.method.to_owned(),
                url: request.url.clone(),
                body: serde_json::from_str(&request.body).unwrap_or_default(),
                sha256: self.canonical(model, request).sha256,
            },
            redactions: hidden
                .map(|(name, _)| format!("request.headers.{name}"))
                .collect(),
            ..TapeExchange::default()
        })
    }

    /// Appends the exchanges of one turn to the file in one write, with secrets removed. `is_good`
    /// is false if the turn failed; in mode `auto` a failed turn is not recorded, since later turns
    /// would replay it.
    ///
    /// # Errors
    /// [`RecorderError::Write`].
    pub fn save(
        &mut self,
        recorded: Vec<TapeExchange>,
        is_good: bool,
    ) -> Result<(), RecorderError> {
        if recorded.is_empty() || (self.mode == TapeMode::Auto && !is_good) {
            return Ok(());
        }
        let mut text = vec![];
        for mut exchange in recorded {
            exchange.redact(&self.redactor);
            text.push(b'\n');
            exchange.write(&mut text);
        }
        let is_new = std::fs::metadata(&self.path).map_or(0, |m| m.len()) == 0;
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path);
        file.and_then(|mut file| file.write_all(&text[usize::from(is_new)..]))
            .map_err(|e| RecorderError::Write(self.path.clone(), e))
    }

    fn canonical(&self, model: &str, request: &Request) -> Canonical {
        let body = serde_json::from_str(&request.body).unwrap_or_default();
        Canonical::of(model, &body, &self.redactor)
    }
}
