//! One answer while it is made: its source, its machines, its signs of life.

use crate::access_log::AccessLine;
use crate::pipe::Pipe;
use api::Failure;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// One answer while it is made. The response's body polls it, so that a client that reads slowly
/// slows its source, and one that leaves ends it.
pub struct Answering {
    work: Pin<Box<dyn Future<Output = ()>>>,
    pipe: Rc<Pipe>,
    has_ended: bool,
    /// When the next sign of life is due.
    timer: Pin<Box<Sleep>>,
    keep_alive: Duration,
}

impl Answering {
    /// The answer whose events `work` pushes into `pipe`, with a sign of life after each pause of
    /// `keep_alive`.
    pub fn new(
        work: impl Future<Output = ()> + 'static,
        pipe: Rc<Pipe>,
        keep_alive: Duration,
    ) -> Answering {
        let timer = Box::pin(sleep(keep_alive));
        Answering {
            work: Box::pin(work),
            pipe,
            has_ended: false,
            timer,
            keep_alive,
        }
    }

    /// Polls the source until it has to wait.
    fn poll_work(&mut self, cx: &mut Context<'_>) {
        if !self.has_ended && self.work.as_mut().poll(cx).is_ready() {
            self.has_ended = true;
            self.pipe.finish();
            // What the source held is closed before the last byte is on its way.
            self.work = Box::pin(async {});
        }
    }

    /// The next bytes of the answer; `None` after the last.
    pub fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.poll_work(cx);
        let mut bytes = self.pipe.take();
        if bytes.is_empty() {
            if self.has_ended {
                return Poll::Ready(None);
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.pipe.keep_alive();
            bytes = self.pipe.take();
        }
        self.timer.as_mut().reset(Instant::now() + self.keep_alive);
        // Registers the timer for the next wait.
        let _ = self.timer.as_mut().poll(cx);
        Poll::Ready(Some(bytes))
    }

    /// Waits until the status is known: the answer has content, or has ended. A stream does not
    /// wait longer than `most`.
    pub async fn until_known(&mut self, most: Option<Duration>) {
        let known = poll_fn(|cx| {
            self.poll_work(cx);
            let is_known = self.has_ended || (most.is_some() && self.pipe.has_begun());
            if is_known {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        match most {
            // An error means that the time has passed, which is an end of the wait, too.
            Some(most) => drop(tokio::time::timeout(most, known).await),
            None => known.await,
        }
    }

    /// The failure that the response's status and body report: the answer has failed, and none of
    /// its content was sent.
    pub fn refusal(&self) -> Option<Failure> {
        self.pipe
            .failure()
            .filter(|_| self.has_ended && !self.pipe.has_begun())
    }

    /// The machines that the answer goes through.
    pub fn pipe(&self) -> &Pipe {
        &self.pipe
    }

    /// Adds to the log what is known of the answer.
    pub fn note(&self, line: &mut AccessLine) {
        let counts = self.pipe.counts();
        (line.calls, line.warnings) = (counts.calls, counts.warnings);
        line.answer_notes = self.pipe.notes();
        line.error = self.pipe.failure().map(|failure| failure.code);
    }
}
