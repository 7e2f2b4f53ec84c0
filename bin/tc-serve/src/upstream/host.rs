//! A turn of one request: its events go into the request's pipe.

use crate::pipe::{Pipe, PipeSink};
use api::tape::Head;
use ask::{Host, Note};
use event::Sink;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

/// Pushes events into a pipe. The end of the client ends the turn by dropping its future.
pub struct PipeHost<'p> {
    pipe: &'p Pipe,
    sink: PipeSink<'p>,
}

impl<'p> PipeHost<'p> {
    /// `pipe` is that of the request.
    pub fn new(pipe: &'p Pipe) -> PipeHost<'p> {
        PipeHost {
            pipe,
            sink: pipe.sink(),
        }
    }
}

impl Host for PipeHost<'_> {
    /// The answer is complete, whatever still comes.
    type Stop = ();
    type Failure = Infallible;

    fn command(&self) -> &'static str {
        "tc-serve"
    }

    fn set_time(&mut self, _at: Option<Duration>, _has_started: bool) {}

    fn has_times(&self) -> bool {
        true
    }

    fn sink(&mut self) -> &mut dyn Sink {
        &mut self.sink
    }

    fn check(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        self.pipe.room().await;
        Ok(())
    }

    /// Always, since a pipe with room returns at once.
    fn is_due(&mut self) -> bool {
        true
    }

    async fn stop(&self) -> Result<(), Infallible> {
        pending().await
    }

    fn stopped(&self, _and_reader: bool) -> Option<Result<(), Infallible>> {
        self.pipe.is_done().then_some(Ok(()))
    }

    fn set_id(&mut self, api: &str, id: &str) {
        self.pipe.set_id(api, id);
    }

    fn answered(&mut self, head: &Head) {
        self.pipe.set_limits(&head.headers);
    }

    fn set_kept(&mut self, bytes: usize) {
        self.pipe.set_kept(bytes);
    }

    /// Nobody reads the steps of each of many requests; what matters of them is in the events.
    fn note(&self, _note: Note<'_>) {}
}
