//! The dialects that are searched for in a stream, compiled into one list of markers.

use crate::dialect::{Dialect, Form, KnownTool, PromptReasoning, ReasoningEnd};
use crate::form::{beginnings, first};
use crate::table::Dialects;
use std::collections::BTreeSet;

/// What a marker may begin or end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MarkerMeaning {
    /// It begins calls of this form.
    Form(&'static Form),
    /// It begins reasoning.
    Reasoning,
    /// It ends reasoning, and the answer begins.
    Answer,
    /// It means nothing to a reader and is left out.
    Dropped,
    /// The same at the beginning of a message; elsewhere it is text.
    DroppedFirst,
    /// The same, for a word such as a role. A word frames nothing, so that a second one is text.
    DroppedWord,
    /// It begins the header of a message.
    Message,
    /// It begins a turn of the user or the result of a tool, which only a template writes: the
    /// model goes on in another role, so that nothing after it is a call. The flag: it counts at
    /// the beginning of a line only.
    Foreign(bool),
}

/// A marker, and what it may mean in any of the dialects.
#[derive(Debug)]
pub(crate) struct Marker {
    pub text: &'static str,
    pub meanings: Vec<MarkerMeaning>,
}

/// Everything that is searched for; see the module. Built once and shared by all streams of these
/// dialects.
#[derive(Debug)]
pub struct Look {
    /// In the order in which they were named.
    pub(crate) dialects: Vec<&'static Dialect>,
    markers: Vec<Marker>,
    /// The markers that begin with each byte, as a range of `markers`.
    ranges: Box<[(u16, u16); 256]>,
    /// Bytes at which the search stops: the first bytes of markers, backticks and tildes.
    stops: Box<[bool; 256]>,
    /// For each first byte, the second bytes of its markers, a bit each; all bits for backticks and
    /// tildes. It passes over most of the `<` and `[` of prose and code.
    seconds: Box<[[u64; 4]; 256]>,
    /// Forms that may begin a message without a marker.
    pub(crate) unmarked: Vec<&'static Form>,
    /// Forms of messages to a tool, each with the markers that its body may begin with.
    pub(crate) bodies: Vec<(&'static Form, Vec<&'static str>)>,
    /// The opening and closing markers of reasoning.
    pub(crate) reasoning: Vec<(&'static str, &'static str)>,
    /// Whether the prompt may have opened reasoning.
    pub(crate) prefilled: PromptReasoning,
    /// Forms whose marker ends reasoning that was not closed. The flag: for good, whatever comes
    /// later.
    pub(crate) ends: Vec<(&'static Form, bool)>,
    /// Whether messages have headers.
    pub(crate) has_messages: bool,
    /// Whether the first header may begin without a marker, since the prompt may end inside it.
    pub(crate) has_bare_headers: bool,
}

/// A name that no dialect has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDialect {
    /// The name as it was given.
    pub name: String,
    /// A name that it resembles.
    near: Option<&'static str>,
}

impl std::fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(near) = self.near else {
            return write!(
                f,
                "unknown dialect '{}', see tag-parse --list-dialects",
                self.name
            );
        };
        write!(
            f,
            "unknown dialect '{}', did you mean '{near}'? See tag-parse --list-dialects",
            self.name
        )
    }
}

impl std::error::Error for UnknownDialect {}

/// The name that shares the longest beginning with this one, at least three letters.
fn nearest(dialects: &Dialects, name: &str) -> Option<&'static str> {
    let shared = |other: &str| {
        name.chars()
            .zip(other.chars())
            .take_while(|(a, b)| a == b)
            .count()
    };
    dialects
        .all()
        .map(|d| d.name)
        .max_by_key(|d| shared(d))
        .filter(|d| shared(d) >= 3)
}

impl Look {
    /// Searches for the dialects of this list: names or aliases with commas between, or `auto` for
    /// the whole table.
    ///
    /// # Errors
    /// A name that is not in the table.
    pub fn new(names: &str) -> Result<Look, UnknownDialect> {
        Look::among(&Dialects::default(), names)
    }

    /// The same where a user's own dialects have names too.
    ///
    /// # Errors
    /// A name that none of `known` has.
    pub fn among(known: &Dialects, names: &str) -> Result<Look, UnknownDialect> {
        let mut dialects = Vec::new();
        for name in names
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            match known.named(name) {
                _ if name == "auto" => dialects.extend(known.all()),
                Some(dialect) => dialects.push(dialect),
                None => {
                    return Err(UnknownDialect {
                        name: name.to_owned(),
                        near: nearest(known, name),
                    });
                }
            }
        }
        Ok(Look::of(dialects))
    }

    /// Searches for these dialects.
    pub(crate) fn of(dialects: Vec<&'static Dialect>) -> Look {
        Look::with(dialects, |_| true)
    }

    /// Searches for all dialects, but for forms that prose can have, too, where they are not those
    /// of `own`: calls without a marker, fences, lines such as `Action: f`.
    pub(crate) fn certain(known: &Dialects, own: Option<&'static Dialect>) -> Look {
        let is_own = |d: &Dialect| own.is_some_and(|own| std::ptr::eq(own, d));
        // Of forms that are alike the first dialect's counts.
        let (first, others): (Vec<_>, Vec<_>) = known.all().partition(|d| is_own(d));
        Look::with([first, others].concat(), is_own)
    }

    /// Searches for these dialects. `reads_prose`: those of which forms count that prose can have,
    /// too.
    fn with(dialects: Vec<&'static Dialect>, reads_prose: impl Fn(&Dialect) -> bool) -> Look {
        let many = dialects.len() > 1;
        let mut markers: Vec<Marker> = Vec::new();
        let mut add = |text: &'static str, target: MarkerMeaning| match markers
            .iter_mut()
            .find(|m| m.text == text)
        {
            Some(marker) => marker.meanings.push(target),
            None => markers.push(Marker {
                text,
                meanings: vec![target],
            }),
        };
        let (mut unmarked, mut reasoning, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let mut bodies = Vec::new();
        let (mut prefilled, mut has_messages, mut has_bare_headers) =
            (PromptReasoning::No, false, false);
        for dialect in dialects.iter().filter(|d| !many || d.read_as.is_none()) {
            let framing = dialect.framing;
            let reads_prose = reads_prose(dialect);
            for form in dialect
                .forms
                .iter()
                .filter(|form| reads_prose || form.needs == KnownTool::Listed)
            {
                if let Some(body) = form.body() {
                    bodies.push((form, beginnings(&form.call[body..])));
                    continue;
                }
                if form.section.as_ref().is_none_or(|s| s.optional) {
                    match first(form.call) {
                        [] => unmarked.push(form),
                        marks => marks
                            .iter()
                            .for_each(|mark| add(mark, MarkerMeaning::Form(form))),
                    }
                }
                form.section
                    .iter()
                    .flat_map(|s| s.open)
                    .for_each(|mark| add(mark, MarkerMeaning::Form(form)));
                match framing.call_ends_reasoning {
                    ReasoningEnd::Never => {}
                    ReasoningEnd::UnlessClosed => ends.push((form, false)),
                    ReasoningEnd::Always => ends.push((form, true)),
                }
            }
            for pair in framing.reasoning {
                if !reasoning.contains(pair) {
                    reasoning.push(*pair);
                    add(pair.0, MarkerMeaning::Reasoning);
                    add(pair.1, MarkerMeaning::Answer);
                }
            }
            // Among many dialects a tag that is also plain markup, such as `<answer>`, counts only
            // where the message begins.
            let dropped = framing.dropped.iter().map(|t| (*t, !many || !is_plain(t)));
            for (token, anywhere) in
                dropped.chain(framing.dropped_first.iter().map(|t| (*t, false)))
            {
                let word = token.starts_with(char::is_alphabetic);
                add(
                    token,
                    if anywhere {
                        MarkerMeaning::Dropped
                    } else if word {
                        MarkerMeaning::DroppedWord
                    } else {
                        MarkerMeaning::DroppedFirst
                    },
                );
            }
            prefilled = match (prefilled, framing.prefilled) {
                (before, PromptReasoning::No) => before,
                (_, PromptReasoning::Usually) if !many => PromptReasoning::Usually,
                _ => PromptReasoning::Perhaps,
            };
            has_messages |= framing.messages;
            has_bare_headers |= framing.messages && reads_prose;
        }
        if has_messages {
            ["<|start|>", "<|channel|>"]
                .iter()
                .for_each(|token| add(token, MarkerMeaning::Message));
        }
        // The same turn may begin in the templates of several dialects.
        let all: BTreeSet<&str> = Dialect::all()
            .iter()
            .chain(dialects.iter().copied())
            .flat_map(|d| d.framing.foreign)
            .copied()
            .collect();
        all.into_iter()
            .for_each(|mark| add(mark, MarkerMeaning::Foreign(false)));
        let lines: BTreeSet<&str> = dialects
            .iter()
            .flat_map(|d| d.framing.foreign_lines)
            .copied()
            .collect();
        lines
            .into_iter()
            .for_each(|mark| add(mark, MarkerMeaning::Foreign(true)));
        // Words that open reasoning in one dialect are ordinary words in the others.
        if many {
            let means = |t: &MarkerMeaning| {
                matches!(
                    t,
                    MarkerMeaning::Form(_) | MarkerMeaning::Foreign(_) | MarkerMeaning::DroppedWord
                )
            };
            markers.retain(|m| {
                m.text.starts_with(|c: char| !c.is_alphabetic()) || m.meanings.iter().any(means)
            });
        }
        markers.sort_by_key(|m| m.text.as_bytes().first().copied());
        let mut look = Look {
            dialects,
            ranges: Box::new([(0, 0); 256]),
            stops: Box::new([false; 256]),
            seconds: Box::new([[0; 4]; 256]),
            unmarked,
            bodies,
            reasoning,
            prefilled,
            ends,
            has_messages,
            has_bare_headers,
            markers,
        };
        for (at, marker) in look.markers.iter().enumerate() {
            let Some(first) = marker.text.bytes().next() else {
                continue;
            };
            let range = &mut look.ranges[first as usize];
            let at = at as u16;
            *range = if range.1 == 0 {
                (at, at + 1)
            } else {
                (range.0, at + 1)
            };
            look.stops[first as usize] = true;
            match marker.text.as_bytes().get(1) {
                Some(second) => {
                    look.seconds[first as usize][*second as usize >> 6] |= 1 << (second & 63)
                }
                None => look.seconds[first as usize] = [u64::MAX; 4],
            }
        }
        for tick in [b'`', b'~'] {
            look.stops[tick as usize] = true;
            look.seconds[tick as usize] = [u64::MAX; 4];
        }
        look
    }

    /// Whether a call of this form ends reasoning; `true`: for good.
    pub(crate) fn ends(&self, form: &Form) -> Option<bool> {
        self.ends
            .iter()
            .find(|(ends, _)| std::ptr::eq(*ends, form))
            .map(|(_, always)| *always)
    }

    /// The longest marker that `text` begins with and that has a meaning which counts. One without
    /// hides no shorter one: where the text comes in pieces, it is not waited for.
    pub(crate) fn longest(
        &self,
        text: &str,
        mut counts: impl FnMut(MarkerMeaning) -> bool,
    ) -> Option<&Marker> {
        let begins = self
            .candidates(text)
            .iter()
            .filter(|m| text.starts_with(m.text));
        begins
            .filter(|m| m.meanings.iter().any(|t| counts(*t)))
            .max_by_key(|m| m.text.len())
    }

    /// The markers that `text` is the beginning of.
    pub(crate) fn partial(&self, text: &str) -> impl Iterator<Item = &Marker> {
        self.candidates(text)
            .iter()
            .filter(move |m| m.text.len() > text.len() && m.text.starts_with(text))
    }

    fn candidates(&self, text: &str) -> &[Marker] {
        let Some(first) = text.bytes().next() else {
            return &[];
        };
        let (from, to) = self.ranges[first as usize];
        &self.markers[from as usize..to as usize]
    }

    /// The index of the next byte at which something may begin, by this byte and the one after it.
    #[inline]
    pub(crate) fn stop(&self, bytes: &[u8]) -> Option<usize> {
        let mut i = 0;
        loop {
            i += bytes
                .get(i..)?
                .iter()
                .position(|c| self.stops[*c as usize])?;
            match bytes.get(i + 1) {
                Some(next)
                    if self.seconds[bytes[i] as usize][*next as usize >> 6] >> (next & 63) & 1
                        == 0 =>
                {
                    i += 1
                }
                _ => return Some(i),
            }
        }
    }

    /// Every marker and what it may mean.
    pub(crate) fn markers(&self) -> &[Marker] {
        &self.markers
    }

    /// The markers around reasoning, for tests.
    #[doc(hidden)]
    pub fn reasoning_marks(&self) -> impl Iterator<Item = &'static str> {
        self.reasoning
            .iter()
            .flat_map(|(open, close)| [*open, *close])
    }

    /// Every marker, for tests that make texts of them.
    #[doc(hidden)]
    pub fn texts(&self) -> impl Iterator<Item = &'static str> {
        self.markers.iter().map(|m| m.text)
    }
}

/// Whether a token looks like the markup of a document: `<answer>`.
fn is_plain(token: &str) -> bool {
    token.starts_with(['<', '[']) && !token.contains(['|', '｜', ':'])
}
