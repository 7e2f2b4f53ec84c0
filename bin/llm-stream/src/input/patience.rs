//! A line for people who do not expect that the command waits for standard input.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The time before the message.
const QUIET: Duration = Duration::from_secs(2);

const WAITS: &str = "still reading standard input, which is read to its end before anything is sent; \
                     add </dev/null if there is nothing to read";

/// Writes one line on standard error, unless it is dropped within two seconds.
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
        let report = move || {
            if wait.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
                stdio::message("llm-stream", WAITS);
            }
        };
        // Where the thread cannot start, the command waits without this message.
        Patience {
            _over: stdio::thread(report).is_ok().then_some(over),
        }
    }
}
