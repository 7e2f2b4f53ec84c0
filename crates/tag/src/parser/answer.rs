//! Searches the answer's text for calls, reasoning and markers to drop.

use crate::calls::ReadStep;
use crate::dialect::{Form, KnownTool, Scope, ends_itself, is_fence};
use crate::look::{Look, MarkerMeaning};
use crate::mark::{Match, ceil, space};
use crate::outlet::{DROPPED, Outlet, Prose};
use crate::parser::contest::{CallReading, Contest, Exclusion};
use crate::parser::router::{Mode, OpenHeader, Position, Router, Transition};
use std::rc::Rc;

/// The maximum white space after a wrapper, in bytes.
const GAP: usize = 256;

impl Router {
    /// Reads the answer.
    pub(super) fn answer(
        &mut self,
        exclusion: Exclusion,
        text: &str,
        out: &mut dyn Outlet,
    ) -> Transition {
        let look = Rc::clone(&self.look);
        // The byte at `limit` decides whether an unknown beginning is reasoning. Different markers
        // may count after it.
        let limit = self
            .emitter
            .room()
            .map_or(usize::MAX, |room| ceil(text, room));
        let mut i = 0;
        while i < text.len() {
            if i >= limit {
                return (self.emitter.text(&text[..i], out).into(), ReadStep::On(i));
            }
            // An exclusion applies to the first byte of the text. Forms without a marker begin after
            // white space, so theirs does not apply to white space.
            let mut exclusion = if i == 0 && (space(text) == 0 || exclusion != Exclusion::Unmarked)
            {
                exclusion
            } else {
                Exclusion::Nothing
            };
            if self.position.is_first && exclusion == Exclusion::Nothing {
                let at = i + space(&text[i..]);
                self.position.quote.plain(&text[i..at]);
                i = at;
                if i == text.len() || i >= limit {
                    continue;
                }
                match self.begin_unmarked(&text[i..]) {
                    Match::Full(mode) => {
                        self.emitter.text(&text[..i], out);
                        return (mode, ReadStep::On(i));
                    }
                    Match::Partial => {
                        self.emitter.text(&text[..i], out);
                        return (Mode::default(), ReadStep::More(i));
                    }
                    Match::No => exclusion = Exclusion::Unmarked,
                }
            }
            let stop = look
                .stop(&text.as_bytes()[i..])
                .map_or(text.len(), |n| i + n);
            let at = stop.min(limit);
            if at > i {
                self.position.pass(&text[i..at]);
                (i, exclusion) = (at, Exclusion::Nothing);
            }
            if i == limit || i == text.len() {
                continue;
            }
            if let Some(found) = self.marked(&look, text, i, exclusion, out) {
                return found;
            }
            self.position.is_first &= space(&text[i..]) > 0;
            i += self.position.pass_one(&text[i..]);
        }
        (
            self.emitter.text(text, out).into(),
            ReadStep::On(text.len()),
        )
    }

    /// Returns the state that the marker at `at` leads to, if there is a marker.
    fn marked(
        &mut self,
        look: &Look,
        text: &str,
        at: usize,
        exclusion: Exclusion,
        out: &mut dyn Outlet,
    ) -> Option<Transition> {
        let is_residue = |t: MarkerMeaning| matches!(t, MarkerMeaning::Residue);
        if self.position.quote.is_cited() && look.longest(&text[at..], is_residue).is_some() {
            self.position.is_example = true;
        }
        let mut found = look.find(&text[at..], |t| self.counts(t, exclusion));
        if let Match::Full((mark, meanings)) = &found
            && meanings.iter().all(|t| matches!(t, MarkerMeaning::Residue))
        {
            if mark.len() == text.len() - at {
                self.emitter.text(&text[..at], out);
                return Some((Mode::Answer(exclusion), ReadStep::More(at)));
            }
            self.find_residue(&text[at..]);
            return None;
        }
        if let Match::Full((_, meanings)) = &found
            && meanings
                .iter()
                .all(|t| matches!(t, MarkerMeaning::Wrapper | MarkerMeaning::Residue))
        {
            match self.wrapped(look, &text[at..]) {
                Match::Full((call, length)) => {
                    self.emitter.text(&text[..at], out);
                    return Some((Mode::Call(call), ReadStep::On(at + length)));
                }
                Match::Partial => found = Match::Partial,
                Match::No => {
                    self.find_residue(&text[at..]);
                    found = Match::No;
                }
            }
        }
        if !matches!(found, Match::No) {
            self.emitter.text(&text[..at], out);
        }
        match found {
            Match::Full((marker, meanings)) => {
                let (mode, length) = self.begin_marked(marker, &meanings, out);
                Some((mode, ReadStep::On(at + length)))
            }
            Match::Partial => Some((Mode::Answer(exclusion), ReadStep::More(at))),
            Match::No => None,
        }
    }

    /// Records the marker of calls at the beginning of a text, which stays text.
    pub(super) fn find_residue(&mut self, text: &str) {
        let Position {
            is_example, quote, ..
        } = &mut self.position;
        if self.residue.is_some() || text.is_empty() || *is_example || quote.is_mentioned() {
            return;
        }
        let look = Rc::clone(&self.look);
        let marker = look.longest(text, |t| matches!(t, MarkerMeaning::Residue));
        // `<toolbox>` is not `<tool>`.
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let marker = marker.filter(|marker| !text[marker.text.len()..].starts_with(is_word));
        self.residue = marker.map(|marker| marker.text);
    }

    /// Returns the call after the wrappers at the beginning of `text`, and the wrappers' length.
    fn wrapped(&mut self, look: &Look, text: &str) -> Match<(Box<CallReading>, usize)> {
        let mut at = 0;
        loop {
            let rest = &text[at..];
            let counts = |t: MarkerMeaning| match t {
                MarkerMeaning::Wrapper => true,
                MarkerMeaning::Form(form) => {
                    at > 0 && form.scope == Scope::Anywhere && form.needs == KnownTool::Listed
                }
                _ => false,
            };
            let (marker, meanings) = match look.find(rest, counts) {
                Match::Full(found) => found,
                Match::Partial => return Match::Partial,
                Match::No => return Match::No,
            };
            let forms: Vec<_> = meanings.iter().filter_map(MarkerMeaning::form).collect();
            if !forms.is_empty() {
                let contest = Contest::new(forms, self.last);
                let mut call = CallReading::new(contest, Prose::Answer, false, Exclusion::Wrapped);
                call.wrap(&text[..at]);
                return Match::Full((call, at));
            }
            let gap = space(&rest[marker.len()..]);
            at += marker.len() + gap;
            match at == text.len() {
                _ if gap > GAP => return Match::No,
                true => return Match::Partial,
                false => {}
            }
        }
    }

    /// Whether a marker's meaning counts at this position.
    fn counts(&mut self, target: MarkerMeaning, exclusion: Exclusion) -> bool {
        let Position {
            is_first,
            is_framed,
            quote,
            ..
        } = &mut self.position;
        match target {
            // A marker that does not begin a call here may still be dropped: Inkling's calls begin
            // like its other messages.
            MarkerMeaning::Dropped => !quote.is_quoted(),
            MarkerMeaning::Residue => {
                self.residue.is_none() && (quote.is_cited() || !quote.is_mentioned())
            }
            MarkerMeaning::Wrapper => {
                exclusion != Exclusion::Wrapped && !quote.is_quoted() && self.has_tools()
            }
            _ if exclusion >= Exclusion::All => false,
            MarkerMeaning::Form(form) => self.may_begin(form),
            MarkerMeaning::Reasoning => *is_first,
            MarkerMeaning::DroppedFirst => *is_first || (*is_framed && !quote.is_data()),
            MarkerMeaning::DroppedWord => *is_first && !self.emitter.has_calls(),
            MarkerMeaning::Answer => {
                let is_late = self.emitter.may_end_reasoning();
                let counts = self.emitter.holds_beginning() && !quote.is_data();
                *is_first || counts || (is_late && !quote.is_quoted())
            }
            MarkerMeaning::Foreign(true) => quote.is_line_start(),
            MarkerMeaning::Message => quote.is_cited() || !quote.is_quoted(),
            MarkerMeaning::Foreign(false) => !quote.is_quoted(),
        }
    }

    /// Whether a text is a marker that is dropped here.
    pub(super) fn drops(&mut self, text: &str) -> bool {
        let look = Rc::clone(&self.look);
        let drops =
            |t: MarkerMeaning| matches!(t, MarkerMeaning::Dropped | MarkerMeaning::DroppedFirst);
        let marker = look.longest(text, |t| drops(t) && self.counts(t, Exclusion::Nothing));
        marker.is_some_and(|marker| marker.text == text)
    }

    /// Whether a form may begin here, either as a call or as a quoted call directly after a
    /// quotation mark.
    fn may_begin(&mut self, form: &Form) -> bool {
        if !self.has_tools() {
            return false;
        }
        let Position {
            is_first, quote, ..
        } = &mut self.position;
        let is_cited = quote.is_cited() && ends_itself(form);
        match form.scope {
            Scope::Line if !quote.is_line_start() => is_cited,
            Scope::Line if is_fence(form) => true,
            Scope::Message if !*is_first => false,
            _ => is_cited || !quote.is_quoted(),
        }
    }

    /// Begins the state that a marker leads to, and returns how much of the text is consumed.
    fn begin_marked(
        &mut self,
        marker: &'static str,
        meanings: &[MarkerMeaning],
        out: &mut dyn Outlet,
    ) -> (Mode, usize) {
        let is_quoted = self.position.quote.is_cited();
        let begins =
            |t: &&MarkerMeaning| !matches!(t, MarkerMeaning::Wrapper | MarkerMeaning::Residue);
        let forms: Vec<_> = meanings.iter().filter_map(MarkerMeaning::form).collect();
        if !forms.is_empty() {
            let contest = Contest::new(forms, self.last);
            let call = CallReading::new(contest, Prose::Answer, is_quoted, Exclusion::All);
            return (Mode::Call(call), 0);
        }
        let mode = match meanings.iter().find(begins) {
            Some(MarkerMeaning::Message) => {
                let body = None;
                return (Mode::Header(OpenHeader { body, is_quoted }), 0);
            }
            Some(MarkerMeaning::Foreign(_)) => {
                self.emitter.decide(Prose::Answer, out);
                self.literal(Prose::Answer, marker, out);
                return (Mode::body(Prose::Answer), marker.len());
            }
            Some(MarkerMeaning::Answer) => {
                if !self.emitter.may_end_reasoning() {
                    let message = "dropped the end of reasoning, since none was open";
                    out.warning(DROPPED, message, marker);
                }
                self.emitter.end_reasoning_late(self.position.is_first, out);
                self.position.restart();
                Mode::default()
            }
            Some(MarkerMeaning::Reasoning) => {
                self.emitter.decide(Prose::Answer, out);
                Prose::Reasoning.into()
            }
            meaning => {
                self.position.is_framed |= matches!(meaning, Some(MarkerMeaning::DroppedFirst));
                self.emitter.decide(Prose::Answer, out);
                let token = marker.trim_end();
                let message = format!("dropped {token}, a token of chat templates");
                out.warning(DROPPED, &message, marker);
                Mode::default()
            }
        };
        out.left_out(marker);
        (mode, marker.len())
    }

    /// Begins a form without a marker, at the first text of a message.
    fn begin_unmarked(&mut self, rest: &str) -> Match<Mode> {
        if self.look.has_bare_headers {
            let start = rest.trim_start_matches(' ');
            if start.starts_with("to=") {
                return Match::Full(Mode::Header(OpenHeader {
                    body: None,
                    is_quoted: false,
                }));
            }
            if start.len() < 3 && "to=".starts_with(start) {
                return Match::Partial;
            }
        }
        if !self.has_tools() || self.look.unmarked.is_empty() || self.position.quote.is_quoted() {
            return Match::No;
        }
        let contest = Contest::new(self.look.unmarked.clone(), self.last);
        Match::Full(Mode::Call(CallReading::new(
            contest,
            Prose::Answer,
            false,
            Exclusion::Unmarked,
        )))
    }
}

// Reads reasoning, up to its closing marker or a call that ends it.
//
// Some models omit the closing marker before a call
// (<https://github.com/vllm-project/vllm/pull/32216>); others rehearse calls in reasoning. The
// dialect, and whether a closing marker follows later, decide whether such a call counts.

impl Router {
    /// Reads reasoning.
    pub(super) fn reasoning(
        &mut self,
        exclusion: Exclusion,
        text: &str,
        out: &mut dyn Outlet,
    ) -> Transition {
        let look = Rc::clone(&self.look);
        let mut i = 0;
        while let Some(at) = look.stop(&text.as_bytes()[i..]).map(|n| i + n) {
            self.position.quote.plain(&text[i..at]);
            let rest = &text[at..];
            if let Some((_, close)) = look
                .reasoning
                .iter()
                .find(|(_, close)| rest.starts_with(close))
            {
                reason(&text[..at], out);
                out.left_out(close);
                self.emitter.end_reasoning(out);
                self.position.restart();
                return (Mode::default(), ReadStep::On(at + close.len()));
            }
            let closes = look
                .reasoning
                .iter()
                .any(|(_, close)| close.starts_with(rest));
            let is_excluded = at == 0 && exclusion >= Exclusion::All;
            let call = match is_excluded {
                true => Match::No,
                false => self.ending_call(&look, rest),
            };
            match call {
                Match::Full(call) => {
                    reason(&text[..at], out);
                    return (Mode::Call(call), ReadStep::On(at));
                }
                Match::No if !closes => {}
                _ => {
                    reason(&text[..at], out);
                    let exclusion = if at == 0 {
                        exclusion
                    } else {
                        Exclusion::Nothing
                    };
                    return (Mode::Reasoning(exclusion), ReadStep::More(at));
                }
            }
            i = at + self.position.pass_one(rest);
        }
        self.position.quote.plain(&text[i..]);
        reason(text, out);
        (Prose::Reasoning.into(), ReadStep::On(text.len()))
    }

    /// Returns the call at the beginning of `rest` that ends reasoning, or that is quoted in it.
    fn ending_call(&mut self, look: &Look, rest: &str) -> Match<Box<CallReading>> {
        if !self.has_tools() {
            return Match::No;
        }
        let quote = &mut self.position.quote;
        let is_cited = quote.is_cited();
        if look.ends.is_empty() || (!is_cited && quote.is_quoted()) {
            return Match::No;
        }
        let ends = |meaning: MarkerMeaning| {
            meaning.form().filter(|form| match is_cited {
                true => ends_itself(form),
                false => look.ends(form).is_some(),
            })
        };
        let meanings = match look.find(rest, |meaning| ends(meaning).is_some()) {
            Match::Full((_, meanings)) => meanings,
            Match::Partial => return Match::Partial,
            Match::No => return Match::No,
        };
        let forms = meanings.into_iter().filter_map(ends).collect();
        let contest = Contest::new(forms, self.last);
        Match::Full(CallReading::new(
            contest,
            Prose::Reasoning,
            is_cited,
            Exclusion::All,
        ))
    }
}

fn reason(text: &str, out: &mut dyn Outlet) {
    if !text.is_empty() {
        out.reasoning(text);
    }
}
