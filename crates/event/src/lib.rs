//! The wire format of toolpipe: newline-delimited JSON events, read by borrowing and written without a tree.
//!
//! What it is: [`Scanner`] turns one line into an [`Event`] that points into that line, [`Raw`] walks a JSON value
//! without copying it, the structs of [`payload`] are the fields of each event kind, and [`Sink`] and [`Machine`] are
//! the two traits that every filter is made of ([`View`] is their like for text). What it is not: it opens nothing, prints nothing and keeps no stream
//! state. The format itself is described in `docs/protocol.md`.

mod chain;
mod choices;
mod event;
mod glob;
mod hidden;
mod index;
mod kind;
mod line;
mod machine;
pub mod payload;
mod raw;
mod scan;
mod slot;
mod surrogates;
mod text;
pub mod unit;
mod write;

pub use chain::Chain;
pub use choices::Choices;
pub use event::Event;
pub use glob::Glob;
pub use hidden::{escaped, is_hidden, safe_json};
pub use index::Index;
pub use kind::Kind;
pub use line::Scanner;
pub use machine::{Collect, Machine, Sink, View};
pub use payload::Payload;
pub use raw::Raw;
pub use scan::{MAX_DEPTH, ScanError, plain, space};
pub use surrogates::Surrogates;
pub use text::{Json, Text, WriteJson};
pub use write::{Array, Object, cut, minify, push_string, quoted};
