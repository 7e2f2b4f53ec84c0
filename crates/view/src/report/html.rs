//! `html`: one file for a browser, an issue or a printer. It runs nothing and loads nothing.

use super::excerpt::{Excerpt, grouped, left_out};
use super::html_prose::prose;
use super::html_writer::HtmlWriter;
use super::outline::{Outline, OutlineRow, RowKind, date};
use super::{ReportForm, is_markdown, story};
use crate::CARDS;
use crate::calls::{CallCard, duration};
use crate::escape::{BRIEF_NOTE, one_line};
use crate::story::{Tone, Voice};
use crate::surface::FormRow;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use event::View;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

pub(crate) const ROW: FormRow = FormRow {
    name: "html",
    help: "A report as one HTML file, which runs nothing and loads nothing",
    view: |surface| Box::new(html(surface.no_time)),
};

/// A report as one HTML file.
pub fn html(no_time: bool) -> impl View {
    story(Html { no_time }, no_time)
}

/// The bound of arguments and of a result in a report, in bytes.
pub(super) const MOST: usize = 64 * 1024;

/// What a report adds to the style of cards.
const REPORT: &str = include_str!("report.css");

/// The style of a report, and the policy that allows this style and nothing else.
static STYLE: LazyLock<(String, String)> = LazyLock::new(|| {
    let style = [CARDS, REPORT].map(without_comments).concat();
    let hash = STANDARD.encode(Sha256::digest(&style));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    );
    (style, policy)
});

/// A style without its comments, which are for who writes it.
fn without_comments(style: &str) -> String {
    let mut out = String::with_capacity(style.len());
    for (n, part) in style.split("/*").enumerate() {
        let (_, kept) = part
            .split_once("*/")
            .filter(|_| n > 0)
            .unwrap_or(("", part));
        out.push_str(kept.trim_start());
    }
    out.trim_end().to_owned()
}

/// The `content-security-policy` of a report: its own style, and nothing else.
pub fn html_policy() -> &'static str {
    &STYLE.1
}

#[derive(Debug)]
struct Html {
    no_time: bool,
}

/// The name of a voice in `cards.css`.
fn voice_name(voice: Voice) -> &'static str {
    match voice {
        Voice::User => "user",
        Voice::Thinking => "thinking",
        Voice::Answer => "answer",
        Voice::Refusal => "refusal",
        Voice::Output => "output",
    }
}

impl ReportForm for Html {
    fn head(&mut self, out: &mut Vec<u8>, outline: &Outline) {
        let mut out = HtmlWriter(out);
        out.markup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        out.markup("<meta http-equiv=\"content-security-policy\" content=\"")
            .text(html_policy())
            .markup("\">\n");
        out.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        out.markup("<meta name=\"referrer\" content=\"no-referrer\">\n");
        out.element("<title>", outline.title(), "</title>\n");
        out.markup("<style>");
        // A style has no escapes; this one is ours.
        out.0.extend_from_slice(STYLE.0.as_bytes());
        out.markup("</style>\n</head>\n<body>\n");
        out.element(
            "<header class=\"story\"><h1>",
            outline.title(),
            "</h1></header>\n",
        );
        out.markup("<main class=\"story\">");
    }

    fn turn(&mut self, out: &mut Vec<u8>, outline: &Outline) {
        let mut out = HtmlWriter(out);
        let n = outline.turns;
        out.markup("\n<h2 class=\"turn\" id=\"t").number(n);
        out.markup("\"><a href=\"#t").number(n).markup("\">turn ");
        out.number(n).markup("</a>");
        if outline.models.len() > 1
            && let Some(model) = &outline.model
        {
            out.element(" <span class=\"figure\">", model, "</span>");
        }
        out.markup("</h2>");
    }

    fn open_text(&mut self, out: &mut Vec<u8>, voice: Voice, outline: &Outline) {
        let mut out = HtmlWriter(out);
        out.markup("\n<div class=\"text\" data-voice=\"")
            .markup(voice_name(voice));
        if voice == Voice::User {
            out.markup("\" id=\"q").number(outline.questions);
        }
        out.markup("\">");
        if is_markdown(voice) {
            out.markup("<div class=\"prose\">");
        }
    }

    fn plain(&mut self, out: &mut Vec<u8>, text: &str) {
        HtmlWriter(out).text(text);
    }

    fn passage(&mut self, out: &mut Vec<u8>, passage: &str) {
        prose(out, passage);
    }

    fn close_text(&mut self, out: &mut Vec<u8>, voice: Voice) {
        let end = if is_markdown(voice) {
            "</div></div>"
        } else {
            "</div>"
        };
        HtmlWriter(out).markup(end);
    }

    fn note(&mut self, out: &mut Vec<u8>, tone: Tone, text: &str) {
        let (tone, sign) = match tone {
            Tone::Heading => ("heading", ""),
            // They are in the overview.
            Tone::Figures => return,
            Tone::Quiet => ("quiet", ""),
            Tone::Warning => ("warning", "warning: "),
            Tone::Error => ("error", "error: "),
        };
        let mut out = HtmlWriter(out);
        out.markup("\n<p class=\"note\" data-tone=\"")
            .markup(tone)
            .markup("\">")
            .markup(sign);
        out.text(&one_line(text, BRIEF_NOTE)).markup("</p>");
    }

    fn card(&mut self, out: &mut Vec<u8>, call: &CallCard, n: usize) {
        let mut out = HtmlWriter(out);
        let state = call.state_name();
        let word = call.word().2;
        let word = if word.is_empty() { "done" } else { &word };
        out.markup("\n<details class=\"card\" data-state=\"")
            .markup(state);
        out.markup("\" id=\"c").number(n);
        // What went well is one line; what a reader looks for is open.
        out.markup(match state {
            "done" | "called" | "arriving" | "retracted" => "\">",
            _ => "\" open>",
        });
        out.element("<summary><b class=\"state\">", &one_line(word, 60), "</b> ");
        out.element(
            "<code class=\"name\">",
            &one_line(&call.name, 200),
            "</code>",
        );
        out.element(" <span class=\"brief\">", &call.brief, "</span>");
        let figures: Vec<_> = call.figures(self.no_time).collect();
        if !figures.is_empty() {
            out.element(" <span class=\"figure\">", &figures.join(", "), "</span>");
        }
        out.markup("</summary><dl>");
        part(
            &mut out,
            "arguments",
            &Excerpt::of_json(&call.arguments, MOST),
        );
        for (label, text) in &call.facts {
            part(&mut out, label, &Excerpt::of(text, MOST));
        }
        match call.result() {
            Some(result) => part(&mut out, "result", &Excerpt::of_json(&result.output, MOST)),
            None => part(&mut out, "progress", &Excerpt::of(call.progress(), MOST)),
        }
        if !call.id.is_empty() {
            out.element(
                "<dt>id</dt><dd><code>",
                &one_line(&call.id, 200),
                "</code></dd>",
            );
        }
        out.markup("</dl></details>");
    }

    fn end(&mut self, out: &mut Vec<u8>, outline: &Outline) {
        let mut out = HtmlWriter(out);
        out.markup("\n</main>\n<aside class=\"story overview\" aria-label=\"Overview\">");
        out.markup("<dl class=\"figures\">");
        for (label, text) in figures(outline, self.no_time) {
            out.element("<div><dt>", label, "</dt>");
            out.element("<dd>", &text, "</dd></div>");
        }
        out.markup("</dl>");
        if outline.is_worth_showing() {
            timeline(&mut out, outline);
        }
        out.markup("</aside>\n</body>\n</html>\n");
    }
}

/// A part of a card, unless it is empty.
fn part(out: &mut HtmlWriter<'_>, label: &str, excerpt: &Excerpt) {
    if excerpt.text.is_empty() {
        return;
    }
    out.element("<dt>", label, "</dt><dd>").pre(&excerpt.text);
    if excerpt.left_out > 0 {
        out.element("<p class=\"cut\">", &left_out(excerpt.left_out), "</p>");
    }
    out.markup("</dd>");
}

/// The totals of a run: labels and texts.
pub(super) fn figures(outline: &Outline, no_time: bool) -> Vec<(&'static str, String)> {
    let mut figures = Vec::new();
    if !outline.models.is_empty() {
        figures.push(("model", outline.models.join(", ")));
    }
    if let Some((from, to)) = outline.dates {
        let [from, to] = [from, to].map(date);
        let text = match to.strip_prefix(&from[..10]) {
            _ if from == to => format!("{from} UTC"),
            Some(time) => format!("{from} to{time} UTC"),
            None => format!("{from} to {to} UTC"),
        };
        figures.push(("date", text));
    }
    if outline.now > 0.0 && !no_time {
        figures.push(("time", duration(outline.now)));
    }
    figures.push(("turns", grouped(outline.turns as u64)));
    let calls = grouped(outline.calls as u64);
    figures.push(match outline.failed {
        0 => ("calls", calls),
        failed => (
            "calls",
            format!("{calls}, {} failed", grouped(failed as u64)),
        ),
    });
    if (outline.read, outline.written) != (0, 0) {
        let [read, written] = [outline.read, outline.written].map(grouped);
        figures.push(("tokens", format!("{read} read, {written} written")));
    }
    figures
}

/// The table of the questions, turns and calls with their times.
fn timeline(out: &mut HtmlWriter<'_>, outline: &Outline) {
    let has_times = outline.rows().any(|row| row.span.is_some());
    out.markup("<details class=\"contents\" open><summary>Turns and calls</summary>");
    out.markup("<table class=\"timeline\">");
    let over_all = if has_times {
        out.markup("<colgroup><col class=\"what\"><col><col class=\"took\"></colgroup>");
        "<td colspan=\"3\">"
    } else {
        "<td colspan=\"2\">"
    };
    for (at, row) in outline.rows().enumerate() {
        if at == outline.before_gap() && outline.left_out() > 0 {
            let text = format!("… {} more rows …", grouped(outline.left_out() as u64));
            out.markup("<tr>").element(over_all, &text, "</td></tr>");
        }
        timeline_row(out, row, over_all, has_times.then_some(outline.now));
    }
    out.markup("</table></details>");
}

/// A row of the table; with the time of the whole run it has a bar.
fn timeline_row(
    out: &mut HtmlWriter<'_>,
    row: &OutlineRow,
    over_all: &'static str,
    time: Option<f64>,
) {
    let (state, anchor, word) = match &row.kind {
        RowKind::Question(_) => ("question", "q", ""),
        RowKind::Turn => ("turn", "t", ""),
        RowKind::Call(_, state, word) => (*state, "c", &**word),
    };
    out.markup("<tr data-state=\"").markup(state).markup("\">");
    out.markup(match state {
        "question" => over_all,
        _ => "<th scope=\"row\">",
    });
    out.markup("<a href=\"#").markup(anchor);
    out.number(row.n).markup("\">");
    match &row.kind {
        RowKind::Question(text) => {
            out.text(text).markup("</a></td></tr>");
            return;
        }
        RowKind::Turn => out.markup("turn ").number(row.n),
        RowKind::Call(name, ..) => out.text(name),
    };
    out.markup("</a></th>");
    let took = match (row.span, time) {
        (Some((from, to)), Some(time)) => {
            out.markup("<td>");
            bar(out, from / time, to / time);
            out.markup("</td>");
            duration(to - from)
        }
        _ => String::new(),
    };
    // Without a bar there is room for words.
    out.markup(match (took.is_empty(), time) {
        (true, Some(_)) => "<td colspan=\"2\" class=\"figure\">",
        _ => "<td class=\"figure\">",
    });
    out.text(&match (word, &*took) {
        ("" | "done", took) if !took.is_empty() => took.to_owned(),
        (word, "") => word.to_owned(),
        (word, took) => format!("{word}, {took}"),
    });
    out.markup("</td></tr>");
}

/// A bar between two parts of the whole, as SVG: a page with this policy has no `style` attribute.
fn bar(out: &mut HtmlWriter<'_>, from: f64, to: f64) {
    let thousandths = |part: f64| (part.clamp(0.0, 1.0) * 1000.0).round() as usize;
    // A bar of no length could not be seen.
    let (from, to) = (thousandths(from).min(996), thousandths(to));
    let width = to.saturating_sub(from).max(4);
    out.markup("<svg viewBox=\"0 0 1000 1\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    out.markup("<rect x=\"").number(from);
    out.markup("\" width=\"")
        .number(width)
        .markup("\" height=\"1\"/></svg>");
}
