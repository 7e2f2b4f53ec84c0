//! Reads the events of a log, one per line.

use super::settings::{EventOrigin, ReadSettings, Take};
use anyhow::{Result, bail};
use event::payload::StreamStart;
use event::{Event, Json, Kind, Payload, Raw, Scanner, Text};
use std::collections::HashMap;
use std::io::{BufRead, Read};

/// Maximum length of a line in bytes, if the settings have no limit.
const MAX_LINE: usize = 64 << 20;

/// Passes the events of all streams to `take`; returns the number of streams.
pub(super) fn read(
    mut source: impl BufRead,
    settings: &ReadSettings,
    take: &mut Take<'_>,
) -> Result<u64> {
    let limit = settings.max_line.unwrap_or(MAX_LINE);
    let mut log = RecordedLog {
        settings,
        tools: settings.tools(),
        scanner: Scanner::default(),
        open: HashMap::new(),
        parts: 0,
        number: 0,
        offset: 0,
        take,
    };
    let mut line = Vec::new();
    while (&mut source)
        .take(limit as u64 + 1)
        .read_until(b'\n', &mut line)?
        > 0
    {
        if line.len() > limit {
            bail!("a line is longer than {limit} bytes; raise --max-line if that is right");
        }
        log.offset += line.len() as u64;
        log.line(line.strip_suffix(b"\n").unwrap_or(&line))?;
        line.clear();
    }
    Ok(log.parts)
}

struct RecordedLog<'l, 't> {
    settings: &'l ReadSettings,
    /// The tools of the settings in OpenAI's shape.
    tools: Option<String>,
    scanner: Scanner,
    /// The numbers of the open streams, by their names as JSON; "" is the unnamed stream.
    open: HashMap<Box<str>, u64>,
    /// The number of streams that have begun.
    parts: u64,
    /// The number of the current line, and the offset at which it ends.
    number: u64,
    offset: u64,
    take: &'l mut Take<'t>,
}

impl RecordedLog<'_, '_> {
    fn line(&mut self, line: &[u8]) -> Result<()> {
        self.number += 1;
        let Ok(Ok(event)) = std::str::from_utf8(line).map(|line| self.scanner.read(line)) else {
            if self.settings.strict && !line.trim_ascii().is_empty() {
                bail!(
                    "line {} is not an event; fix it or leave out --strict",
                    self.number
                );
            }
            return Ok(());
        };
        let part = part(&mut self.open, &mut self.parts, &event);
        if !self.settings.reads(part) {
            return Ok(());
        }
        let ms = event
            .t()
            .and_then(Raw::f64)
            .filter(|ms| ms.is_finite() && *ms >= 0.0);
        let origin = EventOrigin {
            part,
            offset: self.offset,
            ms,
        };
        if event.kind() == Kind::StreamStart {
            let start = completed(
                StreamStart::read(&event),
                self.settings,
                self.tools.as_deref(),
            );
            if let Some(start) = start {
                let payload = Payload::from(start);
                (self.take)(
                    &Event::of(&payload, event.stream(), event.choice(), event.t()),
                    origin,
                );
                return Ok(());
            }
        }
        (self.take)(&event, origin);
        Ok(())
    }
}

/// Returns the number of the stream that an event belongs to; 0 for an event between streams.
fn part(open: &mut HashMap<Box<str>, u64>, parts: &mut u64, event: &Event<'_>) -> u64 {
    let name = event.stream().map_or("", Raw::text);
    let kind = event.kind();
    let known = if kind == Kind::StreamStart {
        None
    } else {
        open.get(name).copied()
    };
    let part = match known {
        Some(part) => part,
        None if kind.begins_stream() => {
            *parts += 1;
            open.insert(name.into(), *parts);
            *parts
        }
        None => return 0,
    };
    if kind == Kind::StreamEnd {
        open.remove(name);
    }
    part
}

/// The `stream_start` with what the settings know and it does not; `None` where it lacks nothing.
fn completed<'a>(
    mut start: StreamStart<'a>,
    settings: &'a ReadSettings,
    tools: Option<&'a str>,
) -> Option<StreamStart<'a>> {
    let mut lacks = false;
    let mut fill = |field: &mut Option<Text<'a>>, known: Option<&'a str>| {
        if let Some(known) = known.filter(|_| field.is_none()) {
            *field = Some(known.into());
            lacks = true;
        }
    };
    fill(&mut start.tools_mode, settings.tools_mode.as_deref());
    fill(&mut start.dialect, settings.dialect.as_deref());
    fill(&mut start.model, settings.model.as_deref());
    fill(&mut start.api, settings.api.map(api::Api::name));
    if let Some(tools) = tools.filter(|_| start.tools.is_none()) {
        start.tools = Raw::parse(tools).ok().map(Json::from);
        lacks = true;
    }
    lacks.then_some(start)
}
