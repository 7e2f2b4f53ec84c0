//! Frames that are read by template give the same events as frames that are read in full.

use crate::{Api, End, Stream, StreamOptions};
use event::{Collect, Raw};
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
const PIECES: [&str; 9] = [
    "obfuscation",
    "content",
    "text",
    "delta",
    "reasoning",
    "reasoning_content",
    "thinking",
    "arguments",
    "partial_json",
];

/// The members that may differ in frames that are read by template.
const VARYING: [&str; 4] = [
    "created_at",
    "obfuscation",
    "sequence_number",
    "usageMetadata",
];

/// The values that replace those of [`VARYING`].
const VALUES: [&str; 13] = [
    "0",
    "-1.5e3",
    "01",
    "null",
    r#""x""#,
    r#"{"promptTokenCount":1,"totalTokenCount":7}"#,
    r#"{"promptTokenCount":2,"totalTokenCount":80}"#,
    r#"{"promptTokenCount":2,"totalTokenCount":-1}"#,
    r#"{"promptTokenCount":3,"totalTokenCount":8.5}"#,
    r#"{"promptTokenCount":4,"promptTokenCount":null}"#,
    "[[],{}]",
    "[\n1]",
    "\"\n\"",
];

/// Replaces the value of one of [`VARYING`] in the frame, if it has one at its top.
fn varied(block: &str, frame: &Range<usize>, random: &mut Random) -> Option<String> {
    let json = &block[frame.clone()];
    let data = Raw::parse(json).ok()?;
    let values = data
        .entries()
        .filter(|(key, _)| VARYING.contains(&key.as_ref()));
    let values: Vec<Raw<'_>> = values.map(|(_, value)| value).collect();
    let old = values.get(random.below(values.len().max(1)))?.text();
    let start = old.as_ptr().addr() - block.as_ptr().addr();
    let nested = "[".repeat(127) + &"]".repeat(127);
    let new = *VALUES
        .get(random.below(VALUES.len() + 1))
        .unwrap_or(&&*nested);
    Some([&block[..start], new, &block[start + old.len()..]].concat())
}

/// Replaces one value of the block by another, usually a string that is a piece.
fn changed(block: &str, random: &mut Random) -> Option<String> {
    let frame = frames(block.as_bytes()).first()?.clone();
    if random.below(4) == 0
        && let Some(varied) = varied(block, &frame, random)
    {
        return Some(varied);
    }
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
    let chat = |text: &str| {
        format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{text}}}],"obfuscation":"{}"}}"#,
            text.len()
        )
    };
    let call =
        |text| format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]}}"#);
    let block = |kind, key, text| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"{kind}","{key}":"{text}"}}}}"#
        )
    };
    let response = |kind: &str, text: &str| {
        format!(
            r#"{{"type":"response.{kind}.delta","item_id":"i","output_index":0,"delta":"{text}","sequence_number":{},"obfuscation":"{}"}}"#,
            text.len() * 7,
            text.len()
        )
    };
    let part = |thought: bool, text: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"thought":{thought},"text":"{text}"}}],"role":"model"}}}}],"usageMetadata":{{"promptTokenCount":{}}},"responseId":"r"}}"#,
            text.len()
        )
    };
    let line = |text: &str| {
        format!(
            r#"{{"model":"m","created_at":"{}","message":{{"role":"assistant","content":"{text}"}},"done":false}}"#,
            text.len()
        )
    };
    let item = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","call_id":"c","name":"f"}}"#;
    for (api, begin, [first, second]) in [
        (
            Api::OpenaiChat,
            "",
            ["a", "b\\n"].map(|text| chat(&format!(r#"{{"content":"{text}"}}"#))),
        ),
        (
            Api::OpenaiChat,
            "",
            ["a", "bcd"].map(|text| chat(&format!(r#"{{"reasoning":"{text}"}}"#))),
        ),
        (Api::Mistral, "", ["a", "b"].map(|text| chat(&call(text)))),
        (
            Api::Anthropic,
            "",
            ["a", "b"].map(|text| block("text_delta", "text", text)),
        ),
        (
            Api::Anthropic,
            "",
            ["a", "b"].map(|text| block("thinking_delta", "thinking", text)),
        ),
        (
            Api::Anthropic,
            "",
            ["{", "1"].map(|text| block("input_json_delta", "partial_json", text)),
        ),
        (
            Api::OpenaiResponses,
            "",
            ["a", "bcd"].map(|text| response("output_text", text)),
        ),
        (
            Api::OpenaiResponses,
            "",
            ["a", "bcd"].map(|text| response("reasoning_summary_text", text)),
        ),
        (
            Api::OpenaiResponses,
            item,
            ["{", "123"].map(|text| response("function_call_arguments", text)),
        ),
        (Api::Gemini, "", ["a", "bcd"].map(|text| part(false, text))),
        (Api::Gemini, "", ["a", "bcd"].map(|text| part(true, text))),
        (Api::Ollama, "", ["a", "bcd"].map(line)),
    ] {
        let mut out = Collect::default();
        let mut stream = Stream::new(api, StreamOptions::default());
        for frame in [begin, &first, &first] {
            stream.push(format!("data: {frame}\n\n").as_bytes(), &mut out);
        }
        assert!(stream.has_template_for(&second), "{second}");
        assert!(!stream.has_template_for(&format!("{second} ")), "{second}");
        // A line end inside a value ends the line of the body.
        let lines = (0..9).fold(second.clone(), |frame, n| {
            let value = format!(r#""obfuscation":"{n}""#);
            frame.replace(&value, "\"obfuscation\":[\n]")
        });
        for (body, is_like) in [
            (format!("data: {lines}\n\n"), lines == second),
            (format!("data: {second}\n\n"), true),
            (format!("data: {second}\n\ndata: {{"), true),
            (format!("data: {second}\n"), false),
            (format!("data:{second}\n\n"), false),
            (format!("event: e\ndata: {second}\n\n"), false),
        ] {
            let has = stream.has_template_for_body(body.as_bytes());
            assert_eq!(has, is_like, "{body}");
        }
    }
}

#[test]
fn the_values_of_a_body_of_json_are_read_by_template() {
    let frame = |text: &str| {
        format!(r#"{{"model":"m","created_at":{text:?},"message":{{"content":{text:?}}}}}"#)
    };
    for (start, between) in [("", "\n"), ("", " \r\n"), ("[", ",\n"), ("[", ",")] {
        let mut out = Collect::default();
        let mut stream = Stream::new(Api::Ollama, StreamOptions::default());
        let body = [&frame("a")[..]; 3].join(between);
        stream.push(format!("{start}{body}").as_bytes(), &mut out);
        let is_line = between.ends_with('\n');
        for (body, is_like) in [
            (format!("{between}{}", frame("bcd")), is_line),
            (format!("{between}{}{between}", frame("bcd")), is_line),
            (format!("{between}[{}", frame("bcd")), false),
            (
                format!("{between}{}", frame("bcd").replace("m\"", "n\"")),
                false,
            ),
            (frame("bcd"), false),
        ] {
            let has = stream.has_template_for_body(body.as_bytes());
            assert_eq!(has, is_like, "{start}{body}");
        }
    }
}

#[test]
fn the_counts_of_the_last_frame_are_those_of_the_stream() {
    let frame = |counts: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"a\"}}]}}}}],\"usageMetadata\":{counts}}}\n\n"
        )
    };
    for first in VALUES {
        for second in VALUES {
            let pieces = [first, first, second, "{}", second].map(frame);
            for end in 1..=pieces.len() {
                let [got, full] = [false, true].map(|is_full| {
                    read(
                        Api::Gemini,
                        &StreamOptions::default(),
                        &pieces[..end],
                        is_full,
                    )
                });
                assert_eq!(got, full, "{first} {second}");
            }
        }
    }
}

/// The first `[` of a body starts its list, and a second one starts a value.
#[test]
fn a_block_never_starts_a_list() {
    let frame = r#"{"model":"m","message":{"content":"a"}}"#;
    let list = format!("\n[\n{frame}");
    let mut out = Collect::default();
    let mut stream = Stream::new(Api::Ollama, StreamOptions::default());
    // The second frame becomes a template, in two pieces, so that its block is unknown.
    for piece in [frame, &frame[..9], &frame[9..], &list] {
        stream.push(piece.as_bytes(), &mut out);
    }
    assert!(stream.has_template_for(frame));
    assert!(!stream.has_template_for_body(list.as_bytes()));
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
