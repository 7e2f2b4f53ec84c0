//! A request, as received by a server on loopback.

use serde_json::Value;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

/// The `content-type` header of an event stream.
pub const SSE: &str = "content-type: text/event-stream\r\n";
/// The `content-type` header of JSON.
pub const JSON: &str = "content-type: application/json\r\n";

/// A request, as the server received it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The request line: method, path and version.
    pub line: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
    /// The body as JSON; `null` if it is not JSON.
    pub body: Value,
}

impl Request {
    /// Reads the next request from a connection; `None` at its end.
    pub fn read(stream: &mut TcpStream) -> Option<Request> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut next = || {
            let mut line = String::new();
            (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
        };
        let line = next()?;
        let mut headers = vec![];
        while let Some((name, value)) = next()?.split_once(": ") {
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut bytes = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
        reader.read_exact(&mut bytes).ok()?;
        Some(Request {
            line,
            headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// Returns the method.
    pub fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// Returns the path with the query.
    pub fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Writes the whole request as text.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.line)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        write!(f, "\n{}", self.text)
    }
}
