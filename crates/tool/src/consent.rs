//! Whether a call has the yes that it needs, and the answers to calls that have not.

use crate::approval::{AnswerSource, Reason};
use crate::call_hash::CallHash;
use crate::call_reference::CallReference;
use crate::result::{Answer, Status};
use crate::rules::Rules;

/// Whether a call has the yes that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consent {
    /// It needs none.
    NotNeeded,
    /// It has one.
    Given(AnswerSource),
    /// It got a no; with the answer for the model.
    Refused(AnswerSource, Answer),
    /// It ran, a person says, and gives its result.
    Ran(Answer),
    /// It needs a person's.
    Needed(Reason),
}

/// The answer to a call that waits for a person.
pub(crate) fn pending(reason: &Reason, call: &CallReference, rules: &Rules) -> Answer {
    let (yes, no) = (
        rules.continuation.with("--approve-call", [call]),
        rules.continuation.with("--deny-call", [call]),
    );
    let text = if *reason == Reason::Started {
        let ran = rules.continuation.with_result(call);
        format!(
            "The call is not run again by itself: {reason}. It waits for a person, who looks what it did. If it ran, give its result with: {ran} ; \
             if it did not and must not run: {no} ; if it is to run again: {yes}"
        )
    } else {
        format!(
            "The call was not run: {reason}. It waits for a person: run it with: {yes} ; or refuse it with: {no}"
        )
    };
    let changed = match other_approval(rules, call) {
        Some(other) => format!(
            " (Approved, but not this: the call that was approved under this id has the hash {other}. The arguments or the \
             definition of the tool have changed since, or the call has been started since.)"
        ),
        None => String::new(),
    };
    Answer {
        hash: Some(call.hash),
        ..Answer::new(Status::Pending, text + &changed)
    }
}

/// The hash of an approval under the id of `call` for another call.
fn other_approval(rules: &Rules, call: &CallReference) -> Option<CallHash> {
    let mut others: Vec<_> = rules
        .approved
        .iter()
        .filter(|other| other.id == call.id && other.hash != call.hash)
        .collect();
    others.sort_by_key(|other| other.hash.to_string()); // a set has no order
    others.first().map(|other| other.hash)
}

/// The answer to a call that a person has refused. `started`: an earlier run started it.
pub(crate) fn denied(started: bool) -> Answer {
    let what = if started {
        "A person decided not to run the call again. It had been started before, and its result is not known"
    } else {
        "A person refused the call, and it was not run"
    };
    Answer::new(
        Status::Denied,
        format!("{what}. Do not repeat it; go on without it, or ask the user."),
    )
}

/// The answer to a call that a rule of the policy refuses, for this reason.
pub(crate) fn forbidden(reason: &str) -> Answer {
    let text = format!(
        "The call was not run: the policy does not allow it ({reason}). Do not repeat it; go on without it, or ask the user."
    );
    Answer::new(Status::Denied, text)
}

/// The answer to a call of a turn in which a person has been asked about `most` calls.
pub(crate) fn too_many_questions(most: usize) -> Answer {
    let text = format!(
        "The call was not run: it needs a person's approval, and a person is asked about at most {most} calls of a turn. \
         Do with fewer such calls, or make them in a later turn."
    );
    Answer::new(Status::Denied, text)
}
