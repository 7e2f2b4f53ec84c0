//! What outlives a run: results in the cache, whole outputs in the spill folder, intents and
//! results in the log and the journal.

mod appended;
mod cache;
mod file_id;
mod folder;
mod journal;
mod lines;
mod lock;
mod log;
mod outputs;
mod records;
mod spill;

pub use cache::Cache;
pub use lock::Locks;
pub use log::Log;
pub use outputs::{Outputs, Readable};
pub use records::Records;
pub use spill::Spill;
