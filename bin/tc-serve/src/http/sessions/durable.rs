//! The read path of Durable Streams
//! (<https://github.com/durable-streams/durable-streams/blob/main/PROTOCOL.md>, version 1.0): its
//! offsets, cursors and headers.

use hyper::header::{HeaderMap, HeaderValue};
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of digits in an offset. Offsets are compared as text, so all are as long as the
/// largest.
const DIGITS: usize = 20;

/// How long the cursor stays the same.
const INTERVAL: Duration = Duration::from_secs(20);

/// 2024-10-09T00:00:00Z, from which intervals are counted.
const EPOCH: u64 = 1_728_432_000;

/// The largest random step added to a client's cursor that is not older than the interval: 3600 s.
const LARGEST_STEP: u64 = 180;

/// Returns an offset in the format for clients.
pub(super) fn offset(offset: u64) -> String {
    format!("{offset:0DIGITS$}")
}

/// Adds the headers that say how far a response reaches. `is_end` is true if it reaches the current
/// end.
pub(super) fn headers(headers: &mut HeaderMap, behind: u64, is_end: bool) {
    if let Ok(behind) = HeaderValue::from_str(&offset(behind)) {
        headers.insert("stream-next-offset", behind);
    }
    if is_end {
        headers.insert("stream-up-to-date", HeaderValue::from_static("true"));
    }
}

/// Appends a control event.
pub(super) fn control(out: &mut Vec<u8>, behind: u64, sent: Option<u64>, is_end: bool) {
    let (behind, cursor) = (offset(behind), cursor(sent));
    let up_to_date = if is_end { r#","upToDate":true"# } else { "" };
    // Writing to a `Vec` cannot fail.
    let _ = write!(
        out,
        "event: control\ndata:{{\"streamNextOffset\":\"{behind}\",\"streamCursor\":\"{cursor}\"{up_to_date}}}\n\n"
    );
}

/// Returns the cursor of a response to a client that sent the cursor `sent`. It is the number of
/// the interval, but always greater than `sent`, so that no cache serves a client the same response
/// forever.
pub(super) fn cursor(sent: Option<u64>) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let now = seconds.saturating_sub(EPOCH) / INTERVAL.as_secs();
    match sent {
        Some(sent) if sent >= now => {
            let random = crate::keys::random().map_or(0, |bytes| u64::from(bytes[0]));
            sent.saturating_add(1 + random % LARGEST_STEP)
        }
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_sort_as_texts() {
        let all = [0, 9, 10, 99, 100, u64::MAX].map(offset);
        assert!(all.is_sorted() && all.iter().all(|text| text.len() == DIGITS));
    }

    #[test]
    fn a_cursor_is_greater_than_the_one_that_was_sent() {
        let now = cursor(None);
        assert!(now > 3_000_000);
        assert!(cursor(Some(now - 1)) >= now);
        for sent in [now, now + 1000] {
            let next = cursor(Some(sent));
            assert!(next > sent && next <= sent + LARGEST_STEP);
        }
    }
}
