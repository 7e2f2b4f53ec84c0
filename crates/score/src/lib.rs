//! Scores how well checkers decide whether a stream calls a tool.
//!
//! The crate contains the labels of a corpus ([`Label`]), the measurements of one stream
//! ([`Measured`]), the counts that sum up many measurements, the statistics of the counts, and the
//! report formats. It reads no files and runs no checkers; `bin/tc-eval` does both.

#[macro_use]
mod add_up;
mod baseline;
mod clusters;
pub mod command_line;
mod counts;
pub mod difference;
pub mod forms;
mod group;
mod histogram;
mod label;
pub mod mcnemar;
mod measured;
mod metrics;
mod partial;
mod report;
mod requirement;
mod statistics;
mod tally;
mod verdict;
mod visible;
mod wrong;

pub use baseline::{
    AnswerChange, BASELINE_FORMAT, BaselineEnd, BaselineHeader, BaselineName, BaselineOutcome,
    BaselineReport, BaselineStream, CheckerChange, Comparison,
};
pub use group::Dimension;
pub use histogram::Ranges;
pub use label::{Label, LabelledCall};
pub use measured::{Answer, CallCounts, Measured, Outcome, Place};
pub use metrics::{MetricValue, Metrics};
pub use partial::{Merger, PARTIAL_FORMAT, Partial, PartialError};
pub use report::{CheckerReport, Confusion, GroupChecker, GroupReport, Report};
pub use requirement::{Requirement, RequirementError, names as metric_names};
pub use statistics::Interval;
pub use tally::{MergeError, SHOWN, Tally};
pub use verdict::RequirementVerdict;
pub use visible::{visible, visible_ends};
pub use wrong::WrongStream;
