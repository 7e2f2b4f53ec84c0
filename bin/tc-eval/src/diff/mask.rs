//! Parts of texts that change from run to run, and are ignored: `--mask`, `--ignore-ids`,
//! `--ignore-dates`.

use anyhow::{Result, anyhow};
use regex::Regex;
use std::ops::Range;

/// Ids: UUIDs, digests, ULIDs, and what providers put before their own.
const IDS: [&str; 4] = [
    r"\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b",
    r"\b(?:[0-9a-f]{24,128}|[0-9A-F]{24,128})\b",
    r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b",
    r"\b(?:call|toolu|msg|resp|req|run|fc|rs|item|thread|chatcmpl|gen)[_-][0-9A-Za-z]{8,}\b",
];

/// Dates and times: ISO 8601, the dates of HTTP and mail, dates in English, times of the day, and
/// seconds or milliseconds since 1970.
const DATES: [&str; 5] = [
    r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2})\b)?)?",
    r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?\d{1,2}(?:st|nd|rd|th)? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?,? \d{4}\b",
    r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}\b",
    r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:[AaPp]\.?[Mm]\b|GMT\b|UTC\b))?",
    r"\b1[0-9]{9}(?:[0-9]{3})?\b",
];

/// The parts of texts that are ignored.
#[derive(Debug, Default)]
pub(super) struct Mask {
    patterns: Vec<Regex>,
}

impl Mask {
    /// From what was typed: regular expressions, and whether ids and dates are ignored.
    ///
    /// # Errors
    /// When an expression cannot be read.
    pub(super) fn new(typed: &[String], ids: bool, dates: bool) -> Result<Self> {
        let of = |wanted: bool, list: &'static [&'static str]| if wanted { list } else { &[] };
        let known = of(ids, &IDS).iter().chain(of(dates, &DATES)).copied();
        let patterns = typed
            .iter()
            .map(String::as_str)
            .chain(known)
            .map(|pattern| {
                Regex::new(pattern).map_err(|e| {
                    let text = e.to_string();
                    let what = text
                        .lines()
                        .rev()
                        .find(|line| !line.trim().is_empty())
                        .unwrap_or_default();
                    let what = what.trim().trim_start_matches("error: ");
                    anyhow!(
                        "--mask '{pattern}': {what}; write \\ before a character that means itself"
                    )
                })
            });
        Ok(Mask {
            patterns: patterns.collect::<Result<_>>()?,
        })
    }

    /// Whether nothing is ignored.
    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The places of the ignored parts of `text` in bytes, in order; parts that touch are one.
    pub(super) fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let found = self
            .patterns
            .iter()
            .flat_map(|pattern| pattern.find_iter(text).map(|found| found.range()));
        let mut found: Vec<Range<usize>> = found.filter(|range| !range.is_empty()).collect();
        found.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in found {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `text` with `_` in place of each ignored part.
    fn masked(mask: &Mask, text: &str) -> String {
        let mut out = text.to_owned();
        mask.ranges(text)
            .into_iter()
            .rev()
            .for_each(|range| out.replace_range(range, "_"));
        out
    }

    #[test]
    fn ids_and_dates_are_found_and_nothing_else() {
        let ids = Mask::new(&[], true, false).unwrap();
        let dates = Mask::new(&[], false, true).unwrap();
        for (text, without_ids, without_dates) in [
            (
                "id 123e4567-e89b-12d3-a456-426614174000.",
                "id _.",
                "id 123e4567-e89b-12d3-a456-426614174000.",
            ),
            (
                "call_AbC123xyz9 and toolu_01A2B3C4",
                "_ and _",
                "call_AbC123xyz9 and toolu_01A2B3C4",
            ),
            (
                "call_me, running, run-of-the-mill",
                "call_me, running, run-of-the-mill",
                "call_me, running, run-of-the-mill",
            ),
            (
                "01ARZ3NDEKTSV4RRFFQ69G5FAV",
                "_",
                "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            ),
            (
                "d41d8cd98f00b204e9800998ecf8427e",
                "_",
                "d41d8cd98f00b204e9800998ecf8427e",
            ),
            (
                "on 2026-07-25 at 10:15",
                "on 2026-07-25 at 10:15",
                "on _ at _",
            ),
            (
                "2026-07-25T10:15:30.5+02:00!",
                "2026-07-25T10:15:30.5+02:00!",
                "_!",
            ),
            (
                "Sat, 25 Jul 2026 10:15:00 GMT",
                "Sat, 25 Jul 2026 10:15:00 GMT",
                "_ _",
            ),
            (
                "July 25th, 2026, 9:05 pm",
                "July 25th, 2026, 9:05 pm",
                "_, _",
            ),
            (
                "t=1784973330123 or 1784973330",
                "t=1784973330123 or 1784973330",
                "t=_ or _",
            ),
            (
                "room 12, version 2.10.3, 4 of 5",
                "room 12, version 2.10.3, 4 of 5",
                "room 12, version 2.10.3, 4 of 5",
            ),
        ] {
            assert_eq!(
                (masked(&ids, text), masked(&dates, text)),
                (without_ids.into(), without_dates.into())
            );
        }
    }

    #[test]
    fn what_was_typed_is_ignored_and_parts_that_touch_are_one() {
        let mask = Mask::new(&["[0-9]".into(), "a*".into(), "b1".into()], false, false).unwrap();
        assert_eq!(
            (masked(&mask, "x12aab1c"), mask.is_empty()),
            ("x_c".into(), false)
        );
        let error = Mask::new(&["a(b".into()], false, false)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "--mask 'a(b': unclosed group; write \\ before a character that means itself"
        );
    }
}
