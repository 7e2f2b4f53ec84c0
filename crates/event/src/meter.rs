//! Limits the memory of a stream: counts the bytes that machines may keep of the events that come
//! in and go out.

use crate::payload::{ContentDelta, RefusalDelta, Thinking, ToolCallDelta};
use crate::{Choices, Event, Json, Kind, Text};

/// The bytes that are counted for each choice beyond the first, for each call, and for each text of
/// another kind than the previous text, in addition to the text itself.
const CHOICE: usize = 4 << 10;
const CALL: usize = 1 << 10;
const BLOCK: usize = 512;

/// Counts the bytes that the machines of a stream may keep. Machines keep only what they received,
/// so one count of the incoming events covers all machines.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: usize,
    choices: Choices<()>,
    /// The choice and the index of the last `tool_call_delta`.
    call: Option<(u32, Option<i64>)>,
    /// The kind of the last text; `None` before the first text.
    text: Option<Kind>,
    has_calls: bool,
}

impl Meter {
    /// Returns the number of bytes that may be kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts an incoming event.
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

    /// Like [`Meter::take`], for a `tool_call_delta` that the caller has already read.
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

    /// Like [`Meter::take`], for a `content_delta` that the caller has already read.
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

    /// Counts an outgoing event that is written to its reader at once. The event is no longer kept,
    /// with two exceptions: calls are kept until the end of their stream, and events after a call
    /// may have to wait for it.
    pub fn give(&mut self, event: &Event<'_>) {
        match event.kind() {
            Kind::ToolCall | Kind::ToolCallDelta => self.has_calls = true,
            // Most of these events are created by machines, so they were never counted as incoming.
            Kind::Warning | Kind::Retract | Kind::ToolCallPartial => {}
            _ if self.has_calls => {}
            _ => self.bytes = self.bytes.saturating_sub(size(event)),
        }
    }
}

/// Returns the number of bytes of a JSON value that may be kept.
#[inline]
fn size_of_json(json: Option<Json<'_>>) -> usize {
    json.map_or(0, |json| json.text().len())
}

/// Returns the number of bytes of a `tool_call_delta` that may be kept.
#[inline]
fn size_of_call(delta: &ToolCallDelta<'_>) -> usize {
    let texts = [delta.tool_id, delta.tool_name, delta.arguments];
    let texts = texts.map(|text| text.map_or(0, Text::size));
    texts.iter().sum::<usize>() + size_of_json(delta.provider)
}

/// Returns the number of bytes of an event that may be kept.
fn size(event: &Event<'_>) -> usize {
    match event.kind() {
        Kind::ContentDelta => ContentDelta::read(event).text.size(),
        Kind::RefusalDelta => RefusalDelta::read(event).text.size(),
        Kind::Thinking => {
            let Thinking { text, provider } = Thinking::read(event);
            text.size() + size_of_json(provider)
        }
        Kind::ToolCallDelta => size_of_call(&ToolCallDelta::read(event)),
        // Machines read these events and do not keep them.
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

    /// Returns the count after these lines came in and went out. A line that starts with `-` only
    /// comes in.
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
        // Events after a call may have to wait for it.
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
