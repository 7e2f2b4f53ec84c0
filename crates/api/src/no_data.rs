//! Detects frames without content, which servers send to keep a connection open.
//!
//! Comments, events without data and unknown fields are part of the specification of event streams
//! and never become frames. In addition, some servers send text as data where the API requires
//! JSON. Any text not listed here is treated as a lost frame, which is an error, so each row needs
//! a source; see row-51 in docs/deviations.md.

/// Whether the frame has no content. Only called for frames that cannot be parsed.
pub(crate) fn is_no_data(name: Option<&str>, data: &str) -> bool {
    let data = data.trim();
    // `event: ping` with the time: sse-starlette sent this before it switched to comments.
    name.is_some_and(is_keep_alive)
        || data.is_empty()
        // Vertex's partner models send a comment as the data of an event. The rest of a split frame
        // may also start with a colon, but contains JSON syntax.
        || data.starts_with(':') && !data.contains(['"', '{', '}', '[', ']'])
        || is_keep_alive(data)
}

/// Whether `word` is a keep-alive: one of these words in any case, with or without brackets.
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
