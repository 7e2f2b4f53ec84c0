//! The calls of this run, so that a repeated call does not run again.

use crate::call::{CallKey, RequestedCall, StreamName};
use crate::canonical::Hash;
use crate::result::{Status, ToolAnswer};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

/// Maximum size in bytes of all outputs kept for repeated calls.
const KEPT: usize = 16 << 20;

/// The calls of this run, by stream and id.
#[derive(Debug, Default)]
pub(crate) struct SeenCalls {
    calls: HashMap<CallKey, SeenCall>,
    /// The calls whose outputs are kept, in the order of their answers, with the lengths of the
    /// outputs.
    kept: VecDeque<(CallKey, usize)>,
    /// The sum of the output lengths in `kept`.
    bytes: usize,
}

#[derive(Debug)]
struct SeenCall {
    /// The number of the call in the plan. A later call with the same id, which is answered from
    /// this one, does not change it.
    key: u64,
    fingerprint: Option<Hash>,
    response: Option<Box<str>>,
    state: SeenState,
}

#[derive(Debug)]
enum SeenState {
    /// The call is waiting or running.
    Open,
    /// The call ran and was retracted.
    TakenBack,
    /// The call has its answer.
    Answered(Rc<ToolAnswer>),
}

impl SeenCalls {
    /// Records a call that has no answer yet.
    pub(crate) fn begin(&mut self, key: u64, call: &RequestedCall) {
        self.set(key, call, SeenState::Open);
    }

    /// Records that a started call was retracted.
    pub(crate) fn take_back(&mut self, key: u64, call: &RequestedCall) {
        self.set(key, call, SeenState::TakenBack);
    }

    /// Records the answer to a call. Only the latest [`KEPT`] bytes of outputs are kept.
    pub(crate) fn answer(&mut self, key: u64, call: &RequestedCall, answer: &Rc<ToolAnswer>) {
        self.set(key, call, SeenState::Answered(Rc::clone(answer)));
        self.bytes += answer.output.len();
        self.kept.push_back((call.key(), answer.output.len()));
        while self.bytes > KEPT
            && let Some((key, length)) = self.kept.pop_front()
        {
            self.bytes -= length;
            if let Some(SeenCall {
                state: SeenState::Answered(answer),
                ..
            }) = self.calls.get_mut(&key)
                && answer.output.len() == length
            {
                *answer = Rc::new(without_output(answer));
            }
        }
    }

    /// Removes a call that never ran.
    pub(crate) fn forget(&mut self, key: u64, call: &RequestedCall) {
        let name = call.key();
        if self.calls.get(&name).is_some_and(|seen| seen.key == key) {
            self.calls.remove(&name);
        }
    }

    pub(crate) fn contains(&self, call: &RequestedCall) -> bool {
        self.calls.contains_key(&call.key())
    }

    /// Returns the answer to a call whose id was already used in this run, or `None` if it is a new
    /// call or may run again. `reads` is whether its tool only reads.
    pub(crate) fn again(&self, call: &RequestedCall, reads: bool) -> Option<Rc<ToolAnswer>> {
        let seen = self.calls.get(&call.key())?;
        let is_same = seen.fingerprint.is_some() && seen.fingerprint == call.fingerprint();
        match &seen.state {
            // Two calls with the same id that run at once could not be told apart, neither by their
            // results nor when one of them is cancelled.
            SeenState::Open => Some(Rc::new(in_use(call, is_same))),
            _ if !is_same || !call.is_in_response(seen.response.as_deref()) => None,
            SeenState::TakenBack if reads => None,
            SeenState::TakenBack => {
                let text =
                    "The call was already started and then retracted; it does not run twice.";
                Some(Rc::new(ToolAnswer::new(Status::Cancelled, text)))
            }
            SeenState::Answered(answer) => Some(Rc::new(ToolAnswer {
                resumed: true,
                ..ToolAnswer::clone(answer)
            })),
        }
    }

    fn set(&mut self, key: u64, call: &RequestedCall, state: SeenState) {
        match self.calls.get_mut(&call.key()) {
            Some(seen) if seen.key == key => seen.state = state,
            _ => {
                self.calls.insert(
                    call.key(),
                    SeenCall {
                        key,
                        fingerprint: call.fingerprint(),
                        response: call.response.clone(),
                        state,
                    },
                );
            }
        }
    }
}

/// Returns the answer to a call whose id belongs to another call that is still waiting or running.
fn in_use(call: &RequestedCall, is_same: bool) -> ToolAnswer {
    let what = if is_same {
        "The same call"
    } else {
        "Another call with the same id"
    };
    let text = format!(
        "The call was not run. {what} ({:?}) has come before and has no result yet; its result \
         will follow under that id. Wait for it, then \
         call again if another result is needed.",
        call.id
    );
    ToolAnswer::new(Status::Invalid, text)
}

/// Returns an answer that refers to the first answer instead of repeating its output.
fn without_output(answer: &ToolAnswer) -> ToolAnswer {
    let output = format!(
        "The result of {} bytes was given before, under the same id.",
        answer.output.len()
    );
    ToolAnswer {
        output,
        truncated: true,
        ..answer.clone()
    }
}

// The calls of a plan by the names that a `retract` or a later call may use: the id or the index,
// within a stream.

/// A name of a call within its stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallName {
    Id(Box<str>),
    Index(i64),
}

/// The numbers of the calls with each name. There may be several, since a later turn may reuse a
/// name.
#[derive(Debug, Default)]
pub(crate) struct CallNames(HashMap<(StreamName, CallName), BTreeSet<u64>>);

impl CallNames {
    pub(crate) fn add(&mut self, call: &RequestedCall, key: u64) {
        for name in names(call) {
            self.0
                .entry((call.stream.clone(), name))
                .or_default()
                .insert(key);
        }
    }

    pub(crate) fn remove(&mut self, call: &RequestedCall, key: u64) {
        for name in names(call) {
            let name = (call.stream.clone(), name);
            if let Some(keys) = self.0.get_mut(&name) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.0.remove(&name);
                }
            }
        }
    }

    /// Returns the latest call with this id, or with this index if `id` is `None`.
    pub(crate) fn latest(
        &self,
        stream: &StreamName,
        id: Option<&str>,
        index: Option<i64>,
    ) -> Option<u64> {
        let name = match (id, index) {
            (Some(id), _) => CallName::Id(id.into()),
            (None, Some(index)) => CallName::Index(index),
            (None, None) => return None,
        };
        self.0.get(&(stream.clone(), name))?.last().copied()
    }
}

fn names(call: &RequestedCall) -> impl Iterator<Item = CallName> + use<> {
    [
        Some(CallName::Id(call.id.clone())),
        call.index.map(CallName::Index),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    fn call(id: usize) -> RequestedCall {
        let line =
            format!(r#"{{"type":"tool_call","tool_id":"{id}","tool_name":"w","arguments":{{}}}}"#);
        RequestedCall::of_event(&Scanner::default().read(&line).unwrap())
    }

    #[test]
    fn only_so_much_output_is_kept() {
        let mut seen = SeenCalls::default();
        let output = "x".repeat(1 << 20);
        for id in 0..40 {
            seen.begin(id as u64, &call(id));
            seen.answer(
                id as u64,
                &call(id),
                &Rc::new(ToolAnswer::new(Status::Success, output.as_str())),
            );
        }
        let length = |id| seen.again(&call(id), true).unwrap().output.len();
        assert_eq!((length(39), length(24)), (1 << 20, 1 << 20));
        assert!(length(23) < 100 && seen.again(&call(0), true).unwrap().truncated);
        assert!(seen.bytes <= KEPT && seen.kept.len() == 16);
    }
}
