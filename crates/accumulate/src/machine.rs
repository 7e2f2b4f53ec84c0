//! The machine of `tc-accumulate`.

mod ending;

use crate::before::Before;
use crate::call::{Call, Told};
use crate::failure::Failure;
use crate::id::Seed;
use crate::judge::{self, Bench};
use crate::message::Draft;
use crate::payload::{Commit, Partial, ToolCall};
use crate::route::{Calls, Delta, Odd, Origin};
use crate::shape::Shape;
use event::payload::{FinishReason, Retract, Warning};
use event::{Choices, Event, Field, Kind, Machine, Raw, Sink};
use json::Tools;
use std::rc::Rc;

/// When a call is emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmitOn {
    /// As soon as its arguments have closed.
    #[default]
    Balanced,
    /// When the provider closed its block, or a later call began.
    Sealed,
    /// When the stream has ended well.
    Final,
}

/// What to make of a stream.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The tools that arguments are validated against. Without them the stream's own `tools` are used.
    pub tools: Option<Rc<Tools>>,
    /// When a call is emitted.
    pub emit_on: EmitOn,
    /// Take arguments that are not quite JSON as they come, and refuse them.
    pub no_repair: bool,
    /// Pass the deltas on too.
    pub keep_deltas: bool,
    /// Write readings of the arguments so far.
    pub partial: bool,
    /// Write one whole response a stream in this shape, and nothing else.
    pub shape: Option<Shape>,
}

/// One choice of a stream.
#[derive(Debug, Default)]
struct Choice {
    number: u32,
    draft: Draft,
    calls: Calls,
    /// The assistant's message is in the input already.
    committed: bool,
    /// Readings of the arguments so far are in the input already.
    read: bool,
    /// What this filter wrote when the stream went through it before.
    before: Option<Box<Before>>,
}

/// Merges the deltas of one stream.
#[derive(Debug)]
pub struct Accumulate {
    options: Rc<Options>,
    tools: Option<Rc<Tools>>,
    response: String,
    seed: Seed,
    model: String,
    stats: Option<String>,
    started: bool,
    /// An event of this stream was too long to be read or written: the turn has failed.
    lost: bool,
    /// The first error of the stream, as a whole response has it.
    error: Option<Failure>,
    choices: Choices<Choice>,
    odd: Vec<Odd>,
}

const SOURCE: &str = "tc-accumulate";

impl Accumulate {
    /// A machine for one stream.
    pub fn new(options: Rc<Options>) -> Self {
        let tools = options.tools.clone();
        Accumulate {
            options,
            tools,
            response: String::new(),
            seed: Seed::of_response(""),
            model: String::new(),
            stats: None,
            started: false,
            lost: false,
            error: None,
            choices: Choices::default(),
            odd: Vec::new(),
        }
    }

    fn start(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        self.started = true;
        self.response = event.get_str("id").unwrap_or_default().into_owned();
        self.seed = Seed::of_response(&self.response);
        self.model = event.get_str("model").unwrap_or_default().into_owned();
        if let (None, Some(tools)) = (&self.options.tools, event.get("tools")) {
            match Tools::read(tools.text()) {
                Ok(tools) => self.tools = Some(Rc::new(tools)),
                Err(e) => {
                    let message = format!("the stream's tools cannot be read, arguments are not validated: {e}");
                    out.write(
                        0,
                        &Warning { source: SOURCE, code: "tools_unread", message: &message, ..Warning::default() },
                    );
                }
            }
        }
    }

    #[inline]
    fn choice(&mut self, number: u32) -> usize {
        self.choices.place(number, || Choice { number, ..Choice::default() })
    }

    fn delta(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let mut delta = Delta::default();
        for (field, value) in event.known_fields() {
            match field {
                Field::Arguments => {
                    delta.arguments = Some(value).filter(|v| v.is_str() && v.text() != "\"\"" || v.is_object())
                }
                Field::Index => delta.index = value.i64(),
                Field::ToolId => delta.id = value.str(),
                Field::ToolName => delta.name = value.str(),
                Field::Done => delta.done = value.bool() == Some(true),
                Field::Provider => delta.provider = Some(value.text()).filter(|p| *p != "null"),
                Field::Text | Field::Other => {}
            }
        }
        let number = event.choice();
        let at = self.choice(number);
        let origin = Origin { seed: self.seed.of_choice(number), tools: self.tools.as_deref() };
        let choice = &mut self.choices[at];
        let (before, latest) = (choice.calls.list.len(), choice.calls.latest());
        let went = choice.calls.take(&delta, origin, &mut self.odd);
        if !self.odd.is_empty() {
            self.warn(event, out);
        }
        let Some(went) = went else { return };
        let now = self.choices[at].calls.list.len();
        let choice = &mut self.choices[at];
        if let Some(written) = &mut choice.before {
            choice.calls.list[before..].iter().for_each(|call| written.begin(&call.id));
            written.begin(&choice.calls.list[went].id);
        }
        if now > before {
            // A call has begun, so the one before it may be sealed now.
            for i in latest.into_iter().chain(before..now) {
                self.tell(at, i, out);
            }
        }
        self.tell(at, went, out);
        if self.options.partial {
            self.reading(at, went, out);
        }
    }

    /// Writes what was odd about a delta.
    #[cold]
    fn warn(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let at = self.choice(event.choice());
        let choice = &mut self.choices[at];
        for odd in self.odd.drain(..) {
            if choice.before.as_mut().is_some_and(|before| before.warned(&odd.message)) {
                continue;
            }
            let warning = Warning { source: SOURCE, code: odd.code, message: &odd.message, ..Warning::default() };
            let warning = if odd.code == "index_inferred" { warning } else { warning.about(event.raw()) };
            out.write(choice.number, &warning);
        }
    }

    /// Emits a call that has reached the level asked for.
    fn tell(&mut self, at: usize, i: usize, out: &mut dyn Sink) {
        let want = match self.options.emit_on {
            EmitOn::Balanced => Commit::Balanced,
            EmitOn::Sealed => Commit::Sealed,
            EmitOn::Final => return,
        };
        let call = &self.choices[at].calls.list[i];
        if call.told != Told::No || call.name.is_empty() {
            return;
        }
        if let Some(level) = call.level().filter(|level| *level >= want) {
            self.emit(at, i, level, out);
        }
    }

    /// Judges one call and writes its `tool_call`.
    fn emit(&mut self, at: usize, i: usize, commit: Commit, out: &mut dyn Sink) {
        let bench = Bench { repair: !self.options.no_repair, tools: self.tools.as_deref() };
        let choice = &mut self.choices[at];
        let call = &mut choice.calls.list[i];
        if let Some(written) = choice.before.as_mut().and_then(|before| before.take(&call.id)) {
            (call.name, call.object, call.told) = (written.name, written.object, written.told);
            call.provider = written.provider.or(call.provider.take());
            return;
        }
        if call.error.is_none() {
            judge::judge(call, bench);
        }
        call.told = if call.error.is_some() { Told::Refused } else { Told::Emitted };
        if self.options.shape.is_some() {
            return;
        }
        let changed = call.error.is_some() || !call.repairs.is_empty();
        out.write(
            choice.number,
            &ToolCall {
                index: call.index,
                tool_id: &call.id,
                tool_name: &call.name,
                arguments: call.object.as_deref().filter(|_| call.error.is_none()),
                commit: Some(commit).filter(|_| call.error.is_none()),
                repairs: &call.repairs,
                arguments_text: changed.then_some(call.text()),
                error: call.error.as_ref(),
                provider: call.provider.as_deref(),
            },
        );
        if out.lost() {
            (call.told, self.lost) = (Told::Refused, true);
        }
    }

    /// Writes a reading of the arguments so far, whenever the text has grown by a sixteenth: the total stays linear.
    fn reading(&mut self, at: usize, i: usize, out: &mut dyn Sink) {
        let choice = &mut self.choices[at];
        let call = &mut choice.calls.list[i];
        let length = call.text().len();
        if choice.read || call.name.is_empty() || call.told != Told::No || length <= call.partial + call.partial / 16 {
            return;
        }
        call.partial = length;
        let arguments = json::best_reading(call.text());
        out.write(
            choice.number,
            &Partial { index: call.index, tool_id: &call.id, tool_name: &call.name, arguments: &arguments },
        );
    }

    /// A `tool_call` that is in the input already (this filter ran before): it is kept for the message.
    fn passed(&mut self, event: &Event<'_>) {
        let at = self.choice(event.choice());
        let [Some(id), name] = event::payload::strings(event, ["tool_id", "tool_name"]) else { return };
        let choice = &mut self.choices[at];
        let call = match choice.calls.find(&id) {
            Some(i) if choice.calls.list[i].told != Told::No => &mut choice.calls.list[i],
            begun => choice.before.get_or_insert_default().call(&id, begun.is_some()),
        };
        if let Some(name) = name {
            call.name = name.into_owned();
        }
        call.object = event.get("arguments").filter(|a| a.is_object()).map(|a| a.text().to_owned());
        call.provider = event.get("provider").map(|p| p.text().to_owned());
        call.told = if event.get("error").is_some() { Told::Refused } else { Told::Passed };
    }

    /// A `retract` in the input: of a call that was begun here, or of one that was emitted before. Calls that the text behind its
    /// end began go with it.
    fn retracted(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let at = self.choice(event.choice());
        let choice = &mut self.choices[at];
        let id = event.get_str("tool_id");
        let mut next = match (&id, event.get("index").and_then(Raw::i64)) {
            (Some(id), _) => choice.calls.find(id),
            (None, Some(index)) => choice.calls.bound(index),
            (None, None) => None,
        };
        if let (Some(id), Some(before)) = (&id, &mut choice.before) {
            before.take(id);
        }
        while let Some(i) = next {
            let call: &mut Call = &mut choice.calls.list[i];
            // Downstream knows the call by the id that was given here.
            let named = id.as_deref() == Some(&call.id);
            if call.told == Told::Emitted && self.options.shape.is_none() && !named {
                let reason = event.get_str("reason").unwrap_or_default();
                out.write(choice.number, &Retract { index: None, tool_id: Some(&call.id), reason: &reason });
            }
            let was_seen = std::mem::replace(&mut call.told, Told::Retracted) != Told::No;
            next = call.next.map(|at| at as usize);
            choice.calls.forget(i, was_seen);
        }
    }
}

impl Machine for Accumulate {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let mut pass = self.options.shape.is_none();
        match event.kind() {
            Kind::StreamStart => self.start(event, out),
            Kind::ContentDelta => {
                if let Some(text) = event.field(Field::Text) {
                    let at = self.choice(event.choice());
                    let draft = &mut self.choices[at].draft;
                    draft.half.push(text, &mut draft.content);
                }
            }
            Kind::RefusalDelta => {
                if let Some(text) = event.field(Field::Text) {
                    let at = self.choice(event.choice());
                    let draft = &mut self.choices[at].draft;
                    draft.refusal_half.push(text, &mut draft.refusal);
                }
            }
            Kind::Thinking => {
                let at = self.choice(event.choice());
                let choice = &mut self.choices[at];
                let provider = event.get("provider").map(Raw::text);
                let begun = choice.calls.list.len() + choice.before.as_ref().map_or(0, |before| before.waiting());
                choice.draft.think(&event.get_str("text").unwrap_or_default(), provider, begun);
            }
            Kind::ToolCallDelta => {
                self.delta(event, out);
                pass &= self.options.keep_deltas;
            }
            Kind::ToolCall => self.passed(event),
            Kind::ToolCallPartial => {
                let at = self.choice(event.choice());
                self.choices[at].read = true;
            }
            Kind::Retract => self.retracted(event, out),
            Kind::Message if event.get("message").and_then(|m| m.get_str("role")).as_deref() == Some("assistant") => {
                let at = self.choice(event.choice());
                self.choices[at].committed = true;
            }
            Kind::Warning if event.get_str("source").as_deref() == Some(SOURCE) => {
                let at = self.choice(event.choice());
                let before = self.choices[at].before.get_or_insert_default();
                before.warning(event.get_str("message").unwrap_or_default().into_owned());
            }
            Kind::Error => self.failed(event),
            Kind::SessionStats => self.stats = Some(event.raw().to_owned()),
            Kind::StreamEnd => {
                let reason = FinishReason::read(event);
                self.end(reason, out);
                if let Some(shape) = self.options.shape {
                    self.respond(shape, reason, out);
                }
            }
            _ => {}
        }
        if pass {
            out.pass();
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        // Without calls there is nothing to close, and a log that simply ends stays as it is.
        self.end(FinishReason::Cut, out);
        if let Some(shape) = self.options.shape {
            self.respond(shape, FinishReason::Cut, out);
        }
    }
}
