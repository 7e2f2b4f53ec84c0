//! The host of a turn that answers one request. It pushes events into the request's pipe.

use crate::pipe::Pipe;
use api::tape::Head;
use ask::{Host, Note};
use event::Sink;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

/// Pushes events into a pipe. When the client leaves, the future of the turn is dropped, which ends
/// the turn.
pub(super) struct PipeHost<'p>(pub &'p Pipe);

impl Host for PipeHost<'_> {
    /// A stop means that the response is complete, whatever bytes still follow.
    type Stop = ();
    type Failure = Infallible;

    fn command(&self) -> &'static str {
        "tc-serve"
    }

    fn set_time(&mut self, at: Option<Duration>, has_started: bool) {
        self.0.set_time(at, has_started);
    }

    fn has_times(&self) -> bool {
        true
    }

    fn sink(&mut self) -> &mut dyn Sink {
        &mut self.0
    }

    fn check(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        self.0.room().await;
        Ok(())
    }

    /// Always true, since flushing a pipe that has room returns at once.
    fn is_due(&mut self) -> bool {
        true
    }

    async fn stop(&self) -> Result<(), Infallible> {
        pending().await
    }

    fn stopped(&self, _and_reader: bool) -> Option<Result<(), Infallible>> {
        self.0.is_done().then_some(Ok(()))
    }

    fn set_id(&mut self, api: &str, id: &str) {
        self.0.set_id(api, id);
    }

    fn answered(&mut self, head: &Head) {
        self.0.set_limits(&head.headers);
    }

    fn set_kept(&mut self, bytes: usize) {
        self.0.set_kept(bytes);
    }

    /// Notes are dropped: with many requests nobody reads the steps of each, and the events contain
    /// what matters.
    fn note(&self, _note: Note<'_>) {}
}
