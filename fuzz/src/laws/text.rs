//! Calls as text, by each dialect and by all: nothing is lost, no split shows, calls that count are
//! calls.
//!
//! Input: the dialect, what is known (tools, prefill, cut), a seed of the pieces, then the text.

use super::input::{TOOLS, list, merge, text_pieces};
use super::line::{Line, is_json, is_object};
use super::{Target, Turn};
use event::{Collect, Kind, Scanner, quoted};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::LazyLock;
use tag::{CallPiece, Dialect, Look, Outlet, Parser, Streams};

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "text",
    check,
};

/// The dialects by the first byte of an input, so that kept inputs stay what they are. Those that
/// are missing here follow; any other byte is `auto`.
const DIALECTS: &[&str] = &[
    "anthropic-xml",
    "anthropic-2024",
    "apertus",
    "jamba",
    "apriel",
    "nemotron-toolcall",
    "cohere-command",
    "cohere-r-plus",
    "deepseek-v3",
    "deepseek-r1",
    "deepseek-v31",
    "deepseek-v32",
    "deepseek-v4",
    "deepseek-v41",
    "dots",
    "fenced-json",
    "functionary-v3.1",
    "functionary-v3.2",
    "tool-code",
    "functiongemma",
    "gemma4",
    "gigachat3",
    "glm45",
    "glm47",
    "ling3",
    "poolside-v1",
    "spark25",
    "granite4",
    "granite3",
    "granite-20b-fc",
    "harmony",
    "hermes",
    "ernie45",
    "longcat",
    "internlm2",
    "lmstudio",
    "hunyuan-a13b",
    "hunyuan-v3",
    "hunyuan-v4",
    "inkling",
    "k2-horizon",
    "kimi-k2",
    "kimi-k3",
    "langchain-xml",
    "lfm2",
    "llama3-json",
    "pythonic",
    "llama4-pythonic",
    "minicpm5-xml",
    "minimax-m2",
    "minimax-m3",
    "mistral-v3-json-array",
    "mistral-v11-args",
    "mistral-v13-compact",
    "sarashina",
    "muse-atem",
    "olmo3-pythonic",
    "phi4-mini",
    "firefunction-v2",
    "plamo3",
    "qwen-agent",
    "react",
    "qwen3-coder-xml",
    "mimo-xml",
    "step3p5-xml",
    "seed-oss",
    "step3",
    "tool-name-tag",
    "xlam",
];

static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let others = Dialect::all()
        .iter()
        .map(|d| d.name)
        .filter(|name| !DIALECTS.contains(name));
    DIALECTS.iter().copied().chain(others).collect()
});

/// What a parser said; neighbours are joined.
#[derive(Default)]
struct Found {
    items: Vec<(u8, i64, String)>,
    passed: String,
    warnings: BTreeMap<&'static str, usize>,
}

impl Found {
    fn add(&mut self, what: u8, index: i64, text: &str) {
        // Text beside a call may come before or behind a piece of its arguments.
        let mut items = self.items.iter_mut().rev();
        let last = if what == b'a' {
            items.find(|i| !b"cr".contains(&i.0))
        } else {
            items.next()
        };
        match last {
            Some(last) if (last.0, last.1) == (what, index) && b"cra".contains(&what) => {
                last.2.push_str(text)
            }
            _ => self.items.push((what, index, text.to_owned())),
        }
    }
}

impl Outlet for Found {
    fn content(&mut self, text: &str) {
        self.passed.push_str(text);
        self.add(b'c', 0, text);
    }
    fn reasoning(&mut self, text: &str) {
        self.passed.push_str(text);
        self.add(b'r', 0, text);
    }
    fn call(&mut self, piece: CallPiece<'_>) {
        piece
            .name
            .into_iter()
            .for_each(|name| self.add(b'n', piece.index, name));
        piece
            .id
            .into_iter()
            .for_each(|id| self.add(b'i', piece.index, id));
        piece
            .arguments
            .into_iter()
            .for_each(|text| self.add(b'a', piece.index, text));
        if piece.done {
            self.add(b'd', piece.index, "");
        }
    }
    fn retract(&mut self, index: i64, reason: &'static str) {
        self.add(b'-', index, reason);
    }
    // Known: the reason in a warning, and its place beside arguments, depend on the pieces.
    fn warning(&mut self, code: &'static str, _: &str, _: &str) {
        *self.warnings.entry(code).or_default() += 1;
    }
    fn left_out(&mut self, text: &str) {
        self.passed.push_str(text);
    }
}

thread_local! {
    static LOOKS: RefCell<HashMap<&'static str, Rc<Look>>> = RefCell::default();
    static STREAMS: Streams = Streams::default();
}

fn read<'t>(
    names: &'static str,
    tools: bool,
    prefill: Option<&str>,
    cut: bool,
    pieces: impl IntoIterator<Item = &'t str>,
) -> Found {
    let look = LOOKS.with_borrow_mut(|looks| {
        Rc::clone(
            looks
                .entry(names)
                .or_insert_with(|| Rc::new(Look::new(names).unwrap())),
        )
    });
    let mut parser = Parser::new(look, tools.then(list), prefill);
    let mut found = Found::default();
    pieces
        .into_iter()
        .for_each(|piece| parser.push(piece, &mut found));
    parser.finish(cut, &mut found);
    found
}

/// The text of answer and reasoning of these lines.
fn machine(names: &str, prefill: Option<&str>, cut: bool, pieces: &[&str]) -> Vec<String> {
    let prefill = prefill.map_or(String::new(), |p| format!(",\"prefill\":{}", quoted(p)));
    let mut lines = vec![format!(
        r#"{{"type":"stream_start","v":1,"id":"r","tools_mode":"tag","dialect":"{names}","tools":{TOOLS}{prefill}}}"#
    )];
    lines.extend(
        pieces
            .iter()
            .map(|p| format!(r#"{{"type":"content_delta","text":{}}}"#, quoted(p))),
    );
    lines.push(format!(
        r#"{{"type":"stream_end","finish_reason":"{}"}}"#,
        if cut { "length" } else { "stop" }
    ));
    let mut scanner = Scanner::default();
    let first = scanner.read(&lines[0]).unwrap();
    STREAMS.with(|streams| Collect::run(&mut streams.begin(&first), &lines))
}

fn check(bytes: &[u8], turn: Turn) {
    let [dialect, how, seed, text @ ..] = bytes else {
        return;
    };
    let text = &*String::from_utf8_lossy(text);
    let names = NAMES.get(usize::from(*dialect)).copied().unwrap_or("auto");
    let (tools, cut) = (how & 1 == 0, how & 2 > 0);
    let prefill = [
        Some(""),
        Some("<think>\n"),
        None,
        Some("<|im_start|>assistant\n"),
    ][usize::from(how >> 2 & 3)];
    let whole = read(names, tools, prefill, cut, [text]);
    assert_eq!(whole.passed, text, "lost");
    let pieces = text_pieces(text, *seed);
    let other = read(names, tools, prefill, cut, pieces.iter().copied());
    assert_eq!(other.passed, text, "lost in pieces");
    assert_eq!(other.items, whole.items, "the pieces show");
    assert_eq!(
        other.warnings, whole.warnings,
        "the pieces show in warnings"
    );

    if !turn.takes(0) {
        return;
    }
    let calls = |pieces: &[&str]| {
        let lines = Line::all(machine(names, prefill, cut, pieces));
        is_json(&lines);
        let out = merge(&lines, accumulate::AccumulateOptions::default());
        for line in out
            .iter()
            .filter(|l| l.kind == Kind::ToolCall && !l.is_refused)
        {
            assert!(is_object(&line.arguments), "{}", line.raw);
            assert!(
                ["f", "get", "get_weather"].contains(&&line.name[..]),
                "not in the list: {}",
                line.raw
            );
        }
        let kinds = [Kind::ToolCall, Kind::Message, Kind::Retract];
        let of_calls = out.iter().filter(|l| kinds.contains(&l.kind));
        of_calls
            .map(|l| l.raw.replace("\"sealed\"", "\"balanced\""))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(calls(&pieces), calls(&[text]), "calls of pieces");
}
