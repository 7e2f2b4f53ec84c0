//! `answer`: the text of the final answer alone.

use crate::escape::safe;
use crate::surface::FormRow;
use conversation::{Call, CallState, Change, ChoiceTurns, Keep, Talk, Turn};
use event::payload::Message;
use event::{Event, Kind, View};

pub(crate) const ROW: FormRow = FormRow {
    name: "answer",
    help: "The text of the final answer alone, or nothing; warnings and errors go to standard error",
    view: |surface| Box::new(AnswerView::new(surface.is_terminal)),
};

/// The turns since the user's last message, from which a result is written at the end.
#[derive(Debug)]
pub(crate) struct LastTurns {
    pub talk: Talk,
}

impl LastTurns {
    pub(crate) fn new(keep: Keep) -> Self {
        LastTurns {
            talk: Talk::new(keep),
        }
    }

    /// Takes the next event. A message of the user drops the turns before it.
    pub(crate) fn push(&mut self, event: &Event<'_>) {
        let change = self.talk.push(event);
        if event.kind() == Kind::Message
            && let Change::Turn(at) = change
            && self.talk.turns()[at].is_fresh
            && Message::read(event).is_of("user")
            && let Some(choice) = self.talk.choice_of(event)
        {
            let earlier = choice.turns.iter().copied().filter(|turn| *turn != at);
            for turn in earlier.collect::<Vec<_>>() {
                self.talk.forget(turn);
            }
        }
    }

    /// Returns the turns of a choice.
    pub(crate) fn turns(&self, choice: &ChoiceTurns) -> impl DoubleEndedIterator<Item = &Turn> {
        let turns = choice.turns.iter();
        turns.map(|at| &self.talk.turns()[*at])
    }

    /// Returns the calls of a turn.
    pub(crate) fn calls(&self, turn: &Turn) -> impl Iterator<Item = &Call> {
        let calls = turn.calls.iter();
        calls.map(|at| &self.talk.calls()[*at])
    }
}

/// Writes the answer of each stream and choice, in the order in which they started.
///
/// The answer is the text of the last turn, or its refusal. A turn that failed, was cut off or has
/// calls has no answer, so a program never takes a part for the whole. (A turn that the token limit
/// ended has one, and a notice.)
#[derive(Debug)]
struct AnswerView {
    turns: LastTurns,
    /// Whether the output goes to a terminal, so that control and hidden characters are escaped. A
    /// program gets the text as the model wrote it.
    for_terminal: bool,
}

impl AnswerView {
    fn new(for_terminal: bool) -> Self {
        let keep = Keep {
            text: true,
            arguments: false,
            results: false,
        };
        AnswerView {
            turns: LastTurns::new(keep),
            for_terminal,
        }
    }

    fn answer<'t>(&'t self, turn: &'t Turn) -> Option<&'t str> {
        let is_whole = match turn.finish {
            Some(reason) => !reason.is_failure(),
            None => turn.has_ended(),
        };
        let mut open = self.turns.calls(turn);
        let waits = open.any(|call| call.state != CallState::Retracted && !is_answer(call));
        if !is_whole || waits || turn.error.is_some() {
            return None;
        }
        let texts = [&turn.text, &turn.refusal];
        let text = texts.into_iter().find(|text| !text.trim().is_empty())?;
        // Models often start with empty lines.
        Some(text.trim_start_matches('\n').trim_end())
    }
}

/// Whether the output of the call is the answer.
fn is_answer(call: &Call) -> bool {
    call.answer.as_ref().is_some_and(|answer| answer.is_final)
}

impl View for AnswerView {
    fn push(&mut self, event: &Event<'_>, _: &mut Vec<u8>) {
        self.turns.push(event);
    }

    fn interrupt(&mut self, _: &mut Vec<u8>) -> bool {
        self.turns.talk.any_runs()
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        for choice in self.turns.talk.choices() {
            let last = self.turns.turns(choice).next_back();
            let Some(text) = last.and_then(|turn| self.answer(turn)) else {
                continue;
            };
            let bytes = match self.for_terminal {
                true => safe(text),
                false => text.into(),
            };
            out.extend_from_slice(bytes.as_bytes());
            out.push(b'\n');
        }
    }

    fn shows_notices(&self) -> bool {
        false
    }
}
