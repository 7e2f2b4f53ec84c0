//! Bytes as lines, each of a bounded length.

/// A line of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A whole line, without its line feed.
    Whole(&'a [u8]),
    /// The beginning of a line that is longer than allowed.
    TooLong(&'a [u8]),
}

/// Cuts bytes, which come in any pieces, into lines.
#[derive(Debug)]
pub struct Lines {
    /// The line at the end, which is not complete, or the beginning of one that is too long.
    open: Vec<u8>,
    is_too_long: bool,
    max: usize,
}

impl Lines {
    /// Lines of at most `max` bytes.
    pub fn new(max: usize) -> Lines {
        Lines {
            open: Vec::new(),
            is_too_long: false,
            max,
        }
    }

    /// How many bytes of a line that is not complete are kept.
    pub fn kept(&self) -> usize {
        self.open.len()
    }

    /// Takes the next bytes, and gives `take` each line that ends in them.
    pub fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end]);
            self.end(&mut take);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// Takes the end of the bytes, and gives `take` a last line without a line feed.
    pub fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if !self.open.is_empty() {
            self.end(&mut take);
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = self.max - self.open.len();
        self.is_too_long |= bytes.len() > room;
        self.open.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self, take: &mut impl FnMut(Line<'_>)) {
        take(if self.is_too_long {
            Line::TooLong(&self.open)
        } else {
            Line::Whole(&self.open)
        });
        self.is_too_long = false;
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]], max: usize) -> Vec<String> {
        let (mut lines, mut out) = (Lines::new(max), Vec::new());
        let mut take = |line: Line<'_>| {
            out.push(match line {
                Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                Line::TooLong(line) => format!("{}…", String::from_utf8_lossy(line)),
            });
        };
        pieces.iter().for_each(|piece| lines.push(piece, &mut take));
        lines.finish(&mut take);
        out
    }

    #[test]
    fn no_split_shows_and_a_long_line_is_cut() {
        let text = b"ab\n\nabcd\nabcdefgh\nx\nlast";
        let expected = ["ab", "", "abcd", "abcd…", "x", "last"];
        assert_eq!(all(&[text], 4), expected);
        for at in 0..text.len() {
            assert_eq!(all(&[&text[..at], &text[at..]], 4), expected, "{at}");
        }
        assert_eq!(all(&[b"abcde"], 4), ["abcd…"]);
        assert_eq!(all(&[b"a\n"], 4), ["a"]);
    }
}
