//! The machine of `tag-parse`: the text of a stream, its calls taken out as `tool_call_delta` events.

use crate::look::{Look, UnknownDialect};
use crate::mark::floor;
use crate::outlet::{Outlet, Piece};
use crate::parser::Parser;
use event::payload::{ContentDelta, Retract, StreamEnd, StreamStart, Thinking, ToolCallDelta, Warning};
use event::{Choices, Event, Json, Kind, Machine, Sink, Text};
use json::Tools;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The name of the command in the warnings it writes.
const SOURCE: &str = "tag-parse";
/// How much of a text goes into a warning, in bytes.
const SHOWN: usize = 64 * 1024;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The dialects to look for; without it those that `stream_start` names, else all.
    pub look: Option<Rc<Look>>,
    /// Native streams are read too.
    pub always: bool,
    /// The tools that calls may name; without it those that `stream_start` lists.
    pub tools: Option<Rc<Tools>>,
    /// The end of the prompt; without it what `stream_start` says.
    pub prefill: Option<String>,
}

/// What all streams of a run share: what was asked for, and what was built for the streams before, which are often alike.
#[derive(Debug, Default)]
pub struct Streams {
    options: Options,
    built: RefCell<Built>,
}

#[derive(Debug, Default)]
struct Built {
    looks: HashMap<String, Rc<Look>>,
    /// The last list of tools, by its text.
    tools: Option<(String, Option<Rc<Tools>>)>,
}

impl Streams {
    /// Streams that are read as `options` say.
    pub fn new(options: Options) -> Streams {
        Streams { options, built: RefCell::default() }
    }

    /// The machine for the stream that `first` begins.
    pub fn begin(&self, first: &Event<'_>) -> Tag {
        let options = &self.options;
        let started = first.kind() == Kind::StreamStart;
        let start = if started { StreamStart::read(first) } else { StreamStart::default() };
        let active = options.always || matches!(start.tools_mode.map(Text::str).as_deref(), None | Some("tag"));
        let mut tag = Tag {
            setting: None,
            choices: Choices::default(),
            open: Vec::new(),
            unknown: None,
            warned: HashSet::new(),
            text: String::new(),
        };
        if !active {
            return tag;
        }
        let look = options.look.clone().unwrap_or_else(|| {
            let names = start.dialect.map_or(Cow::Borrowed("auto"), Text::str);
            self.look(&names).unwrap_or_else(|unknown| {
                tag.unknown = Some(unknown);
                self.look("auto").unwrap_or_else(|_| Rc::new(Look::of(Vec::new())))
            })
        });
        let tools = options.tools.clone().or_else(|| self.tools(&start.tools.map(Json::text)?));
        // Of a stream without a beginning nothing is known that would be worth holding its text for.
        let prefill = options.prefill.clone().or_else(|| start.prefill.map(|text| text.str().into_owned()));
        let prefill = if started { prefill } else { Some(prefill.unwrap_or_default()) };
        tag.setting = Some(Setting { look, tools, prefill });
        tag
    }

    fn look(&self, names: &str) -> Result<Rc<Look>, UnknownDialect> {
        if let Some(look) = self.built.borrow().looks.get(names) {
            return Ok(Rc::clone(look));
        }
        let look = Rc::new(Look::new(names)?);
        self.built.borrow_mut().looks.insert(names.to_owned(), Rc::clone(&look));
        Ok(look)
    }

    fn tools(&self, json: &str) -> Option<Rc<Tools>> {
        let mut built = self.built.borrow_mut();
        match &built.tools {
            Some((text, tools)) if text == json => tools.clone(),
            _ => {
                // A list that cannot be read must not let every name count: it holds no tool.
                let tools = Some(Rc::new(Tools::read(json).unwrap_or_default()));
                built.tools = Some((json.to_owned(), tools.clone()));
                tools
            }
        }
    }
}

/// Reads one stream; see the module.
#[derive(Debug)]
pub struct Tag {
    /// `None`: its text is passed on unread.
    setting: Option<Setting>,
    choices: Choices<Choice>,
    /// The places of those whose parser was given text since the last event that interrupts all.
    open: Vec<usize>,
    /// A name in `stream_start` that is not in the table, to be told once.
    unknown: Option<UnknownDialect>,
    /// Warnings of this command that are in the input already, since the stream has been through it.
    warned: HashSet<String>,
    /// The text at hand, where it had escapes.
    text: String,
}

/// How the text of a stream is read.
#[derive(Debug)]
struct Setting {
    look: Rc<Look>,
    tools: Option<Rc<Tools>>,
    prefill: Option<String>,
}

#[derive(Debug)]
struct Choice {
    number: u32,
    parser: Parser,
    /// The provider sent calls of its own, so that text is text.
    native: bool,
    /// Its place is among [`Tag::open`].
    open: bool,
    /// The indexes of the calls that were written and hold.
    written: Vec<i64>,
}

impl Tag {
    fn content(&mut self, event: &Event<'_>, sink: &mut dyn Sink) {
        let text = ContentDelta::read(event).text;
        // A text with escapes is put into one buffer, reused.
        let plain = text.plain();
        if plain.is_none() {
            self.text.clear();
            text.append_to(&mut self.text);
        }
        let (text, number) = (plain.unwrap_or(&self.text), event.choice());
        let Some(at) = place(&self.setting, &mut self.choices, number) else { return sink.pass() };
        let choice = &mut self.choices[at];
        if !std::mem::replace(&mut choice.open, true) {
            self.open.push(at);
        }
        // Text that nothing can begin in passes as it came.
        if choice.native || text.is_empty() || choice.parser.passes(text) {
            return sink.pass();
        }
        let mut out = Events::new(sink, number, &mut choice.written, &self.warned);
        choice.parser.push(text, &mut out);
        if out.is_only(text) {
            return sink.pass();
        }
        out.flush();
    }

    /// A call of the provider's own wins over what leaked of it into the text: calls of the text are taken back before it goes on,
    /// since it may take their indexes, and what follows in the text is text.
    fn native(&mut self, event: &Event<'_>, sink: &mut dyn Sink) {
        let number = event.choice();
        let Some(at) = place(&self.setting, &mut self.choices, number) else { return };
        let choice = &mut self.choices[at];
        if std::mem::replace(&mut choice.native, true) {
            return;
        }
        let mut out = Events::new(sink, number, &mut choice.written, &self.warned);
        choice.parser.forget_calls();
        choice.parser.finish(true, &mut out);
        out.flush();
        for index in choice.written.drain(..) {
            sink.emit(number, Retract { index: Some(index), tool_id: None, reason: "native_call".into() });
        }
    }

    fn end(&mut self, cut: bool, sink: &mut dyn Sink) {
        for choice in self.choices.iter_mut().filter(|c| !c.native) {
            let mut out = Events::new(sink, choice.number, &mut choice.written, &self.warned);
            choice.parser.finish(cut, &mut out);
            out.flush();
        }
        self.choices = Choices::default();
        self.open.clear();
    }
}

/// The place of a choice; `None` where the text is not read.
fn place(setting: &Option<Setting>, choices: &mut Choices<Choice>, number: u32) -> Option<usize> {
    let setting = setting.as_ref()?;
    Some(choices.place(number, || Choice {
        number,
        parser: Parser::new(Rc::clone(&setting.look), setting.tools.clone(), setting.prefill.as_deref()),
        native: false,
        open: false,
        written: Vec::new(),
    }))
}

impl Machine for Tag {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        match event.kind() {
            Kind::ContentDelta => return self.content(event, out),
            Kind::StreamStart => {
                out.pass();
                if let Some(unknown) = self.unknown.take() {
                    let message = format!("{unknown}; all dialects are tried");
                    out.emit(0, Warning::new(SOURCE, "unknown_dialect", &message));
                }
                return;
            }
            Kind::ToolCallDelta | Kind::ToolCall => self.native(event, out),
            Kind::Thinking => {
                let number = event.choice();
                let known = self.choices.find(number).filter(|at| !self.choices[*at].native);
                if let Some(at) = known {
                    let choice = &mut self.choices[at];
                    let mut events = Events::new(out, number, &mut choice.written, &self.warned);
                    choice.parser.interrupt(&mut events);
                    events.flush();
                } else if let Some(at) = place(&self.setting, &mut self.choices, number) {
                    // Reasoning comes by itself, so the text is the answer.
                    self.choices[at].parser.begin_in_answer();
                }
            }
            // Text that is held back came before these.
            Kind::Error | Kind::Message => {
                self.open.sort_unstable();
                for at in self.open.drain(..) {
                    let choice = &mut self.choices[at];
                    choice.open = false;
                    if choice.native {
                        continue;
                    }
                    let mut events = Events::new(out, choice.number, &mut choice.written, &self.warned);
                    choice.parser.interrupt(&mut events);
                    events.flush();
                }
            }
            Kind::Warning => {
                let warning = Warning::read(event);
                if warning.source == SOURCE {
                    self.warned.insert(told(&warning.code.str(), &warning.raw.unwrap_or_default().str()));
                }
            }
            Kind::StreamEnd => self.end(!StreamEnd::read(event).finish_reason.is_whole(), out),
            _ => {}
        }
        out.pass();
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        self.end(true, out);
    }
}

/// What tells one warning from another.
fn told(code: &str, raw: &str) -> String {
    format!("{code} {raw}")
}

/// What a parser finds, as events: pieces of text that follow each other are one event.
struct Events<'e> {
    sink: &'e mut dyn Sink,
    choice: u32,
    written: &'e mut Vec<i64>,
    warned: &'e HashSet<String>,
    /// Text that is not written yet.
    text: String,
    /// It is reasoning.
    reasoning: bool,
    /// Something else was written.
    mixed: bool,
}

impl<'e> Events<'e> {
    fn new(sink: &'e mut dyn Sink, choice: u32, written: &'e mut Vec<i64>, warned: &'e HashSet<String>) -> Self {
        Events { sink, choice, written, warned, text: String::new(), reasoning: false, mixed: false }
    }

    /// Whether all that was found is this text of the answer; it is forgotten then.
    fn is_only(&self, text: &str) -> bool {
        !self.mixed && !self.reasoning && self.text == text
    }

    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = Text::from(&self.text);
        if self.reasoning {
            self.sink.emit(self.choice, Thinking { text, provider: None });
        } else {
            self.sink.emit(self.choice, ContentDelta { text });
        }
        self.text.clear();
        self.mixed = true;
    }

    fn add(&mut self, text: &str, reasoning: bool) {
        if self.reasoning != reasoning {
            self.flush();
            self.reasoning = reasoning;
        }
        self.text.push_str(text);
    }
}

impl Outlet for Events<'_> {
    fn content(&mut self, text: &str) {
        self.add(text, false);
    }

    fn reasoning(&mut self, text: &str) {
        self.add(text, true);
    }

    fn call(&mut self, piece: Piece<'_>) {
        self.flush();
        self.mixed = true;
        if piece.name.is_some() {
            self.written.push(piece.index);
        }
        self.sink.emit(
            self.choice,
            ToolCallDelta {
                index: Some(piece.index),
                tool_id: piece.id.map(Into::into),
                tool_name: piece.name.map(Into::into),
                arguments: piece.arguments.map(Into::into),
                done: piece.done,
                provider: None,
            },
        );
    }

    fn retract(&mut self, index: i64, reason: &'static str) {
        self.flush();
        self.mixed = true;
        // A call that was taken back for another reason already is not there any more. Most are the last one.
        if let Some(at) = self.written.iter().rposition(|written| *written == index) {
            self.written.remove(at);
            self.sink.emit(self.choice, Retract { index: Some(index), tool_id: None, reason: reason.into() });
        }
    }

    fn warning(&mut self, code: &'static str, message: &str, raw: &str) {
        self.flush();
        self.mixed = true;
        let shown = &raw[..floor(raw, SHOWN)];
        if !self.warned.is_empty() && self.warned.contains(&told(code, shown)) {
            return;
        }
        let raw_bytes = (shown.len() < raw.len()).then_some(raw.len() as u64);
        let raw = Some(shown).filter(|shown| !shown.is_empty()).map(Into::into);
        self.sink.emit(self.choice, Warning { raw, raw_bytes, ..Warning::new(SOURCE, code, message) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::{Collect, Scanner};

    const CALL: &str = r#"{"type":"content_delta","text":"<tool name=\"g\">{}</tool>"}"#;

    /// What comes out of a stream with these members in its `stream_start`, without that line.
    fn run(start: &str, lines: &[&str]) -> Vec<String> {
        let start = format!(r#"{{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"tool-name-tag",{start}}}"#);
        let mut tag = Streams::new(Options::default()).begin(&Scanner::default().read(&start).unwrap());
        let lines = std::iter::once(&start[..]).chain(lines.iter().copied());
        Collect::run(&mut tag, lines).split_off(1)
    }

    #[test]
    fn a_native_call_takes_back_every_call_of_the_text_before_it_takes_their_indexes() {
        let native = r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f"}"#;
        assert_eq!(
            run(r#""prefill":"""#, &[CALL, native, CALL]),
            [
                r#"{"type":"tool_call_delta","index":0,"tool_name":"g","arguments":"{}","done":true}"#,
                r#"{"type":"retract","index":0,"reason":"native_call"}"#,
                native,
                CALL,
            ]
        );
    }

    #[test]
    fn a_list_of_tools_that_cannot_be_read_has_none() {
        for tools in [r#"{"a":1}"#, r#"[{"name":"g"},{"name":"g"}]"#] {
            let out = run(&format!(r#""prefill":"","tools":{tools}"#), &[CALL]);
            assert!(out.iter().all(|line| !line.contains("tool_call_delta")), "{out:?}");
        }
    }

    #[test]
    fn text_that_is_held_comes_out_before_a_message_or_an_error() {
        for after in [r#"{"type":"error","code":"x"}"#, r#"{"type":"message","message":{"role":"assistant"}}"#] {
            let held = r#"{"type":"content_delta","text":"hi <tool"}"#;
            let text = |text: &str| format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
            assert_eq!(run(r#""prefill":"""#, &[held, after]), [text("hi "), text("<tool"), after.to_owned()]);
        }
    }
}
