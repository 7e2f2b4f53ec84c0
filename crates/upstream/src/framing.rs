//! The bytes of a body into frames.

/// One piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A server-sent event.
    Event { name: Option<&'a str>, data: &'a str },
    /// A JSON value of a body that is a value, an array or a sequence of values. Its brackets match; no more is known.
    Value(&'a str),
    /// Text between values, or a value that did not end.
    Broken(&'a str),
    /// The body is nothing that a provider's API sends: its beginning, and whether it looks like an HTML page.
    Foreign { text: &'a str, html: bool },
}

/// Finds out from the first bytes what a body is, and cuts it into frames. How the bytes come never shows.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    sse: sse::Decoder,
}

impl Framing {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], on: &mut dyn FnMut(Frame<'_>)) {
        self.sse.push(bytes, &mut |e| on(Frame::Event { name: e.name, data: e.data }));
    }

    /// The body ended, at its end or before.
    pub(crate) fn finish(&mut self, on: &mut dyn FnMut(Frame<'_>)) {
        self.sse.finish(&mut |e| on(Frame::Event { name: e.name, data: e.data }));
    }
}
