//! The machine of `tc-accumulate`.

mod ending;

use crate::before::Before;
use crate::call::{Call, Told};
use crate::failure::Failure;
use crate::id::Seed;
use crate::judge::{self, Bench};
use crate::message::Draft;
use crate::payload::Repairs;
use crate::route::{Calls, Odd, Origin};
use crate::shape::Shape;
use event::payload::{
    self, Commit, ContentDelta, FinishReason, Message, RefusalDelta, Retract, SessionStats, StreamEnd, StreamStart,
    Thinking, ToolCall, ToolCallDelta, ToolCallPartial, Warning,
};
use event::{Choices, Event, Json, Kind, Machine, Sink, Text};
use json::ToolList;
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
    pub tools: Option<Rc<ToolList>>,
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
    tools: Option<Rc<ToolList>>,
    response: String,
    seed: Seed,
    model: String,
    stats: Option<SessionStats>,
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
        let start = StreamStart::read(event);
        let owned = |text: Option<Text<'_>>| text.unwrap_or_default().str().into_owned();
        self.started = true;
        self.response = owned(start.id);
        self.seed = Seed::of_response(&self.response);
        self.model = owned(start.model);
        if let (None, Some(tools)) = (&self.options.tools, start.tools) {
            match ToolList::read(&tools.text()) {
                Ok(tools) => self.tools = Some(Rc::new(tools)),
                Err(e) => {
                    let message = format!("the stream's tools cannot be read, arguments are not validated: {e}");
                    out.emit(0, Warning::new(SOURCE, "tools_unread", &message));
                }
            }
        }
    }

    #[inline]
    fn choice(&mut self, number: u32) -> usize {
        self.choices.place(number, || Choice { number, ..Choice::default() })
    }

    fn delta(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let delta = ToolCallDelta::read(event);
        let number = event.choice();
        let at = self.choice(number);
        let origin = Origin { seed: self.seed, choice: number, tools: self.tools.as_deref() };
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
            let warning = Warning::new(SOURCE, odd.code, &odd.message);
            let raw = event.raw();
            let warning = if odd.code == "index_inferred" { warning } else { warning.about(&raw) };
            out.emit(choice.number, warning);
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
        let repairs = Repairs(&call.repairs);
        let error = call.error.as_ref();
        out.emit(
            choice.number,
            ToolCall {
                index: Some(call.index as i64),
                tool_id: (&call.id).into(),
                tool_name: (&call.name).into(),
                arguments: call.object.as_deref().filter(|_| error.is_none()).map(Json::of),
                commit: Some(commit).filter(|_| error.is_none()),
                repairs: (!call.repairs.is_empty()).then_some(Json::Made(&repairs)),
                arguments_text: changed.then(|| call.text().into()),
                error: error.map(|e| payload::CallError { code: e.code.into(), message: (&e.message).into() }),
                provider: call.provider.as_deref().map(Json::of),
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
        let mut arguments = Vec::new();
        event::minify(&mut arguments, &json::best_reading(call.text()));
        let arguments = String::from_utf8(arguments).unwrap_or_default();
        out.emit(
            choice.number,
            ToolCallPartial {
                index: Some(call.index as i64),
                tool_id: (&call.id).into(),
                tool_name: (&call.name).into(),
                arguments: Some(Json::of(&arguments)),
            },
        );
    }

    /// A `tool_call` that is in the input already (this filter ran before): it is kept for the message.
    fn passed(&mut self, event: &Event<'_>) {
        let at = self.choice(event.choice());
        let ToolCall { tool_id, tool_name, arguments, error, provider, .. } = ToolCall::read(event);
        if tool_id.is_empty() {
            return;
        }
        let id = tool_id.str();
        let choice = &mut self.choices[at];
        let call = match choice.calls.find(&id) {
            Some(i) if choice.calls.list[i].told != Told::No => &mut choice.calls.list[i],
            begun => choice.before.get_or_insert_default().call(&id, begun.is_some()),
        };
        if !tool_name.is_empty() {
            call.name = tool_name.str().into_owned();
        }
        call.object = arguments.map(|a| a.text().into_owned()).filter(|a| a.starts_with('{'));
        call.provider = provider.map(|p| p.text().into_owned());
        call.told = if error.is_some() { Told::Refused } else { Told::Passed };
    }

    /// A `retract` in the input: of a call that was begun here, or of one that was emitted before. Calls that the text behind its
    /// end began go with it.
    fn retracted(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let at = self.choice(event.choice());
        let choice = &mut self.choices[at];
        let retract = Retract::read(event);
        let id = retract.tool_id.map(Text::str);
        let mut next = match (&id, retract.index) {
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
                let tool_id = Some((&call.id).into());
                out.emit(choice.number, Retract { index: None, tool_id, reason: retract.reason });
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
                let at = self.choice(event.choice());
                let draft = &mut self.choices[at].draft;
                draft.half.push_text(ContentDelta::read(event).text, &mut draft.content);
            }
            Kind::RefusalDelta => {
                let at = self.choice(event.choice());
                let draft = &mut self.choices[at].draft;
                draft.refusal_half.push_text(RefusalDelta::read(event).text, &mut draft.refusal);
            }
            Kind::Thinking => {
                let at = self.choice(event.choice());
                let choice = &mut self.choices[at];
                let Thinking { text, provider } = Thinking::read(event);
                let begun = choice.calls.list.len() + choice.before.as_ref().map_or(0, |before| before.waiting());
                choice.draft.think(&text.str(), provider.map(Json::text).as_deref(), begun);
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
            Kind::Message if Message::read(event).is_of("assistant") => {
                let at = self.choice(event.choice());
                self.choices[at].committed = true;
            }
            Kind::Warning if Warning::read(event).source == SOURCE => {
                let at = self.choice(event.choice());
                let before = self.choices[at].before.get_or_insert_default();
                before.warning(Warning::read(event).message.str().into_owned());
            }
            Kind::Error => self.failed(event),
            Kind::SessionStats => self.stats = Some(SessionStats::read(event)),
            Kind::StreamEnd => {
                let reason = StreamEnd::read(event).finish_reason;
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
