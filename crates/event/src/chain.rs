//! Two machines one after the other in one process, as a pipe of two commands would run them.

use crate::{Event, Kind, Machine, Payload, Raw, Sink};

/// Two machines: the second one sees the events that the first one passes and emits. No JSON is
/// written or read between them.
#[derive(Debug)]
pub struct Chain<A, B, F> {
    first: A,
    /// Makes the second machine from the first event of its stream.
    make: F,
    second: Option<B>,
    /// The name of the stream, as JSON.
    stream: Option<Box<str>>,
    settled: bool,
}

impl<A: Machine, B: Machine, F: FnMut(&Event<'_>) -> B> Chain<A, B, F> {
    /// A chain of `first` and of the machine that `make` builds from the first event that reaches
    /// it. Takes the events of one stream.
    pub fn new(first: A, make: F) -> Self {
        Chain {
            first,
            make,
            second: None,
            stream: None,
            settled: false,
        }
    }
}

impl<A: Machine, B: Machine, F: FnMut(&Event<'_>) -> B> Machine for Chain<A, B, F> {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        if self.stream.is_none() {
            self.stream = event.stream().map(|name| name.text().into());
        }
        let second = Second {
            machine: &mut self.second,
            make: &mut self.make,
            settled: &mut self.settled,
        };
        let mut link = Link {
            second,
            event: Some(event),
            stream: event.stream(),
            t: event.t(),
            out,
        };
        self.first.push(event, &mut link);
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        let stream = self
            .stream
            .as_deref()
            .and_then(|name| Raw::parse(name).ok());
        let second = Second {
            machine: &mut self.second,
            make: &mut self.make,
            settled: &mut self.settled,
        };
        let mut link = Link {
            second,
            event: None,
            stream,
            t: None,
            out,
        };
        self.first.finish(&mut link);
        if let Some(mut second) = self.second.take() {
            second.finish(out);
        }
    }

    fn settled(&self) -> bool {
        self.settled
    }

    fn kept(&self) -> usize {
        self.first.kept() + self.second.as_ref().map_or(0, Machine::kept)
    }
}

/// The second machine, which lives as long as the stream that it sees.
struct Second<'s, B, F> {
    machine: &'s mut Option<B>,
    make: &'s mut F,
    settled: &'s mut bool,
}

impl<B: Machine, F: FnMut(&Event<'_>) -> B> Second<'_, B, F> {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        if event.kind() == Kind::StreamStart
            && let Some(mut cut) = self.machine.take()
        {
            cut.finish(out);
        }
        if self.machine.is_none() && !event.kind().begins_stream() {
            return out.pass();
        }
        let machine = self.machine.get_or_insert_with(|| (self.make)(event));
        machine.push(event, out);
        *self.settled = machine.settled();
        if event.kind() == Kind::StreamEnd {
            *self.machine = None;
        }
    }
}

/// The sink that the first machine sees.
struct Link<'l, B, F> {
    second: Second<'l, B, F>,
    /// The event at hand; `None` at the end of the input.
    event: Option<&'l Event<'l>>,
    stream: Option<Raw<'l>>,
    t: Option<Raw<'l>>,
    out: &'l mut dyn Sink,
}

impl<B: Machine, F: FnMut(&Event<'_>) -> B> Sink for Link<'_, B, F> {
    fn pass(&mut self) {
        if let Some(event) = self.event {
            self.second.push(event, self.out);
        }
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        let event = Event::of(payload, self.stream, choice, self.t);
        self.second.push(
            &event,
            &mut Written {
                choice,
                payload,
                out: self.out,
            },
        );
    }

    fn lost(&self) -> bool {
        self.out.lost()
    }

    fn too_long(&mut self, kind: Kind, length: usize) {
        self.out.too_long(kind, length);
    }
}

/// The sink that the second machine sees while it takes an event that the first one emitted. No
/// line holds that event, so passing it means writing it.
struct Written<'w> {
    choice: u32,
    payload: &'w Payload<'w>,
    out: &'w mut dyn Sink,
}

impl Sink for Written<'_> {
    fn pass(&mut self) {
        self.out.write(self.choice, self.payload);
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.out.write(choice, payload);
    }

    fn lost(&self) -> bool {
        self.out.lost()
    }

    fn too_long(&mut self, kind: Kind, length: usize) {
        self.out.too_long(kind, length);
    }
}
