//! `--list`: what every checker did on every stream, a line of JSON each, for other programs.

use score::{Measured, Place};
use serde_json::{Number, Value, json};

/// Appends a line for each checker.
pub(super) fn write(out: &mut Vec<u8>, checkers: &[String], measured: &Measured) {
    let tags: Vec<&str> = measured.tags.iter().map(|tag| &**tag).collect();
    let calls = &measured.calls;
    for (checker, outcome) in checkers.iter().zip(&measured.outcomes) {
        let at = place(outcome.at);
        let line = json!({
            "id": *measured.id, "corpus": *measured.corpus, "source": *measured.source,
            "api": *measured.api, "provider": *measured.provider, "model": *measured.model,
            "tags": tags, "has_tool_call": measured.has_tool_call, "checker": checker,
            "answer": outcome.answer, "last": outcome.last,
            "event": at["event"], "chars": at["chars"], "bytes": at["bytes"], "ms": at["ms"],
            "reason": outcome.reason, "depends_on_split": outcome.depends_on_split,
            "end": place(Some(measured.end)),
            "first_call": measured.first_call.map(|at| place(Some(at))),
            "calls": {
                "expected": calls.expected, "read": calls.read, "exact": calls.exact,
                "in_order": calls.is_in_order, "repaired": calls.repaired, "incomplete": calls.incomplete,
            },
            "saved_ms": number(measured.saved_ms),
        });
        out.extend_from_slice(event::safe_json(&line.to_string()).as_bytes());
        out.push(b'\n');
    }
}

fn place(at: Option<Place>) -> Value {
    json!({
        "event": at.map(|at| at.events), "chars": at.map(|at| at.chars),
        "bytes": at.map(|at| at.bytes), "ms": number(at.and_then(|at| at.ms)),
    })
}

/// Returns milliseconds as JSON, without a fraction if it is zero; `None` if the value is not a
/// number.
fn number(ms: Option<f64>) -> Option<Number> {
    ms?.to_string().parse().ok()
}
