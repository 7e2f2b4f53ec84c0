//! The lines of a recording, counted once from its beginning.

/// Counts line ends up to places that do not go back.
#[derive(Debug)]
pub(crate) struct LineCounter<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Line feeds before `at`.
    before: u64,
}

impl<'b> LineCounter<'b> {
    /// The lines of `bytes`.
    pub(crate) fn of(bytes: &'b [u8]) -> Self {
        LineCounter {
            bytes,
            at: 0,
            before: 0,
        }
    }

    /// The number of the line, from 1 on, that ends at the byte `offset` or holds it. Blank lines
    /// before the offset do not count: an event of a body is known at the blank line that ends its
    /// frame.
    pub(crate) fn number(&mut self, offset: u64) -> u64 {
        let end = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        let text = self.bytes[..end].trim_ascii_end().len();
        if text < self.at {
            // Between two events of one frame.
            (self.at, self.before) = (0, 0);
        }
        self.before += self.bytes[self.at..text]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count() as u64;
        self.at = text;
        self.before + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_numbered_at_its_end() {
        let mut lines = LineCounter::of(b"a\nb\r\n\r\ncd\n");
        let numbers: Vec<u64> = [1, 2, 4, 5, 7, 8, 10, 99].map(|at| lines.number(at)).into();
        assert_eq!(numbers, [1, 1, 2, 2, 2, 4, 4, 4]);
        assert_eq!(
            (
                LineCounter::of(b"").number(0),
                LineCounter::of(b"\n\n").number(2)
            ),
            (1, 1)
        );
    }
}
