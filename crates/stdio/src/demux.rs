//! Many streams on one pipe: a machine for each.

use event::{Event, Kind, Machine, Sink};
use std::collections::HashMap;

/// Hands each event to the machine of its stream, and makes and ends the machines.
///
/// A stream begins with `stream_start`, or with the first event that belongs to a model's turn; it
/// ends with `stream_end`, or when another begins under the same name. Events between streams
/// (messages, results, statistics) pass.
pub struct Demux<M> {
    make: Box<dyn FnMut(&Event<'_>) -> M>,
    unnamed: Option<M>,
    named: HashMap<Box<str>, M>,
    events: u64,
}

impl<M> std::fmt::Debug for Demux<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Demux")
            .field(
                "open",
                &(self.named.len() + usize::from(self.unnamed.is_some())),
            )
            .finish()
    }
}

impl<M: Machine> Demux<M> {
    /// `make` builds the machine of a stream from its first event.
    pub fn new(make: impl FnMut(&Event<'_>) -> M + 'static) -> Self {
        Demux {
            make: Box::new(make),
            unnamed: None,
            named: HashMap::new(),
            events: 0,
        }
    }

    /// How many events were read, of streams and between them.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How many bytes all machines keep.
    pub fn kept(&self) -> usize {
        let open = self.named.values().chain(&self.unnamed);
        open.map(Machine::kept).sum()
    }

    /// Takes the next event of any stream. Returns whether its machine is settled.
    #[inline(always)]
    pub fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) -> bool {
        self.events += 1;
        let kind = event.kind();
        let name = event.stream().map(|s| s.text());
        if kind == Kind::StreamStart
            && let Some(mut cut) = self.take(name)
        {
            cut.finish(out);
        }
        let machine = match name {
            None => self.unnamed.as_mut(),
            Some(name) => self.named.get_mut(name),
        };
        let machine = match machine {
            Some(machine) => machine,
            None if kind.begins_stream() => {
                let machine = (self.make)(event);
                match name {
                    None => self.unnamed.insert(machine),
                    Some(name) => self.named.entry(name.into()).or_insert(machine),
                }
            }
            None => {
                out.pass();
                return false;
            }
        };
        machine.push(event, out);
        let settled = machine.settled();
        if kind == Kind::StreamEnd {
            self.take(name);
        }
        settled
    }

    /// Removes and returns every machine that is still open at the end of the input, with the name
    /// of its stream as JSON.
    pub fn drain(&mut self) -> impl Iterator<Item = (Option<Box<str>>, M)> + use<M> {
        let mut named: Vec<_> = self.named.drain().collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        self.unnamed
            .take()
            .map(|m| (None, m))
            .into_iter()
            .chain(named.into_iter().map(|(name, m)| (Some(name), m)))
    }

    fn take(&mut self, name: Option<&str>) -> Option<M> {
        match name {
            None => self.unnamed.take(),
            Some(name) => self.named.remove(name),
        }
    }
}
