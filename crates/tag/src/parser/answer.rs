//! The answer's text, in which calls, reasoning and what is left out are searched for.

use super::contest::Contest;
use super::mode::{Mode, OpenHeader};
use super::open_call::OpenCall;
use super::prose::{Exclusion, Prose};
use super::router::{Position, Router, Transition};
use crate::calls::Step;
use crate::dialect::{Form, Scope};
use crate::form::{ends_itself, is_fence};
use crate::look::{Look, Marker, MarkerMeaning};
use crate::mark::{Match, ceil, space};
use crate::outlet::{DROPPED, Outlet};
use std::rc::Rc;

impl Router {
    /// The answer.
    pub fn answer(&mut self, exclusion: Exclusion, text: &str, out: &mut dyn Outlet) -> Transition {
        let look = Rc::clone(&self.look);
        // From the byte that decides what an unknown beginning is, other markers may count.
        let limit = self
            .emitter
            .room()
            .map_or(usize::MAX, |room| ceil(text, room));
        let mut i = 0;
        while i < text.len() {
            if i >= limit {
                return (self.emitter.text(&text[..i], out).into(), Step::On(i));
            }
            // An exclusion is about the first byte of the text. The byte after white space is
            // another one.
            let mut exclusion = if i == 0 && space(text) == 0 {
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
                        return (mode, Step::On(i));
                    }
                    Match::Partial => {
                        self.emitter.text(&text[..i], out);
                        return (Mode::default(), Step::More(i));
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
            match self.target(&look, &text[i..], exclusion) {
                Match::Full((marker, meanings)) => {
                    self.emitter.text(&text[..i], out);
                    let (mode, length) = self.begin_marked(marker.text, &meanings, out);
                    return (mode, Step::On(i + length));
                }
                Match::Partial => {
                    self.emitter.text(&text[..i], out);
                    return (Mode::Answer(exclusion), Step::More(i));
                }
                Match::No => {}
            }
            i += self.position.pass_one(&text[i..]);
            self.position.is_first = false;
        }
        (self.emitter.text(text, out).into(), Step::On(text.len()))
    }

    /// The marker at the beginning of `rest`, and what it means here.
    fn target<'l>(
        &mut self,
        look: &'l Look,
        rest: &str,
        exclusion: Exclusion,
    ) -> Match<(&'l Marker, Vec<MarkerMeaning>)> {
        if look
            .partial(rest)
            .any(|marker| marker.meanings.iter().any(|t| self.counts(*t, exclusion)))
        {
            return Match::Partial;
        }
        let Some(marker) = look.longest(rest, |t| self.counts(t, exclusion)) else {
            return Match::No;
        };
        Match::Full((
            marker,
            marker
                .meanings
                .iter()
                .copied()
                .filter(|t| self.counts(*t, exclusion))
                .collect(),
        ))
    }

    /// Whether a marker's meaning counts at this place.
    fn counts(&mut self, target: MarkerMeaning, exclusion: Exclusion) -> bool {
        let Position {
            is_first,
            is_framed,
            quote,
            ..
        } = &mut self.position;
        match target {
            // A marker that does not begin a call here may still be left out: Inkling's calls begin
            // like its other messages.
            MarkerMeaning::Dropped => !quote.is_quoted(),
            _ if exclusion == Exclusion::All => false,
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

    /// Whether a text is a marker that is left out here.
    pub fn drops(&mut self, text: &str) -> bool {
        let look = Rc::clone(&self.look);
        let drops =
            |t: MarkerMeaning| matches!(t, MarkerMeaning::Dropped | MarkerMeaning::DroppedFirst);
        let marker = look.longest(text, |t| drops(t) && self.counts(t, Exclusion::Nothing));
        marker.is_some_and(|marker| marker.text == text)
    }

    /// Whether a form may begin here: as a call, or directly after a quotation mark as a quoted
    /// one.
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

    /// Begins what a marker means; returns how much of the text is read with it.
    fn begin_marked(
        &mut self,
        marker: &'static str,
        meanings: &[MarkerMeaning],
        out: &mut dyn Outlet,
    ) -> (Mode, usize) {
        let is_quoted = self.position.quote.is_cited();
        let forms: Vec<&'static Form> = meanings
            .iter()
            .filter_map(|t| {
                if let MarkerMeaning::Form(form) = t {
                    Some(*form)
                } else {
                    None
                }
            })
            .collect();
        if !forms.is_empty() {
            let contest = Contest::new(forms, self.last);
            return (
                Mode::Call(OpenCall::new(
                    contest,
                    Prose::Answer,
                    is_quoted,
                    Exclusion::All,
                )),
                0,
            );
        }
        let mode = match meanings.first() {
            Some(MarkerMeaning::Message) => {
                return (
                    Mode::Header(OpenHeader {
                        body: None,
                        is_quoted,
                    }),
                    0,
                );
            }
            Some(MarkerMeaning::Foreign(_)) => {
                self.emitter.decide(Prose::Answer, out);
                self.literal(Prose::Answer, marker, out);
                return (Mode::Body(Prose::Answer, Exclusion::Nothing), marker.len());
            }
            Some(MarkerMeaning::Answer) => {
                if !self.emitter.may_end_reasoning() {
                    out.warning(
                        DROPPED,
                        "dropped the end of reasoning, since none was open",
                        marker,
                    );
                }
                self.emitter.end_reasoning_late(self.position.is_first, out);
                self.position.restart();
                Mode::default()
            }
            target => {
                self.position.is_framed |= matches!(target, Some(MarkerMeaning::DroppedFirst));
                self.emitter.decide(Prose::Answer, out);
                if let Some(MarkerMeaning::Reasoning) = target {
                    Prose::Reasoning.into()
                } else {
                    out.warning(
                        DROPPED,
                        &format!("dropped {}, a token of chat templates", marker.trim_end()),
                        marker,
                    );
                    Mode::default()
                }
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
        Match::Full(Mode::Call(OpenCall::new(
            contest,
            Prose::Answer,
            false,
            Exclusion::Unmarked,
        )))
    }
}
