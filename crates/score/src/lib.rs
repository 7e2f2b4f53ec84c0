//! How good a checker is.
//!
//! What it is: the labels of a corpus ([`Label`]), what was measured on one stream ([`Measured`]), the counts that many of these
//! add up to, the statistics of the counts, and the forms of a report. What it is not: it reads no file and runs no checker;
//! `bin/tc-eval` does both.

mod baseline;
pub mod command_line;
pub mod difference;
mod label;
pub mod mcnemar;
mod measured;
pub mod plot;
mod visible;

pub use baseline::{
    AnswerChange, BASELINE_FORMAT, BaselineEnd, BaselineHeader, BaselineOutcome, BaselineReport, BaselineStream,
    CheckerChange, Comparison, StreamName,
};
pub use label::{Label, LabelledCall};
pub use measured::{Answer, CallCounts, Measured, Outcome, Place};
pub use visible::visible;
