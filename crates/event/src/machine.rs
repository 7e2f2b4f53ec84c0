//! The traits that every command is made of: a machine and its sink, and a view.

use crate::{Event, Kind, Payload, Scanner, payload};

/// Takes the output of a machine. The driver that implements it has the line at hand, with its
/// stream and its time.
pub trait Sink {
    /// Passes the line at hand, byte for byte. Called at most once for an event; a machine that
    /// does not call it drops the line.
    fn pass(&mut self);

    /// Writes a new event, in the order of the calls of this and of [`Sink::pass`]. It gets the
    /// `stream` and the `t` of the line at hand, and `choice` if that is not 0.
    fn write(&mut self, choice: u32, payload: &Payload<'_>);

    /// Whether an `error` took the place of an event that was written for the line at hand, because
    /// it was longer than a line may be.
    fn lost(&self) -> bool {
        false
    }

    /// An event of this kind would be longer than a line may be, so that the machine keeps nothing
    /// of it any more: it has `length` bytes or more. A driver writes the same `error` as in the
    /// place of an event that [`Sink::write`] finds too long.
    fn too_long(&mut self, kind: Kind, length: usize) {
        let _ = (kind, length);
    }
}

/// What a machine writes to a [`SinkOf`].
#[derive(Clone, Copy, Debug)]
pub enum Emitted<'p> {
    /// The event at hand, as it is.
    Passed,
    /// A new event of this choice.
    Written(u32, &'p Payload<'p>),
}

/// A sink made of a closure.
#[derive(Debug)]
pub struct SinkOf<F: FnMut(Emitted<'_>)>(pub F);

impl<F: FnMut(Emitted<'_>)> Sink for SinkOf<F> {
    fn pass(&mut self) {
        (self.0)(Emitted::Passed);
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        (self.0)(Emitted::Written(choice, payload));
    }
}

impl<'s> dyn Sink + 's {
    /// Calls [`Sink::write`] with the struct of any event kind, so that callers need no conversion.
    #[inline]
    pub fn emit<'p>(&mut self, choice: u32, payload: impl Into<Payload<'p>>) {
        self.write(choice, &payload.into());
    }
}

/// A filter without files, clock or threads: it takes events and emits events. One machine sees one
/// stream with all its choices.
pub trait Machine {
    /// Takes the next event of its stream. A `stream_end` is the last.
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink);

    /// Handles the end of a stream that has no `stream_end`: the input ended, or another stream
    /// began. Open calls and texts were cut.
    fn finish(&mut self, out: &mut dyn Sink);

    /// Whether the answer is known and no later event can change it, so that a driver that wants
    /// nothing else may stop reading.
    fn settled(&self) -> bool {
        false
    }
}

impl<M: Machine + ?Sized> Machine for Box<M> {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        (**self).push(event, out);
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        (**self).finish(out);
    }

    fn settled(&self) -> bool {
        (**self).settled()
    }
}

/// Turns events into output that is not events, such as text for people or one answer. Like a
/// [`Machine`] it does no IO; unlike a machine, one view sees all streams.
pub trait View {
    /// Takes the next event and appends what is to be shown now.
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>);

    /// A signal asked the command to end, and with it the whole pipeline: the other commands may
    /// write on the same terminal from now on. Returns whether something that is shown still runs,
    /// so that the rest of the input is worth reading.
    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        let _ = out;
        false
    }

    /// Handles the end of the input, and appends what is left to show.
    fn finish(&mut self, out: &mut Vec<u8>);
}

/// A sink that keeps the lines that a pipe would get, without line feeds. For tests and for running
/// machines inside a process.
#[derive(Debug, Default)]
pub struct Collect {
    /// The lines that were written so far.
    pub lines: Vec<String>,
    line: String,
    stream: Option<String>,
    t: Option<String>,
}

impl Collect {
    /// Runs one machine over `lines`, which are one stream, and returns its output. Lines that are
    /// not events pass.
    pub fn run<S: AsRef<str>>(
        machine: &mut dyn Machine,
        lines: impl IntoIterator<Item = S>,
    ) -> Vec<String> {
        let mut out = Collect::default();
        let mut scanner = Scanner::default();
        let mut ended = false;
        for line in lines {
            let line = line.as_ref();
            out.line = line.to_owned();
            match scanner.read(line) {
                Ok(event) => {
                    out.stream = event.stream().map(|s| s.text().to_owned());
                    out.t = event.t().map(|t| t.text().to_owned());
                    ended |= event.kind() == Kind::StreamEnd;
                    machine.push(&event, &mut out);
                }
                Err(_) => out.pass(),
            }
        }
        if !ended {
            out.t = None;
            machine.finish(&mut out);
        }
        out.lines
    }
}

impl Sink for Collect {
    fn pass(&mut self) {
        self.lines.push(self.line.clone());
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        let mut out = Vec::new();
        payload::line(
            &mut out,
            payload,
            self.stream.as_deref(),
            choice,
            self.t.as_deref(),
        );
        self.lines.push(String::from_utf8_lossy(&out).into_owned());
    }
}
