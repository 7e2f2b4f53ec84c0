//! The table of checkers, and the checkers that need only a [`CallFilter`]. To add a checker, write
//! a file with the checker and its row, then add its `mod` line and its entry in the table.

use crate::checker::{
    CallFilter, Checker, CheckerRow, CheckerSettings, Checkers, Meaning, StreamEnding, Verdict,
    alike,
};
use crate::text_calls::{ChoicePart, TextCalls};
use event::payload::ContentDelta;
use event::{Event, Kind};
use std::rc::Rc;
use tag::{Streams, TagOptions};

mod auto;

/// The checkers that need only the events of a stream.
pub const CHECKERS: &[CheckerRow] = &[
    FULL,
    FIRST_CHUNK,
    LOOKAHEAD,
    auto::ROW,
    auto::ROW_WITH_RISK,
    TAG,
];

/// Returns the checkers with this name; `calls` decides what counts as a call. Returns `None` if
/// the name is not in the table, or if its argument is invalid.
pub fn checkers(name: &str, calls: &CallFilter) -> Option<Checkers> {
    checkers_with(name, calls, &CheckerSettings::default())
}

/// Like [`checkers`], with the settings of the user.
pub fn checkers_with(
    name: &str,
    calls: &CallFilter,
    settings: &CheckerSettings,
) -> Option<Checkers> {
    CHECKERS
        .iter()
        .find_map(|row| match row.name.split_once(':') {
            None => (row.name == name).then(|| (row.checkers)(calls.clone(), "", settings))?,
            Some((stem, _)) => (row.checkers)(
                calls.clone(),
                name.strip_prefix(stem)?.strip_prefix(':')?,
                settings,
            ),
        })
}

/// `full`: a call anywhere in the stream is an immediate yes; only the end of the stream is a no.
const FULL: CheckerRow = CheckerRow {
    name: "full",
    help: "a call anywhere is a yes, only the end is a no",
    checkers: |calls, _, _| {
        alike(move || Full {
            calls: calls.clone(),
        })
    },
};

struct Full {
    calls: CallFilter,
}

impl Checker for Full {
    #[inline]
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        if !matches!(event.kind(), Kind::ToolCallDelta | Kind::ToolCall) {
            return None; // text decides nothing here, so it is not even unescaped
        }
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            _ => None,
        }
    }
}

/// `first-chunk`: the first chunk with text or a call decides. Most frameworks do this; it is wrong
/// whenever text precedes a call. White space counts as text, as in most frameworks; only an event
/// with empty text is skipped.
///
/// A chunk with both text and a call is a yes, as in eino's default
/// (`firstChunkStreamToolCallChecker` in
/// <https://github.com/cloudwego/eino/blob/02c92db59b5e4a73bbb8896aa50dd0e52272eab9/flow/agent/react/react.go>),
/// which checks for calls first.
const FIRST_CHUNK: CheckerRow = CheckerRow {
    name: "first-chunk",
    help: "the first chunk with text or a call decides",
    checkers: |calls, _, _| {
        alike(move || FirstChunk {
            calls: calls.clone(),
        })
    },
};

struct FirstChunk {
    calls: CallFilter,
}

impl Checker for FirstChunk {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            Meaning::OtherCall => Some(Verdict::new(false, "a call of another tool came first")),
            // The call from the same chunk follows, and decides.
            Meaning::Text(_)
                if event.kind() == Kind::ContentDelta && ContentDelta::read(event).with_call =>
            {
                None
            }
            Meaning::Text(_) => Some(Verdict::new(false, "text came first")),
            Meaning::Nothing => None,
        }
    }
}

/// `lookahead:N`: no after N characters of text without a call.
///
/// It counts characters, not events, because providers split the same text into 1 or 1,000 deltas.
/// Leading white space does not count, because models also write it before calls: the count starts
/// at the first other character, and white space after it counts once more text follows.
const LOOKAHEAD: CheckerRow = CheckerRow {
    name: "lookahead:N",
    help: "no after N characters of text; white space before it does not count",
    checkers: |calls, limit, _| {
        let limit = limit.parse().ok()?;
        alike(move || Lookahead {
            calls: calls.clone(),
            limit,
            seen: 0,
            white: 0,
        })
    },
};

struct Lookahead {
    calls: CallFilter,
    /// The number of characters (Unicode scalar values) of text after which the verdict is no.
    limit: u64,
    /// The number of characters counted so far.
    seen: u64,
    /// White space characters at the end of the text so far, which count once more text follows.
    white: u64,
}

impl Lookahead {
    /// Counts a piece of text; returns whether the limit is reached.
    fn count(&mut self, text: &str) -> bool {
        for c in text.chars() {
            if !c.is_whitespace() {
                self.seen += std::mem::take(&mut self.white) + 1;
            } else if self.seen > 0 {
                self.white += 1;
            }
        }
        self.seen > 0 && self.seen >= self.limit
    }
}

impl Checker for Lookahead {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            Meaning::Text(text) => self.count(&text).then(|| {
                Verdict::new(
                    false,
                    format!("{} characters of text without a call", self.limit),
                )
            }),
            Meaning::OtherCall | Meaning::Nothing => None,
        }
    }
}

/// `tag`: like `full`, but a call that the model wrote as text counts too, as soon as the text can
/// only be parsed as a call.
///
/// The text of every stream is parsed, even if `tools_mode` is `native`. The dialect, tools and
/// prefill come from `stream_start`.
const TAG: CheckerRow = CheckerRow {
    name: "tag",
    help: "full, and a call that is written as text counts, in any dialect",
    checkers: |calls, _, _| {
        let streams = Streams::new(TagOptions {
            always: true,
            ..TagOptions::default()
        });
        Some(Rc::new(move |first| {
            let tag = streams.begin(first);
            let calls = calls.clone();
            Rc::new(move || {
                let text = TextCalls::new(Some(tag.fresh()), calls.clone());
                Box::new(TextChecker {
                    text,
                    full: Full {
                        calls: calls.clone(),
                    },
                })
            })
        }))
    },
};

struct TextChecker {
    text: TextCalls,
    /// Decides about calls that arrive as events.
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
    /// Returns the yes for a call found in the text, unless it was retracted immediately.
    fn verdict(&self, call: Option<String>) -> Option<Verdict> {
        call.filter(|_| self.text.holds())
            .map(|reason| Verdict::new(true, reason))
    }
}

/// Stores the last call in `call`.
fn keep_call(call: &mut Option<String>, found: ChoicePart<'_, '_>) {
    if let ChoicePart::Call(reason) = found {
        *call = Some(reason);
    }
}
