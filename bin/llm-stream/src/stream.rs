//! From the bytes of a response to events, until it ends or something outside ends it.

mod lost;
mod response;
mod watch;

pub use lost::{end, sentence};
pub use response::{Pulse, ResponseEnd, write_events};
pub use watch::{Interrupt, Watch, runtime};
