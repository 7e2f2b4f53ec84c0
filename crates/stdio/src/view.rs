//! The driver of a view: lines in, bytes out, under the same rules as a filter.

use crate::filter::{Copy, Stage, drive};
use crate::{Failure, Filter, Outcome};
use event::payload::{self, Message, Warning};
use event::{Event, Raw, Scanner, View};

/// Shows the input to `view` until it ends or a signal comes, and writes out what the view makes of it. A line that is no
/// event becomes a `warning` event, as in a filter; a bare chat message (`{"role":…}`), as logs may hold, is read as a `message` event. After a
/// signal the input is read to its end where the view needs it, until another signal.
///
/// # Errors
/// See [`Failure`]. On [`Failure::Gone`] the command ends silently with 0.
pub fn view(options: &Filter, view: &mut dyn View) -> Result<Outcome, Failure> {
    drive(options, &mut Shown { view, scanner: Scanner::default(), line: Vec::new() })
}

struct Shown<'v> {
    view: &'v mut dyn View,
    scanner: Scanner,
    line: Vec<u8>,
}

impl Shown<'_> {
    /// Shows the event that `line` holds; gives whether it holds one.
    fn show(&mut self, copy: &mut Copy<'_>) -> bool {
        let line = String::from_utf8_lossy(&self.line);
        let Ok(event) = self.scanner.read(&line) else { return false };
        copy.text(|out| self.view.push(&event, out));
        true
    }
}

impl Stage for Shown<'_> {
    fn event(&mut self, event: &Event<'_>, _: (usize, usize), copy: &mut Copy<'_>) -> bool {
        copy.text(|out| self.view.push(event, out));
        false
    }

    fn blank(&mut self, _: (usize, usize), _: &mut Copy<'_>) {}

    fn other_line(&mut self, line: &str, copy: &mut Copy<'_>) -> bool {
        let Ok(message) = Raw::parse(line) else { return false };
        if !message.is_object() || message.get("type").is_some() || !message.get("role").is_some_and(Raw::is_str) {
            return false;
        }
        self.line.clear();
        payload::line(&mut self.line, &Message { message: message.text() }, None, 0, None);
        self.show(copy)
    }

    fn bad_line(&mut self, warning: &Warning<'_>, copy: &mut Copy<'_>) {
        self.line.clear();
        payload::line(&mut self.line, warning, None, 0, None);
        self.show(copy);
    }

    fn interrupt(&mut self, copy: &mut Copy<'_>) -> bool {
        let mut runs = false;
        copy.text(|out| runs = self.view.interrupt(out));
        runs
    }

    fn finish(&mut self, copy: &mut Copy<'_>) {
        copy.text(|out| self.view.finish(out));
    }
}
