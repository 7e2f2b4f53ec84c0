//! Markup that leaked into text that people read: markers of dialects, tags of reasoning, frames of
//! results, control tokens, and calls as JSON.
//!
//! What it is: a search of whole texts ([`Lint`]), and the texts of recorded lines, each joined
//! from its deltas ([`recorded::Recorded`]). Markup in code, in a block quote or right after a quotation mark
//! is quoted and has not leaked.

mod marks;
pub mod recorded;

use crate::lint::marks::{LintMark, control_token};
use crate::look::Look;
use crate::quote::Quote;
use event::Raw;

// The search of one text.

/// The length of an excerpt before the marker and after it, in characters.
const BEFORE: usize = 24;
const AFTER: usize = 48;

/// Markup that leaked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where it begins in the text, in bytes.
    pub at: usize,
    /// The markup as it is in the text; for a call that is written as JSON, `JSON call of NAME`.
    pub marker: String,
    /// What it belongs to: `dialect NAME`, `dialects NAME, NAME`, `reasoning`, `tool result`,
    /// `control token` or `any dialect`.
    pub meaning: String,
    /// The text around it, its control characters escaped.
    pub excerpt: String,
}

/// Searches for leaked markup; see the module. Built once for all texts.
#[derive(Debug)]
pub struct Lint {
    /// Sorted by their first byte, the longest first.
    marks: Vec<LintMark>,
    stops: Box<[bool; 256]>,
}

impl Lint {
    /// Searches for the markers of these dialects; tags of reasoning, control tokens and JSON calls
    /// are found with any.
    pub fn new(look: &Look) -> Lint {
        let marks = marks::all(look);
        let mut stops = Box::new([false; 256]);
        marks
            .iter()
            .filter_map(|m| m.text.bytes().next())
            .chain(*b"`~<{[")
            .for_each(|c| stops[c as usize] = true);
        Lint { marks, stops }
    }

    /// All that leaked into this text, in its order. Takes time linear in the text.
    pub fn search(&self, text: &str) -> Vec<Finding> {
        let b = text.as_bytes();
        let mut quote = Quote::markdown();
        let mut found = Vec::new();
        // Where the last finding ended, and where JSON that was looked at does.
        let (mut last, mut json) = (0, 0);
        let mut i = 0;
        while let Some(at) = b[i..]
            .iter()
            .position(|c| self.stops[*c as usize])
            .map(|n| n + i)
        {
            quote.plain(&text[i..at]);
            if let c @ (b'`' | b'~') = b[at] {
                quote.tick(c);
                i = at + 1;
                continue;
            }
            let rest = &text[at..];
            let mut length = rest.chars().next().map_or(1, char::len_utf8);
            if let Some((marker, meaning)) = self.marker(rest, quote.is_line_start()) {
                length = marker.len();
                if !quote.is_quoted() {
                    found.push(finding(text, at, marker.to_owned(), meaning));
                    last = at + length;
                }
            } else if matches!(b[at], b'{' | b'[') && at >= json && quote.is_line_start() {
                let value = Raw::parse_prefix(rest);
                json = value.map_or(at, |value| at + value.text().len());
                // After a marker it is the body of that call.
                if let Some(name) = value.ok().and_then(call)
                    && !quote.is_quoted()
                    && (last == 0 || !text[last..at].trim_ascii().is_empty())
                {
                    found.push(finding(
                        text,
                        at,
                        format!("JSON call of {name}"),
                        "any dialect".to_owned(),
                    ));
                }
            }
            quote.plain(&text[at..at + length]);
            i = at + length;
        }
        found
    }

    /// The markup at the beginning of `rest`, and what it belongs to.
    fn marker<'t>(&self, rest: &'t str, line_start: bool) -> Option<(&'t str, String)> {
        let first = *rest.as_bytes().first()?;
        let from = self.marks.partition_point(|m| m.text.as_bytes()[0] < first);
        let here = self.marks[from..]
            .iter()
            .take_while(|m| m.text.as_bytes()[0] == first);
        if let Some(mark) = here.into_iter().find(|m| m.begins(rest, line_start)) {
            return Some((&rest[..mark.text.len()], mark.meaning.clone()));
        }
        control_token(rest).map(|token| (token, "control token".to_owned()))
    }
}

/// The name of the tool, if this JSON is a call or begins with one: an object, or an array of
/// objects, that names a tool and has arguments. The description of a tool has none.
fn call(value: Raw<'_>) -> Option<String> {
    if value.is_array() {
        return value
            .items()
            .next()
            .filter(|first| first.is_object())
            .and_then(call);
    }
    let inner = value
        .get("function")
        .filter(|f| f.is_object())
        .unwrap_or(value);
    let name = ["name", "tool_name", "function"]
        .iter()
        .find_map(|key| inner.get_str(key))?;
    let arguments = ["arguments", "parameters", "args", "input", "tool_input"]
        .iter()
        .find_map(|key| inner.get(key))?;
    let schema = arguments.get("properties").is_some_and(|p| p.is_object())
        || inner.get("description").is_some();
    ((arguments.is_object() || arguments.is_str()) && !schema).then(|| name.into_owned())
}

fn finding(text: &str, at: usize, marker: String, meaning: String) -> Finding {
    let from = text[..at]
        .char_indices()
        .rev()
        .take(BEFORE)
        .last()
        .map_or(at, |(from, _)| from);
    let to = text[at..]
        .char_indices()
        .nth(AFTER)
        .map_or(text.len(), |(n, _)| at + n);
    Finding {
        at,
        marker: escaped(&marker),
        meaning,
        excerpt: escaped(&text[from..to]),
    }
}

/// The text on one line, without a character that a terminal obeys.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(dialects: &str, text: &str) -> Vec<String> {
        let look = Look::new(dialects).expect("dialects of the table");
        Lint::new(&look)
            .search(text)
            .into_iter()
            .map(|f| format!("{} {} {}", f.at, f.marker, f.meaning))
            .collect()
    }

    #[test]
    fn what_leaked_is_found_once_where_it_begins() {
        for (text, want) in [
            ("All is well: a < b, [1, 2], {x}, <b>bold</b>.", &[][..]),
            (
                "Done.</think> Yes.<|im_end|>",
                &["5 </think> reasoning", "18 <|im_end|> control token"],
            ),
            (
                "a <|some_new_token|> b < | x |> <| no |>",
                &["2 <|some_new_token|> control token"],
            ),
            (
                "So: <tool_response>\n\"4\"\n</tool_response>",
                &[
                    "4 <tool_response> tool result",
                    "24 </tool_response> tool result",
                ],
            ),
            (
                "<tool_result name=\"f\">4</tool_result> <tool_results>",
                &[
                    "0 <tool_result tool result",
                    "23 </tool_result> tool result",
                ],
            ),
            (
                "[TOOL_RESULTS]4[/TOOL_RESULTS]",
                &[
                    "0 [TOOL_RESULTS] tool result",
                    "15 [/TOOL_RESULTS] tool result",
                ],
            ),
            ("<results>4</results> <result> <name>f</name>", &[]),
            ("<result name=\"f\">4", &["0 <result tool result"]),
            ("✿RESULT✿: 4", &["0 ✿RESULT✿ tool result"]),
            (
                "<toolbar> <tool kit> <tool name=\"f\">",
                &["21 <tool dialect tool-name-tag"],
            ),
            (
                "[TOOL_REQUEST]{}[END_TOOL_REQUEST]",
                &[
                    "0 [TOOL_REQUEST] dialect lmstudio",
                    "16 [END_TOOL_REQUEST] dialect lmstudio",
                ],
            ),
            ("Action: call the dentist\n", &[]),
            (
                "Action: f\nAction Input: x\n",
                &["10 Action Input dialect react"],
            ),
            (
                "functools are fine, functools[{\"name\"",
                &["20 functools dialects phi4-mini, firefunction-v2"],
            ),
            (
                "Let me.\n{\"name\": \"f\", \"arguments\": {}}",
                &["8 JSON call of f any dialect"],
            ),
            (
                "[{\"tool_name\":\"f\",\"parameters\":{}}]",
                &["0 JSON call of f any dialect"],
            ),
            (
                "{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}",
                &["0 JSON call of f any dialect"],
            ),
            ("{\"name\": \"Ada\", \"age\": 36}", &[]),
            (
                "{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}",
                &[],
            ),
            (
                "<|tool_call>call:f{}<tool_call|>",
                &[
                    "0 <|tool_call> dialect gemma4",
                    "20 <tool_call|> dialect gemma4",
                ],
            ),
        ] {
            assert_eq!(found("auto", text), want, "{text:?}");
        }
        let hermes = found(
            "hermes",
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n[THINK]",
        );
        assert_eq!(
            hermes,
            [
                "0 <tool_call> dialect hermes",
                "43 </tool_call> dialect hermes"
            ]
        );
    }

    #[test]
    fn what_is_quoted_has_not_leaked() {
        for text in [
            "Write `<tool_call>` first.",
            "```xml\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>\n```\n",
            "> <think> he wrote\n",
            "the tag \"<|im_end|>\" ends it, \u{201c}</think>\u{201d} too",
        ] {
            assert_eq!(found("auto", text), [""; 0], "{text:?}");
        }
    }

    #[test]
    fn the_first_marker_of_every_example_is_found() {
        let unmarked = [
            "cohere-r-plus",
            "fenced-json",
            "functionary-v3.2",
            "pythonic",
            "sarashina",
            "tool-code",
            "llama4-pythonic",
            "harmony",
        ];
        for dialect in crate::Dialect::all() {
            let example = dialect.example();
            let all = found("auto", &format!("Let me see.\n{example}"));
            assert!(
                !all.is_empty() || unmarked.contains(&dialect.name),
                "{}: {example}",
                dialect.name
            );
        }
    }

    #[test]
    fn the_frame_of_every_result_is_found() {
        // Results in code, in plain elements or JSON, and behind words of prose.
        let mut wrong = Vec::new();
        let plain = [
            "cohere-r-plus",
            "fenced-json",
            "gigachat3",
            "kimi-k2",
            "llama3-json",
            "llama4-pythonic",
            "pythonic",
            "react",
            "tool-code",
        ];
        for dialect in crate::Dialect::all()
            .iter()
            .filter(|d| !plain.contains(&d.name))
        {
            let results = dialect.results(&[crate::PromptResult {
                id: "1",
                name: "f",
                text: "4 huts",
            }]);
            let all = found("hermes", &format!("So it is.\n{results}\nGood."));
            wrong.extend(
                all.is_empty()
                    .then(|| format!("{}: {results}", dialect.name)),
            );
        }
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        let look = Look::new("auto").expect("all");
        let text = format!("{}\n\u{1b}[2J<think>{}", "ä".repeat(99), "é".repeat(99));
        let found = Lint::new(&look).search(&text);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].excerpt,
            format!("{}\\n\\u{{1b}}[2J<think>{}", "ä".repeat(19), "é".repeat(41))
        );
    }

    proptest::proptest! {
        /// For any text, findings are in order, are at the place that they name, and do not
        /// overlap.
        #[test]
        fn findings_are_where_they_say(pieces in proptest::collection::vec(piece(), 0..24)) {
            let text = pieces.concat();
            let mut last = 0;
            for finding in lint().search(&text) {
                proptest::prop_assert!(finding.at >= last, "{finding:?} in {text:?}");
                let json = finding.marker.starts_with("JSON call of ");
                proptest::prop_assert!(json || escaped(&text[finding.at..]).starts_with(&finding.marker), "{finding:?}");
                last = finding.at + if json { 1 } else { finding.marker.replace("\\n", "\n").len() };
            }
        }
    }

    fn lint() -> &'static Lint {
        static LINT: std::sync::LazyLock<Lint> =
            std::sync::LazyLock::new(|| Lint::new(&Look::new("auto").expect("all")));
        &LINT
    }

    /// Markers, their beginnings, quotes, brackets, and any text.
    fn piece() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        let marks: Vec<&str> = lint().marks.iter().map(|m| m.text).collect();
        prop_oneof![
            (proptest::sample::select(marks.clone()), 0..40_usize)
                .prop_map(|(mark, n)| mark.chars().take(n.max(1)).collect()),
            proptest::sample::select(marks).prop_map(str::to_owned),
            proptest::sample::select(vec![
                "\n",
                "`",
                "```",
                "\"",
                "> ",
                "{\"name\":\"f\",\"arguments\":{}}",
                "[",
                "<|é|>",
                "｜"
            ])
            .prop_map(str::to_owned),
            "\\PC{0,6}",
        ]
    }

    #[test]
    fn brackets_without_end_take_linear_time() {
        let look = Look::new("auto").expect("all");
        let lint = Lint::new(&look);
        for text in [
            "[1,\n".repeat(10_000),
            "{\"a\":\n".repeat(10_000),
            "<".repeat(40_000),
            "<|a".repeat(20_000),
        ] {
            assert_eq!(lint.search(&text), []);
        }
    }
}
