//! State that outlives a run: results in the cache, whole outputs in the spill folder, `tool_use`
//! events and results in the log and the journal.

mod cache;
mod outputs;
mod records;

pub(crate) use ::store::lines;
pub(crate) use cache::Cache;
pub(crate) use outputs::{Outputs, Spill};
pub(crate) use records::{CallLog, Records, look, look_at};
