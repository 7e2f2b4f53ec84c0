//! The measurements of one stream.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The answer of a checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The stream does not call a tool.
    No,
    /// The stream calls a tool.
    Yes,
    /// The checker gave no answer, because the stream or the checker itself failed first.
    Undecided,
}

impl Answer {
    /// Returns the name in messages, in JSON and in baselines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::Undecided => "undecided",
        }
    }
}

/// A place in a stream, counted from its start up to and including the event there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Place {
    /// The number of events of the stream.
    pub events: u64,
    /// The number of characters (Unicode scalar values) of the answer's text, including refusals
    /// but not reasoning.
    pub chars: u64,
    /// The number of bytes of the same text in UTF-8.
    pub bytes: u64,
    /// Recorded time in milliseconds; `None` if the recording has no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
}

/// The answers of one checker for one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The first answer, on which a pipeline acts. All scores use this answer.
    pub answer: Answer,
    /// The answer after all events, which differs if a decision was `revised`.
    pub last: Answer,
    /// The place of the first answer; `None` if an external checker does not report it.
    pub at: Option<Place>,
    /// The checker's reason.
    pub reason: String,
    /// Whether the answer differed when the text was split at other places (`--resplit`).
    pub depends_on_split: bool,
}

/// Compares the calls that were read with those of the label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// The number of calls in the label.
    pub expected: u64,
    /// The number of calls that were read.
    pub read: u64,
    /// The number of calls that are in both, with equal names and equal typed arguments, in any
    /// order.
    pub exact: u64,
    /// Whether both lists are equal, including their order.
    pub is_in_order: bool,
    /// The number of calls whose arguments were repaired.
    pub repaired: u64,
    /// The number of truncated calls.
    pub incomplete: u64,
}

/// The measurements of one stream, with the outcome of each checker.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The `id` of the label.
    pub id: Arc<str>,
    /// The path of the index file that lists the stream, as the user typed it.
    pub corpus: Arc<str>,
    /// The source of the label, by which intervals are clustered; the id if the label has no
    /// source.
    pub source: Arc<str>,
    /// The API, by which reports can be split, as by provider and model; empty if unknown.
    pub api: Arc<str>,
    /// The provider; empty if unknown.
    pub provider: Arc<str>,
    /// The model; empty if unknown.
    pub model: Arc<str>,
    /// The tags of the label.
    pub tags: BTreeSet<Arc<str>>,
    /// Whether the stream calls a tool, according to the label.
    pub has_tool_call: bool,
    /// The place of the end of the stream.
    pub end: Place,
    /// The place of the first event of a call, the earliest place at which a yes is possible;
    /// `None` if the stream has no call.
    pub first_call: Option<Place>,
    /// The counts of calls.
    pub calls: CallCounts,
    /// Recorded milliseconds from the place at which a tool could start, because its call was
    /// complete, to the end of the stream, for the first such call; `None` without such a call or
    /// without times.
    pub saved_ms: Option<f64>,
    /// One outcome per checker, in the order in which the user named them.
    pub outcomes: Vec<Outcome>,
}
