//! Lines that are not events: nothing of them is lost, and the first few are reported on standard
//! error.

use crate::{Failure, Filter, message};
use base64::Engine;
use event::payload::Warning;

/// How many bad lines are reported on standard error; all of them become warnings in the stream.
const REPORTED: u64 = 10;
/// How much of a bad line its warning carries, in bytes.
const CARRIED: usize = 64 * 1024;

/// A line that is not an event.
#[derive(Clone, Copy, Debug)]
pub struct BadLine<'a> {
    /// The name of its input.
    pub file: &'a str,
    /// Its 1-based number there.
    pub number: u64,
    /// Its bytes, or the beginning of them.
    pub start: &'a [u8],
    /// Its whole length in bytes, without the line feed.
    pub length: u64,
    /// What is wrong with it: the end of "not an event: …".
    pub what: &'a str,
}

/// Counts the bad lines of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct BadLines {
    seen: u64,
}

impl BadLines {
    /// Reports a bad line, and hands `put` the warning that takes its place in the stream.
    ///
    /// # Errors
    /// [`Failure::Strict`] under `--strict`: write the lines before it first.
    pub fn warn(
        &mut self,
        options: &Filter,
        bad: BadLine<'_>,
        put: impl FnOnce(&Warning<'_>),
    ) -> Result<(), Failure> {
        let BadLine {
            file,
            number,
            start,
            length,
            what,
        } = bad;
        if options.strict {
            return Err(Failure::Strict {
                file: file.to_owned(),
                line: number,
                what: what.to_owned(),
            });
        }
        self.seen += 1;
        if self.seen <= REPORTED {
            let more = if self.seen == REPORTED {
                "; further ones are only in the stream"
            } else {
                ""
            };
            let text = format!(
                "{file}, line {number}: not an event ({what}), passed on as a warning{more}"
            );
            message(options.command, &text);
        }
        let mut kept = &start[..start.len().min(CARRIED)];
        if let Err(e) = std::str::from_utf8(kept)
            && e.error_len().is_none()
        {
            kept = &kept[..e.valid_up_to()]; // the cut is inside a character
        }
        let text = String::from_utf8_lossy(kept);
        let exact = matches!(text, std::borrow::Cow::Borrowed(_));
        let base64 = (!exact).then(|| base64::engine::general_purpose::STANDARD.encode(kept));
        let message = format!("line {number} of {file} is not an event: {what}");
        put(&Warning {
            raw: Some((&text).into()),
            raw_bytes: (kept.len() as u64 != length || !exact).then_some(length),
            raw_base64: base64.as_ref().map(Into::into),
            line: Some(number),
            ..Warning::new(options.command, "not_an_event", &message)
        });
        Ok(())
    }
}
