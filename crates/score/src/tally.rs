//! Counts of any number of streams, which can be counted in parts and merged in any order.

use crate::add_up::AddUp;
use crate::counts::{Counts, Details, StreamCounts};
use crate::group::{Dimension, Groups};
use crate::measured::Measured;
use crate::wrong::WrongStreams;
use serde::{Deserialize, Serialize};

/// The default number of wrong streams of each kind kept per checker.
pub const SHOWN: usize = 20;

/// The answers of checkers for any number of streams.
///
/// Its size does not grow with the number of streams. Merging parts in any order gives the same
/// counts, bit for bit, as counting all streams in one run.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Tally {
    /// The names of the checkers, in the order in which the user named them.
    pub(crate) checkers: Vec<String>,
    /// The number of recordings that could not be read.
    pub(crate) unreadable: u64,
    /// The number of streams whose label has no answer.
    pub(crate) unlabelled: u64,
    /// The counts of all streams.
    pub(crate) streams: StreamCounts,
    /// The answers of each checker.
    pub(crate) counts: Vec<Counts>,
    /// The places of the answers of each checker.
    pub(crate) details: Vec<Details>,
    /// The streams on which each checker was wrong.
    pub(crate) wrong: Vec<WrongStreams>,
    /// The same counts by API, provider, model, tag and corpus.
    pub(crate) groups: Vec<Groups>,
}

/// Why two tallies cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// They count different checkers.
    #[error("one part counts the checkers {one}, another {other}")]
    Checkers {
        /// The checkers of the first tally.
        one: String,
        /// The checkers of the second tally.
        other: String,
    },
    /// They keep different numbers of wrong streams.
    #[error("one part keeps {one} wrong streams of a kind, another {other}")]
    Shown {
        /// The number that the first tally keeps.
        one: usize,
        /// The number that the second tally keeps.
        other: usize,
    },
    /// A field is missing or has another length, so this command did not write the counts.
    #[error("a part has counts of {0} that do not match its checkers")]
    Damaged(&'static str),
}

impl Tally {
    /// Returns an empty tally for these checkers, which keeps [`SHOWN`] wrong streams of each kind.
    #[must_use]
    pub fn new(checkers: &[String]) -> Self {
        Self::showing(checkers, SHOWN)
    }

    /// Returns an empty tally for these checkers, which keeps `shown` wrong streams of each kind
    /// per checker.
    #[must_use]
    pub fn showing(checkers: &[String], shown: usize) -> Self {
        Self {
            checkers: checkers.to_vec(),
            unreadable: 0,
            unlabelled: 0,
            streams: StreamCounts::default(),
            counts: checkers.iter().map(|_| Counts::of_all()).collect(),
            details: checkers.iter().map(|_| Details::default()).collect(),
            wrong: checkers.iter().map(|_| WrongStreams::new(shown)).collect(),
            groups: Dimension::ALL.map(Groups::new).to_vec(),
        }
    }

    /// Returns the names of the checkers.
    #[must_use]
    pub fn checkers(&self) -> &[String] {
        &self.checkers
    }

    /// Returns the number of streams counted.
    #[must_use]
    pub fn streams(&self) -> u64 {
        self.streams.streams
    }

    /// Counts one stream; its outcomes are in the order of the checkers.
    pub fn add(&mut self, measured: &Measured) {
        self.streams.add(measured);
        for (index, outcome) in measured
            .outcomes
            .iter()
            .enumerate()
            .take(self.checkers.len())
        {
            self.counts[index].add(measured, outcome);
            self.details[index].add(measured, outcome);
            self.wrong[index].add(measured, outcome);
        }
        for groups in &mut self.groups {
            groups.add(measured, self.checkers.len());
        }
    }

    /// Counts a recording that could not be read.
    pub fn add_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// Counts a stream whose label has no answer yet.
    pub fn add_unlabelled(&mut self) {
        self.unlabelled += 1;
    }

    /// Adds the streams of `other`.
    ///
    /// # Errors
    /// Fails if `other` has different checkers, keeps a different number of wrong streams, or is
    /// damaged.
    pub fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        if self.checkers != other.checkers {
            let names = |tally: &Self| tally.checkers.join(", ");
            return Err(MergeError::Checkers {
                one: names(self),
                other: names(&other),
            });
        }
        other.check()?;
        if let (Some(one), Some(other)) = (self.wrong.first(), other.wrong.first())
            && one.limit() != other.limit()
        {
            return Err(MergeError::Shown {
                one: one.limit(),
                other: other.limit(),
            });
        }
        self.unreadable.add_up(&other.unreadable);
        self.unlabelled.add_up(&other.unlabelled);
        self.streams.add_up(&other.streams);
        self.counts.add_up(&other.counts);
        self.details.add_up(&other.details);
        let wrong = self.wrong.iter_mut().zip(other.wrong);
        wrong.for_each(|(mine, more)| mine.merge(more));
        let groups = self.groups.iter_mut().zip(other.groups);
        groups.for_each(|(mine, more)| mine.merge(more));
        Ok(())
    }

    /// Checks that counts read from a file match their checkers.
    ///
    /// # Errors
    /// Returns the name of the counts that do not match.
    pub fn check(&self) -> Result<(), MergeError> {
        let checkers = self.checkers.len();
        let dimensions = self.groups.iter().map(Groups::dimension);
        for (name, fits) in [
            ("answers", self.counts.len() == checkers),
            ("places", self.details.len() == checkers),
            ("wrong streams", self.wrong.len() == checkers),
            (
                "groups",
                dimensions.eq(Dimension::ALL)
                    && self.groups.iter().all(|groups| groups.fits(checkers)),
            ),
        ] {
            if !fits {
                return Err(MergeError::Damaged(name));
            }
        }
        Ok(())
    }
}
