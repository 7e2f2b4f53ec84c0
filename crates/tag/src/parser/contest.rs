//! A call, read by each form that it may be until one is left, or until what they have in common is enough.

use super::{Flow, Gate, Mode, Parser, STEP, Tried, floor};
use crate::calls::{Calls, End, NO_CALL, NO_TOOL, Op, Step};
use crate::dialect::Form;
use crate::outlet::{Outlet, Piece};
use crate::run::Run;
use json::Tools;
use std::borrow::Cow;

/// A form being read while others may be too.
pub(super) struct Candidate {
    run: Run,
    calls: Calls,
    /// How much of [`Parser::raw`] it took.
    at: usize,
    /// What it said last.
    step: Step,
}

impl Candidate {
    /// Whether it reads a call: it has not failed, and does not look for one behind other text.
    fn is_live(&self) -> bool {
        !matches!(self.step, Step::Fail(..)) && !self.run.is_noise()
    }

    /// Reads on in the text of the open call.
    fn push(&mut self, raw: &str, tools: Option<&Tools>, alone: bool) {
        loop {
            self.step = self.run.push(&raw[self.at..], tools, alone, &mut self.calls);
            match self.step {
                Step::Back(n) => self.at -= n,
                Step::More(n) | Step::Whole(n) | Step::Done(n) | Step::Fail(n, _) => {
                    self.at += n;
                    break;
                }
            }
        }
    }
}

impl Parser {
    /// Reads the text that follows by each of these forms.
    pub(crate) fn begin(&mut self, mut forms: Vec<&'static Form>, reasoning: bool) {
        self.raw.clear();
        self.candidates.clear();
        (self.muted, self.said, self.whole) = (self.cited, false, false);
        forms.sort_by_key(|form| !self.used.is_some_and(|used| std::ptr::eq(used, *form)));
        for form in forms {
            // What is written in the same way by several dialects is read once.
            if self.candidates.iter().any(|c| std::ptr::eq(c.run.form().call, form.call)) {
                continue;
            }
            self.candidates.push(Candidate {
                run: Run::new(form),
                calls: Calls::default(),
                at: 0,
                step: Step::More(0),
            });
        }
        self.mode = Mode::Call { reasoning };
    }

    /// Reads the text that follows by this form, as a call of this name.
    pub(crate) fn begin_named(&mut self, form: &'static Form, name: &str, out: &mut dyn Outlet) {
        self.raw.clear();
        self.candidates.clear();
        (self.muted, self.cited, self.said, self.whole) = (false, false, false, false);
        let mut calls = Calls::default();
        let run = Run::named(form, name, &mut calls);
        self.candidates.push(Candidate { run, calls, at: 0, step: Step::More(0) });
        self.mode = Mode::Call { reasoning: false };
        self.write(out);
    }

    /// A call. While several forms are read, a character is taken at a time, so that which of them is kept depends on the text
    /// alone and not on how it was cut.
    pub(super) fn call(&mut self, text: &str, out: &mut dyn Outlet) -> Flow {
        let alone = self.candidates.len() == 1;
        let first = text.chars().next().map_or(1, char::len_utf8);
        let take = if alone { floor(text, STEP).max(first) } else { first };
        self.raw.push_str(&text[..take]);
        if alone && self.more() {
            self.write(out);
            return Flow::Took(take);
        }
        self.called(take, out)
    }

    /// A call, after this much was added to its text. A candidate that is alone has been pushed on already.
    pub(super) fn called(&mut self, take: usize, out: &mut dyn Outlet) -> Flow {
        let mut pushed = self.candidates.len() == 1;
        loop {
            let alone = self.candidates.len() == 1;
            if alone && !std::mem::take(&mut pushed) && self.more() {
                self.write(out);
                return Flow::Took(take);
            }
            if !alone {
                self.candidates.iter_mut().for_each(|c| c.push(&self.raw, self.tools.as_deref(), false));
                let noise = self.candidates.iter().any(|c| c.run.is_noise());
                let mut others = self.candidates.iter_mut().filter(|c| c.is_live());
                if let (Some(c @ Candidate { step: Step::More(_), .. }), None) = (others.next(), others.next())
                    && noise
                {
                    c.push(&self.raw, self.tools.as_deref(), true);
                }
            }
            if let Some((at, why)) = self.all_failed() {
                if alone {
                    // What it said before would have been written in other pieces.
                    self.write(out);
                }
                return back(self.failed(at, why, out), take);
            }
            if self.candidates.len() > 1 && !self.choose() {
                return Flow::Took(take);
            }
            self.write(out);
            match self.candidates[0].step {
                Step::Whole(_) => self.settle(out),
                Step::Done(_) => return back(self.over(out), take),
                // What is left alone may know a name where it could not before.
                Step::More(_) if !alone => {}
                _ => return Flow::Took(take),
            }
        }
    }

    /// Pushes the one candidate on; whether it only waits for more.
    pub(super) fn more(&mut self) -> bool {
        let Some(c) = self.candidates.first_mut() else { return false };
        c.push(&self.raw, self.tools.as_deref(), true);
        matches!(c.step, Step::More(_))
    }

    /// Takes out the candidates that failed. When all did, the last to fail is left: gives how far it came, and why no further.
    fn all_failed(&mut self) -> Option<(usize, &'static str)> {
        if self.candidates.iter().any(|c| !matches!(c.step, Step::Fail(..))) {
            self.candidates.retain(|c| !matches!(c.step, Step::Fail(..)));
            return None;
        }
        self.keep_farthest();
        match self.candidates.first() {
            Some(Candidate { at, step: Step::Fail(_, why), .. }) => Some((*at, why)),
            _ => None,
        }
    }

    /// Keeps the candidate that has read most.
    fn keep_farthest(&mut self) {
        // Of two that came as far, the one that knows why there need not be a call.
        let quiet = |c: &Candidate| matches!(c.step, Step::Fail(_, NO_CALL));
        let farthest = self.candidates.iter().enumerate().max_by_key(|(n, c)| (c.at, quiet(c), std::cmp::Reverse(*n)));
        if let Some((n, _)) = farthest {
            self.candidates.swap(0, n);
            self.candidates.truncate(1);
        }
    }

    /// Keeps one candidate, once one of them has a whole call or all have begun to read its arguments: what they have in common
    /// up to there is no reason to wait longer. Those that look for a call behind other text come last.
    fn choose(&mut self) -> bool {
        let live = self.candidates.iter().filter(|c| c.is_live()).count();
        let counts = |c: &Candidate| live == 0 || c.is_live();
        let whole = |c: &Candidate| matches!(c.step, Step::Whole(_) | Step::Done(_));
        let begun = |c: &Candidate| c.calls.ops.iter().any(|op| live == 1 || matches!(op, Op::Arguments(_)));
        // Of several the one with more to it knows more of what may follow.
        let found = self.candidates.iter().enumerate().filter(|(_, c)| counts(c) && whole(c));
        let length = |c: &Candidate| (c.run.form().section.is_some(), c.run.form().call.len());
        let at = match found.max_by_key(|(at, c)| (length(c), std::cmp::Reverse(*at))) {
            Some((at, _)) => Some(at),
            None if self.candidates.iter().all(|c| !c.is_live() || begun(c)) => {
                self.candidates.iter().position(Candidate::is_live)
            }
            None => None,
        };
        let Some(at) = at else { return false };
        self.candidates.swap(0, at);
        self.candidates.truncate(1);
        true
    }

    /// Writes what the one candidate has said.
    pub(super) fn write(&mut self, out: &mut dyn Outlet) {
        let Some(candidate) = self.candidates.first_mut().filter(|c| !c.calls.ops.is_empty()) else { return };
        // Most pieces are from the middle of the arguments.
        if let ([Op::Arguments(_)], End::Later) = (&candidate.calls.ops[..], candidate.calls.end)
            && !self.muted
            && self.head.is_none()
            && !self.gate.as_ref().is_some_and(Gate::is_closed)
        {
            let arguments = Some(&candidate.calls.text[..]);
            out.call(Piece { index: self.begun - 1, arguments, ..Piece::default() });
            return candidate.calls.clear();
        }
        let (form, at) = (candidate.run.form(), candidate.at);
        let mut calls = std::mem::take(&mut candidate.calls);
        let mut from = 0;
        let mut piece: Option<Piece<'_>> = None;
        for op in &calls.ops {
            if matches!(op, Op::Name(_) | Op::Note(_))
                && let Some(piece) = piece.take()
            {
                self.put(piece, at, out);
            }
            let text = match *op {
                Op::Name(to) | Op::Id(to) | Op::Arguments(to) => {
                    Some(&calls.text[std::mem::replace(&mut from, to)..to])
                }
                Op::Done | Op::Note(_) => None,
            };
            if let (Op::Name(_), Some(name)) = (op, text) {
                self.muted = self.cited || self.tools.as_ref().is_some_and(|tools| !tools.knows(name));
                if !self.muted {
                    self.name(form, out);
                }
            }
            if self.muted {
                continue;
            }
            if let Op::Note(what) = op {
                self.warn("tag_note", what, "", out);
                continue;
            }
            let piece = piece.get_or_insert(Piece { index: self.begun - 1, ..Piece::default() });
            match op {
                Op::Name(_) => piece.name = text,
                Op::Id(_) => piece.id = text,
                Op::Arguments(_) => {
                    piece.arguments = match (&mut self.gate, text) {
                        (Some(gate), Some(text)) => Some(gate.pass(text, calls.end)).filter(|text| !text.is_empty()),
                        _ => text,
                    }
                }
                Op::Done => {
                    self.open = false;
                    match self.gate.take() {
                        Some(gate) => self.waiting.push((piece.index, gate.tail)),
                        None => piece.done = true,
                    }
                }
                Op::Note(_) => {}
            }
        }
        if let Some(piece) = piece {
            self.put(piece, at, out);
        }
        calls.clear();
        self.candidates[0].calls = calls;
    }

    /// Writes a piece of the call of which `at` bytes have been read.
    fn put(&mut self, piece: Piece<'_>, at: usize, out: &mut dyn Outlet) {
        if piece != (Piece { index: piece.index, ..Piece::default() }) {
            self.limit(at, out);
            self.emit(piece, out);
        }
    }

    /// A call that counts begins, in this form.
    fn name(&mut self, form: &'static Form, out: &mut dyn Outlet) {
        let always = self.look.ends(form) == Some(true);
        if always {
            self.unknown = false;
            self.decide(false, out);
        }
        if let Mode::Call { reasoning } = &mut self.mode
            && std::mem::take(reasoning)
        {
            // Should the reasoning's end come all the same, the call was only thought of.
            self.thought = (!always).then_some(self.begun);
            self.restart();
        }
        self.gate = self.may_be_rehearsed().then(Gate::default);
        self.begun += 1;
        (self.open, self.said, self.used) = (true, true, Some(form));
    }

    /// The call at hand is whole: its text is not needed any more.
    fn settle(&mut self, out: &mut dyn Outlet) {
        let Some(c) = self.candidates.first_mut() else { return };
        let at = std::mem::take(&mut c.at);
        c.step = Step::More(0);
        self.pass_by(at, true, out);
        self.raw.drain(..at);
    }

    /// The calls are over. Gives the text after them.
    fn over(&mut self, out: &mut dyn Outlet) -> String {
        let at = self.candidates.first().map_or(0, |c| c.at);
        // Behind a section's marker and other text its calls are still that section's.
        self.used = self.candidates.first().map(|c| c.run.form()).or(self.used);
        let told = self.whole;
        self.pass_by(at, !told, out);
        let rest = self.raw.split_off(at);
        self.raw.clear();
        self.candidates.clear();
        let reasoning = matches!(self.mode, Mode::Call { reasoning: true });
        self.mode = if reasoning { Mode::Reasoning } else { Mode::Text };
        if !std::mem::take(&mut self.muted) {
            self.blank = true;
            self.quote.restart();
        }
        rest
    }

    /// The first `at` bytes of the open call were read. They are text where its tool is not known, which a warning says once.
    fn pass_by(&mut self, at: usize, warn: bool, out: &mut dyn Outlet) {
        self.whole = true;
        let raw = std::mem::take(&mut self.raw);
        if !self.muted || std::mem::take(&mut self.said) {
            if self.begun == 0 {
                // A section without a call.
                self.decide(false, out);
            }
            self.leave_out(&raw[..at], out);
        } else {
            if warn && !self.cited {
                let message = format!("not a call: {NO_TOOL}");
                self.warn("tag_unparsed", &message, &raw[..at], out);
            }
            let call = self.mode.clone();
            self.mode = if call == (Mode::Call { reasoning: true }) { Mode::Reasoning } else { Mode::Text };
            self.literal(&raw[..at], out);
            self.mode = call;
            if self.cited {
                // Backticks in a quoted call open no code behind it.
                self.quote.restart();
            }
        }
        self.said = false;
        self.raw = raw;
    }

    /// It was no call, as was clear after `at` bytes: its text is given back, to be read again where nothing but markers and names
    /// was read.
    fn failed(&mut self, at: usize, why: &'static str, out: &mut dyn Outlet) -> String {
        let open = std::mem::take(&mut self.open);
        if open {
            self.limit(at, out);
            self.gate = None;
            self.retract(self.begun - 1, "unparsed", out);
        }
        let candidate = self.candidates.pop();
        self.candidates.clear();
        let reasoning = matches!(self.mode, Mode::Call { reasoning: true });
        self.mode = if reasoning { Mode::Reasoning } else { Mode::Text };
        let mut raw = std::mem::take(&mut self.raw);
        let shallow = candidate.as_ref().is_none_or(|c| c.run.is_shallow());
        if !self.cited && (open || candidate.is_some_and(|c| c.run.is_marked(why))) {
            let message = format!("not a call: {why}");
            self.warn("tag_unparsed", &message, &raw[..at], out);
        }
        if shallow || at == 0 {
            self.refused = if shallow { self.tried } else { Tried::all() };
            return raw;
        }
        let rest = raw.split_off(at);
        self.literal(&raw, out);
        rest
    }

    /// The text ended in a call. Gives false when something is left to be finished.
    pub(super) fn finish_call(&mut self, cut: bool, out: &mut dyn Outlet) -> bool {
        let tools = self.tools.clone();
        let mut why = "the text ends before the call is complete";
        let raw = &self.raw;
        let found = self.candidates.iter_mut().position(|c| {
            match c.run.finish(raw, c.at, cut, tools.as_deref(), &mut c.calls) {
                Ok(at) => {
                    c.at = at;
                    true
                }
                Err(reason) => {
                    why = reason;
                    false
                }
            }
        });
        let Some(found) = found else {
            self.keep_farthest();
            // Where the text ends inside a call, all of it is that call's text.
            let rest = self.failed(self.raw.len(), why, out);
            if self.refused == Tried::default() {
                self.literal(&rest, out);
                return true;
            }
            self.eat(Cow::Owned(rest), out);
            return false;
        };
        self.candidates.swap(0, found);
        self.candidates.truncate(1);
        self.write(out);
        let rest = self.over(out);
        if rest.is_empty() {
            return true;
        }
        // A call may end long before the text does, where its value's closer is missing.
        self.eat(Cow::Owned(rest), out);
        false
    }
}

/// What was taken too much is read again: it is the end of the piece that was taken, or begins before it.
fn back(rest: String, take: usize) -> Flow {
    match take.checked_sub(rest.len()) {
        Some(n) => Flow::Took(n),
        None => Flow::Back(rest, take),
    }
}
