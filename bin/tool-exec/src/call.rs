//! A call while it runs, however its tool is run: what ends it, what it reports, and who runs it.

mod handle;
mod progress_mark;
mod report;
mod runners;

pub use handle::Handle;
pub use progress_mark::ProgressMark;
pub use report::{Progress, Report, Step, Waiting};
pub use runners::Runners;
