//! What outlives a run: results in the cache, whole outputs in the spill folder, `tool_use` events
//! and results in the log and the journal.

mod cache;
mod files;
mod folder;
mod outputs;
mod records;

pub use cache::Cache;
pub use files::{Locks, lines};
pub use outputs::{Outputs, Spill};
pub use records::{CallLog, Records};
