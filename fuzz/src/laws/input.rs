//! What an input is: decisions from the fuzzer's bytes, splits, and streams of events.

use super::line::Line;
use accumulate::{Accumulate, AccumulateOptions};
use event::{Collect, quoted};
use json::ToolList;
use std::rc::Rc;

/// The fuzzer's bytes, as decisions. After their end every decision is the first one.
pub struct Source<'a>(pub &'a [u8]);

impl<'a> Source<'a> {
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A short text of the bytes themselves, so that a dictionary can reach into it.
    pub fn text(&mut self, longest: usize) -> String {
        let length = self.below(longest + 1).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }
}

/// The bytes in pieces that `seed` decides; 0: one by one.
pub fn pieces(bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (mut left, mut out) = (bytes, Vec::new());
    while !left.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let longest = [1, 2, 5, 17, 90][(state >> 40) as usize % 5];
        let at = (1 + (state >> 20) as usize % longest).min(left.len());
        let (piece, rest) = left.split_at(at);
        out.push(piece);
        left = rest;
    }
    out
}

/// The same between characters.
pub fn text_pieces(text: &str, seed: u8) -> Vec<&str> {
    let (mut from, mut end, mut out) = (0, 0, Vec::new());
    for piece in pieces(text.as_bytes(), seed) {
        end += piece.len();
        if text.is_char_boundary(end) {
            out.push(&text[from..end]);
            from = end;
        }
    }
    out
}

thread_local! {
    static LIST: Rc<ToolList> = Rc::new(ToolList::read(TOOLS).expect("a list of tools"));
}

/// [`TOOLS`], which are compiled once.
pub fn list() -> Rc<ToolList> {
    LIST.with(Rc::clone)
}

/// `tools_offered` stands for [`TOOLS`], so that they are not compiled with each run.
pub fn merged<S: AsRef<str>>(lines: &[S], mut options: AccumulateOptions) -> Vec<String> {
    if lines[0].as_ref().contains("\"tools_offered\"") || lines[0].as_ref().contains(TOOLS) {
        options.tools = Some(list());
    }
    Collect::run(&mut Accumulate::new(Rc::new(options)), lines)
}

/// The same, read.
pub fn merge<S: AsRef<str>>(lines: &[S], options: AccumulateOptions) -> Vec<Line> {
    Line::all(merged(lines, options))
}

/// The tools of the streams.
pub const TOOLS: &str = r#"[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{},"list":{"type":"array"}}}}},{"type":"function","function":{"name":"get","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}},{"type":"function","function":{"name":"get_weather"}}]"#;

const FRAGMENTS: &[&str] = &[
    "{",
    "}",
    "{\"a\":1}",
    "{\"a\":",
    "\"x\"",
    ",",
    "\"b\":[",
    "]",
    " ",
    "{}",
    "null",
    "\"",
    "\\",
    "{\"a\":\"x",
    "\"}",
    "1",
    "{\"a\":2}",
    "{\"list\":[1",
    "\\ud83d",
    "\\ude00",
    "é",
    "```json\n",
    "</tool_call>",
    "{\"q\":\"",
    "\n",
    "True",
    "'",
    "//",
];
const IDS: &[Option<&str>] = &[
    None,
    Some("a"),
    Some("b"),
    Some(""),
    Some("null"),
    Some("c"),
];
const NAMES: &[Option<&str>] = &[
    None,
    Some("f"),
    Some("get"),
    Some("_weather"),
    Some("get_weather"),
    Some(""),
    Some("nobody"),
];
const ENDS: &[&str] = &[
    "stop",
    "tool_calls",
    "length",
    "content_filter",
    "error",
    "cancelled",
    "cut",
];

/// How a stream that was made ends.
pub struct Made {
    pub lines: Vec<String>,
    /// The reason, if it has an end.
    pub end: Option<&'static str>,
}

/// A stream of events as a provider's decoder writes them, well formed line by line.
pub fn stream(source: &mut Source<'_>, with_choices: bool) -> Made {
    let how = source.byte();
    let tools = if how & 1 == 0 {
        ",\"tools_offered\":3"
    } else {
        ""
    };
    let mut lines = vec![format!(
        r#"{{"type":"stream_start","v":1,"model":"m","id":"r1"{tools}}}"#
    )];
    let mut has_error = false;
    while !source.0.is_empty() && lines.len() < 40 {
        let op = source.byte();
        let choice = if with_choices && op >= 0xe0 {
            ",\"choice\":1"
        } else {
            ""
        };
        match op % 16 {
            0..=8 => {
                let label = source.byte();
                let mut line = format!(r#"{{"type":"tool_call_delta"{choice}"#);
                if label & 3 > 0 {
                    line += &format!(",\"index\":{}", (label & 3) - 1);
                }
                let id = IDS[usize::from(label >> 2 & 7) % IDS.len()].filter(|_| label & 0x20 == 0);
                id.into_iter()
                    .for_each(|id| line += &format!(",\"tool_id\":\"{id}\""));
                let name = NAMES[usize::from(label >> 5) % NAMES.len()];
                name.into_iter()
                    .for_each(|name| line += &format!(",\"tool_name\":\"{name}\""));
                match op % 16 {
                    0..=4 => line += &format!(",\"arguments\":{}", quoted(source.pick(FRAGMENTS))),
                    5 | 6 => line += &format!(",\"arguments\":{}", quoted(&source.text(40))),
                    7 => line += ",\"done\":true",
                    _ => {}
                }
                lines.push(line + "}");
            }
            9 => lines.push(format!(
                r#"{{"type":"content_delta"{choice},"text":{}}}"#,
                quoted(&source.text(12))
            )),
            10 => lines.push(format!(
                r#"{{"type":"thinking"{choice},"text":{}}}"#,
                quoted(&source.text(6))
            )),
            11 => lines.push(format!(
                r#"{{"type":"refusal_delta"{choice},"text":{}}}"#,
                quoted(&source.text(6))
            )),
            12 => {
                let which = source.pick(&[
                    "\"index\":0",
                    "\"index\":1",
                    "\"tool_id\":\"a\"",
                    "\"tool_id\":\"b\"",
                ]);
                lines.push(format!(
                    r#"{{"type":"retract"{choice},{which},"reason":"unparsed"}}"#
                ));
            }
            13 => {
                let text = source.pick(&["\\ud83d", "\\ude00", "a\\u0000", "x"]);
                lines.push(format!(
                    r#"{{"type":"content_delta"{choice},"text":"{text}"}}"#
                ));
            }
            14 if op > 0xd0 => {
                has_error = true;
                lines.push(
                    r#"{"type":"error","source":"llm-stream","code":"server_error","message":"m","retryable":false}"#
                        .into(),
                );
            }
            14 => lines
                .push(r#"{"type":"session_stats","prompt_tokens":3,"completion_tokens":2}"#.into()),
            _ => {
                lines.push(r#"{"type":"server_item","kind":"web_search","data":{"x":[1]}}"#.into())
            }
        }
    }
    let end = match usize::from(how >> 1) % 10 {
        _ if has_error => Some("error"),
        n if n < ENDS.len() => Some(ENDS[n]),
        9 => None,
        _ => Some("tool_calls"),
    };
    end.into_iter().for_each(|end| {
        lines.push(format!(
            r#"{{"type":"stream_end","finish_reason":"{end}"}}"#
        ))
    });
    Made { lines, end }
}

/// Prints the events that an input makes, for people: `SHOW=1 TARGET FILE`.
pub fn show(lines: &[String]) {
    if std::env::var_os("SHOW").is_some() {
        lines.iter().for_each(|line| println!("{line}"));
    }
}
