//! Deltas into calls: no call that was cut is complete, complete calls are objects, no split shows,
//! twice is once.
//!
//! Input: a seed of the pieces, then see `input.rs`, `stream`.

use super::input::{Made, Source, merge, merged, show, stream, text_pieces};
use super::line::{Line, is_json, is_object, raw};
use super::{Target, Turn};
use accumulate::{AccumulateOptions, EmitOn};
use event::{Kind, Raw, quoted};
use std::collections::{HashMap, HashSet};

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "merge",
    check,
};

/// The same deltas with other splits, as far as they have arguments or text.
fn recut(lines: &[Line], seed: u8) -> Vec<String> {
    let mut out = Vec::new();
    for line in lines {
        let key = match line.kind {
            Kind::ContentDelta => "text",
            Kind::ToolCallDelta => "arguments",
            _ => "",
        };
        // Half of a surrogate pair cannot be cut here.
        if key.is_empty() || line.text.is_empty() || line.raw.contains("\"\\ud") {
            out.push(line.raw.clone());
            continue;
        }
        let parts = text_pieces(&line.text, seed);
        for (n, part) in parts.iter().enumerate() {
            let mut fields = format!(
                "{{\"type\":\"{}\",\"{key}\":{}",
                line.kind.name(),
                quoted(part)
            );
            for (name, value) in Raw::parse(&line.raw).unwrap().entries() {
                let here = match &*name {
                    "type" => false,
                    "index" | "choice" => true,
                    "done" => n + 1 == parts.len(),
                    other => n == 0 && other != key,
                };
                if here {
                    fields += &format!(",{}:{}", quoted(&name), value.text());
                }
            }
            out.push(fields + "}");
        }
    }
    out
}

/// Calls, messages and retracts, without the level of the commit.
fn essence(lines: &[Line]) -> Vec<String> {
    let kinds = [Kind::ToolCall, Kind::Message, Kind::Retract];
    let level = |l: &Line| {
        l.raw
            .replace("\"commit\":\"sealed\"", "\"commit\":\"balanced\"")
    };
    lines
        .iter()
        .filter(|l| kinds.contains(&l.kind))
        .map(level)
        .collect()
}

/// The text that was sent as arguments, if it all belongs to one call and each fragment can only be
/// appended.
fn plain_text(lines: &[Line]) -> Option<String> {
    let deltas: Vec<&Line> = lines
        .iter()
        .filter(|l| l.kind == Kind::ToolCallDelta)
        .collect();
    let mut scanner = json::JsonScanner::default();
    let mut all = String::new();
    for (n, line) in deltas.iter().enumerate() {
        let is_named = !line.name.is_empty() || !["", "null"].contains(&line.id());
        // Text that begins anew may replace what came before.
        if n > 0 && line.text.trim_start().starts_with('{') {
            return None;
        }
        let is_taken = scanner.push(&line.text) == line.text.len() && scanner.is_valid();
        if is_named != (n == 0)
            || !is_taken
            || line.choice != 0
            || scanner.is_balanced() && n + 1 != deltas.len()
        {
            return None;
        }
        all += &line.text;
    }
    let is_retracted = lines.iter().any(|l| l.kind == Kind::Retract);
    (!deltas.is_empty() && !deltas[0].name.is_empty() && !is_retracted).then_some(all)
}

/// What a client may run after live deltas: see `accumulate/tests/live.rs`.
fn live_holds(lines: &[String], emit_on: EmitOn) {
    let out = merge(
        lines,
        AccumulateOptions {
            live: true,
            emit_on,
            ..AccumulateOptions::default()
        },
    );
    let mut sent: HashMap<(u32, &str), String> = HashMap::new();
    let mut ended: HashSet<(u32, &str)> = HashSet::new();
    for line in &out {
        let id = (line.choice, line.id());
        match line.kind {
            Kind::ToolCallDelta => {
                assert!(
                    !ended.contains(&id),
                    "a delta behind the end of its call: {}",
                    raw(&out)
                );
                let all = sent.entry(id).or_default();
                all.push_str(&line.text);
                let mut json = json::JsonScanner::default();
                let is_open = json.push(all) == all.len() && json.is_valid() && !json.is_whole();
                assert!(is_open, "{all:?} in {}", raw(&out));
            }
            Kind::ToolCall => {
                if let (Some(before), false, false) =
                    (sent.get(&id), line.is_refused, line.is_repaired)
                {
                    assert!(
                        line.arguments.starts_with(before.as_str()),
                        "sent {before} of {}: {}",
                        line.raw,
                        raw(&out)
                    );
                }
                ended.insert(id);
            }
            // The id may come again after a retract.
            Kind::Retract => {
                ended.remove(&id);
                sent.remove(&id);
            }
            _ => {}
        }
    }
}

/// Indexes are dense, in the order in which calls began; a call that was retracted before it was
/// emitted may leave a gap.
fn indexes_hold(lines: &[Line], out: &[Line]) {
    for number in [0, 1] {
        let own = out
            .iter()
            .filter(|l| l.kind == Kind::ToolCall && l.choice == number);
        let mut indexes: Vec<i64> = own.map(|l| l.index.unwrap()).collect();
        let count = indexes.len();
        indexes.sort_unstable();
        indexes.dedup();
        assert_eq!(indexes.len(), count, "{}", raw(out));
        let has_gaps = lines
            .iter()
            .any(|l| l.kind == Kind::Retract && l.choice == number);
        assert!(
            has_gaps || indexes.iter().copied().eq(0..count as i64),
            "indexes {indexes:?} of {}",
            raw(out)
        );
    }
}

fn calls_hold(out: &[Line], fails: bool) {
    for (at, line) in out
        .iter()
        .enumerate()
        .filter(|(_, l)| l.kind == Kind::ToolCall)
    {
        assert!(!line.id().is_empty(), "no id: {}", line.raw);
        if line.is_refused {
            assert!(
                line.raw.contains("\"arguments\":null") && line.commit.is_empty(),
                "{}",
                line.raw
            );
        } else {
            assert!(
                is_object(&line.arguments) && json::check(&line.arguments).is_ok(),
                "{}",
                line.raw
            );
            assert!(
                !line.name.is_empty() && !line.commit.is_empty(),
                "{}",
                line.raw
            );
            let is_back = out[at..].iter().any(|l| l.retracts(line));
            assert!(
                !fails || is_back,
                "a call of a failed stream stays: {}",
                raw(out)
            );
        }
    }
}

/// The message confirms the calls that were emitted, and no others.
fn message_holds(out: &[Line]) {
    for message in out.iter().filter(|l| l.kind == Kind::Message) {
        let mut emitted: Vec<&Line> = Vec::new();
        for line in out.iter().filter(|l| l.choice == message.choice) {
            match line.kind {
                Kind::ToolCall if !line.name.is_empty() => emitted.push(line),
                Kind::Retract => emitted.retain(|call| call.id() != line.id()),
                _ => {}
            }
        }
        emitted.sort_by_key(|call| call.index);
        let emitted: Vec<(&str, &str)> = emitted
            .iter()
            .map(|l| (l.id(), if l.is_refused { "{}" } else { &l.arguments }))
            .collect();
        let line = Raw::parse(&message.raw).unwrap();
        let calls = line.at(&["message", "tool_calls"]);
        let text =
            |value: Option<Raw<'_>>| value.and_then(|v| v.str()).unwrap_or_default().into_owned();
        let listed: Vec<(String, String)> = calls
            .iter()
            .flat_map(|calls| calls.items())
            .map(|c| (text(c.get("id")), text(c.at(&["function", "arguments"]))))
            .collect();
        let listed: Vec<(&str, &str)> = listed
            .iter()
            .map(|(id, arguments)| (&id[..], &arguments[..]))
            .collect();
        assert_eq!(
            listed,
            emitted,
            "the message confirms what was not emitted, or not all: {}",
            raw(out)
        );
        let ids: HashSet<&str> = listed.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), listed.len(), "an id twice: {}", raw(out));
    }
}

fn check(bytes: &[u8], turn: Turn) {
    let mut source = Source(bytes);
    let seed = source.byte();
    let Made {
        lines: raw_lines,
        end,
    } = stream(&mut source, true);
    show(&raw_lines);
    let lines = Line::all(raw_lines.clone());
    let out = merge(&raw_lines, AccumulateOptions::default());
    let fails = matches!(end, None | Some("error" | "cut" | "cancelled"));
    indexes_hold(&lines, &out);
    calls_hold(&out, fails);
    let has_message = out.iter().any(|l| l.kind == Kind::Message);
    assert!(!fails || !has_message, "{}", raw(&out));
    message_holds(&out);
    // Nothing else is lost or moved.
    let mut left = out.iter();
    for line in lines
        .iter()
        .filter(|l| !matches!(l.kind, Kind::ToolCallDelta | Kind::Retract))
    {
        assert!(
            left.any(|l| l.raw == line.raw),
            "lost or moved: {} in {}",
            line.raw,
            raw(&out)
        );
    }
    // A text that was cut is never complete.
    if let Some(text) = plain_text(&lines) {
        let is_cut =
            serde_json::from_str::<&serde_json::value::RawValue>(&text).is_err_and(|e| e.is_eof());
        let is_complete = out
            .iter()
            .any(|l| l.kind == Kind::ToolCall && !l.is_refused);
        assert!(
            !(is_cut && is_complete) || text.trim().is_empty(),
            "cut, and complete: {}",
            raw(&out)
        );
        if turn.takes(0) && !fails {
            assert_eq!(
                essence(&merge(&recut(&lines, seed), AccumulateOptions::default())),
                essence(&out),
                "fragments"
            );
        }
    }
    if turn.takes(1) {
        is_json(&out);
        assert_eq!(
            raw(&Line::all(merged(&out, AccumulateOptions::default()))),
            raw(&out),
            "twice"
        );
    }
    // What is confirmed does not depend on when calls are emitted.
    if turn.takes(2) {
        let confirmed = |emit_on| {
            let out = merged(
                &raw_lines,
                AccumulateOptions {
                    emit_on,
                    ..AccumulateOptions::default()
                },
            );
            out.into_iter()
                .filter(|l| l.starts_with("{\"type\":\"message\""))
                .collect::<Vec<_>>()
        };
        let [a, b, c] = [EmitOn::Balanced, EmitOn::Sealed, EmitOn::Final].map(confirmed);
        // A call that is retracted before it is emitted leaves its index, and with it the made id,
        // to the next one. `final` is a level of streams that ended well.
        let retracts = lines.iter().any(|l| l.kind == Kind::Retract);
        assert!(
            retracts || a == b && (b == c || !matches!(end, Some("stop" | "tool_calls"))),
            "{a:?}\n{b:?}\n{c:?}"
        );
    }
    for (law, emit_on) in (3..).zip([EmitOn::Balanced, EmitOn::Sealed, EmitOn::Final]) {
        if turn.takes(law) {
            live_holds(&raw_lines, emit_on);
        }
    }
    // All other options: no panic, lines.
    if turn.takes(6) {
        for options in [
            AccumulateOptions {
                keep_deltas: true,
                partial: true,
                ..AccumulateOptions::default()
            },
            AccumulateOptions {
                no_repair: true,
                live: true,
                ..AccumulateOptions::default()
            },
        ] {
            is_json(&merge(&raw_lines, options));
        }
    }
}
