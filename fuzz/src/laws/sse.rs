//! The decoder of server-sent events against a plain reading of the WHATWG text, in any pieces.
//!
//! Input: a seed of the pieces, then the body. Documented deviation: an event whose blank line is
//! missing counts.

use super::input::pieces;
use super::{Target, Turn};
use api::sse::SseParser;

/// See the first lines of this file.
pub const TARGET: Target = Target { name: "sse", check };

type Event = (Option<String>, String);

/// HTML, 9.2.5 and 9.2.6, word by word; an empty name counts as missing.
fn reference(body: &[u8]) -> Vec<Event> {
    let text = String::from_utf8_lossy(body);
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(&text)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let (mut data, mut name, mut out) = (String::new(), String::new(), Vec::new());
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.push("");
    for line in lines {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                out.push((Some(name.clone()).filter(|n| !n.is_empty()), data.clone()));
            }
            data.clear();
            name.clear();
        } else if !line.starts_with(':') {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => name = value.to_owned(),
                "data" => {
                    data.push_str(value);
                    data.push('\n');
                }
                _ => {}
            }
        }
    }
    out
}

fn decode<'a>(
    mut decoder: SseParser,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Event>, bool) {
    let mut out = Vec::new();
    let mut on =
        |e: api::sse::SseFrame<'_>| out.push((e.name.map(str::to_owned), e.data.to_owned()));
    pieces
        .into_iter()
        .for_each(|piece| decoder.push(piece, &mut on));
    decoder.finish(&mut on);
    (out, decoder.is_full())
}

fn check(bytes: &[u8], _: Turn) {
    let [seed, limit, body @ ..] = bytes else {
        return;
    };
    let whole = decode(SseParser::default(), [body]).0;
    assert_eq!(whole, reference(body));
    assert_eq!(decode(SseParser::default(), pieces(body, *seed)).0, whole);
    assert_eq!(decode(SseParser::default(), body.chunks(1)).0, whole);
    let limit = usize::from(*limit);
    let limited = decode(SseParser::limited(limit), [body]);
    assert_eq!(
        decode(SseParser::limited(limit), pieces(body, *seed)),
        limited
    );
    assert!(whole.starts_with(&limited.0) && (limited.1 || whole == limited.0));
    assert!(limited.0.iter().all(|(_, data)| data.len() <= 3 * limit));
}
