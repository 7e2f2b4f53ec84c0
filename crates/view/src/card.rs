//! The card of a call: its state as a word, a sign and a colour, its shortened arguments, and the
//! figures of its result.

use crate::escape::one_line;
use anstyle::{AnsiColor, Style};
use conversation::{Call, CallState, Who, plain};
use event::Raw;
use std::borrow::Cow;

/// Maximum width of shortened arguments in columns, that of the widest card.
pub(crate) const BRIEF: usize = 120;

/// Returns the text of the call's result, refusal or progress.
pub(crate) fn result_text(call: &Call) -> &str {
    match (&call.answer, &call.refusal) {
        (Some(answer), _) if answer.summary.is_empty() => &answer.output,
        (Some(answer), _) => &answer.summary,
        (None, Some(refusal)) if call.progress.is_empty() => &refusal.message,
        (None, _) => &call.progress,
    }
}

/// Returns the text on the card. For a failed command that is the last line of standard error, or
/// of standard output if standard error is empty.
pub(crate) fn gist(call: &Call) -> &str {
    let failed = call.answer.as_ref();
    failed
        .filter(|answer| ["error", "timeout", "cancelled"].contains(&&*answer.status))
        .and_then(|answer| last_words(&answer.output))
        .unwrap_or_else(|| result_text(call))
}

/// Returns labels and texts for which only a report has room.
pub(crate) fn facts(call: &Call) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
    let repairs = call
        .repairs
        .as_deref()
        .map(|json| Raw::parse(json).map_or_else(|_| String::new(), repaired));
    let output = call
        .answer
        .as_ref()
        .and_then(|answer| match (&answer.file, answer.cut_from) {
            (Some(file), _) => Some(("whole output", Cow::from(file))),
            (None, Some(bytes)) => Some(("output", format!("{bytes} bytes, cut").into())),
            (None, None) => None,
        });
    let facts = [
        call.from_text
            .then_some(("origin", "written as text".into())),
        repairs.map(|repairs| ("repaired", repairs.into())),
        call.refusal
            .as_ref()
            .map(|refusal| ("refused", Cow::from(&refusal.message))),
        call.hash.as_ref().map(|hash| ("hash", hash.into())),
        output,
    ];
    facts.into_iter().flatten()
}

/// Returns the last line of standard error in the `output` of a failed command, or of its standard
/// output. `output` is a sentence, followed by `stderr:` and `stdout:`, each with its text.
fn last_words(output: &str) -> Option<&str> {
    let (_, written) = output
        .split_once("\nstderr:\n")
        .or_else(|| output.split_once("\nstdout:\n"))?;
    let stderr = written
        .split_once("\nstdout:\n")
        .map_or(written, |(stderr, _)| stderr);
    stderr.lines().rfind(|line| !line.trim().is_empty())
}

/// Maximum number of repairs listed per call.
const REPAIRS: usize = 16;

/// Returns the repairs of a call, one per line: `trailing comma at byte 12: "," became ""`.
fn repaired(repairs: Raw<'_>) -> String {
    let lines = repairs.items().take(REPAIRS).map(|repair| {
        let part = |key| one_line(&plain(repair.get(key)), BRIEF);
        format!(
            "{} at byte {}: \"{}\" became \"{}\"",
            part("kind").replace('_', " "),
            part("offset"),
            part("before"),
            part("after")
        )
    });
    let lines: Vec<_> = lines.collect();
    match repairs.items().count() {
        all if all > REPAIRS => format!("{}\n… {} more", lines.join("\n"), all - REPAIRS),
        _ => lines.join("\n"),
    }
}

/// Maximum length in bytes of incomplete arguments that are parsed, because each delta parses them
/// again.
const READ: usize = 4096;

/// Returns the arguments on one short line: an object as `city: Oslo, days: 3`, any other text
/// unchanged.
pub(crate) fn brief(call: &Call) -> String {
    let arguments = &*call.arguments;
    let is_part = call.is_arriving() && (arguments.len() > READ || !arguments.ends_with('}'));
    let object = Raw::parse(if is_part { "" } else { arguments });
    let Some(object) = object.ok().filter(|object| object.is_object()) else {
        return one_line(arguments, BRIEF);
    };
    let mut out = String::new();
    for (key, value) in object.entries() {
        if out.len() > 4 * BRIEF {
            break;
        }
        let comma = if out.is_empty() { "" } else { ", " };
        out.extend([comma, &key, ": ", &plain(Some(value))]);
    }
    one_line(&out, BRIEF)
}

/// The state of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Badge {
    /// The name of the state in `cards.css` and on the page of `tc-serve`.
    pub name: &'static str,
    pub sign: &'static str,
    /// The colour on a terminal.
    pub style: Style,
}

impl Badge {
    const ARRIVING: Badge = Badge::new("arriving", "…", Style::new().dimmed());
    const CALLED: Badge = Badge::new("called", "○", AnsiColor::Cyan.on_default());
    const RUNNING: Badge = Badge::new("running", "●", AnsiColor::Yellow.on_default());
    const WAITS: Badge = Badge::new("waits", "?", AnsiColor::Yellow.on_default());
    pub(crate) const DONE: Badge = Badge::new("done", "✓", AnsiColor::Green.on_default());
    const FAILED: Badge = Badge::new("failed", "✗", AnsiColor::Red.on_default());
    const REFUSED: Badge = Badge::new("refused", "✗", AnsiColor::Red.on_default());
    const CANCELLED: Badge = Badge::new("cancelled", "–", AnsiColor::Yellow.on_default());
    const LOST: Badge = Badge::new("lost", "–", AnsiColor::Yellow.on_default());
    const RETRACTED: Badge = Badge::new("retracted", "–", Style::new().dimmed());

    const fn new(name: &'static str, sign: &'static str, style: Style) -> Self {
        Badge { name, sign, style }
    }

    /// Whether the call failed or was refused.
    pub(crate) fn is_failure(self) -> bool {
        self == Badge::FAILED || self == Badge::REFUSED
    }

    /// Whether a reader of a report is likely to look for the call: it failed, is waiting or has no
    /// result.
    pub(crate) fn is_notable(self) -> bool {
        let plain = [
            Badge::ARRIVING,
            Badge::CALLED,
            Badge::DONE,
            Badge::RETRACTED,
        ];
        !plain.contains(&self)
    }
}

/// Returns the state of a call, and its description.
pub(crate) fn badge(call: &Call) -> (Badge, Cow<'static, str>) {
    let cancelled = || {
        let word = match call.was_started {
            true => "cancelled",
            false => "cancelled, not run",
        };
        (Badge::CANCELLED, word.into())
    };
    if let Some(answer) = &call.answer {
        return match &*answer.status {
            "cancelled" => cancelled(),
            "success" | "answered" => (Badge::DONE, "done".into()),
            "pending" => (Badge::WAITS, "waits for approval".into()),
            status => {
                let badge = match status {
                    "denied" | "invalid" | "unknown_tool" => Badge::REFUSED,
                    _ => Badge::FAILED,
                };
                (badge, status.replace('_', " ").into())
            }
        };
    }
    let refused = || call.refusal.as_ref().map_or("", |refusal| &refusal.code);
    match call.state {
        _ if call.is_cancelled => cancelled(),
        _ if call.is_lost() => (Badge::LOST, "no result".into()),
        CallState::Arriving => (Badge::ARRIVING, "arriving".into()),
        CallState::Called => (Badge::CALLED, "called".into()),
        CallState::Incomplete => (Badge::LOST, "incomplete".into()),
        CallState::Refused => (Badge::REFUSED, format!("refused: {}", refused()).into()),
        CallState::Waiting => (Badge::WAITS, "waits for approval".into()),
        CallState::Running => (Badge::RUNNING, "running".into()),
        CallState::Answered => (Badge::DONE, "done".into()),
        CallState::Retracted => (Badge::RETRACTED, "taken back".into()),
    }
}

/// Returns the state of a call, and its description with the figures of the result.
pub(crate) fn status(call: &Call, no_time: bool) -> (Badge, String) {
    let (badge, word) = badge(call);
    let figures = figures(call, no_time);
    let text = figures.fold(word.into_owned(), |text, figure| {
        format!("{text}, {figure}")
    });
    (badge, text)
}

/// Returns the figures of the result: the exit status of a failed command, whether the result was
/// cached, and the duration.
pub(crate) fn figures(call: &Call, no_time: bool) -> impl Iterator<Item = String> {
    let answer = call.answer.as_ref();
    let exit = answer.and_then(|answer| answer.exit_code);
    let exit = exit.filter(|code| *code != 0);
    let is_cached = answer.is_some_and(|answer| answer.is_cached);
    let time = answer.and_then(|answer| answer.duration_ms);
    let figures = [
        exit.map(|code| format!("exit {code}")),
        is_cached.then(|| "cached".to_owned()),
        time.filter(|_| !no_time)
            .map(|time| duration(time.micros as f64 / 1000.0)),
    ];
    figures.into_iter().flatten()
}

/// Formats milliseconds for people: `0.4 ms`, `12 ms`, `1.2 s`, `2 min 3 s`.
pub(crate) fn duration(ms: f64) -> String {
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

/// Returns the heading above the events of a stream and choice.
pub(crate) fn heading(who: &Who) -> String {
    let name = Raw::parse(&who.stream);
    let name = name.map_or_else(|_| "the unnamed stream".to_owned(), |s| plain(Some(s)));
    if who.choice == 0 {
        name
    } else {
        format!("{name}, choice {}", who.choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_of_cards_has_the_sign_of_each_state() {
        for badge in [
            Badge::ARRIVING,
            Badge::CALLED,
            Badge::RUNNING,
            Badge::WAITS,
            Badge::DONE,
            Badge::FAILED,
            Badge::REFUSED,
            Badge::CANCELLED,
            Badge::LOST,
            Badge::RETRACTED,
        ] {
            let state = format!("[data-state={}]", badge.name);
            let sign = format!("--sign: \"{}\"", badge.sign);
            let mut lines = crate::CARDS.lines();
            assert!(
                lines.any(|line| line.contains(&state) && line.contains(&sign)),
                "{badge:?}"
            );
        }
    }

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
