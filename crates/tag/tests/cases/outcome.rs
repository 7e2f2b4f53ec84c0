//! What came out of the machine, as lines that people review.

use serde_json::Value;
use std::fmt::{Display, Formatter, Result};

/// One thing that came out. Pieces of a call stand where the first of them came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Content(String),
    Reasoning(String),
    Call { index: i64, name: String, arguments: String, id: Option<String>, done: bool, retracted: Option<String> },
    Warning(String),
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let text = |text: &String| Value::from(&text[..]).to_string();
        match self {
            Item::Content(t) => write!(f, "content {}", text(t)),
            Item::Reasoning(t) => write!(f, "reasoning {}", text(t)),
            Item::Warning(code) => write!(f, "warning {code}"),
            Item::Call { name, retracted: Some(why), .. } => write!(f, "retract {name} {why}"),
            Item::Call { name, arguments, id, done, .. } => {
                // A line a call, so that arguments of several lines are shown as a string.
                let arguments = if arguments.contains('\n') { text(arguments) } else { arguments.clone() };
                write!(f, "{} {name} {arguments}", if *done { "call" } else { "OPEN" })?;
                id.as_ref().map_or(Ok(()), |id| write!(f, " #{id}"))
            }
        }
    }
}

/// Everything that came out, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome(pub Vec<Item>);

impl Outcome {
    /// Reads the events of one stream; adjacent pieces of text are one.
    pub fn read(lines: &[String]) -> Outcome {
        let mut out = Outcome::default();
        for line in lines {
            let event: Value = serde_json::from_str(line).expect("an event");
            let text = |key: &str| event[key].as_str().map(str::to_owned);
            match event["type"].as_str().unwrap_or_default() {
                "content_delta" => out.add(Item::Content(text("text").unwrap_or_default())),
                "thinking" => out.add(Item::Reasoning(text("text").unwrap_or_default())),
                "warning" => out.add(Item::Warning(text("code").unwrap_or_default())),
                "tool_call_delta" => {
                    let at = event["index"].as_i64().expect("an index");
                    if !out.0.iter().any(|i| matches!(i, Item::Call { index, .. } if *index == at)) {
                        let name = text("tool_name").expect("a name with the first piece");
                        out.add(Item::Call {
                            index: at,
                            name,
                            arguments: String::new(),
                            id: None,
                            done: false,
                            retracted: None,
                        });
                    }
                    let Some((arguments, id, done)) = out.call(at) else { continue };
                    assert!(!*done, "a piece after the call was done: {line}");
                    arguments.push_str(&text("arguments").unwrap_or_default());
                    *id = id.take().or(text("tool_id"));
                    *done = event["done"].as_bool().unwrap_or_default();
                }
                "retract" => {
                    let at = event["index"].as_i64();
                    let call = out.0.iter_mut().find(|i| matches!(i, Item::Call { index, .. } if Some(*index) == at));
                    let Some(Item::Call { retracted, .. }) = call else { panic!("a call to take back: {line}") };
                    *retracted = text("reason");
                }
                _ => {}
            }
        }
        out
    }

    fn call(&mut self, at: i64) -> Option<(&mut String, &mut Option<String>, &mut bool)> {
        self.0.iter_mut().find_map(|item| match item {
            Item::Call { index, arguments, id, done, .. } if *index == at => Some((arguments, id, done)),
            _ => None,
        })
    }

    fn add(&mut self, item: Item) {
        match (self.0.last_mut(), item) {
            (Some(Item::Content(before)), Item::Content(text))
            | (Some(Item::Reasoning(before)), Item::Reasoning(text)) => before.push_str(&text),
            (_, item) => self.0.push(item),
        }
    }

    /// The calls that were ever whole: name, arguments, id.
    pub fn calls(&self) -> Vec<(&str, &str, Option<&str>)> {
        self.0
            .iter()
            .filter_map(|item| match item {
                Item::Call { name, arguments, id, done: true, .. } => Some((&name[..], &arguments[..], id.as_deref())),
                _ => None,
            })
            .collect()
    }

    /// What holds at the end, however the text was cut: calls that were taken back are not there, and no call has a number.
    pub fn lasting(&self, warnings: bool) -> Outcome {
        let mut out = Outcome::default();
        for item in &self.0 {
            match item {
                Item::Call { retracted: Some(_), .. } => {}
                Item::Warning(_) if !warnings => {}
                Item::Call { name, arguments, id, done, .. } => out.add(Item::Call {
                    index: 0,
                    name: name.clone(),
                    arguments: arguments.clone(),
                    id: id.clone(),
                    done: *done,
                    retracted: None,
                }),
                item => out.add(item.clone()),
            }
        }
        out
    }

    /// All text of the answer, or all reasoning.
    pub fn text(&self, reasoning: bool) -> String {
        let text = |item: &Item| match item {
            Item::Content(t) if !reasoning => Some(t.clone()),
            Item::Reasoning(t) if reasoning => Some(t.clone()),
            _ => None,
        };
        self.0.iter().filter_map(text).collect()
    }

    /// How often this warning came.
    pub fn warned(&self, code: &str) -> usize {
        self.0.iter().filter(|item| matches!(item, Item::Warning(c) if c == code)).count()
    }

    /// The lines of a case file.
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(Item::to_string).collect()
    }
}
