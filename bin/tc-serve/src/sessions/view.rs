//! A response as a client sees it: the lines of the session from the response's own on, as events.

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
    /// Which response.
    pub id: ResponseId,
    /// The offsets of the calls of earlier responses that it goes on with.
    pub calls: Vec<u64>,
    /// The response, if it is made now, and the place of this client among those that wait for it.
    pub running: Option<(Rc<RunningResponse>, WaitingClient)>,
    /// Gets the seconds since 1970 at which the response ended, before its last event.
    pub completed: Rc<Cell<u64>>,
}

impl ResponseView {
    /// Pushes the events of the response, and waits for those that are still to come.
    pub(crate) async fn follow(mut self, pipe: &Pipe) {
        let id = self.id.to_string();
        let mut scanner = Scanner::default();
        // The end of a stream needs the time in the line behind it.
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
                    // Who has the end may ask again at once, and finds a session that nobody writes.
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
            // All of a long answer may be there, and others have requests.
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

    /// The next lines; `None` where no more come.
    async fn next(&mut self, pipe: &Pipe) -> Option<Vec<u8>> {
        let lines = match &self.running {
            // Another process may write it.
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

/// Pushes a line that was held.
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
