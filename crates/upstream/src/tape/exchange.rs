//! What is on a tape.

use serde_json::Value;
use std::time::Duration;

/// The exchanges of a tape in their order, and which of them were played already.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// The recorded exchanges.
    pub exchanges: Vec<Exchange>,
    /// Which exchanges [`Tape::take`] gave out.
    pub(super) played: Vec<bool>,
}

/// One request and what came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// The 1-based line of its header on the tape; 0 for one that is not yet on a tape.
    pub line: usize,
    /// The API's name.
    pub api: String,
    /// The requested model.
    pub model: String,
    /// The request.
    pub request: Request,
    /// The redacted members, as paths such as `request.url?key` and `response.headers.set-cookie`.
    pub redactions: Vec<String>,
    /// Status and headers of the answer; `None` when the connection failed before.
    pub head: Option<Head>,
    /// The reads from the network, decompressed, in order.
    pub reads: Vec<Read>,
    /// How it ended and how long after the line before; `None` if the tape has no end.
    pub end: Option<(Duration, Ending)>,
}

/// A request as a tape has it: without headers, since those carry the key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// `POST`.
    pub method: String,
    /// Without credentials.
    pub url: String,
    /// The JSON body; `Null` when a tape leaves it out and names only the hash.
    pub body: Value,
    /// The hash on the tape, which counts only when the body is left out; see `Canonical`.
    pub sha256: String,
}

/// How an answer began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// Since the request was sent.
    pub after: Duration,
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, in the order received.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The first header of this name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

/// One read from the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// Since the line before.
    pub after: Duration,
    /// What came.
    pub bytes: Vec<u8>,
}

/// How the answer's bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server closed the body.
    Eof,
    /// The connection broke, or could not be made.
    Reset,
    /// Nothing came for too long.
    Timeout,
}

/// Why a text is not a tape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TapeError {
    /// 1-based.
    pub line: usize,
    /// What is wrong there and what to do.
    pub what: String,
}
