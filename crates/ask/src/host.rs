//! What surrounds a turn: where its events go, and what ends it from outside.

use api::{Request, tape::Head};
use event::Sink;
use std::future::Future;
use std::time::Duration;

/// What surrounds a turn: where its events go, and what ends it from outside. A command that drops
/// the future of a turn to end it needs no `stop`.
pub trait Host {
    /// What ends the turn from outside, such as a signal.
    type Stop;
    /// Why events cannot be taken any more.
    type Failure: std::error::Error + Send + Sync + 'static;

    /// The command's name: the source of the events that a turn adds to those of the stream.
    fn command(&self) -> &'static str;

    /// Sets the time of the events that follow, which came `at` this time after the request; `None`
    /// for events without a time. `has_started` claims that the stream has an event.
    fn set_time(&mut self, at: Option<Duration>, has_started: bool);

    /// Whether events and statistics have times.
    fn has_times(&self) -> bool;

    /// Where the next events go. A failure is kept for [`Host::check`].
    fn sink(&mut self) -> &mut dyn Sink;

    /// Checks the events so far.
    ///
    /// # Errors
    /// The first failure since the last call.
    fn check(&mut self) -> Result<(), Self::Failure>;

    /// Hands all events so far to the reader, and waits until it has room for them.
    ///
    /// # Errors
    /// The first failure since the last call.
    fn flush(&mut self) -> impl Future<Output = Result<(), Self::Failure>>;

    /// Whether a flush is due although more bytes are at hand: bytes may arrive without a pause.
    fn is_due(&mut self) -> bool;

    /// Waits for what ends the turn. Later calls return the same at once.
    ///
    /// # Errors
    /// The reader left.
    fn stop(&self) -> impl Future<Output = Result<Self::Stop, Self::Failure>>;

    /// What has ended the turn already, for work that never waits. Whether the reader left is
    /// looked at only if `and_reader`: that may be a system call.
    fn stopped(&self, and_reader: bool) -> Option<Result<Self::Stop, Self::Failure>>;

    /// Receives the id of the provider's response and the name of its API, before the first event.
    fn set_id(&mut self, api: &str, id: &str) {
        let _ = (api, id);
    }

    /// Receives the status and the headers of an answer that begins.
    fn answered(&mut self, head: &Head) {
        let _ = head;
    }

    /// Receives how many bytes of the provider's answer are in memory that are not events yet.
    fn set_kept(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Reports something to people.
    fn note(&self, note: Note<'_>);
}

/// Something for people, not for the stream. It may hold secrets, which a host that prints it takes
/// out.
#[derive(Clone, Copy, Debug)]
pub enum Note<'n> {
    /// What everybody should read.
    Important(&'n str),
    /// What happens.
    Detail(&'n str),
    /// What happened this time after the request was sent.
    At(&'n str, Option<Duration>),
    /// A request that is sent.
    Request(&'n Request),
}
