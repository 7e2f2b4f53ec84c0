//! Decisions that were made elsewhere, read from a file (`--decisions NAME=FILE`).

use super::answer::{DecisionLine, GivenAnswer};
use crate::corpus::CorpusEntry;
use crate::evaluate::judge::{CheckerJudge, Judges};
use anyhow::{Result, anyhow, bail};
use event::{Event, Scanner};
use score::{Outcome, Place};
use std::collections::HashMap;

/// The decisions of a file by the ids of their streams.
#[derive(Debug)]
pub(super) struct Decisions {
    file: String,
    held: HashMap<String, HeldDecision>,
}

/// One decision.
#[derive(Debug)]
struct HeldDecision {
    line: u64,
    answer: GivenAnswer,
    is_used: bool,
}

impl Decisions {
    /// Reads the file of `NAME=FILE`.
    ///
    /// # Errors
    /// When the text has another form, the file cannot be read, a line of it is not an event, a
    /// decision names no stream, or a stream has two decisions of which the second is not
    /// `revised`.
    pub(super) fn open(named: &str) -> Result<Self> {
        let parts = named.split_once('=');
        let Some((name, file)) = parts.filter(|(name, file)| !name.is_empty() && !file.is_empty())
        else {
            bail!("--decisions {named}: not NAME=FILE, write for example mine=decisions.ndjson");
        };
        let bytes = std::fs::read(file).map_err(|e| {
            anyhow!("--decisions {name}={file}: {e}, check the path and its permissions")
        })?;
        Decisions::of(file, &bytes)
    }

    fn of(file: &str, bytes: &[u8]) -> Result<Self> {
        let mut decisions = Decisions {
            file: file.to_owned(),
            held: HashMap::new(),
        };
        let mut scanner = Scanner::default();
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let text = std::str::from_utf8(line)
                .map_err(|_| anyhow!("{file}: line {number} is not UTF-8"))?;
            // Some editors write a byte order mark at the beginning of a file.
            let text = text.trim_start_matches('\u{feff}').trim_end_matches('\r');
            if !text.trim().is_empty() {
                decisions.line(number, text, &mut scanner)?;
            }
        }
        Ok(decisions)
    }

    fn line(&mut self, line: u64, text: &str, scanner: &mut Scanner) -> Result<()> {
        let file = &self.file;
        let event = scanner.read(text).map_err(|e| {
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
            Some(held) if decision.is_revised => held.answer.last = decision.answer.last,
            Some(held) => bail!(
                "{file}: line {line} decides again about '{}' of line {}, mark it with \"revised\":true or remove one",
                event::cut(&stream, 200),
                held.line
            ),
            None => {
                let held = HeldDecision {
                    line,
                    answer: decision.answer,
                    is_used: false,
                };
                self.held.insert(stream, held);
            }
        }
        Ok(())
    }

    /// The decision about the stream `id`; undecided where the file has none.
    fn answer(&mut self, id: &str) -> GivenAnswer {
        match self.held.get_mut(id) {
            Some(held) => {
                held.is_used = true;
                held.answer.clone()
            }
            None => GivenAnswer::undecided(format!("no decision in {}", self.file)),
        }
    }

    /// Returns a message if the file has decisions for streams that were not evaluated.
    fn unused(&self) -> Option<String> {
        let unused = self.held.iter().filter(|(_, held)| !held.is_used);
        let (stream, first) = unused.clone().min_by_key(|(_, held)| held.line)?;
        Some(format!(
            "{}: {} decisions are about streams that were not evaluated, the first is '{}' in \
             line {}; compare the names \
             with the ids of the index",
            self.file,
            unused.count(),
            event::cut(stream, 200),
            first.line
        ))
    }
}

impl Judges for Decisions {
    fn judge(
        &mut self,
        entry: &CorpusEntry,
        reading: usize,
    ) -> Result<Option<Box<dyn CheckerJudge>>> {
        if reading > 0 {
            return Ok(None);
        }
        Ok(Some(Box::new(GivenJudge {
            answer: self.answer(&entry.label.id),
            events: 0,
            at: None,
        })))
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(message) = self.unused() {
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

impl CheckerJudge for GivenJudge {
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

    fn decisions(text: &str) -> Result<Decisions> {
        Decisions::of("FILE", text.as_bytes())
    }

    fn line(stream: &str, fields: &str) -> String {
        let stream = event::quoted(stream);
        format!("{{\"type\":\"decision\",\"stream\":{stream},{fields}}}\n")
    }

    fn yes(streams: impl Iterator<Item = u32>) -> String {
        let fields = |n| format!("\"tool_call\":true,\"event\":{}", n + 1);
        streams
            .map(|n| line(&format!("s{n}"), &fields(n)))
            .collect()
    }

    #[test]
    fn a_file_may_have_any_order_and_either_side_may_lack_streams() {
        // Every third stream has no decision, and every fifth decision no stream.
        let text = yes((0..1_000).rev().filter(|n| n % 3 != 0));
        let mut file = decisions(&text).expect("decisions");
        for n in (0..1_000).filter(|n| n % 5 != 0) {
            let answer = file.answer(&format!("s{n}"));
            let is_known = n % 3 != 0;
            assert_eq!(answer.first == Answer::Yes, is_known, "{n}: {answer:?}");
            assert_eq!(answer.event, is_known.then_some(n + 1));
            assert_eq!(answer, file.answer(&format!("s{n}")), "ids of two corpora");
        }
        let unused = (0..1_000).filter(|n| n % 3 != 0 && n % 5 == 0).count();
        let message = file.unused().expect("a message");
        let begin = format!("FILE: {unused} decisions");
        assert!(
            message.contains(&begin) && message.contains("'s995' in line 3;"),
            "{message}"
        );
        let mut file = decisions(&yes(0..1)).expect("decisions");
        assert_eq!(
            file.answer("s1"),
            GivenAnswer::undecided("no decision in FILE")
        );
        file.answer("s0");
        assert_eq!(file.unused(), None);
    }

    #[test]
    fn a_second_decision_must_be_revised() {
        let first = line("a\n\"'", "\"tool_call\":true");
        let revised = line("a\n\"'", "\"tool_call\":false,\"revised\":true");
        let mut file = decisions(&format!("{first}\n{revised}")).expect("decisions");
        let answer = file.answer("a\n\"'");
        assert_eq!((answer.first, answer.last), (Answer::Yes, Answer::No));
        let error = decisions(&format!("{first}{first}")).expect_err("twice");
        let error = error.to_string();
        assert!(
            error.starts_with("FILE: line 2 decides again about"),
            "{error}"
        );
    }

    #[test]
    fn what_is_not_a_decision_is_skipped_and_what_is_not_an_event_is_an_error() {
        let text = format!("{{\"type\":\"stream_start\"}}\n\n{}", yes(0..1));
        let mut file = decisions(&text).expect("decisions");
        assert_eq!(file.answer("s0").first, Answer::Yes);
        for (text, error) in [
            ("\n{\"type\":", "FILE: line 2 is not an event"),
            (
                "{\"type\":\"decision\",\"tool_call\":true}",
                "FILE: the decision in line 1 has no \"stream\"",
            ),
        ] {
            let found = decisions(text).expect_err(text).to_string();
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
