//! The traits that every command is made of: a machine and its sink, and a view.

use crate::{Event, Payload, Scanner, payload};

/// Where a machine puts what it has to say. The driver behind it knows the line at hand, its stream and its time.
pub trait Sink {
    /// Passes the line at hand on as it came. Called at most once for an event; a machine that does not call it takes the line out.
    fn pass(&mut self);

    /// Writes a new event, before or after [`Sink::pass`] as the order of the calls says. It gets the `stream` and the `t` of
    /// the line at hand, and `choice` if it is not 0.
    fn write(&mut self, choice: u32, payload: &Payload<'_>);

    /// Whether something that was written since the line at hand came is lost: it was longer than a line may be, and an `error`
    /// stands in its place.
    fn lost(&self) -> bool {
        false
    }

    /// Writes a line of JSON that is no event, for machines whose answer is a document of another shape.
    fn line(&mut self, json: &str);
}

impl<'s> dyn Sink + 's {
    /// [`Sink::write`] for the payload of any kind.
    #[inline]
    pub fn emit<'p>(&mut self, choice: u32, payload: impl Into<Payload<'p>>) {
        self.write(choice, &payload.into());
    }
}

/// A filter without a handle, a clock or a thread: events in, events out. One machine sees one stream, all choices of it.
pub trait Machine {
    /// Takes the next event of its stream. After `stream_end` nothing more comes.
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink);

    /// The input ended, or another stream began, without a `stream_end`: whatever is open was cut.
    fn finish(&mut self, out: &mut dyn Sink);

    /// Whether the answer is known and nothing that follows can matter, so that a driver that only wants it may stop reading.
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

/// Events to bytes that are no events: text for people, or one answer. Sans-IO as a [`Machine`] is; one view sees all streams.
pub trait View {
    /// Takes the next event and appends what is to be shown now.
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>);

    /// The command was asked to end, as was every other one of its pipe: from now on they may write on the same terminal. Returns
    /// whether something that is shown still runs, so that the input is worth reading to its end.
    fn interrupt(&mut self, out: &mut Vec<u8>) -> bool {
        let _ = out;
        false
    }

    /// The input ended: appends what is left to show.
    fn finish(&mut self, out: &mut Vec<u8>);
}

/// A sink in memory: the lines that a pipe would get, without line feeds. For tests and for running machines inside a process.
#[derive(Debug, Default)]
pub struct Collect {
    /// What came out so far.
    pub lines: Vec<String>,
    line: String,
    stream: Option<String>,
    t: Option<String>,
}

impl Collect {
    /// Runs one machine over `lines` as one stream and gives what it wrote. Lines that are no events pass.
    pub fn run<S: AsRef<str>>(machine: &mut dyn Machine, lines: impl IntoIterator<Item = S>) -> Vec<String> {
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
                    ended |= event.kind() == crate::Kind::StreamEnd;
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
        payload::line(&mut out, payload, self.stream.as_deref(), choice, self.t.as_deref());
        self.lines.push(String::from_utf8_lossy(&out).into_owned());
    }

    fn line(&mut self, json: &str) {
        self.lines.push(json.to_owned());
    }
}
