//! Events that are longer than a line may be: they are lost, and an `error` reports that, so that
//! the rest of a stream never looks like the model's complete answer.

use crate::Filter;
use event::Raw;
use event::payload::{self, Error};

/// The error that `message` describes.
pub(crate) fn failed<'a>(options: &Filter, message: &'a str) -> Error<'a> {
    Error::new(options.command, "line_too_long", message)
}

/// The message for an event that is too long to be written.
pub(crate) fn text(kind: &str, length: usize) -> String {
    format!(
        "a {kind} of {length} bytes is longer than --max-line, so the turn has failed; raise --max-line here and in the commands behind"
    )
}

/// The error event, with its line feed, for a line that begins with `start` and was too long to be
/// read; `None` when the line cannot have been an event.
pub(crate) fn error(options: &Filter, start: &[u8], number: u64, file: &str) -> Option<String> {
    let start = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&start[..e.valid_up_to()]).unwrap_or_default(),
    };
    if !start.trim_ascii_start().starts_with('{') {
        return None;
    }
    // Commands write the stream's name before the fields of the event, so it is in the beginning of
    // the line.
    let stream = Raw::members_of_cut(start).find(|(key, value)| key == "stream" && value.is_str());
    let message = format!(
        "line {number} of {file} is longer than --max-line, so an event of the stream is lost; raise --max-line"
    );
    let mut line = Vec::new();
    payload::line(
        &mut line,
        &failed(options, &message).into(),
        stream.as_ref().map(|(_, value)| value.text()),
        0,
        None,
    );
    line.push(b'\n');
    String::from_utf8(line).ok()
}
