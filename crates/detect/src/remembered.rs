//! The calls of a choice that have begun, by their names in events, until a `retract` takes them
//! back.

use crate::head::CallHead;
use event::payload::Retract;
use event::{Event, Text};

/// How many calls of a choice are remembered; a choice with more is never left without any.
const MAX: usize = 64;

/// The calls of a choice.
#[derive(Debug, Default)]
pub(crate) struct RememberedCalls {
    keys: Vec<CallKey>,
    has_more: bool,
    any_retracted: bool,
}

/// What events name a call by.
#[derive(Debug, PartialEq, Eq)]
struct CallKey {
    id: Option<Box<str>>,
    index: Option<i64>,
}

impl RememberedCalls {
    /// Takes a `tool_call_delta` or a `tool_call`.
    pub fn begin(&mut self, event: &Event<'_>) {
        // Nearly every delta ends here.
        if !event.names_call() {
            return;
        }
        let head = CallHead::read(event);
        let key = CallKey {
            id: head.id.map(|id| id.str().as_ref().into()),
            index: head.index,
        };
        if self.has_more || self.keys.contains(&key) {
            return;
        }
        self.has_more = self.keys.len() == MAX;
        self.keys.push(key);
    }

    /// Takes a `retract`.
    pub fn retract(&mut self, event: &Event<'_>) {
        let Retract { index, tool_id, .. } = Retract::read(event);
        let id = tool_id.map(Text::str);
        self.keys.retain(|key| {
            !(id.is_some() && key.id.as_deref() == id.as_deref()
                || index.is_some() && key.index == index)
        });
        self.any_retracted = true;
    }

    /// Whether a `retract` has come.
    pub fn any_retracted(&self) -> bool {
        self.any_retracted
    }

    /// Whether no call is left.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.has_more
    }
}
