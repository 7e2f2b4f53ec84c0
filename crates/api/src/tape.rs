//! Tapes: recorded requests and the raw responses to them, with their timing, in a form that people
//! can read and edit.
//!
//! One JSON value a line; blank lines and lines that begin with `#` are skipped:
//!
//! ```text
//! {"tape":1,"api":"openai-chat","model":"…","request":{"method":"POST","url":"…","body":{…},"sha256":"…"},"redactions":["…"]}
//! [0.412,"head",{"status":200,"headers":{"content-type":"text/event-stream"}}]
//! [0.031,"text","data: {\"id\":…}\n\n"]
//! [0.002,"bytes","4oKs"]
//! [0.120,"end","eof"]
//! ```
//!
//! A log of events is read as a tape, too (`log.rs`).
//!
//! Times are seconds since the line before. A tape holds no credential: [`TapeExchange::redact`] takes
//! them out before it is written, and [`Tape::read`] refuses a tape that holds the shape of one.

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
    /// Reads the text of a tape, or a log of events.
    ///
    /// # Errors
    /// The line that is not a tape line, has a time that is negative, not a number or longer than a
    /// day, or holds the shape of a credential.
    pub fn read(text: &str) -> Result<Tape, TapeError> {
        if RecordingForm::of(text.as_bytes()) == RecordingForm::Log {
            return Ok(Tape::of_log(text));
        }
        Tape::of_lines(text)
    }
}
