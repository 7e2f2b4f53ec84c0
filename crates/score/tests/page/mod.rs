//! Made-up streams, and what must hold of every page.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeSet;
use toolpipe_score::{Answer, CallCounts, Measured, Outcome, Place};

/// Numbers that look random and are the same in each run.
fn mixed(seed: u64) -> u64 {
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

/// Stream `n` with the outcomes of so many checkers, each of which looks at more text than the one
/// before.
pub(crate) fn measured(n: u64, checkers: usize) -> Measured {
    let random = |salt: u64| mixed(n * 64 + salt);
    let has_tool_call = random(1) % 9 < 5;
    let end = Place {
        events: 20 + random(2) % 90,
        chars: random(3) % (1 << (random(4) % 13)),
        bytes: 0,
        ms: None,
    };
    let end = Place {
        bytes: end.chars * 11 / 10,
        ms: Some(400.0 + end.events as f64 * 21.5),
        ..end
    };
    let text_before = if random(5) % 8 == 0 { end.chars } else { 0 };
    let first_call = Place {
        events: 2 + text_before / 12,
        chars: text_before,
        bytes: text_before,
        ms: Some(300.0 + text_before as f64),
    };
    let outcomes = (0..checkers).map(|checker| {
        let limit = [0, 200, 1_000, 3_000, 1 << 40, 600, 1][checker % 7];
        let is_found = has_tool_call && text_before <= limit;
        let chars = if is_found {
            text_before
        } else {
            end.chars.min(limit)
        };
        let is_undecided = random(40) % 97 == 0 && checker == 1;
        let answer = match (is_found, random(50 + checker as u64) % 211) {
            _ if is_undecided => Answer::Undecided,
            (true, _) => Answer::Yes,
            (false, 0) if checker % 7 == 6 => Answer::Yes,
            (false, _) => Answer::No,
        };
        let at = Place {
            events: 1 + chars / 12,
            chars,
            bytes: chars,
            ms: Some(250.0 + chars as f64 * 3.0),
        };
        let reason = if is_found {
            "a call begins".to_owned()
        } else {
            format!("{chars} characters without a call")
        };
        Outcome {
            answer,
            last: answer,
            at: Some(at),
            reason,
            depends_on_split: random(70) % 300 == 0,
        }
    });
    let outcomes = outcomes.collect();
    let expected = if has_tool_call { 1 + random(6) % 3 } else { 0 };
    Measured {
        id: format!("stream-{n:04}").into(),
        corpus: ["fixtures/index.ndjson", "recordings"][(random(7) % 2) as usize].into(),
        source: format!("source {}", random(8) % 60).into(),
        api: ["openai-chat", "anthropic", "gemini", "openai-responses"][(random(9) % 4) as usize]
            .into(),
        provider: ["", "openrouter", "groq"][(random(10) % 3) as usize].into(),
        model: format!("model-{}", random(11) % 40).into(),
        tags: (0..random(12) % 3)
            .map(|tag| format!("tag-{}", random(13 + tag) % 9).into())
            .collect(),
        has_tool_call,
        end,
        first_call: has_tool_call.then_some(first_call),
        calls: CallCounts {
            expected,
            read: expected,
            exact: expected,
            is_in_order: true,
            repaired: 0,
            incomplete: 0,
        },
        saved_ms: has_tool_call.then_some(120.0),
        outcomes,
    }
}

/// Elements of a page. None of them loads anything or runs anything.
const ELEMENTS: [&str; 42] = [
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "section",
    "h1",
    "h2",
    "h3",
    "p",
    "div",
    "span",
    "bdi",
    "strong",
    "code",
    "br",
    "wbr",
    "dl",
    "dt",
    "dd",
    "ul",
    "li",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "figure",
    "figcaption",
    "details",
    "summary",
    "svg",
    "desc",
    "text",
    "polyline",
    "line",
    "rect",
    "circle",
];
/// Attributes of a page. None of them takes an address or a script.
const ATTRIBUTES: [&str; 27] = [
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "class",
    "scope",
    "style",
    "open",
    "id",
    "role",
    "aria-labelledby",
    "viewBox",
    "width",
    "height",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "cx",
    "cy",
    "r",
    "points",
    "text-anchor",
    "title",
];
const EMPTY: [&str; 3] = ["meta", "br", "wbr"];

/// A page as a browser reads it.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The text of each element that has any, in order.
    pub texts: Vec<String>,
    /// The names of all elements, in order.
    pub elements: Vec<String>,
}

/// Reads a page, and panics where it breaks a rule that holds of every page: each element is closed
/// and is known, and so is each attribute; nothing loads or runs; ids are unique and what refers to
/// them finds them; each header of a table has a direction; each plot has a title and a
/// description; each number of a plot is finite; each hidden character is written out.
pub(crate) fn read(html: &str) -> Page {
    let body = html
        .strip_prefix("<!DOCTYPE html>")
        .expect("a page begins with its type");
    if let Some(hidden) = body
        .chars()
        .find(|&c| c != '\n' && (event::is_hidden(c) || c == '\t'))
    {
        panic!("{hidden:?} is in the page");
    }
    let style = body
        .split_once("<style>")
        .expect("a style")
        .1
        .split_once("</style>")
        .expect("its end")
        .0;
    assert!(
        !["url(", "@import", "http", "expression"]
            .iter()
            .any(|load| style.contains(load)),
        "the style loads something"
    );
    let mut page = Page::default();
    let mut reader = Reader::from_str(body);
    reader.config_mut().check_end_names = false;
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut references = BTreeSet::new();
    loop {
        match reader.read_event().expect("the page is markup") {
            Event::Start(start) => {
                let name = element(&start, &open, &mut ids, &mut references);
                page.elements.push(name.clone());
                if !EMPTY.contains(&name.as_str()) {
                    open.push(name);
                }
            }
            Event::Empty(start) => {
                page.elements
                    .push(element(&start, &open, &mut ids, &mut references))
            }
            Event::End(end) => {
                let name = end.name().as_ref().to_owned();
                assert_eq!(open.pop(), Some(name), "an element is closed out of order");
            }
            Event::Text(text) => {
                let text = text.to_string();
                assert!(!text.contains('<'), "{text}");
                add(&mut page.texts, &open, &text);
            }
            Event::GeneralRef(entity) => {
                let entity = entity.to_string();
                let known = [
                    ("lt", "<"),
                    ("gt", ">"),
                    ("amp", "&"),
                    ("quot", "\""),
                    ("apos", "'"),
                ];
                let text = known
                    .iter()
                    .find(|(name, _)| *name == entity)
                    .expect("a known entity")
                    .1;
                add(&mut page.texts, &open, text);
            }
            Event::Eof => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(open.is_empty(), "{open:?} is not closed");
    assert!(
        references.is_subset(&ids),
        "{references:?} refer to what is not in {ids:?}"
    );
    let count = |name: &str| {
        page.elements
            .iter()
            .filter(|element| *element == name)
            .count()
    };
    assert_eq!(count("svg"), count("desc"));
    assert_eq!(
        count("svg") + 1,
        count("title"),
        "one for each plot and one for the page"
    );
    page
}

/// Appends text to that of the element that is open.
fn add(texts: &mut Vec<String>, open: &[String], text: &str) {
    if open.last().is_none_or(|name| name == "style") {
        return;
    }
    texts.push(text.to_owned());
}

/// Checks the beginning of an element, and returns its name.
fn element(
    start: &BytesStart<'_>,
    open: &[String],
    ids: &mut BTreeSet<String>,
    references: &mut BTreeSet<String>,
) -> String {
    let name = start.name().as_ref().to_owned();
    assert!(ELEMENTS.contains(&name.as_str()), "the element {name}");
    let is_plot = name == "svg" || open.iter().any(|name| name == "svg");
    let mut has = BTreeSet::new();
    for attribute in start.html_attributes() {
        let attribute = attribute.expect("an attribute");
        let key = attribute.key.as_ref().to_owned();
        let value = attribute.value.to_string();
        assert!(
            ATTRIBUTES.contains(&key.as_str()),
            "{name} has the attribute {key}"
        );
        assert!(
            !value.contains(['<', '"']) && !value.contains("url("),
            "{key}={value}"
        );
        if is_plot
            && [
                "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "points", "width", "height",
                "viewBox", "opacity",
            ]
            .contains(&key.as_str())
        {
            for number in value.split([' ', ',']).filter(|number| !number.is_empty()) {
                assert!(
                    number.parse::<f64>().expect("a number").is_finite(),
                    "{name} {key}={value}"
                );
            }
        }
        if key == "id" {
            assert!(
                ids.insert(value.clone()),
                "two elements have the id {value}"
            );
        }
        if key == "aria-labelledby" {
            references.extend(value.split(' ').map(str::to_owned));
        }
        has.insert(key);
    }
    assert!(
        name != "th" || has.contains("scope"),
        "a header without a direction"
    );
    assert!(
        name != "svg" || (has.contains("role") && has.contains("aria-labelledby")),
        "a plot without a role or a name"
    );
    name
}
