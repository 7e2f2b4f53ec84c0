//! The access log: a line of JSON for each request, without content.

use event::Object;
use std::time::Duration;

/// What a line has.
#[derive(Clone, Debug, Default)]
pub struct AccessLine {
    /// The id of the request.
    pub id: String,
    /// Its method.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// The API that the client speaks, where the path has one.
    pub front: Option<&'static str>,
    /// The status of the response; 499 where the client left before it.
    pub status: u16,
    /// The time from the head of the request to the end of the response.
    pub time: Duration,
    /// Bytes of the response's body.
    pub bytes: u64,
    /// Whole calls.
    pub calls: u64,
    /// Warnings about the upstream's answer.
    pub warnings: u64,
    /// The beginning of the hash of the client's key.
    pub key: Option<String>,
    /// The code of the error, if the request failed.
    pub error: Option<String>,
    /// Whether the client left before the end of the answer.
    pub is_cut: bool,
    /// What of the request was left out.
    pub notes: Vec<String>,
    /// What was left out on the way to the provider and of its answer.
    pub answer_notes: Vec<String>,
}

impl AccessLine {
    /// Writes the line. `dropped`: how many lines before it found no room.
    pub fn write(&self, dropped: u64, out: &mut Vec<u8>) {
        let ms = u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX);
        let mut line = Object::open(out);
        line.str("type", "access")
            .str("id", &self.id)
            .str("method", &self.method)
            .str("path", &self.path);
        if let Some(front) = self.front {
            line.str("front", front);
        }
        line.int("status", self.status)
            .int("ms", ms)
            .int("bytes", self.bytes)
            .int("calls", self.calls);
        if self.warnings > 0 {
            line.int("warnings", self.warnings);
        }
        if let Some(key) = &self.key {
            line.str("key", key);
        }
        if let Some(error) = &self.error {
            line.str("error", error);
        }
        if self.is_cut {
            line.bool("cut", true);
        }
        if !self.notes.is_empty() || !self.answer_notes.is_empty() {
            line.array("notes", |notes| {
                for note in self.notes.iter().chain(&self.answer_notes) {
                    notes.str(note);
                }
            });
        }
        if dropped > 0 {
            line.int("dropped", dropped);
        }
        line.close();
        out.push(b'\n');
    }
}
