//! Differences while they are collected.

use super::found::{Difference, Locus, Side, What};
use super::recording::{Passage, Word};
use super::settings::Settings;
use super::text;

/// Differences while they are collected: up to a limit, each with the place at which the comparison
/// is.
#[derive(Debug)]
pub(super) struct Walk<'s> {
    pub settings: &'s Settings<'s>,
    pub at: Locus,
    limit: usize,
    pub found: Vec<Difference>,
}

impl<'s> Walk<'s> {
    /// A walk that ends after `limit` differences.
    pub fn new(settings: &'s Settings<'s>, limit: usize) -> Self {
        Walk {
            settings,
            at: Locus::default(),
            limit,
            found: Vec::new(),
        }
    }

    /// Whether `compare` finds nothing.
    pub fn is_equal(&self, compare: impl FnOnce(&mut Walk<'s>)) -> bool {
        let mut probe = Walk::new(self.settings, 1);
        compare(&mut probe);
        probe.found.is_empty()
    }

    /// Whether no more differences are wanted.
    pub fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }

    /// Adds a difference at the present place.
    pub fn add(&mut self, what: What, a: Side, b: Side) {
        self.push(what, None, a, b);
    }

    fn push(&mut self, what: What, character: Option<u64>, a: Side, b: Side) {
        if !self.is_full() {
            self.found.push(Difference {
                at: self.at.clone(),
                what,
                character,
                a,
                b,
            });
        }
    }

    /// Compares two texts.
    pub fn passage(&mut self, what: What, a: &Passage, b: &Passage) {
        let Some((at, bt)) = text::first_difference(&a.text, &b.text, self.settings) else {
            return;
        };
        let line = |passage: &Passage, at| passage.line(at);
        if a.is_empty() || b.is_empty() {
            let side = |passage: &Passage| match passage.is_empty() {
                true => Side::default(),
                false => Side::of(text::beginning(&passage.text), line(passage, 0)),
            };
            return self.add(what, side(a), side(b));
        }
        let character = a.text[..at].chars().count() as u64 + 1;
        let side =
            |passage: &Passage, at| Side::of(text::around(&passage.text, at), line(passage, at));
        self.push(what, Some(character), side(a, at), side(b, bt));
    }

    /// Compares two strings of the lines `lines`, which are shown whole where they are short.
    pub fn string(&mut self, what: What, a: &str, b: &str, lines: [u64; 2]) {
        let Some((at, bt)) = text::first_difference(a, b, self.settings) else {
            return;
        };
        let [line_a, line_b] = lines.map(Some);
        if text::is_short(a) && text::is_short(b) {
            return self.add(
                what,
                Side::of(text::beginning(a), line_a),
                Side::of(text::beginning(b), line_b),
            );
        }
        let character = a[..at].chars().count() as u64 + 1;
        self.push(
            what,
            Some(character),
            Side::of(text::around(a, at), line_a),
            Side::of(text::around(b, bt), line_b),
        );
    }

    /// Compares two words; `None` is a word that a recording lacks.
    pub fn word(&mut self, what: What, a: Option<&Word>, b: Option<&Word>) {
        if a.map(|word| &word.text) != b.map(|word| &word.text) {
            let side = |word: Option<&Word>| {
                word.map_or_else(Side::default, |word| {
                    Side::of(text::name(&word.text), Some(word.line))
                })
            };
            self.add(what, side(a), side(b));
        }
    }
}

/// How two lists lie beside each other: so many items are equal at the beginning, and so many at
/// the end. Where the lists are of one length, items are compared in their order, so the end is not
/// looked at.
pub(super) fn align(a: usize, b: usize, is_equal: impl Fn(usize, usize) -> bool) -> (usize, usize) {
    let shorter = a.min(b);
    let head = (0..shorter)
        .find(|at| !is_equal(*at, *at))
        .unwrap_or(shorter);
    if a == b {
        return (head, 0);
    }
    let left = shorter - head;
    let tail = (1..=left)
        .find(|back| !is_equal(a - back, b - back))
        .map_or(left, |back| back - 1);
    (head, tail)
}
