//! Reads one text in every way that it may come: whole, cut anywhere, character by character, and
//! broken off anywhere.

use super::outcome::{Item, Outcome};
use event::{Collect, Scanner};
use json::ToolList;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::rc::Rc;
use testkit::places::{MARKUP, Sample, is_full};
use toolpipe_tag::{CallPiece, Look, Outlet, Parser, Streams, TagOptions};

/// A text, and what is known of the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text<'t> {
    pub dialect: &'t str,
    pub text: &'t str,
    /// The tools as JSON, where they are known.
    pub tools: Option<&'t str>,
    /// The end of the prompt, where it is known.
    pub prefill: Option<&'t str>,
    pub finish: &'t str,
}

/// What is built once for all texts.
#[derive(Default)]
pub(crate) struct Reader {
    streams: Streams,
    looks: HashMap<String, Rc<Look>>,
    tools: HashMap<String, Rc<ToolList>>,
    /// The tools on one line.
    lines: HashMap<String, String>,
}

impl Reader {
    pub(crate) fn new() -> Reader {
        Reader {
            streams: Streams::new(TagOptions::default()),
            ..Reader::default()
        }
    }

    /// Reads the text in these pieces through the machine of the command; `start` is its first
    /// event.
    fn read(&self, start: &str, pieces: &[&str], finish: &str) -> Outcome {
        let delta =
            |text: &&str| json!({"type": "content_delta", "stream": "s", "text": text}).to_string();
        let mut lines = vec![start.to_owned()];
        lines.extend(pieces.iter().filter(|piece| !piece.is_empty()).map(delta));
        lines.push(
            json!({"type": "stream_end", "stream": "s", "finish_reason": finish}).to_string(),
        );
        let mut scanner = Scanner::default();
        let mut machine = self
            .streams
            .begin(&scanner.read(&lines[0]).expect("an event"));
        Outcome::read(&Collect::run(&mut machine, &lines)[1..])
    }

    /// The event that begins the stream.
    fn start(&mut self, text: &Text<'_>) -> String {
        let mut start = format!(
            r#"{{"type":"stream_start","stream":"s","v":1,"tools_mode":"tag","dialect":"{}""#,
            text.dialect
        );
        if let Some(tools) = text.tools {
            let line = self.lines.entry(tools.to_owned()).or_insert_with(|| {
                let tools: Value = serde_json::from_str(tools).expect("a list of tools");
                tools.to_string()
            });
            start += &format!(r#","tools":{line}"#);
        }
        if let Some(prefill) = text.prefill {
            start += &format!(r#","prefill":{}"#, Value::from(prefill));
        }
        start + "}"
    }

    /// Reads the text in all ways. Gives the outcome of the text that comes character by character,
    /// which shows the most, and what does not agree: no cut may show, and a text that is broken
    /// off loses nothing and has no call that is not whole. The whole text goes through the machine
    /// of the command, and with `through_machine`, for a text of a file, its characters do too; all
    /// pieces do with `LAWS=full`.
    pub(crate) fn every(
        &mut self,
        text: &Text<'_>,
        through_machine: bool,
    ) -> (Outcome, Vec<String>) {
        let mut wrong = Vec::new();
        let all: Vec<&str> = text
            .text
            .char_indices()
            .map(|(at, c)| &text.text[at..at + c.len_utf8()])
            .collect();
        let start = self.start(text);
        let mut one_by_one = Outcome::default();
        let mut found = Found::default();
        let mut both = Both(&mut one_by_one, &mut found);
        self.parse(text, &all, text.finish != "stop", &mut both);
        if !found.retracted.is_empty() {
            wrong.push(format!(
                "calls that could run were taken back: {:?}",
                found.retracted
            ));
        }
        if through_machine || is_full() {
            one_by_one = self.read(&start, &all, text.finish);
        }
        for item in &one_by_one.0 {
            if let Item::Call {
                done: false,
                retracted: None,
                ..
            } = item
            {
                wrong.push(format!("a call is neither whole nor taken back: {item}"));
            }
        }
        let lasting = one_by_one.lasting(true);
        let whole = self.read(&start, &[text.text], text.finish);
        if whole.lasting(true) != lasting {
            wrong.push(format!(
                "whole: {:#?}\nbut one by one {:#?}",
                whole.lasting(true).lines(),
                lasting.lines()
            ));
        }
        let sample = if through_machine {
            Sample::NARROW
        } else {
            Sample::FEW
        };
        let places = sample.between(text.text, MARKUP);
        let split = sample.first_split(text.text.as_bytes(), &places, &lasting, |pieces| {
            let pieces = pieces.iter().map(|piece| str::from_utf8(piece));
            let pieces: Vec<&str> = pieces.map(|piece| piece.expect("characters")).collect();
            let split = if through_machine && is_full() {
                self.read(&start, &pieces, text.finish)
            } else {
                let mut split = Outcome::default();
                self.parse(text, &pieces, text.finish != "stop", &mut split);
                split
            };
            split.lasting(true)
        });
        if let Some((at, split)) = split {
            wrong.push(format!(
                "split at {at:?}: {:#?}\nbut one by one {:#?}",
                split.lines(),
                lasting.lines()
            ));
        }
        self.broken_off(text, &places, &one_by_one, &mut wrong);
        (one_by_one, wrong)
    }

    /// The text broken off at each of these places.
    fn broken_off(
        &mut self,
        text: &Text<'_>,
        places: &[usize],
        full: &Outcome,
        wrong: &mut Vec<String>,
    ) {
        let full = full.calls();
        let whole = text.text.len();
        for (at, cut) in places
            .iter()
            .map(|at| (*at, true))
            .chain([(whole, text.finish == "length")])
        {
            let part = &text.text[..at];
            let mut found = Found::default();
            self.parse(text, &[part], cut, &mut found);
            if found.all != part {
                wrong.push(format!(
                    "ended at {at} (cut: {cut}), not all came out: {:?}, not {part:?}",
                    found.all
                ));
                break;
            }
            if !found.retracted.is_empty() {
                wrong.push(format!(
                    "ended at {at} (cut: {cut}), calls that could run are taken back: {:?}",
                    found.retracted
                ));
                break;
            }
            let calls: Vec<_> = found.calls.iter().filter(|c| c.done).collect();
            let same = calls.len() <= full.len()
                && calls
                    .iter()
                    .zip(&full)
                    .all(|(a, b)| (&a.name[..], &a.arguments[..], a.id.as_deref()) == *b);
            if cut && !same {
                wrong.push(format!(
                    "broken off at {at} a call is done that is none of the text's: {calls:?}"
                ));
                break;
            }
        }
    }

    /// What a parser makes of these pieces of the text, and of its end after them.
    pub(crate) fn parse(
        &mut self,
        text: &Text<'_>,
        pieces: &[&str],
        cut: bool,
        out: &mut dyn Outlet,
    ) {
        self.open(text, pieces, out).finish(cut, out);
    }

    /// What a parser makes of these pieces of the text, while more may come.
    pub(crate) fn open(
        &mut self,
        text: &Text<'_>,
        pieces: &[&str],
        out: &mut dyn Outlet,
    ) -> Parser {
        let look = self
            .looks
            .entry(text.dialect.to_owned())
            .or_insert_with(|| Rc::new(Look::new(text.dialect).expect("a dialect of the table")));
        let tools = text.tools.map(|tools| {
            let new = || Rc::new(ToolList::read(tools).expect("a list of tools"));
            Rc::clone(self.tools.entry(tools.to_owned()).or_insert_with(new))
        });
        let mut parser = Parser::new(Rc::clone(look), tools, text.prefill);
        pieces.iter().for_each(|piece| parser.push(piece, out));
        parser
    }
}

/// What a parser says, with the text that it leaves out.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The whole input, put together from the output.
    pub all: String,
    pub calls: Vec<Written>,
    /// The calls that were taken back although they could have run.
    pub retracted: Vec<Written>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub index: i64,
    pub name: String,
    pub arguments: String,
    pub id: Option<String>,
    pub done: bool,
}

impl Written {
    /// Whether whoever reads the call so far may run it: `tc-accumulate` emits a call with the byte
    /// that closes its arguments.
    pub(crate) fn may_run(&self) -> bool {
        self.done
            || serde_json::from_str::<serde_json::Value>(&self.arguments)
                .is_ok_and(|value| value.is_object())
    }
}

impl Outlet for Found {
    fn content(&mut self, text: &str) {
        self.all.push_str(text);
    }

    fn reasoning(&mut self, text: &str) {
        self.all.push_str(text);
    }

    fn left_out(&mut self, text: &str) {
        self.all.push_str(text);
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        if let Some(name) = piece.name {
            self.calls.push(Written {
                index: piece.index,
                name: name.to_owned(),
                ..Written::default()
            });
        }
        let Some(call) = self
            .calls
            .iter_mut()
            .rfind(|call| call.index == piece.index)
        else {
            return;
        };
        call.arguments.push_str(piece.arguments.unwrap_or_default());
        call.id = call.id.take().or(piece.id.map(str::to_owned));
        call.done |= piece.done;
    }

    fn retract(&mut self, index: i64, _reason: &'static str) {
        let call = self.calls.iter().rfind(|call| call.index == index);
        self.retracted
            .extend(call.filter(|call| call.may_run()).cloned());
    }

    fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
}

/// What is emitted, to two readers.
struct Both<'o>(&'o mut Outcome, &'o mut Found);

impl Outlet for Both<'_> {
    fn content(&mut self, text: &str) {
        self.0.content(text);
        self.1.content(text);
    }

    fn reasoning(&mut self, text: &str) {
        self.0.reasoning(text);
        self.1.reasoning(text);
    }

    fn left_out(&mut self, text: &str) {
        self.0.left_out(text);
        self.1.left_out(text);
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        self.0.call(piece);
        self.1.call(piece);
    }

    fn retract(&mut self, index: i64, reason: &'static str) {
        self.0.retract(index, reason);
        self.1.retract(index, reason);
    }

    fn warning(&mut self, code: &'static str, message: &str, raw: &str) {
        self.0.warning(code, message, raw);
        self.1.warning(code, message, raw);
    }
}
