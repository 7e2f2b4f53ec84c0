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

/// A view for a terminal.
#[derive(Debug)]
pub struct Term {
    story: Story<Screen>,
    /// The size of the terminal as it is now, where that may change, and as it was.
    size: fn() -> Option<(usize, usize)>,
    was: Option<(usize, usize)>,
}

impl Term {
    /// A view for `terminal`. With `no_time` it shows no durations.
    pub fn new(terminal: Terminal, no_time: bool) -> Self {
        Term {
            story: Story::new(Screen::new(terminal, no_time)),
            size: || None,
            was: None,
        }
    }

    /// The terminal has another size from now on.
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
