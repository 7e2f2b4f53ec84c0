//! The text around the calls of a section.

use super::{GAP, GAPS, NO_MARK, Next, Place, Run, first};
use crate::calls::{Calls, Step};
use crate::dialect::Part;
use crate::mark::{Found, find, space};

impl Run {
    pub(super) fn open(&mut self, text: &str) -> Next {
        if let Some(section) = &self.form.section {
            match self.find(section.open, text) {
                Found::Here(n) => {
                    (self.section, self.place, self.waited) = (true, Place::Inside, 0);
                    return Next::On(n);
                }
                Found::Perhaps => return Next::Step(Step::More(0)),
                Found::No if !section.optional => {
                    return Next::Step(Step::Fail(0, "the opening marker of the section is missing"));
                }
                Found::No => {}
            }
        }
        self.place = Place::Part(0);
        Next::On(0)
    }

    /// In a section before its first call.
    pub(super) fn inside(&mut self, text: &str) -> Next {
        let at = space(text);
        if let Some(failed) = self.gap(at, GAP) {
            return failed;
        }
        if at == text.len() {
            return Next::Step(Step::More(at));
        }
        let close = self.form.section.as_ref().map_or(&[][..], |s| s.close);
        match self.find(close, &text[at..]) {
            // A section without a call is an explicit "no call".
            Found::Here(n) => Next::Step(Step::Done(at + n)),
            Found::Perhaps => Next::Step(Step::More(at)),
            Found::No => {
                let marks = first(self.form.call);
                self.place = match self.find(marks, &text[at..]) {
                    Found::Perhaps => return Next::Step(Step::More(at)),
                    // JSON is what another dialect writes behind the same marker: no call begins inside it.
                    Found::No if marks.is_empty() || self.whole > 0 || text[at..].starts_with(['{', '[']) => {
                        Place::Part(0)
                    }
                    Found::No => Place::Noise,
                    Found::Here(_) => Place::Part(0),
                };
                Next::On(at)
            }
        }
    }

    /// Behind the section's opening marker and before its first call: text of the answer, which hides no call if it is short. The
    /// marker belongs to that call.
    pub(super) fn noise(&mut self, text: &str) -> Next {
        let close = self.form.section.as_ref().map_or(&[][..], |s| s.close);
        for (at, _) in text.char_indices() {
            let rest = &text[at..];
            match (self.find(first(self.form.call), rest), self.find(close, rest)) {
                _ if self.waited + at > GAP => return Next::Step(Step::Fail(at, NO_MARK)),
                (Found::Here(_), _) => {
                    self.place = Place::Over;
                    return Next::Step(Step::Back(self.waited));
                }
                (_, Found::Here(_)) => return Next::Step(Step::Fail(at, NO_MARK)),
                (Found::Perhaps, _) | (_, Found::Perhaps) => {
                    self.waited += at;
                    return Next::Step(Step::More(at));
                }
                _ => {}
            }
        }
        self.waited += text.len();
        Next::Step(Step::More(text.len()))
    }

    /// Takes this much white space; the failure, at the byte that is one too many, where it goes on for longer than `most`.
    pub(super) fn gap(&mut self, at: usize, most: usize) -> Option<Next> {
        let room = most.saturating_sub(self.waited);
        self.waited += at;
        (at > room).then_some(Next::Step(Step::Fail(room + 1, GAPS)))
    }

    /// The markers that may follow when the call is whole already: each may be missing.
    pub(super) fn tail(&mut self, n: usize, text: &str) -> Next {
        let at = space(text);
        if at > GAP {
            self.place = Place::Between;
            return Next::On(0);
        }
        let marks =
            self.form.call[n.min(self.form.call.len())..].iter().enumerate().filter_map(|(k, part)| match part {
                Part::Mark(marks) | Part::Maybe { marks, .. } => Some((n + k + 1, *marks)),
                _ => None,
            });
        let mut perhaps = false;
        for (next, marks) in marks {
            match self.find(marks, &text[at..]) {
                Found::Here(length) => {
                    self.place = Place::Tail(next);
                    return Next::On(at + length);
                }
                Found::Perhaps => perhaps = true,
                Found::No => {}
            }
        }
        if perhaps {
            return Next::Step(Step::More(0));
        }
        self.place = Place::Between;
        Next::On(0)
    }

    /// After a call: another, the end of the section, or a marker too many.
    pub(super) fn between(&mut self, text: &str, calls: &mut Calls) -> Next {
        let at = space(text);
        if at > GAP {
            return Next::Step(Step::Done(0));
        }
        let rest = &text[at..];
        let section = self.form.section.as_ref();
        let mut perhaps = rest.is_empty();
        if let Some(section) = section {
            match self.find(section.close, rest) {
                Found::Here(length) => {
                    // Without its opening marker it still closes the call that stood alone.
                    return Next::Step(Step::Done(at + length));
                }
                Found::Perhaps => perhaps = true,
                Found::No => {}
            }
            if self.section {
                let between = section.between.trim();
                if !between.is_empty()
                    && let Some(after) = rest.strip_prefix(between)
                {
                    self.place = Place::Inside;
                    return Next::On(text.len() - after.len());
                }
                perhaps |= !between.is_empty() && between.starts_with(rest);
                match self.find(first(self.form.call), rest) {
                    Found::Here(_) => {
                        self.place = Place::Part(0);
                        return Next::On(at);
                    }
                    Found::Perhaps => perhaps = true,
                    Found::No => {}
                }
            }
        }
        // A closing marker that was written twice, unless the next call begins like it, as fences do.
        let another = find(first(self.form.call), rest);
        perhaps |= another == Found::Perhaps;
        if let Some(Part::Mark(marks) | Part::Maybe { marks, .. }) = self.form.call.last()
            && self.form.call.len() > 1
            && another == Found::No
        {
            match self.find(marks, rest) {
                Found::Here(length) => {
                    calls.note("dropped a repeated closing marker");
                    return Next::Step(Step::Done(at + length));
                }
                Found::Perhaps => perhaps = true,
                Found::No => {}
            }
        }
        Next::Step(if perhaps { Step::More(0) } else { Step::Done(0) })
    }
}
