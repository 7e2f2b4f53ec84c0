//! What a command finds at its start: its arguments, standard input and standard output. They are
//! those of the process, unless the command runs in a thread of another command.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The status of a process that has panicked.
const PANICKED: u8 = 101;

/// The stack of a thread that runs a command, in bytes: that of a process.
const STACK: usize = 8 << 20;

thread_local! {
    /// What the command of this thread has in place of what the process has.
    static OWN: RefCell<Option<ThreadCommand>> = const { RefCell::new(None) };
}

/// A command that runs in a thread: a filter or a view, whose work is all in that thread.
#[derive(Debug)]
pub struct ThreadCommand {
    /// Its arguments, the name of the command first.
    arguments: Vec<OsString>,
    /// Its standard input.
    input: Arc<OwnedFd>,
    /// Its standard output, if it is not that of the process.
    output: Option<Arc<OwnedFd>>,
    /// Whether it has taken over signals.
    takes_signals: Arc<AtomicBool>,
}

impl ThreadCommand {
    /// Starts the `main` of a command in a thread. When it has ended and its input and output are
    /// closed, `ended` gets its exit status.
    ///
    /// `takes_signals` becomes true once the command closes its stream after a first signal. No
    /// signal ends a thread, so whoever waits for it stops waiting at the second one.
    ///
    /// # Errors
    /// When the system allows no more threads.
    pub fn start(
        arguments: Vec<OsString>,
        (input, output): (OwnedFd, Option<OwnedFd>),
        takes_signals: Arc<AtomicBool>,
        main: fn() -> ExitCode,
        ended: impl FnOnce(u8) + Send + 'static,
    ) -> io::Result<()> {
        let work = move || {
            OWN.set(Some(ThreadCommand {
                arguments,
                input: Arc::new(input),
                output: output.map(Arc::new),
                takes_signals,
            }));
            let status = catch_unwind(AssertUnwindSafe(main)).map_or(PANICKED, number);
            OWN.set(None);
            ended(status);
        };
        let started = std::thread::Builder::new().stack_size(STACK).spawn(work);
        started.map(drop)
    }
}

/// The number of an exit code, which the standard library does not tell.
fn number(code: ExitCode) -> u8 {
    let mut numbers = 0..=u8::MAX;
    numbers
        .find(|number| ExitCode::from(*number) == code)
        .unwrap_or(PANICKED)
}

/// Whether the command runs in a thread of another command.
pub(crate) fn is_thread() -> bool {
    OWN.with_borrow(Option::is_some)
}

/// States that the command sees signals from now on.
pub(crate) fn takes_signals() {
    OWN.with_borrow(|own| {
        if let Some(own) = own {
            own.takes_signals.store(true, Ordering::SeqCst);
        }
    });
}

/// The command line of this command, its name first.
pub fn arguments() -> Vec<OsString> {
    OWN.with_borrow(|own| match own {
        Some(own) => own.arguments.clone(),
        None => std::env::args_os().collect(),
    })
}

/// Standard input or output of a command.
#[derive(Clone, Debug)]
pub struct StandardFile(Place);

#[derive(Clone, Debug)]
enum Place {
    Input,
    Output,
    Thread(Arc<OwnedFd>),
}

/// Standard input of this command.
pub fn stdin() -> StandardFile {
    let own = OWN.with_borrow(|own| Some(Arc::clone(&own.as_ref()?.input)));
    StandardFile(own.map_or(Place::Input, Place::Thread))
}

/// Standard output of this command.
pub fn stdout() -> StandardFile {
    let own = OWN.with_borrow(|own| own.as_ref()?.output.clone());
    StandardFile(own.map_or(Place::Output, Place::Thread))
}

impl StandardFile {
    /// Whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        rustix::termios::isatty(self)
    }
}

impl AsFd for StandardFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Place::Input => rustix::stdio::stdin(),
            Place::Output => rustix::stdio::stdout(),
            Place::Thread(file) => file.as_fd(),
        }
    }
}

impl Read for StandardFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&*self, into)?)
    }
}

impl Write for StandardFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&*self, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
