//! Reads the text of an open call with each form that may match, until one form is left or all have
//! found enough in common.

use crate::calls::{ArgumentsEnd, FoundCalls, Op, ReadStep, Why};
use crate::dialect::Form;
use crate::outlet::Prose;
use crate::run::Run;
use json::Balance;
use json::ToolList;

/// The initial capacity for text, in bytes: most calls arrive in many small pieces.
const ROOM: usize = 256;

/// One or more forms that read the same text.
#[derive(Debug)]
pub(super) struct Contest {
    candidates: Vec<FormCandidate>,
    /// The text since the last complete call. It is released if it turns out not to be a call.
    pub raw: String,
}

/// A form that reads the text.
#[derive(Debug)]
pub(super) struct FormCandidate {
    pub run: Run,
    pub calls: FoundCalls,
    /// How many bytes of [`Contest::raw`] the form has read.
    pub at: usize,
    pub step: ReadStep,
}

impl FormCandidate {
    fn new(run: Run, calls: FoundCalls) -> FormCandidate {
        FormCandidate {
            run,
            calls,
            at: 0,
            step: ReadStep::More(0),
        }
    }

    /// Whether the form reads a call: it has not failed, and is not searching for a call after
    /// other text.
    fn is_live(&self) -> bool {
        !self.has_failed() && !self.run.is_noise()
    }

    fn has_failed(&self) -> bool {
        matches!(self.step, ReadStep::Fail(..))
    }

    fn push(&mut self, raw: &str, tools: Option<&ToolList>, is_alone: bool) {
        loop {
            self.step = self
                .run
                .push(&raw[self.at..], tools, is_alone, &mut self.calls);
            match self.step {
                ReadStep::Back(n) => self.at -= n,
                ReadStep::On(n) => self.at += n,
                ReadStep::More(n)
                | ReadStep::Whole(n)
                | ReadStep::Done(n)
                | ReadStep::Fail(n, _) => {
                    self.at += n;
                    break;
                }
            }
        }
    }
}

impl Contest {
    /// Creates a contest of one or more forms. The first of identical candidates wins, and the form
    /// of the last call comes first.
    pub(super) fn new(mut forms: Vec<&'static Form>, last: Option<&'static Form>) -> Contest {
        forms.sort_by_key(|form| !last.is_some_and(|last| std::ptr::eq(last, *form)));
        let mut candidates: Vec<FormCandidate> = Vec::new();
        for form in forms {
            // A form that several dialects share is read only once.
            if !candidates
                .iter()
                .any(|c| std::ptr::eq(c.run.form().call, form.call))
            {
                candidates.push(FormCandidate::new(Run::new(form), FoundCalls::default()));
            }
        }
        Contest {
            candidates,
            raw: String::with_capacity(ROOM),
        }
    }

    /// Begins after this text, which no candidate reads.
    fn skip(&mut self, text: &str) {
        self.raw.push_str(text);
        self.candidates.iter_mut().for_each(|c| c.at = text.len());
    }

    /// Whether the text is more than the beginning of an answer: a candidate has read a marker that
    /// does not occur in ordinary text, or only white space has arrived since the last complete
    /// call.
    pub(super) fn is_marked(&self) -> bool {
        self.raw.trim_ascii().is_empty()
            || self
                .candidates
                .iter()
                .any(|c| c.is_live() && c.run.is_marked(None))
    }

    /// Whether the text consists only of a candidate's markers.
    pub(super) fn is_bare(&self) -> bool {
        self.candidates
            .iter()
            .any(|c| !c.has_failed() && c.at == self.raw.len() && c.run.is_bare())
    }

    /// Creates a contest of one form for a call that was named before the text.
    pub(super) fn named(form: &'static Form, name: &str) -> Contest {
        let mut calls = FoundCalls::default();
        let run = Run::named(form, name, &mut calls);
        Contest {
            candidates: vec![FormCandidate::new(run, calls)],
            raw: String::with_capacity(ROOM),
        }
    }

    /// Whether only one candidate is left.
    pub(super) fn is_alone(&self) -> bool {
        self.candidates.len() == 1
    }

    /// Returns the remaining candidate, or the first of several.
    pub(super) fn first(&mut self) -> Option<&mut FormCandidate> {
        self.candidates.first_mut()
    }

    /// Lets every candidate read on in [`Contest::raw`]. Returns whether nothing needs to be
    /// decided: only one candidate is left, and it needs more text.
    pub(super) fn push(&mut self, tools: Option<&ToolList>) -> bool {
        if let [winner] = &mut self.candidates[..] {
            winner.push(&self.raw, tools, true);
            return matches!(winner.step, ReadStep::More(_));
        }
        self.candidates
            .iter_mut()
            .for_each(|c| c.push(&self.raw, tools, false));
        // Candidates that still search for a call after other text decide nothing. If there is only
        // one other candidate, it continues as if it were alone.
        let has_noise = self.candidates.iter().any(|c| c.run.is_noise());
        let mut others = self.candidates.iter_mut().filter(|c| c.is_live());
        if let (
            Some(
                c @ FormCandidate {
                    step: ReadStep::More(_),
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

    /// If the whole piece is inside the arguments of the only remaining call, reads it and returns
    /// true; otherwise reads nothing.
    #[inline]
    pub(super) fn push_arguments(&mut self, text: &str) -> bool {
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

    /// Removes the candidates that failed. If all failed, keeps the candidate that read most, and
    /// returns how far it read and why it failed; otherwise returns `None`.
    pub(super) fn failure(&mut self) -> Option<(usize, Why)> {
        if self.candidates.iter().any(|c| !c.has_failed()) {
            self.candidates.retain(|c| !c.has_failed());
            return None;
        }
        self.keep_farthest();
        match self.candidates.first() {
            Some(FormCandidate {
                at,
                step: ReadStep::Fail(_, why),
                ..
            }) => Some((*at, *why)),
            _ => None,
        }
    }

    /// Keeps the candidate that has read most.
    pub(super) fn keep_farthest(&mut self) {
        // If two candidates read equally far, the one whose reason needs no warning wins.
        let is_quiet = |c: &FormCandidate| matches!(c.step, ReadStep::Fail(_, Why::NoCall));
        let farthest = self
            .candidates
            .iter()
            .enumerate()
            .max_by_key(|(n, c)| (c.at, is_quiet(c), std::cmp::Reverse(*n)));
        if let Some((n, _)) = farthest {
            self.keep(n);
        }
    }

    /// Keeps one candidate once any has a complete call, or all have begun to read arguments:
    /// waiting longer would delay the name. A candidate that still searches for a call after other
    /// text wins only if no other is left. Returns whether one candidate is left.
    pub(super) fn choose(&mut self) -> bool {
        if self.is_alone() {
            return true;
        }
        let live = self.candidates.iter().filter(|c| c.is_live()).count();
        let counts = |c: &FormCandidate| live == 0 || c.is_live();
        let is_whole = |c: &FormCandidate| matches!(c.step, ReadStep::Whole(_) | ReadStep::Done(_));
        let has_begun = |c: &FormCandidate| {
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
        // If several calls are complete, the form with more parts can read more of the following
        // text.
        let length = |c: &FormCandidate| (c.run.form().section.is_some(), c.run.form().call.len());
        let chosen = match whole.max_by_key(|(n, c)| (length(c), std::cmp::Reverse(*n))) {
            Some((n, _)) => Some(n),
            None if self.candidates.iter().all(|c| !c.is_live() || has_begun(c)) => {
                self.candidates.iter().position(FormCandidate::is_live)
            }
            None => None,
        };
        chosen.is_some_and(|n| self.keep(n))
    }

    /// Ends the text, and keeps the first candidate whose call is complete.
    ///
    /// # Errors
    /// Returns why the last candidate's call is incomplete, and keeps the candidate that read most.
    pub(super) fn finish(&mut self, cut: bool, tools: Option<&ToolList>) -> Result<(), Why> {
        let mut failure = Why::EndInCall;
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

/// The readings that failed at the next byte. The byte is not read in these ways again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exclusion {
    #[default]
    Nothing,
    /// Forms without a marker, which may begin a message.
    Unmarked,
    /// Also markers.
    All,
    /// Also wrappers: the byte is text.
    Wrapped,
}

// A call, from its first marker to the end of its last marker.

/// A call, several related calls, or text that may still turn out to be a call.
#[derive(Debug)]
pub(super) struct CallReading {
    /// The kind of the surrounding text. A call that counts ends reasoning.
    pub within: Prose,
    /// The readings of the first byte that have failed if this text is not a call.
    pub exclusion: Exclusion,
    pub status: CallStatus,
    pub contest: Contest,
    /// How many bytes before the first marker belong to another dialect's wrapper.
    pub wrapper: usize,
}

/// How much was emitted of the text that [`Contest`] keeps.
#[derive(Debug)]
pub(super) enum CallStatus {
    /// Nothing was emitted: the text contains no name so far.
    Nothing,
    /// A call that is incomplete. The byte that closes its arguments is held back until the call is
    /// complete, so that nobody runs a call that may still turn out to be text.
    Open {
        gate: CallGate,
        /// Whether the end of reasoning may still retract the call, so that its last byte waits for
        /// the end of the text.
        waits: bool,
    },
    /// A complete call.
    Complete,
    /// Nothing was emitted: the call follows a quotation mark. The call is read to its end, so that
    /// its content is not mistaken for another call, and is released as text.
    Quoted,
    /// Nothing was emitted: the tool is not listed. The call is read and released like a quoted
    /// call.
    Unlisted {
        /// Whether the same text contains a call that counts, so that the text cannot be released.
        after_call: bool,
    },
    /// Nothing was emitted after an unlisted call was released. Text of the same section is
    /// released too.
    Released,
}

impl CallReading {
    /// Creates a call before its first byte.
    pub(super) fn new(
        contest: Contest,
        within: Prose,
        is_quoted: bool,
        exclusion: Exclusion,
    ) -> Box<CallReading> {
        let status = if is_quoted {
            CallStatus::Quoted
        } else {
            CallStatus::Nothing
        };
        Box::new(CallReading {
            within,
            exclusion,
            status,
            contest,
            wrapper: 0,
        })
    }

    /// Records that the call is in this wrapper, which no form reads.
    pub(super) fn wrap(&mut self, wrapper: &str) {
        self.wrapper = wrapper.len();
        self.contest.skip(wrapper);
    }

    /// Whether another event may arrive before the rest of the call: part of the call was emitted,
    /// or its marker, which does not occur in ordinary text, was read.
    pub(super) fn goes_on(&self) -> bool {
        match self.status {
            CallStatus::Nothing => self.contest.is_marked(),
            CallStatus::Open { .. } | CallStatus::Complete => true,
            CallStatus::Quoted | CallStatus::Unlisted { .. } | CallStatus::Released => false,
        }
    }
}

impl CallStatus {
    /// Whether the current call is not emitted and will become text.
    pub(super) fn is_withheld(&self) -> bool {
        matches!(
            self,
            CallStatus::Quoted | CallStatus::Unlisted { .. } | CallStatus::Released
        )
    }

    /// Whether arguments are emitted as they arrive.
    pub(super) fn is_direct(&self) -> bool {
        match self {
            CallStatus::Open { gate, .. } => !gate.is_closed(),
            _ => false,
        }
    }
}

// Holds back the end of a call that the text may still retract: the text after the arguments may
// show that it is not a call, or reasoning may end after it.

/// Passes on the arguments of one call, except from the byte that closes them, so that nobody takes
/// the call for complete.
#[derive(Debug, Default)]
pub(super) struct CallGate {
    balance: Balance,
    is_closed: bool,
    held: String,
}

impl CallGate {
    /// Whether the arguments are complete, so that all following text is held back.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the part of this piece that may be emitted now. `end` comes from the engine, so that
    /// most pieces are not searched for the end a second time.
    pub(super) fn pass<'t>(&mut self, text: &'t str, end: ArgumentsEnd) -> &'t str {
        if self.is_closed {
            self.held.push_str(text);
            return "";
        }
        // A bracket or a quotation mark closes arguments.
        let last = match end {
            ArgumentsEnd::Later => None,
            ArgumentsEnd::Here => text.rfind(['}', ']', '"']),
            ArgumentsEnd::Unknown => self.balance.push(text.as_bytes()).map(|end| end - 1),
        };
        let Some(last) = last else { return text };
        let (now, held) = text.split_at(last);
        self.is_closed = true;
        self.held.push_str(held);
        now
    }

    /// Returns the bytes that were held back.
    pub(super) fn into_held(self) -> String {
        self.held
    }
}
