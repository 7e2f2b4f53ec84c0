//! Detects markup that leaked into text for people: markers of dialects, tags of reasoning, frames
//! of results, control tokens, and calls as JSON. Markup in code, in a block quote or directly
//! after a quotation mark is quoted, not leaked.

mod marks;

use crate::lint::marks::{LintMark, control_token};
use crate::look::Look;
use crate::quote::Quote;
use event::Raw;

/// Searches for leaked markup; see the module. Built once and used for all texts.
#[derive(Debug)]
pub struct Lint {
    /// Sorted by their first byte, the longest first.
    marks: Vec<LintMark>,
    stops: Box<[bool; 256]>,
}

impl Lint {
    /// Creates a search for the markers of these dialects. Tags of reasoning, control tokens and
    /// JSON calls are always searched for.
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

    /// Whether the text contains leaked markup. Takes linear time.
    pub fn finds(&self, text: &str) -> bool {
        let b = text.as_bytes();
        let mut quote = Quote::markdown();
        // The end of the JSON that was already examined.
        let mut json = 0;
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
            if let Some(marker) = self.marker(rest, quote.is_line_start()) {
                length = marker.len();
                if !quote.is_quoted() {
                    return true;
                }
            } else if matches!(b[at], b'{' | b'[') && at >= json && quote.is_line_start() {
                let value = Raw::parse_prefix(rest);
                json = value.map_or(at, |value| at + value.text().len());
                if value.is_ok_and(is_call) && !quote.is_quoted() {
                    return true;
                }
            }
            quote.plain(&text[at..at + length]);
            i = at + length;
        }
        false
    }

    /// Returns the markup at the beginning of `rest`, or `None`.
    fn marker<'t>(&self, rest: &'t str, line_start: bool) -> Option<&'t str> {
        let first = *rest.as_bytes().first()?;
        let from = self.marks.partition_point(|m| m.text.as_bytes()[0] < first);
        let mut here = self.marks[from..]
            .iter()
            .take_while(|m| m.text.as_bytes()[0] == first);
        here.find(|m| m.begins(rest, line_start))
            .map(|mark| &rest[..mark.text.len()])
            .or_else(|| control_token(rest))
    }
}

/// Whether this JSON is a call or begins with a call: an object, or an array of objects, that names
/// a tool and has arguments. The description of a tool has no arguments.
fn is_call(value: Raw<'_>) -> bool {
    if value.is_array() {
        let first = value.items().next();
        return first.is_some_and(|first| first.is_object() && is_call(first));
    }
    let inner = value
        .get("function")
        .filter(|f| f.is_object())
        .unwrap_or(value);
    let has_name = ["name", "tool_name", "function"]
        .iter()
        .any(|key| inner.get_str(key).is_some());
    let arguments = ["arguments", "parameters", "args", "input", "tool_input"]
        .iter()
        .find_map(|key| inner.get(key));
    let is_schema = |arguments: Raw<'_>| {
        arguments.get("properties").is_some_and(|p| p.is_object())
            || inner.get("description").is_some()
    };
    has_name
        && arguments.is_some_and(|arguments| {
            (arguments.is_object() || arguments.is_str()) && !is_schema(arguments)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(dialects: &str, text: &str) -> bool {
        Lint::new(&Look::new(dialects).expect("dialects of the table")).finds(text)
    }

    #[test]
    fn what_leaked_is_found() {
        for text in [
            "Done.</think> Yes.",
            "Yes.<|im_end|>",
            "a <|some_new_token|> b",
            "So: <tool_response>\n\"4\"\n</tool_response>",
            "<tool_result name=\"f\">4",
            "4</tool_result> <tool_results>",
            "[TOOL_RESULTS]4[/TOOL_RESULTS]",
            "<result name=\"f\">4",
            "✿RESULT✿: 4",
            "<toolbar> <tool kit> <tool name=\"f\">",
            "[TOOL_REQUEST]{}",
            "{}[END_TOOL_REQUEST]",
            "Action: f\nAction Input: x\n",
            "functools are fine, functools[{\"name\"",
            "Let me.\n{\"name\": \"f\", \"arguments\": {}}",
            "[{\"tool_name\":\"f\",\"parameters\":{}}]",
            "{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}",
            "<|tool_call>call:f{}",
            "{}<tool_call|>",
        ] {
            assert!(finds("auto", text), "{text:?}");
        }
        assert!(finds("hermes", "<tool_call>\n{\"name\": \"f\""));
        assert!(!finds("hermes", "[THINK] of it"));
    }

    #[test]
    fn prose_and_data_are_no_markup() {
        for text in [
            "All is well: a < b, [1, 2], {x}, <b>bold</b>.",
            "< | x |> <| no |>",
            "<results>4</results> <result> <name>f</name>",
            "Action: call the dentist\n",
            "{\"name\": \"Ada\", \"age\": 36}",
            "{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}",
        ] {
            assert!(!finds("auto", text), "{text:?}");
        }
    }

    #[test]
    fn what_is_quoted_has_not_leaked() {
        for text in [
            "Write `<tool_call>` first.",
            "```xml\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>\n```\n",
            "> <think> he wrote\n",
            "the tag \"<|im_end|>\" ends it, \u{201c}</think>\u{201d} too",
        ] {
            assert!(!finds("auto", text), "{text:?}");
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
            assert!(
                finds("auto", &format!("Let me see.\n{example}"))
                    || unmarked.contains(&dialect.name),
                "{}: {example}",
                dialect.name
            );
        }
    }

    #[test]
    fn the_frame_of_every_result_is_found() {
        // Results in code, in plain elements or JSON, and after words of prose.
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
            if !finds("hermes", &format!("So it is.\n{results}\nGood.")) {
                wrong.push(format!("{}: {results}", dialect.name));
            }
        }
        assert_eq!(wrong, [""; 0]);
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
            assert!(!lint.finds(&text));
        }
    }
}
