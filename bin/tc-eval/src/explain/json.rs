//! The explanation as one JSON object.

use super::found::{Explained, Explanation};
use super::places::EventPlace;
use score::{Place, command_line};
use serde_json::{Value, json};

/// Returns the explanation as one JSON object.
pub(super) fn object(explanation: &Explanation<'_>) -> Value {
    let Explanation {
        entry, measured, ..
    } = explanation;
    let file = entry.path.to_string_lossy();
    let event = |place: &Option<EventPlace>| place.as_ref().map(|place| event(place, &file));
    let checkers: Vec<Value> = explanation
        .checkers
        .iter()
        .map(|checker| {
            let Explained {
                name,
                outcome,
                is_right,
                event: place,
            } = checker;
            let (before, after) = outcome.at.as_ref().map(|at| explanation.texts(at)).unzip();
            json!({
                "checker": name,
                "answer": outcome.answer,
                "right": is_right,
                "revised": (outcome.last != outcome.answer).then_some(outcome.last),
                "reason": outcome.reason,
                "at": outcome.at.as_ref().map(point),
                "event": event(place),
                "text_before": before,
                "text_after": after,
            })
        })
        .collect();
    json!({
        "stream": entry.label.id,
        "corpus": Some(&*entry.corpus).filter(|corpus| !corpus.is_empty()),
        "line": Some(entry.line).filter(|line| *line > 0),
        "file": file,
        "part": entry.label.part,
        "api": *measured.api,
        "provider": *measured.provider,
        "model": *measured.model,
        "tags": entry.label.tags,
        "has_tool_call": explanation.has_tool_call,
        "labelled": entry.label.has_tool_call.is_some(),
        "end": point(&measured.end),
        "calls": explanation.calls,
        "first_call": measured.first_call.as_ref().map(|at| json!({"at": point(at), "event": event(&explanation.first_call)})),
        "checkers": checkers,
    })
}

fn point(place: &Place) -> Value {
    json!({"events": place.events, "chars": place.chars, "bytes": place.bytes, "ms": place.ms})
}

fn event(place: &EventPlace, file: &str) -> Value {
    json!({
        "number": place.number,
        "event": place.event,
        "offset": place.range.start,
        "length": place.range.len(),
        "lines": [place.lines.0, place.lines.1],
        "excerpt": place.excerpt,
        "show": command_line::bytes(file, place.range.clone()),
    })
}
