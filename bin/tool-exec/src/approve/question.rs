//! The text of a question. It shows everything that an answer is bound to, with every character
//! visible.

use redact::Redactor;
use tool::{Class, Question, Work, pretty, visible_json};

/// How a terminal shows a question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuestionStyle {
    /// The width of the terminal, in columns.
    pub columns: usize,
    /// Whether colours may be used.
    pub is_coloured: bool,
}

/// Returns the part of a question before the prompt: the tool, the reason for asking, what will
/// run, the complete arguments, and the hash. `redactor` redacts the tools file's credentials in
/// what will run. The arguments are shown unchanged because the answer is bound to them.
pub(super) fn details(question: &Question, style: QuestionStyle, redactor: &Redactor) -> String {
    let Question { call, ready, .. } = question;
    let [strong, plain] = if style.is_coloured {
        ["\x1b[1m", "\x1b[0m"]
    } else {
        ["", ""]
    };
    let (name, class) = (json_text(&call.name), ready.class.name());
    let mut out = format!("\n{strong}tool-exec: may the tool {name} run?{plain} (class {class})\n");
    labelled(&mut out, "why", &question.reason.to_string(), style);
    let (label, work) = shown(&ready.work, redactor);
    labelled(&mut out, label, &work, style);
    let arguments = call
        .arguments
        .as_ref()
        .ok()
        .and_then(|arguments| event::Raw::parse(arguments.text()).ok())
        .map(pretty)
        .unwrap_or_default();
    let arguments = visible_json(&arguments);
    let lines = arguments.split('\n').count();
    let characters = arguments.chars().count();
    let plural = if lines == 1 { "" } else { "s" };
    labelled(
        &mut out,
        &format!("arguments: {lines} line{plural}, {characters} characters"),
        &arguments,
        style,
    );
    let stream = call
        .stream
        .as_deref()
        .map(|stream| format!(" of stream {}", visible_json(stream)))
        .unwrap_or_default();
    labelled(
        &mut out,
        "call and hash",
        &format!("{}{stream}\n{}", json_text(&call.id), ready.hash),
        style,
    );
    out
}

/// Returns the prompt after the details. Any answer that it does not name refuses the call.
pub(super) fn prompt(question: &Question, style: QuestionStyle) -> String {
    let [danger, plain] = match question.ready.class {
        Class::Danger if style.is_coloured => ["\x1b[1;31m", "\x1b[0m"],
        _ if style.is_coloured => ["\x1b[1m", "\x1b[0m"],
        _ => ["", ""],
    };
    let always = if question.reason.allows_always() {
        "a: yes, always in this run; "
    } else {
        ""
    };
    format!(
        "{danger}Run {} once?{plain} y: yes; {always}else no [y/N] ",
        json_text(&question.call.name)
    )
}

/// Returns a label for what a call starts, and one line for each of its parts.
fn shown(work: &Work, redactor: &Redactor) -> (&'static str, String) {
    match work {
        Work::Command(argv) => (
            "command",
            argv.iter()
                .map(|item| json_text(&redactor.text(item)))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        Work::Http(request) => {
            let body = request
                .body
                .as_ref()
                .map(|(kind, body)| format!("\n{kind}\n{}", json_text(body)));
            (
                "request",
                format!(
                    "{} {}{}",
                    request.method,
                    json_text(&redactor.url(&request.url)),
                    body.unwrap_or_default()
                ),
            )
        }
        Work::Mcp(tool) => (
            "tool of a server",
            format!("{}\n{}", json_text(&tool.server), json_text(&tool.tool)),
        ),
    }
}

/// Returns the text as a JSON string in which every character is visible.
fn json_text(text: &str) -> String {
    visible_json(&event::quoted(text)).into_owned()
}

fn labelled(out: &mut String, label: &str, text: &str, style: QuestionStyle) {
    out.push_str(label);
    out.push('\n');
    push(out, text, style.columns);
}

// Text in terminal rows. A mark before each row keeps the text from imitating rows written by
// tool-exec.

/// The mark before the first row of a line, and before its further rows.
const MARKS: [&str; 2] = ["  | ", "  : "];

/// The minimum number of columns for text, even on a narrower terminal.
const LEAST: usize = 16;

/// Appends the lines of `text` in rows of at most `columns`. A character outside ASCII counts as
/// two columns, which is the maximum width.
pub(super) fn push(out: &mut String, text: &str, columns: usize) {
    let room = columns.saturating_sub(MARKS[0].len()).max(LEAST);
    for line in text.split('\n') {
        out.push_str(MARKS[0]);
        let mut used = 0;
        for c in line.chars() {
            let width = if c.is_ascii() { 1 } else { 2 };
            if used + width > room {
                out.push('\n');
                out.push_str(MARKS[1]);
                used = 0;
            }
            out.push(c);
            used += width;
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod rows_tests {
    use super::*;

    #[test]
    fn every_row_has_a_mark_however_long_the_line() {
        let mut out = String::new();
        push(&mut out, "a\n0123456789012345678\n中中中中中中中中中", 20);
        assert_eq!(
            out,
            "  | a\n  | 0123456789012345\n  : 678\n  | 中中中中中中中中\n  : 中\n"
        );
        let mut out = String::new();
        push(&mut out, "01234567890123456", 0);
        assert_eq!(out, "  | 0123456789012345\n  : 6\n");
    }
}
