//! A body that is compressed with gzip ([RFC 1952](https://www.rfc-editor.org/rfc/rfc1952)), as
//! some recorders write what they received.

use flate2::write::MultiGzDecoder;
use std::io::{Error, Write};

/// The first bytes of such a body: the magic number, and deflate, which is the only method.
pub(super) const MAGIC: &[u8] = b"\x1f\x8b\x08";

/// How many bytes are decompressed at once. One byte gives at most 1,032 others, so that no body
/// makes more than about a megabyte of a step.
const STEP: usize = 1024;

/// Decompresses a body while it comes.
#[derive(Debug)]
pub(super) struct Gzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    is_damaged: bool,
}

impl Gzip {
    /// A body before its first byte.
    pub(super) fn new() -> Gzip {
        Gzip {
            decoder: MultiGzDecoder::new(Vec::new()),
            is_damaged: false,
        }
    }

    /// Takes the next bytes. Gives what they mean to `on` piece by piece, until `on` returns
    /// `false`.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        on: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Error> {
        for step in bytes.chunks(STEP) {
            if self.is_damaged {
                return Ok(());
            }
            let written = self.decoder.write_all(step);
            if !self.give(on) {
                return Ok(());
            }
            self.checked(written)?;
        }
        Ok(())
    }

    /// The body ended.
    pub(super) fn finish(&mut self, on: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
        if self.is_damaged {
            return Ok(());
        }
        let finished = self.decoder.try_finish();
        self.give(on);
        self.checked(finished)
    }

    fn give(&mut self, on: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let text = self.decoder.get_mut();
        let goes_on = on(text);
        text.clear();
        goes_on
    }

    fn checked(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        self.is_damaged |= result.is_err();
        result
    }

    /// How much memory is kept.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.decoder.get_ref().capacity()
    }
}
