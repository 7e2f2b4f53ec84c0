//! Reads a response from its session for a client: the events from the `response` line on.

use super::producer::{RunningResponse, WaitingClient};
use super::{ResponseId, SessionReader, lines};
use crate::pipe::Pipe;
use event::payload::{Error, ResponseEnd};
use event::{Event, Kind, Scanner};
use std::cell::Cell;
use std::rc::Rc;

/// Follows one response into a pipe.
pub(crate) struct ResponseView {
    /// Reads from the `response` line on.
    pub reader: SessionReader,
    /// The id of the response.
    pub id: ResponseId,
    /// The offsets of the calls of earlier responses that this one continues.
    pub calls: Vec<u64>,
    /// The response if it is in progress, and this client's place among those that wait for it.
    pub running: Option<(Rc<RunningResponse>, WaitingClient)>,
    /// Set to the time at which the response ended, in seconds since 1970, before its last event is
    /// pushed.
    pub completed: Rc<Cell<u64>>,
}

impl ResponseView {
    /// Pushes the events of the response, and waits for later ones until the response ends.
    pub(crate) async fn follow(mut self, pipe: &Pipe) {
        let id = self.id.to_string();
        let mut scanner = Scanner::default();
        // `stream_end` is held back, because its time is in the line after it.
        let mut held = String::new();
        if let Err(error) = self.reader.calls(&self.calls, pipe) {
            return fail(pipe, &error.to_string());
        }
        while let Some(bytes) = self.next(pipe).await {
            for (line, _) in lines::lines(&bytes, 0) {
                let Some(event) = lines::event(&mut scanner, line) else {
                    continue;
                };
                let is_end = event.kind() == Kind::ResponseEnd && {
                    let end = ResponseEnd::read(&event);
                    let is_own = end.id.str() == id;
                    if is_own {
                        self.completed.set(end.timestamp.unwrap_or_default() / 1000);
                    }
                    is_own
                };
                if is_end && let Some((running, _)) = &self.running {
                    // A client that has the end may send its next request at once, and must not
                    // find the session busy.
                    running.ended().await;
                }
                release(&mut held, pipe);
                match event.kind() {
                    _ if is_end => return,
                    Kind::StreamEnd => held.push_str(&event.raw()),
                    _ => pipe.push(&event),
                }
            }
            pipe.room().await;
            // A long response may be complete already; other requests must be able to run.
            tokio::task::yield_now().await;
            if pipe.unread().is_some() {
                return;
            }
            if pipe.is_done() {
                if let Some((_, client)) = self.running.take() {
                    client.leave_served();
                }
                return;
            }
        }
        pipe.cut();
    }

    /// Returns the next lines, or `None` if no more will come.
    async fn next(&mut self, pipe: &Pipe) -> Option<Vec<u8>> {
        let lines = match &self.running {
            // Another process may be writing the response.
            None => self.reader.next().await,
            Some((running, _)) => {
                tokio::select! {
                    biased;
                    lines = self.reader.next() => lines,
                    () = running.ended() => {
                        let lines = self.reader.at_hand();
                        if let (Ok(rest), Some(failure)) = (&lines, running.failure())
                            && rest.is_empty()
                        {
                            pipe.fail(&failure.code, &failure.message, failure.status, None);
                        }
                        lines
                    }
                }
            }
        };
        match lines {
            Ok(lines) => Some(lines).filter(|lines| !lines.is_empty()),
            Err(error) => {
                fail(pipe, &error.to_string());
                None
            }
        }
    }
}

/// Pushes the line that was held back, if any.
fn release(held: &mut String, pipe: &Pipe) {
    if held.is_empty() {
        return;
    }
    let mut scanner = Scanner::default();
    if let Ok(event) = scanner.read(held) {
        pipe.push(&event);
    }
    held.clear();
}

fn fail(pipe: &Pipe, why: &str) {
    let message = format!("the session cannot be read: {why}");
    let error = Error::new("tc-serve", "session_not_read", &message);
    pipe.push(&Event::of(&error.into(), None, 0, None));
}
