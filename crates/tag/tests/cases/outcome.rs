//! The output of the machine, as lines that people review.

use serde_json::Value;
use std::fmt::{Display, Formatter, Result};
use toolpipe_tag::{CallPiece, Outlet};

/// One thing that was emitted. The pieces of a call are one item, at the place of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Content(String),
    Reasoning(String),
    Call {
        index: i64,
        name: String,
        arguments: String,
        id: Option<String>,
        done: bool,
        retracted: Option<String>,
    },
    Warning(String),
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let text = |text: &String| Value::from(&text[..]).to_string();
        match self {
            Item::Content(t) => write!(f, "content {}", text(t)),
            Item::Reasoning(t) => write!(f, "reasoning {}", text(t)),
            Item::Warning(code) => write!(f, "warning {code}"),
            Item::Call {
                name,
                retracted: Some(why),
                ..
            } => write!(f, "retract {name} {why}"),
            Item::Call {
                name,
                arguments,
                id,
                done,
                ..
            } => {
                // A line a call, so that arguments of several lines are shown as a string.
                let arguments = if arguments.contains('\n') {
                    text(arguments)
                } else {
                    arguments.clone()
                };
                write!(
                    f,
                    "{} {name} {arguments}",
                    if *done { "call" } else { "OPEN" }
                )?;
                id.as_ref().map_or(Ok(()), |id| write!(f, " #{id}"))
            }
        }
    }
}

/// Everything that was emitted, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome(pub Vec<Item>);

impl Outcome {
    /// Reads the events of one stream; adjacent pieces of text are one.
    pub(crate) fn read(lines: &[String]) -> Outcome {
        let mut out = Outcome::default();
        for line in lines {
            let event: Value = serde_json::from_str(line).expect("an event");
            let text = |key: &str| event[key].as_str().map(str::to_owned);
            match event["type"].as_str().unwrap_or_default() {
                "content_delta" => out.add(Item::Content(text("text").unwrap_or_default())),
                "thinking" => out.add(Item::Reasoning(text("text").unwrap_or_default())),
                "warning" => out.add(Item::Warning(text("code").unwrap_or_default())),
                "tool_call_delta" => out.call(CallPiece {
                    index: event["index"].as_i64().expect("an index"),
                    id: event["tool_id"].as_str(),
                    name: event["tool_name"].as_str(),
                    arguments: event["arguments"].as_str(),
                    done: event["done"].as_bool().unwrap_or_default(),
                }),
                "retract" => {
                    let at = event["index"].as_i64().expect("an index");
                    let Some(Item::Call { retracted, .. }) = out.at(at) else {
                        panic!("a call to take back: {line}")
                    };
                    *retracted = text("reason");
                }
                _ => {}
            }
        }
        out
    }

    /// The call of this index.
    fn at(&mut self, at: i64) -> Option<&mut Item> {
        self.0
            .iter_mut()
            .find(|item| matches!(item, Item::Call { index, .. } if *index == at))
    }

    fn add(&mut self, item: Item) {
        match (self.0.last_mut(), item) {
            (Some(Item::Content(before)), Item::Content(text))
            | (Some(Item::Reasoning(before)), Item::Reasoning(text)) => before.push_str(&text),
            (_, item) => self.0.push(item),
        }
    }

    /// The calls that were ever whole: name, arguments, id.
    pub(crate) fn calls(&self) -> Vec<(&str, &str, Option<&str>)> {
        self.0
            .iter()
            .filter_map(|item| match item {
                Item::Call {
                    name,
                    arguments,
                    id,
                    done: true,
                    ..
                } => Some((&name[..], &arguments[..], id.as_deref())),
                _ => None,
            })
            .collect()
    }

    /// What holds at the end, however the text was cut: calls that were taken back are not there,
    /// and no call has a number.
    pub(crate) fn lasting(&self, warnings: bool) -> Outcome {
        let mut out = Outcome::default();
        for item in &self.0 {
            match item {
                Item::Call {
                    retracted: Some(_), ..
                } => {}
                Item::Warning(_) if !warnings => {}
                Item::Call {
                    name,
                    arguments,
                    id,
                    done,
                    ..
                } => out.add(Item::Call {
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
    pub(crate) fn text(&self, reasoning: bool) -> String {
        let text = |item: &Item| match item {
            Item::Content(t) if !reasoning => Some(t.clone()),
            Item::Reasoning(t) if reasoning => Some(t.clone()),
            _ => None,
        };
        self.0.iter().filter_map(text).collect()
    }

    /// How often this warning came.
    pub(crate) fn warned(&self, code: &str) -> usize {
        self.0
            .iter()
            .filter(|item| matches!(item, Item::Warning(c) if c == code))
            .count()
    }

    /// The lines of a case file.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.iter().map(Item::to_string).collect()
    }
}

impl Outlet for Outcome {
    fn content(&mut self, text: &str) {
        self.add(Item::Content(text.to_owned()));
    }

    fn reasoning(&mut self, text: &str) {
        self.add(Item::Reasoning(text.to_owned()));
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        let index = piece.index;
        if self.at(index).is_none() {
            let name = piece.name.expect("a name with the first piece").to_owned();
            let arguments = String::new();
            let id = None;
            let done = false;
            let retracted = None;
            self.add(Item::Call {
                index,
                name,
                arguments,
                id,
                done,
                retracted,
            });
        }
        let Some(Item::Call {
            arguments,
            id,
            done,
            ..
        }) = self.at(index)
        else {
            return;
        };
        assert!(!*done, "a piece after the call was done: {piece:?}");
        arguments.push_str(piece.arguments.unwrap_or_default());
        *id = id.take().or(piece.id.map(str::to_owned));
        *done = piece.done;
    }

    fn retract(&mut self, index: i64, reason: &'static str) {
        if let Some(Item::Call { retracted, .. }) = self.at(index) {
            retracted.get_or_insert(reason.to_owned());
        }
    }

    fn warning(&mut self, code: &'static str, _message: &str, _raw: &str) {
        self.add(Item::Warning(code.to_owned()));
    }
}
