//! `term`: text is drawn as Markdown, and cards are updated in place.

use super::text::text;
use crate::story::Story;
use crate::surface::{FormRow, Surface, Terminal};
use crate::terminal::screen::Screen;
use event::{Event, View};

pub(crate) const ROW: FormRow = FormRow {
    name: "term",
    help: "Text as it streams, drawn as Markdown, and cards that change in place; without a terminal the same as text",
    view: |surface| match (surface.size)() {
        Some((columns, rows)) => {
            let terminal = Terminal {
                columns,
                rows,
                colour: surface.colour != Some(false),
            };
            let view = Term::new(terminal, surface.no_time);
            Box::new(ResizableTerm {
                view,
                surface: *surface,
                size: (columns, rows),
            })
        }
        None => Box::new(text(surface.colour == Some(true), surface.no_time)),
    },
};

/// A view for a terminal.
#[derive(Debug)]
pub struct Term(Story<Screen>);

impl Term {
    /// A view for `terminal`. With `no_time` it shows no durations.
    pub fn new(terminal: Terminal, no_time: bool) -> Self {
        Term(Story::new(Screen::new(terminal, no_time)))
    }

    /// The terminal has another size from now on.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        self.0.page().resize(columns, rows);
    }
}

impl View for Term {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.0.push(event, out);
    }

    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        self.0.interrupt(out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.0.finish(out);
    }
}

/// The view on a terminal whose size may change.
struct ResizableTerm {
    view: Term,
    surface: Surface,
    size: (usize, usize),
}

impl View for ResizableTerm {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if let Some(size) = (self.surface.size)().filter(|size| *size != self.size) {
            self.size = size;
            self.view.resize(size.0, size.1);
        }
        self.view.push(event, out);
    }

    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        self.view.interrupt(out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.view.finish(out);
    }
}
