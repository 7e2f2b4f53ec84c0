//! The bytes of a recording, in memory or piece by piece from its file.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Files up to this size are read whole, in bytes.
const WHOLE: u64 = 1 << 20;
/// How much of a longer file is read at once, in bytes.
const BLOCK: usize = 64 << 10;

/// The bytes of one recording.
pub(super) struct Source<'b> {
    /// The whole file, or its beginning.
    start: Cow<'b, [u8]>,
    rest: Option<File>,
}

impl<'b> Source<'b> {
    /// A recording in memory.
    pub fn of_bytes(bytes: &'b [u8]) -> Self {
        Source {
            start: Cow::Borrowed(bytes),
            rest: None,
        }
    }

    /// The recording at `path`; what is read of it first goes into `buffer`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path, buffer: &'b mut Vec<u8>) -> io::Result<Self> {
        let mut file = File::open(path)?;
        buffer.clear();
        let size = (&mut file).take(WHOLE + 1).read_to_end(buffer)?;
        let rest = (size as u64 > WHOLE).then_some(file);
        Ok(Source {
            start: Cow::Borrowed(buffer),
            rest,
        })
    }

    /// The beginning, of at least as many bytes as show what the recording is.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// All bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub fn whole(&mut self) -> io::Result<Cow<'_, [u8]>> {
        if let Some(mut rest) = self.rest.take() {
            rest.read_to_end(self.start.to_mut())?;
        }
        Ok(Cow::Borrowed(&self.start))
    }

    /// Gives the bytes to `take` in pieces, until it returns `false` or an error.
    ///
    /// # Errors
    /// Those of the system and of `take`.
    pub fn each_piece(
        self,
        mut take: impl FnMut(&[u8]) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let mut goes_on = take(&self.start)?;
        let Some(mut rest) = self.rest else {
            return Ok(());
        };
        let mut block = vec![0; BLOCK];
        while goes_on {
            match rest.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(n) => goes_on = take(&block[..n])?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}
