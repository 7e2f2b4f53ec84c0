//! `tag`: a call that is written as text counts as one, as soon as no other reading of the text is left.

use detect::{Checker, End, Verdict};
use event::payload::{Retract, StreamEnd, ToolCallDelta};
use event::{Event, Machine, Payload, Scanner, Sink};
use std::rc::Rc;
use tag::{Options, Streams, Tag};

/// What all streams of a run share.
#[derive(Clone)]
pub struct Texts {
    streams: Rc<Streams>,
}

impl Texts {
    /// Text is read whatever `tools_mode` says; its dialect, the tools and the end of the prompt are those of `stream_start`.
    pub fn new() -> Self {
        Texts { streams: Rc::new(Streams::new(Options { always: true, ..Options::default() })) }
    }

    /// The checker of one choice of the stream that begins with the line `first`. `full` judges its calls, those in events and
    /// those in text.
    pub fn checker(&self, first: &str, full: Box<dyn Checker>) -> Text {
        let mut scanner = Scanner::default();
        let started = scanner.read(first).map(|first| self.streams.begin(&first));
        Text { tag: started.ok(), found: Found { full, calls: 0, left: Vec::new(), verdict: None } }
    }
}

/// The checker; see the module.
pub struct Text {
    tag: Option<Tag>,
    found: Found,
}

/// What the parser finds.
struct Found {
    full: Box<dyn Checker>,
    /// How many calls in the text counted, and which of them hold.
    calls: u64,
    left: Vec<i64>,
    verdict: Option<Verdict>,
}

impl Checker for Text {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        let native = self.found.full.push(event);
        if let Some(tag) = &mut self.tag {
            tag.push(event, &mut self.found);
        }
        native.or_else(|| self.found.verdict())
    }

    fn end(&mut self, end: End) -> Option<Verdict> {
        if let Some(mut tag) = self.tag.take() {
            match end {
                End::Cut => tag.finish(&mut self.found),
                End::Stream(finish_reason) => {
                    let end = StreamEnd { finish_reason, provider_finish_reason: None }.into();
                    tag.push(&Event::of(&end, None, 0, None), &mut self.found);
                }
            }
        }
        self.found.verdict().or_else(|| self.found.full.end(end))
    }

    fn follows(&self) -> bool {
        true
    }

    fn overturned(&self) -> Option<bool> {
        (self.found.calls > 0).then_some(self.found.left.is_empty())
    }
}

impl Found {
    /// The yes, unless its call was taken back at once.
    fn verdict(&mut self) -> Option<Verdict> {
        self.verdict.take().filter(|_| !self.left.is_empty())
    }
}

impl Sink for Found {
    fn pass(&mut self) {}

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        match payload {
            Payload::Retract(Retract { index: Some(index), .. }) => self.left.retain(|left| left != index),
            Payload::ToolCallDelta(ToolCallDelta { index: Some(index), tool_name: Some(_), .. }) => {
                if let Some(verdict) = self.full.push(&Event::of(payload, None, choice, None)) {
                    self.calls += 1;
                    self.left.push(*index);
                    self.verdict = Some(Verdict::new(true, format!("{}, written as text", verdict.reason)));
                }
            }
            _ => {}
        }
    }

    fn line(&mut self, _: &str) {}
}
