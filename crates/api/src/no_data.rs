//! Frames that hold nothing of an answer: what servers send so that a connection stays open.
//!
//! Comments, events without data and unknown fields are of the specification of event streams, and
//! never become frames. Beyond it servers send text as data where an API has JSON. Text that is not
//! listed here is taken for a frame that was lost, which is an error, so each row needs a source;
//! docs/deviations.md has them in row-51.

/// Whether the frame is one of these. Asked only of frames that no API can read.
pub(crate) fn is_no_data(name: Option<&str>, data: &str) -> bool {
    let data = data.trim();
    // `event: ping` with the time, as sse-starlette sent it before it sent comments.
    name.is_some_and(is_keep_alive)
        || data.is_empty()
        // A comment as the data of an event: Vertex's partner models. The rest of a frame may begin
        // so, too, and then ends as JSON does.
        || data.starts_with(':') && !data.contains(['"', '{', '}', '[', ']'])
        || is_keep_alive(data)
}

/// Whether this is a keep-alive: one of these words, in upper or lower case, with or without
/// brackets.
fn is_keep_alive(word: &str) -> bool {
    let bare = word
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(word);
    ["ping", "keep-alive", "keepalive", "keep_alive", "heartbeat"]
        .iter()
        .any(|known| bare.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_alives_are_no_data_and_other_text_is_a_lost_frame() {
        for (name, data) in [
            (None, ""),
            (None, ": keepalive"),
            (None, "keep-alive"),
            (None, "[HEARTBEAT]"),
            (None, " PING "),
            (Some("ping"), "2024-04-07 20:20:50.554328"),
            (Some("ping"), "{}"),
            (Some("keepalive"), "null"),
        ] {
            assert!(is_no_data(name, data), "{name:?} {data:?}");
        }
        for data in [
            "null",
            "{}",
            "Internal Server Error",
            "upstream is not there",
            "pinging",
            "[]",
            "\"ping",
            ":{\"content\":\"a\"}}]}",
            "{\"choices\":[{\"delta\":{\"con",
        ] {
            for name in [None, Some("message_delta"), Some("error")] {
                assert!(!is_no_data(name, data), "{name:?} {data:?}");
            }
        }
    }
}
