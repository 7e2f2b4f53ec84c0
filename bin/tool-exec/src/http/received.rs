//! What came of a body, up to a limit.

use crate::call::{Progress, ProgressMark};
use client::{Body, Error, PieceContent};
use redact::Redactor;

/// The body of an answer, as much of it as came and is kept.
#[derive(Debug, Default)]
pub struct Received {
    /// The bytes that are kept, decompressed.
    pub bytes: Vec<u8>,
    /// How many came; reading ends soon after the limit.
    pub seen: u64,
    /// Why the rest did not come.
    pub lost: Option<Error>,
}

impl Received {
    /// Reads a body to its end, or until it is longer than `max` bytes. The rest of one that is
    /// longer is not read. What comes is reported to `progress` without secrets.
    pub async fn read(
        mut body: Body,
        max: usize,
        progress: Option<&Progress>,
        redactor: &Redactor,
    ) -> Received {
        let (mut received, mut shown) = (Received::default(), ProgressMark::default());
        while received.seen <= max as u64 {
            match body.next().await.what {
                PieceContent::Bytes(piece) => {
                    received.seen += piece.len() as u64;
                    let room = max - received.bytes.len();
                    received
                        .bytes
                        .extend_from_slice(&piece[..piece.len().min(room)]);
                    received.report(&mut shown, true, progress, redactor);
                }
                PieceContent::End => break,
                PieceContent::Lost(error) => {
                    received.lost = Some(error);
                    break;
                }
            }
        }
        let is_open = !received.is_whole();
        received.report(&mut shown, is_open, progress, redactor);
        received
    }

    fn report(
        &self,
        shown: &mut ProgressMark,
        is_open: bool,
        progress: Option<&Progress>,
        redactor: &Redactor,
    ) {
        if let Some(progress) = progress
            && let Some(text) = shown.more(&self.bytes, is_open, redactor)
        {
            progress.text(&text);
        }
    }

    /// Whether all of the body came, and is kept.
    pub fn is_whole(&self) -> bool {
        !self.was_cut() && self.lost.is_none()
    }

    /// The bytes without a character at their end that is not whole because the rest did not come.
    pub fn whole(&self) -> &[u8] {
        match std::str::from_utf8(&self.bytes) {
            Err(e) if e.error_len().is_none() && !self.is_whole() => &self.bytes[..e.valid_up_to()],
            _ => &self.bytes,
        }
    }

    /// Whether more came than is kept.
    pub fn was_cut(&self) -> bool {
        self.seen > self.bytes.len() as u64
    }
}
