//! Frames that are read by template give the same events as frames that are read in full.

use crate::{Api, End, Stream, StreamOptions};
use event::Collect;
use std::ops::Range;
use testkit::damage::{Damage, frames};
use testkit::places::{hash, is_full, is_tried};
use testkit::{Random, same};

/// The strings that replace one of the strings of a frame.
const STRINGS: [&str; 10] = [
    "",
    "x",
    "two words",
    "é\u{2028}",
    r#"\"{\\\"a\\\":[1]}\n"#,
    r"\ud83d",
    r"\ude00",
    "a\\u0000\u{7f}",
    r"\x",
    "a\tb",
];

/// Returns the positions of the strings of a JSON text, without their quotes.
fn strings(json: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut start = None;
    let mut is_escape = false;
    for (at, byte) in json.bytes().enumerate() {
        match (byte, start) {
            _ if is_escape => is_escape = false,
            (b'\\', Some(_)) => is_escape = true,
            (b'"', None) => start = Some(at + 1),
            (b'"', Some(from)) => {
                all.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    all
}

/// Splits a body into frames, each with its event name and the blank line. Text between frames is
/// kept.
fn blocks(body: &str) -> Vec<&str> {
    let has_events = body.contains("\n\n");
    let mut rest = body;
    let mut all = Vec::new();
    let end = if has_events { "\n\n" } else { "\n" };
    while let Some(at) = rest.find(end) {
        let (block, after) = rest.split_at(at + end.len());
        all.push(block);
        rest = after;
    }
    all.push(rest);
    all
}

/// The members whose strings are pieces of a text or of a call.
const PIECES: [&str; 8] = [
    "content",
    "text",
    "delta",
    "reasoning",
    "reasoning_content",
    "thinking",
    "arguments",
    "partial_json",
];

/// Replaces one string of the block by another, usually a string that is a piece.
fn changed(block: &str, random: &mut Random) -> Option<String> {
    let frame = frames(block.as_bytes()).first()?.clone();
    let json = &block[frame.clone()];
    let mut all = strings(json);
    let is_piece = |pair: &[Range<usize>]| {
        PIECES.contains(&&json[pair[0].clone()]) && json[pair[0].end..].starts_with("\":\"")
    };
    let pieces: Vec<_> = all.windows(2).filter(|pair| is_piece(pair)).collect();
    if !pieces.is_empty() && random.below(4) > 0 {
        all = pieces.iter().map(|pair| pair[1].clone()).collect();
    }
    let place = all.get(random.below(all.len().max(1)))?;
    let string = STRINGS[random.below(STRINGS.len())];
    let (start, end) = (frame.start + place.start, frame.start + place.end);
    Some([&block[..start], string, &block[end..]].concat())
}

/// The line that follows the events of each piece.
const PUSHED: &str = "";

/// Returns the events of the pieces, with [`PUSHED`] after the events of each piece. With `is_full`
/// each piece is read without a template.
fn read(
    api: Api,
    options: &StreamOptions,
    pieces: &[impl AsRef<[u8]>],
    is_full: bool,
) -> Vec<String> {
    let mut out = Collect::default();
    let mut stream = Stream::new(api, options.clone());
    stream.read_several();
    for piece in pieces {
        if is_full {
            stream.forget_template();
        }
        stream.push(piece.as_ref(), &mut out);
        out.lines.push(PUSHED.to_owned());
    }
    stream.finish(End::Eof, &mut out);
    out.lines
}

#[test]
fn a_template_changes_no_event() {
    let mut tried = 0;
    for body in testkit::bodies() {
        let api = Api::from_name(&body.api).expect("a folder is an API");
        let bytes = body.bytes();
        let text = String::from_utf8_lossy(&bytes);
        let blocks = blocks(&text);
        let options = StreamOptions {
            details: body.name.len() % 2 == 0,
            item_ids: true,
            ..StreamOptions::default()
        };
        for round in 0..if is_full() { 32 } else { 6 } {
            let mut random = Random::new(hash(body.name.as_bytes()) ^ round);
            let mut pieces: Vec<Vec<u8>> = Vec::new();
            for (number, block) in blocks.iter().enumerate() {
                pieces.push(block.as_bytes().to_vec());
                if round == 0 {
                    continue; // the body as it was recorded
                }
                for _ in 0..2 {
                    let other = changed(block, &mut random);
                    pieces.extend(other.map(String::into_bytes));
                }
                pieces.push(block.as_bytes().to_vec());
                if let [frame, ..] = &frames(block.as_bytes())[..]
                    && is_tried(number ^ round as usize, 256)
                {
                    let damage = Damage::ALL[random.below(Damage::ALL.len())];
                    pieces.push(damage.of(block.as_bytes(), frame));
                }
            }
            tried += pieces.len();
            let whole = [pieces.concat()];
            let full = read(api, &options, &pieces, true);
            let place = || format!("{} in round {round}", body.name);
            same(&read(api, &options, &pieces, false), &full, place);
            let events = |lines: Vec<String>| -> Vec<String> {
                lines.into_iter().filter(|line| line != PUSHED).collect()
            };
            let full = events(full);
            let cut = testkit::cut(&whole[0], round);
            for got in [
                read(api, &options, &whole, false),
                read(api, &options, &cut, false),
            ] {
                same(&events(got), &full, place);
            }
        }
    }
    assert!(tried > 10_000, "{tried}");
}

/// The previous test would also pass if no template were ever used.
#[test]
fn the_deltas_of_a_stream_are_read_by_template() {
    let chat = |text: &str| format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{text}}}]}}"#);
    let call =
        |text| format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]}}"#);
    let block = |kind, key, text| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"{kind}","{key}":"{text}"}}}}"#
        )
    };
    for (api, [first, second]) in [
        (
            Api::OpenaiChat,
            ["a", "b\\n"].map(|text| chat(&format!(r#"{{"content":"{text}"}}"#))),
        ),
        (
            Api::OpenaiChat,
            ["a", "b"].map(|text| chat(&format!(r#"{{"reasoning":"{text}"}}"#))),
        ),
        (Api::Mistral, ["a", "b"].map(|text| chat(&call(text)))),
        (
            Api::Anthropic,
            ["a", "b"].map(|text| block("text_delta", "text", text)),
        ),
        (
            Api::Anthropic,
            ["a", "b"].map(|text| block("thinking_delta", "thinking", text)),
        ),
        (
            Api::Anthropic,
            ["{", "1"].map(|text| block("input_json_delta", "partial_json", text)),
        ),
    ] {
        let mut out = Collect::default();
        let mut stream = Stream::new(api, StreamOptions::default());
        for frame in [&first, &first] {
            stream.push(format!("data: {frame}\n\n").as_bytes(), &mut out);
        }
        assert!(stream.has_template_for(&second), "{second}");
        assert!(!stream.has_template_for(&format!("{second} ")), "{second}");
    }
}

/// Reasoning details are collected from all frames, so a frame that has them must not become a
/// template.
#[test]
fn a_frame_of_which_more_is_kept_is_read_in_full() {
    let frame = |text: &str| {
        format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{{"reasoning":"{text}","reasoning_details":[{{"type":"reasoning.text","text":"a"}}]}}}}]}}"#
        )
    };
    let mut out = Collect::default();
    let mut stream = Stream::new(Api::OpenaiChat, StreamOptions::default());
    for _ in 0..2 {
        stream.push(format!("data: {}\n\n", frame("a")).as_bytes(), &mut out);
    }
    assert!(!stream.has_template_for(&frame("b")));
}
