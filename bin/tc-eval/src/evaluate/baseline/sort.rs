//! Sorts any number of streams by their names in constant memory.

use anyhow::{Context as _, Result};
use score::BaselineStream;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// How many sorted files are merged into one at a time.
const FAN_IN: usize = 16;
/// How much of each file is read at once while it is merged.
const BLOCK: usize = 32 * 1024;

/// The order of streams: by corpus, then by id.
fn compare(a: &BaselineStream, b: &BaselineStream) -> Ordering {
    (&a.corpus, &a.id).cmp(&(&b.corpus, &b.id))
}

/// About how many bytes a stream takes in memory.
pub fn size(stream: &BaselineStream) -> usize {
    let texts: usize = stream
        .outcomes
        .iter()
        .map(|outcome| size_of_val(outcome) + outcome.reason.len())
        .sum();
    size_of_val(stream) + stream.corpus.len() + stream.id.len() + texts
}

/// An external merge sort (Knuth, *The Art of Computer Programming*, volume 3, section 5.4):
/// streams are sorted in memory up to `limit` bytes and written to a file; [`FAN_IN`] files are
/// merged into one of the next level. The files have no names, so that nothing is left behind
/// whatever ends the process.
#[derive(Debug)]
pub struct Sorter {
    limit: usize,
    held: Vec<BaselineStream>,
    size: usize,
    /// The files of each level, the oldest first.
    levels: Vec<Vec<File>>,
}

impl Sorter {
    /// Nothing yet; about `limit` bytes of streams are held in memory.
    pub fn new(limit: usize) -> Self {
        Sorter {
            limit,
            held: Vec::new(),
            size: 0,
            levels: Vec::new(),
        }
    }

    /// Adds a stream.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn add(&mut self, stream: BaselineStream) -> Result<()> {
        self.size += size(&stream);
        self.held.push(stream);
        if self.size > self.limit {
            self.write_held()
        } else {
            Ok(())
        }
    }

    /// All streams in order; those of one name in the order in which they were added.
    ///
    /// # Errors
    /// When a temporary file cannot be written or read; so does each item.
    pub fn sorted(mut self) -> Result<Merge> {
        self.write_held()?;
        // Higher levels are older.
        Merge::new(self.levels.into_iter().rev().flatten().collect())
    }

    fn write_held(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        self.held.sort_by(compare);
        let mut file = write_sorted(self.held.drain(..).map(Ok))?;
        self.size = 0;
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(file);
            if self.levels[level].len() < FAN_IN {
                break;
            }
            file = write_sorted(Merge::new(std::mem::take(&mut self.levels[level]))?)?;
        }
        Ok(())
    }
}

/// Merges sorted files.
#[derive(Debug)]
pub struct Merge {
    files: Vec<BufReader<File>>,
    next: BinaryHeap<Reverse<Head>>,
}

/// The next stream of a file.
#[derive(Debug)]
struct Head {
    stream: BaselineStream,
    file: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.stream, &other.stream).then(self.file.cmp(&other.file))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl Merge {
    fn new(files: Vec<File>) -> Result<Self> {
        let files = files
            .into_iter()
            .map(|file| BufReader::with_capacity(BLOCK, file))
            .collect();
        let mut merge = Merge {
            files,
            next: BinaryHeap::new(),
        };
        for file in 0..merge.files.len() {
            merge.advance(file)?;
        }
        Ok(merge)
    }

    /// Reads the next stream of a file.
    fn advance(&mut self, file: usize) -> Result<()> {
        let mut line = Vec::new();
        self.files[file]
            .read_until(b'\n', &mut line)
            .with_context(unusable)?;
        if !line.is_empty() {
            let stream = serde_json::from_slice(&line).with_context(unusable)?;
            self.next.push(Reverse(Head { stream, file }));
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<Option<BaselineStream>> {
        let Some(Reverse(Head { stream, file })) = self.next.pop() else {
            return Ok(None);
        };
        self.advance(file)?;
        Ok(Some(stream))
    }
}

impl Iterator for Merge {
    type Item = Result<BaselineStream>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pop().transpose()
    }
}

/// Writes streams to a new file and goes back to its beginning.
fn write_sorted(streams: impl Iterator<Item = Result<BaselineStream>>) -> Result<File> {
    let mut file = BufWriter::with_capacity(BLOCK, unnamed()?);
    for stream in streams {
        serde_json::to_writer(&mut file, &stream?).with_context(unusable)?;
        file.write_all(b"\n").with_context(unusable)?;
    }
    let mut file = file
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .with_context(unusable)?;
    file.rewind().with_context(unusable)?;
    Ok(file)
}

/// A new file without a name, which the system removes when it is closed.
fn unnamed() -> Result<File> {
    for attempt in 0_u32.. {
        let path = folder().join(format!("tc-eval-{}-{attempt}", std::process::id()));
        match OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && attempt < 1000 => {}
            opened => {
                let file = opened.with_context(unusable)?;
                std::fs::remove_file(&path).with_context(unusable)?;
                return Ok(file);
            }
        }
    }
    unreachable!("the loop ends at the thousandth name")
}

fn folder() -> PathBuf {
    std::env::temp_dir()
}

fn unusable() -> String {
    format!(
        "{}: a temporary file of the comparison cannot be used, free some space or set TMPDIR to another folder",
        folder().display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use score::{Answer, BaselineOutcome};

    fn stream(corpus: &str, id: &str, reason: &str) -> BaselineStream {
        let outcome = BaselineOutcome {
            answer: Answer::Yes,
            at: None,
            reason: reason.to_owned(),
        };
        let [corpus, id] = [corpus, id].map(str::to_owned);
        BaselineStream {
            corpus,
            id,
            has_tool_call: true,
            outcomes: vec![outcome],
        }
    }

    #[test]
    fn sorts_what_takes_several_levels_of_files_and_keeps_the_order_of_equal_names() {
        // A limit of one byte makes a file of each stream: 700 of them take three levels of 16.
        let mut sorter = Sorter::new(1);
        let mut expected = Vec::new();
        for place in 0..700_u32 {
            let id = format!("id\n{}", place.wrapping_mul(2_654_435_761) % 350);
            let one = stream(
                if place % 3 == 0 { "b" } else { "a" },
                &id,
                &place.to_string(),
            );
            expected.push(one.clone());
            sorter.add(one).unwrap();
        }
        assert!(sorter.levels.len() >= 3, "{}", sorter.levels.len());
        assert!(sorter.levels.iter().all(|level| level.len() < FAN_IN));
        expected.sort_by(compare);
        let sorted: Vec<_> = sorter.sorted().unwrap().map(Result::unwrap).collect();
        assert_eq!(sorted, expected);
    }
}
