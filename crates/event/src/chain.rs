//! The lifetime of a stream: the event that starts it and the event that ends it. Covers
//! consecutive streams ([`OpenMachine`]), interleaved streams ([`Demux`]), and two machines
//! connected as in a pipe of two commands ([`Chain`]).

use crate::{Event, Kind, Machine, Payload, Raw, Sink, Streams};

/// The machine of one stream while that stream is open.
///
/// A stream starts with `stream_start`, or with the first event that belongs to a model's turn. It
/// ends with `stream_end`, or when another stream starts. Events between streams (messages,
/// results, statistics) are forwarded.
#[derive(Debug)]
pub struct OpenMachine<M>(Option<M>);

impl<M> Default for OpenMachine<M> {
    fn default() -> Self {
        OpenMachine(None)
    }
}

impl<M: Machine> OpenMachine<M> {
    /// Takes the next event; `make` builds the machine of a stream from its first event. Returns
    /// whether the machine is settled.
    #[inline(always)]
    pub fn push(
        &mut self,
        event: &Event<'_>,
        make: impl FnOnce(&Event<'_>) -> M,
        out: &mut dyn Sink,
    ) -> bool {
        let kind = event.kind();
        if kind == Kind::StreamStart {
            self.finish(out);
        }
        if self.0.is_none() && !kind.begins_stream() {
            out.pass();
            return false;
        }
        let machine = self.0.get_or_insert_with(|| make(event));
        machine.push(event, out);
        let is_settled = machine.settled();
        if kind == Kind::StreamEnd {
            self.0 = None;
        }
        is_settled
    }

    /// Handles a stream that ends without a `stream_end`: the input ended, or another stream
    /// starts.
    pub fn finish(&mut self, out: &mut dyn Sink) {
        if let Some(mut machine) = self.0.take() {
            machine.finish(out);
        }
    }
}

/// All streams of one pipe. Hands each event to the machine of its stream, see [`OpenMachine`].
pub struct Demux<M> {
    make: Box<dyn FnMut(&Event<'_>) -> M>,
    streams: Streams<OpenMachine<M>>,
    events: u64,
}

impl<M> std::fmt::Debug for Demux<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Demux")
            .field("streams", &self.streams.len())
            .finish_non_exhaustive()
    }
}

impl<M: Machine> Demux<M> {
    /// Returns a demultiplexer without open streams. `make` builds the machine of a stream from its
    /// first event.
    pub fn new(make: impl FnMut(&Event<'_>) -> M + 'static) -> Self {
        Demux {
            make: Box::new(make),
            streams: Streams::default(),
            events: 0,
        }
    }

    /// Returns the number of events read so far, including events between streams.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Takes the next event of any stream. Returns whether its machine is settled.
    #[inline(always)]
    pub fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) -> bool {
        self.events += 1;
        let name = event.stream().map_or("", Raw::text);
        let open = match self.streams.get_mut(name) {
            Some(open) => open,
            None if event.kind().begins_stream() => self.streams.of(name),
            None => {
                out.pass();
                return false;
            }
        };
        let is_settled = open.push(event, &mut self.make, out);
        if event.kind() == Kind::StreamEnd {
            self.streams.remove(name);
        }
        is_settled
    }

    /// Removes and returns the machines that are still open at the end of the input, each with the
    /// name of its stream as JSON (`None` for the unnamed stream).
    pub fn drain(&mut self) -> impl Iterator<Item = (Option<Box<str>>, M)> + use<M> {
        let named = |name: Box<str>| (!name.is_empty()).then_some(name);
        let open = self.streams.drain();
        open.filter_map(move |(name, open)| Some((named(name), open.0?)))
    }
}

/// Two machines in sequence: the second one receives the events that the first one forwards and
/// emits. No JSON is written or parsed between them.
#[derive(Debug)]
pub struct Chain<A, B, F> {
    first: A,
    second: Second<B, F>,
    /// The name of the stream, as JSON; `None` if the stream is unnamed or has not started.
    stream: Option<Box<str>>,
}

/// The second machine, which exists while the stream that it receives is open.
#[derive(Debug)]
struct Second<B, F> {
    open: OpenMachine<B>,
    /// Makes the machine from the first event of its stream.
    make: F,
    is_settled: bool,
}

impl<A: Machine, B: Machine, F: FnMut(&Event<'_>) -> B> Chain<A, B, F> {
    /// Returns a chain of `first` and the machine that `make` builds from the first event that
    /// reaches it. The chain handles the events of one stream.
    pub fn new(first: A, make: F) -> Self {
        Chain {
            first,
            second: Second {
                open: OpenMachine::default(),
                make,
                is_settled: false,
            },
            stream: None,
        }
    }
}

impl<A: Machine, B: Machine, F: FnMut(&Event<'_>) -> B> Machine for Chain<A, B, F> {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        if self.stream.is_none() {
            self.stream = event.stream().map(|name| name.text().into());
        }
        let mut link = ChainLink {
            second: &mut self.second,
            event: Some(event),
            stream: event.stream(),
            t: event.t(),
            out,
        };
        self.first.push(event, &mut link);
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        let mut link = ChainLink {
            second: &mut self.second,
            event: None,
            stream: self
                .stream
                .as_deref()
                .and_then(|name| Raw::parse(name).ok()),
            t: None,
            out,
        };
        self.first.finish(&mut link);
        self.second.open.finish(out);
    }

    fn settled(&self) -> bool {
        self.second.is_settled
    }
}

impl<B: Machine, F: FnMut(&Event<'_>) -> B> Second<B, F> {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        self.is_settled = self.open.push(event, &mut self.make, out);
    }
}

/// The sink of the first machine.
struct ChainLink<'l, B, F> {
    second: &'l mut Second<B, F>,
    /// The current event; `None` at the end of the input.
    event: Option<&'l Event<'l>>,
    stream: Option<Raw<'l>>,
    t: Option<Raw<'l>>,
    out: &'l mut dyn Sink,
}

impl<B: Machine, F: FnMut(&Event<'_>) -> B> Sink for ChainLink<'_, B, F> {
    fn pass(&mut self) {
        if let Some(event) = self.event {
            self.second.push(event, self.out);
        }
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        let event = Event::of(payload, self.stream, choice, self.t);
        let mut written = Written {
            choice,
            payload,
            out: self.out,
        };
        self.second.push(&event, &mut written);
    }

    fn lost(&self) -> bool {
        self.out.lost()
    }

    fn too_long(&mut self, kind: Kind, length: usize) {
        self.out.too_long(kind, length);
    }
}

/// The sink of the second machine while it handles an event that the first one emitted. The event
/// has no input line, so forwarding it means writing it.
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
