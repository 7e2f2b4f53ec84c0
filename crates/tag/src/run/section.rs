//! The text around the calls of a section.

use super::state::{GAP, NO_MARK, Place, Run};
use crate::calls::{FoundCalls, Step};
use crate::dialect::CallPart;
use crate::form::first;
use crate::mark::{Match, find, space};

impl Run {
    pub(super) fn open(&mut self, text: &str) -> Step {
        if let Some(section) = &self.form.section {
            match self.find(section.open, text) {
                Match::Full(n) => {
                    (self.in_section, self.place, self.waited) = (true, Place::Inside, 0);
                    return Step::On(n);
                }
                Match::Partial => return Step::More(0),
                Match::No if !section.optional => {
                    return Step::Fail(0, "the opening marker of the section is missing");
                }
                Match::No => {}
            }
        }
        self.place = Place::Part(0);
        Step::On(0)
    }

    /// In a section before its first call.
    pub(super) fn inside(&mut self, text: &str) -> Step {
        let at = space(text);
        if let Some(failed) = self.gap(at, GAP) {
            return failed;
        }
        if at == text.len() {
            return Step::More(at);
        }
        let close = self.form.section.as_ref().map_or(&[][..], |s| s.close);
        match self.find(close, &text[at..]) {
            // A section without a call says explicitly that the model calls no tool.
            Match::Full(n) => Step::Done(at + n),
            Match::Partial => Step::More(at),
            Match::No => {
                let marks = first(self.form.call);
                self.place = match self.find(marks, &text[at..]) {
                    Match::Partial => return Step::More(at),
                    // After the same marker another dialect writes JSON, in which no call begins.
                    Match::No
                        if marks.is_empty()
                            || self.whole > 0
                            || text[at..].starts_with(['{', '[']) =>
                    {
                        Place::Part(0)
                    }
                    Match::No => Place::Noise,
                    Match::Full(_) => Place::Part(0),
                };
                Step::On(at)
            }
        }
    }

    /// After the section's opening marker and before its first call: text of the answer. If it is
    /// short, the call after it counts, in a run of its own.
    pub(super) fn noise(&mut self, text: &str) -> Step {
        let close = self.form.section.as_ref().map_or(&[][..], |s| s.close);
        for (at, _) in text.char_indices() {
            let rest = &text[at..];
            match (
                self.find(first(self.form.call), rest),
                self.find(close, rest),
            ) {
                _ if self.waited + at > GAP => return Step::Fail(at, NO_MARK),
                (Match::Full(_), _) => {
                    self.place = Place::Over;
                    return Step::Back(self.waited);
                }
                (_, Match::Full(_)) => return Step::Fail(at, NO_MARK),
                (Match::Partial, _) | (_, Match::Partial) => {
                    self.waited += at;
                    return Step::More(at);
                }
                _ => {}
            }
        }
        self.waited += text.len();
        Step::More(text.len())
    }

    /// The markers that may follow a complete call: each may be missing.
    pub(super) fn tail(&mut self, n: usize, text: &str) -> Step {
        let at = space(text);
        if at > GAP {
            self.place = Place::Between;
            return Step::On(0);
        }
        let marks = self.form.call[n.min(self.form.call.len())..]
            .iter()
            .enumerate()
            .filter_map(|(k, part)| match part {
                CallPart::Mark(marks) | CallPart::Maybe { marks, .. } => Some((n + k + 1, *marks)),
                _ => None,
            });
        let mut perhaps = false;
        for (next, marks) in marks {
            match self.find(marks, &text[at..]) {
                Match::Full(length) => {
                    self.place = Place::Tail(next);
                    return Step::On(at + length);
                }
                Match::Partial => perhaps = true,
                Match::No => {}
            }
        }
        if perhaps {
            return Step::More(0);
        }
        self.place = Place::Between;
        Step::On(0)
    }

    /// After a call: another, the end of the section, or a marker too many.
    pub(super) fn between(&mut self, text: &str, calls: &mut FoundCalls) -> Step {
        let at = space(text);
        if at > GAP {
            return Step::Done(0);
        }
        let rest = &text[at..];
        let section = self.form.section.as_ref();
        let mut perhaps = rest.is_empty();
        if let Some(section) = section {
            match self.find(section.close, rest) {
                Match::Full(length) => {
                    // It closes a call without the section's opening marker, too.
                    return Step::Done(at + length);
                }
                Match::Partial => perhaps = true,
                Match::No => {}
            }
            if self.in_section {
                let between = section.between.trim();
                if !between.is_empty()
                    && let Some(after) = rest.strip_prefix(between)
                {
                    self.place = Place::Inside;
                    return Step::On(text.len() - after.len());
                }
                perhaps |= !between.is_empty() && between.starts_with(rest);
                match self.find(first(self.form.call), rest) {
                    Match::Full(_) => {
                        self.place = Place::Part(0);
                        return Step::On(at);
                    }
                    Match::Partial => perhaps = true,
                    Match::No => {}
                }
            }
        }
        // A closing marker that the model wrote twice. A fence that opens the next call is not one.
        let another = find(first(self.form.call), rest);
        perhaps |= another == Match::Partial;
        if let Some(CallPart::Mark(marks) | CallPart::Maybe { marks, .. }) = self.form.call.last()
            && self.form.call.len() > 1
            && another == Match::No
        {
            match self.find(marks, rest) {
                Match::Full(length) => {
                    calls.note("dropped a repeated closing marker");
                    return Step::Done(at + length);
                }
                Match::Partial => perhaps = true,
                Match::No => {}
            }
        }
        if perhaps {
            Step::More(0)
        } else {
            Step::Done(0)
        }
    }
}
