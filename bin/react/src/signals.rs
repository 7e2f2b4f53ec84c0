//! SIGINT and SIGTERM while stages run.
//!
//! The stages are in the process group of react, so Ctrl-C reaches them too, and react waits for
//! them: a stage closes the log before it ends. SIGTERM may reach react alone, and is passed on.
//! SIGINT is not, since the second one ends running calls at once.

use crate::chat::Typed;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use stdio::Failure;

/// The processes that run, and the signal that came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    signal: Arc<AtomicI32>,
    pids: Arc<Mutex<Vec<Pid>>>,
    /// What waits at a prompt while no process runs.
    prompt: Arc<Mutex<Option<Sender<Typed>>>>,
}

impl Running {
    /// Takes over both signals for this process.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub(crate) fn take_signals() -> Result<Running, Failure> {
        let running = Running::default();
        let shared = running.clone();
        stdio::each_signal(move |signal| {
            shared.signal.store(signal, Ordering::SeqCst);
            if signal == Signal::TERM.as_raw() {
                shared.pass_on();
            }
        })?;
        Ok(running)
    }

    /// The signal that came last.
    pub(crate) fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Forgets Ctrl-C, which ended an answer and not this command.
    pub(crate) fn forget_interrupt(&self) {
        let interrupt = Signal::INT.as_raw();
        // It is another signal, or none.
        let _ = self
            .signal
            .compare_exchange(interrupt, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// From now on SIGTERM is reported to a prompt, too.
    pub(crate) fn report_end_to(&self, prompt: Sender<Typed>) {
        *self.prompt.lock().unwrap_or_else(PoisonError::into_inner) = Some(prompt);
    }

    fn pass_on(&self) {
        let prompt = self.prompt.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prompt) = &*prompt {
            // The chat may have ended.
            let _ = prompt.send(Typed::Ended);
        }
        let pids = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
        for pid in pids.iter() {
            // Fails where the process has ended.
            let _ = kill_process(*pid, Signal::TERM);
        }
    }

    /// Registers a process that was started.
    pub(crate) fn add(&self, child: &Child) {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        self.pids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(pid);
        if self.signal() == Some(Signal::TERM.as_raw()) {
            self.pass_on();
        }
    }

    /// Waits for a process. Its number is taken out of the list before another process can get it.
    pub(crate) fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), ended) {}
            let mut pids = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
            pids.retain(|other| *other != pid);
        }
        child.wait()
    }
}
