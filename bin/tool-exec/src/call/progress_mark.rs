//! How much of an output has been reported while it grows.

use redact::Redactor;

/// How much of an output has been reported, in bytes.
#[derive(Debug, Default)]
pub struct ProgressMark(usize);

impl ProgressMark {
    /// The whole characters of `output` that have come since the last call, without secrets. While
    /// more may come (`is_open`), what may be the beginning of a secret waits for the rest of it.
    pub fn more(&mut self, output: &[u8], is_open: bool, redactor: &Redactor) -> Option<String> {
        let rest = output.get(self.0..)?;
        let whole = match std::str::from_utf8(rest) {
            // A character that is not yet whole waits for its end.
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            _ => rest.len(),
        };
        let end = if is_open {
            redactor.settled(&rest[..whole])
        } else {
            whole
        };
        self.0 += end;
        (end > 0).then(|| redactor.text(&tool::text(&rest[..end]).0).into_owned())
    }
}
