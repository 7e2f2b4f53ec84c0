//! The log: all that goes to standard output, in a file that the next run continues from.

use super::appended::AppendedFile;
use event::{Payload, payload};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The log of a run, shared with the thread that writes standard output.
#[derive(Clone, Debug)]
pub struct Log(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    file: AppendedFile,
    /// Why lines could not be appended. Then no further lines that passed follow: the log ends where it was whole, and the next run
    /// continues from there.
    failure: Option<io::Error>,
}

impl Log {
    /// The log in that file.
    pub fn new(file: AppendedFile) -> Self {
        Log(Arc::new(Mutex::new(Inner { file, failure: None })))
    }

    /// Whether standard output is this very file: then the log alone writes to it.
    pub fn is_stdout(&self) -> bool {
        self.inner().file.is_stdout
    }

    /// Appends lines as they go to standard output; with `sync` waits until they are on disk. After an error it does nothing.
    pub fn append<'p>(&self, pieces: impl Iterator<Item = &'p [u8]>, sync: bool) {
        let mut inner = self.inner();
        if inner.failure.is_some() {
            return;
        }
        let result = inner.file.append(pieces);
        inner.failure = result.and_then(|()| if sync { inner.file.sync() } else { Ok(()) }).err();
    }

    /// Appends an event and waits until it is on disk. It is tried after an error too: the result of a call that is known to have started
    /// is of use in every log.
    ///
    /// # Errors
    /// As the disk gives them; [`Log::failure`] has them too.
    pub fn record(&self, payload: &Payload<'_>, stream: Option<&str>, choice: u32) -> Result<(), ()> {
        let mut line = Vec::new();
        payload::line(&mut line, payload, stream, choice, None);
        line.push(b'\n');
        let mut inner = self.inner();
        let result = inner.file.append([&line[..]].into_iter()).and_then(|()| inner.file.sync());
        result.map_err(|e| inner.failure = Some(e))
    }

    /// The message for a log that could not be written, with what to do.
    pub fn failure(&self) -> Option<String> {
        let inner = self.inner();
        let name = &inner.file.name;
        inner.failure.as_ref().map(|e| {
            format!("{name}: the log cannot be written ({e}), so no further call was started; free some space and continue from it")
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
