//! Writes HTML piece by piece.
//!
//! `maud` builds whole elements, but a report has elements that stay open while the log is read.
//! Only `&'static str` markup from the source code is written unescaped; all other text goes
//! through [`HtmlWriter::text`], which escapes it and makes hidden characters visible.

use super::excerpt::written_out;

/// Appends HTML to a buffer.
pub(super) struct HtmlWriter<'o>(pub &'o mut Vec<u8>);

impl HtmlWriter<'_> {
    /// Writes markup from the source code, unescaped.
    pub(super) fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.extend_from_slice(markup.as_bytes());
        self
    }

    /// Writes an escaped text, which may be in a quoted attribute.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        let text = written_out(text);
        let mut rest = text.as_bytes();
        while let Some(at) = rest
            .iter()
            .position(|b| matches!(b, b'&' | b'<' | b'>' | b'"'))
        {
            self.0.extend_from_slice(&rest[..at]);
            self.0.extend_from_slice(match rest[at] {
                b'&' => b"&amp;",
                b'<' => b"&lt;",
                b'>' => b"&gt;",
                _ => b"&quot;",
            });
            rest = &rest[at + 1..];
        }
        self.0.extend_from_slice(rest);
        self
    }

    /// Writes a number.
    pub(super) fn number(&mut self, n: usize) -> &mut Self {
        self.0.extend_from_slice(n.to_string().as_bytes());
        self
    }

    /// Writes an element: its opening markup, its text and its closing markup.
    pub(super) fn element(
        &mut self,
        open: &'static str,
        text: &str,
        close: &'static str,
    ) -> &mut Self {
        self.markup(open).text(text).markup(close)
    }

    /// Writes a `<pre>` element with this text. Parsers drop a line feed directly after `<pre>`, so
    /// one is added.
    pub(super) fn pre(&mut self, text: &str) -> &mut Self {
        self.markup("<pre>");
        if text.starts_with('\n') {
            self.markup("\n");
        }
        self.text(text).markup("</pre>")
    }
}
