//! The network.

use crate::source::{Piece, What};
use std::time::Duration;
use tokio::time::Instant;
use upstream::End;

/// A response on its way.
#[derive(Debug)]
pub struct Live {
    response: reqwest::Response,
    sent: Instant,
    chunk: Vec<u8>,
}

impl Live {
    /// Waits for the next bytes.
    pub async fn next(&mut self) -> Piece<'_> {
        let got = self.response.chunk().await;
        let at = Some(Duration::from_micros(u64::try_from(self.sent.elapsed().as_micros()).unwrap_or(u64::MAX)));
        let what = match got {
            Ok(Some(bytes)) => {
                self.chunk.clear();
                self.chunk.extend_from_slice(&bytes);
                What::Bytes(&self.chunk)
            }
            Ok(None) => What::End(End::Eof),
            Err(e) => What::End(End::Reset(e.to_string())),
        };
        Piece { at, what }
    }
}
