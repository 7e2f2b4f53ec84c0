//! Reads the events of a tape, where each exchange is a stream.

use super::body::BodySink;
use super::settings::{EventOrigin, ReadSettings, Take, native_or_none, openai_tools};
use anyhow::{Context, Result, bail};
use api::tape::{Tape, TapeEnding, TapeExchange};
use api::{Api, End, Stream, StreamOptions};
use std::time::Duration;

/// Passes the events of each exchange to `take`; returns the number of exchanges.
pub(super) fn read(bytes: &[u8], settings: &ReadSettings, take: &mut Take<'_>) -> Result<u64> {
    let text = std::str::from_utf8(bytes).context("not UTF-8, a tape is text")?;
    let tape = Tape::read(text)?;
    let mut lines = TapeLines {
        text,
        number: 0,
        end: 0,
    };
    for (part, one) in (1..).zip(&tape.exchanges) {
        if settings.reads(part) {
            lines.find(one.line);
            exchange(one, part, &mut lines, settings, take)?;
        }
    }
    Ok(tape.exchanges.len() as u64)
}

/// The lines of a tape, read one after the other beside its exchanges, which have no places.
struct TapeLines<'t> {
    text: &'t str,
    number: usize,
    /// The byte offset at which the current line ends.
    end: usize,
}

impl TapeLines<'_> {
    /// Advances to the line with this number, from 1 on.
    fn find(&mut self, number: usize) {
        while self.number < number && self.step().is_some() {}
    }

    /// Goes to the next line that is neither blank nor a comment, and gives where it ends; at the
    /// end of the tape, that end.
    fn next(&mut self) -> u64 {
        while let Some(line) = self.step() {
            let line = line.trim_start_matches('\u{feff}').trim();
            if !line.is_empty() && !line.starts_with('#') {
                break;
            }
        }
        self.end as u64
    }

    fn step(&mut self) -> Option<&str> {
        let line = self.text[self.end..].split_inclusive('\n').next()?;
        self.end += line.len();
        self.number += 1;
        Some(line)
    }
}

fn exchange(
    exchange: &TapeExchange,
    part: u64,
    lines: &mut TapeLines<'_>,
    settings: &ReadSettings,
    take: &mut Take<'_>,
) -> Result<()> {
    let Some(api) = Api::from_name(&exchange.api).or(settings.api) else {
        bail!(
            "line {}: the API \"{}\" is unknown; correct it in the tape",
            exchange.line,
            exchange.api
        );
    };
    let mut stream = Stream::new(api, options(exchange, settings));
    let mut at = exchange
        .head
        .as_ref()
        .map(|head| head.after)
        .unwrap_or_default();
    let mut sink = BodySink {
        take,
        origin: EventOrigin {
            part,
            offset: lines.end as u64,
            ms: Some(millis(at)),
        },
        is_too_long: false,
    };
    if exchange.head.is_some() {
        sink.origin.offset = lines.next();
    }
    if let Some(head) = exchange
        .head
        .as_ref()
        .filter(|head| !(200..300).contains(&head.status))
    {
        sink.origin.offset = exchange
            .reads
            .iter()
            .fold(sink.origin.offset, |_, _| lines.next());
        stream.error_body(head.status, &exchange.body(), None, &mut sink);
        return Ok(());
    }
    for read in &exchange.reads {
        at += read.after;
        sink.origin.offset = lines.next();
        sink.origin.ms = Some(millis(at));
        sink.feed_pieces(&mut stream, &read.bytes, settings);
        if stream.is_done() {
            return sink.check(settings);
        }
    }
    // An exchange without an end was cut there, and ends as if the server had closed it.
    let (after, ending) = exchange.end.unwrap_or((Duration::ZERO, TapeEnding::Eof));
    sink.origin.ms = Some(millis(at + after));
    if exchange.end.is_some() {
        sink.origin.offset = lines.next();
    }
    let end = match ending {
        TapeEnding::Eof => End::Eof,
        TapeEnding::Reset => End::Reset("the connection was lost, as recorded".to_owned()),
        TapeEnding::Timeout => End::Timeout("no data came for too long, as recorded".to_owned()),
    };
    stream.finish(end, &mut sink);
    sink.check(settings)
}

/// What the request on the tape shows, and the settings where it shows nothing.
fn options(exchange: &TapeExchange, settings: &ReadSettings) -> StreamOptions {
    let mut options = settings.options();
    if !exchange.model.is_empty() {
        options.model = Some(exchange.model.clone());
    }
    if settings.tools_mode.is_none() && exchange.request.body.is_object() {
        let tools = exchange
            .request
            .body
            .get("tools")
            .and_then(|tools| openai_tools(&tools.to_string()));
        if tools.is_some() || settings.tools.is_none() {
            options.tools_mode = Some(
                tools
                    .as_deref()
                    .map_or_else(|| "none".to_owned(), native_or_none),
            );
            options.tools = tools;
        }
    }
    options
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_names_the_line_of_its_read() {
        let header = |n: u32| {
            format!(
                "{{\"tape\":1,\"api\":\"openai-chat\",\"model\":\"m{n}\",\"request\":{{\"body\":{{\"n\":{n}}}}}}}\n"
            )
        };
        let text = |text: &str| {
            format!(
                "[0,\"text\",\"data: {{\\\"choices\\\":[{{\\\"delta\\\":{{\\\"content\\\":\\\"{text}\\\"}}}}]}}\\n\\n\"]\n"
            )
        };
        let head = "[0,\"head\",{\"status\":200}]\n";
        let tape = [
            "# a comment\n\n",
            &header(1),
            head,
            "# another\r\n",
            &text("a"),
            "\n",
            &text("b"),
            "[0,\"end\",\"eof\"]\n",
            &header(2),
            head,
            &text("c"),
        ]
        .concat();
        let places = |part: Option<u64>| {
            let mut places = Vec::new();
            let settings = ReadSettings {
                part,
                ..ReadSettings::default()
            };
            let take = &mut |event: &event::Event<'_>, origin: super::super::EventOrigin| {
                let lines = tape[..origin.offset as usize].lines().count();
                places.push((event.kind().name(), origin.part, lines));
            };
            read(tape.as_bytes(), &settings, take).expect("a tape");
            places
        };
        let first = [("content_delta", 1, 6), ("content_delta", 1, 8)];
        let all = places(None);
        let texts: Vec<_> = all
            .iter()
            .copied()
            .filter(|place| place.0 == "content_delta")
            .collect();
        assert_eq!(texts, [&first[..], &[("content_delta", 2, 12)]].concat());
        assert!(
            all.contains(&("stream_end", 1, 9)) && all.contains(&("stream_end", 2, 12)),
            "{all:?}"
        );
        assert!(
            places(Some(2))
                .iter()
                .all(|place| place.1 == 2 && place.2 >= 11)
        );
    }
}
