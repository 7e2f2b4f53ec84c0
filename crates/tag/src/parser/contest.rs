//! The text of an open call, read by each form that it may be, until one is left or what they have
//! in common is enough.

use crate::calls::{FoundCalls, NO_CALL, Op, Step};
use crate::dialect::Form;
use crate::run::Run;
use json::ToolList;

/// The room for text at first, in bytes: most calls come in many small pieces.
const ROOM: usize = 256;

/// Forms that read the same text; at least one.
#[derive(Debug)]
pub(super) struct Contest {
    candidates: Vec<Candidate>,
    /// The text since the last complete call. It is released when it turns out not to be a call.
    pub raw: String,
}

/// A form that reads the text.
#[derive(Debug)]
pub(super) struct Candidate {
    pub run: Run,
    pub calls: FoundCalls,
    /// How many bytes of [`Contest::raw`] the form has read.
    pub at: usize,
    pub step: Step,
}

impl Candidate {
    fn new(run: Run, calls: FoundCalls) -> Candidate {
        Candidate {
            run,
            calls,
            at: 0,
            step: Step::More(0),
        }
    }

    /// Whether it reads a call: it has not failed, and does not search for one after other text.
    fn is_live(&self) -> bool {
        !self.has_failed() && !self.run.is_noise()
    }

    fn has_failed(&self) -> bool {
        matches!(self.step, Step::Fail(..))
    }

    fn push(&mut self, raw: &str, tools: Option<&ToolList>, is_alone: bool) {
        loop {
            self.step = self
                .run
                .push(&raw[self.at..], tools, is_alone, &mut self.calls);
            match self.step {
                Step::Back(n) => self.at -= n,
                Step::On(n) => self.at += n,
                Step::More(n) | Step::Whole(n) | Step::Done(n) | Step::Fail(n, _) => {
                    self.at += n;
                    break;
                }
            }
        }
    }
}

impl Contest {
    /// A contest of these forms, of which there is at least one. Of candidates that are alike the
    /// first wins: the form of the last call comes first.
    pub fn new(mut forms: Vec<&'static Form>, last: Option<&'static Form>) -> Contest {
        forms.sort_by_key(|form| !last.is_some_and(|last| std::ptr::eq(last, *form)));
        let mut candidates: Vec<Candidate> = Vec::new();
        for form in forms {
            // What several dialects write in the same way is read once.
            if !candidates
                .iter()
                .any(|c| std::ptr::eq(c.run.form().call, form.call))
            {
                candidates.push(Candidate::new(Run::new(form), FoundCalls::default()));
            }
        }
        Contest {
            candidates,
            raw: String::with_capacity(ROOM),
        }
    }

    /// Whether the text is more than the beginning of an answer: a candidate has read a marker that
    /// does not occur in ordinary text, or all that came after the last complete call is white
    /// space.
    pub fn is_marked(&self) -> bool {
        self.raw.trim_ascii().is_empty()
            || self
                .candidates
                .iter()
                .any(|c| c.is_live() && c.run.is_marked(""))
    }

    /// Whether the text is markers of a candidate and nothing more.
    pub fn is_bare(&self) -> bool {
        self.candidates
            .iter()
            .any(|c| !c.has_failed() && c.at == self.raw.len() && c.run.is_bare())
    }

    /// One form, whose call was named by what came before the text.
    pub fn named(form: &'static Form, name: &str) -> Contest {
        let mut calls = FoundCalls::default();
        let run = Run::named(form, name, &mut calls);
        Contest {
            candidates: vec![Candidate::new(run, calls)],
            raw: String::with_capacity(ROOM),
        }
    }

    /// Whether one candidate is left.
    pub fn is_alone(&self) -> bool {
        self.candidates.len() == 1
    }

    /// The one candidate that is left, or the first of several.
    pub fn first(&mut self) -> Option<&mut Candidate> {
        self.candidates.first_mut()
    }

    /// Every candidate reads on in [`Contest::raw`]. Returns whether there is nothing to decide:
    /// one candidate is left, and it needs more text.
    pub fn push(&mut self, tools: Option<&ToolList>) -> bool {
        if let [winner] = &mut self.candidates[..] {
            winner.push(&self.raw, tools, true);
            return matches!(winner.step, Step::More(_));
        }
        self.candidates
            .iter_mut()
            .for_each(|c| c.push(&self.raw, tools, false));
        // Those that search after other text decide nothing: a single candidate beside them may go
        // on as if it were alone.
        let has_noise = self.candidates.iter().any(|c| c.run.is_noise());
        let mut others = self.candidates.iter_mut().filter(|c| c.is_live());
        if let (
            Some(
                c @ Candidate {
                    step: Step::More(_),
                    ..
                },
            ),
            None,
        ) = (others.next(), others.next())
            && has_noise
        {
            c.push(&self.raw, tools, true);
        }
        false
    }

    /// Reads a piece that is all inside the arguments of the one call that is left, and returns
    /// true; or reads nothing.
    #[inline]
    pub fn push_arguments(&mut self, text: &str) -> bool {
        let [winner] = &mut self.candidates[..] else {
            return false;
        };
        let is_read = winner.at == self.raw.len() && winner.run.arguments(text, &mut winner.calls);
        if is_read {
            self.raw.push_str(text);
            winner.at = self.raw.len();
        }
        is_read
    }

    /// Takes out the candidates that failed. When all did, the one that read most is left: returns
    /// how far it came, and why no further.
    pub fn failure(&mut self) -> Option<(usize, &'static str)> {
        if self.candidates.iter().any(|c| !c.has_failed()) {
            self.candidates.retain(|c| !c.has_failed());
            return None;
        }
        self.keep_farthest();
        match self.candidates.first() {
            Some(Candidate {
                at,
                step: Step::Fail(_, why),
                ..
            }) => Some((*at, why)),
            _ => None,
        }
    }

    /// Keeps the candidate that has read most.
    pub fn keep_farthest(&mut self) {
        // Of two that came as far, the one whose reason needs no warning.
        let is_quiet = |c: &Candidate| matches!(c.step, Step::Fail(_, NO_CALL));
        let farthest = self
            .candidates
            .iter()
            .enumerate()
            .max_by_key(|(n, c)| (c.at, is_quiet(c), std::cmp::Reverse(*n)));
        if let Some((n, _)) = farthest {
            self.keep(n);
        }
    }

    /// Keeps one candidate, once one of them has a complete call, or all have begun to read
    /// arguments: to wait longer would delay the name. Those that search for a call after other
    /// text come last. Returns whether one is left.
    pub fn choose(&mut self) -> bool {
        if self.is_alone() {
            return true;
        }
        let live = self.candidates.iter().filter(|c| c.is_live()).count();
        let counts = |c: &Candidate| live == 0 || c.is_live();
        let is_whole = |c: &Candidate| matches!(c.step, Step::Whole(_) | Step::Done(_));
        let has_begun = |c: &Candidate| {
            c.calls
                .ops
                .iter()
                .any(|op| live == 1 || matches!(op, Op::Arguments(..)))
        };
        let whole = self
            .candidates
            .iter()
            .enumerate()
            .filter(|(_, c)| counts(c) && is_whole(c));
        // Of several, the form with more parts can read more of what may follow.
        let length = |c: &Candidate| (c.run.form().section.is_some(), c.run.form().call.len());
        let chosen = match whole.max_by_key(|(n, c)| (length(c), std::cmp::Reverse(*n))) {
            Some((n, _)) => Some(n),
            None if self.candidates.iter().all(|c| !c.is_live() || has_begun(c)) => {
                self.candidates.iter().position(Candidate::is_live)
            }
            None => None,
        };
        chosen.is_some_and(|n| self.keep(n))
    }

    /// The text has ended. The first candidate whose call is complete is left.
    ///
    /// # Errors
    /// Why the last candidate's call is not complete; the candidate that read most is left.
    pub fn finish(&mut self, cut: bool, tools: Option<&ToolList>) -> Result<(), &'static str> {
        let mut failure = "the text ends before the call is complete";
        for n in 0..self.candidates.len() {
            let c = &mut self.candidates[n];
            match c.run.finish(&self.raw, c.at, cut, tools, &mut c.calls) {
                Ok(at) => {
                    c.at = at;
                    self.keep(n);
                    return Ok(());
                }
                Err(why) => failure = why,
            }
        }
        self.keep_farthest();
        Err(failure)
    }

    fn keep(&mut self, n: usize) -> bool {
        self.candidates.swap(0, n);
        self.candidates.truncate(1);
        true
    }
}
