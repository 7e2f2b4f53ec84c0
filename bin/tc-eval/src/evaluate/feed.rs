//! The streams to measure, in the order of the corpora, each with the readings for external
//! checkers.

use super::judge::Judges;
use super::measure::Judgings;
use super::only::Only;
use crate::checkers::NamedChecker;
use crate::corpus::{CorpusEntry, Entries, entries};
use anyhow::Result;
use score::Measured;
use std::path::{Path, PathBuf};

/// The next job.
pub(super) enum FeedJob {
    /// A stream to measure.
    Stream(Box<CorpusEntry>, Judgings),
    /// A result that needs no measurement.
    Done(Done),
}

/// The result for a stream.
pub(super) enum Done {
    /// The stream was measured.
    Measured(Box<Measured>),
    /// The stream has no label.
    Unlabelled,
    /// The recording, or its line in the index, is unusable.
    Unreadable(anyhow::Error),
    /// An error that ends the run.
    Failed(anyhow::Error),
}

/// Reads corpora, one after the other.
pub(super) struct Feed<'f> {
    corpora: std::slice::Iter<'f, PathBuf>,
    root: Option<&'f Path>,
    open: Option<Entries>,
    only: &'f [Only],
    /// The external checkers, by position among all checkers; `None` for a built-in checker.
    judges: Vec<Option<Box<dyn Judges>>>,
    /// The number of readings per stream.
    readings: usize,
}

impl<'f> Feed<'f> {
    /// The streams of `corpora` that match all of `only`, for these checkers. The recordings are in
    /// the folder `root` if there is one.
    ///
    /// # Errors
    /// Fails if a corpus does not exist, before anything is read.
    pub(super) fn new(
        corpora: &'f [PathBuf],
        root: Option<&'f Path>,
        only: &'f [Only],
        checkers: Vec<NamedChecker>,
        readings: usize,
    ) -> Result<Self> {
        for corpus in corpora
            .iter()
            .filter(|corpus| corpus.is_file() || corpus.is_dir())
        {
            entries(corpus)?;
        }
        let judges = checkers.into_iter().map(|checker| match checker {
            NamedChecker::BuiltIn => None,
            NamedChecker::Outside(judges) => Some(judges),
        });
        let judges = judges.collect();
        Ok(Feed {
            corpora: corpora.iter(),
            root,
            open: None,
            only,
            judges,
            readings,
        })
    }

    /// Returns the next job; `None` after the last stream.
    pub(super) fn next(&mut self) -> Option<FeedJob> {
        loop {
            let Some(open) = &mut self.open else {
                match entries(self.corpora.next()?) {
                    Ok(opened) => {
                        self.open = Some(match self.root {
                            Some(root) => opened.of_root(root),
                            None => opened,
                        });
                    }
                    Err(e) => return Some(FeedJob::Done(Done::Failed(e))),
                }
                continue;
            };
            let entry = match open.next() {
                None => {
                    self.open = None;
                    continue;
                }
                Some(Err(e)) => return Some(FeedJob::Done(Done::Unreadable(e))),
                Some(Ok(entry)) => entry,
            };
            if !self.only.iter().all(|only| only.matches(&entry.label)) {
                continue;
            }
            if entry.label.has_tool_call.is_none() {
                return Some(FeedJob::Done(Done::Unlabelled));
            }
            return Some(match self.judgings(&entry) {
                Ok(judgings) => FeedJob::Stream(Box::new(entry), judgings),
                Err(e) => FeedJob::Done(Done::Failed(e)),
            });
        }
    }

    fn judgings(&mut self, entry: &CorpusEntry) -> Result<Judgings> {
        if self.judges.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        let reading = |reading| {
            let judge = |judges: &mut Option<Box<dyn Judges>>| match judges {
                None => Ok(None),
                Some(judges) => judges.judge(entry, reading),
            };
            self.judges.iter_mut().map(judge).collect()
        };
        (0..self.readings).map(reading).collect()
    }

    /// Ends the external checkers.
    ///
    /// # Errors
    /// Returns the errors that the checkers report.
    pub(super) fn finish(self) -> Result<()> {
        self.judges
            .into_iter()
            .flatten()
            .try_for_each(|mut judges| judges.finish())
    }
}
