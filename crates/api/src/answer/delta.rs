//! The constant bytes around the text of a stream's deltas.

use event::push_string;

/// The bytes around the text of a delta, written once for all deltas of the same key. The key has
/// everything that the delta contains beside its text, directly or by a number that changes with it.
#[derive(Debug)]
pub(crate) struct DeltaFrame<K> {
    key: Option<K>,
    /// Whether `before` and `after` belong to the key. A key that appears once needs no frame.
    is_made: bool,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl<K> Default for DeltaFrame<K> {
    fn default() -> Self {
        DeltaFrame {
            key: None,
            is_made: false,
            before: Vec::new(),
            after: Vec::new(),
        }
    }
}

impl<K: PartialEq> DeltaFrame<K> {
    /// Appends the delta of `key` with this text. `write` writes a delta of this key with any text,
    /// as a JSON string, and otherwise always the same bytes.
    pub(crate) fn push(
        &mut self,
        out: &mut Vec<u8>,
        key: K,
        text: &str,
        mut write: impl FnMut(&mut Vec<u8>, &str),
    ) {
        if self.key.as_ref() != Some(&key) {
            (self.key, self.is_made) = (Some(key), false);
            return write(out, text);
        }
        if !self.is_made {
            self.is_made = true;
            self.make(write);
        }
        out.reserve(self.before.len() + text.len() + self.after.len() + 2);
        out.extend_from_slice(&self.before);
        push_string(out, text);
        out.extend_from_slice(&self.after);
    }

    /// Finds the place of the text: the first byte in which an empty text and one of a letter
    /// differ is the quotation mark behind the empty text.
    #[cold]
    fn make(&mut self, mut write: impl FnMut(&mut Vec<u8>, &str)) {
        let [mut empty, mut letter] = [Vec::new(), Vec::new()];
        write(&mut empty, "");
        write(&mut letter, "x");
        let same = empty.iter().zip(&letter).take_while(|(a, b)| a == b);
        let at = same.count();
        self.after = empty.split_off((at + 1).min(empty.len()));
        empty.truncate(at.saturating_sub(1));
        self.before = empty;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Object;

    /// A delta whose constant part has quotation marks and the text of a delta.
    fn write(key: u32, out: &mut Vec<u8>, text: &str) {
        let mut o = Object::open(out);
        o.str("model", "\"x").str("text", text).int("key", key);
        o.close();
    }

    #[test]
    fn a_frame_writes_the_same_bytes_as_its_writer() {
        let texts = ["", "x", "\"", "\\\n\u{7f}é", "text", "\"x"];
        let mut frame = DeltaFrame::default();
        // Each key comes once, twice and many times, and comes back.
        for key in [1, 2, 2, 3, 3, 3, 3, 3, 3, 1, 3, 3] {
            for text in texts.iter().cycle().skip(key as usize).take(key as usize) {
                let [mut framed, mut written] = [b"before".to_vec(), b"before".to_vec()];
                frame.push(&mut framed, key, text, |out, text| write(key, out, text));
                write(key, &mut written, text);
                assert_eq!(framed, written, "{key} {text:?}");
            }
        }
    }
}
