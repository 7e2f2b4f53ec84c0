//! The arguments, standard input and standard output of a command. They belong to the process,
//! unless the command runs in a thread of another command.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of a process that panicked.
const PANICKED: u8 = 101;

/// The stack size, in bytes, of a thread that runs a command. It equals that of a process.
const STACK: usize = 8 << 20;

thread_local! {
    /// The command that runs in this thread; `None` if the command is the process.
    static OWN: RefCell<Option<ThreadCommand>> = const { RefCell::new(None) };
}

/// A command that runs in a thread: a filter or a view, which does all its work in that thread.
#[derive(Debug)]
pub struct ThreadCommand {
    /// The arguments, starting with the name of the command.
    arguments: Vec<OsString>,
    /// Standard input.
    input: Arc<OwnedFd>,
    /// Standard output; `None` for the standard output of the process.
    output: Option<Arc<OwnedFd>>,
    /// Whether the command handles signals itself.
    takes_signals: Arc<AtomicBool>,
}

impl ThreadCommand {
    /// Runs the `main` of a command in a new thread. `ended` receives the exit status, after the
    /// command has ended and its input and output are closed.
    ///
    /// `takes_signals` becomes true when the command is ready to close its stream on a first
    /// signal. A second signal cannot end a thread, so the caller must stop waiting for it then.
    ///
    /// # Errors
    /// If the system allows no more threads.
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

/// Returns the number of an exit code, which the standard library does not expose.
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

/// Records that the command handles signals from now on.
pub(crate) fn takes_signals() {
    OWN.with_borrow(|own| {
        if let Some(own) = own {
            own.takes_signals.store(true, Ordering::SeqCst);
        }
    });
}

/// Returns the command line of this command, starting with its name.
pub fn arguments() -> Vec<OsString> {
    OWN.with_borrow(|own| match own {
        Some(own) => own.arguments.clone(),
        None => std::env::args_os().collect(),
    })
}

/// The standard input or output of a command.
#[derive(Clone, Debug)]
pub struct StandardFile(Place);

#[derive(Clone, Debug)]
enum Place {
    Input,
    Output,
    Thread(Arc<OwnedFd>),
}

/// Returns the standard input of this command.
pub fn stdin() -> StandardFile {
    let own = OWN.with_borrow(|own| Some(Arc::clone(&own.as_ref()?.input)));
    StandardFile(own.map_or(Place::Input, Place::Thread))
}

/// Returns the standard output of this command.
pub fn stdout() -> StandardFile {
    let own = OWN.with_borrow(|own| own.as_ref()?.output.clone());
    StandardFile(own.map_or(Place::Output, Place::Thread))
}

impl StandardFile {
    /// Whether the file is a terminal.
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
