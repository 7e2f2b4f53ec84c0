//! The explanation as lines of text for people.

use super::found::{Explained, Explanation};
use super::places::EventPlace;
use score::forms::counted;
use score::{Answer, Place, command_line, visible};

/// Maximum number of characters shown before the decision, and after it.
const TEXT: usize = 72;
/// Maximum length shown of an event, and of each line of its bytes.
const LINE: usize = 400;
/// Maximum number of lines shown of the bytes of an event.
const LINES: usize = 6;

/// Returns the explanation as lines of text.
pub(super) fn lines(explanation: &Explanation<'_>) -> String {
    let mut page = ExplainPage {
        out: String::new(),
        file: explanation.entry.path.to_string_lossy().into_owned(),
    };
    page.head(explanation);
    for checker in &explanation.checkers {
        page.out.push('\n');
        page.checker(explanation, checker);
    }
    page.out
}

struct ExplainPage {
    out: String,
    file: String,
}

impl ExplainPage {
    /// A line: what it is, and the text, which has no line ends.
    fn line(&mut self, name: &str, text: &str) {
        self.out.push_str(format!("  {name:<8} {text}").trim_end());
        self.out.push('\n');
    }

    fn head(&mut self, explanation: &Explanation<'_>) {
        let Explanation {
            entry, measured, ..
        } = explanation;
        let label = &entry.label;
        let whose = if label.has_tool_call.is_some() {
            "by its label"
        } else {
            "by the calls that were read"
        };
        let calls = if explanation.has_tool_call {
            "calls a tool"
        } else {
            "calls no tool"
        };
        self.out.push_str(&format!(
            "{}: {calls} ({whose})\n",
            visible(&label.id, LINE)
        ));
        if !entry.corpus.is_empty() {
            self.line(
                "label",
                &format!("{}, line {}", visible(&entry.corpus, LINE), entry.line),
            );
        }
        let part = label
            .part
            .map(|part| format!(", part {part}"))
            .unwrap_or_default();
        self.line("file", &format!("{}{part}", visible(&self.file, LINE)));
        let names = [&measured.api, &measured.provider, &measured.model];
        let names: Vec<String> = names
            .into_iter()
            .filter(|name| !name.is_empty())
            .map(|name| visible(name, LINE))
            .collect();
        self.line(
            "from",
            if names.is_empty() {
                "an unknown model".into()
            } else {
                names.join(", ")
            }
            .as_str(),
        );
        if !label.tags.is_empty() {
            let tags: Vec<String> = label.tags.iter().map(|tag| visible(tag, LINE)).collect();
            self.line("tags", &tags.join(", "));
        }
        let end = &measured.end;
        let whole = [
            counted(explanation.events, "event"),
            counted(end.chars, "character"),
        ]
        .join(", ");
        self.line("whole", &format!("{whole} of text{}", time(end)));
        self.calls(explanation);
    }

    fn calls(&mut self, explanation: &Explanation<'_>) {
        let counts = &explanation.measured.calls;
        for call in &explanation.calls {
            self.line("call", call);
        }
        if explanation.entry.label.has_tool_call.is_some()
            && (counts.exact, counts.read) != (counts.expected, counts.expected)
        {
            let expected = counted(counts.expected, "call");
            self.line(
                "wrong",
                &format!(
                    "the label has {expected}, of which {} were read exactly:",
                    counts.exact
                ),
            );
            for call in &explanation.entry.label.calls {
                let arguments = call.arguments.as_ref().map_or("null", |json| json.get());
                self.line(
                    "label",
                    &visible(&format!("{} {arguments}", call.name), LINE),
                );
            }
        }
    }

    fn checker(&mut self, explanation: &Explanation<'_>, checker: &Explained<'_>) {
        let outcome = checker.outcome;
        let verdict = match checker.is_right {
            Some(true) => "right",
            Some(false) => "WRONG",
            None => "no answer",
        };
        let place = match &outcome.at {
            Some(at) => format!(
                " at event {} of {}{}",
                at.events,
                explanation.events,
                time(at)
            ),
            None => String::new(),
        };
        let name = visible(checker.name, LINE);
        self.out.push_str(&format!(
            "{name}: {}, {verdict}{place}\n",
            outcome.answer.name()
        ));
        self.line("reason", &visible(&outcome.reason, LINE));
        if outcome.last != outcome.answer {
            self.line(
                "revised",
                &format!("to {} after all events", outcome.last.name()),
            );
        }
        if let Some(event) = &checker.event {
            self.event(event);
        }
        if let Some(at) = &outcome.at {
            let (before, after) = explanation.texts(at);
            self.line(
                "before",
                &format!("{}: {}", counted(at.chars, "character"), shown_end(before)),
            );
            let left = explanation.measured.end.chars.saturating_sub(at.chars);
            self.line(
                "after",
                &format!("{}: {}", counted(left, "character"), shown_beginning(after)),
            );
        }
        self.later(explanation, checker);
    }

    /// Writes what followed the decision, or why it was late.
    fn later(&mut self, explanation: &Explanation<'_>, checker: &Explained<'_>) {
        let outcome = checker.outcome;
        let (Some(first), Some(call)) = (&explanation.measured.first_call, &explanation.first_call)
        else {
            if outcome.answer == Answer::Yes {
                self.line("later", "no event of a call was read");
            }
            return;
        };
        let Some(at) = &outcome.at else { return };
        let distance = |from: &Place, to: &Place| {
            let events = counted(to.events.saturating_sub(from.events), "event");
            format!(
                "{events} and {}",
                counted(to.chars.saturating_sub(from.chars), "character")
            )
        };
        if first.events > at.events {
            self.line(
                "later",
                &format!(
                    "a call begins {} after the decision, at event {}",
                    distance(at, first),
                    first.events
                ),
            );
            self.event(call);
        } else if first.events < at.events {
            self.line(
                "late",
                &format!(
                    "a call began {} before the decision, at event {}",
                    distance(first, at),
                    first.events
                ),
            );
            self.event(call);
        }
    }

    fn event(&mut self, place: &EventPlace) {
        self.line("event", &visible(&place.event, LINE));
        let (from, to) = place.lines;
        let lines = if from == to {
            format!("line {from}")
        } else {
            format!("lines {from} to {to}")
        };
        self.line(
            "bytes",
            &format!(
                "{}..{} of the file, {lines}",
                place.range.start, place.range.end
            ),
        );
        let mut rest = 0;
        for (at, line) in place.excerpt.trim_end().lines().enumerate() {
            if at < LINES {
                self.line("", &visible(line, LINE));
            } else {
                rest += 1;
            }
        }
        if rest > 0 {
            self.line("", &format!("… {} more", counted(rest, "line")));
        }
        self.line(
            "show",
            &command_line::bytes(&self.file, place.range.clone()),
        );
    }
}

fn time(at: &Place) -> String {
    at.ms.map(|ms| format!(", {ms:.0} ms")).unwrap_or_default()
}

/// Returns the end of a text, in quotation marks.
fn shown_end(text: &str) -> String {
    match text.char_indices().rev().nth(TEXT - 1) {
        Some((from, _)) if from > 0 => quoted(&format!("…{}", &text[from..])),
        _ => quoted(text),
    }
}

/// Returns the beginning of a text, in quotation marks.
fn shown_beginning(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        Some((to, _)) => quoted(&format!("{}…", &text[..to])),
        None => quoted(text),
    }
}

fn quoted(text: &str) -> String {
    event::safe_json(&event::quoted(text)).into_owned()
}
