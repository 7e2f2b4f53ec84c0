//! Checkers: does this stream call a tool?
//!
//! What it is: the [`Checker`] trait, one file for each checker, their one table ([`CHECKERS`]),
//! and [`Detect`], the machine of `tc-detect` that asks a checker for each choice of a stream. What
//! it is not: it starts nothing; the checker `cmd:` is an adapter in `bin/tc-detect` behind the
//! same trait.
//!
//! Invariant: a decision is written before the event that decided it, so no later than the event
//! after which no continuation could change it.

pub mod auto;
mod checker;
mod checkers;
mod machine;
mod text_calls;

pub use checker::{
    CallFilter, Checker, CheckerRow, CheckerSettings, Checkers, Factory, Risk, RiskError,
    StreamEnding, Verdict,
};
pub use checkers::{CHECKERS, checkers, checkers_with};
pub use machine::{CheckerAnswers, Detect, StreamAnswer};
