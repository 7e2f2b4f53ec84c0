//! The answer's text, in which calls, reasoning and what is left out are looked for.

use super::{Flow, Mode, Parser, Tried, WINDOW, ceil};
use crate::dialect::{Form, Scope};
use crate::look::{Target, ends_itself, is_fence};
use crate::mark::space;
use crate::outlet::Outlet;
use std::rc::Rc;

/// Whether something begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Yes,
    /// More text will tell.
    Wait,
    No,
}

impl Parser {
    /// The answer.
    pub(super) fn text(&mut self, text: &str, out: &mut dyn Outlet) -> Flow {
        let b = text.as_bytes();
        let refused = std::mem::take(&mut self.refused);
        // Where it is decided what an unknown beginning is, other markers may count from there on.
        let limit = self.head.as_ref().map_or(usize::MAX, |head| ceil(text, WINDOW + 1 - head.size));
        let mut i = 0;
        while i < b.len() {
            if i >= limit {
                self.say(&text[..i], out);
                return Flow::Took(i);
            }
            self.tried = if i == 0 { refused } else { Tried::default() };
            if self.blank && !self.tried.unmarked {
                let at = i + space(&text[i..]);
                self.quote.plain(&text[i..at]);
                i = at;
                if i == b.len() {
                    break;
                }
                if i >= limit {
                    continue;
                }
                self.tried = if i == 0 { refused } else { Tried::default() };
                match self.begin_unmarked(&text[i..]) {
                    Begun::No => {}
                    begun => return self.leave(begun, text, i, out),
                }
            }
            let stop = self.look.stop(&b[i..]).map(|n| i + n);
            if limit <= stop.unwrap_or(usize::MAX - 1) {
                self.blank &= text[i..limit].trim_ascii().is_empty();
                self.quote.plain(&text[i..limit]);
                i = limit;
                continue;
            }
            let Some(at) = stop else {
                self.blank &= text[i..].trim_ascii().is_empty();
                self.quote.plain(&text[i..]);
                break;
            };
            if at > i {
                self.blank &= text[i..at].trim_ascii().is_empty();
                self.quote.plain(&text[i..at]);
                self.tried = Tried::default();
            }
            let rest = &text[at..];
            match self.target(rest) {
                Begun::No => {}
                Begun::Wait => {
                    self.refused = self.tried;
                    return self.leave(Begun::Wait, text, at, out);
                }
                Begun::Yes => {
                    self.say(&text[..at], out);
                    return Flow::Took(at + self.begin_marked(rest, out));
                }
            }
            let width = rest.chars().next().map_or(1, char::len_utf8);
            match b[at] {
                c @ (b'`' | b'~') => self.quote.tick(c),
                _ => self.quote.plain(&rest[..width]),
            }
            self.blank = false;
            i = at + width;
        }
        self.say(text, out);
        Flow::Took(text.len())
    }

    /// Says the answer's text up to `at`, where something else begins or may begin.
    fn leave(&mut self, begun: Begun, text: &str, at: usize, out: &mut dyn Outlet) -> Flow {
        self.say(&text[..at], out);
        if begun == Begun::Wait { Flow::Wait(at) } else { Flow::Took(at) }
    }

    /// Whether a marker that counts here stands at the beginning of `rest`.
    fn target(&mut self, rest: &str) -> Begun {
        let look = Rc::clone(&self.look);
        if look.perhaps(rest).any(|marker| marker.targets.iter().any(|t| self.counts(*t))) {
            return Begun::Wait;
        }
        let here = look.here(rest).is_some_and(|marker| marker.targets.iter().any(|t| self.counts(*t)));
        if here { Begun::Yes } else { Begun::No }
    }

    /// Whether a marker's meaning counts at this place.
    fn counts(&mut self, target: Target) -> bool {
        match target {
            // What begins no call here may still be left out: Inkling's calls begin like its other messages.
            Target::Dropped => !self.quote.is_quoted(),
            _ if self.tried.marked => false,
            Target::Form(form) => self.may_begin(form),
            Target::Reasoning => self.blank,
            Target::DroppedFirst => self.blank || (self.framed && !self.quote.is_data()),
            Target::DroppedWord => self.blank && self.begun == 0,
            Target::Answer => {
                let late = self.unknown || self.thought.is_some();
                let counts = self.head.is_some() && !self.quote.is_data();
                self.blank || counts || (late && !self.quote.is_quoted())
            }
            Target::Foreign(true) => self.quote.is_line_start(),
            Target::Message => self.quote.is_cited() || !self.quote.is_quoted(),
            Target::Foreign(false) => !self.quote.is_quoted(),
        }
    }

    /// Whether a form may begin here, as a call or, right behind a quotation mark, as a quoted one.
    fn may_begin(&mut self, form: &Form) -> bool {
        let cited = self.quote.is_cited() && ends_itself(form);
        match form.scope {
            Scope::Line if !self.quote.is_line_start() => cited,
            Scope::Line if is_fence(form) => true,
            Scope::Message if !self.blank => false,
            _ => cited || !self.quote.is_quoted(),
        }
    }

    /// Begins what the marker at the beginning of `rest` means; gives how much of it was taken.
    fn begin_marked(&mut self, rest: &str, out: &mut dyn Outlet) -> usize {
        let look = Rc::clone(&self.look);
        let Some(marker) = look.here(rest) else { return 0 };
        let targets: Vec<Target> = marker.targets.iter().copied().filter(|t| self.counts(*t)).collect();
        let forms: Vec<&'static Form> =
            targets.iter().filter_map(|t| if let Target::Form(form) = t { Some(*form) } else { None }).collect();
        self.tried.marked = true;
        self.cited = self.quote.is_cited();
        if !forms.is_empty() {
            self.begin(forms, false);
            return 0;
        }
        let length = marker.text.len();
        // What was said before it may have decided that this is reasoning, where it means nothing.
        let Some(target) = targets.first() else { return 0 };
        match *target {
            Target::Message => {
                self.mode = Mode::Header(Box::new(Mode::Text));
                return 0;
            }
            Target::Foreign(_) => {
                self.decide(false, out);
                self.mode = Mode::Body { reasoning: false };
                self.literal(marker.text, out);
            }
            Target::Reasoning => {
                self.decide(false, out);
                self.mode = Mode::Reasoning;
                out.left_out(marker.text);
            }
            Target::Answer => {
                if self.head.is_some() {
                    self.decide(true, out);
                } else if self.thought.is_some() || (self.unknown && (!self.blank || self.begun > 0)) {
                    self.rehearsed(out);
                }
                self.unknown = false;
                self.release(out);
                self.restart();
                out.left_out(marker.text);
            }
            target => {
                self.framed |= matches!(target, Target::DroppedFirst);
                self.decide(false, out);
                out.left_out(marker.text);
            }
        }
        length
    }

    /// Begins a form without a marker, at the first text of a message.
    fn begin_unmarked(&mut self, rest: &str) -> Begun {
        self.tried.unmarked = true;
        if self.look.messages {
            let start = rest.trim_start_matches(' ');
            if start.starts_with("to=") {
                self.mode = Mode::Header(Box::new(Mode::Text));
                self.cited = false;
                return Begun::Yes;
            }
            if start.len() < 3 && "to=".starts_with(start) {
                return Begun::Wait;
            }
        }
        if self.look.unmarked.is_empty() || self.quote.is_quoted() {
            return Begun::No;
        }
        let forms = self.look.unmarked.clone();
        self.cited = false;
        self.begin(forms, false);
        Begun::Yes
    }
}
