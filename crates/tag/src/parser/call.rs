//! Reads an open call: emits the findings of its contest, and releases text that turns out not to
//! be a call.

use crate::calls::{ArgumentsEnd, Op, ReadStep, Why};
use crate::dialect::Form;
use crate::outlet::{CallPiece, DROPPED, Outlet, Prose};
use crate::parser::contest::{CallGate, CallReading, CallStatus, Contest, Exclusion};
use crate::parser::router::{Mode, Router, TextEnd, Transition};
use event::cut;

/// The number of bytes that an open call reads at a time, so that little text is read twice after
/// the end of the call.
const STEP: usize = 4096;

impl Router {
    /// Reads the next piece of an open call. While several forms compete, the call reads one
    /// character at a time, so that the winner does not depend on splits. After [`ReadStep::Back`],
    /// `held` contains the text before this piece that must be read again.
    pub(super) fn call(
        &mut self,
        mut call: Box<CallReading>,
        text: &str,
        held: &mut String,
        out: &mut dyn Outlet,
    ) -> Transition {
        let first = text.chars().next().map_or(1, char::len_utf8);
        let take = if call.contest.is_alone() {
            cut(text, STEP).len().max(first)
        } else {
            first
        };
        call.contest.raw.push_str(&text[..take]);
        let (mode, mut rest) = loop {
            let was_alone = call.contest.is_alone();
            if call.contest.push(self.tools.as_deref()) {
                self.write(&mut call, out);
                return (Mode::Call(call), ReadStep::On(take));
            }
            if let Some((at, why)) = call.contest.failure() {
                if was_alone {
                    // Emit the findings before the failure first, as other splits of the text do.
                    self.write(&mut call, out);
                }
                break self.fail(*call, at, why, out);
            }
            if !call.contest.choose() {
                return (Mode::Call(call), ReadStep::On(take));
            }
            self.write(&mut call, out);
            match call.contest.first().map(|winner| winner.step) {
                Some(ReadStep::Whole(_)) => self.settle(&mut call, out),
                Some(ReadStep::Done(_)) => break self.end(*call, out),
                // Once a single candidate remains it may report the name early.
                Some(ReadStep::More(_)) if !was_alone => {}
                _ => return (Mode::Call(call), ReadStep::On(take)),
            }
        };
        // The rest is the end of this piece, or begins before this piece.
        let Some(before) = rest.len().checked_sub(take).filter(|n| *n > 0) else {
            return (mode, ReadStep::On(take - rest.len()));
        };
        rest.truncate(before);
        *held = rest;
        (mode, ReadStep::Back(before))
    }

    /// If the whole `text` is inside the call's arguments, reads it and returns `true`; otherwise
    /// reads nothing. Most text of calls is read here.
    #[inline]
    pub(super) fn arguments(
        &mut self,
        call: &mut CallReading,
        text: &str,
        out: &mut dyn Outlet,
    ) -> bool {
        let is_read = call.contest.push_arguments(text);
        if is_read {
            self.write(call, out);
        }
        is_read
    }

    /// Begins the call of a tool that was named before the text.
    pub(super) fn begin_named(
        &mut self,
        form: &'static Form,
        name: &str,
        out: &mut dyn Outlet,
    ) -> Mode {
        let mut call = CallReading::new(
            Contest::named(form, name),
            Prose::Answer,
            false,
            Exclusion::All,
        );
        self.write(&mut call, out);
        Mode::Call(call)
    }

    /// Ends a call at the end of the text. Returns the text that must be read again.
    pub(super) fn finish_call(
        &mut self,
        mut call: Box<CallReading>,
        end: TextEnd,
        out: &mut dyn Outlet,
    ) -> (Mode, String) {
        let is_bare = end == TextEnd::Cut
            && matches!(call.status, CallStatus::Nothing)
            && call.contest.is_bare();
        match call
            .contest
            .finish(end != TextEnd::Whole, self.tools.as_deref())
        {
            Ok(()) => {
                self.write(&mut call, out);
                self.end(*call, out)
            }
            Err(_) if is_bare => {
                let raw = std::mem::take(&mut call.contest.raw);
                let what = "dropped the marker of a call, since the text was cut after it";
                self.emitter.warn(DROPPED, what, &raw, out);
                self.emitter.left_out(&raw, out);
                (call.within.into(), String::new())
            }
            // If the text ends inside a call, all of the text belongs to that call.
            Err(why) => {
                let at = call.contest.raw.len();
                self.fail(*call, at, why, out)
            }
        }
    }

    /// Emits the findings of the first candidate.
    fn write(&mut self, call: &mut CallReading, out: &mut dyn Outlet) {
        let Some(winner) = call.contest.first().filter(|c| !c.calls.ops.is_empty()) else {
            return;
        };
        // Most pieces are from the middle of the arguments.
        if let [Op::Arguments(_, ArgumentsEnd::Later)] = &winner.calls.ops[..]
            && call.status.is_direct()
            && !self.emitter.holds_beginning()
        {
            out.call(CallPiece {
                arguments: Some(&winner.calls.text),
                ..self.emitter.piece()
            });
            return winner.calls.clear();
        }
        self.write_ops(call, out);
    }

    /// Emits all findings of the first candidate.
    fn write_ops(&mut self, call: &mut CallReading, out: &mut dyn Outlet) {
        let Some(winner) = call.contest.first() else {
            return;
        };
        let form = winner.run.form();
        let mut calls = std::mem::take(&mut winner.calls);
        let mut from = 0;
        let mut piece: Option<CallPiece<'_>> = None;
        for (n, op) in calls.ops.iter().enumerate() {
            let text = match *op {
                Op::Name(to) | Op::Id(to) | Op::Arguments(to, _) | Op::Note(to, ..) => {
                    &calls.text[std::mem::replace(&mut from, to)..to]
                }
                Op::Done => "",
            };
            if let Op::Name(_) | Op::Note(..) = op
                && let Some(piece) = piece.take()
            {
                self.emitter.call(piece, out);
            }
            if let Op::Name(_) = op {
                self.name(call, text, form, out);
            }
            if call.status.is_withheld() {
                continue;
            }
            if let Op::Note(_, code, message) = op {
                self.emitter.warn(code, message, text, out);
                continue;
            }
            let piece = piece.get_or_insert_with(|| self.emitter.piece());
            match (op, &mut call.status) {
                (Op::Name(_), _) => piece.name = Some(text),
                (Op::Id(_), _) => piece.id = Some(text),
                (Op::Arguments(_, end), CallStatus::Open { gate, waits }) => {
                    let ends = calls.ops.get(n + 1) == Some(&Op::Done);
                    let passed = match ends {
                        true if !*waits && !gate.is_closed() => text,
                        true => gate.pass(text, ArgumentsEnd::Here),
                        false => gate.pass(text, *end),
                    };
                    piece.arguments = Some(passed).filter(|text| !text.is_empty());
                }
                (Op::Arguments(..), _) => piece.arguments = Some(text),
                (Op::Done, status) => {
                    if self.complete(status, *piece, out) {
                        *piece = self.emitter.piece();
                    }
                }
                (Op::Note(..), _) => {}
            }
        }
        if let Some(piece) = piece {
            self.emitter.call(piece, out);
        }
        calls.clear();
        if let Some(winner) = call.contest.first() {
            winner.calls = calls;
        }
    }

    /// Completes the current call with this piece. Returns whether the piece was emitted.
    fn complete(
        &mut self,
        status: &mut CallStatus,
        mut piece: CallPiece<'_>,
        out: &mut dyn Outlet,
    ) -> bool {
        let status = std::mem::replace(status, CallStatus::Complete);
        let CallStatus::Open { gate, waits } = status else {
            return false;
        };
        let held = gate.into_held();
        if waits {
            self.emitter.keep_end(held);
            return false;
        }
        if !held.is_empty() && piece.arguments.is_some() {
            self.emitter.call(piece, out);
            piece = self.emitter.piece();
        }
        let arguments = Some(&held[..]).filter(|held| !held.is_empty());
        let last = CallPiece {
            arguments: arguments.or(piece.arguments),
            done: true,
            ..piece
        };
        self.emitter.call(last, out);
        true
    }

    /// Begins a call with this name and form.
    fn name(
        &mut self,
        call: &mut CallReading,
        name: &str,
        form: &'static Form,
        out: &mut dyn Outlet,
    ) {
        if let CallStatus::Quoted = call.status {
            return;
        }
        if !self.knows(name) {
            let after_call = matches!(
                call.status,
                CallStatus::Complete | CallStatus::Unlisted { after_call: true }
            );
            call.status = CallStatus::Unlisted { after_call };
            return;
        }
        let within = std::mem::replace(&mut call.within, Prose::Answer);
        let waits = self
            .emitter
            .begin_call(self.look.ends(form) == Some(true), within, out);
        call.status = CallStatus::Open {
            gate: CallGate::default(),
            waits,
        };
        if within == Prose::Reasoning {
            self.position.restart();
        }
        self.last = Some(form);
    }

    /// Settles a complete call: its text is no longer needed.
    fn settle(&mut self, call: &mut CallReading, out: &mut dyn Outlet) {
        let Some(winner) = call.contest.first() else {
            return;
        };
        let at = std::mem::take(&mut winner.at);
        winner.step = ReadStep::More(0);
        let mut raw = std::mem::take(&mut call.contest.raw);
        self.pass_call(call, &raw[..at], out);
        raw.drain(..at);
        call.contest.raw = raw;
    }

    /// Ends the calls. Returns the text after them.
    fn end(&mut self, mut call: CallReading, out: &mut dyn Outlet) -> (Mode, String) {
        let Some(winner) = call.contest.first() else {
            return (call.within.into(), call.contest.raw);
        };
        let at = winner.at;
        // After a section's marker and text that is not a call, later calls still belong to that
        // section.
        self.last = Some(winner.run.form());
        let rest = call.contest.raw.split_off(at);
        let is_text = call.status.is_withheld();
        let read = std::mem::take(&mut call.contest.raw);
        self.pass_call(&mut call, &read, out);
        if !is_text {
            self.position.is_first = true;
            self.position.quote.restart();
        }
        (call.within.into(), rest)
    }

    /// Passes text in which calls were read: the text is dropped, or, if the tool is not listed,
    /// released with one warning.
    fn pass_call(&mut self, call: &mut CallReading, text: &str, out: &mut dyn Outlet) {
        let wrapper = std::mem::take(&mut call.wrapper);
        if wrapper > 0 && !call.status.is_withheld() {
            let message = "dropped the tag of another dialect around a call";
            self.emitter
                .warn(DROPPED, message, text[..wrapper].trim_ascii_end(), out);
        }
        match call.status {
            CallStatus::Quoted => {
                call.within = self.literal(call.within, text, out);
                // Backticks in a quoted call do not open code after the call.
                self.position.quote.restart();
            }
            CallStatus::Unlisted { after_call: false } => {
                self.emitter.warn(
                    "tag_unparsed",
                    &format!("not a call: {}", Why::NoTool),
                    text,
                    out,
                );
                call.within = self.literal(call.within, text, out);
                call.status = CallStatus::Released;
            }
            CallStatus::Released => call.within = self.literal(call.within, text, out),
            _ => {
                if !self.emitter.has_calls() {
                    // A section without a call was read: no part of the section can be reasoning.
                    self.emitter.decide(Prose::Answer, out);
                }
                if let CallStatus::Unlisted { .. } = call.status {
                    self.emitter.warn(
                        DROPPED,
                        &format!("dropped a call beside others: {}", Why::NoTool),
                        text,
                        out,
                    );
                } else if call
                    .contest
                    .first()
                    .is_some_and(|c| c.run.is_without_calls())
                {
                    self.emitter.warn(
                        DROPPED,
                        "dropped markers of a section, since no call follows them at once",
                        text,
                        out,
                    );
                }
                self.emitter.left_out(text, out);
                match call.status {
                    CallStatus::Unlisted { .. } => call.status = CallStatus::Released,
                    CallStatus::Complete => call.status = CallStatus::Nothing,
                    _ => {}
                }
            }
        }
    }

    /// Gives up the call: after `at` bytes the text is not a call. Returns the text that must be
    /// read again in another way, which is all of the text if only markers and names were read.
    fn fail(
        &mut self,
        mut call: CallReading,
        at: usize,
        why: Why,
        out: &mut dyn Outlet,
    ) -> (Mode, String) {
        let is_open = matches!(call.status, CallStatus::Open { .. });
        if is_open {
            self.emitter.retract_last(at, out);
        }
        let is_quoted = matches!(call.status, CallStatus::Quoted);
        let run = call.contest.first().map(|c| &c.run);
        let is_shallow = run.is_none_or(|run| run.is_shallow());
        let is_marked = is_open || run.is_some_and(|run| run.is_marked(Some(why)));
        let mut raw = call.contest.raw;
        // The call in a wrapper is read again without the wrapper, and causes its warning then.
        let is_again = is_shallow && call.wrapper > 0;
        if is_marked && !is_quoted && !is_again {
            self.emitter.warn(
                "tag_unparsed",
                &format!("not a call: {why}"),
                &raw[..at],
                out,
            );
        }
        if is_shallow || at == 0 {
            let exclusion = match is_shallow {
                true => call.exclusion,
                false => Exclusion::All,
            };
            return (Mode::new(call.within, exclusion), raw);
        }
        let rest = raw.split_off(at);
        (self.literal(call.within, &raw, out).into(), rest)
    }
}
