//! Bytes in any pieces into events.

/// One event, pointing into the decoder that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; `None` where the event names none (a browser calls it `message` then).
    pub name: Option<&'a str>,
    /// The `data` lines, joined by line feeds.
    pub data: &'a str,
    /// The last `id` that was seen, which stays until another comes.
    pub id: Option<&'a str>,
}

/// The interpreter of an event stream. Feed it bytes as they come; how they were cut never shows in its events.
///
/// Bytes that are no UTF-8 become U+FFFD, as the specification's decoder has it. Comments and unknown fields are left out.
#[derive(Debug, Default)]
pub struct Decoder {
    begun: bool,
    /// The line that has begun and not ended; at the very start also a byte order mark that is not whole yet.
    line: Vec<u8>,
    /// A carriage return ended the last line, so a line feed now belongs to it.
    after_return: bool,
    name: String,
    data: String,
    has_data: bool,
    id: Option<String>,
    retry: Option<u64>,
}

const MARK: &[u8] = b"\xef\xbb\xbf";

impl Decoder {
    /// Takes the next bytes of the body; calls `on` for each event that they complete.
    pub fn push(&mut self, mut bytes: &[u8], on: &mut dyn FnMut(Event<'_>)) {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            if self.line.is_empty() {
                self.line(line, on);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.line(&whole, on);
                whole.clear();
                self.line = whole;
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                _ => &rest[1..],
            };
        }
        self.line.extend_from_slice(bytes);
    }

    /// The body ended. The specification drops an event whose blank line is missing; several providers leave out the last
    /// one, so it is given here, with its last line as far as it came, and the caller tells from the data whether it is whole.
    pub fn finish(&mut self, on: &mut dyn FnMut(Event<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line, on);
        }
        self.dispatch(on);
    }

    /// The reconnection time in milliseconds, if the stream has set one.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// How many bytes are held for the event that has begun.
    pub fn held(&self) -> usize {
        self.line.len() + self.data.len()
    }

    fn line(&mut self, mut line: &[u8], on: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(on);
            return;
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[] as &[u8]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                push_lossy(&mut self.data, value);
            }
            b"event" => {
                self.name.clear();
                push_lossy(&mut self.name, value);
            }
            b"id" if !value.contains(&0) => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()).or(self.retry);
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, on: &mut dyn FnMut(Event<'_>)) {
        if self.has_data {
            let name = Some(self.name.as_str()).filter(|n| !n.is_empty());
            on(Event { name, data: &self.data, id: self.id.as_deref() });
        }
        self.has_data = false;
        self.data.clear();
        self.name.clear();
    }
}

fn push_lossy(out: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => out.push_str(text),
        Err(_) => out.push_str(&String::from_utf8_lossy(bytes)),
    }
}
