//! A page on a terminal: cards that change in place, and text drawn as Markdown.

use crate::story::Story;
use crate::surface::{FormRow, Terminal};
use crate::text::text;
use event::{Event, View};
use screen::Screen;

mod draft;

mod pen;
mod render;
mod screen;
mod table;

pub(crate) const ROW: FormRow = FormRow {
    name: "term",
    help: "Text as it streams, with formatted Markdown and live cards; without a terminal the same as text",
    view: |surface| match (surface.size)() {
        Some((columns, rows)) => {
            let terminal = Terminal {
                columns,
                rows,
                colour: surface.colour != Some(false),
            };
            Box::new(Term {
                size: surface.size,
                was: Some((columns, rows)),
                ..Term::new(terminal, surface.no_time)
            })
        }
        None => Box::new(text(surface.colour == Some(true), surface.no_time)),
    },
};

/// The view for a terminal.
#[derive(Debug)]
pub struct Term {
    story: Story<Screen>,
    /// Returns the current size of the terminal; `None` if the size cannot change.
    size: fn() -> Option<(usize, usize)>,
    was: Option<(usize, usize)>,
}

impl Term {
    /// Creates a view for `terminal`. `no_time` omits durations.
    pub fn new(terminal: Terminal, no_time: bool) -> Self {
        Term {
            story: Story::new(Screen::new(terminal, no_time)),
            size: || None,
            was: None,
        }
    }

    /// Sets a new size of the terminal.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        self.story.page().resize(columns, rows);
    }
}

impl View for Term {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if let Some((columns, rows)) = (self.size)().filter(|size| self.was != Some(*size)) {
            self.was = Some((columns, rows));
            self.resize(columns, rows);
        }
        self.story.push(event, out);
    }

    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        self.story.interrupt(out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.story.finish(out);
    }
}
