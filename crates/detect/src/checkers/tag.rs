//! `tag`: a call that is written as text counts too, as soon as the text can only be read as a
//! call.
//!
//! The text of every stream is read, even where `tools_mode` is `native`; dialect, tools and
//! prefill are those of `stream_start`.

use crate::checker::{Checker, CheckerRow, StreamEnding, Verdict};
use crate::checkers::full::{self, Full};
use crate::text_calls::{Found, TextCalls};
use event::Event;
use std::rc::Rc;
use tag::{Options, Streams};

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "tag",
    help: "full, and a call that is written as text counts, in any dialect",
    checkers: |calls, _, _| {
        let streams = Streams::new(Options {
            always: true,
            ..Options::default()
        });
        Some(Rc::new(move |first| {
            let (tag, calls) = (streams.begin(first), calls.clone());
            Rc::new(move || {
                let text = TextCalls::new(Some(tag.fresh()), calls.clone());
                Box::new(TextChecker {
                    text,
                    full: full::checker(calls.clone()),
                })
            })
        }))
    },
};

struct TextChecker {
    text: TextCalls,
    /// Decides about calls that are events.
    full: Full,
}

impl Checker for TextChecker {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        let native = self.full.push(event);
        let mut call = None;
        self.text
            .push(event, &mut |found| keep_call(&mut call, found));
        native.or_else(|| self.verdict(call))
    }

    fn end(&mut self, ending: StreamEnding) -> Option<Verdict> {
        let mut call = None;
        self.text
            .end(ending, &mut |found| keep_call(&mut call, found));
        self.verdict(call).or_else(|| self.full.end(ending))
    }

    fn reads_past_verdict(&self) -> bool {
        true
    }

    fn overturned(&self) -> Option<bool> {
        self.text.overturned()
    }
}

impl TextChecker {
    /// The yes of a call of the text, unless it was retracted at once.
    fn verdict(&self, call: Option<String>) -> Option<Verdict> {
        call.filter(|_| self.text.holds())
            .map(|reason| Verdict::new(true, reason))
    }
}

/// Keeps the last call.
fn keep_call(call: &mut Option<String>, found: Found<'_, '_>) {
    if let Found::Call(reason) = found {
        *call = Some(reason);
    }
}
