//! The two ends of the pipe, and the signals, beside child processes; the rules of lines and
//! flushing are those of `stdio`.

pub mod ahead;
mod cancels;
pub mod clock;
mod output;
mod signals;

pub use cancels::Cancels;
pub use output::Writer;
pub use signals::Signals;
