//! The wire format of toolpipe: newline-delimited JSON events, read by borrowing and written
//! without a tree.
//!
//! [`Scanner`] reads one line into an [`Event`] that borrows from the line; [`Raw`] walks a JSON
//! value without copying it. The structs of [`payload`] hold the fields of each event kind, and
//! [`Payload`] is an enum of these structs. A filter is a [`Machine`], which takes events and
//! writes payloads to a [`Sink`]; [`Demux`] has a machine for each stream of a pipe, and [`Chain`]
//! puts two machines one after the other; a [`View`] turns events into text. This crate opens and
//! prints nothing. `docs/protocol.md` describes the format.

mod chain;
mod choices;
mod encoder;
mod event;
mod glob;
mod hidden;
mod index;
mod line;
mod machine;
mod meter;
pub mod payload;
mod raw;
mod scan;
mod shell;
mod slot;
mod streams;
mod surrogates;
mod template;
mod text;
pub mod unit;
pub mod url;
mod write;

pub use chain::{Chain, Demux, OpenMachine};
pub use choices::Choices;
pub use encoder::Encoder;
pub use event::Event;
pub use glob::Glob;
pub use hidden::{escaped, is_hidden, safe_json};
pub use index::Index;
pub use line::Scanner;
pub use machine::{Collect, Emitted, Machine, Sink, SinkOf, View};
pub use meter::Meter;
pub use payload::{Kind, Payload};
pub use raw::Raw;
pub use scan::{MAX_DEPTH, Record, ScanError, plain, space};
pub use shell::shell_word;
pub use streams::Streams;
pub use surrogates::Surrogates;
pub use text::{Json, Text, WriteJson};
pub use write::{Array, Object, cut, minify, minify_recorded, object, push_string, quoted};
