//! What outlives a run: results in the cache, intents and results in the journal.

mod cache;
mod journal;

pub use cache::Cache;
pub use journal::Journal;
