//! The events of a tape: each exchange is a stream.

use super::body::Sink;
use super::{Origin, ReadSettings, Take, native_or_none, openai_tools};
use anyhow::{Context, Result, bail};
use std::time::Duration;
use upstream::tape::{Ending, Exchange, Tape};
use upstream::{Api, End, Stream, StreamOptions};

/// Gives the events of each exchange to `take`; returns how many exchanges the tape has.
pub(super) fn read(bytes: &[u8], settings: &ReadSettings, take: &mut Take<'_>) -> Result<u64> {
    let text = std::str::from_utf8(bytes).context("not UTF-8, a tape is text")?;
    let tape = Tape::read(text)?;
    for (part, one) in (1..).zip(&tape.exchanges) {
        if settings.reads(part) {
            exchange(one, part, settings, take)?;
        }
    }
    Ok(tape.exchanges.len() as u64)
}

fn exchange(exchange: &Exchange, part: u64, settings: &ReadSettings, take: &mut Take<'_>) -> Result<()> {
    let Some(api) = Api::from_name(&exchange.api).or(settings.api) else {
        bail!("line {}: the API \"{}\" is unknown; correct it in the tape", exchange.line, exchange.api);
    };
    let mut stream = Stream::new(api, options(exchange, settings));
    let mut at = exchange.head.as_ref().map(|head| head.after).unwrap_or_default();
    let mut sink = Sink { take, origin: Origin { part, offset: exchange.line as u64, ms: Some(millis(at)) } };
    if let Some(head) = exchange.head.as_ref().filter(|head| !(200..300).contains(&head.status)) {
        stream.error_body(head.status, &exchange.body(), None, &mut sink);
        return Ok(());
    }
    for read in &exchange.reads {
        at += read.after;
        sink.origin.ms = Some(millis(at));
        stream.push(&read.bytes, &mut sink);
        if stream.is_done() {
            return Ok(());
        }
    }
    // An exchange without an end was cut there, and ends as if the server had closed it.
    let (after, ending) = exchange.end.unwrap_or((Duration::ZERO, Ending::Eof));
    sink.origin.ms = Some(millis(at + after));
    let end = match ending {
        Ending::Eof => End::Eof,
        Ending::Reset => End::Reset("the connection was lost, as recorded".to_owned()),
        Ending::Timeout => End::Timeout("no data came for too long, as recorded".to_owned()),
    };
    stream.finish(end, &mut sink);
    Ok(())
}

/// What the request on the tape shows, and the settings where it shows nothing.
fn options(exchange: &Exchange, settings: &ReadSettings) -> StreamOptions {
    let mut options = settings.options();
    if !exchange.model.is_empty() {
        options.model = Some(exchange.model.clone());
    }
    if settings.tools_mode.is_none() && exchange.request.body.is_object() {
        let tools = exchange.request.body.get("tools").and_then(|tools| openai_tools(&tools.to_string()));
        if tools.is_some() || settings.tools.is_none() {
            options.tools_mode = Some(tools.as_deref().map_or_else(|| "none".to_owned(), native_or_none));
            options.tools = tools;
        }
    }
    options
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
