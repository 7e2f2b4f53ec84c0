//! Joins the streams of a run with those of a baseline in constant memory.

use super::file::Reader;
use super::names::CorpusNames;
use super::sort::{Sorter, size};
use anyhow::{Result, bail};
use score::{BaselineReport, BaselineStream, Comparison};
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

/// How many bytes of streams without a partner each side holds in memory, and how many a sorter
/// does.
const LIMIT: usize = 4 << 20;

/// Reads the baseline as fast as the run advances. Where both have the streams in the same order
/// each finds its partner at once; streams that moved wait in memory. What waits beyond [`LIMIT`]
/// bytes is sorted by name in files, and joined after the last stream.
#[derive(Debug)]
pub struct Join {
    reader: Reader,
    names: CorpusNames,
    comparison: Comparison,
    then: Side,
    now: Side,
}

impl Join {
    /// Compares the checkers of a run with those of a baseline; at most `shown` streams of each
    /// kind of change are named.
    ///
    /// # Errors
    /// When they share no checker.
    pub fn new(
        reader: Reader,
        names: CorpusNames,
        checkers: &[String],
        shown: usize,
    ) -> Result<Self> {
        let header = reader.header();
        if !checkers
            .iter()
            .any(|checker| header.checkers.contains(checker))
        {
            bail!(
                "{}: a baseline of {}, and this run has {}; name one of those with --checker",
                reader.path().display(),
                header.checkers.join(", "),
                checkers.join(", ")
            );
        }
        let comparison = Comparison::new(header, checkers, shown);
        Ok(Join {
            reader,
            names,
            comparison,
            then: Side::new(LIMIT),
            now: Side::new(LIMIT),
        })
    }

    /// Takes the next stream of the run.
    ///
    /// # Errors
    /// When the baseline or a temporary file cannot be read or written.
    pub fn take(&mut self, stream: BaselineStream) -> Result<()> {
        if let Some(earlier) = self.read()? {
            if is_same(&earlier, &stream) && self.then.is_empty() && self.now.is_empty() {
                self.comparison.pair(&earlier, &stream);
                return Ok(());
            }
            match self.now.remove(&earlier) {
                Some(later) => self.comparison.pair(&earlier, &later),
                None => self.then.add(earlier)?,
            }
        }
        match self.then.remove(&stream) {
            Some(earlier) => self.comparison.pair(&earlier, &stream),
            None => self.now.add(stream)?,
        }
        Ok(())
    }

    /// All differences, after the last stream of the run.
    ///
    /// # Errors
    /// As [`Join::take`], and when the baseline is cut or shares no stream with the run.
    pub fn finish(mut self) -> Result<BaselineReport> {
        while let Some(earlier) = self.read()? {
            match self.now.remove(&earlier) {
                Some(later) => self.comparison.pair(&earlier, &later),
                None => self.then.add(earlier)?,
            }
        }
        let (mut then, mut now) = (self.then.sorted()?, self.now.sorted()?);
        let (mut earlier, mut later) = (then.next().transpose()?, now.next().transpose()?);
        loop {
            let order = match (&earlier, &later) {
                (Some(earlier), Some(later)) => key(earlier).cmp(&key(later)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            match (order, &earlier, &later) {
                (Ordering::Equal, Some(earlier), Some(later)) => {
                    self.comparison.pair(earlier, later)
                }
                (Ordering::Less, Some(earlier), _) => self.comparison.vanished_stream(earlier),
                (_, _, Some(later)) => self.comparison.new_stream(later),
                _ => {}
            }
            if order.is_le() {
                earlier = then.next().transpose()?;
            }
            if order.is_ge() {
                later = now.next().transpose()?;
            }
        }
        let report = self.comparison.finish();
        if report.compared == 0 && self.reader.streams() > 0 {
            bail!(
                "{}: a baseline of other streams, this run has none of them; give the corpus that it was made of ({})",
                self.reader.path().display(),
                self.reader.header().corpora.join(", ")
            );
        }
        Ok(report)
    }

    /// The next stream of the baseline, its corpus named as in this run.
    fn read(&mut self) -> Result<Option<BaselineStream>> {
        let mut stream = self.reader.next()?;
        if let Some(stream) = &mut stream {
            self.names.unify(&mut stream.corpus);
        }
        Ok(stream)
    }
}

fn key(stream: &BaselineStream) -> (&str, &str) {
    (&stream.corpus, &stream.id)
}

fn is_same(a: &BaselineStream, b: &BaselineStream) -> bool {
    key(a) == key(b)
}

/// The streams of one side that have not found their partner.
#[derive(Debug)]
struct Side {
    limit: usize,
    /// In memory, by corpus and id. Of a name that comes twice the first is the first to find a
    /// partner.
    held: BTreeMap<(String, String), VecDeque<BaselineStream>>,
    size: usize,
    sorter: Sorter,
}

impl Side {
    fn new(limit: usize) -> Self {
        Side {
            limit,
            held: BTreeMap::new(),
            size: 0,
            sorter: Sorter::new(limit),
        }
    }

    /// Whether no stream waits in memory.
    fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    fn add(&mut self, stream: BaselineStream) -> Result<()> {
        // The key holds both names a second time.
        self.size += 2 * size(&stream);
        let key = (stream.corpus.clone(), stream.id.clone());
        self.held.entry(key).or_default().push_back(stream);
        if self.size > self.limit {
            self.spill()
        } else {
            Ok(())
        }
    }

    /// Takes out the partner of `stream`.
    fn remove(&mut self, stream: &BaselineStream) -> Option<BaselineStream> {
        if self.held.is_empty() {
            return None;
        }
        let key = (stream.corpus.clone(), stream.id.clone());
        let waiting = self.held.get_mut(&key)?;
        let found = waiting.pop_front()?;
        if waiting.is_empty() {
            self.held.remove(&key);
        }
        self.size -= 2 * size(&found);
        Some(found)
    }

    /// Hands all streams in memory to the sorter.
    fn spill(&mut self) -> Result<()> {
        for stream in std::mem::take(&mut self.held).into_values().flatten() {
            self.sorter.add(stream)?;
        }
        self.size = 0;
        Ok(())
    }

    /// All streams without a partner, in the order of their names.
    fn sorted(mut self) -> Result<impl Iterator<Item = Result<BaselineStream>>> {
        self.spill()?;
        self.sorter.sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::Writer;
    use super::*;
    use score::{Answer, BaselineOutcome};

    /// The stream of a number. It calls a tool if the number is even; of each hundred one has
    /// another answer in the second run.
    fn stream(number: u32, is_second: bool) -> BaselineStream {
        let is_right = number % 100 != if is_second { 41 } else { 20 } && number % 100 != 7;
        let has_tool_call = number.is_multiple_of(2);
        let answer = if is_right == has_tool_call {
            Answer::Yes
        } else {
            Answer::No
        };
        let outcomes = vec![BaselineOutcome {
            answer,
            at: None,
            reason: format!("reason {number}"),
        }];
        BaselineStream {
            corpus: format!("c{}", number % 3),
            id: format!("\"id\n{number}"),
            has_tool_call,
            outcomes,
        }
    }

    /// The report of two runs, which hold at most `limit` bytes of streams in memory.
    fn report(then: &[u32], now: &[u32], limit: usize) -> BaselineReport {
        let path = std::env::temp_dir().join(format!(
            "tc-eval-join-{}-{limit}-{}",
            std::process::id(),
            then.len()
        ));
        let checkers = ["a".to_owned()];
        let mut writer = Writer::create(&path, &checkers, &[]).unwrap();
        for &number in then {
            writer.write(&stream(number, false)).unwrap();
        }
        writer.finish().unwrap();
        let reader = Reader::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut join = Join::new(reader, CorpusNames::default(), &checkers, usize::MAX).unwrap();
        (join.then, join.now) = (Side::new(limit), Side::new(limit));
        for &number in now {
            join.take(stream(number, true)).unwrap();
        }
        let mut report = join.finish().unwrap();
        // The order of the names depends on where a partner was found.
        report.checkers[0]
            .broken_streams
            .sort_by_key(|change| change.reason.clone());
        report.checkers[0]
            .fixed_streams
            .sort_by_key(|change| change.reason.clone());
        report
    }

    #[test]
    fn finds_each_partner_in_any_order_in_memory_or_in_files() {
        let all: Vec<u32> = (0..2000).collect();
        // A multiple of a number that has no divisor in common with 2000 visits each once.
        let shuffled: Vec<u32> = (0..2000).map(|place| place * 1237 % 2000).collect();
        let shifted: Vec<u32> = (500..2500).collect();
        let reversed: Vec<u32> = (0..2000).rev().collect();
        for limit in [LIMIT, 20_000, 1] {
            for now in [&all, &shuffled, &reversed] {
                let report = report(&all, now, limit);
                let change = &report.checkers[0];
                assert_eq!(
                    (report.compared, report.new, report.vanished),
                    (2000, 0, 0),
                    "{limit}"
                );
                assert_eq!(
                    (change.broken, change.fixed, change.changed),
                    (20, 20, 40),
                    "{limit}"
                );
                assert!(
                    change
                        .broken_streams
                        .iter()
                        .all(|change| change.reason.ends_with("41")),
                    "{change:?}"
                );
                assert_eq!(change.broken_streams.len(), 20);
            }
            for (then, now) in [(&all, &shifted), (&shuffled, &shifted)] {
                let report = report(then, now, limit);
                assert_eq!(
                    (report.compared, report.new, report.vanished),
                    (1500, 500, 500),
                    "{limit}"
                );
                assert_eq!(
                    (report.checkers[0].broken, report.checkers[0].fixed),
                    (15, 15),
                    "{limit}"
                );
                assert_eq!(
                    (report.new_streams.len(), report.vanished_streams.len()),
                    (500, 500)
                );
            }
        }
    }

    #[test]
    fn what_moved_within_the_limit_is_joined_in_memory() {
        let mut side = Side::new(1 << 20);
        for number in 0..1000 {
            side.add(stream(number, false)).unwrap();
        }
        for number in (0..1000).rev() {
            assert_eq!(
                side.remove(&stream(number, true)).unwrap().id,
                stream(number, false).id
            );
        }
        assert!(side.is_empty() && side.size == 0 && side.remove(&stream(1, true)).is_none());
    }
}
