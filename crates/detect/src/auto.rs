//! What the checker `auto` knows of texts and models: how likely a call still is, from what has
//! come so far.
//!
//! `words.rs` has the words by which models announce a call, `signs.rs` reads a text for them
//! (`sign.rs` is how strong each is), `origin.rs` is what the start of a stream shows of its model
//! and tools, `table.rs` holds the learned counts, `limits.rs` turns these into the places at which
//! the risk falls under a limit, `texts.rs` reads a text for calls, and `observer.rs` counts one
//! more stream. `docs/evaluation.md` explains the model.

mod limits;
mod observation;
mod observer;
mod origin;
mod sign;
mod signs;
mod table;
mod texts;
mod words;

pub(crate) use limits::Limits;
pub use observation::Observation;
pub use observer::Observer;
pub(crate) use origin::Origin;
pub(crate) use sign::Sign;
pub(crate) use signs::Signs;
pub use table::{Table, TableError};
pub(crate) use texts::Texts;
