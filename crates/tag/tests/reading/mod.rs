//! What a parser finds in a text, and texts that take it to deep states.

use json::ToolList;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use serde_json::json;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::LazyLock;
use testkit::Random;
use toolpipe_tag::{CallPiece, Dialect, Look, Outlet, Parser, PromptCall};

/// One thing that a parser said; pieces that follow each other are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Content(String),
    Reasoning(String),
    Name(i64, String),
    Id(i64, String),
    Arguments(i64, String),
    Done(i64),
    Retract(i64, &'static str),
    Warning(&'static str, String, String),
}

/// What a parser found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// In order.
    pub items: Vec<Item>,
    /// All text in the order in which it was emitted, with that of markers and calls.
    pub passed: String,
    /// The part of it that the parser drops.
    pub left_out: String,
    /// What was dropped although it frames neither a call nor reasoning nor a message, and no
    /// warning names it.
    pub lost: Vec<String>,
    /// How many calls were announced when text was left out the last time.
    framed: usize,
}

impl Found {
    fn add(&mut self, item: Item) {
        match (self.items.last_mut(), &item) {
            (Some(Item::Content(last)), Item::Content(text)) => last.push_str(text),
            (Some(Item::Reasoning(last)), Item::Reasoning(text)) => last.push_str(text),
            (Some(Item::Arguments(index, last)), Item::Arguments(of, text)) if index == of => {
                last.push_str(text)
            }
            _ => self.items.push(item),
        }
    }

    pub(crate) fn content(&self) -> String {
        self.items
            .iter()
            .filter_map(|i| {
                if let Item::Content(text) = i {
                    Some(&text[..])
                } else {
                    None
                }
            })
            .collect()
    }

    pub(crate) fn reasoning(&self) -> String {
        self.items
            .iter()
            .filter_map(|i| {
                if let Item::Reasoning(text) = i {
                    Some(&text[..])
                } else {
                    None
                }
            })
            .collect()
    }

    /// The calls that were begun: name, arguments, and whether they are whole and were not taken
    /// back.
    pub(crate) fn calls(&self) -> Vec<(String, String, bool)> {
        let mut calls: Vec<(i64, String, String, bool)> = Vec::new();
        for item in &self.items {
            let of = |index: i64| move |c: &&mut (i64, String, String, bool)| c.0 == index;
            match item {
                Item::Name(index, name) => calls.push((*index, name.clone(), String::new(), false)),
                Item::Arguments(index, text) => {
                    calls
                        .iter_mut()
                        .find(of(*index))
                        .expect("a call that has begun")
                        .2
                        .push_str(text);
                }
                Item::Done(index) => {
                    calls
                        .iter_mut()
                        .find(of(*index))
                        .expect("a call that has begun")
                        .3 = true
                }
                Item::Retract(index, _) => {
                    calls
                        .iter_mut()
                        .find(of(*index))
                        .expect("a call that has begun")
                        .3 = false
                }
                _ => {}
            }
        }
        calls
            .into_iter()
            .map(|(_, name, arguments, whole)| (name, arguments, whole))
            .collect()
    }
}

impl Outlet for Found {
    fn content(&mut self, text: &str) {
        self.passed.push_str(text);
        self.add(Item::Content(text.to_owned()));
    }
    fn reasoning(&mut self, text: &str) {
        self.passed.push_str(text);
        self.add(Item::Reasoning(text.to_owned()));
    }
    fn call(&mut self, piece: CallPiece<'_>) {
        if let Some(name) = piece.name {
            self.add(Item::Name(piece.index, name.to_owned()));
        }
        if let Some(id) = piece.id {
            self.add(Item::Id(piece.index, id.to_owned()));
        }
        if let Some(arguments) = piece.arguments {
            self.add(Item::Arguments(piece.index, arguments.to_owned()));
        }
        if piece.done {
            self.add(Item::Done(piece.index));
        }
    }
    fn retract(&mut self, index: i64, reason: &'static str) {
        self.add(Item::Retract(index, reason));
    }
    fn warning(&mut self, code: &'static str, message: &str, raw: &str) {
        self.add(Item::Warning(code, message.to_owned(), raw.to_owned()));
    }
    fn left_out(&mut self, text: &str) {
        self.passed.push_str(text);
        self.left_out.push_str(text);
        let calls = self
            .items
            .iter()
            .filter(|i| matches!(i, Item::Name(..)))
            .count();
        let has_call = std::mem::replace(&mut self.framed, calls) < calls;
        // The note of a closing marker that came twice has no text.
        let is_named = |i: &Item| matches!(i, Item::Warning(code, _, raw) if raw.contains(text) || *code == "tag_note");
        // What ends a section comes after its last call, in a piece of its own. The end of a turn
        // is not of a section.
        let is_call = |i: &Item| {
            matches!(
                i,
                Item::Name(..) | Item::Id(..) | Item::Arguments(..) | Item::Done(_)
            )
        };
        // GigaChat's templates end a call with it.
        let ends_gigachat =
            text == "</s>" && GIGACHAT.iter().any(|mark| self.left_out.contains(mark));
        let ends_turn = TURN_ENDS.contains(&text) && !ends_gigachat;
        // The wrapper around a call is named after it.
        let is_wrapper = |i: &&Item| matches!(i, Item::Warning("tag_dropped", message, _) if message.ends_with("around a call"));
        let last = self.items.iter().rev().find(|item| !is_wrapper(item));
        let ends_calls = last.is_some_and(is_call) && !ends_turn;
        if !has_call && !ends_calls && !is_framing(text) && !self.items.last().is_some_and(is_named)
        {
            self.lost.push(text.to_owned());
        }
    }
}

/// Tokens that end a turn in the templates of many families.
const TURN_ENDS: &[&str] = &[
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<end_of_turn>",
    "</s>",
];

/// What GigaChat's calls begin with.
const GIGACHAT: &[&str] = &["function call<|role_sep|>", "<|function_call|>"];

/// Whether a text is framing by itself: markers around reasoning, the header of a message or its
/// end, and white space.
fn is_framing(text: &str) -> bool {
    let is_message = |text: &str| {
        let header = text.trim_start().strip_suffix("<|message|>");
        header.is_some_and(|h| {
            ["<|start|>", "<|channel|>", "to="]
                .iter()
                .any(|start| h.starts_with(start))
        }) || ["<|end|>", "<|return|>", "<|call|>", "<|eom|>", "<|eot|>"].contains(&text.trim_end())
    };
    text.trim().is_empty()
        || is_message(text)
        || look("auto").reasoning_marks().any(|mark| mark == text)
}

/// What is known when a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The request's tools.
    pub tools: bool,
    /// The end of the prompt.
    pub prefill: Option<&'static str>,
    /// The text was cut.
    pub cut: bool,
}

/// A text that began outside reasoning and has ended, with known tools.
pub(crate) const PLAIN: Known = Known {
    tools: true,
    prefill: Some(""),
    cut: false,
};

pub(crate) fn known() -> impl Strategy<Value = Known> {
    let prefill = select(vec![
        None,
        Some(""),
        Some("<think>\n"),
        Some("<|im_start|>assistant\n"),
    ]);
    (any::<bool>(), prefill, any::<bool>()).prop_map(|(tools, prefill, cut)| Known {
        tools,
        prefill,
        cut,
    })
}

thread_local! {
    /// What was built for the reads before.
    static BUILT: (RefCell<HashMap<String, Rc<Look>>>, Rc<ToolList>) = (RefCell::default(), Rc::new(ToolList::read(&tools()).expect("a list of tools")));
}

/// The request's tools as JSON.
pub(crate) fn tools() -> String {
    let text = json!({"type": "string"});
    let anything = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "s": text, "o": {"type": "object", "properties": {"k": text}, "additionalProperties": true},
        "l": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "boolean"}, "n": {"type": ["null", "string"]}
    }});
    let tool = |name: &str, parameters| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let one = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    json!([
        tool("f", anything.clone()),
        tool("g", json!({"type": "object", "properties": {}})),
        tool("get_time", one),
        tool("get_weather", anything)
    ])
    .to_string()
}

pub(crate) fn look(dialects: &str) -> Rc<Look> {
    let new = || Rc::new(Look::new(dialects).expect("dialects of the table"));
    BUILT.with(|(looks, _)| {
        Rc::clone(
            looks
                .borrow_mut()
                .entry(dialects.to_owned())
                .or_insert_with(new),
        )
    })
}

pub(crate) fn parser(dialects: &str, known: Known) -> Parser {
    let tools = known
        .tools
        .then(|| BUILT.with(|(_, tools)| Rc::clone(tools)));
    Parser::new(look(dialects), tools, known.prefill)
}

/// Reads a text that comes in these pieces.
pub(crate) fn read<'t>(
    dialects: &str,
    known: Known,
    pieces: impl IntoIterator<Item = &'t str>,
) -> Found {
    let mut parser = parser(dialects, known);
    let mut found = Found::default();
    pieces
        .into_iter()
        .for_each(|piece| parser.push(piece, &mut found));
    parser.finish(known.cut, &mut found);
    found
}

/// The last place between two characters that is not after `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// A text in single characters.
pub(crate) fn letters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices()
        .map(|(at, c)| &text[at..at + c.len_utf8()])
}

/// A text in pieces of lengths that `seed` decides: many short ones, some long.
pub(crate) fn pieces(text: &str, seed: u64) -> Vec<&str> {
    let mut random = Random::new(seed);
    let mut at = 0;
    let mut out = Vec::new();
    while at < text.len() {
        let longest = [1, 3, 7, 20, 300][random.below(5)];
        let end = floor(text, at + 4 + random.below(longest));
        out.push(&text[at..end]);
        at = end;
    }
    out
}

const NONE: PromptCall<'_> = PromptCall {
    id: "call_1",
    name: "g",
    arguments: "{}",
};
/// Calls that are written to be read: one, several, none of it simple.
pub(crate) const CALLS: &[&[PromptCall<'_>]] = &[
    &[PromptCall {
        id: "call_0",
        name: "f",
        arguments: r#"{"a": 1, "s": "x y"}"#,
    }],
    &[
        PromptCall {
            id: "0",
            name: "f",
            arguments: r#"{"s": "é ☕ </s> `x`", "o": {"k": "v"}, "l": [1, -2]}"#,
        },
        NONE,
    ],
    &[
        NONE,
        PromptCall {
            id: "call_2",
            name: "f",
            arguments: r#"{"b": true, "n": null, "s": "a\nb \"q\" 'p' \\ ]"}"#,
        },
    ],
    &[PromptCall {
        id: "",
        name: "get_time",
        arguments: r#"{"q": "Action: f\n</tool_call>"}"#,
    }],
    &[
        PromptCall {
            id: "7",
            name: "nobody.knows",
            arguments: r#"{"a": {"b": [{}]}}"#,
        },
        NONE,
        NONE,
    ],
];

/// Everything that [`CALLS`] look like in a dialect.
pub(crate) fn written(dialect: &Dialect) -> Vec<String> {
    CALLS.iter().map(|calls| dialect.calls(calls)).collect()
}

/// The words and signs that a dialect's calls are made of, with its markers.
fn tokens(dialect: &Dialect) -> Vec<String> {
    let mut tokens: Vec<String> = look(dialect.name).texts().map(str::to_owned).collect();
    for text in written(dialect) {
        let mut from = 0;
        for (at, c) in text.char_indices() {
            if matches!(c, '<' | '[' | '{' | '`' | '"') && at > from {
                tokens.push(text[from..at].to_owned());
                from = at;
            }
            if matches!(c, '>' | ']' | '}' | ',' | ':' | '=' | '\n' | '(' | ')') {
                let end = at + c.len_utf8();
                tokens.push(text[from..end].to_owned());
                from = end;
            }
        }
        tokens.push(text[from..].to_owned());
    }
    let mut seen = HashSet::new();
    tokens.retain(|t| !t.is_empty() && seen.insert(t.clone()));
    tokens
}

static TOKENS: LazyLock<Vec<Vec<String>>> =
    LazyLock::new(|| Dialect::all().iter().map(tokens).collect());
static MARKERS: LazyLock<Vec<&'static str>> = LazyLock::new(|| look("auto").texts().collect());

const PIECES: &[&str] = &[
    "\n",
    "\n\n",
    " ",
    "\t",
    "\r\n",
    "`",
    "```",
    "```json\n",
    "\n```\n",
    "~~~",
    "\"",
    "'",
    "“",
    "> ",
    "<",
    ">",
    "</",
    "/>",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "|",
    "&amp;",
    "=",
    ":",
    ",",
    ";",
    "<|",
    "|>",
    "｜",
    "<｜",
    "▁",
    "<!-- ",
    "f",
    "g",
    "get_time",
    "functions.f:0",
    "functions.g",
    "unknown",
    "{}",
    "{\"a\": 1}",
    "{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
    "\"name\": \"g\"",
    "\"parameters\": {",
    "\"arguments\"",
    "[{\"name\":",
    "f(a=1, s='x')",
    "[g()]",
    "\\",
    "\\\"",
    "\\u00",
    "\\ud83d",
    "null",
    "true",
    "-0",
    "1e5",
    "Action: f\n",
    "Action Input: ",
    "Final Answer: ",
    "Observation:",
    "all\n",
    ">>>",
    "to=",
    " to=f",
    "<think>",
    "</think>",
    "<![CDATA[",
    "]]>",
    "😀",
    "👩‍💻",
    "東京",
    "é",
    "\u{0}",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{202e}",
    "I will look. ",
    "a",
    "x y",
    "</s>",
    "<br>",
    "a < b",
    "`<tool_call>`",
];

/// A piece of a text for this dialect: mostly of its own calls.
fn fragment(dialect: usize) -> impl Strategy<Value = String> {
    let own = select(&TOKENS[dialect][..]);
    let any_dialect = (0..TOKENS.len()).prop_flat_map(|n| select(&TOKENS[n][..]));
    let start = (select(&MARKERS[..]), any::<prop::sample::Index>())
        .prop_map(|(mark, at)| mark[..floor(mark, at.index(mark.len()))].to_owned());
    prop_oneof![
        24 => own,
        3 => any_dialect,
        2 => start,
        3 => select(&MARKERS[..]).prop_map(str::to_owned),
        12 => select(PIECES).prop_map(str::to_owned),
        2 => select(written(&Dialect::all()[dialect])),
        1 => any::<String>(),
        1 => (select(vec![255_usize, 300, 600, 5000]), select(vec!["x", " ", "é", "\n"])).prop_map(|(n, s)| s.repeat(n)),
    ]
}

/// A text made of such pieces.
fn mixed(dialect: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(dialect), 0..20).prop_map(|all| all.concat())
}

/// A written call with mistakes: characters that are missing, doubled, swapped or too many, or an
/// end that is missing.
fn mistaken(dialect: usize) -> impl Strategy<Value = String> {
    let mistake = (0..5_u8, any::<prop::sample::Index>(), fragment(dialect));
    let texts = written(&Dialect::all()[dialect]);
    (
        fragment(dialect),
        select(texts),
        prop::collection::vec(mistake, 0..4),
        fragment(dialect),
    )
        .prop_map(|(before, text, mistakes, after)| {
            let mut letters: Vec<char> = text.chars().collect();
            for (kind, at, piece) in mistakes {
                if letters.is_empty() {
                    break;
                }
                let at = at.index(letters.len());
                match kind {
                    0 => drop(letters.remove(at)),
                    1 => letters.insert(at, letters[at]),
                    2 => letters.swap(at, at.saturating_sub(1)),
                    3 => letters.truncate(at),
                    _ => drop(letters.splice(at..at, piece.chars()).count()),
                }
            }
            let text: String = letters.into_iter().collect();
            if after.len() % 2 == 0 {
                text + &after
            } else {
                before + &text + &after
            }
        })
}

/// A dialect's name and a text to read by it.
pub(crate) fn texts() -> impl Strategy<Value = (&'static str, String)> {
    (0..Dialect::all().len()).prop_flat_map(|n| {
        prop_oneof![mixed(n), mistaken(n)].prop_map(move |text| (Dialect::all()[n].name, text))
    })
}

/// How many cases a property is tried with: `PROPTEST_CASES`, other ones with each run, or this
/// many, always the same.
pub(crate) fn cases(few: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    let rng_seed = if asked.is_some() {
        RngSeed::Random
    } else {
        RngSeed::Fixed(7)
    };
    let cases = asked.unwrap_or(few);
    ProptestConfig {
        cases,
        rng_seed,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}
