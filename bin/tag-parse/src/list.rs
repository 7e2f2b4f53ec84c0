//! `--list-dialects` and `--show-dialect`.

use serde_json::json;
use stdio::{Failure, Output};
use tag::{Dialect, Dialects, PromptCall, PromptChoice, PromptResult};

/// Writes the list: a heading, and between tabs a dialect's name, its other names, the models that
/// write it, a call, and where the dialect is defined.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(dialects: &Dialects) -> Result<(), Failure> {
    let mut out = Output::new();
    out.put(b"name\taliases\tmodels\texample\tsource\n")?;
    for dialect in dialects.all() {
        let name = dialect.name;
        let aliases = dialect.aliases.join(",");
        let example = dialect.example();
        let columns = [name, &aliases, dialect.models, &example, dialect.source].map(escaped);
        out.put(format!("{}\n", columns.join("\t")).as_bytes())?;
    }
    out.flush()
}

/// A column's text on one line.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\t', "\\t")
}

/// Writes all about one dialect, as Markdown: its names, what a user should know, calls, the
/// prompt, and results.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn show(dialect: &Dialect) -> Result<(), Failure> {
    let call = |id, name, arguments| PromptCall {
        id,
        name,
        arguments,
    };
    let result = |id, name, text| PromptResult { id, name, text };
    let calls = [
        call("0", "get_weather", r#"{"city": "Paris"}"#),
        call("1", "get_time", "{}"),
    ];
    let results = [
        result("0", "get_weather", "18 °C, <b>sunny</b>"),
        result("1", "get_time", "12:30"),
    ];
    let tools = json!([
        {"type": "function", "function": {"name": "get_weather", "description": "The weather in a city.", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}},
        {"type": "function", "function": {"name": "get_time", "description": "The time now.", "parameters": {
            "type": "object", "properties": {}}}}
    ]);
    let mut page = format!("# {}\n\n", dialect.name);
    for (what, text) in [
        ("Also named", &dialect.aliases.join(", ")[..]),
        ("Models", dialect.models),
        ("Source", dialect.source),
    ] {
        if !text.is_empty() {
            page.push_str(&format!("{what}: {text}\n"));
        }
    }
    for note in notes(dialect) {
        page.push_str(&format!("{note}\n"));
    }
    let prompt = dialect.system(&tools, PromptChoice::Auto);
    for (title, text) in [
        ("One call", dialect.example()),
        (
            "Two calls, the second without arguments",
            dialect.calls(&calls),
        ),
        ("The end of the system prompt", prompt),
        (
            "The message after the calls, with their results",
            dialect.results(&results),
        ),
    ] {
        // No text has as many backticks.
        page.push_str(&format!("\n{title}:\n\n````text\n{text}\n````\n"));
    }
    let mut out = Output::new();
    out.put(page.as_bytes())?;
    out.flush()
}

/// What a user of the dialect should know.
fn notes(dialect: &Dialect) -> Vec<String> {
    let holds = [
        (
            dialect.begins_messages(),
            "A call counts only where a message begins.",
        ),
        (
            dialect.needs_known_tools(),
            "A call counts only where its tool is known, since it is found in ordinary text too.",
        ),
        (
            dialect.call_closes_reasoning(),
            "Reasoning ends with the marker that ends a call.",
        ),
        (
            dialect.call_always_ends_reasoning(),
            "A call always ends reasoning.",
        ),
        (
            dialect.may_begin_in_reasoning(),
            "The prompt may end inside reasoning.",
        ),
    ];
    let mut notes: Vec<String> = holds
        .iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, note)| (*note).to_owned())
        .collect();
    let (when, characters) = match dialect.late {
        (0, auto) => ("With --dialect auto, a name", auto),
        (known, _) => ("A name", known),
    };
    if characters > 0 {
        let s = if characters == 1 { "" } else { "s" };
        notes.push(format!(
            "{when} is reported {characters} character{s} after its end."
        ));
    }
    notes
}
