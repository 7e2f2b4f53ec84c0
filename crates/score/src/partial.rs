//! The counts of a part of a corpus as one line of JSON, which others of the same corpus are added
//! to.

use crate::clusters::hash;
use crate::measured::Measured;
use crate::tally::{MergeError, Tally};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// The version of the format, as `tc_eval_partial` has it.
pub const PARTIAL_FORMAT: u32 = 1;
/// How many streams of a part represent it (the k smallest hashes:
/// <https://en.wikipedia.org/wiki/MinHash>). Parts that are equal share all of these; parts that
/// share a twentieth of their streams share one with a probability of 96 %, by simulation.
const SAMPLE: usize = 64;
/// How many streams of the sample are remembered for all parts. Of more parts than fit, the streams
/// with the smallest hashes are kept.
const REMEMBERED: usize = 1 << 18;

/// The counts of some streams.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Partial {
    /// The version of the format, [`PARTIAL_FORMAT`].
    tc_eval_partial: u32,
    /// The version of the command that counted.
    version: String,
    /// The streams with the smallest hashes of their corpus and id, in order, as hexadecimal
    /// numbers: JSON readers such as jq round large numbers.
    sample: BTreeSet<String>,
    /// The counts.
    tally: Tally,
}

/// Why a part cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum PartialError {
    /// The line is not JSON, or lacks what a part has.
    #[error("not a whole part ({0}), run tc-eval --partial again for this part")]
    Invalid(serde_json::Error),
    /// A part of another format or another version of the command, which may count other things.
    #[error("a part of version {part}, and this is {this}; count all parts with one version")]
    Version {
        /// Of the part.
        part: String,
        /// Of this command.
        this: String,
    },
    /// It was counted before, at least in part.
    #[error(
        "has a stream that {0} has, too; give each part once, and each stream an id of its own"
    )]
    Twice(String),
    /// Its checkers differ, or it was damaged.
    #[error("{0}; count all parts with the same options")]
    Merge(MergeError),
}

impl Partial {
    /// No streams, counted into `tally` by a command of this version.
    #[must_use]
    pub fn new(version: &str, tally: Tally) -> Self {
        let version = version.to_owned();
        Partial {
            tc_eval_partial: PARTIAL_FORMAT,
            version,
            sample: BTreeSet::new(),
            tally,
        }
    }

    /// Counts one stream.
    pub fn add(&mut self, measured: &Measured) {
        // A corpus's name cannot hold the byte that separates the two.
        self.keep(format!(
            "{:016x}",
            hash(&format!("{}\0{}", measured.corpus, measured.id))
        ));
        self.tally.add(measured);
    }

    /// The counts.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The counts, to add what is not a stream.
    pub fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// The line of JSON, without its end.
    ///
    /// # Errors
    /// Never for counts; the writer of JSON demands it.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn keep(&mut self, name: String) {
        if self.sample.len() < SAMPLE || self.sample.last().is_some_and(|last| name < *last) {
            self.sample.insert(name);
            while self.sample.len() > SAMPLE {
                self.sample.pop_last();
            }
        }
    }
}

/// Adds parts up.
#[derive(Debug)]
pub struct Merger {
    version: String,
    total: Option<Partial>,
    /// Which part each sampled stream came from.
    seen: HashMap<u64, u32>,
    /// Streams from this hash on are not remembered.
    bound: u64,
    remembered: usize,
    parts: u32,
}

/// The format and the version of a line, whatever else it has.
#[derive(Deserialize)]
struct Versions {
    tc_eval_partial: u32,
    version: String,
}

impl Merger {
    /// No parts; all must be of this version of the command.
    #[must_use]
    pub fn new(version: &str) -> Self {
        let version = version.to_owned();
        Merger {
            version,
            total: None,
            seen: HashMap::new(),
            bound: u64::MAX,
            remembered: REMEMBERED,
            parts: 0,
        }
    }

    /// Adds one line. `place` names an earlier part for messages by its number, from 0 on.
    ///
    /// # Errors
    /// When it is not a part, is one of another version or with other checkers, or was counted
    /// before. The sum is unchanged then.
    pub fn add(
        &mut self,
        line: &[u8],
        place: impl FnOnce(u32) -> String,
    ) -> Result<(), PartialError> {
        let versions: Versions = serde_json::from_slice(line).map_err(PartialError::Invalid)?;
        if versions.tc_eval_partial != PARTIAL_FORMAT || versions.version != self.version {
            let Versions {
                tc_eval_partial: format,
                version,
            } = versions;
            let this = format!("{} (format {PARTIAL_FORMAT})", self.version);
            return Err(PartialError::Version {
                part: format!("{version} (format {format})"),
                this,
            });
        }
        let part: Partial = serde_json::from_slice(line).map_err(PartialError::Invalid)?;
        let hashes: Vec<u64> = part
            .sample
            .iter()
            .filter_map(|name| u64::from_str_radix(name, 16).ok())
            .collect();
        // Of two reasons the checkers are the plainer one: counts of the same streams for other
        // checkers.
        let is_alike = self
            .total
            .as_ref()
            .is_none_or(|total| total.tally.checkers() == part.tally.checkers());
        if let Some(earlier) = hashes
            .iter()
            .find_map(|hash| self.seen.get(hash))
            .filter(|_| is_alike)
        {
            return Err(PartialError::Twice(place(*earlier)));
        }
        match &mut self.total {
            None => {
                part.tally.check().map_err(PartialError::Merge)?;
                self.total = Some(part);
            }
            Some(total) => {
                total.tally.merge(part.tally).map_err(PartialError::Merge)?;
                part.sample.into_iter().for_each(|name| total.keep(name));
            }
        }
        self.seen.extend(
            hashes
                .into_iter()
                .filter(|hash| *hash < self.bound)
                .map(|hash| (hash, self.parts)),
        );
        while self.seen.len() > self.remembered {
            self.bound /= 2;
            self.seen.retain(|hash, _| *hash < self.bound);
        }
        self.parts = self.parts.saturating_add(1);
        Ok(())
    }

    /// How many parts were added.
    #[must_use]
    pub fn parts(&self) -> u32 {
        self.parts
    }

    /// The sum; `None` without a part.
    #[must_use]
    pub fn total(self) -> Option<Partial> {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Answer, CallCounts, Outcome, Place};
    use crate::report::Report;
    use std::collections::BTreeSet;

    /// The stream of a number, with values that differ between numbers in every count.
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
            .for_each(|number| part.add(&measured(number)));
        part
    }

    fn merged(parts: &[Partial]) -> Result<Partial, PartialError> {
        let mut merger = Merger::new("1");
        for part in parts {
            merger.add(part.line().unwrap().as_bytes(), |earlier| {
                format!("part {earlier}")
            })?;
        }
        Ok(merger.total().unwrap())
    }

    #[test]
    fn any_parts_in_any_order_are_the_same_to_the_last_byte() {
        let whole = part(0..1600);
        let report = serde_json::to_string(&Report::of(whole.tally())).unwrap();
        for (parts, step) in [(1, 1), (2, 1), (7, 3), (64, 37)] {
            let parts: Vec<_> = (0..parts)
                .map(|place| place * step % parts)
                .map(|rest| part((0..1600).filter(|number| number * 31 % 1009 % parts == rest)))
                .collect();
            let sum = merged(&parts).unwrap();
            assert_eq!(sum.line().unwrap(), whole.line().unwrap());
            assert_eq!(
                serde_json::to_string(&Report::of(sum.tally())).unwrap(),
                report
            );
            // A tree of merges, with parts without a stream in it.
            let halves = parts
                .chunks(parts.len().div_ceil(2))
                .map(|half| merged(half).unwrap());
            let sum = merged(&halves.chain([part([]), part([])]).collect::<Vec<_>>()).unwrap();
            assert_eq!(sum.line().unwrap(), whole.line().unwrap());
        }
    }

    #[test]
    fn a_stream_that_is_counted_twice_is_found() {
        let parts = [part(0..100), part(100..300), part(100..300)];
        let twice = merged(&parts).unwrap_err().to_string();
        assert!(
            twice.starts_with("has a stream that part 1 has, too"),
            "{twice}"
        );
        // Divided another way: the parts share half of their streams.
        let found = (0..20).filter(|start| {
            let start = start * 1000;
            merged(&[part(start..start + 200), part(start + 100..start + 300)]).is_err()
        });
        assert_eq!(found.count(), 20);
        let found = (0..20).filter(|start| {
            let start = start * 1000;
            merged(&[part(start..start + 200), part(start + 190..start + 390)]).is_err()
        });
        assert!(found.count() >= 17);
    }

    #[test]
    fn the_memory_of_streams_seen_is_bounded_and_still_finds_equal_parts() {
        let mut merger = Merger {
            remembered: 400,
            ..Merger::new("1")
        };
        let parts: Vec<_> = (0..200)
            .map(|place| part(place * 20..place * 20 + 20))
            .collect();
        for part in &parts {
            merger
                .add(part.line().unwrap().as_bytes(), |_| String::new())
                .unwrap();
            assert!(merger.seen.len() <= 400);
        }
        let found = parts.iter().filter(|part| {
            merger
                .add(part.line().unwrap().as_bytes(), |_| String::new())
                .is_err()
        });
        assert!(found.count() > 100);
    }

    #[test]
    fn what_is_not_a_part_of_this_corpus_is_refused() {
        let line = part(0..10).line().unwrap();
        let refused = |line: &str| {
            let mut merger = Merger::new("1");
            merger
                .add(part(100..110).line().unwrap().as_bytes(), |_| String::new())
                .unwrap();
            let error = merger
                .add(line.as_bytes(), |_| String::new())
                .unwrap_err()
                .to_string();
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
                "a part of version 0.9 (format 1), and this is 1 (format 1)",
            ),
            (
                line.replacen("l\":1", "l\":2", 1),
                "a part of version 1 (format 2)",
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
