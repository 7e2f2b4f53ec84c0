//! The driver of a view: lines in, bytes out, under the same rules as a filter.

use crate::{Failure, Filter, LineHandler, LineWriter, Outcome, drive};
use event::payload::{Message, Warning};
use event::{Event, Payload, Raw, View};

/// Shows the input to `view` until it ends or a signal comes, and writes out the bytes of the view.
/// A line that is not an event becomes a `warning` event, as in a filter; a bare chat message
/// (`{"role":…}`), as logs may hold, is read as a `message` event. After a signal the input is read
/// to its end where the view needs it, until another signal.
///
/// # Errors
/// See [`Failure`]. On [`Failure::Gone`] the command ends silently with 0.
pub fn view(options: &Filter, view: &mut dyn View) -> Result<Outcome, Failure> {
    drive(options, &mut ViewHandler { view })
}

struct ViewHandler<'v> {
    view: &'v mut dyn View,
}

impl ViewHandler<'_> {
    /// Shows an event that takes the place of a line.
    fn show(&mut self, payload: &Payload<'_>, out: &mut LineWriter<'_>) {
        out.text(|out| self.view.push(&Event::of(payload, None, 0, None), out));
    }
}

impl LineHandler for ViewHandler<'_> {
    fn event(&mut self, event: &Event<'_>, _: (usize, usize), out: &mut LineWriter<'_>) -> bool {
        out.text(|out| self.view.push(event, out));
        false
    }

    fn blank(&mut self, _: (usize, usize), _: &mut LineWriter<'_>) {}

    fn other_line(&mut self, line: &str, out: &mut LineWriter<'_>) -> bool {
        let Ok(message) = Raw::parse(line) else {
            return false;
        };
        if !message.is_object()
            || message.get("type").is_some()
            || !message.get("role").is_some_and(Raw::is_str)
        {
            return false;
        }
        self.show(
            &Message {
                message: message.into(),
            }
            .into(),
            out,
        );
        true
    }

    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>) {
        self.show(&(*warning).into(), out);
    }

    fn interrupt(&mut self, out: &mut LineWriter<'_>) -> bool {
        let mut runs = false;
        out.text(|out| runs = self.view.interrupt(out));
        runs
    }

    fn finish(&mut self, out: &mut LineWriter<'_>) {
        out.text(|out| self.view.finish(out));
    }
}
