//! Input and output of the pipe, and signals, alongside child processes. Lines and flushing follow
//! the rules of `stdio`.

mod output;

pub(crate) use output::OutputThread;

use crate::store::lines;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use stdio::Failure;
pub(crate) use store::{now, since_1970};
use tokio::sync::watch;

// Reading ahead in the input, so that answers in it already count when a call is judged.

/// Passes every line of the inputs to `look` before the run reads them, if all inputs are regular
/// files, since those can be read twice. Returns whether they are.
pub(crate) fn read_ahead(files: &[PathBuf], mut look: impl FnMut(&str)) -> bool {
    let stdin = [PathBuf::from("-")];
    let files = if files.is_empty() { &stdin[..] } else { files };
    let mut all = Vec::new();
    for path in files {
        let reader: Box<dyn Read> = if path == Path::new("-") {
            match Stdin::new() {
                Some(stdin) => Box::new(stdin),
                None => return false,
            }
        } else {
            // Checked before opening: opening and closing a pipe would take the reader away from
            // its writer.
            match path
                .metadata()
                .ok()
                .filter(|m| m.is_file())
                .and_then(|_| File::open(path).ok())
            {
                Some(file) => Box::new(file),
                None => return false,
            }
        };
        all.push(reader);
    }
    for reader in all {
        let _ = lines(reader, &mut look); // the run meets the same error and reports it
    }
    true
}

/// Standard input that is a regular file, read from its current offset without moving the offset.
struct Stdin {
    file: OwnedFd,
    at: u64,
}

impl Stdin {
    fn new() -> Option<Self> {
        let stdin = std::io::stdin();
        let meta = rustix::fs::fstat(&stdin).ok()?;
        if rustix::fs::FileType::from_raw_mode(meta.st_mode) != rustix::fs::FileType::RegularFile {
            return None;
        }
        let at = rustix::fs::tell(&stdin).ok()?;
        Some(Stdin {
            file: rustix::io::dup(&stdin).ok()?,
            at,
        })
    }
}

impl Read for Stdin {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = rustix::io::pread(&self.file, into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

// SIGINT and SIGTERM: how many have arrived, and the last one.

/// How long the command may take to end by itself after the second signal. This is twice the time
/// it needs when it is waiting.
const BUSY: Duration = Duration::from_secs(2);

/// The signals that have arrived. Each clone sees every signal that its original has not seen.
#[derive(Clone, Debug)]
pub(crate) struct SignalsSeen {
    /// The number of signals that have arrived, and the last one.
    received: watch::Receiver<(u32, i32)>,
    seen: u32,
}

impl SignalsSeen {
    /// Takes over both signals. After the second signal the process exits after [`BUSY`], even in
    /// the middle of its work: the runtime notices a signal only while it waits, and validating
    /// arguments can take seconds. Supervisors end the commands that are still running.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub(crate) fn take() -> Result<Self, Failure> {
        let (send, received) = watch::channel((0, 0));
        stdio::each_signal(move |signal| {
            send.send_modify(|(count, latest)| (*count, *latest) = (*count + 1, signal));
            let end = move || {
                std::thread::sleep(BUSY);
                crate::say("ended in the middle of its work by the second signal");
                std::process::exit(128 + signal);
            };
            if send.borrow().0 == 2 && stdio::thread(end).is_err() {
                end();
            }
        })?;
        Ok(SignalsSeen { received, seen: 0 })
    }

    /// Waits for the next signal and returns its number.
    pub(crate) async fn next(&mut self) -> i32 {
        let seen = self.seen;
        match self
            .received
            .wait_for(|(count, _)| *count > seen)
            .await
            .map(|received| received.1)
        {
            Ok(signal) => {
                self.seen += 1;
                signal
            }
            Err(_) => std::future::pending().await, // unreachable: the signal thread never ends
        }
    }
}

/// Runs a future to its end, together with the local tasks that it spawns.
///
/// # Errors
/// The error of the future, or [`Failure::Limit`].
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    // Tokio panics if no file descriptors are left for its signal handling.
    stdio::check_descriptors(12)?;
    let limit = |error| Failure::Limit {
        what: "the runtime cannot be started",
        error,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(limit)?;
    let result = runtime.block_on(tokio::task::LocalSet::new().run_until(work));
    // The thread that watches the reader of the output, and any blocked write, end with the
    // process.
    runtime.shutdown_background();
    result
}
