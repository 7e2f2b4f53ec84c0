//! The trait [`Checker`], and the rules shared by all checkers for what counts as a call and as
//! text.

use crate::auto::AutoTable;
use event::payload::{ContentDelta, FinishReason, RefusalDelta, ToolCall, ToolCallDelta};
use event::{Event, Glob, Kind, Text};
use std::rc::Rc;
use std::str::FromStr;

/// The answer of a checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the stream calls a tool.
    pub tool_call: bool,
    /// The reason for the verdict, written for people.
    pub reason: String,
}

impl Verdict {
    /// Returns a verdict with its reason.
    pub fn new(tool_call: bool, reason: impl Into<String>) -> Self {
        Verdict {
            tool_call,
            reason: reason.into(),
        }
    }
}

/// How the stream that a checker reads ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnding {
    /// The stream ended with `stream_end`.
    Stream(FinishReason),
    /// The input ended, or another stream started, before a `stream_end`.
    Cut,
}

impl StreamEnding {
    /// Whether the stream failed. A failed stream without a call proves nothing: the call may have
    /// been in the part that was lost.
    pub fn is_failure(self) -> bool {
        match self {
            StreamEnding::Stream(reason) => reason.is_failure(),
            StreamEnding::Cut => true,
        }
    }
}

/// Decides whether one choice of one stream calls a tool. It receives every event of the choice, in
/// order, until it has decided.
pub trait Checker {
    /// Handles the next event. Returns the verdict as soon as an event settles it, and `None` until
    /// then.
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict>;

    /// Handles the end of the stream. Returns `None` if the checker cannot decide, because the
    /// stream failed too early or the checker itself failed.
    fn end(&mut self, ending: StreamEnding) -> Option<Verdict> {
        none(ending)
    }

    /// Whether the checker needs the events after a positive verdict, and the end of the stream. A
    /// checker that finds calls in text does, because later text can show that a match was not a
    /// call.
    fn reads_past_verdict(&self) -> bool {
        false
    }

    /// Whether the checker continues after a no, because a later call turns the no into a yes.
    fn revises_no(&self) -> bool {
        false
    }

    /// Returns `Some(true)` if every call that it found in text turned out not to be a call, and
    /// `Some(false)` if a call remains. Returns `None` if every call that it found was an event;
    /// only a `retract` withdraws those.
    fn overturned(&self) -> Option<bool> {
        None
    }
}

/// Creates a checker for each choice of a stream.
pub type Factory = Rc<dyn Fn() -> Box<dyn Checker>>;

/// Creates the factory of a stream from its first event, which may name the API, the model and the
/// tools. A single value serves all streams of a run, and caches what it builds for them.
pub type Checkers = Rc<dyn Fn(&Event<'_>) -> Factory>;

/// Returns the [`Checkers`] of a checker that does not depend on the first event of its stream.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a row of the table may reject its argument"
)]
pub(crate) fn alike<C: Checker + 'static>(make: impl Fn() -> C + 'static) -> Option<Checkers> {
    let factory: Factory = Rc::new(move || Box::new(make()));
    Some(Rc::new(move |_| Rc::clone(&factory)))
}

/// A row of the table of checkers.
#[derive(Clone, Copy, Debug)]
pub struct CheckerRow {
    /// The name that `--checker` takes; the part after the colon is a placeholder for the user's
    /// argument.
    pub name: &'static str,
    /// The help text that says how the checker decides.
    pub help: &'static str,
    /// Creates its checkers from the user's argument and settings; returns `None` if the argument
    /// is invalid.
    pub checkers: fn(CallFilter, &str, &CheckerSettings) -> Option<Checkers>,
}

/// Which calls count: all, or only those of tools whose name matches a pattern.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// The pattern of `--name`; `None` means that all calls count.
    pub name: Option<Glob>,
}

/// What an event means to a checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning<'a> {
    /// A call that counts.
    Call(String),
    /// A call of a tool that does not match the pattern.
    OtherCall,
    /// Text of at least one byte.
    Text(std::borrow::Cow<'a, str>),
    /// Neither a call nor text, or a call that cannot be judged before its name arrives.
    Nothing,
}

impl<'a> Meaning<'a> {
    fn of_text(text: Text<'a>) -> Self {
        if text.is_empty() {
            Meaning::Nothing
        } else {
            Meaning::Text(text.str())
        }
    }
}

impl CallFilter {
    /// Returns the meaning of an event.
    pub(crate) fn meaning<'a>(&self, event: &Event<'a>) -> Meaning<'a> {
        match event.kind() {
            Kind::ToolCallDelta | Kind::ToolCall => {
                let head = EventCallHead::read(event);
                let name = head.name.str();
                match &self.name {
                    _ if head.is_blank() => Meaning::Nothing,
                    // The name may arrive in a later delta.
                    Some(_) if name.is_empty() => Meaning::Nothing,
                    Some(pattern) if !pattern.matches(&name) => Meaning::OtherCall,
                    _ if name.is_empty() => Meaning::Call("a tool call".to_owned()),
                    _ => Meaning::Call(format!("a call of {name}")),
                }
            }
            // A refusal is a text answer.
            Kind::ContentDelta => Meaning::of_text(ContentDelta::read(event).text),
            Kind::RefusalDelta => Meaning::of_text(RefusalDelta::read(event).text),
            _ => Meaning::Nothing,
        }
    }
}

/// Returns the verdict for a stream that ended without a call; `None` if the stream failed, because
/// the call may be in the part that was lost.
pub(crate) fn none(ending: StreamEnding) -> Option<Verdict> {
    (!ending.is_failure()).then(|| Verdict::new(false, "the stream ended without a tool call"))
}

/// The fields by which a `tool_call_delta` or a `tool_call` names its call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventCallHead<'a> {
    pub index: Option<i64>,
    /// The id; `None` if it is empty.
    pub id: Option<Text<'a>>,
    pub name: Text<'a>,
    /// Whether the event has arguments. In a delta, empty arguments do not count.
    has_arguments: bool,
}

impl<'a> EventCallHead<'a> {
    /// Reads a `tool_call_delta` or a `tool_call`; for any other event all fields are empty.
    #[inline]
    pub(crate) fn read(event: &Event<'a>) -> Self {
        let (index, id, name, has_arguments) = if event.kind() == Kind::ToolCall {
            let call = ToolCall::read(event);
            (
                call.index,
                Some(call.tool_id),
                Some(call.tool_name),
                call.arguments.is_some(),
            )
        } else {
            let delta = ToolCallDelta::read(event);
            (
                delta.index,
                delta.tool_id,
                delta.tool_name,
                delta.arguments.is_some_and(|text| !text.is_empty()),
            )
        };
        EventCallHead {
            index,
            id: id.filter(|id| !id.is_empty()),
            name: name.unwrap_or_default(),
            has_arguments,
        }
    }

    /// Whether the event is not a call: a delta without an id, a name and arguments. Some servers
    /// send the word `null` as an id.
    pub(crate) fn is_blank(&self) -> bool {
        self.name.is_empty() && !self.has_arguments && self.id.is_none_or(|id| id == "null")
    }
}

/// The largest acceptable probability, from 0 to 1, that a no of `auto` is wrong.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Risk(f64);

/// 0.5 percent.
impl Default for Risk {
    fn default() -> Self {
        Risk(0.005)
    }
}

/// The error for a text that is not a valid risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a risk is a share from 0 to 1, or a percentage such as 0.5%")]
pub struct RiskError;

impl Risk {
    /// Returns the risk as a fraction from 0 to 1.
    pub fn share(self) -> f64 {
        self.0
    }
}

impl FromStr for Risk {
    type Err = RiskError;

    /// Parses a fraction such as `0.005` or a percentage such as `0.5%`.
    fn from_str(text: &str) -> Result<Self, RiskError> {
        let (number, unit) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text, 1.0),
        };
        let share = number.parse::<f64>().map_err(|_| RiskError)? / unit;
        (0.0..=1.0)
            .contains(&share)
            .then_some(Risk(share))
            .ok_or(RiskError)
    }
}

/// The settings of checkers; a checker ignores those that do not concern it.
#[derive(Clone, Debug, Default)]
pub struct CheckerSettings {
    /// The risk of `auto`.
    pub risk: Risk,
    /// The table of `auto`; `None` means the built-in one.
    pub table: Option<Rc<AutoTable>>,
}

impl CheckerSettings {
    /// Returns the table of `auto`.
    pub(crate) fn table(&self) -> Rc<AutoTable> {
        self.table
            .clone()
            .unwrap_or_else(|| Rc::new(AutoTable::built_in()))
    }
}
