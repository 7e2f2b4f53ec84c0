//! Writes events that look like the event before. The deltas of one stream differ only in their
//! text and their time, so that the rest of such a line is copied from the last one.

use crate::payload::{self, ContentDelta, Payload, Thinking, ToolCallDelta};
use crate::{Kind, Text};

/// Writes events as lines, each as [`payload::line`] writes it.
#[derive(Debug, Default)]
pub struct Encoder {
    /// The last delta; `None` before the first one.
    last: Option<DeltaKey>,
    choice: u32,
    /// The name of its stream, as JSON; empty for the unnamed stream.
    stream: String,
    /// The bytes of its line before the text, without `t`.
    start: Vec<u8>,
    /// The number of those before `t`.
    envelope: usize,
}

/// What the lines of two deltas must have in common, so that they can differ only in their texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeltaKey {
    kind: Kind,
    index: Option<i64>,
}

impl DeltaKey {
    /// Returns the key and the text of a delta whose only member beside the text is the index;
    /// `None` for any other event.
    #[inline(always)]
    fn of<'a>(payload: &Payload<'a>) -> Option<(DeltaKey, Text<'a>)> {
        let (kind, index, text) = match *payload {
            Payload::ToolCallDelta(ToolCallDelta {
                index,
                tool_id: None,
                tool_name: None,
                arguments: Some(text),
                done: false,
                from_text: false,
                provider: None,
            }) => (Kind::ToolCallDelta, index, text),
            Payload::ContentDelta(ContentDelta {
                text,
                with_call: false,
            }) => (Kind::ContentDelta, None, text),
            Payload::Thinking(Thinking {
                text,
                provider: None,
            }) => (Kind::Thinking, None, text),
            _ => return None,
        };
        Some((DeltaKey { kind, index }, text))
    }
}

impl Encoder {
    /// Writes one line without its line feed; see [`payload::line`].
    #[inline]
    pub fn line(
        &mut self,
        out: &mut Vec<u8>,
        payload: &Payload<'_>,
        stream: Option<&str>,
        choice: u32,
        t: Option<&str>,
    ) {
        let Some((key, text)) = DeltaKey::of(payload) else {
            return payload::line(out, payload, stream, choice, t);
        };
        let is_same_stream = match stream {
            Some(stream) => self.stream == stream,
            None => self.stream.is_empty(),
        };
        if self.last != Some(key) || self.choice != choice || !is_same_stream {
            self.learn(key, text, payload, stream, choice);
        }
        if t.is_some() {
            let (envelope, members) = self.start.split_at(self.envelope);
            out.extend_from_slice(envelope);
            payload::time(out, t);
            out.extend_from_slice(members);
        } else {
            out.extend_from_slice(&self.start);
        }
        text.write(out);
        out.push(b'}');
    }

    /// Stores the parts of the line of a delta.
    #[inline(never)]
    fn learn(
        &mut self,
        key: DeltaKey,
        text: Text<'_>,
        payload: &Payload<'_>,
        stream: Option<&str>,
        choice: u32,
    ) {
        (self.last, self.choice) = (Some(key), choice);
        self.stream.clear();
        self.stream.push_str(stream.unwrap_or(""));
        self.start.clear();
        // The text is the last member, so that it is cut off again.
        text.write(&mut self.start);
        let length = self.start.len();
        self.start.clear();
        payload::envelope(&mut self.start, payload, stream, choice);
        self.envelope = self.start.len();
        payload::fields(&mut self.start, payload);
        self.start.truncate(self.start.len() - length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Scanner};

    /// Returns the line of an event of a line, as the encoder and as [`payload::line`] writes it.
    fn both(encoder: &mut Encoder, event: &Event<'_>) -> Option<[String; 2]> {
        let payload = event.payload()?;
        let stream = event.stream().map(crate::Raw::text);
        let t = event.t().map(crate::Raw::text);
        let (mut line, mut alone) = (Vec::new(), Vec::new());
        encoder.line(&mut line, &payload, stream, event.choice(), t);
        payload::line(&mut alone, &payload, stream, event.choice(), t);
        Some([line, alone].map(|line| String::from_utf8(line).unwrap()))
    }

    /// Deltas that get the key of a delta before, or nearly.
    const LINES: [&str; 20] = [
        r#"{"type":"content_delta","text":"a"}"#,
        r#"{"type":"content_delta","text":""}"#,
        r#"{"type":"content_delta","t":0.5,"text":"\"é\u007f\ud83d"}"#,
        r#"{"type":"content_delta","text":"a","with_call":true}"#,
        r#"{"type":"content_delta","stream":"s","text":"a"}"#,
        r#"{"type":"content_delta","stream":"s2","text":"a"}"#,
        r#"{"type":"content_delta","choice":1,"text":"a"}"#,
        r#"{"type":"content_delta","stream":"s","choice":1,"t":7,"text":"a"}"#,
        r#"{"type":"refusal_delta","text":"a"}"#,
        r#"{"type":"thinking","text":"a"}"#,
        r#"{"type":"thinking","text":"a","provider":{"b":1}}"#,
        r#"{"type":"tool_call_delta","index":0,"arguments":"{\"a"}"#,
        r#"{"type":"tool_call_delta","t":1,"index":0,"arguments":""}"#,
        r#"{"type":"tool_call_delta","index":1,"arguments":"b"}"#,
        r#"{"type":"tool_call_delta","arguments":"b"}"#,
        r#"{"type":"tool_call_delta","index":0,"tool_id":"c","arguments":"b"}"#,
        r#"{"type":"tool_call_delta","index":0,"tool_name":"f","from_text":true}"#,
        r#"{"type":"tool_call_delta","index":0,"arguments":"b","done":true}"#,
        r#"{"type":"tool_call_delta","index":0,"arguments":"b","provider":1}"#,
        r#"{"type":"stream_end","finish_reason":"stop"}"#,
    ];

    #[test]
    fn an_event_is_written_the_same_whatever_was_written_before() {
        let mut scanner = Scanner::default();
        for before in LINES {
            for line in LINES {
                let mut encoder = Encoder::default();
                for line in [before, line, line] {
                    let event = scanner.read(line).unwrap();
                    let [written, alone] = both(&mut encoder, &event).unwrap();
                    assert_eq!(written, alone, "after {before}");
                }
            }
        }
    }

    #[test]
    fn recorded_events_are_written_as_one_by_one() {
        let (mut scanner, mut encoder) = (Scanner::default(), Encoder::default());
        let mut alike = 0;
        for body in testkit::bodies() {
            let Ok(text) = std::fs::read_to_string(body.events()) else {
                continue;
            };
            for line in text.lines() {
                let Ok(event) = scanner.read(line) else {
                    continue;
                };
                let before = encoder.last;
                let Some([written, alone]) = both(&mut encoder, &event) else {
                    continue;
                };
                let key = event
                    .payload()
                    .and_then(|payload| Some(DeltaKey::of(&payload)?.0));
                alike += usize::from(key.is_some() && key == before);
                assert_eq!(written, alone, "{}: {line}", body.name);
            }
        }
        assert!(alike > 1000, "{alike} lines look alike");
    }
}
