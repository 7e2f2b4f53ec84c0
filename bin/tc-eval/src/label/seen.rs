//! The calls, texts and tags that are found in each stream of a recording.

use crate::read::{self, ReadSettings};
use crate::reading::{FullReading, arguments, calls_alone, is_taken_back, made_calls};
use crate::recordings;
use anyhow::Result;
use conversation::{Call, Talk};
use event::payload::{ContentDelta, FinishReason, RefusalDelta, StreamEnd, StreamStart, Thinking};
use event::{Event, Kind, Text};
use score::{Label, LabelledCall};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use tag::lint::Lint;

/// The contents of choice 0 of one stream.
#[derive(Debug)]
pub(super) struct SeenCalls {
    pub part: u64,
    /// What its `stream_start` tells, and the hash.
    pub label: Label,
    /// The text of the answer before the first call, including refusals.
    pub before: String,
    /// The text of the answer after the first call began.
    pub after: String,
    talk: Talk,
    flags: Flags,
    /// The number of bytes of the recording up to the last event of the stream.
    end: usize,
}

/// What shows beside text and calls, as tags.
type Flags = BTreeMap<&'static str, ()>;

/// Returns the streams of the recording at `path`, in order.
///
/// # Errors
/// Fails if the file cannot be read or is not a recording.
pub(super) fn read(path: &Path, settings: &ReadSettings, lint: &Lint) -> Result<Vec<SeenCalls>> {
    let bytes = recordings::bytes(path)?;
    let mut streams: BTreeMap<u64, SeenCalls> = BTreeMap::new();
    let mut reading = FullReading::new();
    read::each_event(path, &bytes, settings, &mut |event, origin| {
        if origin.part > 0 {
            let new = || SeenCalls::new(origin.part);
            let seen = streams.entry(origin.part).or_insert_with(new);
            seen.end = usize::try_from(origin.offset).unwrap_or(usize::MAX);
            let event = &event.unnamed();
            reading.push(origin.part, event, &mut |event, _| seen.push(event));
        }
    })?;
    for (part, seen) in &mut streams {
        reading.finish(*part, &mut |event, _| seen.push(event));
    }
    let mut streams: Vec<SeenCalls> = streams.into_values().collect();
    if let [alone] = streams.as_mut_slice() {
        alone.end = bytes.len();
    }
    for seen in &mut streams {
        seen.hash(&bytes);
        seen.judge(lint);
    }
    Ok(streams)
}

impl SeenCalls {
    fn new(part: u64) -> Self {
        SeenCalls {
            part,
            label: Label::default(),
            before: String::new(),
            after: String::new(),
            talk: calls_alone(false),
            flags: Flags::new(),
            end: 0,
        }
    }

    fn push(&mut self, event: &Event<'_>) {
        if event.choice() > 0 {
            self.flag("choices");
            return;
        }
        self.talk.push(event);
        let owned =
            |text: Option<Text<'_>>| text.map(|t| t.str().into_owned()).filter(|t| !t.is_empty());
        match event.kind() {
            Kind::StreamStart => {
                let start = StreamStart::read(event);
                self.label = Label {
                    api: owned(start.api),
                    model: owned(start.model),
                    tools_mode: owned(start.tools_mode).filter(|mode| mode == "tag"),
                    dialect: owned(start.dialect),
                    ..Label::default()
                };
            }
            Kind::ContentDelta => self.text(&ContentDelta::read(event).text.str()),
            Kind::RefusalDelta => {
                self.flag("refusal");
                self.text(&RefusalDelta::read(event).text.str());
            }
            Kind::Thinking if !self.begins_call() && !Thinking::read(event).text.is_empty() => {
                self.flag("reasoning")
            }
            Kind::ServerItem => self.flag("server-item"),
            Kind::Error => self.flag("error"),
            Kind::StreamEnd => match StreamEnd::read(event).finish_reason {
                FinishReason::Length => self.flag("cut-text"),
                FinishReason::Cut => self.flag("connection-cut"),
                FinishReason::ContentFilter => self.flag("content-filter"),
                _ => {}
            },
            _ => {}
        }
    }

    /// Whether a call was found.
    pub(super) fn has_call(&self) -> bool {
        !made_calls(&self.talk).is_empty()
    }

    /// Returns the calls, in order.
    pub(super) fn calls(&self) -> Vec<LabelledCall> {
        made_calls(&self.talk).into_iter().map(labelled).collect()
    }

    /// Whether a call has begun, even if it was retracted later.
    fn begins_call(&self) -> bool {
        !self.talk.calls().is_empty()
    }

    /// Returns the tags of the stream, as defined in docs/evaluation.md.
    pub(super) fn tags(&self) -> Vec<String> {
        self.flags.keys().map(|tag| (*tag).to_owned()).collect()
    }

    fn text(&mut self, text: &str) {
        if self.begins_call() {
            self.after.push_str(text);
        } else {
            self.before.push_str(text);
        }
    }

    /// Adds the tags that depend on the whole stream.
    fn judge(&mut self, lint: &Lint) {
        let calls = self.has_call();
        let is_blank = self.before.trim().is_empty();
        let length = self.before.chars().count();
        let has_reasoning = self.flags.remove("reasoning").is_some();
        let was_cut = self.flags.remove("cut-text").is_some();
        let is_native = self.label.tools_mode.is_none();
        let whole = format!("{}{}", self.before, self.after);
        let is_marked = is_native && lint.finds(&whole);
        let made = made_calls(&self.talk);
        let is_several = made.len() > 1;
        let is_cut = made.iter().any(|call| arguments(call).is_none());
        let any = |is: fn(&Call) -> bool| self.talk.calls().iter().any(|(_, call)| is(call));
        let is_repaired = any(|call| call.repairs.is_some());
        let is_retracted = any(|call| call.is_merged && is_taken_back(call));
        let is_json = serde_json::from_str::<&RawValue>(&whole).is_ok()
            && whole.trim().starts_with(['{', '[']);
        for (tag, is_so) in [
            ("text-before-call", calls && !is_blank),
            ("white-space-before-call", calls && is_blank && length > 0),
            ("long-text-before-call", calls && length >= 1000),
            ("reasoning-before-call", calls && has_reasoning),
            ("reasoning", !calls && has_reasoning),
            ("text-after-call", calls && !self.after.trim().is_empty()),
            ("several-calls", is_several),
            ("cut-call", is_cut),
            ("repaired", is_repaired),
            ("retracted-call", is_retracted),
            ("cut-text", !calls && was_cut && length > 0),
            (
                "server-item-only",
                !calls && self.flags.contains_key("server-item"),
            ),
            ("json-answer", !calls && is_json),
            ("call-in-text", !calls && is_marked),
            ("leaked-markup", calls && is_marked),
            ("tag-mode", !is_native),
        ] {
            if is_so {
                self.flag(tag);
            }
        }
    }

    fn flag(&mut self, tag: &'static str) {
        self.flags.insert(tag, ());
    }

    fn hash(&mut self, bytes: &[u8]) {
        let digest = Sha256::digest(&bytes[..self.end.min(bytes.len())]);
        let sha256 = digest
            .iter()
            .fold(String::with_capacity(64), |mut out, byte| {
                // Writing to a string cannot fail.
                let _ = write!(out, "{byte:02x}");
                out
            });
        self.label.sha256 = Some(sha256);
    }
}

fn labelled(call: &Call) -> LabelledCall {
    let arguments = arguments(call).map(|json| json.text().to_owned());
    LabelledCall {
        name: call.name.clone(),
        arguments: arguments.and_then(|text| RawValue::from_string(text).ok()),
    }
}
