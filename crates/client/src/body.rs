//! The body of an answer: from a file, from a recording, or from the network. All are read the same way.

mod file;
mod live;
mod piece;
mod recorded;

pub use file::FileBody;
pub use live::LiveBody;
pub(crate) use live::{elapsed, ending};
pub use piece::{Piece, What};
pub use recorded::RecordedBody;

use std::time::Duration;

/// The body of an answer, read piece by piece.
#[derive(Debug)]
pub enum Body {
    /// A raw body in a file.
    File(FileBody),
    /// A recorded body in memory.
    Recorded(RecordedBody),
    /// A body that the network brings.
    Live(Box<LiveBody>),
}

impl Body {
    /// Waits for the next bytes. The wait may be dropped and begun anew; do not call it after the end.
    pub async fn next(&mut self) -> Piece<'_> {
        match self {
            Body::File(body) => body.next().await,
            Body::Recorded(body) => body.next().await,
            Body::Live(body) => body.next().await,
        }
    }

    /// Ends the reading before the body's own end. Returns the time of that, where bodies of this kind have times.
    pub fn stop(&mut self) -> Option<Duration> {
        match self {
            Body::Live(body) => Some(body.stop()),
            Body::File(_) | Body::Recorded(_) => None,
        }
    }
}
