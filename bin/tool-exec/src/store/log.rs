//! The log: all that goes to standard output, in files that the next run continues from.

use super::appended::AppendedFile;
use event::{Payload, payload};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The log of a run, shared with the thread that writes standard output.
#[derive(Clone, Debug)]
pub struct Log(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    /// Almost always one. Two where `--log` names one and standard output goes to another one that
    /// an option names.
    files: Vec<AppendedFile>,
    /// Which file could not be written, and why. Then no further lines that passed follow: the log
    /// ends where it was whole, and the next run continues from there.
    failure: Option<(String, io::Error)>,
}

impl Inner {
    /// Appends to each file, also where another one fails.
    fn append(&mut self, pieces: &[&[u8]], sync: bool) -> Result<(), ()> {
        let mut is_written = Ok(());
        for file in &mut self.files {
            let written = file.append(pieces.iter().copied());
            if let Err(e) = written.and_then(|()| if sync { file.sync() } else { Ok(()) }) {
                self.failure = Some((file.name.clone(), e));
                is_written = Err(());
            }
        }
        is_written
    }
}

impl Log {
    /// The log in these files; `None` without any.
    pub fn new(files: Vec<AppendedFile>) -> Option<Self> {
        (!files.is_empty()).then(|| {
            Log(Arc::new(Mutex::new(Inner {
                files,
                failure: None,
            })))
        })
    }

    /// Whether standard output is one of these files: then the log alone writes to it.
    pub fn is_stdout(&self) -> bool {
        self.inner().files.iter().any(|file| file.is_stdout)
    }

    /// Appends lines as they go to standard output; with `sync` waits until they are on disk. After
    /// an error it does nothing.
    pub fn append<'p>(&self, pieces: impl Iterator<Item = &'p [u8]>, sync: bool) {
        let mut inner = self.inner();
        if inner.failure.is_none() {
            let _ = inner.append(&pieces.collect::<Vec<_>>(), sync); // the failure is kept
        }
    }

    /// Appends an event and waits until it is on disk. It is tried after an error too: the result
    /// of a call that is known to have started is of use in every log.
    ///
    /// # Errors
    /// As the disk gives them; [`Log::failure`] has them too.
    pub fn record(
        &self,
        payload: &Payload<'_>,
        stream: Option<&str>,
        choice: u32,
    ) -> Result<(), ()> {
        let mut line = Vec::new();
        payload::line(&mut line, payload, stream, choice, None);
        line.push(b'\n');
        self.inner().append(&[&line], true)
    }

    /// The message for a log that could not be written, with what to do.
    pub fn failure(&self) -> Option<String> {
        self.inner().failure.as_ref().map(|(name, e)| {
            format!("{name}: the log cannot be written ({e}), so no further call was started; free some space and continue from it")
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
