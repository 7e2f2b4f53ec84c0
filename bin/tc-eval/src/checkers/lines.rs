//! Writes a stream as lines for a command, under a unique name.

use event::payload::{self, FinishReason, StreamEnd};
use event::{Event, Kind, Object, Raw};
use score::Place;

/// Writes streams one after the other. The lines are made once for all commands.
#[derive(Debug, Default)]
pub(super) struct StreamLines {
    /// The number of streams that have begun.
    count: u64,
    /// The name of this stream.
    name: String,
    /// The name of this stream as JSON.
    quoted: String,
    /// The place of the event of each line.
    places: Vec<Place>,
    has_ended: bool,
    line: Vec<u8>,
}

impl StreamLines {
    /// Begins the next stream. Its name is its number and `id`, so that streams with equal ids have
    /// different names.
    pub(super) fn begin(&mut self, id: &str) {
        self.count += 1;
        self.name = format!("{}:{id}", self.count);
        self.quoted = event::quoted(&self.name);
        self.places.clear();
        self.has_ended = false;
    }

    /// The name of this stream.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where the event of that line is, counted from 1; `None` for a number behind the last.
    pub(super) fn place(&self, number: u64) -> Option<Place> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.places.get(index).copied()
    }

    /// The line of an event, with its line feed. `None` for a decision, which is an answer and
    /// would be taken for the command's own where the command passes it on, and for what follows
    /// the end of the stream.
    pub(super) fn line(&mut self, event: &Event<'_>, at: Place) -> Option<&[u8]> {
        if event.kind() == Kind::Decision || self.has_ended {
            return None;
        }
        self.has_ended = event.kind() == Kind::StreamEnd;
        self.line.clear();
        let text = |raw: Option<Raw<'_>>| raw.map(|raw| raw.text().to_owned());
        match event.payload() {
            // Made in this process; an event of a line has the fields of that line, which may be
            // more than a payload has.
            Some(payload) if event.fields().next().is_none() => {
                let t = text(event.t());
                payload::line(
                    &mut self.line,
                    &payload,
                    Some(&self.quoted),
                    event.choice(),
                    t.as_deref(),
                );
            }
            _ => renamed(&mut self.line, &event.raw(), &self.quoted),
        }
        self.line.push(b'\n');
        self.places.push(at);
        Some(&self.line)
    }

    /// The end of a stream that was cut before its `stream_end`; `None` where it has one.
    pub(super) fn end(&mut self, at: Place) -> Option<&[u8]> {
        if self.has_ended {
            return None;
        }
        let end = StreamEnd {
            finish_reason: FinishReason::Cut,
            provider_finish_reason: None,
        }
        .into();
        self.line(&Event::of(&end, None, 0, None), at)
    }
}

/// Appends an event's line with the name of another stream.
fn renamed(out: &mut Vec<u8>, line: &str, name: &str) {
    let Ok(fields) = Raw::parse(line) else { return };
    let mut o = Object::open(out);
    o.raw("stream", name);
    for (key, value) in fields.entries().filter(|(key, _)| key != "stream") {
        o.minified(&key, value.text());
    }
    o.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    fn lines(id: &str, input: &[&str]) -> Vec<String> {
        let mut lines = StreamLines::default();
        lines.begin(id);
        let mut scanner = Scanner::default();
        let mut out = Vec::new();
        for line in input {
            let event = scanner.read(line).expect("an event");
            out.extend(lines.line(&event, Place::default()).map(<[u8]>::to_vec));
        }
        out.extend(lines.end(Place::default()).map(<[u8]>::to_vec));
        assert_eq!(lines.places.len(), out.len());
        out.into_iter()
            .map(|line| String::from_utf8(line).expect("UTF-8"))
            .collect()
    }

    #[test]
    fn a_line_keeps_its_fields_and_has_the_name_of_the_stream() {
        let out = lines(
            "a\n\"b",
            &[
                r#"{"type":"stream_start","stream":"old","v":1,"later":[1.50]}"#,
                r#"{"type":"of_tomorrow","str\u0065am":"old"}"#,
                r#"{"type":"decision","tool_call":true}"#,
                r#"{"type":"stream_end","finish_reason":"stop"}"#,
                r#"{"type":"message","message":{}}"#,
            ],
        );
        let name = r#"{"stream":"1:a\n\"b","#;
        assert_eq!(
            out,
            [
                format!("{name}\"type\":\"stream_start\",\"v\":1,\"later\":[1.50]}}\n"),
                format!("{name}\"type\":\"of_tomorrow\"}}\n"),
                format!("{name}\"type\":\"stream_end\",\"finish_reason\":\"stop\"}}\n"),
            ]
        );
    }

    #[test]
    fn a_stream_that_was_cut_gets_an_end() {
        let out = lines("a", &[r#"{"type":"content_delta","text":"x"}"#]);
        assert_eq!(out.len(), 2);
        assert_eq!(
            out[1],
            "{\"type\":\"stream_end\",\"stream\":\"1:a\",\"finish_reason\":\"cut\"}\n"
        );
    }

    #[test]
    fn equal_ids_have_different_names() {
        let mut lines = StreamLines::default();
        lines.begin("a");
        let first = lines.name().to_owned();
        lines.begin("a");
        assert_ne!(first, lines.name());
    }

    #[test]
    fn a_number_behind_the_end_has_no_place() {
        let mut lines = StreamLines::default();
        lines.begin("a");
        lines.end(Place {
            events: 7,
            ..Place::default()
        });
        let events = |number| lines.place(number).map(|place| place.events);
        assert_eq!(
            [events(0), events(1), events(2), events(u64::MAX)],
            [None, Some(7), None, None]
        );
    }
}
