//! The interface between a turn and the command that runs it: where events go, and what stops the
//! turn.

use api::{Request, tape::Head};
use event::Sink;
use std::future::Future;
use std::time::Duration;

/// The environment of a turn: where its events go, and what stops it from outside. A command that
/// ends a turn by dropping its future does not need `stop`.
pub trait Host {
    /// What stopped the turn, such as a signal.
    type Stop;
    /// Why no more events can be written.
    type Failure: std::error::Error + Send + Sync + 'static;

    /// Returns the command's name, which is the source of the events that a turn adds to the
    /// stream.
    fn command(&self) -> &'static str;

    /// Sets the time of the following events: `at` is the time since the request was sent, or
    /// `None` for events without a time. `has_started` is true if the stream already has an event.
    fn set_time(&mut self, at: Option<Duration>, has_started: bool);

    /// Whether events and statistics include times.
    fn has_times(&self) -> bool;

    /// Returns the sink for the next events. Its failures are kept for [`Host::check`].
    fn sink(&mut self) -> &mut dyn Sink;

    /// Checks that all events so far were written.
    ///
    /// # Errors
    /// The first failure since the last call.
    fn check(&mut self) -> Result<(), Self::Failure>;

    /// Passes all events so far to the reader, and waits until the reader has room for them.
    ///
    /// # Errors
    /// The first failure since the last call.
    fn flush(&mut self) -> impl Future<Output = Result<(), Self::Failure>>;

    /// Whether a flush is due although more bytes are available. Needed because bytes may arrive
    /// without a pause.
    fn is_due(&mut self) -> bool;

    /// Waits until something stops the turn. Later calls return the same result at once.
    ///
    /// # Errors
    /// If the reader has left.
    fn stop(&self) -> impl Future<Output = Result<Self::Stop, Self::Failure>>;

    /// Returns what has already stopped the turn, without waiting; `None` if nothing has. Checks
    /// whether the reader has left only if `and_reader` is set, since that may be a system call.
    fn stopped(&self, and_reader: bool) -> Option<Result<Self::Stop, Self::Failure>>;

    /// Receives the id of the provider's response and the name of its API, before the first event.
    fn set_id(&mut self, api: &str, id: &str) {
        let _ = (api, id);
    }

    /// Receives the status and headers of a response.
    fn answered(&mut self, head: &Head) {
        let _ = head;
    }

    /// Receives how many bytes of the provider's response are in memory but not yet converted into
    /// events.
    fn set_kept(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Shows a note to the user.
    fn note(&self, note: Note<'_>);
}

/// A message to the user, separate from the stream. It may contain secrets, which a host must
/// remove before it prints the note.
#[derive(Clone, Copy, Debug)]
pub enum Note<'n> {
    /// A message that every user should see.
    Important(&'n str),
    /// Progress, for verbose output.
    Detail(&'n str),
    /// Progress, with the time since the request was sent.
    At(&'n str, Option<Duration>),
    /// A request that is about to be sent.
    Request(&'n Request),
}
