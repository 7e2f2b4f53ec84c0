//! Derives the URL of a session's events from the URL that a user pasted.

use super::KEY;
use anyhow::{Result, bail};

/// Returns the URL of the events of the session that `url` identifies. `url` is a URL of its API
/// (`…/v1/sessions/ID` or `…/v1/sessions/ID/events`), the service's URL with the id
/// (`http://HOST/ID`), or a page whose fragment contains the id. The query is ignored.
///
/// # Errors
/// Fails with one line if the URL has no id, or contains a key.
pub(super) fn events(url: &str) -> Result<String> {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let has_key = fragment
        .split(['&', '?', '/'])
        .any(|member| member.starts_with("key="));
    if has_key || !client::secrets_in_url(rest).is_empty() {
        bail!(
            "others on this machine can see a key in an argument: leave it out of the address, \
             and export it as {KEY} or put it into a file for --key-file"
        );
    }
    let whole = rest
        .split('?')
        .next()
        .unwrap_or_default()
        .trim_end_matches('/');
    let path = whole.strip_suffix("/events").unwrap_or(whole);
    let (before, last) = path.rsplit_once('/').unwrap_or_default();
    let (service, id) = match (
        is_id(last),
        fragment.split(['/', '&', '=']).find(|part| is_id(part)),
    ) {
        (true, _) => (before.strip_suffix("/v1/sessions").unwrap_or(before), last),
        (false, Some(id)) => (whole, id),
        (false, None) => bail!(
            "{}: the address names no session, write http://HOST:PORT/v1/sessions/ID; GET /v1/sessions lists them",
            whole
        ),
    };
    Ok(format!("{service}/v1/sessions/{id}/events"))
}

/// Whether the text is a session id: 32 hexadecimal digits.
fn is_id(text: &str) -> bool {
    text.len() == 32
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3fa94c0e1b2d4f5a86978695a4b3c2d1";

    #[test]
    fn what_people_paste_names_the_events_of_a_session() {
        for (pasted, base) in [
            (
                "http://127.0.0.1:8790/v1/sessions/ID",
                "http://127.0.0.1:8790",
            ),
            ("http://h/v1/sessions/ID/", "http://h"),
            ("http://h/v1/sessions/ID/events", "http://h"),
            (
                "http://h/v1/sessions/ID/events?offset=7&live=sse",
                "http://h",
            ),
            ("http://h/v1/sessions/ID?format=html", "http://h"),
            ("HTTPS://h/tc/v1/sessions/ID", "HTTPS://h/tc"),
            ("http://h/ID", "http://h"),
            ("http://h/#ID", "http://h"),
            ("http://h/#/ID", "http://h"),
            ("http://h#session=ID&raw", "http://h"),
            ("https://h/tc/#/sessions/ID", "https://h/tc"),
        ] {
            let events = events(&pasted.replace("ID", ID)).unwrap();
            assert_eq!(
                events,
                format!("{base}/v1/sessions/{ID}/events"),
                "{pasted}"
            );
        }
    }

    #[test]
    fn an_address_without_a_session_or_with_a_key_is_refused() {
        for (pasted, says) in [
            ("http://h", "names no session"),
            ("http://h/v1/sessions", "names no session"),
            ("http://h/v1/sessions/events", "names no session"),
            ("http://h/v1/sessions/3f/events", "names no session"),
            ("http://h/#key=tp-1", "export it as TC_SERVE_KEY"),
            ("http://h/#/ID?key=tp-1", "export it as TC_SERVE_KEY"),
            ("http://me:tp-1@h/ID", "export it as TC_SERVE_KEY"),
            ("http://h/ID?api_key=tp-1", "export it as TC_SERVE_KEY"),
        ] {
            let refused = events(&pasted.replace("ID", ID)).unwrap_err().to_string();
            assert!(
                refused.contains(says) && !refused.contains("tp-1"),
                "{refused}"
            );
        }
    }
}
