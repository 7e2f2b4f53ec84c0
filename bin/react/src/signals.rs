//! Handles SIGINT and SIGTERM while stages run.
//!
//! The stages are in react's process group, so Ctrl-C reaches them too, and react waits for them,
//! because a stage closes the log before it ends. SIGTERM may reach only react, which forwards it.
//! SIGINT is not forwarded, because a second SIGINT ends running calls immediately. A stage that
//! runs as a thread of react receives react's signals.

use crate::chat::Typed;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use stdio::{Failure, ThreadCommand};

/// The running stages, and the last signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    signal: Arc<AtomicI32>,
    pids: Arc<Mutex<Vec<Pid>>>,
    threads: Arc<Mutex<Vec<Weak<StageThread>>>>,
    /// The prompt that is waiting while no process runs; `None` outside a chat.
    prompt: Arc<Mutex<Option<Sender<Typed>>>>,
}

impl Running {
    /// Installs handlers for both signals in this process.
    ///
    /// # Errors
    /// Returns [`Failure::Limit`] if the system has no more resources.
    pub(crate) fn take_signals() -> Result<Running, Failure> {
        let running = Running::default();
        let shared = running.clone();
        stdio::each_signal(move |signal| {
            shared.signal.store(signal, Ordering::SeqCst);
            for thread in lock(&shared.threads).iter().filter_map(Weak::upgrade) {
                thread.signal(signal);
            }
            if signal == Signal::TERM.as_raw() {
                shared.pass_on();
            }
        })?;
        Ok(running)
    }

    /// Returns the last signal; `None` if no signal arrived.
    pub(crate) fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Clears a SIGINT, which ended an answer but not this command.
    pub(crate) fn forget_interrupt(&self) {
        let interrupt = Signal::INT.as_raw();
        // Fails if another signal or none is stored, which then stays.
        let _ = self
            .signal
            .compare_exchange(interrupt, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Also reports SIGTERM to this prompt from now on.
    pub(crate) fn report_end_to(&self, prompt: Sender<Typed>) {
        *lock(&self.prompt) = Some(prompt);
    }

    /// Sends SIGTERM to all processes that run, and ends the prompt.
    pub(crate) fn pass_on(&self) {
        let prompt = lock(&self.prompt);
        if let Some(prompt) = &*prompt {
            // Fails if the chat has ended.
            let _ = prompt.send(Typed::Ended);
        }
        let pids = lock(&self.pids);
        for pid in pids.iter() {
            // Fails if the process has ended.
            let _ = kill_process(*pid, Signal::TERM);
        }
    }

    /// Registers a started process.
    pub(crate) fn add(&self, child: &Child) {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        lock(&self.pids).extend(pid);
        if self.signal() == Some(Signal::TERM.as_raw()) {
            self.pass_on();
        }
    }

    /// Starts a stage as a thread of this process.
    ///
    /// # Errors
    /// Returns [`Failure::Limit`] if the thread cannot be started.
    pub(crate) fn start_thread(
        &self,
        words: Vec<OsString>,
        input: OwnedFd,
        output: Option<OwnedFd>,
        main: fn() -> ExitCode,
    ) -> Result<StageHandle, Failure> {
        let thread = Arc::new(StageThread {
            ignores_interrupts: words.iter().any(|word| word == "--ignore-interrupts"),
            ..StageThread::default()
        });
        {
            let mut threads = lock(&self.threads);
            threads.retain(|thread| thread.strong_count() > 0);
            threads.push(Arc::downgrade(&thread));
        }
        let (takes_signals, shared) = (Arc::clone(&thread.takes_signals), Arc::clone(&thread));
        ThreadCommand::start(words, (input, output), takes_signals, main, move |status| {
            shared.end(i32::from(status));
        })
        .map_err(Failure::limit("a thread cannot be started"))?;
        Ok(StageHandle::Thread(thread))
    }

    /// Waits until a stage has ended.
    pub(crate) fn wait(&self, run: &mut StageHandle) -> io::Result<ExitStatus> {
        match run {
            StageHandle::Process(child) => self.wait_for(child),
            StageHandle::Thread(thread) => {
                let ended = lock(&thread.ended);
                let ended = thread.has_ended.wait_while(ended, |ended| ended.is_none());
                let status = ended.unwrap_or_else(PoisonError::into_inner).unwrap_or(0);
                Ok(ExitStatus::from_raw(status << 8))
            }
        }
    }

    /// Waits until a process has ended. Its pid is removed from the list before another process can
    /// get the same pid.
    pub(crate) fn wait_for(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), ended) {}
            let mut pids = lock(&self.pids);
            pids.retain(|other| *other != pid);
        }
        child.wait()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process or the thread of a running stage.
#[derive(Debug)]
pub(crate) enum StageHandle {
    /// A child process.
    Process(Child),
    /// A thread of this process.
    Thread(Arc<StageThread>),
}

impl StageHandle {
    /// Whether the stage has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self {
            StageHandle::Process(child) => child.try_wait().is_ok_and(|status| status.is_some()),
            StageHandle::Thread(thread) => lock(&thread.ended).is_some(),
        }
    }
}

/// The shared state of a stage that runs as a thread.
#[derive(Debug, Default)]
pub(crate) struct StageThread {
    ignores_interrupts: bool,
    /// Whether the stage has installed its own signal handling.
    takes_signals: Arc<AtomicBool>,
    /// Whether a signal has arrived.
    is_signalled: AtomicBool,
    /// The exit status; `None` while the stage runs.
    ended: Mutex<Option<i32>>,
    has_ended: Condvar,
}

impl StageThread {
    fn end(&self, status: i32) {
        lock(&self.ended).get_or_insert(status);
        self.has_ended.notify_all();
    }

    /// Handles a signal. Ends the wait for the stage if the signal would kill a process: it is the
    /// second signal, or the stage has not installed its signal handling yet. After a first signal
    /// the stage closes its stream itself.
    fn signal(&self, signal: i32) {
        if self.ignores_interrupts && signal == Signal::INT.as_raw() {
            return;
        }
        let is_second = self.is_signalled.swap(true, Ordering::SeqCst);
        if is_second || !self.takes_signals.load(Ordering::SeqCst) {
            self.end(128 + signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// Handles signals or not, as its argument says, reports that it runs, and reads to the end of
    /// its input.
    fn stage() -> ExitCode {
        let takes_signals = stdio::arguments()
            .iter()
            .any(|word| word == "takes-signals");
        let _signals = takes_signals.then(|| stdio::StopSignals::new().expect("handlers"));
        stdio::stdout().write_all(b"!").expect("a reader");
        let read = stdio::stdin().read_to_end(&mut Vec::new());
        ExitCode::from(if read.is_ok() { 7 } else { 2 })
    }

    #[test]
    fn a_signal_ends_the_wait_for_a_stage_that_does_not_end_itself() {
        let (int, term) = (Signal::INT.as_raw(), Signal::TERM.as_raw());
        for (option, signals, status) in [
            // It closes its stream after the first signal.
            ("takes-signals", &[term][..], 7),
            ("takes-signals", &[int, int], 128 + int),
            ("takes-signals", &[int, term], 128 + term),
            ("has-no-handlers", &[int], 128 + int),
            ("--ignore-interrupts", &[int, int], 7),
            ("--ignore-interrupts", &[int, term], 128 + term),
        ] {
            let running = Running::default();
            let (input, writer) = io::pipe().expect("a pipe");
            let (mut reader, output) = io::pipe().expect("a pipe");
            let words = vec!["stage".into(), option.into()];
            let mut run = running
                .start_thread(words, input.into(), Some(output.into()), stage)
                .expect("a thread");
            reader.read_exact(&mut [0]).expect("the stage runs");
            for signal in signals {
                let thread = lock(&running.threads)[0].upgrade().expect("a thread");
                thread.signal(*signal);
            }
            let name = format!("{option} {signals:?}");
            assert_eq!(run.has_ended(), status != 7, "{name}");
            drop(writer);
            let ended = running.wait(&mut run).expect("an exit");
            assert_eq!(ended.code(), Some(status), "{name}");
        }
    }
}
