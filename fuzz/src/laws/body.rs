//! A provider's body into events, and these into calls: no split shows, one start, one end, valid
//! lines, and nothing that was cut runs.
//!
//! Input: the API, a seed of the pieces, how the connection ends, then the body.

use super::input::{merge, merged, pieces};
use super::line::{Line, is_json, is_object, raw};
use super::{Target, Turn};
use api::{Api, End, Stream, StreamOptions, recognise};
use event::{Collect, Kind};
use std::cell::LazyCell;

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "body",
    check,
};

fn read<'a>(api: Api, pieces: impl IntoIterator<Item = &'a [u8]>, end: End) -> Vec<String> {
    let mut out = Collect::default();
    let mut stream = Stream::new(api, StreamOptions::default());
    pieces
        .into_iter()
        .for_each(|piece| stream.push(piece, &mut out));
    stream.finish(end, &mut out);
    assert!(stream.is_done() && stream.has_started());
    out.lines
}

thread_local! {
    static SCHEMA: LazyCell<jsonschema::Validator> = const { LazyCell::new(|| {
        let text = include_str!("../../../docs/events.schema.json");
        jsonschema::validator_for(&serde_json::from_str(text).expect("JSON")).expect("a schema")
    }) };
}

/// Half of a surrogate pair is JSON, but not for serde_json.
fn fits(line: &str) {
    let Ok(value) = serde_json::from_str(line) else {
        return;
    };
    SCHEMA.with(|schema| assert!(schema.is_valid(&value), "does not fit the schema: {line}"));
}

fn is_stream(lines: &[Line]) {
    let is_end = |line: &&Line| matches!(line.kind, Kind::StreamStart | Kind::StreamEnd);
    let last = &lines[lines.len() - 1];
    assert!(
        lines[0].kind == Kind::StreamStart && last.kind == Kind::StreamEnd,
        "{}",
        raw(lines)
    );
    assert_eq!(lines.iter().filter(is_end).count(), 2, "{}", raw(lines));
    let has_error = lines.iter().any(|line| line.kind == Kind::Error);
    assert_eq!(
        has_error,
        ["error", "cut"].contains(&&last.reason[..]),
        "{}",
        raw(lines)
    );
}

/// What holds of the calls of a stream, see docs/protocol.md, "When a call is complete".
fn calls_hold(lines: &[Line], turn: Turn) {
    let reason = &lines[lines.len() - 1].reason[..];
    let out = merge(lines, accumulate::AccumulateOptions::default());
    let failed = ["error", "cut", "cancelled"].contains(&reason);
    for (at, line) in out
        .iter()
        .enumerate()
        .filter(|(_, line)| line.kind == Kind::ToolCall && !line.is_refused)
    {
        assert!(is_object(&line.arguments), "{}", line.raw);
        assert!(
            !failed || out[at..].iter().any(|l| l.retracts(line)),
            "a call of a failed stream stays: {}",
            raw(&out)
        );
    }
    if failed {
        assert!(
            !out.iter().any(|line| line.kind == Kind::Message),
            "{}",
            raw(&out)
        );
    }
    if turn.takes(1) {
        is_json(&out);
        assert_eq!(
            raw(&Line::all(merged(
                &out,
                accumulate::AccumulateOptions::default()
            ))),
            raw(&out),
            "twice"
        );
    }
}

fn check(bytes: &[u8], turn: Turn) {
    let [api, seed, how, body @ ..] = bytes else {
        return;
    };
    let api = Api::ALL[usize::from(*api) % Api::ALL.len()];
    let whole = read(api, [body], End::Eof);
    assert_eq!(read(api, pieces(body, *seed), End::Eof), whole);
    let lines = Line::all(whole);
    is_stream(&lines);
    calls_hold(&lines, turn);
    if turn.takes(2) {
        lines.iter().for_each(|line| fits(&line.raw));
    }
    if turn.takes(3) {
        let _ = recognise(body, true);
    }
    // The connection is lost somewhere.
    if turn.takes(4) || turn.takes(5) {
        let cut = &body[..body.len() * usize::from(how >> 4) / 15];
        let end = || match how & 3 {
            0 => End::Reset("the connection was reset".into()),
            1 => End::Timeout("nothing for 60 s".into()),
            _ => End::Reset("x".into()),
        };
        let lost = read(api, [cut], end());
        assert_eq!(read(api, pieces(cut, *seed), end()), lost);
        // A part of a frame behind the end mark is a warning at the end of the body only.
        let is_warning = |line: &&Line| line.kind == Kind::Warning;
        let others = |lines: &[Line]| {
            lines
                .iter()
                .filter(|l| !is_warning(l))
                .map(|l| l.raw.clone())
                .collect::<Vec<_>>()
        };
        let lines = Line::all(lost);
        let is_ended = others(&Line::all(read(api, [cut], End::Eof))) == others(&lines);
        is_stream(&lines);
        // The provider's end mark had come, or the stream has failed.
        let reason = &lines[lines.len() - 1].reason[..];
        assert!(
            is_ended || ["error", "cut"].contains(&reason),
            "{}",
            raw(&lines)
        );
        calls_hold(&lines, turn);
    }
}
