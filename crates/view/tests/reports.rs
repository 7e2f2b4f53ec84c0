//! The laws of reports: for any log, the report is a whole document, shows the texts of the log, and
//! has only our elements, attributes and addresses.
//!
//! HTML is read by a tokenizer that follows the WHATWG specification. `tests/clients/reports.mjs` asks
//! a validator and a browser, too.

#![expect(clippy::unwrap_used, reason = "a test")]

use crate::events::any_event;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use event::{Scanner, View};
use html5gum::{DefaultEmitter, Token, Tokenizer};
use proptest::prelude::*;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use sha2::{Digest, Sha256};
use std::fs;
use testkit::short;
use toolpipe_view::{self as view, is_hidden};

/// The output of a view for `log`.
fn report(mut view: impl View, log: &[String]) -> String {
    let mut scanner = Scanner::default();
    let mut out = Vec::new();
    for line in log {
        if let Ok(event) = scanner.read(line) {
            view.push(&event, &mut out);
        }
    }
    view.finish(&mut out);
    String::from_utf8(out).unwrap()
}

/// The elements of a report. None of them loads or runs anything.
const ELEMENTS: [&str; 51] = [
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "main",
    "aside",
    "h1",
    "h2",
    "h3",
    "p",
    "div",
    "span",
    "a",
    "b",
    "br",
    "code",
    "pre",
    "em",
    "strong",
    "del",
    "ul",
    "ol",
    "li",
    "blockquote",
    "hr",
    "details",
    "summary",
    "dl",
    "dt",
    "dd",
    "table",
    "colgroup",
    "col",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "svg",
    "rect",
    "section",
    "nav",
    "figure",
    "figcaption",
    "caption",
    "small",
    "i",
    "wbr",
];
/// Elements without an end.
const VOID: [&str; 5] = ["meta", "br", "hr", "col", "rect"];
/// The attributes. Only `href` takes an address, which must be a place in the report.
const ATTRIBUTES: [&str; 22] = [
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "class",
    "id",
    "href",
    "data-voice",
    "data-tone",
    "data-state",
    "data-level",
    "open",
    "start",
    "scope",
    "colspan",
    "aria-label",
    "aria-hidden",
    "viewbox",
    "preserveaspectratio",
    "x",
    "width",
];

/// A page as a browser reads it.
#[derive(Debug, Default)]
struct HtmlPage {
    /// All text but that of `<style>` and `<title>`, and all attributes' values.
    text: String,
    title: String,
    style: String,
    policy: String,
    ids: Vec<String>,
    links: Vec<String>,
    elements: Vec<String>,
}

/// Reads a page, and checks that its elements are nested and are ours.
fn read(html: &str) -> HtmlPage {
    let mut page = HtmlPage::default();
    let mut open: Vec<String> = Vec::new();
    assert!(html.starts_with("<!DOCTYPE html>"));
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(html, emitter) {
        match token.unwrap() {
            Token::StartTag(tag) => {
                let name = String::from_utf8(tag.name.0).unwrap();
                assert!(ELEMENTS.contains(&&*name), "<{name}> in {}", short(html));
                for (key, value) in &tag.attributes {
                    let key = String::from_utf8(key.0.clone()).unwrap();
                    let value = String::from_utf8(value.value.0.clone()).unwrap();
                    let is_ours = ATTRIBUTES.contains(&&*key) || key == "height";
                    assert!(is_ours, "{key} of <{name}> in {}", short(html));
                    match (&*name, &*key) {
                        ("a", "href") => page.links.push(value),
                        (_, "href") => panic!("href of <{name}>"),
                        ("meta", "content") if value.contains("default-src") => page.policy = value,
                        (_, "id") => page.ids.push(value),
                        _ => {}
                    }
                }
                page.elements.push(name.clone());
                if !VOID.contains(&&*name) {
                    open.push(name);
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8(tag.name.0).unwrap();
                assert_eq!(open.pop().as_deref(), Some(&*name), "{}", short(html));
            }
            Token::String(text) => {
                let text = String::from_utf8(text.value.0).unwrap();
                match open.last().map(String::as_str) {
                    Some("style") => page.style += &text,
                    Some("title") => page.title += &text,
                    _ => page.text += &text,
                }
            }
            Token::Comment(comment) => panic!("a comment: {comment:?}"),
            Token::Doctype(_) => {}
            Token::Error(error) => panic!("{:?} in {}", error.value, short(html)),
        }
    }
    assert!(
        open.is_empty(),
        "{open:?} are open at the end of {}",
        short(html)
    );
    page
}

/// Checks the laws of every page.
fn check(html: &str) -> HtmlPage {
    let page = read(html);
    for one in ["html", "head", "body", "main", "title", "style", "h1"] {
        assert_eq!(
            page.elements.iter().filter(|name| *name == one).count(),
            1,
            "<{one}>"
        );
    }
    let hash = STANDARD.encode(Sha256::digest(&page.style));
    assert_eq!(
        page.policy,
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
        )
    );
    assert_eq!(page.policy, view::html_policy());
    for text in [&page.text, &page.title] {
        assert!(!text.contains(is_hidden), "{text:?}");
    }
    let mut ids = page.ids.clone();
    ids.sort();
    ids.dedup();
    assert_eq!(
        ids.len(),
        page.ids.len(),
        "an id is given twice: {:?}",
        page.ids
    );
    for link in &page.links {
        let id = link
            .strip_prefix('#')
            .unwrap_or_else(|| panic!("a link to {link}"));
        assert!(
            page.ids.iter().any(|known| known == id),
            "nothing has the id of {link}"
        );
    }
    page
}

/// The HTML elements that a report in Markdown has.
const MARKS: [&str; 12] = [
    "<details>",
    "<details open>",
    "</details>",
    "<summary>",
    "</summary>",
    "<b>",
    "</b>",
    "<code>",
    "</code>",
    "<!-- -->",
    "<br>",
    "</br>",
];

/// Reads a report in Markdown as GitHub does; returns the text that it shows.
fn check_markdown(report: &str) -> String {
    assert!(!report.contains(is_hidden), "{report:?}");
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_GFM
        | Options::ENABLE_MATH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let (mut text, mut all, mut depth, mut in_code) = (String::new(), String::new(), 0, false);
    // A run of text ends where an element or code is; in code nothing is linked.
    let flush = |text: &mut String, all: &mut String| {
        is_never_linked(text);
        all.push_str(text);
        text.clear();
    };
    for event in pulldown_cmark::TextMergeStream::new(Parser::new_ext(report, options)) {
        match event {
            Event::Text(t) if !in_code => text.push_str(&t),
            Event::Html(html) | Event::InlineHtml(html) => {
                let mut rest = &*html;
                while let Some(at) = rest.find('<') {
                    let mark = MARKS.iter().find(|mark| rest[at..].starts_with(**mark));
                    let mark = mark.unwrap_or_else(|| panic!("{html:?} in {}", short(report)));
                    text.push_str(&decoded(&rest[..at]));
                    flush(&mut text, &mut all);
                    match *mark {
                        "<details>" | "<details open>" => depth += 1,
                        "</details>" => depth -= 1,
                        _ => {}
                    }
                    rest = &rest[at + mark.len()..];
                }
                text.push_str(&decoded(rest));
            }
            other => {
                flush(&mut text, &mut all);
                match other {
                    Event::Text(t) | Event::Code(t) => all.push_str(&t),
                    Event::SoftBreak | Event::HardBreak => all.push('\n'),
                    Event::Start(Tag::CodeBlock(kind)) => {
                        in_code = true;
                        if let CodeBlockKind::Fenced(language) = kind {
                            all.push_str(&language);
                        }
                    }
                    Event::End(TagEnd::CodeBlock) => in_code = false,
                    Event::Start(Tag::Link { .. } | Tag::Image { .. })
                    | Event::InlineMath(_)
                    | Event::DisplayMath(_)
                    | Event::FootnoteReference(_)
                    | Event::TaskListMarker(_) => panic!("{other:?} in {}", short(report)),
                    _ => {}
                }
            }
        }
    }
    flush(&mut text, &mut all);
    assert_eq!(depth, 0, "a card is open at the end of {}", short(report));
    all
}

/// Nothing in a run of text outside of code is linked by GitHub.
fn is_never_linked(text: &str) {
    let chars: Vec<char> = text.chars().collect();
    for pair in chars.windows(2) {
        let is_linked = match pair[0] {
            '@' => pair[1].is_alphanumeric(),
            '#' => pair[1].is_ascii_digit(),
            _ => false,
        };
        assert!(!is_linked, "{pair:?} in {text:?}");
    }
    let lower = text.to_ascii_lowercase();
    for address in ["http://", "https://", "ftp://", "www."] {
        assert!(!lower.contains(address), "{address} in {text:?}");
    }
}

/// Text of HTML without its escapes.
fn decoded(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#36;", "$"),
        ("&amp;", "&"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The events of a file.
fn lines(path: &std::path::Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    text.lines().map(str::to_owned).collect()
}

/// All logs of the project.
fn logs() -> Vec<std::path::PathBuf> {
    let root = testkit::root().join("fixtures");
    let mut logs = Vec::new();
    for folder in ["logs", "streams", "views", "cases"] {
        let mut folders = vec![root.join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "ndjson") {
                    logs.push(path);
                }
            }
        }
    }
    assert!(logs.len() > 500, "only {} logs", logs.len());
    logs
}

#[test]
fn the_report_of_every_fixture_holds_the_laws() {
    for path in logs() {
        let log = lines(&path);
        check(&report(view::html(false), &log));
        check_markdown(&report(view::markdown(false), &log));
    }
}

const STORY: &str = r##"
{"type":"message","message":{"role":"user","content":"<b>&amp; \u001b[2J\u202e @ann #1\n\n  # two"}}
{"type":"stream_start","v":1,"t":0,"model":"<m>"}
{"type":"content_delta","t":10,"text":"See <script>alert(1)</script> [x](javascript:alert(1)) ![i](http://p/q.png) **b** `<c>` @ann"}
{"type":"tool_call","t":20,"index":0,"tool_id":"a\"b","tool_name":"<f>","arguments":{"<k>":"</pre>\u202e&lt;"},"commit":"balanced","repairs":[{"offset":3,"kind":"trailing_comma","before":"<,","after":""}]}
{"type":"tool_use","t":20,"tool_id":"a\"b","tool_name":"<f>","status":"running","input_summary":"","timestamp":1795527062223}
{"type":"session_stats","t":30,"prompt_tokens":1200,"completion_tokens":2,"first_event_ms":5}
{"type":"stream_end","t":30,"finish_reason":"tool_calls"}
{"type":"tool_result","tool_id":"a\"b","tool_name":"<f>","status":"error","output":"\n<i>``` @bob</i>\u009b","exit_code":3,"duration_ms":40}
{"type":"error","source":"<s>","code":"c","message":"<img src=x onerror=alert(1)>"}
"##;

#[test]
fn what_a_log_says_is_text() {
    let log: Vec<String> = STORY.trim().lines().map(str::to_owned).collect();
    let page = check(&report(view::html(false), &log));
    for shown in [
        "<b>&amp; \\x1b[2J\\u202e @ann #1\n\n  # two",
        "See <script>alert(1)</script> x (javascript:alert(1)) [image: i] (http://p/q.png) b <c> @ann",
        "{\n  \"<k>\": \"</pre>\\u202e&lt;\"\n}",
        "trailing comma at byte 3: \"<,\" became \"\"",
        "\n<i>``` @bob</i>\\x9b",
        "error: <s>: <img src=x onerror=alert(1)> (c)",
        "exit 3, 40 ms",
        "2026-11-24 13:31 UTC",
        "1,200 in · 2 out",
    ] {
        assert!(page.text.contains(shown), "{shown:?} in {:?}", page.text);
    }
    assert_eq!(page.title, "<b>&amp; \\x1b[2J\\u202e @ann #1");
    // 5 ms until the first event, then the call at 20 ms, which takes 40.
    assert!(page.text.contains("65 ms"), "{}", page.text);
    let text = check_markdown(&report(view::markdown(false), &log));
    for shown in [
        "See <script>alert(1)</script> [x](javascript:alert(1)) ![i](http://p/q.png) **b** `<c>` @ann",
        "trailing comma at byte 3",
        "<i>``` @bob</i>\\x9b",
        "error: <s>: <img src=x onerror=alert(1)> (c)",
    ] {
        assert!(text.contains(shown), "{shown:?} in {text:?}");
    }
    let without = report(view::html(true), &log);
    for time in ["40 ms", "2026", "<rect"] {
        assert!(!without.contains(time), "{time}");
    }
}

#[test]
fn a_result_that_comes_late_has_a_card_of_its_own() {
    let log = r#"
{"type":"tool_call","index":0,"tool_id":"a","tool_name":"f","arguments":{},"commit":"balanced"}
{"type":"stream_end","finish_reason":"tool_calls"}
{"type":"stream_start","v":1}
{"type":"content_delta","text":"So"}
{"type":"tool_result","tool_id":"a","tool_name":"f","status":"success","output":"late"}
{"type":"stream_end","finish_reason":"stop"}
"#;
    let log: Vec<String> = log.trim().lines().map(str::to_owned).collect();
    let html = report(view::html(true), &log);
    assert_eq!(
        html.matches("<details class=\"card\"").count(),
        2,
        "{}",
        short(&html)
    );
    let order = ["called", "So", "late"].map(|word| html.find(&format!(">{word}")).unwrap());
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn a_call_of_another_stream_is_not_forgotten_while_its_turn_is_open() {
    let log = r#"
{"type":"stream_start","stream":"a","v":1}
{"type":"tool_call","stream":"a","index":0,"tool_id":"a","tool_name":"f","arguments":{},"commit":"balanced"}
{"type":"tool_result","stream":"a","tool_id":"a","tool_name":"f","status":"success","output":"of a"}
{"type":"stream_start","stream":"b","v":1}
{"type":"content_delta","stream":"b","text":"of b"}
{"type":"stream_end","stream":"a","finish_reason":"stop"}
"#;
    let log: Vec<String> = log.trim().lines().map(str::to_owned).collect();
    for report in [
        report(view::text(false, true), &log),
        report(view::html(true), &log),
        report(view::markdown(true), &log),
    ] {
        assert!(report.contains("of a"), "{}", short(&report));
    }
}

/// A log of this many turns, with calls, some without a result, results, reasoning and long answers.
fn long_log(turns: usize) -> impl Iterator<Item = String> {
    let block =
        "A line of the answer, with *marks*, and `code`.\n\n- an item\n\n```\ncode\n```\n\n"
            .repeat(8);
    (0..turns).flat_map(move |n| {
        let text = event::quoted(&block);
        [
            format!(r#"{{"type":"message","message":{{"role":"user","content":"Question {n}"}}}}"#),
            r#"{"type":"stream_start","v":1,"t":0,"model":"m"}"#.to_owned(),
            format!(r#"{{"type":"thinking","t":1,"text":{text}}}"#),
            format!(r#"{{"type":"content_delta","t":2,"text":{text}}}"#),
            format!(r#"{{"type":"tool_call","t":3,"index":0,"tool_id":"a{n}","tool_name":"f","arguments":{{"n":{n}}},"commit":"balanced"}}"#),
            format!(r#"{{"type":"tool_call","t":3,"index":1,"tool_id":"b{n}","tool_name":"g","arguments":{{"n":{n}}},"commit":"balanced"}}"#),
            format!(r#"{{"type":"tool_use","t":3,"tool_id":"a{n}","tool_name":"f","status":"running","input_summary":""}}"#),
            r#"{"type":"stream_end","t":4,"finish_reason":"tool_calls"}"#.to_owned(),
            format!(r#"{{"type":"tool_result","tool_id":"a{n}","tool_name":"f","status":"success","output":{text},"duration_ms":3}}"#),
        ]
    })
}

#[test]
fn what_comes_at_the_end_is_bounded() {
    for new in [
        (|| Box::new(view::html(false)) as Box<dyn View>) as fn() -> Box<dyn View>,
        || Box::new(view::markdown(false)),
    ] {
        let end = |turns: usize| {
            let (mut view, mut scanner, mut out) = (new(), Scanner::default(), Vec::new());
            let (mut first, mut most) = (0, 0);
            for (n, line) in long_log(turns).enumerate() {
                out.clear();
                view.push(&scanner.read(&line).unwrap(), &mut out);
                first = if first == 0 && !out.is_empty() {
                    n + 1
                } else {
                    first
                };
                most = most.max(out.len());
            }
            out.clear();
            view.finish(&mut out);
            (first, most, out.len())
        };
        let (short, long) = (end(400), end(1600));
        assert_eq!(
            short.0, long.0,
            "the first bytes come with the first question"
        );
        assert!(short.0 < 4, "{short:?}");
        // Numbers are longer in the longer log.
        assert!(
            long.1 < short.1 + 100 && long.2 < short.2 + 4000,
            "{short:?} {long:?}"
        );
    }
}

/// Markdown, and what looks like it.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,9} ",
        2 => Just("\n\n".to_owned()),
        6 => prop::sample::select(vec![
            "\n", "**", "*", "_", "`", "~~", "``", "\n# ", "\n- ", "\n  - ", "\n1. ", "\n2) ", "\n> ", "\n> - ", "\n```\n", "\n```sh\n",
            "\n   ```\n", "\n~~~\n", "\n| a | b |\n|---|--:|\n", "| c | d |\n", "| e | f | g |\n", "[a](b)", "![a](b)", "[a]: b\n",
            "<b>", "<!-- c -->\n", "<div>\n", "\n---\n", "\n===\n", "\n    ", "\\", "  \n", "天気", "e\u{301}", "\r\n", "\r",
            "<http://a>", "http://a.b", "www.c", ": ", "[1]", "\u{1b}[2J", "&#27;", "\u{202e}", "\u{1}", "\u{3000}", "\u{fdd0}",
            "@ann", "@", "#12", "gh-3", "$x$", "$$", ":smile:", "&amp;", "|", "`@b`", "[ ] ", "[^1]", "```mermaid\n", "</details>",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|p| p.concat())
}

/// `text` in pieces that end at those of `cuts` where a character ends, as deltas.
fn deltas(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let mut at: Vec<_> = cuts
        .iter()
        .map(|cut| cut.index(text.len() + 1))
        .filter(|at| text.is_char_boundary(*at))
        .collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    let pieces = at.windows(2).map(|w| &text[w[0]..w[1]]);
    pieces
        .map(|piece| {
            format!(
                r#"{{"type":"content_delta","text":{}}}"#,
                event::quoted(piece)
            )
        })
        .collect()
}

/// How often each letter occurs. The number of an item may be an attribute.
fn letters(text: &str) -> [usize; 128] {
    let mut counts = [0; 128];
    text.bytes()
        .filter(u8::is_ascii_alphabetic)
        .for_each(|b| counts[usize::from(b)] += 1);
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_log_gives_a_whole_and_safe_report(log in prop::collection::vec(any_event(), 0..14), no_time: bool) {
        check(&report(view::html(no_time), &log));
        check_markdown(&report(view::markdown(no_time), &log));
    }

    #[test]
    fn the_cuts_between_deltas_never_show_and_no_word_is_lost(
        text in markdown(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let (whole, cut) = (deltas(&text, &[]), deltas(&text, &cuts));
        let html = report(view::html(true), &whole);
        prop_assert_eq!(&html, &report(view::html(true), &cut));
        let written = report(view::markdown(true), &whole);
        prop_assert_eq!(&written, &report(view::markdown(true), &cut));
        let text = text.replace("&#27;", "").replace("&amp;", "");
        let seen = [letters(&check(&html).text), letters(&check_markdown(&written))];
        for (n, count) in letters(&text).iter().enumerate() {
            for (seen, form) in seen.iter().zip([&html, &written]) {
                prop_assert!(seen[n] >= *count, "{:?} is missing of {:?}: {}", n as u8 as char, text, form);
            }
        }
    }

    #[test]
    fn texts_are_shown_to_the_letter(question in "[ -~\n\t\u{1b}\u{202e}é天]{1,60}", output in "[ -~\n\u{9b}`]{0,80}") {
        let log = [
            format!(r#"{{"type":"message","message":{{"role":"user","content":{}}}}}"#, event::quoted(&question)),
            format!(r#"{{"type":"tool_result","tool_id":"a","tool_name":"f","status":"success","output":{}}}"#, event::quoted(&output)),
        ];
        let page = check(&report(view::html(true), &log));
        let shown = view::safe(&question).into_owned();
        prop_assert!(page.text.contains(shown.trim_start_matches('\n')), "{:?} in {:?}", question, page.text);
        if event::Raw::parse(&output).is_err() {
            prop_assert!(page.text.contains(&*view::safe(&output)), "{:?} in {:?}", output, page.text);
        }
    }
}
