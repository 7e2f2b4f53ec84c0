//! What a full reading finds in each stream of a recording.

use crate::read::{EventOrigin, ReadSettings};
use crate::reading::{StreamReader, streams};
use crate::recordings;
use anyhow::Result;
use event::payload::{ContentDelta, Retract, StreamEnd, StreamStart, Thinking, ToolCall};
use event::payload::{FinishReason, RefusalDelta, RetractReason};
use event::{Event, Json, Kind, Text};
use score::LabelledCall;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::Path;
use tag::lint::Lint;

/// What was found in choice 0 of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenCalls {
    pub part: u64,
    pub api: Option<String>,
    pub model: Option<String>,
    pub tools_mode: Option<String>,
    pub dialect: Option<String>,
    /// The answer before the first call, refusals included.
    pub before: String,
    /// The answer after the first call began.
    pub after: String,
    /// The calls in order; `None` for one that was taken back.
    calls: Vec<Option<LabelledCall>>,
    /// Their places by their ids.
    places: HashMap<String, usize>,
    has_call: bool,
    flags: Flags,
    /// The SHA-256 of the recording up to the end of the stream.
    pub sha256: String,
    /// The bytes of the recording up to its last event.
    end: usize,
}

/// What shows beside text and calls, as tags.
type Flags = BTreeMap<&'static str, ()>;

/// The streams of the recording at `path`, in order.
///
/// # Errors
/// When it cannot be read, or is not a recording.
pub(super) fn read(path: &Path, settings: &ReadSettings, lint: &Lint) -> Result<Vec<SeenCalls>> {
    let bytes = recordings::bytes(path)?;
    let streams = streams::<SeenCalls>(path, &bytes, settings)?;
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

impl StreamReader for SeenCalls {
    fn push(&mut self, _event: &Event<'_>, origin: EventOrigin) {
        self.part = origin.part;
        self.end = usize::try_from(origin.offset).unwrap_or(usize::MAX);
    }

    fn read(&mut self, event: &Event<'_>) {
        if event.choice() > 0 {
            self.flag("choices");
            return;
        }
        let owned =
            |text: Option<Text<'_>>| text.map(|t| t.str().into_owned()).filter(|t| !t.is_empty());
        match event.kind() {
            Kind::StreamStart => {
                let start = StreamStart::read(event);
                (self.api, self.model) = (owned(start.api), owned(start.model));
                (self.tools_mode, self.dialect) = (owned(start.tools_mode), owned(start.dialect));
            }
            Kind::ContentDelta => self.text(&ContentDelta::read(event).text.str()),
            Kind::RefusalDelta => {
                self.flag("refusal");
                self.text(&RefusalDelta::read(event).text.str());
            }
            Kind::Thinking if !self.has_call && !Thinking::read(event).text.is_empty() => {
                self.flag("reasoning")
            }
            Kind::ServerItem => self.flag("server-item"),
            Kind::Error => self.flag("error"),
            Kind::ToolCallDelta => self.has_call = true,
            Kind::ToolCall => self.call(&ToolCall::read(event)),
            Kind::Retract => {
                let retract = Retract::read(event);
                // A call of a stream that failed was made all the same.
                if retract.reason != RetractReason::StreamFailed.name() {
                    let id = owned(retract.tool_id).unwrap_or_default();
                    if let Some(call) = self
                        .places
                        .remove(&id)
                        .and_then(|at| self.calls.get_mut(at))
                    {
                        *call = None;
                        self.flag("retracted-call");
                    }
                }
            }
            Kind::StreamEnd => match StreamEnd::read(event).finish_reason {
                FinishReason::Length => self.flag("cut-text"),
                FinishReason::Cut => self.flag("connection-cut"),
                FinishReason::ContentFilter => self.flag("content-filter"),
                _ => {}
            },
            _ => {}
        }
    }
}

impl SeenCalls {
    /// Whether there is a call, by this reading.
    pub(super) fn has_call(&self) -> bool {
        self.calls.iter().any(Option::is_some)
    }

    /// The calls, in order.
    pub(super) fn calls(&self) -> Vec<LabelledCall> {
        self.calls.iter().flatten().cloned().collect()
    }

    /// What the stream shows, in the words of docs/evaluation.md.
    pub(super) fn tags(&self) -> Vec<String> {
        self.flags.keys().map(|tag| (*tag).to_owned()).collect()
    }

    fn text(&mut self, text: &str) {
        if self.has_call {
            self.after.push_str(text);
        } else {
            self.before.push_str(text);
        }
    }

    fn call(&mut self, call: &ToolCall<'_>) {
        self.has_call = true;
        if call.repairs.is_some() {
            self.flag("repaired");
        }
        let arguments = call
            .arguments
            .map(Json::text)
            .filter(|text| &**text != "null");
        let arguments = arguments.and_then(|text| RawValue::from_string(text.into_owned()).ok());
        let name = call.tool_name.str().into_owned();
        let id = call.tool_id.str().into_owned();
        let call = LabelledCall { name, arguments };
        match self.places.get(&id).and_then(|at| self.calls.get_mut(*at)) {
            Some(known) => *known = Some(call),
            None => {
                self.places.insert(id, self.calls.len());
                self.calls.push(Some(call));
            }
        }
    }

    /// The tags that depend on the whole stream.
    fn judge(&mut self, lint: &Lint) {
        let calls = self.has_call();
        let is_blank = self.before.trim().is_empty();
        let length = self.before.chars().count();
        let has_reasoning = self.flags.remove("reasoning").is_some();
        let was_cut = self.flags.remove("cut-text").is_some();
        let is_native = self.tools_mode.as_deref() != Some("tag");
        let whole = format!("{}{}", self.before, self.after);
        let is_marked = is_native && lint.finds(&whole);
        let cut_call = self
            .calls
            .iter()
            .flatten()
            .any(|call| call.arguments.is_none());
        let is_json = serde_json::from_str::<&RawValue>(&whole).is_ok()
            && whole.trim().starts_with(['{', '[']);
        for (tag, is_so) in [
            ("text-before-call", calls && !is_blank),
            ("white-space-before-call", calls && is_blank && length > 0),
            ("long-text-before-call", calls && length >= 1000),
            ("reasoning-before-call", calls && has_reasoning),
            ("reasoning", !calls && has_reasoning),
            ("text-after-call", calls && !self.after.trim().is_empty()),
            ("several-calls", self.calls.iter().flatten().count() > 1),
            ("cut-call", cut_call),
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
        self.sha256 = digest
            .iter()
            .fold(String::with_capacity(64), |mut out, byte| {
                // Writing to a string cannot fail.
                let _ = write!(out, "{byte:02x}");
                out
            });
    }
}
