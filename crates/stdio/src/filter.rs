//! A filter: a machine for each stream of the input.

use crate::{Emit, Failure, Filter, LineHandler, LineWriter, Outcome, drive};
use event::payload::Warning;
use event::{Demux, Event, Kind, Machine, Payload, Sink};

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

/// The sink of a machine: the current line, and the writer that it goes to.
struct MachineSink<'h, 'b> {
    out: &'h mut LineWriter<'b>,
    at: (usize, usize),
    stream: Option<&'h str>,
    t: Option<&'h str>,
    lost: bool,
}

impl Sink for MachineSink<'_, '_> {
    fn line(&mut self, json: &str) {
        if self.out.options.emit != Emit::Nothing {
            self.out.line(json);
        }
    }

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
