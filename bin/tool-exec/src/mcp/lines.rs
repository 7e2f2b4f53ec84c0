//! Lines of a stream, each of which is bounded.

use std::io::{Error, ErrorKind};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// Reads lines.
#[derive(Debug)]
pub(super) struct ServerLines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    longest: usize,
}

impl<R: AsyncRead + Unpin> ServerLines<R> {
    /// Reads the lines of `from`, each of at most `longest` bytes.
    pub(super) fn new(from: R, longest: usize) -> Self {
        ServerLines {
            from: BufReader::with_capacity(1 << 16, from),
            line: Vec::new(),
            longest,
        }
    }

    /// The next line without its line feed; `None` at the end. A last line without a line feed does
    /// not count. May be dropped while it waits, and called again.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] for a line that is too long: nothing can be read after that.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            let piece = self.from.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(piece.len());
            if self.line.len() + length > self.longest {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    format!("a line of more than {} bytes", self.longest),
                ));
            }
            self.line.extend_from_slice(&piece[..length]);
            self.from.consume(length + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }

    /// Writes bytes to the stream that the lines come from.
    ///
    /// # Errors
    /// When its other end is closed.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()>
    where
        R: AsyncWrite,
    {
        self.from.write_all(bytes).await
    }
}
