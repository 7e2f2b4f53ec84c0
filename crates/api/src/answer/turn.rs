//! Converts events to steps: calls are put one after the other, each choice gets one finish reason
//! that fits its content, and a client can never run a truncated call.
//!
//! Each choice has a queue (`turn/choice.rs`) of content that must wait for a call that started
//! before it.

pub(crate) mod choice;

use crate::answer::details::{DetailMembers, DetailsPlace};
use crate::answer::failure::FailedAnswer;
use crate::answer::service::ServiceCalls;
use crate::answer::step::{Dropped, ReportedUsage, Step, piece};
use crate::answer::turn::choice::{AnswerTrouble, ChoiceSteps, StepEmitter};

pub(crate) use crate::answer::turn::choice::TakeStep;
use event::payload::{
    Error, FinishReason, Retract, RetractReason, ServerItem, SessionStats, StreamEnd, StreamStart,
    ToolCall, ToolCallDelta, Warning,
};
use event::{Choices, Event, Json, Kind, Object, Text};
use std::borrow::Cow;

/// The maximum number of choices in a request to OpenAI's API.
const MOST_CHOICES: u32 = 128;

/// Converts the events of one stream to steps.
#[derive(Debug, Default)]
pub(crate) struct AnswerSteps {
    /// The upstream's model name; empty before `stream_start`.
    pub model: String,
    /// The name of the upstream's API; empty before `stream_start`.
    api: String,
    /// The token counts so far.
    pub usage: ReportedUsage,
    /// Why the response failed; `None` if it did not fail so far.
    pub failure: Option<FailedAnswer>,
    /// Whether a `Begin` was emitted.
    pub has_begun: bool,
    /// Whether a step was emitted after `Begin`.
    pub has_content: bool,
    /// Whether the last step was emitted.
    pub is_done: bool,
    /// Content that is in no step.
    pub dropped: Dropped,
    has_usage: bool,
    /// Whether the last `End` was emitted, so that only `Usage` remains.
    has_ended: bool,
    /// Whether a call that may already have been sent was withdrawn because the stream failed. The
    /// response must then end as failed.
    is_withdrawn: bool,
    choices: Choices<ChoiceSteps>,
    service: ServiceCalls,
    /// The notes for the key `toolpipe`; `None` if the client did not ask for them.
    extras: Option<Extras>,
    /// Whether nothing is emitted before the end, so that a withdrawn call leaves no trace.
    is_whole: bool,
    /// Whether a complete response that fails also emits its steps.
    pub keeps_failed: bool,
}

impl AnswerSteps {
    /// Creates the state before the first event. `extras` collects notes for the key `toolpipe`.
    /// `is_whole` delays all steps until the end.
    pub(crate) fn new(extras: bool, is_whole: bool) -> AnswerSteps {
        AnswerSteps {
            extras: extras.then(Extras::default),
            is_whole,
            ..AnswerSteps::default()
        }
    }

    /// Processes the next event.
    pub(crate) fn push(&mut self, event: &Event<'_>, take: &mut TakeStep<'_>) {
        if self.is_done || self.has_ended && event.kind() != Kind::SessionStats {
            let is_content = event.kind() == Kind::ToolCall || piece(event).is_some();
            self.dropped.late += u64::from(is_content && self.failure.is_none());
            return;
        }
        if let Some(extras) = &mut self.extras {
            extras.push(event);
        }
        match event.kind() {
            Kind::StreamStart => {
                let start = StreamStart::read(event);
                if let Some(model) = start.model.filter(|_| self.model.is_empty()) {
                    self.model = model.str().into_owned();
                }
                if let Some(api) = start.api {
                    self.api = api.str().into_owned();
                }
            }
            Kind::ToolCallDelta => {
                let delta = ToolCallDelta::read(event);
                self.feed(event, take, |choice, out| choice.delta(&delta, out));
            }
            Kind::ToolCall => {
                let call = ToolCall::read(event);
                self.feed(event, take, |choice, out| choice.call(&call, out));
            }
            Kind::Retract => self.retract(event, take),
            Kind::SessionStats => self.stats(&SessionStats::read(event)),
            Kind::Error => self.fail(FailedAnswer::of_event(&Error::read(event), &self.api), take),
            Kind::StreamEnd => {
                let end = StreamEnd::read(event);
                self.end(
                    end.finish_reason,
                    end.provider_finish_reason.map(Text::str).as_deref(),
                    take,
                );
            }
            _ => {
                if let Some((kind, text, provider)) = piece(event) {
                    let provider = provider.map(Json::text);
                    self.feed(event, take, |choice, out| {
                        choice.piece(kind, text, provider.as_deref(), out)
                    });
                }
            }
        }
        if self.has_ended && self.has_usage {
            self.emit_usage(take);
        }
    }

    /// Processes an event of a call that the service runs.
    pub(crate) fn service(&mut self, event: &Event<'_>, take: &mut TakeStep<'_>) {
        if self.is_done || self.has_ended {
            return;
        }
        let index = match event.kind() {
            Kind::ToolCallDelta => ToolCallDelta::read(event).index,
            Kind::ToolCall => ToolCall::read(event).index,
            // The provider's turn is (nearly) over: calls that have not started may belong to the
            // next turn.
            Kind::ToolResult => {
                self.with_choice(0, take, |choice, out| choice.give_up(out));
                None
            }
            _ => None,
        };
        if index.is_some() {
            self.with_choice(0, take, |choice, out| choice.pass_over(index, out));
        }
        let mut service = std::mem::take(&mut self.service);
        service.push(event, &mut |step| {
            self.with_choice(0, take, |choice, out| choice.say(step, out));
        });
        self.service = service;
    }

    /// Adds members of the provider's response, named as in the front's API.
    pub(crate) fn details(
        &mut self,
        event: &Event<'_>,
        place: DetailsPlace,
        members: DetailMembers,
        take: &mut TakeStep<'_>,
    ) {
        if self.is_done || self.has_ended {
            self.dropped.late += u64::from(self.failure.is_none() && place == DetailsPlace::Item);
        } else if matches!(place, DetailsPlace::Text | DetailsPlace::Item) {
            self.feed(event, take, |choice, out| {
                choice.details(place, members, out)
            });
        } else {
            let step = Step::Details(place, Cow::Owned(members));
            take(&self.model, event.choice(), &step);
        }
    }

    /// Handles the end of the events. The response counts as truncated if no `stream_end` was
    /// received.
    pub(crate) fn finish(&mut self, take: &mut TakeStep<'_>) {
        if self.is_done {
            return;
        }
        if self.has_ended {
            self.emit_usage(take);
        } else {
            self.end(FinishReason::Cut, None, take);
        }
    }

    /// Starts the response before its first content.
    pub(crate) fn begin(&mut self, take: &mut TakeStep<'_>) {
        if !self.has_begun && !self.is_done {
            self.with_choice(0, take, |choice, out| {
                choice.begin(out);
                Ok(())
            });
        }
    }

    /// Ends the response as failed, unless it has already ended.
    pub(crate) fn fail(&mut self, failure: FailedAnswer, take: &mut TakeStep<'_>) {
        if self.is_done {
            return;
        }
        self.is_done = true;
        if self.is_whole && self.keeps_failed {
            self.release(take);
        }
        self.choices = Choices::default();
        if self.has_begun {
            take(&self.model, 0, &Step::Failed(Cow::Borrowed(&failure)));
        }
        self.failure = Some(failure);
    }

    /// Emits the content of a complete response so far, as a truncated response.
    fn release(&mut self, take: &mut TakeStep<'_>) {
        // An unusable call is left out: the response has already failed.
        let _ = self.each_choice(take, |choice, out| {
            let _ = choice.end(FinishReason::Length, None, out);
            Ok(())
        });
    }

    /// Calls `end` for each choice, and stops at the first error.
    fn each_choice(
        &mut self,
        take: &mut TakeStep<'_>,
        mut end: impl FnMut(&mut ChoiceSteps, &mut StepEmitter<'_, '_>) -> Result<(), AnswerTrouble>,
    ) -> Result<(), AnswerTrouble> {
        let AnswerSteps {
            model,
            has_begun,
            has_content,
            choices,
            ..
        } = self;
        for (number, choice) in choices.by_number() {
            let mut out = StepEmitter {
                model,
                number,
                has_begun,
                has_content,
                take,
            };
            end(choice, &mut out)?;
        }
        Ok(())
    }

    fn feed(
        &mut self,
        event: &Event<'_>,
        take: &mut TakeStep<'_>,
        feed: impl FnOnce(&mut ChoiceSteps, &mut StepEmitter<'_, '_>) -> Result<(), AnswerTrouble>,
    ) {
        self.with_choice(event.choice(), take, feed);
    }

    /// Calls `feed` for one choice, and ends the response as failed if it returns an error.
    fn with_choice(
        &mut self,
        number: u32,
        take: &mut TakeStep<'_>,
        feed: impl FnOnce(&mut ChoiceSteps, &mut StepEmitter<'_, '_>) -> Result<(), AnswerTrouble>,
    ) {
        let AnswerSteps {
            model,
            has_begun,
            has_content,
            choices,
            is_whole,
            ..
        } = self;
        let mut make = || ChoiceSteps::new(*is_whole);
        let place = choices.place(number, &mut make);
        // openai-python finds a choice by its position among those that have started, so choices
        // must start in order.
        if !choices[place].has_begun() {
            for lower in 0..number.min(MOST_CHOICES) {
                let place = choices.place(lower, &mut make);
                choices[place].begin(&mut StepEmitter {
                    model,
                    number: lower,
                    has_begun,
                    has_content,
                    take,
                });
            }
        }
        let mut out = StepEmitter {
            model,
            number,
            has_begun,
            has_content,
            take,
        };
        if let Err(trouble) = feed(&mut choices[place], &mut out) {
            self.fail(trouble.failure(), take);
        }
    }

    fn retract(&mut self, event: &Event<'_>, take: &mut TakeStep<'_>) {
        let retract = Retract::read(event);
        if retract.reason == RetractReason::StreamFailed.name() {
            // The end of the stream follows and reports the reason.
            self.is_withdrawn = true;
            return;
        }
        let Some(id) = retract.tool_id else { return };
        self.feed(event, take, |choice, out| choice.retract(&id.str(), out));
    }

    /// Replaces the token counts.
    fn stats(&mut self, stats: &SessionStats) {
        if let Some(usage) = ReportedUsage::of(stats) {
            self.usage = usage;
            self.has_usage = true;
        }
    }

    fn end(&mut self, reason: FinishReason, provider: Option<&str>, take: &mut TakeStep<'_>) {
        if let Some(failure) = self.failed(reason) {
            return self.fail(failure, take);
        }
        let is_whole = self.is_whole;
        self.choices.place(0, || ChoiceSteps::new(is_whole));
        let mut dropped = std::mem::take(&mut self.dropped);
        let ended = self.each_choice(take, |choice, out| {
            choice.end(reason, provider, out)?;
            choice.left_out(&mut dropped);
            Ok(())
        });
        self.dropped = dropped;
        if let Err(trouble) = ended {
            return self.fail(trouble.failure(), take);
        }
        self.has_ended = true;
        if let Some(json) = self.extras.take().and_then(Extras::json) {
            take(&self.model, 0, &Step::Extras(json.into()));
        }
    }

    /// Returns why a stream with this reason failed, or `None` if it ended well.
    fn failed(&self, reason: FinishReason) -> Option<FailedAnswer> {
        let withdrawn =
            || FailedAnswer::new("upstream_error", "a call was withdrawn after it was sent");
        FailedAnswer::of_reason(reason).or_else(|| self.is_withdrawn.then(withdrawn))
    }

    fn emit_usage(&mut self, take: &mut TakeStep<'_>) {
        self.is_done = true;
        take(&self.model, 0, &Step::Usage(self.usage));
    }
}

/// The limits for stored notes, in number and bytes. They bound the memory for a stream of
/// warnings.
const MOST: usize = 256;
const MOST_BYTES: usize = 256 * 1024;

/// The notes so far, as JSON objects.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    notes: Vec<String>,
    bytes: usize,
    left_out: u64,
}

impl Extras {
    /// Adds a note if the event is a warning, a repaired call or a server item.
    pub(crate) fn push(&mut self, event: &Event<'_>) {
        let mut out = Vec::new();
        let mut o = Object::open(&mut out);
        match event.kind() {
            Kind::Warning => {
                let warning = Warning::read(event);
                o.str("type", "warning")
                    .str("source", &warning.source.str())
                    .str("code", &warning.code.str());
                o.str("message", &warning.message.str());
            }
            Kind::ToolCall => {
                let call = ToolCall::read(event);
                let Some(repairs) = call.repairs else { return };
                o.str("type", "repairs")
                    .str("tool_id", &call.tool_id.str())
                    .minified("repairs", &repairs.text());
            }
            Kind::ServerItem => {
                let item = ServerItem::read(event);
                o.str("type", "server_item")
                    .str("kind", &item.kind.str())
                    .minified("data", &item.data.text());
            }
            _ => return,
        }
        o.close();
        if self.notes.len() >= MOST || self.bytes + out.len() > MOST_BYTES {
            self.left_out += 1;
            return;
        }
        self.bytes += out.len();
        self.notes.push(String::from_utf8(out).unwrap_or_default());
    }

    /// Returns the notes as one JSON object, `{"notes":[…]}`, with `left_out` if some exceeded the
    /// limits. Returns `None` if there was no note.
    pub(crate) fn json(self) -> Option<String> {
        if self.notes.is_empty() && self.left_out == 0 {
            return None;
        }
        let left_out = if self.left_out == 0 {
            String::new()
        } else {
            format!(",\"left_out\":{}", self.left_out)
        };
        Some(format!(
            "{{\"notes\":[{}]{left_out}}}",
            self.notes.join(",")
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::answer::step::{CallStepKind, Step};
    use crate::answer::turn::AnswerSteps;
    use event::Scanner;
    use std::fmt::Write;

    /// Returns the steps for the events, one per line.
    fn steps(events: &[&str], is_whole: bool) -> String {
        let mut out = String::new();
        let mut turn = AnswerSteps::new(true, is_whole);
        let mut take = |_: &str, choice: u32, step: &Step<'_>| {
            if choice > 0 {
                write!(out, "{choice}: ").unwrap();
            }
            line(step, &mut out);
        };
        let mut scanner = Scanner::default();
        for event in events {
            if *event == "begin()" {
                turn.begin(&mut take);
                continue;
            }
            turn.push(&scanner.read(event).unwrap(), &mut take);
        }
        turn.finish(&mut take);
        assert!(turn.is_done);
        for (what, count) in turn.dropped.notes() {
            writeln!(out, "note {what} {count}").unwrap();
        }
        if let Some(failure) = turn.failure.filter(|_| !turn.has_begun) {
            writeln!(
                out,
                "status {} {}: {}",
                failure.status, failure.code, failure.message
            )
            .unwrap();
        }
        out
    }

    fn line(step: &Step<'_>, out: &mut String) {
        match step {
            Step::Begin => writeln!(out, "begin"),
            Step::Text {
                kind,
                text,
                provider,
            } => {
                let kind = ["reasoning", "text", "refusal"][*kind as usize];
                writeln!(out, "{kind} {text:?} {}", provider.as_deref().unwrap_or(""))
            }
            Step::Call(call) => match call.kind {
                CallStepKind::Begin => writeln!(out, "call {} {}", call.id, call.name),
                CallStepKind::Arguments => writeln!(out, "  {}", call.text),
                _ => {
                    let provider = call.provider.as_deref().unwrap_or("");
                    writeln!(out, "end of call {} {provider}", call.text)
                }
            },
            Step::Details(place, members) => {
                writeln!(
                    out,
                    "details {place:?} {}",
                    serde_json::Value::from(members.clone().into_owned())
                )
            }
            Step::End {
                reason,
                provider: None,
            } => writeln!(out, "end {}", reason.name()),
            Step::End {
                reason,
                provider: Some(word),
            } => writeln!(out, "end {} {word}", reason.name()),
            Step::Extras(json) => writeln!(out, "extras {json}"),
            Step::Usage(u) => {
                writeln!(
                    out,
                    "usage {} {} {} {} {}",
                    u.input, u.output, u.total, u.cached, u.reasoning
                )
            }
            Step::Failed(failure) => writeln!(
                out,
                "failed {} {}: {}",
                failure.status, failure.code, failure.message
            ),
        }
        .unwrap();
        let length = out.trim_end().len();
        out.truncate(length);
        out.push('\n');
    }

    #[test]
    fn events_become_steps() {
        let text = include_str!("turn/steps.cases");
        let mut wrong = Vec::new();
        for case in text
            .split("\n# ")
            .map(|case| case.strip_prefix("# ").unwrap_or(case))
        {
            let (name, rest) = case.split_once('\n').unwrap();
            let (events, want) = rest.split_once("=>\n").unwrap_or((rest, ""));
            let events: Vec<&str> = events.lines().filter(|line| !line.is_empty()).collect();
            let got = steps(&events, false);
            if got.trim_end() != want.trim_end() {
                wrong.push(format!("{name}:\n{got}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Returns the steps without their timing: pieces of texts and of arguments are joined.
    fn joined(steps: &str) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for line in steps.lines().filter(|line| !line.starts_with("  ")) {
            let kind = ["text \"", "reasoning \""]
                .into_iter()
                .find(|kind| line.starts_with(kind));
            match (out.last_mut(), kind) {
                (Some(last), Some(kind)) if last.starts_with(kind) && last.ends_with('"') => {
                    last.pop();
                    last.push_str(&line[kind.len()..]);
                }
                _ => out.push(line.to_owned()),
            }
        }
        out
    }

    #[test]
    fn a_whole_answer_is_the_stream_at_its_end_and_nothing_of_it_was_sent_too_early() {
        let mut mended = 0;
        for case in include_str!("turn/steps.cases").split("\n# ") {
            let (name, rest) = case.split_once('\n').unwrap();
            let events: Vec<&str> = rest
                .lines()
                .take_while(|line| *line != "=>")
                .filter(|line| !line.is_empty())
                .collect();
            // A stream writes its choices as they arrive.
            if events[0] == "begin()" || events.iter().any(|event| event.contains("\"choice\":")) {
                continue;
            }
            let stream = steps(&events, false);
            let whole = steps(&events, true);
            if ["call_withdrawn", "call_changed"]
                .iter()
                .any(|code| stream.contains(code))
            {
                // These only fail because of content already sent.
                assert!(
                    whole.contains("\nusage") && !whole.contains("status"),
                    "{name}:\n{whole}"
                );
                assert!(
                    !stream.contains("call_withdrawn") || !whole.contains("call "),
                    "{name}:\n{whole}"
                );
                mended += 1;
            } else if let Some((_, failure)) = stream.split_once("failed ") {
                assert_eq!(whole, format!("status {failure}"), "{name}");
            } else {
                assert_eq!(joined(&whole), joined(&stream), "{name}");
            }
        }
        assert!(mended > 3);
    }
}
