//! A filter: a machine for each stream of the input.

use crate::{Emit, Failure, Filter, LineHandler, LineWriter, Outcome, drive};
use event::payload::Warning;
use event::{Demux, Event, Kind, Machine, Payload, Sink};
use std::cell::RefCell;
use std::rc::Rc;

/// Runs a machine for each stream of the input until it ends, the answer is known, or a signal
/// comes.
///
/// # Errors
/// See [`Failure`]. On [`Failure::Gone`] the command ends silently with 0.
pub fn filter<M: Machine>(options: &Filter, machines: &mut Demux<M>) -> Result<Outcome, Failure> {
    drive(options, machines)
}

impl<M: Machine> LineHandler for Demux<M> {
    // Called for each line, and once more where a line was lost: without this the second call costs
    // the first its inlining.
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), out: &mut LineWriter<'_>) -> bool {
        let (stream, t) = (
            event.stream().map(|s| s.text()),
            event.t().map(|t| t.text()),
        );
        self.push(
            event,
            &mut MachineSink {
                out,
                at,
                stream,
                t,
                lost: false,
            },
        )
    }

    fn blank(&mut self, at: (usize, usize), out: &mut LineWriter<'_>) {
        out.pass(at.0, at.1);
    }

    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>) {
        out.write(*warning, None, 0, None);
    }

    fn finish(&mut self, out: &mut LineWriter<'_>) {
        for (stream, mut machine) in self.drain() {
            machine.finish(&mut MachineSink {
                out,
                at: (0, 0),
                stream: stream.as_deref(),
                t: None,
                lost: false,
            });
        }
    }
}

/// Lines that machines write beside their events, for answers of another form.
#[derive(Clone, Debug, Default)]
pub struct RawLines(Rc<RefCell<Vec<String>>>);

impl RawLines {
    /// Adds a line, without its line feed.
    pub fn push(&self, line: impl Into<String>) {
        self.0.borrow_mut().push(line.into());
    }

    fn write(&self, out: &mut LineWriter<'_>) {
        for line in self.0.take() {
            if out.options.emit != Emit::Nothing {
                out.line(&line);
            }
        }
    }
}

/// As [`filter`]; the lines that the machines push to `lines` follow what they write for an event.
///
/// # Errors
/// As [`filter`].
pub fn filter_with_lines<M: Machine>(
    options: &Filter,
    machines: &mut Demux<M>,
    lines: &RawLines,
) -> Result<Outcome, Failure> {
    drive(options, &mut WithLines { machines, lines })
}

struct WithLines<'l, M> {
    machines: &'l mut Demux<M>,
    lines: &'l RawLines,
}

impl<M: Machine> LineHandler for WithLines<'_, M> {
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), out: &mut LineWriter<'_>) -> bool {
        let is_settled = self.machines.event(event, at, out);
        self.lines.write(out);
        is_settled
    }

    fn blank(&mut self, at: (usize, usize), out: &mut LineWriter<'_>) {
        self.machines.blank(at, out);
    }

    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>) {
        self.machines.bad_line(warning, out);
    }

    fn finish(&mut self, out: &mut LineWriter<'_>) {
        LineHandler::finish(self.machines, out);
        self.lines.write(out);
    }
}

/// The sink of a machine: the current line, and the writer that it goes to.
struct MachineSink<'h, 'b> {
    out: &'h mut LineWriter<'b>,
    at: (usize, usize),
    stream: Option<&'h str>,
    t: Option<&'h str>,
    lost: bool,
}

impl Sink for MachineSink<'_, '_> {
    #[inline]
    fn pass(&mut self) {
        self.out.pass(self.at.0, self.at.1);
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.lost |= self.out.put_event(payload, self.stream, choice, self.t);
    }

    fn lost(&self) -> bool {
        self.lost
    }

    fn too_long(&mut self, kind: Kind, length: usize) {
        self.out.put_too_long(kind, length, self.stream, 0, self.t);
        self.lost = true;
    }
}
