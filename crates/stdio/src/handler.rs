//! The handler of lines.

use crate::LineWriter;
use event::Event;
use event::payload::Warning;

/// Takes each line of the input: the machines of a filter, a view, or a command that needs more
/// than those get.
pub trait LineHandler {
    /// The event of the line `at.0..at.1` of the block. Returns whether the answer is known.
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), out: &mut LineWriter<'_>) -> bool;
    /// A blank line.
    fn blank(&mut self, at: (usize, usize), out: &mut LineWriter<'_>);
    /// A line that is not an event, before it is reported; returns whether the handler can read it
    /// nevertheless.
    fn other_line(&mut self, _: &str, _: &mut LineWriter<'_>) -> bool {
        false
    }
    /// The warning that takes the place of a line that is not an event.
    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>);
    /// A signal asks the command to end; returns whether the handler needs the rest of its input
    /// nevertheless.
    fn interrupt(&mut self, _: &mut LineWriter<'_>) -> bool {
        false
    }
    /// The input has ended.
    fn finish(&mut self, out: &mut LineWriter<'_>);
}
