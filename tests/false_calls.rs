//! Ordinary answers are not read as calls: the recorded streams of `fixtures/streams`, but those
//! that hold calls or reasoning as text, are read for every dialect. No call is found, and their
//! text does not change.

use api::{Api, End, Stream, StreamOptions};
use event::{Collect, Kind, Scanner};
use std::rc::Rc;
use tag::{Look, Streams, TagOptions};
use testkit::bodies;

/// The text of all answers, the reasoning, and the pieces of calls.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    answer: Vec<(u32, String)>,
    reasoning: Vec<(u32, String)>,
    pieces: usize,
}

fn told(lines: &[String]) -> Told {
    let mut told = Told::default();
    let mut scanner = Scanner::default();
    for line in lines {
        let event = scanner.read(line).expect("an event");
        let texts = match event.kind() {
            Kind::ContentDelta => &mut told.answer,
            Kind::Thinking => &mut told.reasoning,
            kind => {
                told.pieces += usize::from(kind == Kind::ToolCallDelta);
                continue;
            }
        };
        let text = event.get_str("text").unwrap_or_default();
        match texts
            .iter_mut()
            .find(|(choice, _)| *choice == event.choice())
        {
            Some((_, so_far)) => so_far.push_str(&text),
            None => texts.push((event.choice(), text.into_owned())),
        }
    }
    // Text that is held back of one choice may follow that of another.
    told.answer.sort_unstable();
    told.reasoning.sort_unstable();
    told
}

/// Bodies with calls as text (rows 24 to 26 of the deviations, and tag mode itself), and with tags
/// of reasoning (row 22).
const MARKED: &[&str] = &[
    "anthropic/trap-thinking-tag-then-call",
    "mistral/trap-tool-calls-token-in-text",
    "ollama/trap-call-in-text",
    "openai-chat/trap-thinking-tag-then-call",
    "openai-chat/llamacpp-tag-",
    "openai-chat/row-22-think-tags",
    "openai-chat/row-24-",
    "openai-chat/row-25-tag-over-chunks",
    "openai-chat/row-26-end-tag-in-string",
];

/// Tools with names that are ordinary words in answers, so that forms without markers are tried
/// too.
const TOOLS: &str = r#"[
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}},
    {"type": "function", "function": {"name": "search"}}, {"type": "function", "function": {"name": "calculator"}},
    {"type": "function", "function": {"name": "read_file"}}, {"type": "function", "function": {"name": "name"}}]"#;

#[test]
fn no_recorded_stream_has_a_call_in_its_text() {
    let look = Rc::new(Look::new("auto").expect("all dialects"));
    let tools = Rc::new(json::ToolList::read(TOOLS).expect("a list of tools"));
    let mut wrong = Vec::new();
    for body in bodies()
        .into_iter()
        .filter(|body| !MARKED.iter().any(|mark| body.name.starts_with(mark)))
    {
        let bytes = std::fs::read(&body.path).expect("a body");
        let api = Api::from_name(&body.api).expect("a folder with an API's name");
        let mut stream = Stream::new(api, StreamOptions::default());
        let mut out = Collect::default();
        stream.push(&bytes, &mut out);
        stream.finish(End::Eof, &mut out);
        for tools in [None, Some(Rc::clone(&tools))] {
            let streams = Streams::new(TagOptions {
                look: Some(Rc::clone(&look)),
                always: true,
                tools,
                ..TagOptions::default()
            });
            let mut scanner = Scanner::default();
            let first = scanner.read(&out.lines[0]).expect("an event");
            let read = Collect::run(&mut streams.begin(&first), &out.lines);
            if told(&read) != told(&out.lines) {
                wrong.push(format!(
                    "{}: {:?}\n  is read as {:?}",
                    body.name,
                    told(&out.lines),
                    told(&read)
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
