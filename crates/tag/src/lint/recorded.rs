//! The texts of recorded lines: events, messages, other JSON, and plain text.

use crate::lint::{Finding, Lint};
use event::payload::{ContentDelta, Message, Thinking, ToolResult};
use event::{Event, Kind, Raw, Scanner};
use std::collections::HashMap;

/// A text is searched as soon as it has this many bytes, at the end of a line, so that no recording
/// fills the memory.
const LONGEST: usize = 16 << 20;

/// Searches the lines of one recording. Deltas are joined, for each choice of each stream the
/// answer and the reasoning by themselves, and so are lines of plain text that follow each other.
/// What a `message` repeats of them is not found again.
///
/// It does not search the messages of the system and the developer, which may show markup, nor what
/// neither the model nor a tool wrote as text: arguments, warnings, unknown events.
#[derive(Debug)]
pub struct Recorded<'l> {
    lint: &'l Lint,
    scanner: Option<Scanner>,
    texts: Vec<(Of, Joined)>,
    plain: Joined,
    /// How often each marker and excerpt was found in deltas and results, less how often a message
    /// repeated it.
    reported: HashMap<(String, String), usize>,
}

/// Whose text it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Of {
    /// The name of the stream, as JSON.
    stream: Option<Box<str>>,
    choice: u32,
    reasoning: bool,
}

/// A text, and where each of its pieces begins: the byte, and the number of the line it came from.
#[derive(Debug, Default)]
struct Joined {
    text: String,
    pieces: Vec<(usize, u64)>,
}

impl Joined {
    fn begin(&mut self, number: u64) {
        self.pieces.push((self.text.len(), number));
    }

    fn search(&mut self, lint: &Lint, found: &mut dyn FnMut(u64, Finding)) {
        for finding in lint.search(&self.text) {
            let piece = self.pieces.partition_point(|(from, _)| *from <= finding.at);
            let number = piece
                .checked_sub(1)
                .and_then(|n| self.pieces.get(n))
                .map_or(0, |(_, number)| *number);
            found(number, finding);
        }
        self.text.clear();
        self.pieces.clear();
    }
}

impl<'l> Recorded<'l> {
    /// A new recording.
    pub fn new(lint: &'l Lint) -> Self {
        let scanner = Some(Scanner::default());
        Recorded {
            lint,
            scanner,
            texts: Vec::new(),
            plain: Joined::default(),
            reported: HashMap::new(),
        }
    }

    /// Takes the next line, without its line feed, and its 1-based number. `found` gets what is
    /// found, with the number of the line in which it begins, as soon as its text has ended.
    pub fn line(&mut self, number: u64, line: &str, found: &mut dyn FnMut(u64, Finding)) {
        let mut scanner = self.scanner.take().unwrap_or_default();
        match scanner.read(line) {
            Ok(event) => {
                self.end_plain(found);
                self.event(&event, number, found);
            }
            Err(_) => self.other(line, number, found),
        }
        self.scanner = Some(scanner);
    }

    /// The recording has ended.
    pub fn finish(&mut self, found: &mut dyn FnMut(u64, Finding)) {
        self.end_plain(found);
        self.end(|_| true, found);
        self.reported.clear();
    }

    fn event(&mut self, event: &Event<'_>, number: u64, found: &mut dyn FnMut(u64, Finding)) {
        let stream = event.stream().map(|s| s.text());
        let choice = event.choice();
        match event.kind() {
            Kind::ContentDelta | Kind::Thinking => {
                let reasoning = event.kind() == Kind::Thinking;
                let text = if reasoning {
                    Thinking::read(event).text
                } else {
                    ContentDelta::read(event).text
                };
                let at = self.texts.iter().position(|(of, _)| {
                    of.stream.as_deref() == stream
                        && of.choice == choice
                        && of.reasoning == reasoning
                });
                let at = at.unwrap_or_else(|| {
                    self.texts.push((
                        Of {
                            stream: stream.map(Into::into),
                            choice,
                            reasoning,
                        },
                        Joined::default(),
                    ));
                    self.texts.len() - 1
                });
                let joined = &mut self.texts[at].1;
                joined.begin(number);
                text.append_to(&mut joined.text);
                if joined.text.len() > LONGEST {
                    self.end(
                        |of| of.stream.as_deref() == stream && of.choice == choice,
                        found,
                    );
                }
            }
            Kind::StreamStart | Kind::StreamEnd => {
                self.end(|of| of.stream.as_deref() == stream, found)
            }
            Kind::ToolResult => {
                self.once(&ToolResult::read(event).output.str(), number, found);
            }
            Kind::Message => {
                self.end(
                    |of| of.stream.as_deref() == stream && of.choice == choice,
                    found,
                );
                Message::read(event)
                    .message
                    .with(|message| self.message(message, number, found));
            }
            _ => {}
        }
    }

    /// A line that is not an event.
    fn other(&mut self, line: &str, number: u64, found: &mut dyn FnMut(u64, Finding)) {
        // A line of server-sent events may hold JSON too.
        let json = line
            .strip_prefix("data:")
            .unwrap_or(line)
            .trim_ascii_start();
        match Raw::parse(json) {
            Ok(value) if value.is_object() && value.get("role").is_some() => {
                self.end_plain(found);
                self.message(value, number, found);
            }
            Ok(value) if value.is_object() || value.is_array() => {
                self.end_plain(found);
                self.strings(value, number, found);
            }
            _ => {
                self.plain.begin(number);
                self.plain.text.push_str(line);
                self.plain.text.push('\n');
                if self.plain.text.len() > LONGEST {
                    self.end_plain(found);
                }
            }
        }
    }

    /// Every string in JSON of an unknown shape. Its depth is bounded by the reader.
    fn strings(&mut self, value: Raw<'_>, number: u64, found: &mut dyn FnMut(u64, Finding)) {
        if let Some(text) = value.str() {
            self.once(&text, number, found);
        }
        value
            .items()
            .for_each(|item| self.strings(item, number, found));
        value
            .entries()
            .for_each(|(_, member)| self.strings(member, number, found));
    }

    /// A chat message: its content, as text or in parts, and its reasoning, without what was
    /// reported of its deltas.
    fn message(&mut self, message: Raw<'_>, number: u64, found: &mut dyn FnMut(u64, Finding)) {
        if matches!(
            message.get_str("role").as_deref(),
            Some("system" | "developer")
        ) {
            return;
        }
        let content = message.get("content");
        let parts = content
            .into_iter()
            .flat_map(Raw::items)
            .filter_map(|part| part.get_str("text"));
        let texts = content
            .and_then(Raw::str)
            .into_iter()
            .chain(parts)
            .chain(message.get_str("reasoning"));
        for text in texts {
            for finding in self.lint.search(&text) {
                let key = (finding.marker.clone(), finding.excerpt.clone());
                match self.reported.get_mut(&key) {
                    Some(times) if *times > 0 => *times -= 1,
                    _ => found(number, finding),
                }
            }
        }
    }

    /// A text in one line.
    fn once(&mut self, text: &str, number: u64, found: &mut dyn FnMut(u64, Finding)) {
        for finding in self.lint.search(text) {
            report(&mut self.reported, &finding);
            found(number, finding);
        }
    }

    fn end_plain(&mut self, found: &mut dyn FnMut(u64, Finding)) {
        self.plain.search(self.lint, found);
    }

    /// The texts that fit have ended.
    fn end(&mut self, fits: impl Fn(&Of) -> bool, found: &mut dyn FnMut(u64, Finding)) {
        let reported = &mut self.reported;
        let mut ended: Vec<(u64, Finding)> = Vec::new();
        self.texts.retain_mut(|(of, joined)| {
            let fits = fits(of);
            if fits {
                joined.search(self.lint, &mut |number, finding| {
                    ended.push((number, finding))
                });
            }
            !fits
        });
        // Reasoning and answer were searched one after the other.
        ended.sort_by_key(|(number, _)| *number);
        for (number, finding) in ended {
            report(reported, &finding);
            found(number, finding);
        }
    }
}

fn report(reported: &mut HashMap<(String, String), usize>, finding: &Finding) {
    *reported
        .entry((finding.marker.clone(), finding.excerpt.clone()))
        .or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::Look;

    fn found(lines: &[&str]) -> Vec<String> {
        let lint = Lint::new(&Look::new("auto").expect("all"));
        let mut recorded = Recorded::new(&lint);
        let mut all = Vec::new();
        let mut found =
            |number: u64, finding: Finding| all.push(format!("{number} {}", finding.marker));
        for (number, line) in (1..).zip(lines) {
            recorded.line(number, line, &mut found);
        }
        recorded.finish(&mut found);
        all
    }

    const START: &str = r#"{"type":"stream_start","v":1}"#;
    const END: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;

    #[test]
    fn deltas_are_joined_and_a_message_repeats_them_in_vain() {
        let message = r#"{"type":"message","message":{"role":"assistant","content":"Yes.</think> No.<tool_call>"}}"#;
        let lines = [
            START,
            r#"{"type":"content_delta","text":"Yes.</th"}"#,
            r#"{"type":"thinking","text":"<|im_"}"#,
            r#"{"type":"content_delta","text":"ink> No."}"#,
            r#"{"type":"content_delta","text":"<tool_call>"}"#,
            r#"{"type":"thinking","text":"end|>"}"#,
        ];
        let want = ["2 </think>", "3 <|im_end|>", "5 <tool_call>"];
        assert_eq!(found(&[&lines[..], &[END]].concat()), want);
        assert_eq!(found(&[&lines[..], &[message, END]].concat()), want);
        assert_eq!(found(&[&lines[..], &[END, message]].concat()), want);
        assert_eq!(found(&[message]), ["1 </think>", "1 <tool_call>"]);
        let twice = [&lines[..], &[END, message, message]].concat();
        assert_eq!(found(&twice)[3..], ["9 </think>", "9 <tool_call>"]);
    }

    #[test]
    fn streams_choices_and_codes_do_not_mix() {
        let lines = [
            r#"{"type":"content_delta","stream":"a","text":"<tool_"}"#,
            r#"{"type":"content_delta","stream":"b","text":"call> `"}"#,
            r#"{"type":"content_delta","stream":"b","choice":1,"text":"<|eot_"}"#,
            r#"{"type":"content_delta","stream":"b","text":"<|eot_id|>`"}"#,
            r#"{"type":"content_delta","stream":"b","choice":1,"text":"id|>"}"#,
        ];
        assert_eq!(found(&lines), ["3 <|eot_id|>"]);
    }

    #[test]
    fn results_messages_json_and_plain_text() {
        let result = r#"{"type":"tool_result","tool_id":"a","tool_name":"f","status":"success","output":"x <tool_call>"}"#;
        let told = r#"{"type":"message","message":{"role":"tool","tool_call_id":"a","content":"x <tool_call>"}}"#;
        assert_eq!(found(&[result, told]), ["1 <tool_call>"]);
        assert_eq!(
            found(&[r#"{"role":"system","content":"<tool_call>"}"#]),
            [""; 0]
        );
        assert_eq!(
            found(&[r#"{"role":"user","content":[{"type":"text","text":"<think>"}]}"#]),
            ["1 <think>"]
        );
        assert_eq!(
            found(&[r#"data: {"choices":[{"delta":{"content":"a <|eom_id|>"}}]}"#]),
            ["1 <|eom_id|>"]
        );
        assert_eq!(
            found(&[
                "The plan.",
                "```",
                "<think>",
                "```",
                "{",
                " \"name\": \"f\",",
                " \"arguments\": {}",
                "}",
                "</think>"
            ]),
            ["5 JSON call of f", "9 </think>"]
        );
        assert_eq!(
            found(&[r#"{"type":"tool_call_delta","index":0,"arguments":"{\"a\":\"<think>\"}"}"#]),
            [""; 0]
        );
    }
}
