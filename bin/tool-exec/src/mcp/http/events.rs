//! The event stream of an answer, as the transport of `rmcp` reads it.

use client::{Body, PieceContent};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};
use std::io::{Cursor, Error, ErrorKind};
use std::pin::Pin;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;

/// How many pieces of a body wait for the reader.
const PIECES: usize = 4;

/// A piece of a body.
type Piece = Result<Cursor<Vec<u8>>, Error>;

/// The events of a body; one of more than `longest` bytes ends the stream with an error. The body
/// is read while somebody reads the events.
pub fn of_body(
    body: Body,
    longest: usize,
) -> Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>> {
    let (send, pieces) = mpsc::channel(PIECES);
    tokio::spawn(forward(body, send, longest));
    Box::pin(SseStream::from_bytes_stream(ReceiverStream::new(pieces)))
}

async fn forward(mut body: Body, to: mpsc::Sender<Piece>, longest: usize) {
    let mut size = EventSize::default();
    loop {
        let piece = tokio::select! {
            piece = body.next() => piece,
            () = to.closed() => return,
        };
        let piece = match piece.what {
            PieceContent::Bytes(bytes) if size.add(bytes) <= longest => {
                Ok(Cursor::new(bytes.to_vec()))
            }
            PieceContent::Bytes(_) => Err(Error::new(
                ErrorKind::InvalidData,
                format!("an event of more than {longest} bytes"),
            )),
            PieceContent::End => return,
            PieceContent::Lost(error) => Err(Error::other(error)),
        };
        let is_last = piece.is_err();
        if to.send(piece).await.is_err() || is_last {
            return;
        }
    }
}

/// How many bytes the event so far has. An event ends at an empty line.
#[derive(Debug, Default)]
struct EventSize {
    size: usize,
    is_line_empty: bool,
}

impl EventSize {
    /// Takes the next bytes, and returns the size of the largest event that they belong to.
    fn add(&mut self, bytes: &[u8]) -> usize {
        let mut largest = 0;
        for byte in bytes {
            self.size += 1;
            match byte {
                b'\n' if self.is_line_empty => self.size = 0,
                b'\n' => self.is_line_empty = true,
                b'\r' => {}
                _ => self.is_line_empty = false,
            }
            largest = largest.max(self.size);
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_each_for_itself() {
        let mut size = EventSize::default();
        assert_eq!(
            (
                size.add(b"data: x\n\ndata"),
                size.add(b": yy\n\r\n"),
                size.add(b"a")
            ),
            (8, 10, 1)
        );
    }
}
