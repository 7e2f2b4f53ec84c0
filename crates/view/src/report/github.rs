//! `markdown`: a report for an issue or a pull request, in
//! [GitHub's Markdown](https://github.github.com/gfm/).

use super::excerpt::{Excerpt, left_out};
use super::github_text::{Place, code_span, fenced, shown};
use super::outline::{Outline, RowKind};
use super::{OUTPUT, ReportCard, ReportForm, story};
use crate::card::duration;
use crate::escape::{BRIEF_NOTE, one_line};
use crate::story::{Tokens, Tone, Voice};
use crate::surface::FormRow;
use event::View;
use std::io::Write;

pub(crate) const ROW: FormRow = FormRow {
    name: "markdown",
    help: "A report for an issue or a pull request, in GitHub's Markdown",
    view: |surface| Box::new(markdown(surface.no_time)),
};

/// Creates a view that writes a report in GitHub's Markdown.
pub fn markdown(no_time: bool) -> impl View {
    story(Github::default(), no_time)
}

#[derive(Debug, Default)]
struct Github {
    /// Whether the last block is a list of notes, which the next note continues.
    in_notes: bool,
    /// The current text, collected until it is complete.
    text: String,
}

/// Appends formatted text.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        // Writing to a vector cannot fail.
        let _ = write!($out, $($text)*);
    }};
}

/// Returns the markup that introduces a text of this voice.
fn label(voice: Voice) -> Option<&'static str> {
    match voice {
        Voice::User => Some("> **user**\n>\n> "),
        Voice::Thinking => Some("<details><summary>thinking</summary>\n\n"),
        Voice::Refusal => Some("**refusal**\n\n"),
        Voice::Output => Some("**output**\n\n"),
        Voice::Answer => None,
    }
}

impl Github {
    /// Ends the list of notes.
    fn end_notes(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.in_notes) {
            out.push(b'\n');
        }
    }
}

impl ReportForm for Github {
    const WRITES_MARKDOWN: bool = false;
    /// Comments on GitHub are limited to 65,536 characters.
    const MOST: usize = 4 * 1024;

    // The document starts with the first question, since a head would need the whole log.
    fn head(&mut self, _: &mut Vec<u8>, _: &Outline) {}

    fn turn(&mut self, out: &mut Vec<u8>, outline: &Outline) {
        self.end_notes(out);
        put!(out, "###### turn {}\n\n", outline.turns);
    }

    fn open_text(&mut self, out: &mut Vec<u8>, voice: Voice, _: &Outline) {
        self.end_notes(out);
        out.extend_from_slice(label(voice).unwrap_or_default().as_bytes());
    }

    fn plain(&mut self, _: &mut Vec<u8>, text: &str) {
        self.text.push_str(text);
    }

    fn passage(&mut self, _: &mut Vec<u8>, _: &str) {}

    fn close_text(&mut self, out: &mut Vec<u8>, voice: Voice) {
        let text = std::mem::take(&mut self.text);
        match voice {
            Voice::User => quote(out, text.trim_end()),
            Voice::Output => {
                let excerpt = Excerpt::of(&text, OUTPUT);
                put!(out, "{}\n", fenced("text", &excerpt.text));
                cut_note(out, excerpt.left_out);
            }
            Voice::Answer | Voice::Refusal | Voice::Thinking => {
                put!(out, "{}\n", fenced("markdown", &text));
                if voice == Voice::Thinking {
                    out.extend_from_slice(b"</details>\n\n");
                }
            }
        }
    }

    fn note(&mut self, out: &mut Vec<u8>, tone: Tone, text: &str) {
        let text = shown(&one_line(text, BRIEF_NOTE), Place::Line(false));
        let (before, after) = match tone {
            Tone::Heading => ("- **", "**"),
            Tone::Quiet => ("- ", ""),
            Tone::Warning => ("- ⚠ warning: ", ""),
            Tone::Error => ("- ✗ error: ", ""),
        };
        self.in_notes = true;
        put!(out, "{before}{text}{after}\n");
    }

    fn card(&mut self, out: &mut Vec<u8>, card: &ReportCard) {
        self.end_notes(out);
        let open = if card.badge.is_notable() { " open" } else { "" };
        let html = |text: &str| shown(text, Place::Html);
        let [word, name] = [&card.word, &card.name].map(|text| html(text));
        let sign = card.badge.sign;
        put!(
            out,
            "<details{open}><summary>{sign} <b>{word}</b> <code>{name}</code>"
        );
        if !card.brief.is_empty() {
            put!(out, " {}", html(&card.brief));
        }
        for figure in &card.figures {
            put!(out, " · {}", html(figure));
        }
        out.extend_from_slice(b"</summary>\n\n");
        for (label, excerpt) in &card.parts {
            let language = match *label {
                "arguments" => "json",
                _ => "text",
            };
            put!(out, "{label}\n\n{}\n", fenced(language, &excerpt.text));
            cut_note(out, excerpt.left_out);
        }
        out.extend_from_slice(b"</details>\n\n");
    }

    fn end(&mut self, out: &mut Vec<u8>, outline: &Outline, tokens: Tokens) {
        self.end_notes(out);
        out.extend_from_slice(b"---\n\n");
        let figures = outline.figures(tokens);
        let row = |out: &mut Vec<u8>, cells: &mut dyn Iterator<Item = String>| {
            out.push(b'|');
            cells.for_each(|cell| put!(out, " {cell} |"));
            out.push(b'\n');
        };
        row(
            out,
            &mut figures.iter().map(|(label, _)| (*label).to_owned()),
        );
        row(out, &mut figures.iter().map(|_| "---".to_owned()));
        row(
            out,
            &mut figures
                .iter()
                .map(|(_, text)| shown(text, Place::Line(false))),
        );
        if outline.has_times() {
            timeline(out, outline);
        }
    }
}

fn cut_note(out: &mut Vec<u8>, bytes: usize) {
    if bytes > 0 {
        put!(out, "*{}*\n\n", left_out(bytes));
    }
}

/// Writes a text of the user as a quote, line by line.
fn quote(out: &mut Vec<u8>, text: &str) {
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            out.extend_from_slice(b"\n> ");
        }
        let line = line.trim_end();
        let kept = line.trim_start_matches([' ', '\t']);
        // GitHub strips leading spaces.
        let indent = line.len() - kept.len();
        out.extend(std::iter::repeat_n(b"&nbsp;", indent.min(40)).flatten());
        out.extend_from_slice(shown(kept, Place::Line(indent == 0)).as_bytes());
    }
    out.extend_from_slice(b"\n\n");
}

/// The width of a time bar, in characters.
const BAR: usize = 24;

/// Writes the table of turns and calls with their times.
fn timeline(out: &mut Vec<u8>, outline: &Outline) {
    out.extend_from_slice(b"\n<details><summary>turns and calls</summary>\n\n");
    out.extend_from_slice(b"| | state | time | |\n| --- | --- | --: | --- |\n");
    for (at, row) in outline.rows().enumerate() {
        let left_out = outline.left_out_before(at);
        if left_out > 0 {
            put!(out, "| *{left_out} more* | | | |\n");
        }
        let (name, state) = match &row.kind {
            RowKind::Question(text) => (shown(text, Place::Line(false)), String::new()),
            RowKind::Turn => (format!("turn {}", row.n), String::new()),
            RowKind::Call(name, _, word) => {
                (code_span(name, true), shown(word, Place::Line(false)))
            }
        };
        put!(out, "| {name} | {state} |");
        match row.span {
            Some((from, to)) if outline.now > 0.0 => {
                let part =
                    |time: f64| (time / outline.now * BAR as f64).clamp(0.0, BAR as f64) as usize;
                let from_part = part(from).min(BAR - 1);
                let to_part = part(to).clamp(from_part + 1, BAR);
                let bar = "·".repeat(from_part)
                    + &"█".repeat(to_part - from_part)
                    + &"·".repeat(BAR - to_part);
                put!(out, " {} | `{bar}` |\n", duration(to - from));
            }
            _ => out.extend_from_slice(b" | |\n"),
        }
    }
    out.extend_from_slice(b"\n</details>\n");
}
