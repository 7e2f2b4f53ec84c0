//! `html`: a single file for a browser, an issue or a printer. It has no scripts and loads nothing.

use super::excerpt::{grouped, left_out};
use super::html_prose::prose;
use super::html_writer::HtmlWriter;
use super::outline::{Outline, OutlineRow, RowKind};
use super::{ReportCard, ReportForm, is_markdown, story};
use crate::CARDS;
use crate::card::duration;
use crate::escape::{BRIEF_NOTE, one_line};
use crate::story::{Tokens, Tone, Voice};
use crate::surface::FormRow;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use event::View;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

pub(crate) const ROW: FormRow = FormRow {
    name: "html",
    help: "A report as one HTML file without scripts or external resources",
    view: |surface| Box::new(html(surface.no_time)),
};

/// Creates a view that writes a report as a single HTML file.
pub fn html(no_time: bool) -> impl View {
    story(Html, no_time)
}

/// The style sheet of reports, in addition to that of cards.
const REPORT: &str = include_str!("report.css");

/// The style sheet of a report, and the content security policy that allows only this style sheet.
static STYLE: LazyLock<(String, String)> = LazyLock::new(|| {
    let style = [CARDS, REPORT].map(without_comments).concat();
    let hash = STANDARD.encode(Sha256::digest(&style));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    );
    (style, policy)
});

/// Removes the comments from a style sheet, which are for developers only.
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

/// Returns the `content-security-policy` of a report: only its own style sheet is allowed.
pub fn html_policy() -> &'static str {
    &STYLE.1
}

#[derive(Debug)]
struct Html;

/// Returns the class name of a voice in `cards.css`.
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
    const WRITES_MARKDOWN: bool = true;
    const MOST: usize = 64 * 1024;

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
        // Style sheets cannot be escaped, and need not be: this one is a constant.
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

    fn card(&mut self, out: &mut Vec<u8>, card: &ReportCard) {
        let mut out = HtmlWriter(out);
        out.markup("\n<details class=\"card\" data-state=\"")
            .markup(card.badge.name);
        out.markup("\" id=\"c").number(card.n);
        out.markup(match card.badge.is_notable() {
            true => "\" open>",
            false => "\">",
        });
        out.element("<summary><b class=\"state\">", &card.word, "</b> ");
        out.element("<code class=\"name\">", &card.name, "</code>");
        out.element(" <span class=\"brief\">", &card.brief, "</span>");
        if !card.figures.is_empty() {
            let figures = card.figures.join(", ");
            out.element(" <span class=\"figure\">", &figures, "</span>");
        }
        out.markup("</summary><dl>");
        for (label, excerpt) in &card.parts {
            out.element("<dt>", label, "</dt><dd>").pre(&excerpt.text);
            if excerpt.left_out > 0 {
                out.element("<p class=\"cut\">", &left_out(excerpt.left_out), "</p>");
            }
            out.markup("</dd>");
        }
        if !card.id.is_empty() {
            out.element("<dt>id</dt><dd><code>", &card.id, "</code></dd>");
        }
        out.markup("</dl></details>");
    }

    fn end(&mut self, out: &mut Vec<u8>, outline: &Outline, tokens: Tokens) {
        let mut out = HtmlWriter(out);
        out.markup("\n</main>\n<aside class=\"story overview\" aria-label=\"Overview\">");
        out.markup("<dl class=\"figures\">");
        for (label, text) in outline.figures(tokens) {
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

/// Writes the table of questions, turns and calls with their times.
fn timeline(out: &mut HtmlWriter<'_>, outline: &Outline) {
    let has_times = outline.has_times();
    out.markup("<details class=\"contents\" open><summary>Turns and calls</summary>");
    out.markup("<table class=\"timeline\">");
    let over_all = if has_times {
        out.markup("<colgroup><col class=\"what\"><col><col class=\"took\"></colgroup>");
        "<td colspan=\"3\">"
    } else {
        "<td colspan=\"2\">"
    };
    for (at, row) in outline.rows().enumerate() {
        let left_out = outline.left_out_before(at);
        if left_out > 0 {
            let text = format!("… {} more rows …", grouped(left_out as u64));
            out.markup("<tr>").element(over_all, &text, "</td></tr>");
        }
        timeline_row(out, row, over_all, has_times.then_some(outline.now));
    }
    out.markup("</table></details>");
}

/// Writes a row of the table, with a bar if the time of the whole run is known.
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
    // Without a bar the cell has room for words.
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

/// Draws a bar from `from` to `to`, fractions of the whole, as SVG: the content security policy
/// forbids `style` attributes.
fn bar(out: &mut HtmlWriter<'_>, from: f64, to: f64) {
    let thousandths = |part: f64| (part.clamp(0.0, 1.0) * 1000.0).round() as usize;
    // A bar of zero length would be invisible.
    let (from, to) = (thousandths(from).min(996), thousandths(to));
    let width = to.saturating_sub(from).max(4);
    out.markup("<svg viewBox=\"0 0 1000 1\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    out.markup("<rect x=\"").number(from);
    out.markup("\" width=\"")
        .number(width)
        .markup("\" height=\"1\"/></svg>");
}
