//! The status of a call on its card.

use super::call::{CallCard, CallState};
use anstyle::{AnsiColor, Style};

/// The sign of a call that succeeded.
pub(crate) const DONE: &str = "✓";

/// The sign before a call's name, its colour, and the text at the other end of the line.
pub(crate) fn status(call: &CallCard, no_time: bool) -> (&'static str, Style, String) {
    let style = |colour: AnsiColor| colour.on_default();
    let (sign, style, mut text) = match &call.state {
        CallState::Running if call.is_lost && !call.is_cancelled => {
            ("–", style(AnsiColor::Yellow), "no result".to_owned())
        }
        CallState::Ended(status) if status == "cancelled" => cancelled(call),
        CallState::Ended(_) => over(call),
        _ if call.is_cancelled => cancelled(call),
        CallState::Arriving => ("…", Style::new().dimmed(), "arriving".to_owned()),
        CallState::Called => ("○", style(AnsiColor::Cyan), "called".to_owned()),
        CallState::Refused(code) => ("✗", style(AnsiColor::Red), format!("refused: {code}")),
        CallState::Running => ("●", style(AnsiColor::Yellow), "running".to_owned()),
        CallState::Retracted => ("–", Style::new().dimmed(), "taken back".to_owned()),
    };
    if let Some(code) = call.exit_code.filter(|code| *code != 0) {
        add(&mut text, &format!("exit {code}"));
    }
    if call.is_cached {
        add(&mut text, "cached");
    }
    if let Some(ms) = call.duration_ms.filter(|_| !no_time) {
        add(&mut text, &duration(ms));
    }
    if text.is_empty() {
        text.push_str("done");
    }
    (sign, style, text)
}

fn over(call: &CallCard) -> (&'static str, Style, String) {
    let CallState::Ended(status) = &call.state else {
        return (DONE, Style::new(), String::new());
    };
    match status.as_str() {
        "success" | "answered" => (DONE, AnsiColor::Green.on_default(), String::new()),
        "pending" => (
            "?",
            AnsiColor::Yellow.on_default(),
            "waits for approval".to_owned(),
        ),
        _ => ("✗", AnsiColor::Red.on_default(), status.replace('_', " ")),
    }
}

fn cancelled(call: &CallCard) -> (&'static str, Style, String) {
    let text = if call.was_started {
        "cancelled"
    } else {
        "cancelled, not run"
    };
    ("–", AnsiColor::Yellow.on_default(), text.to_owned())
}

fn add(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push_str(", ");
    }
    text.push_str(more);
}

/// Milliseconds for people: `0.4 ms`, `12 ms`, `1.2 s`, `2 min 3 s`.
fn duration(ms: f64) -> String {
    match ms {
        _ if ms < 9.95 => format!("{ms:.1} ms"),
        _ if ms < 999.5 => format!("{ms:.0} ms"),
        _ if ms < 60_000.0 => format!("{:.1} s", ms / 1000.0),
        _ => format!(
            "{:.0} min {:.0} s",
            (ms / 60_000.0).floor(),
            (ms / 1000.0 % 60.0).floor()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_for_people() {
        let all = [0.04, 9.96, 12.3, 999.6, 1234.0, 60_000.0, 123_000.0].map(duration);
        assert_eq!(
            all,
            [
                "0.0 ms",
                "10 ms",
                "12 ms",
                "1.0 s",
                "1.2 s",
                "1 min 0 s",
                "2 min 3 s"
            ]
        );
    }
}
