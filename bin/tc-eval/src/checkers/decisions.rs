//! Decisions that were made elsewhere, read from a file (`--decisions NAME=FILE`).

use super::answer::{DecisionLine, GivenAnswer};
use crate::corpus::Entry;
use crate::evaluate::judge::{Judge, Judges};
use anyhow::{Context, Result, anyhow, bail};
use event::{Event, Scanner};
use score::{Outcome, Place};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// How many bytes of decisions are held.
const HELD: usize = 8 << 20;
/// What a decision takes besides its texts, in bytes: about the size of its entries in the tables.
const ENTRY: usize = 200;
/// The longest line, in bytes.
const LINE: u64 = 16 << 20;

/// The decisions of a file, joined with the streams of the corpora by their ids, in constant
/// memory. A window of [`HELD`] bytes of decisions is kept in memory: a file that fits into it may
/// have any order, and a larger one needs the order of the corpora, give or take the window.
pub struct Decisions {
    /// What the user calls them.
    name: String,
    file: String,
    input: Option<Box<dyn BufRead + Send>>,
    scanner: Scanner,
    /// How many lines were read.
    lines: u64,
    held: HashMap<String, HeldDecision>,
    /// The streams of `held` by their lines.
    order: BTreeMap<u64, String>,
    /// About how many bytes `held` and `order` take.
    bytes: usize,
    limit: usize,
    /// The last line that was used.
    reached: u64,
    unused: u64,
    first_unused: Option<(u64, String)>,
    buffer: Vec<u8>,
}

/// A decision in the window.
struct HeldDecision {
    line: u64,
    answer: GivenAnswer,
    is_used: bool,
}

impl HeldDecision {
    fn bytes(&self, stream: &str) -> usize {
        ENTRY + 2 * stream.len() + self.answer.reason.len()
    }
}

impl std::fmt::Debug for Decisions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decisions")
            .field("file", &self.file)
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}

impl Decisions {
    /// Opens the file of `NAME=FILE`.
    ///
    /// # Errors
    /// When the text has another form, or the file cannot be opened.
    pub fn open(named: &str) -> Result<Self> {
        let Some((name, file)) = named
            .split_once('=')
            .filter(|(name, file)| !name.is_empty() && !file.is_empty())
        else {
            bail!("--decisions {named}: not NAME=FILE, write for example mine=decisions.ndjson");
        };
        let open = File::open(file).and_then(|open| {
            // Opening a folder succeeds, and reading it fails.
            if open.metadata()?.is_dir() {
                Err(std::io::ErrorKind::IsADirectory.into())
            } else {
                Ok(open)
            }
        });
        let open = open.map_err(|e| {
            anyhow!("--decisions {name}={file}: {e}, check the path and its permissions")
        })?;
        Ok(Decisions::of(
            name,
            file,
            Box::new(BufReader::with_capacity(1 << 16, open)),
            HELD,
        ))
    }

    fn of(name: &str, file: &str, input: Box<dyn BufRead + Send>, limit: usize) -> Self {
        Decisions {
            name: name.to_owned(),
            file: file.to_owned(),
            input: Some(input),
            scanner: Scanner::default(),
            lines: 0,
            held: HashMap::new(),
            order: BTreeMap::new(),
            bytes: 0,
            limit,
            reached: 0,
            unused: 0,
            first_unused: None,
            buffer: Vec::new(),
        }
    }

    /// What the user calls these decisions.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The decision about the stream `id`; undecided where the file has none. To be asked in the
    /// order of the corpora.
    ///
    /// # Errors
    /// When the file cannot be read, a line of it is not an event, a decision names no stream, or a
    /// stream has two decisions of which the second is not `revised`.
    fn answer(&mut self, id: &str) -> Result<GivenAnswer> {
        self.fill()?;
        let Some(held) = self.held.get_mut(id) else {
            return Ok(GivenAnswer::undecided(format!(
                "no decision in {}",
                self.file
            )));
        };
        held.is_used = true;
        self.reached = self.reached.max(held.line);
        Ok(held.answer.clone())
    }

    /// Reads the rest of the file. Returns a message if it has decisions that no stream asked for.
    ///
    /// # Errors
    /// As [`Decisions::answer`].
    fn unused(&mut self) -> Result<Option<String>> {
        while self.input.is_some() {
            self.reached = u64::MAX;
            self.fill()?;
        }
        self.reached = u64::MAX;
        self.drop_passed(0);
        let Some((line, stream)) = &self.first_unused else {
            return Ok(None);
        };
        let (file, unused) = (&self.file, self.unused);
        Ok(Some(format!(
            "{file}: {unused} decisions are about streams that were not evaluated, the first is '{}' in line {line}; compare the \
             names with the ids of the index; a file above {} MiB must have the order of the corpora",
            event::cut(stream, 200),
            HELD >> 20
        )))
    }

    /// Reads on until the window is full. It drops decisions from behind the last that was used,
    /// the oldest first.
    fn fill(&mut self) -> Result<()> {
        while self.input.is_some() {
            if self.bytes >= self.limit {
                self.drop_passed(self.limit / 2);
            }
            if self.bytes >= self.limit {
                return Ok(());
            }
            self.read_line()?;
        }
        Ok(())
    }

    /// Drops decisions before the last that was used until at most `bytes` are held.
    fn drop_passed(&mut self, bytes: usize) {
        while self.bytes > bytes {
            let Some(oldest) = self
                .order
                .first_entry()
                .filter(|oldest| *oldest.key() < self.reached)
            else {
                return;
            };
            let (line, stream) = oldest.remove_entry();
            let Some(held) = self.held.remove(&stream) else {
                continue;
            };
            self.bytes = self.bytes.saturating_sub(held.bytes(&stream));
            if !held.is_used {
                self.unused += 1;
                self.first_unused.get_or_insert((line, stream));
            }
        }
    }

    /// Reads one line into the window.
    fn read_line(&mut self) -> Result<()> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        self.buffer.clear();
        let read = input.take(LINE).read_until(b'\n', &mut self.buffer);
        let count =
            read.with_context(|| format!("{}: it cannot be read, check the file", self.file))?;
        if count == 0 {
            self.input = None;
            return Ok(());
        }
        self.lines += 1;
        let (line, file) = (self.lines, &self.file);
        if count as u64 == LINE {
            bail!("{file}: line {line} is longer than {LINE} bytes, keep only lines of decisions");
        }
        let text = std::str::from_utf8(&self.buffer)
            .map_err(|_| anyhow!("{file}: line {line} is not UTF-8"))?;
        // Some editors begin a file with a byte order mark.
        let text = if line == 1 {
            text.trim_start_matches('\u{feff}')
        } else {
            text
        };
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            return Ok(());
        }
        let event = self.scanner.read(text).map_err(|e| {
            anyhow!(
                "{file}: line {line} is not an event ({}), keep only lines such as {{\"type\":\"decision\",…}}",
                e.what
            )
        })?;
        let Some(decision) = DecisionLine::read(&event) else {
            return Ok(());
        };
        let Some(stream) = decision.stream.as_deref().map(str::to_owned) else {
            bail!("{file}: the decision in line {line} has no \"stream\", add the id of its label");
        };
        match self.held.get_mut(&stream) {
            Some(held) if decision.is_revised => held.answer.last = decision.answer,
            Some(held) => bail!(
                "{file}: line {line} decides again about '{}' of line {}, mark it with \"revised\":true or remove one",
                event::cut(&stream, 200),
                held.line
            ),
            None => {
                let held = HeldDecision {
                    line,
                    answer: decision.into(),
                    is_used: false,
                };
                self.bytes += held.bytes(&stream);
                self.order.insert(line, stream.clone());
                self.held.insert(stream, held);
            }
        }
        Ok(())
    }
}

impl Judges for Decisions {
    fn judge(&mut self, entry: &Entry, reading: usize) -> Result<Option<Box<dyn Judge>>> {
        if reading > 0 {
            return Ok(None);
        }
        Ok(Some(Box::new(GivenJudge {
            answer: self.answer(&entry.label.id)?,
            events: 0,
            at: None,
        })))
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(message) = self.unused()? {
            stdio::message("tc-eval", &message);
        }
        Ok(())
    }
}

/// A decision that waits for the place of its event.
struct GivenJudge {
    answer: GivenAnswer,
    events: u64,
    at: Option<Place>,
}

impl Judge for GivenJudge {
    fn push(&mut self, _event: &Event<'_>, place: Place) {
        self.events += 1;
        if self.answer.event == Some(self.events) {
            self.at = Some(place);
        }
    }

    fn outcome(self: Box<Self>, _end: Place) -> Outcome {
        self.answer.outcome(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use score::Answer;
    use std::io::Cursor;

    fn decisions(text: String, limit: usize) -> Decisions {
        Decisions::of("mine", "FILE", Box::new(Cursor::new(text)), limit)
    }

    fn line(stream: &str, fields: &str) -> String {
        format!(
            "{{\"type\":\"decision\",\"stream\":{},{fields}}}\n",
            event::quoted(stream)
        )
    }

    fn yes(streams: impl Iterator<Item = u32>) -> String {
        streams
            .map(|n| {
                line(
                    &format!("s{n}"),
                    &format!("\"tool_call\":true,\"event\":{}", n + 1),
                )
            })
            .collect()
    }

    #[test]
    fn a_small_file_may_have_any_order() {
        let mut file = decisions(yes((0..100).rev()), HELD);
        for n in 0..100_u32 {
            let answer = file.answer(&format!("s{n}")).expect("read");
            assert_eq!(
                (answer.first, answer.event),
                (Answer::Yes, Some(u64::from(n) + 1))
            );
        }
        assert_eq!(file.unused().expect("read"), None);
    }

    #[test]
    fn a_large_file_in_order_is_joined_in_a_bounded_window_whatever_either_side_lacks() {
        let limit = 20 * ENTRY;
        // Every third stream has no decision, and every fifth decision no stream.
        let mut file = decisions(yes((0..10_000).filter(|n| n % 3 != 0)), limit);
        let mut largest = 0;
        for n in (0..10_000).filter(|n| n % 5 != 0) {
            let answer = file.answer(&format!("s{n}")).expect("read");
            assert_eq!(answer.first == Answer::Yes, n % 3 != 0, "{n}: {answer:?}");
            largest = largest.max(file.bytes);
        }
        assert!(largest < 2 * limit, "{largest}");
        let unused = (0..10_000).filter(|n| n % 3 != 0 && n % 5 == 0).count();
        let message = file.unused().expect("read").expect("a message");
        assert!(
            message.contains(&format!("FILE: {unused} decisions"))
                && message.contains("'s5' in line 4;"),
            "{message}"
        );
    }

    #[test]
    fn a_large_file_in_another_order_leaves_streams_undecided_and_says_why() {
        let mut file = decisions(yes((0..1000).rev()), 20 * ENTRY);
        let answer = file.answer("s0").expect("read");
        assert_eq!(answer, GivenAnswer::undecided("no decision in FILE"));
        let message = file.unused().expect("read").expect("a message");
        assert!(
            message.contains("1000 decisions") && message.contains("order of the corpora"),
            "{message}"
        );
    }

    #[test]
    fn a_second_decision_must_be_revised() {
        let first = line("a\n\"'", "\"tool_call\":true");
        let revised = line("a\n\"'", "\"tool_call\":false,\"revised\":true");
        let mut file = decisions(format!("{first}\n{revised}"), HELD);
        let answer = file.answer("a\n\"'").expect("read");
        assert_eq!((answer.first, answer.last), (Answer::Yes, Answer::No));
        let error = decisions(format!("{first}{first}"), HELD)
            .answer("a")
            .expect_err("twice");
        assert!(
            error
                .to_string()
                .starts_with("FILE: line 2 decides again about"),
            "{error}"
        );
    }

    #[test]
    fn one_decision_serves_equal_ids_of_several_corpora() {
        let mut file = decisions(yes(0..1), HELD);
        assert_eq!(
            file.answer("s0").expect("read"),
            file.answer("s0").expect("read")
        );
    }

    #[test]
    fn what_is_not_a_decision_is_skipped_and_what_is_not_an_event_is_an_error() {
        let mut file = decisions(
            format!("{{\"type\":\"stream_start\"}}\n\n{}", yes(0..1)),
            HELD,
        );
        assert_eq!(file.answer("s0").expect("read").first, Answer::Yes);
        for (text, error) in [
            ("\n{\"type\":", "FILE: line 2 is not an event"),
            (
                "{\"type\":\"decision\",\"tool_call\":true}",
                "FILE: the decision in line 1 has no \"stream\"",
            ),
        ] {
            let found = decisions(text.to_owned(), HELD)
                .answer("a")
                .expect_err(text)
                .to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }

    #[test]
    fn an_operand_is_a_name_and_a_file() {
        for (operand, error) in [
            ("mine", "not NAME=FILE"),
            ("=file", "not NAME=FILE"),
            ("mine=", "not NAME=FILE"),
            ("mine=/nowhere/at/all", "check the path"),
            ("mine=/", "check the path"),
        ] {
            let found = Decisions::open(operand).expect_err(operand).to_string();
            assert!(
                found.starts_with(&format!("--decisions {operand}: ")) && found.contains(error),
                "{found}"
            );
        }
    }
}
