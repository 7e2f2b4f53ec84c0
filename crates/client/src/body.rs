//! The body of an answer: from a file, from a recording, or from the network. All are read the same
//! way.

mod file;
mod live;
mod piece;
mod recorded;

pub use file::FileBody;
pub(crate) use live::{LiveBody, elapsed, ending};
pub use piece::{BodyPiece, PieceContent};

use crate::{Error, Recording, Speed};
use api::tape::Exchange;
use recorded::RecordedBody;
use std::time::Duration;

/// The body of an answer, read piece by piece.
#[derive(Debug)]
pub struct Body(BodyOrigin);

#[derive(Debug)]
enum BodyOrigin {
    File(FileBody),
    Recorded(RecordedBody),
    Live(Box<LiveBody>),
}

impl Body {
    /// A raw body in a file.
    pub fn of_file(file: FileBody) -> Body {
        Body(BodyOrigin::File(file))
    }

    /// A recorded body, whose request is sent now.
    pub fn of_recording(recording: Recording, speed: Speed) -> Body {
        Body(BodyOrigin::Recorded(RecordedBody::new(recording, speed)))
    }

    pub(crate) fn of_network(live: LiveBody) -> Body {
        Body(BodyOrigin::Live(Box::new(live)))
    }

    /// Waits for the next bytes. The wait may be dropped and begun anew; do not call it after the
    /// end.
    pub async fn next(&mut self) -> BodyPiece<'_> {
        match &mut self.0 {
            BodyOrigin::File(body) => body.next().await,
            BodyOrigin::Recorded(body) => body.next().await,
            BodyOrigin::Live(body) => body.next().await,
        }
    }

    /// How many bytes of it are kept for a tape.
    pub fn kept(&self) -> usize {
        match &self.0 {
            BodyOrigin::Live(body) => body.kept(),
            BodyOrigin::File(_) | BodyOrigin::Recorded(_) => 0,
        }
    }

    /// Ends the reading before the body's own end. Returns the time of that, if it comes from the
    /// network.
    pub fn stop(&mut self) -> Option<Duration> {
        match &mut self.0 {
            BodyOrigin::Live(body) => Some(body.stop()),
            BodyOrigin::File(_) | BodyOrigin::Recorded(_) => None,
        }
    }

    /// The recording that was begun with the request, if there was one. The body was lost by
    /// `error` or had its own end.
    pub fn recorded(self, error: Option<&Error>) -> Option<Box<Exchange>> {
        match self.0 {
            BodyOrigin::Live(body) => body.recorded(error),
            BodyOrigin::File(_) | BodyOrigin::Recorded(_) => None,
        }
    }
}
