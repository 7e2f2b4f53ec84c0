//! HTML that is written piece by piece.
//!
//! `maud` makes whole elements, and a report has elements that stay open while the log is read, so
//! this is a writer. What may go out unescaped is a `&'static str` of the source code; every other
//! text goes through [`HtmlWriter::text`], which escapes it and writes hidden characters out.

use super::excerpt::written_out;

/// Appends HTML to a buffer.
pub(super) struct HtmlWriter<'o>(pub &'o mut Vec<u8>);

impl HtmlWriter<'_> {
    /// Markup of ours.
    pub(super) fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.extend_from_slice(markup.as_bytes());
        self
    }

    /// A text, also of a value between quotation marks.
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

    /// A number.
    pub(super) fn number(&mut self, n: usize) -> &mut Self {
        self.0.extend_from_slice(n.to_string().as_bytes());
        self
    }

    /// An element without attributes.
    pub(super) fn element(
        &mut self,
        open: &'static str,
        text: &str,
        close: &'static str,
    ) -> &mut Self {
        self.markup(open).text(text).markup(close)
    }

    /// A `<pre>` with this text. A parser drops a line feed right behind `<pre>`.
    pub(super) fn pre(&mut self, text: &str) -> &mut Self {
        self.markup("<pre>");
        if text.starts_with('\n') {
            self.markup("\n");
        }
        self.text(text).markup("</pre>")
    }
}
