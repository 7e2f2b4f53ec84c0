//! A checker that reads one stream once, and its decisions.

use super::judge::CheckerJudge;
use detect::Detect;
use event::payload::Decision;
use event::{Emitted, Event, Machine, Payload, SinkOf};
use score::{Answer, Outcome, Place};

/// A checker that reads one stream once.
pub(super) enum AskedChecker {
    /// A checker of `detect`.
    BuiltIn(Box<Detect>, Decided),
    /// An external checker; `None` if it has no answer for this reading.
    Outside(Option<Box<dyn CheckerJudge>>),
}

/// The decisions about choice 0 so far.
#[derive(Default)]
pub(super) struct Decided {
    first: Option<(Answer, Place, String)>,
    last: Option<Answer>,
}

impl AskedChecker {
    /// Shows the next event; `place` counts the stream up to it.
    pub(super) fn push(&mut self, event: &Event<'_>, place: Place) {
        match self {
            AskedChecker::BuiltIn(detect, decided) => detect.push(event, &mut decided.sink(place)),
            AskedChecker::Outside(Some(judge)) => judge.push(event, place),
            AskedChecker::Outside(None) => {}
        }
    }

    /// What was decided. `has_ended` claims that the stream had a `stream_end`. `None` where a
    /// checker outside of this process has no answer for this reading.
    pub(super) fn outcome(self, has_ended: bool, end: Place) -> Option<Outcome> {
        match self {
            AskedChecker::BuiltIn(mut detect, mut decided) => {
                if !has_ended {
                    detect.finish(&mut decided.sink(end));
                }
                let (answer, at, reason) =
                    decided
                        .first
                        .unwrap_or((Answer::Undecided, end, String::new()));
                let last = decided.last.unwrap_or(answer);
                Some(Outcome {
                    answer,
                    last,
                    at: Some(at),
                    reason,
                    depends_on_split: false,
                })
            }
            AskedChecker::Outside(judge) => judge.map(|judge| judge.outcome(end)),
        }
    }
}

impl Decided {
    /// The sink of a checker: keeps decisions about choice 0.
    fn sink(&mut self, place: Place) -> SinkOf<impl FnMut(Emitted<'_>)> {
        SinkOf(move |emitted: Emitted<'_>| {
            if let Emitted::Written(0, Payload::Decision(decision)) = emitted {
                let answer = answer(decision);
                self.last = Some(answer);
                self.first
                    .get_or_insert_with(|| (answer, place, decision.reason.str().into_owned()));
            }
        })
    }
}

fn answer(decision: &Decision<'_>) -> Answer {
    match (decision.undecided, decision.tool_call) {
        (true, _) => Answer::Undecided,
        (false, true) => Answer::Yes,
        (false, false) => Answer::No,
    }
}
