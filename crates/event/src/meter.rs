//! How much of a stream may be in memory, told by the events that come in and go out.

use crate::payload::{ContentDelta, RefusalDelta, Thinking, ToolCallDelta};
use crate::{Choices, Event, Json, Kind, Text};

/// What a choice beyond the first takes beside its text, what a call does, and what a text does of
/// another kind than the one before.
const CHOICE: usize = 4 << 10;
const CALL: usize = 1 << 10;
const BLOCK: usize = 512;

/// Counts what the machines of a stream may keep. They keep nothing but what has come, so that one
/// count where the events come in stands for all of them.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: usize,
    choices: Choices<()>,
    /// The choice and the index of the last delta of a call.
    call: Option<(u32, Option<i64>)>,
    /// The kind of the last text.
    text: Option<Kind>,
    has_calls: bool,
}

impl Meter {
    /// The bytes that may be kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// An event came in.
    pub fn take(&mut self, event: &Event<'_>) {
        let choice = event.choice();
        match event.kind() {
            Kind::ToolCallDelta => self.take_call(choice, &ToolCallDelta::read(event)),
            Kind::ContentDelta => self.take_text(choice, &ContentDelta::read(event)),
            kind => {
                self.choice(choice);
                self.bytes += size(event);
                if matches!(kind, Kind::RefusalDelta | Kind::Thinking) {
                    self.block(kind);
                }
            }
        }
    }

    /// As [`Meter::take`], for a delta of a call that was read already.
    #[inline]
    pub fn take_call(&mut self, choice: u32, delta: &ToolCallDelta<'_>) {
        self.choice(choice);
        self.bytes += size_of_call(delta);
        let call = Some((choice, delta.index));
        if delta.tool_name.is_some() || call != self.call {
            self.call = call;
            self.bytes += CALL;
        }
    }

    /// As [`Meter::take`], for a text that was read already.
    #[inline]
    pub fn take_text(&mut self, choice: u32, delta: &ContentDelta<'_>) {
        self.choice(choice);
        self.bytes += delta.text.size();
        self.block(Kind::ContentDelta);
    }

    #[inline]
    fn choice(&mut self, number: u32) {
        let known = self.choices.len().max(1);
        self.choices.place(number, || ());
        self.bytes += (self.choices.len() - known) * CHOICE;
    }

    #[inline]
    fn block(&mut self, kind: Kind) {
        if self.text != Some(kind) {
            self.text = Some(kind);
            self.bytes += BLOCK;
        }
    }

    /// An event went out to a reader to whom it is written at once. What went out is not kept, but
    /// calls are until the end of their stream, and what comes after a call may wait for it.
    pub fn give(&mut self, event: &Event<'_>) {
        match event.kind() {
            Kind::ToolCall | Kind::ToolCallDelta => self.has_calls = true,
            // Machines write these.
            Kind::Warning | Kind::Retract | Kind::ToolCallPartial => {}
            _ if self.has_calls => {}
            _ => self.bytes = self.bytes.saturating_sub(size(event)),
        }
    }
}

/// The bytes of a JSON value that may be kept.
#[inline]
fn size_of_json(json: Option<Json<'_>>) -> usize {
    json.map_or(0, |json| json.text().len())
}

/// The bytes of the delta of a call that may be kept.
#[inline]
fn size_of_call(delta: &ToolCallDelta<'_>) -> usize {
    let texts = [delta.tool_id, delta.tool_name, delta.arguments];
    let texts = texts.map(|text| text.map_or(0, Text::size));
    texts.iter().sum::<usize>() + size_of_json(delta.provider)
}

/// The bytes of an event that may be kept.
fn size(event: &Event<'_>) -> usize {
    match event.kind() {
        Kind::ContentDelta => ContentDelta::read(event).text.size(),
        Kind::RefusalDelta => RefusalDelta::read(event).text.size(),
        Kind::Thinking => {
            let Thinking { text, provider } = Thinking::read(event);
            text.size() + size_of_json(provider)
        }
        Kind::ToolCallDelta => size_of_call(&ToolCallDelta::read(event)),
        // They are read and not kept.
        Kind::StreamStart
        | Kind::StreamEnd
        | Kind::SessionStats
        | Kind::Message
        | Kind::Error
        | Kind::Request
        | Kind::Response => 0,
        _ => event.raw().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scanner;

    /// The bytes after lines that came in and went out; a `-` stands before one that stays in.
    fn bytes(lines: &[&str]) -> usize {
        let mut meter = Meter::default();
        let mut scanner = Scanner::default();
        for line in lines {
            let stays = line.strip_prefix('-');
            let event = scanner.read(stays.unwrap_or(line)).expect("an event");
            meter.take(&event);
            if stays.is_none() {
                meter.give(&event);
            }
        }
        meter.bytes()
    }

    const TEXT: &str = r#"{"type":"content_delta","text":"0123456789"}"#;
    const HELD: &str = r#"-{"type":"content_delta","text":"0123456789"}"#;
    const BEGUN: &str =
        r#"{"type":"tool_call_delta","index":0,"tool_name":"f","arguments":"0123456789"}"#;

    #[test]
    fn text_counts_until_it_goes_out_and_calls_to_the_end() {
        assert_eq!(bytes(&[TEXT; 1000]), BLOCK);
        assert_eq!(bytes(&[TEXT, HELD, TEXT, HELD, TEXT]), BLOCK + 20);
        let call = bytes(&[BEGUN]);
        assert_eq!(call, CALL + "f0123456789".len());
        // What comes after a call may wait for it.
        assert_eq!(bytes(&[BEGUN, TEXT, TEXT]), call + BLOCK + 20);
        assert_eq!(bytes(&[TEXT, BEGUN]), call + BLOCK);
    }

    #[test]
    fn many_small_things_count_more_than_their_bytes() {
        let lines = |line: &dyn Fn(usize) -> String| {
            let lines: Vec<_> = (0..100).map(line).collect();
            bytes(&lines.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let choices = lines(&|n| format!(r#"{{"type":"content_delta","choice":{n},"text":""}}"#));
        assert_eq!(choices, 99 * CHOICE + BLOCK);
        let calls = lines(&|n| format!(r#"{{"type":"tool_call_delta","index":{n}}}"#));
        assert_eq!(calls, 100 * CALL);
        let kinds = ["content_delta", "thinking"];
        let blocks = lines(&|n| format!(r#"{{"type":"{}","text":""}}"#, kinds[n % 2]));
        assert_eq!(blocks, 100 * BLOCK);
        let delta = |_| r#"{"type":"tool_call_delta","index":0,"arguments":"1"}"#.to_owned();
        assert_eq!(lines(&delta), CALL + 100);
    }
}
