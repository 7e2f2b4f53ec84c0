//! Tools and what may run: the tools file, the rules for arguments, the plan (order and concurrency as a state machine), cache keys, and
//! results.
//!
//! Nothing here starts a process, opens a file or reads a clock. There is no shell, and no path is made of a model's words: the name of a
//! tool is looked up in a table, and an argument fills a place in a list.

mod argument;
mod argv;
mod cache;
mod call;
mod canonical;
mod class;
mod exec;
mod intake;
mod judge;
mod log;
mod plan;
mod refusal;
mod result;
mod retract;
mod schedule;
mod step;
mod tally;
mod tools;
mod turn;

pub use argument::Arguments;
pub use argv::Template;
pub use cache::key as cache_key;
pub use call::RequestedCall;
pub use canonical::{Hash, hex};
pub use class::Class;
pub use event::Glob;
pub use exec::{Exec, Limits};
pub use judge::{Judge, ReadyCall, Rules};
pub use log::Log;
pub use plan::Plan;
pub use refusal::{MAX_ITEM, Refusal};
pub use result::{Answer, Status, message, one_line, text};
pub use step::{Order, PlanStep, Settings};
pub use tally::Tally;
pub use tools::{FileError, Tool, Tools};
