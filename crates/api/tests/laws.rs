//! The laws that hold for every recorded stream, whatever its API: how bytes are split never shows,
//! and however a stream ends, it has one `stream_end`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use accumulate::Accumulate;
use event::{Collect, Kind, Raw};
use proptest::prelude::*;
use std::rc::Rc;
use std::sync::LazyLock;
use testkit::damage::{Damage, frames, replaced};
use testkit::places::{BODY, Sample, hash, is_full, is_tried, no_split_shows};
use testkit::{Random, cut, same, short};
use toolpipe_api::{Api, End, Stream, StreamOptions, recognise};

struct Fixture {
    name: String,
    api: Api,
    body: Vec<u8>,
}

static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(|| {
    let read = |body: testkit::Body| Fixture {
        api: Api::from_name(&body.api).unwrap(),
        body: std::fs::read(&body.path).unwrap(),
        name: body.name,
    };
    testkit::bodies().into_iter().map(read).collect()
});

fn read<'a>(api: Api, pieces: impl IntoIterator<Item = &'a [u8]>, end: End) -> Vec<String> {
    let mut out = Collect::default();
    let mut stream = Stream::new(api, StreamOptions::default());
    for piece in pieces {
        stream.push(piece, &mut out);
    }
    stream.finish(end, &mut out);
    assert!(stream.is_done() && stream.has_started());
    out.lines
}

fn kinds(lines: &[String]) -> Vec<Kind> {
    lines
        .iter()
        .map(|l| Kind::of(&Raw::parse(l).unwrap().get_str("type").unwrap()))
        .collect()
}

#[test]
fn there_are_fixtures_of_every_api() {
    for api in Api::ALL {
        assert!(FIXTURES.iter().any(|f| f.api == api), "{}", api.name());
    }
}

/// Also in what is read into a tree and written again: blocks that go back to the provider, and
/// errors that repeat a key.
#[test]
fn no_control_character_of_a_provider_leaves_raw() {
    let block = r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"CTRL"}}"#;
    let result = r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","tool_use_id":"CTRL","content":[{"url":"CTRL"}]}}"#;
    let stop = r#"data: {"type":"content_block_stop","index":0}"#;
    let error = r#"{"error":{"message":"no model CTRL","code":"CTRL","key":"canary/7Q=z"}}"#;
    let bodies = [
        (Api::Anthropic, format!("{block}\n\n{stop}\n\n")),
        (Api::Anthropic, format!("{result}\n\n{stop}\n\n")),
        (Api::OpenaiChat, error.to_owned()),
        (Api::OpenaiChat, format!("data: {error}\n\n")),
        (Api::Gemini, format!("data: {error}\n\n")),
    ];
    for (api, body) in bodies {
        let mut out = Collect::default();
        let redactor = redact::Redactor::new(["canary/7Q=z".to_owned()]);
        let mut stream = Stream::new(
            api,
            StreamOptions {
                redactor,
                ..StreamOptions::default()
            },
        );
        stream.push(body.replace("CTRL", "a\u{7f}\u{9b}z").as_bytes(), &mut out);
        stream.finish(End::Eof, &mut out);
        assert!(
            out.lines
                .iter()
                .any(|line| line.contains("a\\u007f\\u009bz")),
            "{:#?}",
            out.lines
        );
        for line in out.lines {
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}

#[test]
fn every_body_is_recognised_that_tells_its_api() {
    let told_by_nothing = [
        // Errors alone: some come in another API's envelope, some in none.
        (
            "anthropic/llamacpp-error-bad-schema.json",
            Some(Api::OpenaiChat),
        ),
        (
            "anthropic/row-38-error-openai-envelope.json",
            Some(Api::OpenaiChat),
        ),
        ("cohere/error-body.json", None),
        ("openai-chat/html-page.sse", None),
    ];
    for f in FIXTURES.iter() {
        let other = told_by_nothing.iter().find(|(name, _)| *name == f.name);
        assert_eq!(
            recognise(&f.body, true),
            other.map_or(Some(f.api), |(_, api)| *api),
            "{}",
            f.name
        );
        // What the beginning tells is what the whole tells.
        for at in (0..f.body.len()).step_by(37) {
            if let Some(api) = recognise(&f.body[..at], false) {
                assert_eq!(
                    Some(api),
                    recognise(&f.body, true),
                    "{} after {at} bytes",
                    f.name
                );
                break;
            }
        }
    }
}

#[test]
fn every_stream_begins_once_and_ends_once() {
    for f in FIXTURES.iter() {
        let lines = read(f.api, [f.body.as_slice()], End::Eof);
        let kinds = kinds(&lines);
        assert_eq!(kinds.first(), Some(&Kind::StreamStart), "{}", f.name);
        assert_eq!(kinds.last(), Some(&Kind::StreamEnd), "{}", f.name);
        assert_eq!(
            kinds
                .iter()
                .filter(|k| matches!(k, Kind::StreamStart | Kind::StreamEnd))
                .count(),
            2,
            "{}",
            f.name
        );
        let end = Raw::parse(lines.last().unwrap()).unwrap();
        let failed = ["error", "cut"].contains(&end.get_str("finish_reason").unwrap().as_ref());
        assert_eq!(kinds.contains(&Kind::Error), failed, "{}", f.name);
    }
}

#[test]
fn one_byte_at_a_time_and_every_cut_in_two_give_the_same_events() {
    for f in FIXTURES.iter() {
        no_split_shows(&f.name, &f.body, BODY, |pieces| {
            read(f.api, pieces.iter().copied(), End::Eof)
        });
    }
}

#[test]
fn random_cuts_give_the_same_events() {
    let seeds = if is_full() { 64 } else { 6 };
    for f in FIXTURES.iter() {
        let whole = read(f.api, [f.body.as_slice()], End::Eof);
        for seed in 0..seeds {
            same(&read(f.api, cut(&f.body, seed), End::Eof), &whole, || {
                format!("{} cut by seed {seed}", f.name)
            });
        }
    }
}

#[test]
fn line_ends_of_event_streams_do_not_matter() {
    for f in FIXTURES.iter().filter(|f| f.name.ends_with(".sse")) {
        let text = String::from_utf8_lossy(&f.body).replace("\r\n", "\n");
        let whole = read(f.api, [text.as_bytes()], End::Eof);
        for line_end in ["\r\n", "\r"] {
            let text = text.replace('\n', line_end);
            for size in [text.len().max(1), 3, 1] {
                same(
                    &read(f.api, text.as_bytes().chunks(size), End::Eof),
                    &whole,
                    || format!("{} with {line_end:?} in pieces of {size}", f.name),
                );
            }
        }
    }
}

#[test]
fn a_lost_connection_is_an_error_and_a_cut_whatever_came_before() {
    for f in FIXTURES.iter() {
        let whole = read(f.api, [f.body.as_slice()], End::Eof);
        // Each place reads all bytes before it.
        for at in Sample::NARROW.places(&f.body, BODY) {
            let lines = read(
                f.api,
                [&f.body[..at]],
                End::Reset("the connection was reset".into()),
            );
            if lines == whole {
                continue; // The provider's end mark had come.
            }
            has_failed(&lines, &whole).unwrap_or_else(|why| panic!("{} at {at}: {why}", f.name));
        }
    }
}

/// Whether a stream ends with an error, and its earlier events are those of `whole`.
fn has_failed(lines: &[String], whole: &[String]) -> Result<(), String> {
    let kinds = kinds(lines);
    if !kinds.contains(&Kind::Error) {
        return Err("no error".to_owned());
    }
    let end = Raw::parse(lines.last().unwrap())
        .unwrap()
        .get_str("finish_reason")
        .unwrap();
    if end != "cut" && end != "error" {
        return Err(format!("an end: {end}"));
    }
    // Earlier events are not changed: they are those of the whole stream, then come the error and
    // the end.
    let same = lines.iter().zip(whole).take_while(|(a, b)| a == b).count();
    let rest = &kinds[same..];
    let closing = [
        Kind::StreamStart,
        Kind::Thinking,
        Kind::ToolCallDelta,
        Kind::Warning,
        Kind::Retract,
        Kind::Error,
        Kind::SessionStats,
        Kind::StreamEnd,
    ];
    let is_closing = rest
        .iter()
        .zip(&lines[same..])
        .all(|(k, l)| closing.contains(k) || l.contains('\u{fffd}'));
    if rest.len() > 5 || !is_closing {
        return Err(short(&lines[same..].join("\n")));
    }
    Ok(())
}

/// Whether nothing is lost with a frame: it is a keep-alive, or what is left of it is a comment of
/// an event stream, as which the first line of a body may be read.
fn is_nothing(frame: &[u8], body: &[u8]) -> bool {
    let is_ping = |frame: Raw<'_>| {
        let mut members = frame.entries();
        members.next().is_none() || frame.get_str("type").as_deref() == Some("ping")
    };
    Raw::parse(&String::from_utf8_lossy(frame)).is_ok_and(is_ping) || body.starts_with(b":")
}

/// Whatever a frame held is lost with it: a piece of a call, a call, the reason of the end.
#[test]
fn a_frame_that_cannot_be_read_is_an_error_and_ends_the_stream() {
    let mut tried = 0;
    let mut wrong = Vec::new();
    for f in FIXTURES.iter() {
        let whole = read(f.api, [f.body.as_slice()], End::Eof);
        for (number, frame) in frames(&f.body).iter().enumerate() {
            if !is_tried(number ^ hash(f.name.as_bytes()) as usize, 8) {
                continue;
            }
            for damage in Damage::ALL {
                let body = damage.of(&f.body, frame);
                if is_nothing(&f.body[frame.clone()], &body) {
                    continue;
                }
                let lines = read(f.api, [body.as_slice()], End::Eof);
                if lines == whole {
                    // The end had come, by a mark or by an error.
                    let before = || read(f.api, [&f.body[..frame.start]], End::Eof);
                    if lines != before() {
                        wrong.push(format!("{}, frame {number}, {damage:?}: nothing", f.name));
                    }
                    continue;
                }
                tried += 1;
                if let Err(why) = has_failed(&lines, &whole) {
                    wrong.push(format!("{}, frame {number}, {damage:?}: {why}", f.name));
                }
            }
        }
    }
    assert!(tried > 500, "{tried}");
    nothing(&wrong, tried);
}

/// The calls of an answer that may run.
fn calls(lines: &[String]) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    for line in Collect::run(&mut Accumulate::new(Rc::default()), lines) {
        let event = Raw::parse(&line).unwrap();
        let is_call = event
            .get_str("type")
            .is_some_and(|kind| kind == "tool_call");
        if is_call && event.get("error").is_none() {
            let arguments = event.get("arguments").map(Raw::text).unwrap_or_default();
            let name = event.get_str("tool_name").unwrap_or_default();
            calls.push((name.into_owned(), arguments.to_owned()));
        }
    }
    calls
}

/// A frame is lost, and another one of the same stream comes twice. In Responses nothing of a call
/// is lost with it, since the end of each item repeats all. The end of the response is not among
/// these frames: it closes what is open.
///
/// The other APIs say everything once and number nothing: `aa` where a server sent `ab` may be what
/// the model wrote, so only the JSON of the arguments can show that a piece is missing.
#[test]
fn a_call_of_responses_has_its_own_arguments_whichever_frames_are_exchanged() {
    let mut tried = 0;
    let mut wrong = Vec::new();
    for f in FIXTURES.iter().filter(|f| f.api == Api::OpenaiResponses) {
        let whole = calls(&read(f.api, [f.body.as_slice()], End::Eof));
        let all = frames(&f.body);
        for (number, frame) in all.iter().enumerate() {
            let place = number ^ hash(f.name.as_bytes()) as usize;
            if !is_tried(place, 2) {
                continue;
            }
            let any = Random::new(place as u64).below(all.len());
            for other in [number.wrapping_sub(1), number + 1, any] {
                let Some(with) = all.get(other).map(|with| &f.body[with.clone()]) else {
                    continue;
                };
                let is_end = String::from_utf8_lossy(with).contains("\"response.completed\"");
                if other == number || is_end {
                    continue;
                }
                let body = replaced(&f.body, frame, with);
                let got = calls(&read(f.api, [body.as_slice()], End::Eof));
                tried += 1;
                if let Some((name, arguments)) = got.iter().find(|call| !whole.contains(call)) {
                    wrong.push(format!(
                        "{}, frame {other} in the place of {number}: {name} {arguments}",
                        f.name
                    ));
                }
            }
        }
    }
    nothing(&wrong, tried);
}

/// Fails with what is wrong, at most some of it.
#[track_caller]
fn nothing(wrong: &[String], of: usize) {
    let shown = &wrong[..wrong.len().min(20)];
    assert!(
        wrong.is_empty(),
        "{} of {of}:\n{}",
        wrong.len(),
        shown.join("\n")
    );
}

#[test]
fn a_timeout_and_a_cancellation_say_what_they_are() {
    let body = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n".as_slice();
    let lines = read(
        Api::OpenaiChat,
        [body],
        End::Timeout("nothing for 60 s".into()),
    );
    assert!(
        lines[2].contains("\"code\":\"timeout\"")
            && lines[2].contains("\"retryable\":true")
            && lines[3].contains("\"cut\"")
    );
    let lines = read(Api::OpenaiChat, [body], End::Cancelled);
    assert_eq!(
        lines[2],
        r#"{"type":"stream_end","finish_reason":"cancelled"}"#
    );
}

/// A recording that holds the body of an answer twice, one behind the other.
#[test]
fn each_answer_of_a_recording_is_a_stream_of_its_own() {
    let mut tried = 0;
    for f in FIXTURES.iter() {
        let read = |body: &[u8], step: usize| {
            let mut out = Collect::default();
            let mut stream = Stream::new(f.api, StreamOptions::default());
            stream.read_several();
            for piece in body.chunks(step) {
                stream.push(piece, &mut out);
            }
            stream.finish(End::Eof, &mut out);
            assert!(stream.is_done());
            out.lines
        };
        let once = read(&f.body, f.body.len().max(1));
        let alone = self::read(f.api, [f.body.as_slice()], End::Eof);
        assert_eq!(once, alone, "{}", f.name);
        let is_whole = !kinds(&once).contains(&Kind::Error);
        // Compressed bodies, arrays and marks at the beginning are not joined as they are.
        let is_plain = f.body.starts_with(b"data:")
            || f.body.starts_with(b"event:")
            || f.body.starts_with(b"{");
        let has_mark = String::from_utf8_lossy(&f.body).contains("[DONE]")
            || matches!(f.api, Api::Anthropic | Api::Ollama)
            || f.name.ends_with(".json") && f.api != Api::Gemini;
        if !is_whole || !is_plain || !has_mark {
            continue;
        }
        tried += 1;
        let body = [&f.body[..], b"\n\n", &f.body[..]].concat();
        for step in [body.len(), 7] {
            same(&read(&body, step), &[&once[..], &once[..]].concat(), || {
                format!("{} twice, by {step}", f.name)
            });
        }
    }
    assert!(tried > 100, "{tried}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(api in 0..Api::ALL.len(), body in prop::collection::vec(any::<u8>(), 0..400), step in 1..50_usize) {
        let whole = read(Api::ALL[api], [body.as_slice()], End::Eof);
        prop_assert_eq!(read(Api::ALL[api], body.chunks(step), End::Eof), whole);
    }

    #[test]
    fn no_damage_to_a_stream_makes_it_panic(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(), step in 1..4000_usize) {
        let f = &FIXTURES[pick.index(FIXTURES.len())];
        prop_assume!(!f.body.is_empty());
        let mut body = f.body.clone();
        let at = at.index(body.len());
        body[at] = byte;
        let whole = read(f.api, [body.as_slice()], End::Eof);
        prop_assert_eq!(read(f.api, body.chunks(step), End::Eof), whole);
    }
}
