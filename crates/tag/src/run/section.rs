//! Reads the text around the calls of a section.

use crate::calls::{FoundCalls, ReadStep, Why};
use crate::dialect::{CallPart, first};
use crate::mark::{Match, call_closer, find, space};
use crate::run::{FormPlace, GAP, Run};

const REPEATED: &str = "dropped a closing marker too many";

impl Run {
    pub(super) fn open(&mut self, text: &str) -> ReadStep {
        if let Some(section) = &self.form.section {
            match self.find(section.open, text) {
                Match::Full(n) => {
                    (self.in_section, self.place, self.waited) = (true, FormPlace::Inside, 0);
                    return ReadStep::On(n);
                }
                Match::Partial => return ReadStep::More(0),
                Match::No if !section.optional => {
                    return ReadStep::Fail(0, Why::NoSection);
                }
                Match::No => {}
            }
        }
        self.place = FormPlace::Part(0);
        ReadStep::On(0)
    }

    /// Reads the text in a section before its first call.
    pub(super) fn inside(&mut self, text: &str) -> ReadStep {
        let at = space(text);
        if let Some(failed) = self.gap(at, GAP) {
            return failed;
        }
        if at == text.len() {
            return ReadStep::More(at);
        }
        let close = self.form.section.as_ref().map_or(&[][..], |s| s.close);
        match self.find(close, &text[at..]) {
            // With an empty section the model states explicitly that it calls no tool.
            Match::Full(n) => ReadStep::Done(at + n),
            Match::Partial => ReadStep::More(at),
            Match::No => {
                let marks = first(self.form.call);
                self.place = match self.find(marks, &text[at..]) {
                    Match::Partial => return ReadStep::More(at),
                    // Another dialect writes JSON after the same marker, and no call begins in that
                    // JSON.
                    Match::No
                        if marks.is_empty()
                            || self.whole > 0
                            || text[at..].starts_with(['{', '[']) =>
                    {
                        FormPlace::Part(0)
                    }
                    Match::No => FormPlace::Noise,
                    Match::Full(_) => FormPlace::Part(0),
                };
                ReadStep::On(at)
            }
        }
    }

    /// Reads text of the answer between the section's opening marker and its first call. If this
    /// text is short, the call after it counts and is read by a new run.
    pub(super) fn noise(&mut self, text: &str) -> ReadStep {
        let close = self.form.section.as_ref().map_or(&[][..], |s| s.close);
        for (at, _) in text.char_indices() {
            let rest = &text[at..];
            match (
                self.find(first(self.form.call), rest),
                self.find(close, rest),
            ) {
                _ if self.waited + at > GAP => return ReadStep::Fail(at, Why::NoMark),
                (Match::Full(_), _) => {
                    self.place = FormPlace::Over;
                    return ReadStep::Back(self.waited);
                }
                (_, Match::Full(_)) => return ReadStep::Fail(at, Why::NoMark),
                (Match::Partial, _) | (_, Match::Partial) => {
                    self.waited += at;
                    return ReadStep::More(at);
                }
                _ => {}
            }
        }
        self.waited += text.len();
        ReadStep::More(text.len())
    }

    /// Reads the optional markers that may follow a complete call.
    pub(super) fn tail(&mut self, n: usize, text: &str) -> ReadStep {
        let at = space(text);
        self.tail = n;
        if at > GAP {
            self.place = FormPlace::Between;
            return ReadStep::On(0);
        }
        let from = n.min(self.form.call.len());
        let mut perhaps = false;
        for (n, part) in self.form.call.iter().enumerate().skip(from) {
            let marks = part.marks().unwrap_or_default();
            if let Some(length) = self.find(marks, &text[at..]).full_or(&mut perhaps) {
                self.place = FormPlace::Tail(n + 1);
                return ReadStep::On(at + length);
            }
        }
        if perhaps {
            return ReadStep::More(0);
        }
        self.place = FormPlace::Between;
        ReadStep::On(0)
    }

    /// Reads the text after a call: another call, the end of the section, or a superfluous marker.
    pub(super) fn between(&mut self, text: &str, calls: &mut FoundCalls) -> ReadStep {
        let at = space(text);
        if at > GAP {
            return ReadStep::Done(0);
        }
        let rest = &text[at..];
        let section = self.form.section.as_ref();
        let mut perhaps = rest.is_empty();
        if let Some(section) = section {
            if let Some(length) = self.find(section.close, rest).full_or(&mut perhaps) {
                // The marker also closes a call that had no opening marker of a section.
                self.place = FormPlace::Closed;
                return ReadStep::On(at + length);
            }
            if self.in_section {
                let between = section.between.trim();
                if !between.is_empty()
                    && let Some(after) = rest.strip_prefix(between)
                {
                    self.place = FormPlace::Inside;
                    return ReadStep::On(text.len() - after.len());
                }
                perhaps |= !between.is_empty() && between.starts_with(rest);
                let another = self.find(first(self.form.call), rest);
                if another.full_or(&mut perhaps).is_some() {
                    self.place = FormPlace::Part(0);
                    return ReadStep::On(at);
                }
            }
        }
        // A closing marker that the model wrote twice, or that belongs to another dialect. A fence
        // that opens the next call is not a closing marker.
        let another = find(first(self.form.call), rest);
        perhaps |= another == Match::Partial;
        let own = self.form.call.last().and_then(CallPart::marks);
        let own = own.filter(|_| self.form.call.len() > 1 && another == Match::No);
        let own = self.find(own.unwrap_or_default(), rest);
        if let Some(length) = own.full_or(&mut perhaps) {
            calls.note_of(REPEATED, &rest[..length]);
            return ReadStep::Done(at + length);
        }
        if let Some(length) = call_closer(rest).full_or(&mut perhaps) {
            calls.note_of(REPEATED, &rest[..length]);
            self.place = FormPlace::Tail(self.tail);
            return ReadStep::On(at + length);
        }
        if perhaps {
            ReadStep::More(0)
        } else {
            ReadStep::Done(0)
        }
    }
    /// Reads superfluous closing markers after the end of the section.
    pub(super) fn closed(&mut self, text: &str, calls: &mut FoundCalls) -> ReadStep {
        let at = space(text);
        if at > GAP {
            return ReadStep::Done(0);
        }
        let rest = &text[at..];
        let close = self.form.section.as_ref().map_or(&[][..], |s| s.close);
        let mut perhaps = rest.is_empty();
        let own = self.find(close, rest).full_or(&mut perhaps);
        let length = own.or_else(|| call_closer(rest).full_or(&mut perhaps));
        match length {
            Some(length) => {
                calls.note_of(REPEATED, &rest[..length]);
                ReadStep::On(at + length)
            }
            None if perhaps => ReadStep::More(0),
            None => ReadStep::Done(0),
        }
    }
}
