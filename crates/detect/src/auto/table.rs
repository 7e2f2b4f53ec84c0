//! The learned table: how often a call followed text, and after how much text no call followed.

use super::origin::StreamOrigin;
use super::words::Sign;
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result as FmtResult};

/// The lengths at which text runs are counted, in characters.
pub(crate) const EDGES: [u64; 43] = [
    0, 8, 16, 24, 32, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160, 180, 200, 220,
    240, 260, 280, 320, 360, 400, 450, 500, 560, 640, 720, 800, 1000, 1300, 1600, 2000, 2500, 3200,
    4000, 5000, 6500, 8000,
];

/// The largest count in a table. Sums saturate here, so that every written table can be read and
/// nothing overflows.
const MAX_COUNT: u64 = 1 << 50;

/// The maximum number of names of one kind in a table. Streams of further models and APIs count
/// only for all models together.
const MAX_WORDS: usize = 512;

/// Counts of streams with text, split by whether a call followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamCounts {
    pub calls: u64,
    pub others: u64,
}

impl StreamCounts {
    fn add(&mut self, calls: u64, others: u64) {
        self.calls = sum(self.calls, calls);
        self.others = sum(self.others, others);
    }

    /// Returns the number of streams.
    pub(crate) fn streams(self) -> u64 {
        self.calls + self.others
    }
}

/// Counts of streams, with a text format that [`AutoTable::parse`] reads and `Display` writes.
///
/// Each line is a row: its kind, its names or numbers, the number of streams in which a call
/// followed, and the number of streams without a call. Empty lines, and text after `#`, are
/// ignored. Rows with the same name are added up. Streams without text, or without text before
/// their call, do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoTable {
    /// All streams with text.
    pub(crate) text: StreamCounts,
    /// Counts by API.
    pub(crate) api: BTreeMap<Box<str>, StreamCounts>,
    /// Counts by model family.
    pub(crate) model: BTreeMap<Box<str>, StreamCounts>,
    /// Counts by what is known about the tools: `none` or `some`.
    pub(crate) tools: BTreeMap<Box<str>, StreamCounts>,
    /// The number of calls preceded by at least as many characters of text as each of the
    /// [`EDGES`].
    pub(crate) before: [u64; EDGES.len()],
    /// For each sign and each of the [`EDGES`], the streams whose text continued for that many
    /// characters after the sign.
    pub(crate) runs: [[StreamCounts; EDGES.len()]; Sign::ALL.len()],
}

/// The measurements of one stream, to add to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub(crate) origin: StreamOrigin,
    /// Characters of text up to the first call, or to the end of the stream.
    pub(crate) chars: u64,
    pub(crate) has_call: bool,
    pub(crate) runs: [Option<u64>; 4],
}

/// The error for a text that is not a valid table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TableError {
    line: usize,
    problem: &'static str,
}

impl Default for AutoTable {
    fn default() -> Self {
        AutoTable {
            text: StreamCounts::default(),
            api: BTreeMap::new(),
            model: BTreeMap::new(),
            tools: BTreeMap::new(),
            before: [0; EDGES.len()],
            runs: [[StreamCounts::default(); EDGES.len()]; Sign::ALL.len()],
        }
    }
}

impl AutoTable {
    /// Returns the built-in table. `docs/evaluation.md` gives the command that generates it.
    pub fn built_in() -> AutoTable {
        AutoTable::parse(include_str!("../../auto.table")).unwrap_or_default()
    }

    /// Parses a table.
    ///
    /// # Errors
    /// Returns the first line that is not a valid row, with its number.
    pub fn parse(text: &str) -> Result<AutoTable, TableError> {
        let mut table = AutoTable::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            table.row(&words).map_err(|problem| TableError {
                line: at + 1,
                problem,
            })?;
        }
        Ok(table)
    }

    fn row(&mut self, words: &[&str]) -> Result<(), &'static str> {
        match words {
            [] => {}
            ["text", calls, others] => self.text.add(count(calls)?, count(others)?),
            [kind @ ("api" | "model" | "tools"), name, calls, others] => {
                if name.len() > 24 || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                {
                    return Err("a name has at most 24 letters, digits and hyphens");
                }
                let rows = match *kind {
                    "api" => &mut self.api,
                    "model" => &mut self.model,
                    _ => &mut self.tools,
                };
                add(rows, name, count(calls)?, count(others)?);
            }
            ["before", edge, calls] => {
                let before = &mut self.before[place(edge)?];
                *before = sum(*before, count(calls)?);
            }
            ["after", sign, edge, calls, others] => {
                let sign = Sign::ALL.into_iter().find(|s| s.name() == *sign);
                let sign = sign.ok_or("a sign is plain, person, tool or intent")?;
                self.runs[sign as usize][place(edge)?].add(count(calls)?, count(others)?);
            }
            _ => {
                return Err(
                    "a row is text, api, model, tools, before or after with its numbers; see \
                     docs/evaluation.md",
                );
            }
        }
        Ok(())
    }

    /// Adds the counts of another table.
    pub fn merge(&mut self, other: &AutoTable) {
        self.text.add(other.text.calls, other.text.others);
        let pairs = [
            (&mut self.api, &other.api),
            (&mut self.model, &other.model),
            (&mut self.tools, &other.tools),
        ];
        for (mine, theirs) in pairs {
            for (name, counts) in theirs {
                add(mine, name, counts.calls, counts.others);
            }
        }
        for (mine, theirs) in self.before.iter_mut().zip(other.before) {
            *mine = sum(*mine, theirs);
        }
        for (mine, theirs) in self
            .runs
            .iter_mut()
            .flatten()
            .zip(other.runs.iter().flatten())
        {
            mine.add(theirs.calls, theirs.others);
        }
    }

    /// Adds the counts of one stream. A stream without text is ignored.
    pub fn add(&mut self, stream: &Observation) {
        let calls = u64::from(stream.has_call);
        let others = u64::from(!stream.has_call);
        if stream.chars == 0 {
            return;
        }
        self.text.add(calls, others);
        add(&mut self.api, &stream.origin.api, calls, others);
        add(&mut self.model, &stream.origin.family, calls, others);
        if let Some(name) = stream.origin.offered.name() {
            add(&mut self.tools, name, calls, others);
        }
        for (edge, before) in EDGES.iter().zip(&mut self.before) {
            *before = sum(*before, u64::from(stream.has_call && stream.chars >= *edge));
        }
        for (run, row) in stream.runs.iter().zip(&mut self.runs) {
            for (edge, counts) in EDGES.iter().zip(row) {
                if run.is_some_and(|run| run >= *edge) {
                    counts.add(calls, others);
                }
            }
        }
    }

    /// Returns the median length of the text before a call, among the calls with text before them.
    /// A table without `before` rows uses the median of the built-in table: with 0 the checker
    /// would answer no at the first character.
    pub(crate) fn median_before(&self) -> u64 {
        self.known_median()
            .or_else(|| AutoTable::built_in().known_median())
            .unwrap_or(0)
    }

    /// Returns the same median, or `None` without `before` rows. Calls in `text` rows are ignored,
    /// because a table may have only such rows.
    fn known_median(&self) -> Option<u64> {
        let all = self.before.iter().max()?;
        let reached = |calls: &u64| *calls > 0 && *calls * 2 >= *all;
        EDGES
            .iter()
            .zip(&self.before)
            .filter(|(_, calls)| reached(calls))
            .map(|(edge, _)| *edge)
            .max()
    }
}

/// Adds two counts, up to [`MAX_COUNT`].
fn sum(count: u64, more: u64) -> u64 {
    count.saturating_add(more).min(MAX_COUNT)
}

fn add(rows: &mut BTreeMap<Box<str>, StreamCounts>, name: &str, calls: u64, others: u64) {
    if name.is_empty() || (rows.len() >= MAX_WORDS && !rows.contains_key(name)) {
        return;
    }
    rows.entry(name.into()).or_default().add(calls, others);
}

fn count(word: &str) -> Result<u64, &'static str> {
    word.parse()
        .ok()
        .filter(|count| *count <= MAX_COUNT)
        .ok_or("a count is a number from 0 to 2^50")
}

fn place(word: &str) -> Result<usize, &'static str> {
    let edge: Option<u64> = word.parse().ok();
    EDGES
        .iter()
        .position(|e| Some(*e) == edge)
        .ok_or("a length is one of those of the table that is compiled in")
}

impl Display for AutoTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        writeln!(
            f,
            "# Streams with text: those in which a call followed it, those without a call."
        )?;
        writeln!(f, "text {} {}", self.text.calls, self.text.others)?;
        writeln!(
            f,
            "# By API, by the family of the model, and by what is known of the tools of the \
             request."
        )?;
        for (kind, rows) in [
            ("api", &self.api),
            ("model", &self.model),
            ("tools", &self.tools),
        ] {
            for (name, counts) in rows {
                writeln!(f, "{kind} {name} {} {}", counts.calls, counts.others)?;
            }
        }
        writeln!(f, "# Calls after at least so many characters of text.")?;
        for (edge, calls) in EDGES
            .iter()
            .zip(self.before)
            .filter(|(_, calls)| *calls > 0)
        {
            writeln!(f, "before {edge} {calls}")?;
        }
        writeln!(
            f,
            "# Streams whose text went on for so many characters after a sign (calls, others)."
        )?;
        for (sign, row) in Sign::ALL.iter().zip(&self.runs) {
            for (edge, counts) in EDGES
                .iter()
                .zip(row)
                .filter(|(_, counts)| counts.streams() > 0)
            {
                writeln!(
                    f,
                    "after {} {edge} {} {}",
                    sign.name(),
                    counts.calls,
                    counts.others
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{AutoTable, EDGES, Observation};
    use crate::auto::origin::StreamOrigin;
    use crate::auto::words::Sign;

    #[test]
    fn sums_stay_at_the_largest_count_that_is_read() {
        let most = 1_u64 << 50;
        let text = format!(
            "text {most} {most}\nmodel gpt {most} 1\nbefore 0 {most}\nafter plain 0 {most} {most}\n"
        );
        let table = AutoTable::parse(&text).unwrap();
        assert_eq!(
            AutoTable::parse(&text.repeat(3)).unwrap().text,
            table.text,
            "rows of one name"
        );
        let mut merged = table.clone();
        merged.merge(&table);
        let mut stream = Observation {
            origin: StreamOrigin::default(),
            chars: 9,
            has_call: true,
            runs: [None; 4],
        };
        stream.runs[Sign::Plain as usize] = Some(9);
        merged.add(&stream);
        assert_eq!((merged.text, merged.before[0]), (table.text, most));
        assert_eq!(
            merged.runs[Sign::Plain as usize][0],
            table.runs[Sign::Plain as usize][0]
        );
        assert_eq!(AutoTable::parse(&merged.to_string()), Ok(merged));
    }

    #[test]
    fn a_table_without_lengths_before_calls_has_those_of_the_one_that_is_compiled_in() {
        let usual = AutoTable::built_in().median_before();
        assert!(usual > 0 && EDGES.contains(&usual));
        for text in [
            "",
            "text 1000 10",
            "before 0 0",
            "model gpt 1 2\nafter plain 0 5 5",
        ] {
            assert_eq!(
                AutoTable::parse(text).unwrap().median_before(),
                usual,
                "{text}"
            );
            // Added to another table, its calls must not count as calls after little text either.
            let mut both = AutoTable::built_in();
            both.merge(&AutoTable::parse(text).unwrap());
            assert_eq!(both.median_before(), usual, "{text}");
        }
        for (text, want) in [
            ("text 9 0\nbefore 0 9\nbefore 8 4", 0),
            ("before 0 4\nbefore 100 2\nbefore 200 1", 100),
        ] {
            assert_eq!(
                AutoTable::parse(text).unwrap().median_before(),
                want,
                "{text}"
            );
        }
    }
}
