//! The markers outside the parameters of a call.

use crate::dialect::{CallPart, Section};
use crate::mark::{Match, find, find_last, starts};

/// The markers of a form around its parameters: those that close the call and its section, and
/// those that open another call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    /// The parts of the call before its parameters.
    pub before: &'static [CallPart],
    /// The parts after them.
    pub behind: &'static [CallPart],
    pub section: Option<&'static Section>,
    /// The markers that begin the header of the next message, where calls are messages.
    pub headers: &'static [&'static str],
}

impl Outside {
    /// The marker at the beginning of `text` that closes the call or its section. `last`: no text
    /// follows.
    pub fn closer(&self, text: &str, last: bool) -> Match {
        let find = if last { find_last } else { find };
        let parts = self.behind.iter().map(|part| match part {
            CallPart::Mark(marks) | CallPart::Maybe { marks, .. } => find(marks, text),
            _ => Match::No,
        });
        first(parts.chain(self.section.map(|section| find(section.close, text))))
    }

    /// The marker at the beginning of `text` that opens a section or a call.
    pub fn opener(&self, text: &str) -> Match {
        let parts = self.before.iter().map(|part| match part {
            // A marker that is a word occurs in prose, too.
            CallPart::Mark(marks)
                if !marks
                    .iter()
                    .any(|mark| mark.starts_with(char::is_alphanumeric)) =>
            {
                find(marks, text)
            }
            CallPart::Tag(tag) => first(tag.open.iter().map(|open| match starts(open, text) {
                // `<functions>` does not begin with `<function`.
                Match::Full(length) => match text[length..].chars().next() {
                    Some(next) if next.is_whitespace() => Match::Full(length),
                    Some(_) => Match::No,
                    None => Match::Partial,
                },
                found => found,
            })),
            _ => Match::No,
        });
        // The markers after the name, such as `>`, do not open a call.
        let named = self
            .before
            .iter()
            .position(|part| matches!(part, CallPart::Name { .. } | CallPart::Tag(_)));
        let parts = parts.take(named.map_or(usize::MAX, |at| at + 1));
        first(
            parts
                .chain(self.section.map(|section| find(section.open, text)))
                .chain([find(self.headers, text)]),
        )
    }
}

/// The first match that is not [`Match::No`].
fn first(mut found: impl Iterator<Item = Match>) -> Match {
    found.find(|found| *found != Match::No).unwrap_or(Match::No)
}
