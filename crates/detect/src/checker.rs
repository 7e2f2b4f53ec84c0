//! What a checker is, and what all of them mean by a call and by text.

use event::payload::{ContentDelta, FinishReason, RefusalDelta, ToolCall, ToolCallDelta};
use event::{Event, Glob, Kind, Text};
use std::rc::Rc;

/// The answer of a checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the stream calls a tool.
    pub tool_call: bool,
    /// Why, in a few words.
    pub reason: String,
}

impl Verdict {
    /// A verdict with its reason.
    pub fn new(tool_call: bool, reason: impl Into<String>) -> Self {
        Verdict { tool_call, reason: reason.into() }
    }
}

/// How the input of a checker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By `stream_end`.
    Stream(FinishReason),
    /// The input stopped before that.
    Cut,
}

impl End {
    /// Whether the stream failed, so that what did not come yet may still have been meant to come.
    pub fn is_failure(self) -> bool {
        match self {
            End::Stream(reason) => reason.is_failure(),
            End::Cut => true,
        }
    }
}

/// Decides about one choice of one stream. Sees every event of it, in order, until it has decided.
pub trait Checker {
    /// Takes the next event; gives the verdict with the first event that settles it.
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict>;

    /// Nothing more comes. `None`: the stream failed before this could be decided.
    fn end(&mut self, end: End) -> Option<Verdict>;

    /// Whether it finds calls that are no events, and so may find later that one was none: it then sees all further events
    /// after its yes too, and the end.
    fn follows(&self) -> bool {
        false
    }

    /// Whether all calls that it found itself turned out not to hold; `None` if it found none but those that events tell of.
    fn overturned(&self) -> Option<bool> {
        None
    }
}

/// Makes a checker for each choice of a stream.
pub type Factory = Rc<dyn Fn() -> Box<dyn Checker>>;

/// A row of the table of checkers.
#[derive(Clone, Copy, Debug)]
pub struct CheckerRow {
    /// The name that `--checker` takes; behind a colon stands what the user puts there.
    pub name: &'static str,
    /// How it decides, for `--help`.
    pub help: &'static str,
    /// What makes it, from what stands behind the colon; `None` where that cannot be used.
    pub factory: fn(Calls, &str) -> Option<Factory>,
}

/// What an event tells of its call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallHead<'a> {
    pub index: Option<i64>,
    /// An id; the empty one is none.
    pub id: Option<Text<'a>>,
    pub name: Text<'a>,
    /// The event has an id or a name, if only an empty one.
    pub is_named: bool,
    has_arguments: bool,
}

impl<'a> CallHead<'a> {
    /// Reads a `tool_call_delta` or a `tool_call`; of any other event there is nothing to tell.
    #[inline]
    pub fn read(event: &Event<'a>) -> Self {
        let (index, id, name, has_arguments) = if event.kind() == Kind::ToolCall {
            let call = ToolCall::read(event);
            (call.index, Some(call.tool_id), Some(call.tool_name), call.arguments.is_some())
        } else {
            let delta = ToolCallDelta::read(event);
            (delta.index, delta.tool_id, delta.tool_name, delta.arguments.is_some_and(|text| !text.is_empty()))
        };
        CallHead {
            index,
            id: id.filter(|id| !id.is_empty()),
            name: name.unwrap_or_default(),
            is_named: id.is_some() || name.is_some(),
            has_arguments,
        }
    }

    /// A delta without an id, a name and arguments is not a call, and the word null is not an id.
    fn is_blank(&self) -> bool {
        self.name.is_empty() && !self.has_arguments && self.id.is_none_or(|id| id == "null")
    }
}

/// What counts as a call: any, or only one whose tool's name matches a pattern.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The pattern of `--name`.
    pub name: Option<Glob>,
}

/// What an event means to a checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning<'a> {
    /// A call that counts.
    Call(String),
    /// A call of another tool than the ones asked for.
    OtherCall,
    /// Text that is not empty.
    Text(std::borrow::Cow<'a, str>),
    /// Neither, or a call of which is not known yet whether it counts.
    Nothing,
}

impl<'a> Meaning<'a> {
    fn of_text(text: Text<'a>) -> Self {
        if text.is_empty() { Meaning::Nothing } else { Meaning::Text(text.str()) }
    }
}

impl Calls {
    /// What an event means.
    pub(crate) fn meaning<'a>(&self, event: &Event<'a>) -> Meaning<'a> {
        match event.kind() {
            Kind::ToolCallDelta | Kind::ToolCall => {
                let head = CallHead::read(event);
                let name = head.name.str();
                match &self.name {
                    _ if head.is_blank() => Meaning::Nothing,
                    // Its name may still come.
                    Some(_) if name.is_empty() => Meaning::Nothing,
                    Some(pattern) if !pattern.matches(&name) => Meaning::OtherCall,
                    _ if name.is_empty() => Meaning::Call("a tool call".to_owned()),
                    _ => Meaning::Call(format!("a call of {name}")),
                }
            }
            // A refusal is what the model answers.
            Kind::ContentDelta => Meaning::of_text(ContentDelta::read(event).text),
            Kind::RefusalDelta => Meaning::of_text(RefusalDelta::read(event).text),
            _ => Meaning::Nothing,
        }
    }
}

/// The verdict of a stream that ended without a call, unless it failed.
pub(crate) fn none(end: End) -> Option<Verdict> {
    (!end.is_failure()).then(|| Verdict::new(false, "the stream ended without a tool call"))
}
