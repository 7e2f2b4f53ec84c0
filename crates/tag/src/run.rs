//! A run: one form of a dialect reads text, part by part.
//!
//! A run begins at a marker that opens a section or a call, and takes text until the calls have
//! ended, or until it is clear that the text is not a call. What it finds goes to [`FoundCalls`];
//! the parser decides whether and when that is emitted.

mod part;
mod section;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use state::Run;

use crate::calls::{FoundCalls, Step};
use crate::dialect::CallPart;
use json::ToolList;
use state::{Engine, Place};

impl Run {
    /// Reads a piece that is all inside the arguments of a call, and returns true; or reads
    /// nothing. Arguments inside JSON are most of what calls are made of.
    #[inline]
    pub fn arguments(&mut self, text: &str, calls: &mut FoundCalls) -> bool {
        match (&mut self.engine, self.place) {
            (Engine::Envelope(envelope), Place::Part(_)) => envelope.arguments(text, calls),
            _ => false,
        }
    }

    /// Takes the next piece. `is_alone`: no other form reads the same text, so that a name is
    /// emitted before the marker after it is complete.
    pub fn push(
        &mut self,
        text: &str,
        tools: Option<&ToolList>,
        is_alone: bool,
        calls: &mut FoundCalls,
    ) -> Step {
        let context = Run::context(self.form, tools);
        let mut i = 0;
        loop {
            let rest = &text[i..];
            if rest.is_empty() && !matches!(self.place, Place::Part(n) if n >= self.form.call.len())
            {
                return Step::More(i);
            }
            let step = match self.place {
                Place::Open => self.open(rest),
                Place::Inside => self.inside(rest),
                Place::Noise => self.noise(rest),
                Place::Over => Step::Done(0),
                Place::Part(n) if n >= self.form.call.len() => {
                    // All parts were read, and none of them completed the call before.
                    self.whole(calls);
                    self.place = Place::Between;
                    Step::Whole(0)
                }
                Place::Part(n) => self.part(n, rest, &context, is_alone, calls),
                Place::Tail(n) => self.tail(n, rest),
                Place::Between => self.between(rest, calls),
            };
            match step {
                Step::On(n) => i += n,
                Step::Back(n) if n <= i => i -= n,
                step => return step.after(i),
            }
        }
    }

    /// The text has ended, or was cut; `at` bytes of it were read. Returns how many bytes of it
    /// belong to the calls.
    ///
    /// # Errors
    /// Why the last call is not complete.
    pub fn finish(
        &mut self,
        text: &str,
        mut at: usize,
        cut: bool,
        tools: Option<&ToolList>,
        calls: &mut FoundCalls,
    ) -> Result<usize, &'static str> {
        self.is_last = true;
        if let Engine::Params(params) = &mut self.engine
            && !cut
        {
            match params.finish(&text[at..], &Run::context(self.form, tools), calls) {
                Step::Back(n) => at -= n,
                Step::On(n) | Step::More(n) | Step::Whole(n) | Step::Done(n) => at += n,
                Step::Fail(_, why) => return Err(why),
            }
        }
        loop {
            match self.push(&text[at..], tools, true, calls) {
                Step::On(n) | Step::Whole(n) => at += n,
                Step::Back(n) => at -= n,
                Step::Done(n) => return Ok(at + n),
                Step::More(n) => {
                    at += n;
                    break;
                }
                Step::Fail(_, why) => return Err(why),
            }
        }
        let is_all = text[at..].trim_ascii().is_empty();
        self.whole_at_end(cut, is_all, tools, calls).map(|()| at)
    }

    fn whole_at_end(
        &mut self,
        cut: bool,
        is_all: bool,
        tools: Option<&ToolList>,
        calls: &mut FoundCalls,
    ) -> Result<(), &'static str> {
        let context = Run::context(self.form, tools);
        match self.place {
            Place::Tail(_) | Place::Between => Ok(()),
            Place::Part(n) => {
                match &mut self.engine {
                    Engine::Free(free) if !cut => free.finish(&self.name, &context, calls)?,
                    Engine::Envelope(e) if e.may_end() => return Ok(()),
                    Engine::Expression(e) if (!cut || is_all) && e.may_end() => return Ok(()),
                    // Only closing markers are missing.
                    Engine::Params(params) if !cut && params.is_done() => {}
                    Engine::None
                        if n >= self.form.call.len()
                            || (!cut && self.has_begun && self.is_deep) => {}
                    Engine::None if !cut && may_lack(&self.form.call[n..]) => calls.arguments("{}"),
                    _ => return Err("the text ends before the call is complete"),
                }
                self.whole(calls);
                Ok(())
            }
            _ => Err("the text ends before the call is complete"),
        }
    }
}

/// Whether the text may end before these parts: free text and its marker may be missing there.
fn may_lack(parts: &[CallPart]) -> bool {
    match parts {
        [CallPart::Space(_), parts @ ..] => may_lack(parts),
        [CallPart::Mark(_), CallPart::Free(free), ..] => free.optional,
        _ => false,
    }
}
