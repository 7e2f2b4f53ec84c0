//! Decision lines that other programs write, as described in `docs/evaluation.md`.

use event::{Event, Kind};
use score::{Answer, Outcome, Place};
use std::borrow::Cow;

/// Maximum length of a reason in bytes; the rest is cut.
const REASON: usize = 500;

/// A decision line about choice 0 of a stream.
#[derive(Debug)]
pub(super) struct DecisionLine<'a> {
    /// The name of the stream.
    pub stream: Option<Cow<'a, str>>,
    /// The answer, as the first and the last one.
    pub answer: GivenAnswer,
    /// Whether the line replaces an earlier one about the same stream.
    pub is_revised: bool,
}

impl<'a> DecisionLine<'a> {
    /// Reads a decision; `None` for any other event, and for decisions about other choices.
    pub(super) fn read(event: &Event<'a>) -> Option<Self> {
        if event.kind() != Kind::Decision || event.choice() != 0 {
            return None;
        }
        let is = |key| {
            event
                .get(key)
                .and_then(event::Raw::bool)
                .unwrap_or_default()
        };
        let mut reason = event.get_str("reason").unwrap_or_default().into_owned();
        let answer = match event.get("tool_call").map(event::Raw::bool) {
            _ if is("undecided") => Answer::Undecided,
            Some(Some(true)) => Answer::Yes,
            Some(Some(false)) => Answer::No,
            None => Answer::Undecided,
            Some(None) => {
                "its tool_call is not true, false or null".clone_into(&mut reason);
                Answer::Undecided
            }
        };
        let number = event
            .get("event")
            .and_then(event::Raw::i64)
            .and_then(|n| u64::try_from(n).ok());
        reason.truncate(event::cut(&reason, REASON).len());
        Some(DecisionLine {
            stream: event.stream().and_then(event::Raw::str),
            answer: GivenAnswer {
                first: answer,
                last: answer,
                event: number.filter(|n| *n > 0),
                reason,
            },
            is_revised: is("revised"),
        })
    }
}

/// The decision of another program about a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenAnswer {
    /// Its first answer.
    pub first: Answer,
    /// Its last answer.
    pub last: Answer,
    /// The number of the event of the first answer, from 1 on; `None` if the program did not report
    /// it.
    pub event: Option<u64>,
    /// The reason of the decision.
    pub reason: String,
}

impl GivenAnswer {
    /// Creates an undecided answer with its reason.
    pub(crate) fn undecided(reason: impl Into<String>) -> Self {
        GivenAnswer {
            first: Answer::Undecided,
            last: Answer::Undecided,
            event: None,
            reason: reason.into(),
        }
    }

    /// The outcome, where `at` is the place of the event.
    pub(crate) fn outcome(self, at: Option<Place>) -> Outcome {
        Outcome {
            answer: self.first,
            last: self.last,
            at,
            reason: self.reason,
            depends_on_split: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    fn read(line: &str) -> Option<(Answer, Option<u64>, bool, String)> {
        let mut scanner = Scanner::default();
        let event = scanner.read(line).expect("an event");
        DecisionLine::read(&event).map(|d| {
            (
                d.answer.first,
                d.answer.event,
                d.is_revised,
                d.answer.reason,
            )
        })
    }

    #[test]
    fn an_answer_is_yes_no_or_neither() {
        for (fields, answer, event, revised, reason) in [
            (
                r#""tool_call":true,"event":3,"reason":"r""#,
                Answer::Yes,
                Some(3),
                false,
                "r",
            ),
            (
                r#""tool_call":false,"revised":true"#,
                Answer::No,
                None,
                true,
                "",
            ),
            (
                r#""tool_call":null,"reason":"model failed""#,
                Answer::Undecided,
                None,
                false,
                "model failed",
            ),
            (r#""reason":7"#, Answer::Undecided, None, false, ""),
            (
                r#""tool_call":false,"undecided":true,"event":0"#,
                Answer::Undecided,
                None,
                false,
                "",
            ),
            (
                r#""tool_call":"yes","event":-1"#,
                Answer::Undecided,
                None,
                false,
                "its tool_call is not true, false or null",
            ),
            (
                r#""tool_call":true,"event":"3""#,
                Answer::Yes,
                None,
                false,
                "",
            ),
        ] {
            let line = format!("{{\"type\":\"decision\",\"stream\":\"a\",{fields}}}");
            assert_eq!(
                read(&line),
                Some((answer, event, revised, reason.to_owned())),
                "{line}"
            );
        }
        assert_eq!(
            read(r#"{"type":"decision","stream":"a","choice":1,"tool_call":true}"#),
            None,
            "another choice"
        );
        assert_eq!(
            read(r#"{"type":"content_delta","tool_call":true}"#),
            None,
            "another event"
        );
    }
}
