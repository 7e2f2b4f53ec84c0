//! A line for people who may not know that the command waits for standard input.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long nothing is said.
const QUIET: Duration = Duration::from_secs(2);

const WAITS: &str = "still reading standard input, which is read to its end before anything is sent; \
                     add </dev/null if there is nothing to read";

/// Says once on standard error what is waited for, unless it is dropped before.
#[derive(Debug)]
pub struct Patience {
    _over: Option<Sender<()>>,
}

impl Patience {
    /// Begins to wait. Only a terminal gets the message: elsewhere nobody watches.
    pub fn new() -> Patience {
        if !std::io::stderr().is_terminal() {
            return Patience { _over: None };
        }
        let (over, wait) = channel::<()>();
        let say = move || {
            if wait.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
                stdio::message("llm-stream", WAITS);
            }
        };
        // Where the system has no thread to give, nothing is said.
        Patience { _over: stdio::thread(say).is_ok().then_some(over) }
    }
}
