//! The tape file: answers from it, and recordings onto it.

use crate::args::TapeMode;
use crate::turn::Turn;
use anyhow::{Context, Result, anyhow};
use redact::Redactor;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use upstream::tape::{self, Canonical, Exchange, Miss, Tape};
use upstream::{Api, Request};

/// A tape in use.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    mode: TapeMode,
    tape: Tape,
    redactor: Redactor,
    /// What was recorded and is not yet in the file.
    fresh: Vec<Exchange>,
}

impl Recorder {
    /// Reads the tape. One that is to be recorded need not be there yet.
    ///
    /// # Errors
    /// The file, the line and what is wrong with it.
    pub fn open(path: PathBuf, mode: TapeMode) -> Result<Recorder> {
        let shown = path.display();
        let tape = match std::fs::read_to_string(&path) {
            Ok(text) => Tape::read(&text).with_context(|| shown.to_string())?,
            Err(e) if e.kind() == ErrorKind::NotFound && mode != TapeMode::Replay => Tape::default(),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(anyhow!("{shown}: there is no such tape, record one with --tape-mode record"));
            }
            Err(e) => return Err(anyhow!("{shown}: {e}, check the path and its permissions")),
        };
        Ok(Recorder { path, mode, tape, redactor: Redactor::default(), fresh: vec![] })
    }

    /// The keys that must not get onto the tape.
    pub fn hide(&mut self, redactor: &Redactor) {
        self.redactor = redactor.clone();
    }

    /// Whether every answer comes from the tape.
    pub fn is_offline(&self) -> bool {
        self.mode == TapeMode::Replay
    }

    /// The API and the model of the first request, which are those of an offline turn that names none.
    pub fn first(&self) -> Option<(Api, String)> {
        let first = self.tape.exchanges.first().filter(|_| self.is_offline())?;
        Some((Api::from_name(&first.api)?, first.model.clone()))
    }

    /// The recorded answer; `None` means that the provider is to be asked.
    ///
    /// # Errors
    /// [`Miss`], when nobody else may be asked.
    pub fn answer(&mut self, model: &str, request: &Request) -> Result<Option<Exchange>, Miss> {
        if self.mode == TapeMode::Record {
            return Ok(None);
        }
        match self.tape.take(&self.canonical(model, request)) {
            Ok(exchange) => Ok(Some(exchange.clone())),
            Err(_) if self.mode == TapeMode::Auto => Ok(None),
            Err(miss) => Err(miss),
        }
    }

    /// Whether the answer to this request is on the tape and will be taken from it.
    pub fn knows(&self, model: &str, request: &Request) -> bool {
        self.mode != TapeMode::Record && self.tape.clone().take(&self.canonical(model, request)).is_ok()
    }

    /// The beginning of a recording.
    pub fn begin(&self, turn: &Turn, request: &Request) -> Exchange {
        let hidden = request.headers.iter().filter(|(name, _)| turn.is_secret(name));
        Exchange {
            api: turn.api.name().to_owned(),
            model: turn.model().to_owned(),
            request: tape::Request {
                method: request.method.to_owned(),
                url: request.url.clone(),
                body: serde_json::from_str(&request.body).unwrap_or_default(),
                sha256: self.canonical(turn.model(), request).sha256,
            },
            redactions: hidden.map(|(name, _)| format!("request.headers.{name}")).collect(),
            ..Exchange::default()
        }
    }

    /// Takes an exchange that came to its end.
    pub fn keep(&mut self, exchange: Exchange) {
        self.fresh.push(exchange);
    }

    /// Whether anybody but the tape was asked.
    pub fn has_recorded(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Appends what was recorded to the file, in one write. `good` says that the turn did not fail: in mode `auto` the answers of
    /// one that did would stand in the way of the next try.
    ///
    /// # Errors
    /// What the system says.
    pub fn save(&mut self, good: bool) -> Result<()> {
        let fresh = std::mem::take(&mut self.fresh);
        if fresh.is_empty() || (self.mode == TapeMode::Auto && !good) {
            return Ok(());
        }
        let mut text = vec![];
        for mut exchange in fresh {
            exchange.redact(&self.redactor);
            text.push(b'\n');
            exchange.write(&mut text);
        }
        let first = std::fs::metadata(&self.path).map_or(0, |m| m.len()) == 0;
        let file = OpenOptions::new().append(true).create(true).open(&self.path);
        file.and_then(|mut file| file.write_all(&text[usize::from(first)..]))
            .map_err(|e| anyhow!("{}: {e}, the answer was not recorded", self.path.display()))
    }

    fn canonical(&self, model: &str, request: &Request) -> Canonical {
        let body = serde_json::from_str(&request.body).unwrap_or_default();
        Canonical::of(model, &body, &self.redactor)
    }
}
