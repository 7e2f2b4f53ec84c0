//! Checkers: does this stream call a tool?
//!
//! What it is: the [`Checker`] trait, one file for each checker, their one table ([`CHECKERS`]),
//! and [`Detect`], the machine of `tc-detect` that asks a checker for each choice of a stream. What
//! it is not: it starts nothing; the checker `cmd:` is an adapter in `bin/tc-detect` behind the
//! same trait.
//!
//! Invariant: a decision is written before the event that decided it, so no later than the event
//! after which no continuation could change it.

mod answers;
pub mod auto;
mod checker;
mod checkers;
mod head;
mod machine;
mod remembered;
mod settings;
mod text_calls;

pub use answers::{Answers, StreamAnswer};
pub use checker::{CallFilter, Checker, CheckerRow, Checkers, Factory, StreamEnding, Verdict};
pub use checkers::{CHECKERS, checkers, checkers_with};
pub use machine::Detect;
pub use settings::{Risk, RiskError, Settings};
