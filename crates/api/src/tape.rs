//! Tapes: recorded requests and the raw responses to them, with their timing, in a readable and
//! editable format.
//!
//! A tape has one JSON value per line. Blank lines and lines that start with `#` are skipped:
//!
//! ```text
//! {"tape":1,"api":"openai-chat","model":"…","request":{"method":"POST","url":"…","body":{…},"sha256":"…"},"redactions":["…"]}
//! [0.412,"head",{"status":200,"headers":{"content-type":"text/event-stream"}}]
//! [0.031,"text","data: {\"id\":…}\n\n"]
//! [0.002,"bytes","4oKs"]
//! [0.120,"end","eof"]
//! ```
//!
//! A log of events can also be read as a tape (`log.rs`).
//!
//! Times are seconds since the previous line. A tape must not contain credentials:
//! [`TapeExchange::redact`] removes them before it is written, and [`Tape::read`] rejects a tape
//! with text that looks like one.

mod format;
mod log;
mod lookup;

use crate::recognise::RecordingForm;

pub use crate::tape::format::{
    Head, LoggedRequest, RecordedRequest, Tape, TapeEnding, TapeError, TapeExchange, TapeRead,
    is_tape,
};
pub(crate) use crate::tape::log::LogDecoder;
pub use crate::tape::log::{AskedOfLog, NextOfLog};
pub use crate::tape::lookup::{Canonical, Miss};

impl Tape {
    /// Parses a tape or a log of events.
    ///
    /// # Errors
    /// Fails if a line is not a tape line, if a time is negative, not a number or longer than a
    /// day, or if the text contains what looks like a credential.
    pub fn read(text: &str) -> Result<Tape, TapeError> {
        if RecordingForm::of(text.as_bytes()) == RecordingForm::Log {
            return Ok(Tape::of_log(text));
        }
        Tape::of_lines(text)
    }
}
