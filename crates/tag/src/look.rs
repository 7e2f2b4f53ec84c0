//! The dialects that are searched for in a stream, compiled into a single list of markers.

use crate::dialect::{
    Dialect, Form, KnownTool, PromptReasoning, ReasoningEnd, TextFraming, beginnings, first,
};
use crate::mark::Match;
use crate::table::{Dialects, UnknownDialect};

/// The meaning of a marker.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MarkerMeaning {
    /// The marker begins calls of this form.
    Form(&'static Form),
    /// The marker begins reasoning.
    Reasoning,
    /// The marker ends reasoning and begins the answer.
    Answer,
    /// The marker has no meaning for readers and is dropped.
    Dropped,
    /// The marker is dropped at the beginning of a message; elsewhere it is text.
    DroppedFirst,
    /// The marker is a word, such as a role, that is dropped once at the beginning of a message.
    /// Later occurrences are text.
    DroppedWord,
    /// The marker is the opening tag of another dialect's wrapper, if a call follows directly.
    Wrapper,
    /// The marker belongs to calls, possibly without its last character, but occurs where no call
    /// has it.
    Residue,
    /// The marker begins the header of a message.
    Message,
    /// The marker begins a user's turn or a tool's result, which only a template writes. The model
    /// continues in another role, so no later text is a call. The flag is set if the marker counts
    /// only at the beginning of a line.
    Foreign(bool),
}

/// The tokens in and around the headers of messages, without their last characters.
const HEADERS: [&str; 4] = ["<|channel|", "<|constrain|", "<|message|", "<|call|"];

/// Opening tags that models of any dialect write before a call of their own dialect
/// (<https://github.com/ollama/ollama/issues/16383>).
const WRAPPERS: [&str; 8] = [
    "<tool_calls>",
    "<tool_call>",
    "<function_calls>",
    "<function_call>",
    "<tool_use>",
    "<tools>",
    "<functions>",
    "<invocations>",
];

impl MarkerMeaning {
    /// Whether this meaning equals `other`. Only meanings that several dialects may give the same
    /// marker are compared.
    fn is(self, other: MarkerMeaning) -> bool {
        match (self, other) {
            (MarkerMeaning::Residue, MarkerMeaning::Residue) => true,
            (MarkerMeaning::Foreign(a), MarkerMeaning::Foreign(b)) => a == b,
            _ => false,
        }
    }

    /// Returns the form whose calls the marker begins, or `None` for any other meaning.
    pub(crate) fn form(&self) -> Option<&'static Form> {
        match self {
            MarkerMeaning::Form(form) => Some(form),
            _ => None,
        }
    }
}

/// A marker, with its possible meanings in all dialects.
#[derive(Debug)]
pub(crate) struct Marker {
    pub text: &'static str,
    pub meanings: Vec<MarkerMeaning>,
}

/// The markers collected so far, with one meaning per entry.
#[derive(Default)]
struct MarkerTable(Vec<(&'static str, MarkerMeaning)>);

impl MarkerTable {
    /// Adds a meaning to these markers.
    fn add<'m>(
        &mut self,
        texts: impl IntoIterator<Item = &'m &'static str>,
        meaning: MarkerMeaning,
    ) {
        self.0
            .extend(texts.into_iter().map(|text| (*text, meaning)));
    }

    /// Returns each marker once, in byte order, with its meanings in the order in which they were
    /// added.
    fn sorted(mut self) -> Vec<Marker> {
        self.0.sort_by_key(|(text, _)| *text);
        let same = self.0.chunk_by(|(text, _), (next, _)| text == next);
        let marker = |same: &[(&'static str, MarkerMeaning)]| {
            let mut meanings: Vec<MarkerMeaning> = same.iter().map(|(_, m)| *m).collect();
            meanings.dedup_by(|m, before| m.is(*before));
            Marker {
                text: same[0].0,
                meanings,
            }
        };
        same.map(marker).collect()
    }
}

/// All forms and markers that are searched for; see the module. Built once and shared by all
/// streams of these dialects.
#[derive(Debug)]
pub struct Look {
    /// The dialects, in the order in which they were named.
    pub(crate) dialects: Vec<&'static Dialect>,
    /// The markers in byte order.
    markers: Vec<Marker>,
    /// For each first byte, the range of its markers in `markers`.
    ranges: Box<[(u16, u16); 256]>,
    /// The bytes at which the search stops: the first bytes of markers, backticks and tildes.
    stops: Box<[bool; 256]>,
    /// For each first byte, a bit set of the second bytes of its markers; all bits for backticks
    /// and tildes. The search uses it to skip most `<` and `[` in prose and code.
    seconds: Box<[[u64; 4]; 256]>,
    /// Forms without an opening marker, which may begin a message.
    pub(crate) unmarked: Vec<&'static Form>,
    /// Forms of messages to a tool, each with the markers that may begin the message body.
    pub(crate) bodies: Vec<(&'static Form, Vec<&'static str>)>,
    /// The opening and closing markers of reasoning.
    pub(crate) reasoning: Vec<(&'static str, &'static str)>,
    /// Whether the prompt may have opened reasoning.
    pub(crate) prefilled: PromptReasoning,
    /// Forms whose marker ends unclosed reasoning. The flag is set if the reasoning ends for good,
    /// even if a closing marker follows later.
    pub(crate) ends: Vec<(&'static Form, bool)>,
    /// Whether messages have headers.
    pub(crate) has_messages: bool,
    /// Whether the first header may begin without a marker, because the prompt may end inside the
    /// header.
    pub(crate) has_bare_headers: bool,
}

impl Look {
    /// Searches for the dialects in this list: names or aliases separated by commas, or `auto` for
    /// the whole table.
    ///
    /// # Errors
    /// A name is not in the table.
    pub fn new(names: &str) -> Result<Look, UnknownDialect> {
        Look::among(&Dialects::default(), names)
    }

    /// Like [`Look::new`], with the dialects of `known`, which may include those of users' files.
    ///
    /// # Errors
    /// A name is not in `known`.
    pub fn among(known: &Dialects, names: &str) -> Result<Look, UnknownDialect> {
        let mut dialects = Vec::new();
        for name in names
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            if name == "auto" {
                dialects.extend(known.all());
            } else {
                dialects.push(known.find(name)?);
            }
        }
        Ok(Look::of(dialects))
    }

    /// Searches for these dialects.
    pub fn of(dialects: Vec<&'static Dialect>) -> Look {
        Look::with(dialects, |_| true)
    }

    /// Searches for all dialects. Forms that also occur in prose (calls without a marker, fences,
    /// lines such as `Action: f`) are searched for only if they belong to `own`.
    pub(crate) fn certain(known: &Dialects, own: Option<&'static Dialect>) -> Look {
        let is_own = |d: &Dialect| own.is_some_and(|own| std::ptr::eq(own, d));
        // If forms are identical, the first dialect wins.
        let (first, others): (Vec<_>, Vec<_>) = known.all().partition(|d| is_own(d));
        Look::with([first, others].concat(), is_own)
    }

    /// Searches for these dialects. `reads_prose` returns whether a dialect's forms that also occur
    /// in prose count.
    fn with(dialects: Vec<&'static Dialect>, reads_prose: impl Fn(&Dialect) -> bool) -> Look {
        let many = dialects.len() > 1;
        let mut markers = MarkerTable::default();
        let mut look = Look {
            dialects: Vec::new(),
            markers: Vec::new(),
            ranges: Box::new([(0, 0); 256]),
            stops: Box::new([false; 256]),
            seconds: Box::new([[0; 4]; 256]),
            unmarked: Vec::new(),
            bodies: Vec::new(),
            reasoning: Vec::new(),
            prefilled: PromptReasoning::No,
            ends: Vec::new(),
            has_messages: false,
            has_bare_headers: false,
        };
        for dialect in dialects.iter().filter(|d| !many || d.read_as.is_none()) {
            look.add_forms(dialect, reads_prose(dialect), &mut markers);
            look.add_framing(dialect.framing, many, &mut markers);
            look.has_bare_headers |= dialect.framing.messages && reads_prose(dialect);
        }
        if !markers.0.is_empty() {
            markers.add(&WRAPPERS, MarkerMeaning::Wrapper);
        }
        for form in dialects.iter().flat_map(|d| d.forms) {
            markers.add(form.residue, MarkerMeaning::Residue);
        }
        if look.has_messages {
            markers.add(&HEADERS, MarkerMeaning::Residue);
            markers.add(&["<|start|>", "<|channel|>"], MarkerMeaning::Message);
        }
        // Templates of several dialects may begin the same turn.
        for dialect in Dialect::all().iter().chain(dialects.iter().copied()) {
            markers.add(dialect.framing.foreign, MarkerMeaning::Foreign(false));
        }
        for dialect in &dialects {
            let lines = dialect.framing.foreign_lines;
            markers.add(lines, MarkerMeaning::Foreign(true));
        }
        look.markers = markers.sorted();
        // Words that open reasoning in one dialect are ordinary words in the others.
        if many {
            let means = |t: &MarkerMeaning| {
                matches!(
                    t,
                    MarkerMeaning::Form(_) | MarkerMeaning::Foreign(_) | MarkerMeaning::DroppedWord
                )
            };
            look.markers.retain(|m| {
                m.text.starts_with(|c: char| !c.is_alphabetic()) || m.meanings.iter().any(means)
            });
        }
        look.dialects = dialects;
        look.index();
        look
    }

    /// Adds the forms of a dialect. Forms that also occur in prose are added only if `reads_prose`.
    fn add_forms(&mut self, dialect: &Dialect, reads_prose: bool, markers: &mut MarkerTable) {
        for form in dialect.forms {
            if !reads_prose && form.needs != KnownTool::Listed {
                continue;
            }
            if let Some(body) = form.body() {
                self.bodies.push((form, beginnings(&form.call[body..])));
                continue;
            }
            if form.section.as_ref().is_none_or(|s| s.optional) {
                match first(form.call) {
                    [] => self.unmarked.push(form),
                    marks => markers.add(marks, MarkerMeaning::Form(form)),
                }
            }
            let sections = form.section.iter().flat_map(|s| s.open);
            markers.add(sections, MarkerMeaning::Form(form));
            match dialect.framing.call_ends_reasoning {
                ReasoningEnd::Never => {}
                ReasoningEnd::UnlessClosed => self.ends.push((form, false)),
                ReasoningEnd::Always => self.ends.push((form, true)),
            }
        }
    }

    /// Adds the markers around reasoning and answers. `many` means that other dialects are searched
    /// for too.
    fn add_framing(&mut self, framing: &TextFraming, many: bool, markers: &mut MarkerTable) {
        for pair in framing.reasoning {
            if !self.reasoning.contains(pair) {
                self.reasoning.push(*pair);
                markers.add([&pair.0], MarkerMeaning::Reasoning);
                markers.add([&pair.1], MarkerMeaning::Answer);
            }
        }
        // If there are many dialects, a tag that is also ordinary markup, such as `<answer>`,
        // counts only at the beginning of the message.
        for token in framing.dropped {
            let is_first = many && is_plain(token);
            markers.add([token], dropped(token, is_first));
        }
        for token in framing.dropped_first {
            markers.add([token], dropped(token, true));
        }
        self.prefilled = match (self.prefilled, framing.prefilled) {
            (before, PromptReasoning::No) => before,
            (_, PromptReasoning::Usually) if !many => PromptReasoning::Usually,
            _ => PromptReasoning::Perhaps,
        };
        self.has_messages |= framing.messages;
    }

    /// Whether all forms of this dialect are searched for.
    pub(crate) fn reads_all_of(&self, dialect: &Dialect) -> bool {
        let marked = self.markers.iter().flat_map(|marker| &marker.meanings);
        let marked = marked.filter_map(MarkerMeaning::form);
        let bodies = self.bodies.iter().map(|(form, _)| *form);
        let forms: Vec<&Form> = marked
            .chain(bodies)
            .chain(self.unmarked.iter().copied())
            .collect();
        let is_read = |form: &Form| forms.iter().any(|other| std::ptr::eq(*other, form));
        dialect.forms.iter().all(is_read)
    }

    /// Records the markers of each first byte and the bytes at which the search stops.
    fn index(&mut self) {
        for (at, marker) in self.markers.iter().enumerate() {
            let (Some(first), at) = (marker.text.bytes().next(), at as u16) else {
                continue;
            };
            let first = usize::from(first);
            let (from, to) = self.ranges[first];
            self.ranges[first] = (if to == 0 { at } else { from }, at + 1);
            self.stops[first] = true;
            match marker.text.as_bytes().get(1) {
                Some(second) => self.seconds[first][*second as usize >> 6] |= 1 << (second & 63),
                None => self.seconds[first] = [u64::MAX; 4],
            }
        }
        for tick in [b'`', b'~'] {
            self.stops[tick as usize] = true;
            self.seconds[tick as usize] = [u64::MAX; 4];
        }
    }

    /// Returns `None` if a call of this form does not end reasoning, and `Some(true)` if it ends
    /// reasoning for good.
    pub(crate) fn ends(&self, form: &Form) -> Option<bool> {
        self.ends
            .iter()
            .find(|(ends, _)| std::ptr::eq(*ends, form))
            .map(|(_, always)| *always)
    }

    /// Finds the longest marker at the beginning of `text` that has a meaning that counts here, and
    /// returns it with those meanings. A marker without such a meaning does not hide a shorter
    /// marker, because streamed text does not wait for it either.
    pub(crate) fn find(
        &self,
        text: &str,
        mut counts: impl FnMut(MarkerMeaning) -> bool,
    ) -> Match<(&'static str, Vec<MarkerMeaning>)> {
        let candidates = self.candidates(text.as_bytes());
        let longer = candidates.partition_point(|m| m.text <= text);
        let mut partial = candidates[longer..]
            .iter()
            .take_while(|m| m.text.starts_with(text));
        if partial.any(|m| m.meanings.iter().any(|t| counts(*t))) {
            return Match::Partial;
        }
        let Some(marker) = self.longest(text, &mut counts) else {
            return Match::No;
        };
        let meanings = marker.meanings.iter().copied();
        Match::Full((marker.text, meanings.filter(|t| counts(*t)).collect()))
    }

    /// Like `find`, but for text that nothing follows.
    pub(crate) fn longest(
        &self,
        text: &str,
        mut counts: impl FnMut(MarkerMeaning) -> bool,
    ) -> Option<&Marker> {
        self.beginnings(text)
            .find(|m| m.meanings.iter().any(|t| counts(*t)))
    }

    /// Returns the markers at the beginning of the text, longest first.
    fn beginnings<'l>(&'l self, text: &str) -> impl Iterator<Item = &'l Marker> {
        let mut text = text.as_bytes();
        let mut candidates = self.candidates(text);
        std::iter::from_fn(move || {
            loop {
                let end = candidates.partition_point(|m| m.text.as_bytes() <= text);
                let (last, before) = candidates[..end].split_last()?;
                candidates = before;
                let mark = last.text.as_bytes();
                let pairs = mark.iter().zip(text);
                let common = pairs.take_while(|(a, b)| a == b).count();
                // A longer common marker would sort between this marker and the text.
                text = &text[..common];
                if common == mark.len() {
                    return Some(last);
                }
            }
        })
    }

    /// Returns the markers that begin with the first byte of `text`.
    fn candidates(&self, text: &[u8]) -> &[Marker] {
        let Some(first) = text.first() else {
            return &[];
        };
        let (from, to) = self.ranges[usize::from(*first)];
        &self.markers[from as usize..to as usize]
    }

    /// Returns the index of the next byte at which a marker or quotation may begin, judged by this
    /// byte and the next one.
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

    /// Returns every marker with its possible meanings.
    pub(crate) fn markers(&self) -> &[Marker] {
        &self.markers
    }

    /// Returns the markers around reasoning, for tests.
    #[doc(hidden)]
    pub fn reasoning_marks(&self) -> impl Iterator<Item = &'static str> {
        self.reasoning
            .iter()
            .flat_map(|(open, close)| [*open, *close])
    }

    /// Returns every marker, for tests that build texts from markers.
    #[doc(hidden)]
    pub fn texts(&self) -> impl Iterator<Item = &'static str> {
        self.markers.iter().map(|m| m.text)
    }
}

/// Returns the meaning of a token that is dropped. `is_first` means only at the beginning of a
/// message.
fn dropped(token: &str, is_first: bool) -> MarkerMeaning {
    match is_first {
        false => MarkerMeaning::Dropped,
        true if token.starts_with(char::is_alphabetic) => MarkerMeaning::DroppedWord,
        true => MarkerMeaning::DroppedFirst,
    }
}

/// Whether a token looks like the markup of a document, such as `<answer>`.
fn is_plain(token: &str) -> bool {
    token.starts_with(['<', '[']) && !token.contains(['|', '｜', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_what_comparing_each_marker_finds() {
        let look = Look::new("auto").unwrap();
        let residue = |t: MarkerMeaning| matches!(t, MarkerMeaning::Residue);
        for marker in look.markers() {
            for rest in ["", ">", " a", "<|end|>"] {
                let text = format!("{}{rest}", marker.text);
                for end in (1..=text.len()).filter(|end| text.is_char_boundary(*end)) {
                    let text = &text[..end];
                    let begins = |m: &&Marker| text.starts_with(m.text);
                    let mut want: Vec<_> = look.markers().iter().filter(begins).collect();
                    want.sort_by_key(|m| std::cmp::Reverse(m.text.len()));
                    let want: Vec<_> = want.iter().map(|m| m.text).collect();
                    let found: Vec<_> = look.beginnings(text).map(|m| m.text).collect();
                    assert_eq!(found, want, "{text}");
                    for is_residue in [true, false] {
                        let counts = |t: MarkerMeaning| residue(t) == is_residue;
                        let may_become = |m: &Marker| {
                            m.text.len() > end
                                && m.text.starts_with(text)
                                && m.meanings.iter().any(|t| counts(*t))
                        };
                        let is_partial = matches!(look.find(text, counts), Match::Partial);
                        assert_eq!(is_partial, look.markers().iter().any(may_become), "{text}");
                    }
                }
            }
        }
    }
}
