//! The lines that the machines write, each read once.

use event::{Kind, Scanner};

/// One line, and those of its fields that laws look at.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub raw: String,
    pub kind: Kind,
    pub choice: u32,
    pub index: Option<i64>,
    pub id: Option<String>,
    pub name: String,
    /// `text`, or the fragment of a delta.
    pub text: String,
    /// The `arguments` of a call, as JSON.
    pub arguments: String,
    pub code: String,
    pub reason: String,
    pub commit: String,
    pub is_refused: bool,
    pub is_repaired: bool,
}

impl Line {
    /// Reads a line of output: one event on one line, without a raw control character.
    pub fn read(raw: String) -> Line {
        let mut scanner = Scanner::default();
        let event = scanner
            .read(&raw)
            .unwrap_or_else(|e| panic!("no event: {e}: {raw}"));
        assert!(
            raw.starts_with("{\"type\":\""),
            "the type does not come first: {raw}"
        );
        assert!(
            !raw.chars().any(char::is_control),
            "a raw control character: {raw:?}"
        );
        let kind = event.kind();
        let text = |key: &str| event.get_str(key).unwrap_or_default().into_owned();
        let is_call = kind == Kind::ToolCall;
        let mut line = Line {
            kind,
            choice: event.choice(),
            index: None,
            id: None,
            name: String::new(),
            text: String::new(),
            arguments: String::new(),
            code: String::new(),
            reason: String::new(),
            commit: String::new(),
            is_refused: false,
            is_repaired: false,
            raw: String::new(),
        };
        match kind {
            Kind::ToolCall | Kind::ToolCallDelta | Kind::Retract => {
                line.index = event.get("index").and_then(|n| n.i64());
                line.id = event.get_str("tool_id").map(|id| id.into_owned());
                line.name = text("tool_name");
                line.is_refused = is_call && event.get("error").is_some();
                line.is_repaired = is_call && event.get("repairs").is_some();
                match is_call {
                    true => {
                        line.arguments = event.get("arguments").map_or("", |a| a.text()).to_owned()
                    }
                    false => line.text = text("arguments"),
                }
                line.commit = text("commit");
            }
            Kind::ContentDelta | Kind::Thinking | Kind::RefusalDelta => line.text = text("text"),
            Kind::Warning | Kind::Error => line.code = text("code"),
            Kind::StreamEnd => line.reason = text("finish_reason"),
            _ => {}
        }
        line.raw = raw;
        line
    }

    pub fn all(lines: Vec<String>) -> Vec<Line> {
        lines.into_iter().map(Line::read).collect()
    }

    /// Whether the line has the id, or has none and the id is empty.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Whether this takes `call` back by its id.
    pub fn retracts(&self, call: &Line) -> bool {
        self.kind == Kind::Retract && self.choice == call.choice && self.id() == call.id()
    }
}

impl AsRef<str> for Line {
    fn as_ref(&self) -> &str {
        &self.raw
    }
}

/// Checks lines once more, with a reader of JSON that is not ours.
pub fn is_json(lines: &[Line]) {
    for line in lines {
        let json: Result<&serde_json::value::RawValue, _> = serde_json::from_str(&line.raw);
        assert!(json.is_ok(), "no JSON: {}", line.raw);
    }
}

/// Whether the text is a JSON object, by serde_json.
pub fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

/// The lines as they are, for a message.
pub fn raw(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("\n{}", line.raw)).collect()
}
