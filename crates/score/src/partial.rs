//! The counts of a part of a corpus as a line of JSON, to be merged with those of other parts.

use crate::clusters::hash;
use crate::tally::{MergeError, Tally};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The version of the format, the `tc_eval_partial` member.
pub const PARTIAL_FORMAT: u32 = 2;

/// The counts of some streams.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Partial {
    /// The version of the format, [`PARTIAL_FORMAT`].
    tc_eval_partial: u32,
    /// The version of the command that wrote the counts.
    version: String,
    /// The counts.
    pub tally: Tally,
}

/// Why a part cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum PartialError {
    /// The line is not JSON, or lacks a member of a part.
    #[error("not a whole part, run tc-eval --partial again for it")]
    Invalid(#[from] serde_json::Error),
    /// The part has another format or comes from another version of the command, which may count
    /// differently.
    #[error("a part of version {part}, and this is {this}; count all parts with one version")]
    Version {
        /// The version of the part.
        part: String,
        /// The version of this command.
        this: String,
    },
    /// The same line was already merged.
    #[error("the same counts as {0}; give each part once")]
    Twice(String),
    /// The part has other checkers, or is damaged.
    #[error("{0}; count all parts with the same options")]
    Merge(#[from] MergeError),
}

impl Partial {
    /// Returns the counts as written by a command of this version.
    #[must_use]
    pub fn new(version: &str, tally: Tally) -> Self {
        Partial {
            tc_eval_partial: PARTIAL_FORMAT,
            version: version.to_owned(),
            tally,
        }
    }

    /// Returns the line of JSON, without a line feed.
    ///
    /// # Errors
    /// Returns the error of the JSON writer; counts never cause one.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// Merges parts.
#[derive(Debug)]
pub struct Merger {
    version: String,
    total: Option<Partial>,
    /// The place of each part, by the hash of its line.
    seen: HashMap<u64, String>,
}

/// The format and version of a line; other members are ignored.
#[derive(Deserialize)]
struct Versions {
    tc_eval_partial: u32,
    version: String,
}

impl Merger {
    /// Returns a merger without parts; all parts must come from this version of the command.
    #[must_use]
    pub fn new(version: &str) -> Self {
        Merger {
            version: version.to_owned(),
            total: None,
            seen: HashMap::new(),
        }
    }

    /// Merges one line. `place` identifies it in error messages about later lines.
    ///
    /// # Errors
    /// Fails if the line is not a part, comes from another version, has other checkers, or was
    /// already merged. The sum is then unchanged.
    pub fn add(&mut self, line: &str, place: &str) -> Result<(), PartialError> {
        let Versions {
            tc_eval_partial: format,
            version,
        } = serde_json::from_str(line)?;
        if format != PARTIAL_FORMAT || version != self.version {
            return Err(PartialError::Version {
                part: format!("{version} (format {format})"),
                this: format!("{} (format {PARTIAL_FORMAT})", self.version),
            });
        }
        let part: Partial = serde_json::from_str(line)?;
        // All parts without streams have equal lines, and a cluster engine may produce many of
        // them.
        if part.tally.streams() > 0 {
            let hash = hash(line);
            if let Some(earlier) = self.seen.get(&hash) {
                return Err(PartialError::Twice(earlier.clone()));
            }
            self.seen.insert(hash, place.to_owned());
        }
        match &mut self.total {
            Some(total) => total.tally.merge(part.tally)?,
            None => {
                part.tally.check()?;
                self.total = Some(part);
            }
        }
        Ok(())
    }

    /// Returns the sum; `None` if no part was added.
    #[must_use]
    pub fn total(self) -> Option<Partial> {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Answer, CallCounts, Measured, Outcome, Place};
    use crate::report::Report;
    use std::collections::BTreeSet;

    /// Returns the stream with this number, whose values differ from those of other numbers in
    /// every count.
    fn measured(number: u32) -> Measured {
        let place = |chars: u32| Place {
            events: u64::from(chars / 3),
            chars: u64::from(chars),
            bytes: u64::from(chars * 2),
            ms: Some(f64::from(chars) * 0.1),
        };
        let has_tool_call = number.is_multiple_of(3);
        let answer = [Answer::No, Answer::Yes, Answer::Undecided][(number as usize / 3) % 3];
        let outcome = |answer| Outcome {
            answer,
            last: answer,
            at: Some(place(number % 1013)),
            reason: format!("reason {number}"),
            depends_on_split: number % 7 == 1,
        };
        Measured {
            id: format!("id {number}").into(),
            corpus: "-".into(),
            source: format!("source {}", number % 97).into(),
            api: "gemini".into(),
            provider: format!("p{}", number % 5).into(),
            model: format!("model {}", number % 1500).into(),
            tags: BTreeSet::from([format!("t{}", number % 11).into()]),
            has_tool_call,
            end: place(1013 + number % 50),
            first_call: has_tool_call.then(|| place(number % 499)),
            calls: CallCounts {
                expected: 1,
                read: 1,
                exact: u64::from(number % 2),
                ..CallCounts::default()
            },
            saved_ms: has_tool_call.then(|| f64::from(number) / 3.0),
            outcomes: vec![
                outcome(answer),
                outcome(if has_tool_call {
                    Answer::Yes
                } else {
                    Answer::No
                }),
            ],
        }
    }

    fn part(numbers: impl IntoIterator<Item = u32>) -> Partial {
        let mut part = Partial::new("1", Tally::new(&["a".to_owned(), "b".to_owned()]));
        numbers
            .into_iter()
            .for_each(|number| part.tally.add(&measured(number)));
        part
    }

    fn merged(parts: &[Partial]) -> Result<Partial, PartialError> {
        let mut merger = Merger::new("1");
        for (number, part) in parts.iter().enumerate() {
            merger.add(&part.line().unwrap(), &format!("part {number}"))?;
        }
        Ok(merger.total().unwrap())
    }

    #[test]
    fn any_parts_in_any_order_are_the_same_to_the_last_byte() {
        let whole = part(0..1600);
        let report = serde_json::to_string(&Report::of(&whole.tally)).unwrap();
        for (parts, step) in [(1, 1), (2, 1), (7, 3), (64, 37)] {
            let parts: Vec<_> = (0..parts)
                .map(|place| place * step % parts)
                .map(|rest| part((0..1600).filter(|number| number * 31 % 1009 % parts == rest)))
                .collect();
            let sum = merged(&parts).unwrap();
            assert_eq!(sum.line().unwrap(), whole.line().unwrap());
            assert_eq!(
                serde_json::to_string(&Report::of(&sum.tally)).unwrap(),
                report
            );
            // Merges the parts as a tree that includes parts without streams.
            let halves = parts
                .chunks(parts.len().div_ceil(2))
                .map(|half| merged(half).unwrap());
            let sum = merged(&halves.chain([part([]), part([])]).collect::<Vec<_>>()).unwrap();
            assert_eq!(sum.line().unwrap(), whole.line().unwrap());
        }
    }

    #[test]
    fn a_part_that_comes_twice_is_found_and_empty_ones_are_not() {
        let parts = [
            part(0..100),
            part([]),
            part([]),
            part(100..300),
            part(100..300),
        ];
        let twice = merged(&parts).unwrap_err().to_string();
        assert_eq!(twice, "the same counts as part 3; give each part once");
    }

    #[test]
    fn what_is_not_a_part_of_this_corpus_is_refused() {
        let line = part(0..10).line().unwrap();
        let refused = |line: &str| {
            let mut merger = Merger::new("1");
            merger.add(&part(100..110).line().unwrap(), "").unwrap();
            let error = merger.add(line, "").unwrap_err().to_string();
            assert_eq!(
                merger.total().unwrap(),
                part(100..110),
                "the sum is unchanged"
            );
            error
        };
        for (line, says) in [
            (line[..line.len() - 1].to_owned(), "not a whole part"),
            (line[..line.len() / 2].to_owned(), "not a whole part"),
            ("{}".to_owned(), "not a whole part"),
            ("7".to_owned(), "not a whole part"),
            (format!("{line}{line}"), "not a whole part"),
            (
                line.replacen("\"1\"", "\"0.9\"", 1),
                "a part of version 0.9 (format 2), and this is 1 (format 2)",
            ),
            (
                line.replacen("l\":2", "l\":3", 1),
                "a part of version 1 (format 3)",
            ),
            (
                line.replacen("\"a\",\"b\"", "\"a\",\"c\"", 1),
                "checkers a, b, another a, c",
            ),
            (
                line.replacen("\"a\",\"b\"", "\"a\"", 1),
                "checkers a, b, another a;",
            ),
        ] {
            let error = refused(&line);
            assert!(error.contains(says), "{error}");
        }
    }
}
