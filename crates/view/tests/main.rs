//! The tests of this package, one program: each file is a module. A new file needs a line here.

mod events;
mod markdown;
mod metrics;
mod reports;
mod same_calls;
mod stories;
