//! The positions at which a law splits, truncates or damages a text.
//!
//! A law that must hold at every byte is tested at the positions that are most likely to fail: the
//! first and last bytes, the marks of the text's kind, and further positions chosen by a seed.
//! `LAWS=full` tests every byte. The seed is the same in every run, so that a failure is
//! reproducible and a change fails only for its own faults. Other seeds find nothing that
//! `LAWS=full` does not. `LAWS_SEED=n` sets another seed. A failure prints the seed.

use crate::Random;
use crate::same::{Lines, same};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{LazyLock, Once};

/// A feature of a text at which splits often fail.
#[derive(Clone, Copy, Debug)]
pub enum Mark<'m> {
    /// Runs of line ends, which end lines and frames, with the byte before and after the run.
    LineEnds,
    /// Escape sequences in JSON.
    Escapes,
    /// Multi-byte characters.
    Wide,
    /// Runs of these ASCII characters, such as those at the start and end of markers.
    Signs(&'m str),
    /// Occurrences of these texts.
    Texts(&'m [&'m str]),
}

/// The marks of an API's response body.
pub const BODY: &[Mark<'static>] = &[
    Mark::LineEnds,
    Mark::Escapes,
    Mark::Wide,
    // The texts that end a response or a call: a connection lost after one of them has another
    // meaning than before it.
    Mark::Texts(&["[DONE]", "finish_reason", "_stop", ".done", ".completed"]),
];

/// The marks of a text with calls: the characters at which markers of dialects begin and end.
pub const MARKUP: &[Mark<'static>] = &[
    Mark::Signs("<>[]{}|`:=\"'/"),
    Mark::LineEnds,
    Mark::Escapes,
    Mark::Wide,
];

/// How many positions of a text are tested; `LAWS=full` tests all.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Positions at each end of the text.
    pub ends: usize,
    /// Positions at marks of each kind, chosen by the seed.
    pub marks: usize,
    /// Positions anywhere, chosen by the seed.
    pub further: usize,
    /// The average distance in bytes between two positions at which the same reading is split.
    pub apart: usize,
}

impl Sample {
    /// For a text of some kilobytes.
    pub const WIDE: Sample = Sample {
        ends: 16,
        marks: 40,
        further: 200,
        apart: 512,
    };
    /// For each of hundreds of texts.
    pub const NARROW: Sample = Sample {
        ends: 2,
        marks: 5,
        further: 8,
        apart: 128,
    };
    /// For each of thousands of texts.
    pub const FEW: Sample = Sample {
        ends: 1,
        marks: 1,
        further: 2,
        apart: 48,
    };

    /// Returns the sorted positions in `all` to test, from 0 to its length.
    pub fn places(self, all: &[u8], marks: &[Mark<'_>]) -> Vec<usize> {
        if is_full() {
            return (0..=all.len()).collect();
        }
        print_seed();
        let mut random = Random::new(hash(all) ^ *SEED);
        let mut places = BTreeSet::new();
        places.extend(0..=self.ends.min(all.len()));
        places.extend(all.len().saturating_sub(self.ends)..=all.len());
        for mark in marks {
            let mut found = mark.places(all);
            for _ in 0..self.marks.min(found.len()) {
                places.insert(found.swap_remove(random.below(found.len())));
            }
        }
        places.extend((0..self.further).map(|_| random.below(all.len() + 1)));
        places.into_iter().collect()
    }

    /// Returns those of the positions that are between characters.
    pub fn between(self, text: &str, marks: &[Mark<'_>]) -> Vec<usize> {
        let mut places = self.places(text.as_bytes(), marks);
        places.retain(|at| text.is_char_boundary(*at));
        places
    }

    /// Reads `all` in two pieces for each of `places`. Returns the positions of the first split
    /// whose result differs from `want`, with the result; `None` if no result differs.
    ///
    /// A long text is split at several positions in each reading, since otherwise the cost would
    /// grow with the square of its length. If the result differs, each of these positions is tested
    /// alone.
    pub fn first_split<T: PartialEq>(
        self,
        all: &[u8],
        places: &[usize],
        want: &T,
        mut read: impl FnMut(&[&[u8]]) -> T,
    ) -> Option<(Vec<usize>, T)> {
        let at_once = if is_full() {
            1
        } else {
            (all.len() / self.apart).max(1)
        };
        let groups = places.len().div_ceil(at_once);
        for first in 0..groups {
            // Adjacent positions are in different groups.
            let group: Vec<usize> = places[first..].iter().copied().step_by(groups).collect();
            let got = read(&pieces(all, &group));
            if got == *want {
                continue;
            }
            let alone = group.iter().filter(|_| group.len() > 1);
            for at in alone {
                let got = read(&pieces(all, &[*at]));
                if got != *want {
                    return Some((vec![*at], got));
                }
            }
            return Some((group, got));
        }
        None
    }
}

impl Mark<'_> {
    /// Returns the positions at all occurrences: both sides of each, and the bytes inside or next
    /// to its ends.
    fn places(&self, all: &[u8]) -> Vec<usize> {
        let mut places = BTreeSet::new();
        for range in self.find(all) {
            match self {
                Mark::LineEnds => {
                    places.extend(range.start.saturating_sub(1)..=range.start + 1);
                    places.extend(range.end - 1..=(range.end + 1).min(all.len()));
                }
                Mark::Escapes | Mark::Wide => places.extend(range.start..=range.end),
                Mark::Signs(_) | Mark::Texts(_) => {
                    places.extend([range.start, range.start + 1, range.end - 1, range.end]);
                }
            }
        }
        places.into_iter().collect()
    }

    /// Returns the ranges at which the mark occurs in a text.
    fn find(&self, all: &[u8]) -> Vec<Range<usize>> {
        match self {
            Mark::LineEnds => runs(all, "\r\n"),
            Mark::Signs(signs) => runs(all, signs),
            Mark::Escapes => {
                let mut out = Vec::new();
                let mut at = 0;
                while let Some(from) = all[at..].iter().position(|b| *b == b'\\') {
                    let from = at + from;
                    let is_number = all.get(from + 1) == Some(&b'u');
                    at = (from + if is_number { 6 } else { 2 }).min(all.len());
                    out.push(from..at);
                }
                out
            }
            Mark::Wide => {
                let end = |from: usize| {
                    let rest = all[from + 1..].iter();
                    from + 1 + rest.take_while(|b| (0x80..0xc0).contains(*b)).count()
                };
                let starts = (0..all.len()).filter(|at| all[*at] >= 0xc0);
                starts.map(|from| from..end(from)).collect()
            }
            Mark::Texts(texts) => {
                let mut out = Vec::new();
                for text in texts.iter().map(|text| text.as_bytes()) {
                    let starts = all.windows(text.len()).enumerate();
                    let starts = starts.filter(|(_, part)| *part == text);
                    out.extend(starts.map(|(at, _)| at..at + text.len()));
                }
                out
            }
        }
    }
}

/// Returns the runs of the characters `of`.
fn runs(all: &[u8], of: &str) -> Vec<Range<usize>> {
    let is_of = |byte: &u8| of.as_bytes().contains(byte);
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in (0..all.len()).filter(|at| is_of(&all[*at])) {
        match out.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => out.push(at..at + 1),
        }
    }
    out
}

/// Whether laws are tested at every position.
pub fn is_full() -> bool {
    std::env::var_os("LAWS").is_some_and(|v| v == "full")
}

/// The seed that chooses positions in this run.
static SEED: LazyLock<u64> = LazyLock::new(|| match std::env::var("LAWS_SEED") {
    Ok(seed) => seed.parse().expect("LAWS_SEED is a number"),
    Err(_) => 7,
});

/// Makes each panic print the seed, so that a failing test shows it.
fn print_seed() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            print(panic);
            #[allow(clippy::print_stderr, reason = "the report of a test that fails")]
            {
                eprintln!("{}", sampled());
            }
        }));
    });
}

/// Says which positions were tested, for the report of a law that failed.
pub fn sampled() -> String {
    if is_full() {
        "places: all, since LAWS=full".to_owned()
    } else {
        format!(
            "places: a sample by LAWS_SEED={}; LAWS=full tries all",
            *SEED
        )
    }
}

/// Returns the FNV hash of a text, so that each text gets positions of its own.
pub fn hash(all: &[u8]) -> u64 {
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    all.iter().fold(0xcbf2_9ce4_8422_2325, fnv)
}

/// Checks that reading `all` gives the same result whole, byte by byte, and split at each position
/// of the sample.
pub fn no_split_shows<T: Lines + PartialEq>(
    name: &str,
    all: &[u8],
    marks: &[Mark<'_>],
    read: impl Fn(&[&[u8]]) -> T,
) {
    let want = read(&[all]);
    same(&read(&all.chunks(1).collect::<Vec<_>>()), &want, || {
        format!("{name} byte by byte")
    });
    let places = Sample::WIDE.places(all, marks);
    if let Some((at, got)) = Sample::WIDE.first_split(all, &places, &want, read) {
        same(&got, &want, || format!("{name} split at {at:?}"));
    }
}

/// Whether to test text `number` of many: one in `every`, chosen by the seed, or all with
/// `LAWS=full`.
pub fn is_tried(number: usize, every: usize) -> bool {
    print_seed();
    is_full() || Random::new(number as u64 ^ (*SEED << 32)).below(every) == 0
}

/// Like [`is_tried`], for a text with a name.
pub fn is_named_tried(name: &str, every: usize) -> bool {
    is_tried(hash(name.as_bytes()) as usize, every)
}

/// Returns how many items a test generates: `sample`, or `full` with `LAWS=full`.
pub fn count<T>(sample: T, full: T) -> T {
    if is_full() { full } else { sample }
}

/// Returns the text, split at these positions.
fn pieces<'t>(all: &'t [u8], places: &[usize]) -> Vec<&'t [u8]> {
    let mut out = Vec::with_capacity(places.len() + 1);
    let mut from = 0;
    for at in places.iter().copied().chain([all.len()]) {
        out.push(&all[from..at]);
        from = at;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{BODY, Mark, Sample, is_full, is_tried};

    /// Returns the positions at the marks only.
    fn tried(text: &str, mark: Mark<'_>) -> Vec<usize> {
        let marks = Sample {
            ends: 0,
            marks: 99,
            further: 0,
            apart: 99,
        };
        let mut places = marks.places(text.as_bytes(), &[mark]);
        places.retain(|at| *at > 0 && *at < text.len());
        places
    }

    #[test]
    fn both_sides_of_each_mark_are_tried() {
        if is_full() {
            return;
        }
        assert_eq!(
            tried("data: a\r\n\r\ndata: b", Mark::LineEnds),
            [6, 7, 8, 10, 11, 12]
        );
        assert_eq!(tried(r#""ab\ncd""#, Mark::Escapes), [3, 4, 5]);
        assert_eq!(tried(r"ab\u00e9cd", Mark::Escapes).len(), 7);
        assert_eq!(tried("ab☕cd", Mark::Wide), [2, 3, 4, 5]);
        assert_eq!(
            tried("ab<|call|>cd", Mark::Signs("<|>")),
            [2, 3, 4, 8, 9, 10]
        );
        assert_eq!(tried("ab[DONE]cd", Mark::Texts(&["[DONE]"])), [2, 3, 7, 8]);
    }

    #[test]
    fn the_sample_of_a_long_text_is_bounded_and_has_its_ends() {
        if is_full() {
            return;
        }
        let text = "data: {\"a\": \"é\\n\"}\n\n".repeat(5000);
        let places = Sample::WIDE.places(text.as_bytes(), BODY);
        assert!(places.is_sorted() && places.len() < 500, "{}", places.len());
        let ends = [0, 1, text.len() - 1, text.len()];
        assert!(ends.iter().all(|at| places.contains(at)));
        assert_eq!(places, Sample::WIDE.places(text.as_bytes(), BODY));
        assert_eq!(Sample::FEW.places(b"", BODY), [0]);
    }

    /// Uses a reader that forgets a line end before a piece.
    #[test]
    fn a_split_that_shows_is_found_among_several_and_named() {
        let text = "some words\n".repeat(400);
        let read = |pieces: &[&[u8]]| {
            let length = |piece: &[u8]| piece.len() - usize::from(piece.starts_with(b"\n"));
            pieces.iter().map(|piece| length(piece)).sum::<usize>()
        };
        let places = Sample::WIDE.places(text.as_bytes(), BODY);
        let found = Sample::WIDE.first_split(text.as_bytes(), &places, &text.len(), read);
        let (at, got) = found.expect("a split that shows");
        assert_eq!((at.len(), got), (1, text.len() - 1));
        assert_eq!(text.as_bytes()[at[0]], b'\n');
    }

    #[test]
    fn one_in_some_is_tried() {
        let tried = (0..8000).filter(|number| is_tried(*number, 8)).count();
        assert!((800..1200).contains(&tried) || is_full(), "{tried}");
    }
}
