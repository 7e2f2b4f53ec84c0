//! Recorded responses used in place of a provider.

use anyhow::{Context, Result, bail};
use api::tape::{Head, Tape};
use api::{Api, RecordingForm, recognise, unrecognised};
use client::RecordedAnswer;
use std::cell::Cell;
use std::io::Read;
use std::path::{Path, PathBuf};
use stdio::unreadable;

/// Recorded responses used in place of a provider. The first request gets the first response,
/// whatever the request asks; after the last response the list starts again.
#[derive(Debug)]
pub struct Playlist {
    answers: Vec<PlayedAnswer>,
    next: Cell<usize>,
}

/// A recorded response.
#[derive(Clone, Debug)]
pub struct PlayedAnswer {
    /// The API of the response.
    pub api: Api,
    /// The model that was requested; empty for a body without a request.
    pub model: String,
    /// The status and headers; those of a success for a body recorded without them.
    pub head: Head,
    /// Whether the body consists of lines of an event log.
    pub is_log: bool,
    /// The recorded body.
    pub recording: RecordedAnswer,
}

impl Playlist {
    /// Reads recorded bodies and tapes. `api` is the API of the bodies; if it is `None`, the API is
    /// detected from each body.
    ///
    /// # Errors
    /// A one-line error that names a file that cannot be read, or whose API is unknown.
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

    /// Returns the models that were requested, without duplicates.
    pub fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = vec![];
        for answer in &self.answers {
            if !answer.model.is_empty() && !models.contains(&answer.model.as_str()) {
                models.push(&answer.model);
            }
        }
        models
    }

    /// Returns the response to the next request.
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

/// Returns the head of a recorded response. A recording without a head comes from a connection that
/// failed. It gets status 200, so that the body is read to its end, which reports the failure.
pub(crate) fn head(recorded: Option<&Head>) -> Head {
    recorded.cloned().unwrap_or(Head {
        status: 200,
        ..Head::default()
    })
}
