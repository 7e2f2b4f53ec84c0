//! The calls of a conversation, put together from its events.

use crate::escape::{content, json, one_line, plain};
use crate::streams::Streams;
use anstyle::{AnsiColor, Style};
use event::payload::{
    Retract, RetractReason, ToolCall, ToolCallDelta, ToolCallPartial, ToolProgress, ToolResult,
    ToolUse,
};
use event::{Event, Payload, Raw, Text};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// The calls in the order of their first event. Finding a call takes the same time however many
/// there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCards {
    pub list: Vec<CallCard>,
    streams: Streams<StreamCalls>,
}

/// The calls of a stream, by their positions in the list.
#[derive(Clone, Debug, Default)]
struct StreamCalls {
    all: Vec<usize>,
    /// The calls that an event of a choice may name. Some names are outdated: [`CallCards::last`]
    /// and [`CallCards::first`] drop those.
    names: HashMap<(u32, CallName), VecDeque<usize>>,
}

/// How an event names a call of its stream and choice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallName {
    Id(String),
    /// The provider's label on the deltas of a call that is arriving.
    Label(Option<i64>),
    /// The position of a complete call in its turn.
    Index(i64),
    /// The tool of a call that is arriving and has no id.
    ArrivingTool(String),
    /// The tool of a call whose first event was its `tool_call`.
    WholeTool(String),
}

impl CallCards {
    /// Takes an event about a call, and returns the position of the call that is new or has
    /// changed.
    pub(crate) fn push(&mut self, event: &Event<'_>, payload: &Payload<'_>) -> Option<usize> {
        match *payload {
            Payload::ToolCallDelta(delta) => self.delta(event, &delta),
            Payload::ToolCallPartial(partial) => self.partial(event, &partial),
            Payload::ToolCall(call) => Some(self.call(event, &call)),
            Payload::ToolUse(intent) => Some(self.used(event, &intent)),
            Payload::ToolProgress(progress) => Some(self.progressed(event, &progress)),
            Payload::ToolResult(result) => Some(self.ended(event, &result)),
            Payload::Retract(retract) => self.retract(event, &retract),
            _ => None,
        }
    }

    /// Takes the `tool_calls` of an assistant message whose turn has no other events; returns the
    /// positions of the new calls.
    pub(crate) fn asked(&mut self, event: &Event<'_>, message: Raw<'_>) -> std::ops::Range<usize> {
        let first = self.list.len();
        for call in message.get("tool_calls").into_iter().flat_map(Raw::items) {
            let name = plain(call.at(&["function", "name"]));
            let n = self.new_call(event, call.get_str("id").as_deref(), &name);
            self.list[n].state = CallState::Called;
            self.list[n].set_arguments(plain(call.at(&["function", "arguments"])));
        }
        first..self.list.len()
    }

    /// The event's stream was cancelled, and with it each of its calls that has no result.
    pub(crate) fn cancel(&mut self, event: &Event<'_>) {
        for n in self.of_stream(event) {
            let call = &mut self.list[n];
            call.is_cancelled |= !call.is_closed && call.result().is_none();
        }
    }

    /// The event's stream has ended, and no more arguments come: a call whose deltas no stage has
    /// merged is whole, or it stays incomplete. Returns the positions of such calls.
    pub(crate) fn end_stream(&mut self, event: &Event<'_>) -> Vec<usize> {
        let mut calls = self.of_stream(event);
        calls.retain(|n| self.list[*n].is_arriving());
        for n in &calls {
            self.list[*n].end_arguments();
        }
        calls
    }

    /// The next turn of the event's stream begins: no event can change what the model has written of
    /// its calls so far.
    pub(crate) fn close_stream(&mut self, event: &Event<'_>) {
        self.end_stream(event);
        for n in self.of_stream(event) {
            self.list[n].is_closed = true;
        }
    }

    /// The positions of the calls of the event's stream.
    pub(crate) fn of_stream(&self, event: &Event<'_>) -> Vec<usize> {
        let calls = self.streams.get(stream_of(event));
        calls.map(|calls| calls.all.clone()).unwrap_or_default()
    }

    /// Whether any call runs.
    pub(crate) fn any_runs(&self) -> bool {
        self.list
            .iter()
            .any(|call| call.was_started() && call.result().is_none())
    }

    /// The input has ended.
    pub(crate) fn end(&mut self) {
        for call in &mut self.list {
            match call.state {
                CallState::Running => call.state = CallState::Lost,
                CallState::Arriving if !call.is_closed => call.end_arguments(),
                _ => {}
            }
        }
    }

    /// Removes the first calls of the list.
    pub(crate) fn forget(&mut self, first: usize) {
        self.list.drain(..first);
        let keep = |n: &mut usize| {
            let moved = n.checked_sub(first);
            *n = moved.unwrap_or_default();
            moved.is_some()
        };
        self.streams.retain(|calls| {
            calls.all.retain_mut(keep);
            calls.names.retain(|_, places| {
                places.retain_mut(keep);
                !places.is_empty()
            });
            !calls.all.is_empty()
        });
    }

    /// Takes a `tool` message, which is the result of a call without a `tool_result` in the log.
    pub(crate) fn answered(&mut self, event: &Event<'_>, message: Raw<'_>) -> Option<usize> {
        let id = message.get_str("tool_call_id")?;
        let n = self.known(event, Some(&id));
        let n = n.unwrap_or_else(|| self.new_call(event, Some(&id), &plain(message.get("name"))));
        // A call that waits has no answer yet: a client or a person may write one as a message.
        if self.list[n].has_ended() && !self.list[n].is_pending() {
            return None;
        }
        self.list[n].state = CallState::Ended(CallResult {
            status: "answered".to_owned(),
            output: content(message),
            was_started: self.list[n].was_started(),
            ..CallResult::default()
        });
        Some(n)
    }

    fn delta(&mut self, event: &Event<'_>, delta: &ToolCallDelta<'_>) -> Option<usize> {
        let [id, name, arguments] =
            [delta.tool_id, delta.tool_name, delta.arguments].map(|text| text.map(Text::str));
        let id = id.as_deref().filter(|id| !id.is_empty());
        let n = match id {
            Some(_) => self.open(event, id),
            None => self.last(event, CallName::Label(delta.index), |call| {
                call.is_arriving() && call.index == delta.index
            }),
        };
        if n.is_none()
            && id.is_none()
            && let Some(name) = name.as_deref()
            && let whole = CallName::WholeTool(name.to_owned())
            && let Some(n) = self.last(event, whole, |call| call.came_whole && !call.is_closed)
        {
            self.list[n].came_whole = false;
            return None;
        }
        let is_new = n.is_none();
        let n = match n {
            Some(n) if self.list[n].is_arriving() => n,
            Some(_) => return None, // its `tool_call` has come
            None if id.is_none() && name.is_none() => return None,
            None => self.new_call(event, id, name.as_deref().unwrap_or_default()),
        };
        let call = &mut self.list[n];
        let has_label = is_new || call.index != delta.index;
        call.index = delta.index;
        if delta.from_text {
            call.add_fact("origin", "written as text".to_owned());
        }
        let name = name.filter(|name| call.name.is_empty() && !name.is_empty());
        if let Some(name) = name.as_deref() {
            name.clone_into(&mut call.name);
        }
        call.arguments
            .push_str(arguments.as_deref().unwrap_or_default());
        if call.brief.len() < BRIEF {
            call.brief = one_line(&call.arguments, BRIEF);
        }
        if has_label {
            self.name(event, CallName::Label(delta.index), n);
        }
        if let Some(name) = name.filter(|_| self.list[n].id.is_empty()) {
            self.name(event, CallName::ArrivingTool(name.into_owned()), n);
        }
        Some(n)
    }

    /// Sets the arguments so far, which are shown until the call is complete.
    fn partial(&mut self, event: &Event<'_>, partial: &ToolCallPartial<'_>) -> Option<usize> {
        let id = partial.tool_id.str();
        let n = self.open(event, Some(&id));
        let n = n.unwrap_or_else(|| self.new_call(event, Some(&id), &partial.tool_name.str()));
        if !self.list[n].is_arriving() {
            return None;
        }
        self.list[n].set_arguments(json(partial.arguments));
        Some(n)
    }

    fn call(&mut self, event: &Event<'_>, whole: &ToolCall<'_>) -> usize {
        let id = whole.tool_id.str();
        let name = whole.tool_name.str();
        let n = self.open(event, Some(&id));
        // A call without an id gets one when its deltas are merged: it is the first of that name
        // without an id.
        let n = n.or_else(|| {
            let arriving = CallName::ArrivingTool(name.clone().into_owned());
            self.first(event, arriving, |call| {
                call.is_arriving() && call.id.is_empty() && call.name == name
            })
        });
        let whole_first = n.is_none();
        let n = n.unwrap_or_else(|| self.new_call(event, None, ""));
        self.identify(event, n, &id);
        if let Some(index) = whole.index {
            self.name(event, CallName::Index(index), n);
        }
        if whole_first {
            self.name(event, CallName::WholeTool(name.clone().into_owned()), n);
        }
        let call = &mut self.list[n];
        call.came_whole |= whole_first;
        call.name = name.into_owned();
        call.index = whole.index;
        call.set_arguments(match whole.arguments {
            None => whole.arguments_text.unwrap_or_default().str().into_owned(),
            arguments => json(arguments),
        });
        if let Some(repairs) = whole.repairs {
            call.add_fact("repaired", repairs.with(repaired));
        }
        if let Some(error) = whole.error {
            call.add_fact("refused", error.message.str().into_owned());
        }
        if let CallState::Arriving | CallState::Called | CallState::Incomplete = call.state {
            call.state = match whole.error {
                Some(error) => {
                    call.summary = error.message.str().into_owned();
                    CallState::Refused(error.code.str().into_owned())
                }
                None => CallState::Called,
            };
        }
        n
    }

    /// The position of the call that an event of its run names.
    fn ran(&mut self, event: &Event<'_>, id: Text<'_>, name: Text<'_>) -> usize {
        let id = id.str();
        self.known(event, Some(&id))
            .unwrap_or_else(|| self.new_call(event, Some(&id), &name.str()))
    }

    fn used(&mut self, event: &Event<'_>, intent: &ToolUse<'_>) -> usize {
        let n = self.ran(event, intent.tool_id, intent.tool_name);
        let call = &mut self.list[n];
        call.state = CallState::Running;
        if call.arguments.is_empty() {
            call.set_arguments(intent.input_summary.str().into_owned());
        }
        n
    }

    fn progressed(&mut self, event: &Event<'_>, progress: &ToolProgress<'_>) -> usize {
        let n = self.ran(event, progress.tool_id, progress.tool_name);
        if let Some(line) = progress.text.str().lines().rfind(|l| !l.trim().is_empty()) {
            self.list[n].summary = line.to_owned();
        }
        n
    }

    fn ended(&mut self, event: &Event<'_>, result: &ToolResult<'_>) -> usize {
        let n = self.ran(event, result.tool_id, result.tool_name);
        let call = &mut self.list[n];
        call.summary = result.output_summary.str().into_owned();
        if let Some(hash) = result.hash {
            call.add_fact("hash", hash.str().into_owned());
        }
        if let Some(file) = result.output_file {
            call.add_fact("whole output", file.str().into_owned());
        } else if result.truncated {
            call.add_fact("output", format!("{} bytes, cut", result.output_bytes));
        }
        call.state = CallState::Ended(CallResult {
            status: result.status.str().into_owned(),
            output: result.output.str().into_owned(),
            duration_ms: result.duration_ms.map(|time| time.micros as f64 / 1000.0),
            exit_code: result.exit_code,
            is_cached: result.cached,
            is_answer: result.return_directly,
            was_started: call.was_started(),
            is_retracted: matches!(call.state, CallState::Retracted { .. }),
        });
        n
    }

    fn retract(&mut self, event: &Event<'_>, retract: &Retract<'_>) -> Option<usize> {
        let n = match retract.tool_id {
            Some(id) => self.known(event, Some(&id.str())),
            None => retract.index.and_then(|index| {
                let names = [CallName::Label(Some(index)), CallName::Index(index)];
                let latest =
                    names.map(|name| self.last(event, name, |call| call.index == Some(index)));
                latest.into_iter().max()?
            }),
        }?;
        let call = &mut self.list[n];
        let was_started = call.was_started();
        match &mut call.state {
            // By its index and by its id.
            CallState::Retracted { .. } => return None,
            CallState::Ended(result) => {
                if std::mem::replace(&mut result.is_retracted, true) {
                    return None;
                }
            }
            state => {
                *state = CallState::Retracted {
                    was_started,
                    stream_failed: retract.reason == RetractReason::StreamFailed.name(),
                };
            }
        }
        Some(n)
    }

    /// The call of this id, even after its turn, since tools may take longer than that.
    fn known(&mut self, event: &Event<'_>, id: Option<&str>) -> Option<usize> {
        let id = id.filter(|id| !id.is_empty())?;
        self.last(event, CallName::Id(id.to_owned()), |_| true)
    }

    /// The call of this id in the current turn. Some servers number the calls of each turn anew.
    fn open(&mut self, event: &Event<'_>, id: Option<&str>) -> Option<usize> {
        self.known(event, id).filter(|n| !self.list[*n].is_closed)
    }

    /// The calls that the event names so, and all calls.
    fn named(
        &mut self,
        event: &Event<'_>,
        name: CallName,
    ) -> Option<(&mut VecDeque<usize>, &[CallCard])> {
        let calls = self.streams.get_mut(stream_of(event))?;
        let places = calls.names.get_mut(&(event.choice(), name))?;
        Some((places, &self.list))
    }

    /// The latest call that the event names so and for which `is` holds.
    fn last(
        &mut self,
        event: &Event<'_>,
        name: CallName,
        is: impl Fn(&CallCard) -> bool,
    ) -> Option<usize> {
        let (places, list) = self.named(event, name)?;
        while places.back().is_some_and(|n| !is(&list[*n])) {
            places.pop_back();
        }
        places.back().copied()
    }

    /// The first such call.
    fn first(
        &mut self,
        event: &Event<'_>,
        name: CallName,
        is: impl Fn(&CallCard) -> bool,
    ) -> Option<usize> {
        let (places, list) = self.named(event, name)?;
        while places.front().is_some_and(|n| !is(&list[*n])) {
            places.pop_front();
        }
        places.front().copied()
    }

    /// The event's stream, which may be new.
    fn stream(&mut self, event: &Event<'_>) -> &mut StreamCalls {
        self.streams.of(stream_of(event))
    }

    /// From now on events of this stream and choice may give this name to the `n`th call.
    fn name(&mut self, event: &Event<'_>, name: CallName, n: usize) {
        let names = &mut self.stream(event).names;
        let places = names.entry((event.choice(), name)).or_default();
        if places.back() != Some(&n) {
            places.push_back(n);
        }
    }

    fn new_call(&mut self, event: &Event<'_>, id: Option<&str>, name: &str) -> usize {
        let n = self.list.len();
        self.list.push(CallCard {
            who: Who::of(event),
            name: name.to_owned(),
            ..CallCard::default()
        });
        self.stream(event).all.push(n);
        match id.filter(|id| !id.is_empty()) {
            Some(id) => self.identify(event, n, id),
            None => self.name(event, CallName::ArrivingTool(name.to_owned()), n),
        }
        n
    }

    /// Sets the id of the call, if it has none.
    fn identify(&mut self, event: &Event<'_>, n: usize, id: &str) {
        if self.list[n].id.is_empty() && !id.is_empty() {
            self.list[n].id = id.to_owned();
            self.name(event, CallName::Id(id.to_owned()), n);
        }
    }
}

/// The length of the brief form of arguments, in columns: that of the widest card.
pub(crate) const BRIEF: usize = 120;

/// The state of a call.
#[derive(Clone, Debug, Default)]
pub(crate) enum CallState {
    /// Its arguments are still coming.
    #[default]
    Arriving,
    /// The model has asked for it; nothing runs it yet.
    Called,
    /// Its stream ended before its arguments did.
    Incomplete,
    /// It must not run: the code of `tool_call.error`.
    Refused(String),
    /// A command runs it.
    Running,
    /// The input ended while it ran.
    Lost,
    /// A `retract` has withdrawn it.
    Retracted {
        /// Whether a command ran it, or still does.
        was_started: bool,
        /// Whether it was retracted because its stream failed.
        stream_failed: bool,
    },
    /// It has a result.
    Ended(CallResult),
}

/// The result of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallResult {
    /// The status of `tool_result`.
    pub status: String,
    /// The complete output.
    pub output: String,
    pub duration_ms: Option<f64>,
    pub exit_code: Option<i64>,
    pub is_cached: bool,
    /// Whether it is the answer and is not shown as such yet.
    pub is_answer: bool,
    /// Whether a command ran the call.
    was_started: bool,
    /// Whether a `retract` has come, too, by the call's id or by its index.
    is_retracted: bool,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCard {
    pub who: Who,
    /// The provider's label on its deltas, until the merged call comes; then the position of the
    /// call.
    index: Option<i64>,
    pub id: String,
    pub name: String,
    /// Its arguments as JSON, or the text that came in their place.
    pub arguments: String,
    /// The arguments on one short line: `city: Oslo, days: 3`.
    pub brief: String,
    pub state: CallState,
    /// A line for people: the summary of the result, or the last line of a running tool.
    summary: String,
    /// Labels and texts that only a report has room for, in the order of their events.
    pub facts: Vec<(&'static str, String)>,
    /// Whether no event can change it any more.
    pub is_closed: bool,
    /// Whether its stream was cancelled.
    pub is_cancelled: bool,
    /// Whether its first event was its `tool_call`. Where deltas are kept, the delta that completed
    /// it follows.
    came_whole: bool,
}

impl CallCard {
    /// Whether it is still arriving, so that further deltas may belong to it.
    pub(crate) fn is_arriving(&self) -> bool {
        !self.is_closed && matches!(self.state, CallState::Arriving)
    }

    /// No more of its arguments come.
    fn end_arguments(&mut self) {
        let is_whole = Raw::parse(&self.arguments).is_ok_and(Raw::is_object);
        self.state = match is_whole || self.arguments.is_empty() {
            true => CallState::Called,
            false => CallState::Incomplete,
        };
    }

    /// Whether a command ran it, or still does.
    fn was_started(&self) -> bool {
        match &self.state {
            CallState::Running | CallState::Lost => true,
            CallState::Retracted { was_started, .. } => *was_started,
            CallState::Ended(result) => result.was_started,
            _ => false,
        }
    }

    /// Its result.
    pub(crate) fn result(&self) -> Option<&CallResult> {
        match &self.state {
            CallState::Ended(result) => Some(result),
            _ => None,
        }
    }

    /// Whether its card will not change any more. A call that was retracted because its stream
    /// failed waits for the end of the stream, which has the reason; one that was running waits for
    /// its result.
    pub(crate) fn is_settled(&self) -> bool {
        let waits = match self.state {
            CallState::Retracted {
                was_started,
                stream_failed,
            } => was_started || stream_failed && !self.is_cancelled,
            _ => self.is_pending(),
        };
        self.is_closed || self.has_ended() && !waits || self.is_cancelled && !self.was_started()
    }

    /// Whether it waits for a person.
    pub(crate) fn is_pending(&self) -> bool {
        self.result()
            .is_some_and(|result| result.status == "pending")
    }

    /// Whether it ended, one way or another.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(
            self.state,
            CallState::Ended(_) | CallState::Retracted { .. }
        )
    }

    /// The text to show of its result or progress.
    pub(crate) fn result_text(&self) -> &str {
        match self.result() {
            Some(result) if self.summary.is_empty() => &result.output,
            _ => &self.summary,
        }
    }

    /// The latest line of its progress.
    pub(crate) fn progress(&self) -> &str {
        match self.state {
            CallState::Running | CallState::Lost | CallState::Retracted { .. } => &self.summary,
            _ => "",
        }
    }

    /// The text that its card shows: for a command that failed its last line, on standard error if
    /// there is one.
    pub(crate) fn gist(&self) -> &str {
        self.result()
            .filter(|result| ["error", "timeout", "cancelled"].contains(&&*result.status))
            .and_then(|result| last_words(&result.output))
            .unwrap_or_else(|| self.result_text())
    }

    fn add_fact(&mut self, label: &'static str, text: String) {
        self.facts.retain(|(known, _)| *known != label);
        self.facts.push((label, text));
    }

    /// Sets the arguments, and their brief form.
    pub(crate) fn set_arguments(&mut self, arguments: String) {
        self.brief = brief(&arguments);
        self.arguments = arguments;
    }
}

/// The last line of standard error in the `output` of a command that failed, else of its standard
/// output. That `output` is a sentence, then `stderr:` and `stdout:`, each followed by its text.
fn last_words(output: &str) -> Option<&str> {
    let (_, written) = output
        .split_once("\nstderr:\n")
        .or_else(|| output.split_once("\nstdout:\n"))?;
    let stderr = written
        .split_once("\nstdout:\n")
        .map_or(written, |(stderr, _)| stderr);
    stderr.lines().rfind(|line| !line.trim().is_empty())
}

/// How many repairs of a call are listed.
const REPAIRS: usize = 16;

/// The repairs of a call, a line each: `trailing comma at byte 12: "," became ""`.
fn repaired(repairs: Raw<'_>) -> String {
    let lines = repairs.items().take(REPAIRS).map(|repair| {
        let part = |key| one_line(&plain(repair.get(key)), BRIEF);
        format!(
            "{} at byte {}: \"{}\" became \"{}\"",
            part("kind").replace('_', " "),
            part("offset"),
            part("before"),
            part("after")
        )
    });
    let lines: Vec<_> = lines.collect();
    match repairs.items().count() {
        all if all > REPAIRS => format!("{}\n… {} more", lines.join("\n"), all - REPAIRS),
        _ => lines.join("\n"),
    }
}

/// An object as `key: value, …`, any other text as it is; on one line.
fn brief(arguments: &str) -> String {
    let Ok(object) = Raw::parse(arguments) else {
        return one_line(arguments, BRIEF);
    };
    if !object.is_object() {
        return one_line(arguments, BRIEF);
    }
    let mut out = String::new();
    for (key, value) in object.entries() {
        if out.len() > 4 * BRIEF {
            break;
        }
        let comma = if out.is_empty() { "" } else { ", " };
        out.extend([comma, &key, ": ", &plain(Some(value))]);
    }
    one_line(&out, BRIEF)
}

/// A state of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Badge {
    /// Its name in `cards.css` and on the page of `tc-serve`.
    pub name: &'static str,
    pub sign: &'static str,
    /// Its colour on a terminal.
    pub style: Style,
}

impl Badge {
    const ARRIVING: Badge = Badge::new("arriving", "…", Style::new().dimmed());
    const CALLED: Badge = Badge::new("called", "○", AnsiColor::Cyan.on_default());
    const RUNNING: Badge = Badge::new("running", "●", AnsiColor::Yellow.on_default());
    const WAITS: Badge = Badge::new("waits", "?", AnsiColor::Yellow.on_default());
    pub(crate) const DONE: Badge = Badge::new("done", "✓", AnsiColor::Green.on_default());
    const FAILED: Badge = Badge::new("failed", "✗", AnsiColor::Red.on_default());
    const REFUSED: Badge = Badge::new("refused", "✗", AnsiColor::Red.on_default());
    const CANCELLED: Badge = Badge::new("cancelled", "–", AnsiColor::Yellow.on_default());
    const LOST: Badge = Badge::new("lost", "–", AnsiColor::Yellow.on_default());
    const RETRACTED: Badge = Badge::new("retracted", "–", Style::new().dimmed());

    const fn new(name: &'static str, sign: &'static str, style: Style) -> Self {
        Badge { name, sign, style }
    }

    /// Whether the call failed or was refused.
    pub(crate) fn is_failure(self) -> bool {
        self == Badge::FAILED || self == Badge::REFUSED
    }

    /// Whether a reader of a report looks for such a call: it failed, waits or has no result.
    pub(crate) fn is_notable(self) -> bool {
        let plain = [
            Badge::ARRIVING,
            Badge::CALLED,
            Badge::DONE,
            Badge::RETRACTED,
        ];
        !plain.contains(&self)
    }
}

impl CallCard {
    /// Its state, and the state in words.
    pub(crate) fn badge(&self) -> (Badge, Cow<'static, str>) {
        let cancelled = || {
            let word = match self.was_started() {
                true => "cancelled",
                false => "cancelled, not run",
            };
            (Badge::CANCELLED, word.into())
        };
        match &self.state {
            CallState::Ended(result) => match &*result.status {
                "cancelled" => cancelled(),
                "success" | "answered" => (Badge::DONE, "done".into()),
                "pending" => (Badge::WAITS, "waits for approval".into()),
                status => {
                    let badge = match status {
                        "denied" | "invalid" | "unknown_tool" => Badge::REFUSED,
                        _ => Badge::FAILED,
                    };
                    (badge, status.replace('_', " ").into())
                }
            },
            _ if self.is_cancelled => cancelled(),
            CallState::Lost => (Badge::LOST, "no result".into()),
            CallState::Arriving => (Badge::ARRIVING, "arriving".into()),
            CallState::Called => (Badge::CALLED, "called".into()),
            CallState::Incomplete => (Badge::LOST, "incomplete".into()),
            CallState::Refused(code) => (Badge::REFUSED, format!("refused: {code}").into()),
            CallState::Running => (Badge::RUNNING, "running".into()),
            CallState::Retracted { .. } => (Badge::RETRACTED, "taken back".into()),
        }
    }

    /// Its state, and the state in words with the figures of its result.
    pub(crate) fn status(&self, no_time: bool) -> (Badge, String) {
        let (badge, word) = self.badge();
        let figures = self.figures(no_time);
        let text = figures.fold(word.into_owned(), |text, figure| {
            format!("{text}, {figure}")
        });
        (badge, text)
    }

    /// The figures of its result: the exit status of a command that failed, whether it was cached, and
    /// how long it took.
    pub(crate) fn figures(&self, no_time: bool) -> impl Iterator<Item = String> {
        let result = self.result();
        let exit = result.and_then(|result| result.exit_code);
        let exit = exit.filter(|code| *code != 0);
        let is_cached = result.is_some_and(|result| result.is_cached);
        let ms = result.and_then(|result| result.duration_ms);
        let figures = [
            exit.map(|code| format!("exit {code}")),
            is_cached.then(|| "cached".to_owned()),
            ms.filter(|_| !no_time).map(duration),
        ];
        figures.into_iter().flatten()
    }
}

/// Milliseconds for people: `0.4 ms`, `12 ms`, `1.2 s`, `2 min 3 s`.
pub(crate) fn duration(ms: f64) -> String {
    match ms {
        _ if ms < 9.95 => format!("{ms:.1} ms"),
        _ if ms < 999.5 => format!("{ms:.0} ms"),
        _ if ms < 60_000.0 => format!("{:.1} s", ms / 1000.0),
        _ => format!(
            "{:.0} min {:.0} s",
            (ms / 60_000.0).floor(),
            (ms / 1000.0 % 60.0).floor()
        ),
    }
}

/// The name of the event's stream as JSON; the unnamed stream has an empty one.
pub(crate) fn stream_of<'e>(event: &Event<'e>) -> &'e str {
    event.stream().map_or("", Raw::text)
}

/// A stream, by its name as in [`stream_of`], and one of its choices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Who {
    pub stream: Box<str>,
    pub choice: u32,
}

impl Who {
    pub(crate) fn of(event: &Event<'_>) -> Self {
        Who {
            stream: stream_of(event).into(),
            choice: event.choice(),
        }
    }

    pub(crate) fn is(&self, event: &Event<'_>) -> bool {
        self.choice == event.choice() && self.shares_stream(event)
    }

    pub(crate) fn shares_stream(&self, event: &Event<'_>) -> bool {
        match event.stream() {
            None => self.stream.is_empty(),
            Some(name) => *self.stream == *name.text(),
        }
    }

    /// The heading before its events.
    pub(crate) fn heading(&self) -> String {
        let name = Raw::parse(&self.stream);
        let name = name.map_or_else(|_| "the unnamed stream".to_owned(), |s| plain(Some(s)));
        if self.choice == 0 {
            name
        } else {
            format!("{name}, choice {}", self.choice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_of_cards_has_the_sign_of_each_state() {
        for badge in [
            Badge::ARRIVING,
            Badge::CALLED,
            Badge::RUNNING,
            Badge::WAITS,
            Badge::DONE,
            Badge::FAILED,
            Badge::REFUSED,
            Badge::CANCELLED,
            Badge::LOST,
            Badge::RETRACTED,
        ] {
            let state = format!("[data-state={}]", badge.name);
            let sign = format!("--sign: \"{}\"", badge.sign);
            let mut lines = crate::CARDS.lines();
            assert!(
                lines.any(|line| line.contains(&state) && line.contains(&sign)),
                "{badge:?}"
            );
        }
    }

    #[test]
    fn durations_for_people() {
        let all = [0.04, 9.96, 12.3, 999.6, 1234.0, 60_000.0, 123_000.0].map(duration);
        assert_eq!(
            all,
            [
                "0.0 ms",
                "10 ms",
                "12 ms",
                "1.0 s",
                "1.2 s",
                "1 min 0 s",
                "2 min 3 s"
            ]
        );
    }
}
