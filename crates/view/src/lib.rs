//! Events for people: text as it streams, a card for each call, or the final answer as JSON.
//!
//! What it is: three [`event::View`]s, [`Term`] for a terminal, [`text`] for files and pipes, and [`Json`]. The first two tell
//! the same story ([`story`]) on two kinds of page. What it is not: it knows no terminal and no clock; it is told how wide the
//! page is, and times are those of the events.
//!
//! No control character of a model or a tool leaves raw (see [`safe`]); the only escape sequences are our own.

mod calls;
mod card;
mod draft;
mod escape;
mod json;
mod markdown;
mod pen;
mod plain;
mod render;
mod screen;
mod story;
mod table;
mod who;

pub use escape::{columns, safe};
pub use event::is_hidden;
pub use json::Json;

/// How a terminal is written to.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Its width in columns.
    pub columns: usize,
    /// Its height in rows.
    pub rows: usize,
    /// Whether colours (and dim and bold) may be used.
    pub colour: bool,
}

/// A view for a terminal: text is drawn as Markdown, and cards are updated in place.
#[derive(Debug)]
pub struct Term(story::Story<screen::Screen>);

impl Term {
    /// A view for `terminal`. With `no_time` it shows no durations.
    pub fn new(terminal: Terminal, no_time: bool) -> Self {
        Term(story::Story::new(screen::Screen::new(terminal, no_time)))
    }

    /// The terminal has another size from now on.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        self.0.page().resize(columns, rows);
    }
}

impl event::View for Term {
    fn push(&mut self, event: &event::Event<'_>, out: &mut Vec<u8>) {
        self.0.push(event, out);
    }

    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        self.0.interrupt(out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.0.finish(out);
    }
}

/// A view for files and pipes: plain text, a line where a call starts and a line where it ends.
pub fn text(colour: bool, no_time: bool) -> impl event::View {
    story::Story::new(plain::Plain::new(colour, no_time))
}
