//! Recorded answers in the place of a provider.

use anyhow::{Context, Result, bail};
use api::tape::{Head, Tape};
use api::{Api, RecordingForm, recognise, unrecognised};
use client::RecordedAnswer;
use std::cell::Cell;
use std::io::Read;
use std::path::{Path, PathBuf};
use stdio::unreadable;

/// Recorded answers in the place of a provider: the first request gets the first, whatever it asks,
/// the next request the next, and the request after the last begins again.
#[derive(Debug)]
pub struct Playlist {
    answers: Vec<PlayedAnswer>,
    next: Cell<usize>,
}

/// One recorded answer.
#[derive(Clone, Debug)]
pub struct PlayedAnswer {
    /// The API that it is written in.
    pub api: Api,
    /// The model that was asked; empty for a body without a request.
    pub model: String,
    /// Its status and headers; those of a success for a body without them.
    pub head: Head,
    /// Whether its body is lines of a log.
    pub is_log: bool,
    /// Its body.
    pub recording: RecordedAnswer,
}

impl Playlist {
    /// Reads recorded bodies and tapes. `api` is that of bodies; without it a body shows its own.
    ///
    /// # Errors
    /// One line that names the file: one that cannot be read, or whose API is unknown.
    pub fn open(files: &[PathBuf], api: Option<Api>) -> Result<Playlist> {
        let mut answers = vec![];
        for path in files {
            let bytes = if path == Path::new("-") {
                let mut bytes = vec![];
                stdio::stdin().read_to_end(&mut bytes).map(|_| bytes)
            } else {
                std::fs::read(path)
            };
            let bytes = bytes.map_err(|e| unreadable(path, &e))?;
            read(&bytes, api, path, &mut answers)?;
        }
        if answers.is_empty() {
            bail!("--replay: the files hold no answer");
        }
        Ok(Playlist {
            answers,
            next: Cell::new(0),
        })
    }

    /// The models that were asked, each once.
    pub fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = vec![];
        for answer in &self.answers {
            if !answer.model.is_empty() && !models.contains(&answer.model.as_str()) {
                models.push(&answer.model);
            }
        }
        models
    }

    /// The answer to the next request.
    pub fn next(&self) -> &PlayedAnswer {
        let next = self.next.get();
        self.next.set((next + 1) % self.answers.len());
        &self.answers[next]
    }
}

fn read(
    bytes: &[u8],
    api: Option<Api>,
    path: &Path,
    answers: &mut Vec<PlayedAnswer>,
) -> Result<()> {
    if RecordingForm::of_named(bytes, api) == RecordingForm::Body {
        let Some(api) = api.or_else(|| recognise(bytes, true)) else {
            bail!("{}: {}", path.display(), unrecognised(bytes));
        };
        let head = Head {
            status: 200,
            ..Head::default()
        };
        let recording = RecordedAnswer::of_bytes(bytes.to_vec());
        answers.push(PlayedAnswer {
            api,
            model: String::new(),
            is_log: false,
            head,
            recording,
        });
        return Ok(());
    }
    let text = std::str::from_utf8(bytes)
        .with_context(|| format!("{}: not UTF-8, a tape is text", path.display()))?;
    for exchange in &Tape::read(text)
        .with_context(|| path.display().to_string())?
        .exchanges
    {
        let of_log = exchange.logged.as_ref().map(|_| Api::OpenaiChat);
        let Some(api) = Api::from_name(&exchange.api).or(api).or(of_log) else {
            let path = path.display();
            let line = exchange.line;
            let name = &exchange.api;
            bail!("{path}, line {line}: the API \"{name}\" is unknown, name it with --api");
        };
        let head = head(exchange.head.as_ref());
        let recording = RecordedAnswer::of(exchange);
        answers.push(PlayedAnswer {
            api,
            model: exchange.model.clone(),
            is_log: exchange.logged.is_some(),
            head,
            recording,
        });
    }
    Ok(())
}

/// The head of a recorded answer. A recording without a head comes from a connection that failed.
/// It gets status 200, so that its body is read to the end, which reports the failure.
pub(crate) fn head(recorded: Option<&Head>) -> Head {
    recorded.cloned().unwrap_or(Head {
        status: 200,
        ..Head::default()
    })
}
