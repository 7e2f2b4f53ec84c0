//! What was measured on one stream.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The answer of a checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The stream calls no tool.
    No,
    /// The stream calls a tool.
    Yes,
    /// The checker gave no answer: the stream failed first, or the checker itself did.
    Undecided,
}

impl Answer {
    /// Its name in messages, in JSON and in baselines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::Undecided => "undecided",
        }
    }
}

/// A place in a stream, counted from its beginning up to and with the event there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Place {
    /// Events of the stream.
    pub events: u64,
    /// Characters (Unicode scalar values) of the answer's text, refusals included and reasoning
    /// not.
    pub chars: u64,
    /// The same text in bytes of UTF-8.
    pub bytes: u64,
    /// Recorded time in milliseconds; `None` where the recording has no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
}

/// What one checker did on one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The first answer, on which a pipeline acts. All scores count this one.
    pub answer: Answer,
    /// The answer after all events, which differs where a decision was `revised`.
    pub last: Answer,
    /// Where the first answer was given; `None` where a checker outside of this process does not
    /// tell.
    pub at: Option<Place>,
    /// Why, in the checker's words.
    pub reason: String,
    /// Whether the answer differed when the stream was split elsewhere (`--resplit`).
    pub depends_on_split: bool,
}

/// How the calls that were read compare with those of the label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls of the label.
    pub expected: u64,
    /// Calls that were read.
    pub read: u64,
    /// Calls that are in both, with equal names and equal typed arguments, whatever their order.
    pub exact: u64,
    /// Whether both lists are equal, in order.
    pub is_in_order: bool,
    /// Calls whose arguments were repaired.
    pub repaired: u64,
    /// Calls that were cut.
    pub incomplete: u64,
}

/// One stream, and what each checker did on it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The `id` of its label.
    pub id: Arc<str>,
    /// The index file that names it, as the user typed it.
    pub corpus: Arc<str>,
    /// The source of the label, by which intervals are clustered; the id where the label has no
    /// source.
    pub source: Arc<str>,
    /// The groups that reports are split by: API, provider and model (empty where unknown).
    pub api: Arc<str>,
    /// See `api`.
    pub provider: Arc<str>,
    /// See `api`.
    pub model: Arc<str>,
    /// The tags of the label.
    pub tags: BTreeSet<Arc<str>>,
    /// Whether it calls a tool, by the label.
    pub has_tool_call: bool,
    /// The whole stream.
    pub end: Place,
    /// The first event of a call: the earliest place at which a yes could be given.
    pub first_call: Option<Place>,
    /// Its calls.
    pub calls: CallCounts,
    /// Recorded milliseconds between the place at which a tool could start (its call was complete)
    /// and the end of the stream, for the first such call; `None` without such a call or without
    /// times.
    pub saved_ms: Option<f64>,
    /// One outcome for each checker, in the order in which the user named them.
    pub outcomes: Vec<Outcome>,
}
