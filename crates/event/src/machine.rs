//! The traits that every command is built from: a machine and its sink, and a view.

use crate::{Event, Kind, Payload, Scanner, payload};

/// Receives the output of a machine. The driver that implements it has the current line, with its
/// stream and its time.
pub trait Sink {
    /// Forwards the current line byte for byte. A machine calls this at most once per event; if it
    /// does not, the line is dropped.
    fn pass(&mut self);

    /// Writes a new event. Calls to this method and to [`Sink::pass`] keep their order. The event
    /// gets the `stream` and the `t` of the current line, and `choice` unless that is 0.
    fn write(&mut self, choice: u32, payload: &Payload<'_>);

    /// Whether an event written for the current line was replaced by an `error`, because it
    /// exceeded the maximum length of a line.
    fn lost(&self) -> bool {
        false
    }

    /// Reports that an event of this kind would exceed the maximum length of a line, so that the
    /// machine has freed its buffers. `length` is the event's length in bytes, or a lower bound. A
    /// driver writes the same `error` as for an event that is too long in [`Sink::write`].
    fn too_long(&mut self, kind: Kind, length: usize) {
        let _ = (kind, length);
    }
}

/// The output of a machine, as a [`SinkOf`] receives it.
#[derive(Clone, Copy, Debug)]
pub enum Emitted<'p> {
    /// The current event, unchanged.
    Passed,
    /// A new event for this choice.
    Written(u32, &'p Payload<'p>),
}

/// A sink that calls a closure.
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

/// A filter without files, clock or threads: it takes events and emits events. One machine handles
/// one stream with all its choices.
pub trait Machine {
    /// Takes the next event of the machine's stream. A `stream_end` is the last event.
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink);

    /// Handles the end of a stream without a `stream_end`, because the input ended or another
    /// stream started. Open calls and texts are truncated.
    fn finish(&mut self, out: &mut dyn Sink);

    /// Whether the answer is final because no later event can change it. A driver that only needs
    /// the answer can then stop reading.
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
/// [`Machine`] it does no IO; unlike a machine, one view handles all streams.
pub trait View {
    /// Takes the next event and appends the output that is due now.
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>);

    /// Handles a signal that asks the command, and with it the whole pipeline, to stop. From now on
    /// the other commands may write to the same terminal. Returns whether some displayed item is
    /// still running, so that the rest of the input is worth reading.
    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        let _ = out;
        false
    }

    /// Handles the end of the input, and appends the remaining output.
    fn finish(&mut self, out: &mut Vec<u8>);

    /// Whether the output shows warnings and errors. If not, it is a bare result, and the command
    /// reports them on standard error.
    fn shows_notices(&self) -> bool {
        true
    }
}

/// A sink that collects the lines that a pipe would receive, without line feeds. Used by tests, and
/// to run machines inside a process.
#[derive(Debug, Default)]
pub struct Collect {
    /// The lines written so far.
    pub lines: Vec<String>,
    line: String,
    stream: Option<String>,
    t: Option<String>,
}

impl Collect {
    /// Runs one machine over `lines`, which form one stream, and returns its output. Lines that are
    /// not events are forwarded.
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
