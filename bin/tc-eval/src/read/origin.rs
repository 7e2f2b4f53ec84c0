//! Where the events of a recording come from.

use event::Event;

/// Where an event came from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Origin {
    /// Which stream of the file it belongs to, from 1 on. 0 for an event of a log that lies between
    /// streams, such as a result.
    pub part: u64,
    /// The bytes of the file that had been read when the event was known: its frame ends there, or
    /// its line of a log or a tape.
    pub offset: u64,
    /// Recorded milliseconds: of a tape since the request, of a log since the beginning of the
    /// stream (its field `t`). `None` where the recording has no times.
    pub ms: Option<f64>,
}

/// Takes the events of a recording.
pub(super) type Take<'t> = dyn FnMut(&Event<'_>, Origin) + 't;
