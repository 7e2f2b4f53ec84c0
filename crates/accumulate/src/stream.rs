//! The state of one stream while its deltas are merged: it routes deltas to calls, then checks and
//! emits the calls.

use crate::before::EarlierOutput;
use crate::call::{Emission, OpenCall};
use crate::id::Seed;
use crate::judge::{self, ArgumentRules, CallRefusal, Repairs};
use crate::message::AnswerDraft;
use crate::options::{AccumulateOptions, EmitOn};
use crate::route::{OpenCalls, RouteContext};
use event::payload::{
    self, Commit, Retract, StreamStart, ToolCall, ToolCallDelta, ToolCallPartial, Warning,
};
use event::{Choices, Event, Json, Kind, Meter, Sink, Text};
use json::ToolList;
use std::collections::HashSet;
use std::rc::Rc;

/// The command name in the warnings that it emits.
pub(crate) const SOURCE: &str = "tc-accumulate";

/// The state of one choice of a stream.
#[derive(Debug, Default)]
pub(crate) struct OpenChoice {
    pub number: u32,
    pub draft: AnswerDraft,
    pub calls: OpenCalls,
    /// Whether the input already contains the assistant's message.
    pub has_message: bool,
    /// Whether the input already contains partial readings of the arguments, so that no more are
    /// emitted.
    pub has_partials: bool,
    /// Output that an earlier run of this filter wrote; `None` if the input contains none.
    pub earlier: Option<Box<EarlierOutput>>,
}

/// The state of one stream while its deltas are merged.
#[derive(Debug)]
pub(crate) struct OpenStream {
    pub options: Rc<AccumulateOptions>,
    tools: Option<Rc<ToolList>>,
    seed: Seed,
    pub started: bool,
    /// Whether an event of this stream exceeded the line limit, so that the turn has failed.
    pub lost: bool,
    pub choices: Choices<OpenChoice>,
    /// Names of the tools for which a warning about unknown schema types was emitted.
    untyped: Vec<String>,
    /// Counts the bytes kept for all choices.
    meter: Meter,
    /// Whether the stream exceeded `max_kept`, so that no more is kept.
    pub is_over: bool,
}

impl OpenStream {
    pub(crate) fn new(options: Rc<AccumulateOptions>) -> Self {
        let tools = options.tools.clone();
        OpenStream {
            options,
            tools,
            seed: Seed::of_response(""),
            started: false,
            lost: false,
            choices: Choices::default(),
            untyped: Vec::new(),
            meter: Meter::default(),
            is_over: false,
        }
    }

    /// Counts, with `take`, an event that is kept in part. Ends the turn as failed if the count
    /// exceeds the limit.
    #[inline]
    pub(crate) fn count(&mut self, take: impl FnOnce(&mut Meter), out: &mut dyn Sink) {
        let Some(most) = self.options.max_kept.filter(|_| !self.is_over) else {
            return;
        };
        take(&mut self.meter);
        if self.meter.bytes() > most {
            self.overrun(out);
        }
    }

    /// Handles a stream that exceeded `max_kept`: keeps only the list of calls, so that the end of
    /// the stream retracts them.
    #[cold]
    fn overrun(&mut self, out: &mut dyn Sink) {
        (self.is_over, self.lost) = (true, true);
        for choice in self.choices.iter_mut() {
            choice.draft = AnswerDraft::default();
            choice.calls.list.extend(
                choice
                    .earlier
                    .take()
                    .iter_mut()
                    .flat_map(|earlier| earlier.rest()),
            );
            choice.calls.list.iter_mut().for_each(OpenCall::empty);
        }
        out.too_long(Kind::Message, self.meter.bytes());
    }

    /// Handles the `stream_start` event.
    pub(crate) fn start(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let start = StreamStart::read(event);
        self.started = true;
        self.seed = Seed::of_response(&start.id.unwrap_or_default().str());
        if let (None, Some(tools)) = (&self.options.tools, start.tools) {
            match self.options.recent.read_valid(&tools.text()) {
                Ok(tools) => {
                    for e in tools.left_out() {
                        let message = format!("{e}; the arguments of its calls are not validated");
                        out.emit(0, Warning::new(SOURCE, "tools_unread", &message));
                    }
                    self.tools = Some(tools);
                }
                Err(e) => {
                    let message = format!(
                        "the stream's tools cannot be read, arguments are not validated: {e}"
                    );
                    out.emit(0, Warning::new(SOURCE, "tools_unread", &message));
                }
            }
        }
    }

    /// Returns the position of a choice in [`OpenStream::choices`].
    #[inline]
    pub(crate) fn choice(&mut self, number: u32) -> usize {
        self.choices.place(number, || OpenChoice {
            number,
            ..OpenChoice::default()
        })
    }

    /// Returns the choice of an event.
    #[inline]
    pub(crate) fn choice_of(&mut self, event: &Event<'_>) -> &mut OpenChoice {
        let at = self.choice(event.choice());
        &mut self.choices[at]
    }

    /// Handles a `tool_call_delta` event.
    pub(crate) fn delta(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let delta = ToolCallDelta::read(event);
        if !self.is_over && !self.continues(event.choice(), &delta) {
            self.merge(event, out);
        }
        if self.options.keep_deltas && !self.options.live {
            out.pass();
        }
        self.count(|meter| meter.take_call(event.choice(), &delta), out);
    }

    /// Merges a delta after which nothing is due; see [`OpenCalls::continues`]. Returns `false`, and
    /// merges nothing, if the delta needs [`OpenStream::merge`].
    #[inline(always)]
    fn continues(&mut self, number: u32, delta: &ToolCallDelta<'_>) -> bool {
        let at = self.choice(number);
        let choice = &mut self.choices[at];
        let is_watched = self.options.live || self.options.partial || choice.earlier.is_some();
        !is_watched && choice.calls.continues(delta)
    }

    /// Merges a delta into its call.
    // Rare, so that it may read the delta again; inlined it would make the short way longer.
    #[inline(never)]
    fn merge(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let delta = &ToolCallDelta::read(event);
        let number = event.choice();
        let at = self.choice(number);
        let origin = RouteContext {
            seed: self.seed,
            choice: number,
            taken: &self.options.taken_ids,
            tools: self.tools.as_deref(),
        };
        let choice = &mut self.choices[at];
        let before = choice.calls.list.len();
        let latest = choice.calls.latest();
        let routed = choice.calls.take(delta, origin);
        if !choice.calls.oddities.is_empty() {
            self.warn(event, out);
        }
        let Some(routed) = routed else { return };
        let now = self.choices[at].calls.list.len();
        let choice = &mut self.choices[at];
        if let Some(earlier) = &mut choice.earlier {
            choice.calls.list[before..]
                .iter()
                .for_each(|call| earlier.begin(&call.id));
            earlier.begin(&choice.calls.list[routed].id);
        }
        if now > before {
            // A call has started, so the one before it may now be sealed.
            for i in latest.into_iter().chain(before..now) {
                self.emit_if_due(at, i, out);
            }
        }
        if self.options.live {
            self.grow(at, routed, out);
        }
        self.emit_if_due(at, routed, out);
        if self.options.partial {
            self.reading(at, routed, out);
        }
    }

    /// Emits a `warning` for each irregularity of a delta, unless an earlier run of this filter
    /// already wrote that warning.
    #[cold]
    fn warn(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        let at = self.choice(event.choice());
        let choice = &mut self.choices[at];
        for odd in choice.calls.oddities.drain(..) {
            if choice
                .earlier
                .as_mut()
                .is_some_and(|earlier| earlier.warned(&odd.message))
            {
                continue;
            }
            let warning = Warning::new(SOURCE, odd.code, &odd.message);
            let raw = event.raw();
            let warning = if odd.code == "index_inferred" {
                warning
            } else {
                warning.about(&raw)
            };
            out.emit(choice.number, warning);
        }
    }

    /// Emits a call that has reached the level of `--emit-on`.
    fn emit_if_due(&mut self, at: usize, i: usize, out: &mut dyn Sink) {
        let want = match self.options.emit_on {
            EmitOn::Balanced => Commit::Balanced,
            EmitOn::Sealed => Commit::Sealed,
            EmitOn::Final => return,
        };
        let call = &self.choices[at].calls.list[i];
        if !call.is_waiting() || call.name.is_empty() {
            return;
        }
        if let Some(level) = call.level().filter(|level| *level >= want) {
            self.emit(at, i, level, None, out);
        }
    }

    /// Checks a call and emits its `tool_call`, unless an earlier run of this filter already wrote
    /// it.
    pub(crate) fn emit(
        &mut self,
        at: usize,
        i: usize,
        commit: Commit,
        refusal: Option<CallRefusal>,
        out: &mut dyn Sink,
    ) {
        let rules = ArgumentRules {
            repair: !self.options.no_repair,
            tools: self.tools.as_deref(),
        };
        let choice = &mut self.choices[at];
        let call = &mut choice.calls.list[i];
        if let Some(written) = choice
            .earlier
            .as_mut()
            .and_then(|earlier| earlier.take(&call.id))
        {
            (call.name, call.tool, call.emission) = (written.name, None, written.emission);
            if let Some(data) = written.provider.text() {
                call.provider.take(data);
            }
            return;
        }
        if let Some(tool) = &call.tool {
            let message = format!(
                "call {} names {:?}, which is read as the tool {tool}",
                call.index,
                event::cut(&call.name, 100)
            );
            let warning = Warning::new(SOURCE, "name_repaired", &message);
            out.emit(choice.number, warning);
        }
        let judged = match refusal {
            Some(refusal) => Err(refusal),
            None => {
                let judged = judge::judge(call, rules);
                if let Some(warning) = untyped(call, rules.tools, &mut self.untyped) {
                    let warning = Warning::new(SOURCE, "unknown_type", &warning);
                    out.emit(choice.number, warning);
                }
                judged
            }
        };
        let (emission, repairs, refusal) = match judged {
            Ok((object, repairs)) => (Emission::Emitted(object), repairs, None),
            Err(refusal) => (Emission::Refused, Repairs(Vec::new()), Some(refusal)),
        };
        call.emission = emission;
        let is_repaired = !repairs.0.is_empty();
        let is_changed = refusal.is_some() || is_repaired;
        out.emit(
            choice.number,
            ToolCall {
                index: Some(call.index as i64),
                tool_id: (&call.id).into(),
                tool_name: call.tool_name().into(),
                arguments: call.emission.object().map(Json::of),
                commit: Some(commit).filter(|_| refusal.is_none()),
                repairs: is_repaired.then_some(Json::Made(&repairs)),
                arguments_text: is_changed.then(|| call.text().into()),
                error: refusal.as_ref().map(|refusal| payload::CallError {
                    code: refusal.code.name().into(),
                    message: (&refusal.message).into(),
                }),
                provider: call.provider.text().map(Json::of),
            },
        );
        if out.lost() {
            (call.emission, self.lost) = (Emission::Refused, true);
        }
    }

    /// Emits the bytes of a native call's arguments that have become certain.
    fn grow(&mut self, at: usize, i: usize, out: &mut dyn Sink) {
        let choice = &mut self.choices[at];
        let call = &mut choice.calls.list[i];
        if call.name.is_empty() || !call.is_waiting() || call.is_from_text {
            return;
        }
        let schema = self
            .tools
            .as_deref()
            .and_then(|tools| tools.schema(call.tool_name()))
            .and_then(Result::ok);
        let is_first = !call.live.has_begun();
        let none = HashSet::new();
        let Some(more) = call.grow(schema.map_or(&none, json::Schema::unpacked)) else {
            return;
        };
        out.emit(
            choice.number,
            ToolCallDelta {
                index: Some(call.index as i64),
                tool_id: Some((&call.id).into()),
                tool_name: is_first.then(|| call.tool_name().into()),
                arguments: Some((&more).into()),
                provider: call.provider.text().filter(|_| is_first).map(Json::of),
                ..ToolCallDelta::default()
            },
        );
    }

    /// Emits a reading of the arguments so far each time the text has grown by a sixteenth, so that
    /// the output stays linear in the input.
    fn reading(&mut self, at: usize, i: usize, out: &mut dyn Sink) {
        let choice = &mut self.choices[at];
        let call = &mut choice.calls.list[i];
        let length = call.text().len();
        if choice.has_partials
            || call.name.is_empty()
            || !call.is_waiting()
            || length <= call.partial + call.partial / 16
        {
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
                tool_name: call.tool_name().into(),
                arguments: Some(Json::of(&arguments)),
            },
        );
    }

    /// Keeps for the message a `tool_call` that an earlier run of this filter wrote into the input.
    pub(crate) fn passed(&mut self, event: &Event<'_>) {
        let at = self.choice(event.choice());
        let ToolCall {
            tool_id,
            tool_name,
            arguments,
            error,
            provider,
            ..
        } = ToolCall::read(event);
        if tool_id.is_empty() {
            return;
        }
        let id = tool_id.str();
        let choice = &mut self.choices[at];
        let call = match choice.calls.find(&id) {
            Some(i) if !choice.calls.list[i].is_waiting() => &mut choice.calls.list[i],
            begun => choice
                .earlier
                .get_or_insert_default()
                .call(&id, begun.is_some()),
        };
        if !tool_name.is_empty() {
            call.name = tool_name.str().into_owned();
        }
        if let Some(data) = provider {
            call.provider.take(&data.text());
        }
        let object = arguments.map(|a| a.text().into_owned());
        call.emission = if error.is_some() {
            Emission::Refused
        } else {
            Emission::Passed(object.filter(|object| object.starts_with('{')))
        };
    }

    /// Retracts the call that a `retract` in the input names, whether the call arrived as deltas or
    /// as a `tool_call`. Calls that started after its end are retracted with it. Returns whether
    /// readers of the output know the call by the label in the `retract`: they get no deltas, so to
    /// them the provider's index names another call or no call.
    pub(crate) fn retracted(&mut self, event: &Event<'_>, out: &mut dyn Sink) -> bool {
        let at = self.choice(event.choice());
        let choice = &mut self.choices[at];
        let retract = Retract::read(event);
        let id = retract.tool_id.map(Text::str);
        let mut next = match (&id, retract.index) {
            (Some(id), _) => choice.calls.find(id),
            (None, Some(index)) => choice.calls.bound(index),
            (None, None) => None,
        };
        if let (Some(id), Some(earlier)) = (&id, &mut choice.earlier) {
            earlier.take(id);
        }
        let is_named = next.is_none_or(|i| id.as_deref() == Some(&choice.calls.list[i].id));
        while let Some(i) = next {
            let call = &mut choice.calls.list[i];
            next = call.next.map(|at| at as usize);
            // This call was already retracted, and a later call may have its id by now.
            if call.is_forgotten() {
                continue;
            }
            // Later commands know the call by the id that it has here. A `retract` that names this
            // id is forwarded, so no second one is needed.
            if id.as_deref() != Some(&call.id) {
                let tool_id = Some((&call.id).into());
                out.emit(
                    choice.number,
                    Retract {
                        index: None,
                        tool_id,
                        reason: retract.reason,
                    },
                );
            }
            let was_seen = !call.is_waiting() || call.live.has_begun();
            choice.calls.forget(i, was_seen);
        }
        is_named
    }
}

/// Returns the warning that the schema of a call's tool has types that JSON Schema does not define,
/// once per tool; `warned` lists the tools that were already reported.
fn untyped(call: &OpenCall, tools: Option<&ToolList>, warned: &mut Vec<String>) -> Option<String> {
    let name = call.tool_name();
    let unknown = tools?.schema(name)?.ok()?.unknown_types();
    if unknown.is_empty() || warned.iter().any(|warned| warned == name) {
        return None;
    }
    warned.push(name.to_owned());
    Some(format!(
        "the schema of {} has types that JSON Schema does not have and that are not validated: {}",
        name,
        unknown.join(", ")
    ))
}
