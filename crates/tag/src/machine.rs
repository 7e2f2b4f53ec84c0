//! The engine of `tag-parse`: it extracts the calls from the text of a stream and emits them as
//! `tool_call_delta` events.

mod alone;
mod choice;
mod leftover;

use crate::dialect::Dialect;
use crate::look::Look;
use crate::machine::alone::AloneReading;
use crate::machine::choice::{SOURCE, TagChoice, warning_key};
use crate::machine::leftover::LeftoverReading;
use crate::parser::Parser;
use crate::table::{Dialects, UnknownDialect};
use event::payload::{Details, StreamEnd, StreamStart, Warning};
use event::{Choices, Event, Json, Kind, Machine, Sink, Text};
use json::{RecentTools, ToolList, ToolsError};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Options for reading streams.
#[derive(Clone, Debug, Default)]
pub struct TagOptions {
    /// The dialects to search for. With `None`, the dialects that `stream_start` names are searched
    /// for, or all dialects if it names none.
    pub look: Option<Rc<Look>>,
    /// The dialects that `stream_start` can name: those of the table and those of users' files.
    pub dialects: Dialects,
    /// Whether streams with native calls are parsed too.
    pub always: bool,
    /// Whether streams of mode `native` whose request had tools are parsed too. Forms that also
    /// occur in prose then count only if they belong to the model's family: the dialect that
    /// `stream_start` names, or else the one that the model's name suggests. If the family is
    /// unknown, a call in such a form counts only if it is alone and fits the schema of a listed
    /// tool.
    pub by_model: bool,
    /// The tools that calls may name. With `None`, those of `stream_start` are used.
    pub tools: Option<Rc<ToolList>>,
    /// The lists of tools of earlier streams.
    pub recent: Rc<RecentTools>,
    /// Whether a call must name a listed tool: without a list, all text stays text. If `false`, any
    /// name counts when no list is known.
    pub needs_tools: bool,
    /// The end of the prompt. With `None`, the end that `stream_start` gives is used.
    pub prefill: Option<String>,
    /// Whether the beginning of a text with an unknown prompt is emitted at once, in dialects whose
    /// prompt seldom opens reasoning. If the beginning turns out to be reasoning, its calls are
    /// retracted.
    pub eager: bool,
}

/// State shared by all streams of a run: the options, and everything built for earlier streams,
/// which are often alike.
#[derive(Debug, Default)]
pub struct Streams {
    options: TagOptions,
    built: RefCell<Built>,
}

#[derive(Debug, Default)]
struct Built {
    looks: HashMap<String, Rc<Look>>,
}

impl Streams {
    /// Creates the state for streams that are read with these options.
    pub fn new(options: TagOptions) -> Streams {
        Streams {
            options,
            built: RefCell::default(),
        }
    }

    /// Creates the parser for the stream that `first` begins.
    pub fn begin(&self, first: &Event<'_>) -> Tag {
        let options = &self.options;
        let started = first.kind() == Kind::StreamStart;
        let start = if started {
            StreamStart::read(first)
        } else {
            StreamStart::default()
        };
        let mode = start.tools_mode.map(Text::str);
        let is_tag = matches!(mode.as_deref(), None | Some("tag"));
        let by_model = options.by_model && !is_tag;
        let mut tag = Tag::default();
        let is_read = options.always || is_tag || (by_model && self.has_tools(&start));
        if !is_read {
            return tag;
        }
        let tools = options.tools.clone().or_else(|| {
            let (tools, unread) = self.tools(&start.tools.map(Json::text)?);
            tag.unread = unread;
            Some(tools)
        });
        let prefill = options.prefill.clone();
        let prefill = prefill.or_else(|| start.prefill.map(|text| text.str().into_owned()));
        let (look, alone) = self.looks(by_model, &start, &mut tag.unknown);
        let has_tools = tools.as_ref().is_some_and(|tools| has_any(tools));
        let needs_all = options.by_model && has_tools;
        let all = needs_all.then(|| self.look("auto").ok()).flatten();
        tag.setting = Some(Setting {
            all: all.filter(|all| !Rc::ptr_eq(all, &look)),
            look,
            alone,
            is_tag,
            tools: tools.or_else(|| options.needs_tools.then(Rc::default)),
            // Without a `stream_start` assume an empty prompt, so that no text is held back.
            prefill: prefill.or_else(|| (!started).then(String::new)),
            // Most servers with native calls remove the reasoning from the text. If a server does
            // not, a call before the end of the reasoning was only rehearsed.
            eager: options.eager || by_model,
        });
        tag
    }

    /// Whether the request of a native stream had tools.
    fn has_tools(&self, start: &StreamStart<'_>) -> bool {
        let is_native = start.tools_mode.is_some_and(|mode| mode == "native");
        let listed = || start.tools.map(|tools| self.tools(&tools.text()).0);
        let tools = self.options.tools.clone();
        is_native && tools.or_else(listed).is_some_and(|tools| has_any(&tools))
    }

    /// Returns the dialects to search for in a stream with this beginning. If calls in some forms
    /// must be alone, also returns all forms.
    fn looks(
        &self,
        by_model: bool,
        start: &StreamStart<'_>,
        unknown: &mut Option<UnknownDialect>,
    ) -> (Rc<Look>, Option<Rc<Look>>) {
        let auto = || {
            let look = self.look("auto");
            look.unwrap_or_else(|_| Rc::new(Look::of(Vec::new())))
        };
        let names = start.dialect.map(Text::str);
        match (&self.options.look, names) {
            // Markers that do not occur in prose count in all dialects, whatever the family.
            (Some(look), _) if by_model && look.dialects.len() == 1 => {
                (self.certain(look.dialects.first().copied()), None)
            }
            (Some(look), _) => (Rc::clone(look), None),
            (None, names) if by_model => {
                let dialects = &self.options.dialects;
                let named = names.and_then(|name| {
                    let found = dialects.find(&name);
                    found.map_err(|why| *unknown = Some(why)).ok()
                });
                let model = start.model.unwrap_or_default();
                let family = named.or_else(|| dialects.of_model(&model.str()));
                (self.certain(family), family.is_none().then(auto))
            }
            (None, Some(names)) => {
                let look = self.look(&names).unwrap_or_else(|why| {
                    *unknown = Some(why);
                    auto()
                });
                (look, None)
            }
            (None, None) => (auto(), None),
        }
    }

    /// Returns the search for all forms except those that also occur in prose; of these, only the
    /// forms of `family` are searched for. `None` means that the family is unknown.
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

    /// Returns the tools of a list, and the errors of tools that could not be read, for warnings.
    fn tools(&self, json: &str) -> (Rc<ToolList>, Vec<String>) {
        match self.options.recent.read_valid(json) {
            Ok(tools) => {
                let unread = |e: &ToolsError| format!("{e}; its calls stay text");
                let unread = tools.left_out().iter().map(unread).collect();
                (tools, unread)
            }
            // An unreadable list must not make every name count, so it is treated as an empty list.
            Err(e) => (
                Rc::default(),
                vec![format!(
                    "the stream's tools cannot be read, all calls stay text: {e}"
                )],
            ),
        }
    }
}

/// Whether a list contains a tool.
fn has_any(tools: &ToolList) -> bool {
    tools.names().next().is_some()
}

/// Parses one stream; see the module.
#[derive(Debug, Default)]
pub struct Tag {
    /// How the text is read; `None` if the stream is forwarded unparsed.
    setting: Option<Setting>,
    choices: Choices<TagChoice>,
    /// The indexes of the choices whose parser has received text since the last event that
    /// interrupts all choices.
    with_text: Vec<usize>,
    /// A name in `stream_start` that is not in the table, for one warning.
    unknown: Option<UnknownDialect>,
    /// The errors of unreadable tools in `stream_start`, for one warning each.
    unread: Vec<String>,
    /// Warnings of this command that the input already contains, because the stream was parsed
    /// before.
    warned: HashSet<String>,
    /// A buffer for the current text, if the text had escapes.
    text: String,
}

/// How the text of a stream is read.
#[derive(Clone, Debug)]
struct Setting {
    look: Rc<Look>,
    /// All forms, if calls in some of them must be alone.
    alone: Option<Rc<Look>>,
    /// All forms, if a call in another form should cause a warning.
    all: Option<Rc<Look>>,
    /// Whether the stream has mode `tag`.
    is_tag: bool,
    tools: Option<Rc<ToolList>>,
    prefill: Option<String>,
    eager: bool,
}

impl Tag {
    /// Creates a parser for the same stream, at the beginning of the stream.
    #[must_use]
    pub fn fresh(&self) -> Tag {
        Tag {
            setting: self.setting.clone(),
            unknown: self.unknown.clone(),
            unread: self.unread.clone(),
            ..Tag::default()
        }
    }

    #[inline(always)]
    fn content(&mut self, event: &Event<'_>, sink: &mut dyn Sink) {
        let text = event.text();
        // A text with escapes is decoded into a reused buffer.
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
    }

    fn end(&mut self, cut: bool, sink: &mut dyn Sink) {
        if let Some(Setting { look, is_tag, .. }) = &self.setting {
            let mut is_warned = false;
            for choice in self.choices.iter_mut().filter(|c| !c.is_native) {
                let unread = choice.finish(cut, look, *is_tag, &self.warned, sink);
                if let Some(unread) = unread.filter(|_| !is_warned) {
                    choice.warn_unread(&unread, &self.warned, sink);
                    is_warned = true;
                }
            }
        }
        self.choices = Choices::default();
        self.with_text.clear();
    }

    /// Returns the index of a choice that is parsed and has had text, or `None`.
    fn reading(&self, number: u32) -> Option<usize> {
        let at = self.choices.find(number)?;
        (!self.choices[at].is_native).then_some(at)
    }

    /// Handles an event other than text in a choice: text that is held back is emitted before the
    /// event.
    fn interrupt(&mut self, at: usize, sink: &mut dyn Sink) {
        let choice = &mut self.choices[at];
        if !choice.is_native {
            choice.interrupt(&self.warned, sink);
        }
    }

    /// Handles an event that is not text of the answer.
    // Not inlined: its variables would be in the frame of each push of a text.
    #[inline(never)]
    fn other(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        match event.kind() {
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
                }
            }
            Kind::Thinking => {
                let number = event.choice();
                if let Some(at) = self.reading(number) {
                    self.interrupt(at, out);
                } else if let Some(at) = place(&self.setting, &mut self.choices, number) {
                    self.choices[at].begin_in_answer();
                }
            }
            // Counts, warnings and events of other commands have no position in the text, but these
            // events have.
            Kind::ServerItem | Kind::RefusalDelta | Kind::Details if has_place(event) => {
                if let Some(at) = self.reading(event.choice()) {
                    self.interrupt(at, out);
                }
            }
            Kind::Error | Kind::Message => {
                let mut with_text = std::mem::take(&mut self.with_text);
                with_text.sort_unstable();
                for at in with_text.drain(..) {
                    self.choices[at].has_text = false;
                    self.interrupt(at, out);
                }
                self.with_text = with_text;
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
}

/// Returns the index of a choice, or `None` if its text is not parsed.
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
            .map(|look| AloneReading::new(parser(look), setting.tools.clone()));
        let leftover = setting.all.as_ref();
        let leftover = leftover.map(|look| LeftoverReading::new(parser(look)));
        TagChoice::new(number, parser(&setting.look), alone, leftover)
    }))
}

/// Whether an event has a position in the text. `details` events have one only if they belong to
/// the text.
fn has_place(event: &Event<'_>) -> bool {
    event.kind() != Kind::Details || Details::read(event).place == "text"
}

impl Machine for Tag {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        if event.kind() == Kind::ContentDelta {
            self.content(event, out);
        } else {
            self.other(event, out);
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        self.end(true, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Collect;
    use event::Scanner;

    const CALL: &str = r#"{"type":"content_delta","text":"<tool name=\"g\">{}</tool>"}"#;

    /// Returns the lines that follow a `stream_start` with these members.
    fn run(start: &str, lines: &[&str]) -> Vec<String> {
        let start = format!(
            r#"{{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"tool-name-tag",{start}}}"#
        );
        let mut tag =
            Streams::new(TagOptions::default()).begin(&Scanner::default().read(&start).unwrap());
        let lines = std::iter::once(&start[..]).chain(lines.iter().copied());
        Collect::run(&mut tag, lines).split_off(1)
    }

    #[test]
    fn a_native_call_takes_back_every_call_of_the_text_before_it_takes_their_indexes() {
        let native = r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f"}"#;
        assert_eq!(
            run(r#""prefill":"""#, &[CALL, native, CALL]),
            [
                r#"{"type":"tool_call_delta","index":0,"tool_name":"g","arguments":"{}","done":true,"from_text":true}"#,
                r#"{"type":"retract","index":0,"reason":"native_call"}"#,
                r#"{"type":"warning","source":"tag-parse","code":"tag_dropped","message":"dropped the calls in the text before this point, since the provider sends native calls"}"#,
                native,
                CALL,
            ]
        );
    }

    #[test]
    fn a_marker_or_a_header_before_a_native_call_is_text() {
        let native = r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f"}"#;
        let end = r#"{"type":"stream_end","finish_reason":"length"}"#;
        for (dialect, text) in [
            ("hermes", "<tool_call>"),
            ("harmony", "<|start|>assistant"),
            ("auto", "<invoke>"),
        ] {
            let start = format!(
                r#"{{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"{dialect}","prefill":""}}"#
            );
            let delta = format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
            let read = |lines: &[&str]| {
                let mut tag = Streams::new(TagOptions::default())
                    .begin(&Scanner::default().read(&start).unwrap());
                Collect::run(
                    &mut tag,
                    std::iter::once(&start[..]).chain(lines.iter().copied()),
                )
                .split_off(1)
            };
            let out: Vec<String> = read(&[&delta, native, end])
                .into_iter()
                .filter(|l| !l.contains("warning"))
                .collect();
            assert_eq!(out, [&delta[..], native, end], "{dialect}");
            // If the text was cut off there, both are dropped.
            let out = read(&[&delta, end]);
            assert!(
                out[0].contains("tag_dropped") && out[1..] == [end],
                "{dialect}: {out:?}"
            );
        }
    }

    #[test]
    fn a_list_of_tools_that_cannot_be_read_has_none() {
        let out = run(r#""prefill":"","tools":{"a":1}"#, &[CALL]);
        assert!(
            out[0].contains("tools_unread")
                && out.iter().all(|line| !line.contains("tool_call_delta")),
            "{out:?}"
        );
    }

    #[test]
    fn a_tool_that_cannot_be_read_is_its_own_trouble() {
        let out = run(
            r#""prefill":"","tools":[{"name":"echo&log"},{"name":"g"},{"name":"g"}]"#,
            &[CALL],
        );
        assert!(
            out[0].contains("tools_unread") && out[0].contains("echo&log"),
            "{out:?}"
        );
        assert!(
            out[1].contains("tools_unread") && out[2].contains("tool_call_delta") && out.len() == 3,
            "{out:?}"
        );
    }

    /// Returns how many calls are found in this text for a model of this name, read whole and
    /// character by character.
    fn calls_by_model(model: &str, text: &str) -> usize {
        let tools = r#"[{"name":"f","parameters":{"type":"object","properties":{"beds":{"type":"integer"}},"required":["beds"]}}]"#;
        let start = format!(
            r#"{{"type":"stream_start","v":1,"model":"{model}","tools_mode":"native","prefill":"","tools":{tools}}}"#
        );
        let streams = Streams::new(TagOptions {
            always: true,
            needs_tools: true,
            by_model: true,
            ..TagOptions::default()
        });
        let delta = |piece: &str| {
            format!(
                r#"{{"type":"content_delta","text":{}}}"#,
                event::quoted(piece)
            )
        };
        let end = r#"{"type":"stream_end","finish_reason":"stop"}"#.to_owned();
        let counts: Vec<usize> = [
            vec![delta(text)],
            text.split_inclusive(|_| true).map(delta).collect(),
        ]
        .into_iter()
        .map(|pieces| {
            let lines: Vec<String> = std::iter::once(start.clone())
                .chain(pieces)
                .chain([end.clone()])
                .collect();
            let mut tag = streams.begin(&Scanner::default().read(&start).unwrap());
            let out = Collect::run(&mut tag, &lines);
            let calls = out
                .iter()
                .filter(|line| line.contains("\"from_text\":true"))
                .count();
            let text_of = |line: &String| {
                let mut scanner = Scanner::default();
                let event = scanner.read(line).unwrap();
                (event.kind() == Kind::ContentDelta)
                    .then(|| event.get_str("text").unwrap_or_default().into_owned())
            };
            let content: String = out.iter().filter_map(text_of).collect();
            assert!(calls > 0 || content == text, "{content:?}");
            calls
        })
        .collect();
        assert_eq!(counts[0], counts[1], "{text}");
        counts[0]
    }

    #[test]
    fn a_form_that_prose_can_have_counts_in_its_family_or_alone() {
        let json = r#"{"name": "f", "parameters": {"beds": 2}}"#;
        let muse = " to=f<|message|>{\"beds\": 2}";
        let fence = format!("```json\n{json}\n```");
        let marked = format!("I ask.\n<tool_call>{json}</tool_call>");
        for (model, text, calls) in [
            ("m", json, 1),
            ("m", &*format!("<think>Hm.</think>\n{json}\n"), 1),
            ("m", &format!("{json}\nThat was it."), 0),
            ("m", r#"{"name": "f", "parameters": {"beds": "two"}}"#, 0),
            ("m", r#"{"name": "g", "parameters": {"beds": 2}}"#, 0),
            ("m", muse, 1),
            ("m", &format!("\"{muse}"), 0),
            ("m", &fence, 1),
            ("m", &format!("For example:\n{fence}"), 0),
            (
                "m",
                "Thought: I ask.\nAction: f\nAction Input: {\"beds\": 2}",
                0,
            ),
            ("m", "Action: f\nAction Input: {\"beds\": 2}", 1),
            ("m", &marked, 1),
            ("llama-3.3-70b", &format!("{json}\nThat was it."), 1),
            ("llama-3.3-70b", muse, 0),
            ("llama-3.3-70b", &fence, 0),
            ("qwen2.5-7b", json, 0),
            ("qwen2.5-7b", muse, 0),
            ("qwen2.5-7b", &marked, 1),
        ] {
            assert_eq!(calls_by_model(model, text), calls, "{model}: {text}");
        }
    }

    #[test]
    fn a_stream_may_need_a_list_of_tools_for_calls_in_its_text() {
        let other = r#"{"type":"content_delta","text":"<tool name=\"other\">{}</tool>"}"#;
        for (start, needs_tools, calls) in [
            (r#""prefill":"""#, false, 2),
            (r#""prefill":"""#, true, 0),
            (r#""prefill":"","tools":[]"#, true, 0),
            (r#""prefill":"","tools":[{"name":"g"}]"#, true, 1),
        ] {
            let start = format!(r#"{{"type":"stream_start","v":1,{start}}}"#);
            let streams = Streams::new(TagOptions {
                always: true,
                needs_tools,
                ..TagOptions::default()
            });
            let mut tag = streams.begin(&Scanner::default().read(&start).unwrap());
            let out = Collect::run(&mut tag, [&start, CALL, other]);
            let begun = out
                .iter()
                .filter(|line| line.contains("\"from_text\":true"))
                .count();
            assert_eq!(begun, calls, "{start}: {out:?}");
        }
    }

    /// Returns the texts of the events for these pieces of text.
    fn texts(tools: Option<&str>, pieces: &[&str]) -> Vec<String> {
        let tools = tools.map_or_else(String::new, |tools| format!(r#","tools":{tools}"#));
        let start =
            format!(r#"{{"type":"stream_start","v":1,"tools_mode":"native","prefill":""{tools}}}"#);
        let streams = Streams::new(TagOptions {
            always: true,
            needs_tools: true,
            ..TagOptions::default()
        });
        let mut tag = streams.begin(&Scanner::default().read(&start).unwrap());
        let delta = |piece: &&str| {
            format!(
                r#"{{"type":"content_delta","text":{}}}"#,
                event::quoted(piece)
            )
        };
        let lines = std::iter::once(start).chain(pieces.iter().map(delta));
        let mut scanner = Scanner::default();
        let mut text = |line: &String| {
            scanner
                .read(line)
                .unwrap()
                .get_str("text")
                .map(std::borrow::Cow::into_owned)
        };
        Collect::run(&mut tag, lines)
            .iter()
            .filter_map(&mut text)
            .collect()
    }

    #[test]
    fn a_word_that_begins_no_call_is_not_held() {
        let tools = Some(r#"[{"name":"reserve"}]"#);
        for pieces in [
            &["Free", " beds", " and", "."],
            &["True", ", so", " it", " is"],
            &["resin", " is", " a", " gum"],
        ] {
            assert_eq!(texts(tools, pieces), pieces);
            assert_eq!(texts(None, pieces), pieces);
        }
        // A tool's name begins calls of Functionary.
        assert_eq!(texts(tools, &["res", " t", "ext"]), ["res t", "ext"]);
    }

    #[test]
    fn without_tools_nothing_is_held_for_a_call() {
        for pieces in [
            &["{\"na", "me\": \"re", "serve\", \"arguments\": {}", "}"],
            &[
                "<tool_call>\n",
                "{\"name\": \"reserve\"",
                ", \"arguments\": {}}",
                "\n</tool_call>.",
            ],
            &["[reserve(", "a=1", ")", "]."],
        ] {
            assert_eq!(texts(None, pieces), pieces);
            assert_eq!(texts(Some("[]"), pieces), pieces);
        }
        // Reasoning is still parsed.
        assert_eq!(
            texts(None, &["<think>", "hm</thi", "nk>", "Yes"]),
            ["hm", "Yes"]
        );
    }

    /// Returns the lines that follow a `stream_start` with these tools, as in `texts`, with
    /// adjacent texts joined.
    fn around(
        streams: &Streams,
        tools: &str,
        pieces: &[&str],
        between: &str,
        after: &str,
    ) -> Vec<String> {
        let start = format!(r#"{{"type":"stream_start","v":1,"prefill":"","tools":{tools}}}"#);
        let mut tag = streams.begin(&Scanner::default().read(&start).unwrap());
        let delta = |piece: &str| {
            format!(
                r#"{{"type":"content_delta","text":{}}}"#,
                event::quoted(piece)
            )
        };
        let end = r#"{"type":"stream_end","finish_reason":"stop"}"#;
        let mut lines: Vec<String> = pieces.iter().map(|piece| delta(piece)).collect();
        lines.extend([between.to_owned(), delta(after), end.to_owned()]);
        let mut out = Vec::new();
        let mut text = String::new();
        for line in Collect::run(&mut tag, std::iter::once(start).chain(lines)).split_off(1) {
            let mut scanner = Scanner::default();
            let event = scanner.read(&line).unwrap();
            if event.kind() == Kind::ContentDelta {
                text += &event.get_str("text").unwrap();
                continue;
            }
            out.extend(Some(std::mem::take(&mut text)).filter(|text| !text.is_empty()));
            out.push(if event.kind() == Kind::StreamEnd {
                continue;
            } else {
                line
            });
        }
        out
    }

    const BETWEEN: [&str; 4] = [
        r#"{"type":"server_item","kind":"server_tool_use","data":{}}"#,
        r#"{"type":"thinking","text":"","provider":{"anthropic":{"block":{}}}}"#,
        r#"{"type":"refusal_delta","text":"No."}"#,
        r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f"}"#,
    ];

    #[test]
    fn text_that_may_begin_a_call_without_markers_keeps_its_place_before_other_events() {
        let streams = Streams::new(TagOptions {
            always: true,
            needs_tools: true,
            ..TagOptions::default()
        });
        let tools = r#"[{"name":"OKay"},{"name":"f"}]"#;
        for text in [
            "OK",
            "OKay",
            "f",
            "Two: <tool",
            "{\"na",
            "{\"name\": \"f\"",
            "[",
            "[OKa",
            "`",
            "<",
            "print(",
        ] {
            for between in BETWEEN {
                for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                    let (first, second) = text.split_at(cut);
                    let out = around(&streams, tools, &[first, second], between, "It is sunny.");
                    assert_eq!(
                        out,
                        [text, between, "It is sunny."],
                        "{text:?} cut at {cut}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_call_whose_marker_was_read_goes_on_after_other_events() {
        let streams = Streams::new(TagOptions {
            always: true,
            needs_tools: true,
            ..TagOptions::default()
        });
        for between in &BETWEEN[..3] {
            for first in [
                "<tool_call>\n",
                "<tool_call>\n{\"na",
                "<tool_call>\n{\"name\": \"f\", \"arguments\": {",
            ] {
                let whole = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
                for cut in 0..first.len() {
                    let pieces = first.split_at(cut);
                    let out = around(
                        &streams,
                        r#"[{"name":"f"}]"#,
                        &[pieces.0, pieces.1],
                        between,
                        &whole[first.len()..],
                    );
                    assert!(
                        out.iter().any(|line| line.contains("\"done\":true")),
                        "{first:?} cut at {cut}: {out:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn text_that_is_held_comes_out_before_a_message_or_an_error() {
        for after in [
            r#"{"type":"error","code":"x"}"#,
            r#"{"type":"message","message":{"role":"assistant"}}"#,
        ] {
            let held = r#"{"type":"content_delta","text":"hi <tool"}"#;
            let text = |text: &str| format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
            assert_eq!(
                run(r#""prefill":"""#, &[held, after]),
                [text("hi "), text("<tool"), after.to_owned()]
            );
        }
    }

    /// The id names the first call, so that a later event such as a `retract` of the second call is
    /// not applied to the first.
    #[test]
    fn an_id_that_the_model_writes_twice_is_the_first_calls() {
        let call =
            "<|tool_call_begin|>functions.g:0<|tool_call_argument_begin|>{}<|tool_call_end|>";
        let text = format!("<|tool_calls_section_begin|>{call}{call}<|tool_calls_section_end|>");
        let start =
            r#"{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"kimi-k2","prefill":""}"#;
        let delta = format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
        let mut tag =
            Streams::new(TagOptions::default()).begin(&Scanner::default().read(start).unwrap());
        let out = Collect::run(&mut tag, [start, &delta]);
        let begun: Vec<_> = out
            .iter()
            .filter(|line| line.contains("tool_name"))
            .collect();
        assert!(
            begun[0].contains(r#""tool_id":"functions.g:0""#) && !begun[1].contains("tool_id"),
            "{out:?}"
        );
    }

    /// Memory stays bounded: the text of a call in another form is stored only up to a limit.
    #[test]
    fn a_long_call_in_another_form_is_given_up() {
        let start = r#"{"type":"stream_start","v":1,"model":"any","tools_mode":"native","tools":[{"name":"f"}]}"#;
        let streams = Streams::new(TagOptions {
            always: true,
            needs_tools: true,
            by_model: true,
            ..TagOptions::default()
        });
        let warnings = |pieces: usize| {
            let delta = |text: &str| {
                format!(
                    r#"{{"type":"content_delta","text":{}}}"#,
                    event::quoted(text)
                )
            };
            let mut lines = vec![
                start.to_owned(),
                delta("I look.\nAction: f\nAction Input: {\"a\":\""),
            ];
            lines.extend(vec![delta(&"x".repeat(1 << 16)); pieces]);
            lines.push(delta("\"}"));
            lines.push(r#"{"type":"stream_end","finish_reason":"stop"}"#.to_owned());
            let mut tag = streams.begin(&Scanner::default().read(start).unwrap());
            let out = Collect::run(&mut tag, &lines);
            out.iter()
                .filter(|line| line.contains("tag_unread"))
                .count()
        };
        assert_eq!(warnings(1), 1);
        assert_eq!(warnings(17), 0);
    }

    #[test]
    fn tools_in_the_cache_are_not_read_again() {
        let tools = r#"[{"name":"g","parameters":{"type":"object"}}]"#;
        let recent = Rc::<RecentTools>::default();
        let known = recent.read_valid(tools).unwrap();
        let holders = Rc::strong_count(&known);
        let streams = Streams::new(TagOptions {
            recent,
            ..TagOptions::default()
        });
        let start = format!(r#"{{"type":"stream_start","v":1,"tools":{tools}}}"#);
        let _tag = streams.begin(&Scanner::default().read(&start).unwrap());
        assert_eq!(Rc::strong_count(&known), holders + 1);
    }
}
