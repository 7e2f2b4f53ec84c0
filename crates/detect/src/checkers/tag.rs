//! `tag`: a call that is written as text counts too, as soon as the text can only be read as a call.
//!
//! The text of every stream is read, even where `tools_mode` is `native`; dialect, tools and prefill are those of `stream_start`.

use crate::checker::{Checker, CheckerRow, StreamEnding, Verdict};
use crate::checkers::full::{self, Full};
use event::payload::{Retract, StreamEnd, ToolCallDelta};
use event::{Event, Machine, Payload, Sink};
use std::rc::Rc;
use tag::{Options, Streams, Tag};

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "tag",
    help: "full, and a call that is written as text counts, in any dialect",
    checkers: |calls, _, _| {
        let streams = Streams::new(Options { always: true, ..Options::default() });
        Some(Rc::new(move |first| {
            let (tag, calls) = (streams.begin(first), calls.clone());
            Rc::new(move || Box::new(TextChecker::new(tag.fresh(), full::checker(calls.clone()))))
        }))
    },
};

struct TextChecker {
    tag: Option<Tag>,
    calls: TextCalls,
}

impl TextChecker {
    /// Reads text by `tag`; `full` decides whether a call counts, in an event or in text.
    fn new(tag: Tag, full: Full) -> Self {
        TextChecker { tag: Some(tag), calls: TextCalls { full, counted: 0, held: Vec::new(), verdict: None } }
    }
}

/// The calls that the parser finds in the text.
struct TextCalls {
    full: Full,
    /// How many counted.
    counted: u64,
    /// The indexes of those that hold.
    held: Vec<i64>,
    verdict: Option<Verdict>,
}

impl Checker for TextChecker {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        let native = self.calls.full.push(event);
        if let Some(tag) = &mut self.tag {
            tag.push(event, &mut self.calls);
        }
        native.or_else(|| self.calls.verdict())
    }

    fn end(&mut self, end: StreamEnding) -> Option<Verdict> {
        if let Some(mut tag) = self.tag.take() {
            match end {
                StreamEnding::Cut => tag.finish(&mut self.calls),
                StreamEnding::Stream(finish_reason) => {
                    let end = StreamEnd { finish_reason, provider_finish_reason: None }.into();
                    tag.push(&Event::of(&end, None, 0, None), &mut self.calls);
                }
            }
        }
        self.calls.verdict().or_else(|| self.calls.full.end(end))
    }

    fn reads_past_verdict(&self) -> bool {
        true
    }

    fn overturned(&self) -> Option<bool> {
        (self.calls.counted > 0).then_some(self.calls.held.is_empty())
    }
}

impl TextCalls {
    /// The yes, unless its call was retracted at once.
    fn verdict(&mut self) -> Option<Verdict> {
        self.verdict.take().filter(|_| !self.held.is_empty())
    }
}

impl Sink for TextCalls {
    fn pass(&mut self) {}

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        match payload {
            Payload::Retract(Retract { index: Some(index), .. }) => self.held.retain(|held| held != index),
            Payload::ToolCallDelta(ToolCallDelta { index: Some(index), tool_name: Some(_), .. }) => {
                if let Some(verdict) = self.full.push(&Event::of(payload, None, choice, None)) {
                    self.counted += 1;
                    self.held.push(*index);
                    self.verdict = Some(Verdict::new(true, format!("{}, written as text", verdict.reason)));
                }
            }
            _ => {}
        }
    }

    fn line(&mut self, _: &str) {}
}
