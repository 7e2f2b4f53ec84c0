//! `--list`: what every checker did on every stream, a line of JSON each, for other programs.

use event::Object;
use score::{Answer, Measured, Place};

/// Appends a line for each checker.
pub fn write(out: &mut Vec<u8>, checkers: &[String], measured: &Measured) {
    for (checker, outcome) in checkers.iter().zip(&measured.outcomes) {
        let mut o = Object::open(out);
        o.str("id", &measured.id)
            .str("corpus", &measured.corpus)
            .str("source", &measured.source);
        o.str("api", &measured.api)
            .str("provider", &measured.provider)
            .str("model", &measured.model);
        o.array("tags", |a| {
            for tag in &measured.tags {
                a.str(tag);
            }
        });
        o.bool("has_tool_call", measured.has_tool_call)
            .str("checker", checker);
        o.str("answer", word(outcome.answer))
            .str("last", word(outcome.last));
        place(&mut o, outcome.at);
        o.str("reason", &outcome.reason)
            .bool("depends_on_split", outcome.depends_on_split);
        o.object("end", |o| place(o, Some(measured.end)));
        match measured.first_call {
            None => o.raw("first_call", "null"),
            at => o.object("first_call", |o| place(o, at)),
        };
        let calls = &measured.calls;
        o.object("calls", |o| {
            o.int("expected", calls.expected)
                .int("read", calls.read)
                .int("exact", calls.exact);
            o.bool("in_order", calls.is_in_order)
                .int("repaired", calls.repaired)
                .int("incomplete", calls.incomplete);
        });
        o.raw("saved_ms", &number(measured.saved_ms));
        o.close();
        out.push(b'\n');
    }
}

fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Undecided => "undecided",
    }
}

fn place(o: &mut Object<'_>, place: Option<Place>) {
    let count = |count: Option<u64>| count.map_or_else(|| "null".to_owned(), |n| n.to_string());
    o.raw("event", &count(place.map(|p| p.events)))
        .raw("chars", &count(place.map(|p| p.chars)));
    o.raw("bytes", &count(place.map(|p| p.bytes)))
        .raw("ms", &number(place.and_then(|p| p.ms)));
}

fn number(value: Option<f64>) -> String {
    value
        .filter(|n| n.is_finite())
        .map_or_else(|| "null".to_owned(), |n| n.to_string())
}
