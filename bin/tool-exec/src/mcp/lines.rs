//! A line reader with a maximum line length.

use std::io::{Error, ErrorKind};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// Reads lines of limited length.
#[derive(Debug)]
pub(super) struct ServerLines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    longest: usize,
}

impl<R: AsyncRead + Unpin> ServerLines<R> {
    /// Returns a reader of the lines of `from`, each of at most `longest` bytes.
    pub(super) fn new(from: R, longest: usize) -> Self {
        ServerLines {
            from: BufReader::with_capacity(1 << 16, from),
            line: Vec::new(),
            longest,
        }
    }

    /// Returns the next line without its line feed, or `None` at the end of the stream. A last line
    /// without a line feed is ignored. Cancel-safe.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if a line is too long. Nothing can be read after that.
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

    /// Writes bytes to the same stream.
    ///
    /// # Errors
    /// If the other end has closed.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()>
    where
        R: AsyncWrite,
    {
        self.from.write_all(bytes).await
    }
}
