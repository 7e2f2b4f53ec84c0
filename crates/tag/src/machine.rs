//! The machine of `tag-parse`: it takes the calls out of the text of a stream and emits them as
//! `tool_call_delta` events.

mod alone;
mod choice;
mod events;
#[cfg(test)]
mod tests;

use crate::dialect::Dialect;
use crate::look::{Look, UnknownDialect};
use crate::parser::Parser;
use crate::table::Dialects;
use alone::AloneReading;
use choice::TagChoice;
use event::payload::{ContentDelta, Details, StreamEnd, StreamStart, Warning};
use event::{Choices, Event, Json, Kind, Machine, Sink, Text};
use events::{SOURCE, warning_key};
use json::{ToolList, ToolsError};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// How streams are read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The dialects to search for; without it those that `stream_start` names, else all.
    pub look: Option<Rc<Look>>,
    /// What `stream_start` can name: the table's dialects, and a user's own.
    pub dialects: Dialects,
    /// Streams with native calls are read, too.
    pub always: bool,
    /// Where `stream_start` names no dialect, the model's name decides which forms count that prose
    /// can have, too: those of its family. Of a model whose family is not known, a call in such a
    /// form counts only where it is alone and fits the schema of a listed tool.
    pub by_model: bool,
    /// The tools that calls may name; without it those of `stream_start`.
    pub tools: Option<Rc<ToolList>>,
    /// A call must name a tool of a list: without a list, text stays text. Otherwise any name
    /// counts where no list is known.
    pub needs_tools: bool,
    /// The end of the prompt; without it that of `stream_start`.
    pub prefill: Option<String>,
    /// The beginning of a text whose prompt is not known is emitted at once, in dialects whose
    /// prompt seldom opens reasoning. If it turns out to be reasoning, its calls are retracted.
    pub eager: bool,
}

/// What all streams of a run share: the options, and what was built for the streams before, which
/// are often alike.
#[derive(Debug, Default)]
pub struct Streams {
    options: Options,
    built: RefCell<Built>,
}

#[derive(Debug, Default)]
struct Built {
    looks: HashMap<String, Rc<Look>>,
    /// The last list of tools, by its text, and what of it cannot be read.
    tools: Option<(String, Rc<ToolList>, Vec<String>)>,
}

impl Streams {
    /// Streams that are read with these options.
    pub fn new(options: Options) -> Streams {
        Streams {
            options,
            built: RefCell::default(),
        }
    }

    /// The machine for the stream that `first` begins.
    pub fn begin(&self, first: &Event<'_>) -> Tag {
        self.begin_of(None, first)
    }

    /// The same for a model of this family, if [`Options::by_model`] asks for one and the model's
    /// name has none.
    pub fn begin_of(&self, family: Option<&'static Dialect>, first: &Event<'_>) -> Tag {
        let options = &self.options;
        let started = first.kind() == Kind::StreamStart;
        let start = if started {
            StreamStart::read(first)
        } else {
            StreamStart::default()
        };
        let active = options.always
            || matches!(
                start.tools_mode.map(Text::str).as_deref(),
                None | Some("tag")
            );
        let mut tag = Tag {
            setting: None,
            choices: Choices::default(),
            with_text: Vec::new(),
            unknown: None,
            unread: Vec::new(),
            warned: HashSet::new(),
            text: String::new(),
            kept: 0,
        };
        if !active {
            return tag;
        }
        let (look, mut alone) = (options.look.clone(), None);
        let look = look.or_else(|| {
            if !options.by_model || start.dialect.is_some() {
                return None;
            }
            let family = options
                .dialects
                .of_model(&start.model.unwrap_or_default().str())
                .or(family);
            alone = family.is_none().then(|| self.look("auto").ok()).flatten();
            Some(self.certain(family))
        });
        let look = look.unwrap_or_else(|| {
            let names = start.dialect.map_or(Cow::Borrowed("auto"), Text::str);
            self.look(&names).unwrap_or_else(|unknown| {
                tag.unknown = Some(unknown);
                self.look("auto")
                    .unwrap_or_else(|_| Rc::new(Look::of(Vec::new())))
            })
        });
        let tools = options.tools.clone().or_else(|| {
            let (tools, unread) = self.tools(&start.tools.map(Json::text)?);
            tag.unread = unread;
            Some(tools)
        });
        let tools = tools.or_else(|| options.needs_tools.then(Rc::default));
        // Without a `stream_start` the prompt is taken for empty: a missing one is no reason to
        // hold text back.
        let prefill = options
            .prefill
            .clone()
            .or_else(|| start.prefill.map(|text| text.str().into_owned()));
        let prefill = if started {
            prefill
        } else {
            Some(prefill.unwrap_or_default())
        };
        tag.setting = Some(Setting {
            look,
            alone,
            tools,
            prefill,
            eager: options.eager,
        });
        tag
    }

    /// What is searched for where a model writes no dialect, or that of its family.
    fn certain(&self, family: Option<&'static Dialect>) -> Rc<Look> {
        let name = format!("of {}", family.map_or("none", |d| d.name));
        let mut built = self.built.borrow_mut();
        Rc::clone(
            built
                .looks
                .entry(name)
                .or_insert_with(|| Rc::new(Look::certain(&self.options.dialects, family))),
        )
    }

    fn look(&self, names: &str) -> Result<Rc<Look>, UnknownDialect> {
        if let Some(look) = self.built.borrow().looks.get(names) {
            return Ok(Rc::clone(look));
        }
        let look = Rc::new(Look::among(&self.options.dialects, names)?);
        self.built
            .borrow_mut()
            .looks
            .insert(names.to_owned(), Rc::clone(&look));
        Ok(look)
    }

    /// The tools of a list, and what of it cannot be read, for warnings.
    fn tools(&self, json: &str) -> (Rc<ToolList>, Vec<String>) {
        let mut built = self.built.borrow_mut();
        if let Some((_, tools, unread)) = built.tools.as_ref().filter(|(text, ..)| text == json) {
            return (Rc::clone(tools), unread.clone());
        }
        let (tools, unread) = match ToolList::read_valid(json) {
            Ok(tools) => {
                let unread = |e: &ToolsError| format!("{e}; its calls stay text");
                let unread = tools.left_out().iter().map(unread).collect();
                (Rc::new(tools), unread)
            }
            // A list that cannot be read must not let every name count: it holds no tool.
            Err(e) => (
                Rc::default(),
                vec![format!(
                    "the stream's tools cannot be read, all calls stay text: {e}"
                )],
            ),
        };
        built.tools = Some((json.to_owned(), Rc::clone(&tools), unread.clone()));
        (tools, unread)
    }
}

/// Reads one stream; see the module.
#[derive(Debug)]
pub struct Tag {
    /// `None`: its text is passed on unread.
    setting: Option<Setting>,
    choices: Choices<TagChoice>,
    /// The places of the choices whose parser was given text since the last event that interrupts
    /// all.
    with_text: Vec<usize>,
    /// A name in `stream_start` that is not in the table, for one warning.
    unknown: Option<UnknownDialect>,
    /// What cannot be read of the tools in `stream_start`, for a warning each.
    unread: Vec<String>,
    /// Warnings of this command that are in the input, since the stream has been through it before.
    warned: HashSet<String>,
    /// The text at hand, where it had escapes.
    text: String,
    /// The bytes that are kept of all choices.
    kept: usize,
}

/// How the text of a stream is read.
#[derive(Clone, Debug)]
struct Setting {
    look: Rc<Look>,
    /// All forms, where calls in some of them must be alone.
    alone: Option<Rc<Look>>,
    tools: Option<Rc<ToolList>>,
    prefill: Option<String>,
    eager: bool,
}

impl Tag {
    /// Another machine for the stream of this one, at the beginning of the stream.
    #[must_use]
    pub fn fresh(&self) -> Tag {
        Tag {
            setting: self.setting.clone(),
            choices: Choices::default(),
            with_text: Vec::new(),
            unknown: self.unknown.clone(),
            unread: self.unread.clone(),
            warned: HashSet::new(),
            text: String::new(),
            kept: 0,
        }
    }

    fn content(&mut self, event: &Event<'_>, sink: &mut dyn Sink) {
        let text = ContentDelta::read(event).text;
        // A text with escapes is put into one buffer, reused.
        let plain = text.plain();
        if plain.is_none() {
            self.text.clear();
            text.append_to(&mut self.text);
        }
        let Some(at) = place(&self.setting, &mut self.choices, event.choice()) else {
            return sink.pass();
        };
        let choice = &mut self.choices[at];
        if !std::mem::replace(&mut choice.has_text, true) {
            self.with_text.push(at);
        }
        choice.text(plain.unwrap_or(&self.text), &self.warned, sink);
        choice.count(&mut self.kept);
    }

    fn end(&mut self, cut: bool, sink: &mut dyn Sink) {
        for choice in self.choices.iter_mut().filter(|c| !c.is_native) {
            choice.finish(cut, &self.warned, sink);
        }
        self.choices = Choices::default();
        self.with_text.clear();
        self.kept = 0;
    }
}

/// The place of a choice; `None` where the text is not read.
fn place(
    setting: &Option<Setting>,
    choices: &mut Choices<TagChoice>,
    number: u32,
) -> Option<usize> {
    let setting = setting.as_ref()?;
    Some(choices.place(number, || {
        let parser = |look: &Rc<Look>| {
            let mut parser = Parser::new(
                Rc::clone(look),
                setting.tools.clone(),
                setting.prefill.as_deref(),
            );
            if setting.eager {
                parser.emit_beginning();
            }
            parser
        };
        let alone = setting
            .alone
            .as_ref()
            .map(|look| Box::new(AloneReading::new(parser(look), setting.tools.clone())));
        TagChoice::new(number, parser(&setting.look), alone)
    }))
}

/// Whether an event has a place in the text: of the details only those of the text.
fn has_place(event: &Event<'_>) -> bool {
    event.kind() != Kind::Details || Details::read(event).place == "text"
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
                for message in self.unread.drain(..) {
                    out.emit(0, Warning::new(SOURCE, "tools_unread", &message));
                }
                return;
            }
            Kind::ToolCallDelta | Kind::ToolCall => {
                if let Some(at) = place(&self.setting, &mut self.choices, event.choice()) {
                    self.choices[at].begin_native(&self.warned, out);
                    self.choices[at].count(&mut self.kept);
                }
            }
            Kind::Thinking => {
                let number = event.choice();
                if let Some(at) = self
                    .choices
                    .find(number)
                    .filter(|at| !self.choices[*at].is_native)
                {
                    self.choices[at].interrupt(&self.warned, out);
                    self.choices[at].count(&mut self.kept);
                } else if let Some(at) = place(&self.setting, &mut self.choices, number) {
                    self.choices[at].begin_in_answer();
                }
            }
            // Counts, warnings and what other commands add have no place in the text; these have
            // one.
            Kind::ServerItem | Kind::RefusalDelta | Kind::Details if has_place(event) => {
                if let Some(at) = self
                    .choices
                    .find(event.choice())
                    .filter(|at| !self.choices[*at].is_native)
                {
                    self.choices[at].interrupt(&self.warned, out);
                    self.choices[at].count(&mut self.kept);
                }
            }
            Kind::Error | Kind::Message => {
                self.with_text.sort_unstable();
                for at in self.with_text.drain(..) {
                    let choice = &mut self.choices[at];
                    choice.has_text = false;
                    if !choice.is_native {
                        choice.interrupt(&self.warned, out);
                        choice.count(&mut self.kept);
                    }
                }
            }
            Kind::Warning => {
                let warning = Warning::read(event);
                if warning.source == SOURCE {
                    let raw = warning.raw.unwrap_or_default();
                    self.warned
                        .insert(warning_key(&warning.code.str(), &raw.str()));
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

    fn kept(&self) -> usize {
        self.kept
    }
}
