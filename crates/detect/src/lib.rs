//! Checkers, which decide whether a stream calls a tool.
//!
//! The crate contains the [`Checker`] trait, one file per checker, the table of all checkers
//! ([`CHECKERS`]), and [`Detect`], the state machine of `tc-detect`, which runs a checker for each
//! choice of a stream. It starts no processes: the checker `cmd:` is an adapter in `bin/tc-detect`
//! that implements the same trait.
//!
//! Invariant: a decision is written before the event that caused it, so at the latest before the
//! event after which no continuation could change it.

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
