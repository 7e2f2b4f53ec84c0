//! Reasoning, up to its closing marker or a call that ends it.
//!
//! Models omit the closing marker before a call
//! (<https://github.com/vllm-project/vllm/pull/32216>); others rehearse calls in reasoning. Which
//! of the two a call is depends on the dialect, and on whether the closing marker comes later.

use super::contest::Contest;
use super::mode::Mode;
use super::open_call::OpenCall;
use super::prose::{Exclusion, Prose};
use super::router::{Router, Transition};
use crate::calls::Step;
use crate::dialect::Form;
use crate::form::ends_itself;
use crate::look::{Look, MarkerMeaning};
use crate::mark::Match;
use crate::outlet::Outlet;
use std::rc::Rc;

impl Router {
    /// Reasoning.
    pub fn reasoning(
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
                return (Mode::default(), Step::On(at + close.len()));
            }
            let closes = look
                .reasoning
                .iter()
                .any(|(_, close)| close.starts_with(rest));
            let is_excluded = at == 0 && exclusion == Exclusion::All;
            match if is_excluded {
                Match::No
            } else {
                self.ending_call(&look, rest)
            } {
                Match::Full(call) => {
                    reason(&text[..at], out);
                    return (Mode::Call(call), Step::On(at));
                }
                Match::No if !closes => {}
                _ => {
                    reason(&text[..at], out);
                    let exclusion = if at == 0 {
                        exclusion
                    } else {
                        Exclusion::Nothing
                    };
                    return (Mode::Reasoning(exclusion), Step::More(at));
                }
            }
            i = at + self.position.pass_one(rest);
        }
        self.position.quote.plain(&text[i..]);
        reason(text, out);
        (Prose::Reasoning.into(), Step::On(text.len()))
    }

    /// The call at the beginning of `rest` that ends reasoning, or is quoted in it.
    fn ending_call(&mut self, look: &Look, rest: &str) -> Match<Box<OpenCall>> {
        if !self.has_tools() {
            return Match::No;
        }
        let quote = &mut self.position.quote;
        let is_cited = quote.is_cited();
        if look.ends.is_empty() || (!is_cited && quote.is_quoted()) {
            return Match::No;
        }
        let ends = |target: MarkerMeaning| -> Option<&'static Form> {
            let MarkerMeaning::Form(form) = target else {
                return None;
            };
            let ends = if is_cited {
                ends_itself(form)
            } else {
                look.ends(form).is_some()
            };
            ends.then_some(form)
        };
        if look
            .partial(rest)
            .any(|marker| marker.meanings.iter().any(|t| ends(*t).is_some()))
        {
            return Match::Partial;
        }
        let Some(marker) = look.longest(rest, |t| ends(t).is_some()) else {
            return Match::No;
        };
        let forms = marker.meanings.iter().copied().filter_map(ends).collect();
        let contest = Contest::new(forms, self.last);
        Match::Full(OpenCall::new(
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
