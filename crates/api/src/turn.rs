//! The event stream that all decoders write to.

use crate::failure::{StreamFailure, Words};
use crate::members::minified;
use crate::price::Price;
use crate::template::{Counts, DeltaKind, FrameDelta, FrameEffect, Varying};
use event::payload::{
    ContentDelta, Details, Error, FinishReason, RefusalDelta, Retract, RetractReason, ServerItem,
    SessionStats, StreamEnd, StreamStart, Thinking, ToolCallDelta, Warning,
};
use event::{Choices, Json, Kind, Object, Payload, Raw, Sink, Surrogates, Text};
use redact::Redactor;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use trace::SpanContext;

/// The limit for remembered response members, and for details held until the first event.
const MOST_MEMBERS: usize = 256;

/// The state of one event stream, which starts with its first content and ends exactly once.
#[derive(Debug)]
pub(crate) struct TurnState {
    pub api: &'static str,
    pub options: StreamOptions,
    pub id: Option<String>,
    model: Option<String>,
    /// The number of tools in the request, if the response repeats it.
    offered: Option<u32>,
    pub started: bool,
    /// Whether the provider's end marker has arrived. The rest of the body can then be ignored.
    pub marked: bool,
    pub ended: bool,
    /// The code and message of the last error. Some providers send an error twice; the second is
    /// dropped.
    pub error: Option<(String, String)>,
    choices: Choices<TurnChoice>,
    pub stats: SessionStats,
    /// How long the provider asked the client to wait after an error, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Whether the current frame also contains a call. The text event is marked accordingly,
    /// because some clients look for a call only in the first frame of an answer.
    pub with_call: bool,
    /// The number of bytes that the decoder buffers.
    kept: usize,
    scratch: String,
    /// Details that arrived before the first other event. They must not start the stream, because
    /// the request may be retried until it starts.
    early: Vec<(u32, &'static str, String)>,
    /// The response members already written. Some providers repeat them in every frame.
    answer: HashMap<String, String>,
    /// The provider's own usage objects.
    counts: Vec<String>,
    /// The effect of the current frame.
    pub effect: FrameEffect,
}

#[derive(Debug, Default)]
struct TurnChoice {
    text: Surrogates,
    refusal: Surrogates,
    thinking: Surrogates,
    arguments: Surrogates,
    /// The provider's index of the call that `arguments` belongs to.
    index: Option<i64>,
    calls: bool,
    finish: Option<(FinishReason, String)>,
}

impl TurnState {
    pub(crate) fn new(api: &'static str, options: StreamOptions) -> Self {
        TurnState {
            api,
            options,
            id: None,
            model: None,
            offered: None,
            started: false,
            marked: false,
            ended: false,
            error: None,
            choices: Choices::default(),
            stats: SessionStats::default(),
            retry_after_ms: None,
            with_call: false,
            kept: 0,
            scratch: String::new(),
            early: Vec::new(),
            answer: HashMap::new(),
            counts: Vec::new(),
            effect: FrameEffect::default(),
        }
    }

    /// Returns the number of bytes held by the decoder and for the choices.
    pub(crate) fn kept(&self) -> usize {
        self.kept + self.choices.len() * size_of::<TurnChoice>()
    }

    /// Whether at least one choice has appeared and all choices have a finish reason.
    pub(crate) fn is_whole(&self) -> bool {
        !self.choices.is_empty() && self.choices.iter().all(|c| c.finish.is_some())
    }

    /// Removes credentials from a provider's text.
    pub(crate) fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.options.redactor.text(text)
    }
}

/// A stream's state together with the sink for its events.
pub(crate) struct EventWriter<'t> {
    /// The state of the stream.
    pub state: &'t mut TurnState,
    /// Receives the events.
    pub out: &'t mut dyn Sink,
}

impl Deref for EventWriter<'_> {
    type Target = TurnState;

    fn deref(&self) -> &TurnState {
        self.state
    }
}

impl DerefMut for EventWriter<'_> {
    fn deref_mut(&mut self) -> &mut TurnState {
        self.state
    }
}

impl EventWriter<'_> {
    /// Writes the non-empty members of `object` that are not in `read` as [`Details`] at `place`.
    pub(crate) fn details(
        &mut self,
        choice: u32,
        place: &'static str,
        object: Raw<'_>,
        read: &[&str],
    ) {
        if !self.options.details {
            return;
        }
        let mut json = Vec::new();
        let mut o = Object::open(&mut json);
        let mut has_members = false;
        for (name, value) in object.entries() {
            if read.contains(&name.as_ref())
                || matches!(value.text(), "null" | "\"\"" | "[]" | "{}")
            {
                continue;
            }
            if place == "answer" {
                let same = self
                    .answer
                    .get(name.as_ref())
                    .is_some_and(|before| before == value.text());
                if same || self.answer.len() >= MOST_MEMBERS {
                    continue;
                }
                self.answer
                    .insert(name.clone().into_owned(), value.text().to_owned());
            }
            o.minified(&name, value.text());
            has_members = true;
        }
        o.close();
        if has_members {
            self.detail(choice, place, String::from_utf8_lossy(&json).into_owned());
        }
    }

    /// Writes one non-empty member as [`Details`] at `place`.
    pub(crate) fn member(&mut self, choice: u32, place: &'static str, name: &str, json: &str) {
        if self.options.details && !matches!(json, "null" | "\"\"" | "[]" | "{}") {
            let object = event::object(|o| _ = o.minified(name, json));
            self.detail(choice, place, object);
        }
    }

    /// Marks the end of a text, so that the next text is not joined to it.
    pub(crate) fn text_ends(&mut self) {
        if self.options.details && self.started {
            self.detail(0, "text", "{}".to_owned());
        }
    }

    /// Stores the provider's usage object for a `details` event. It replaces the earlier ones,
    /// unless `adds` is true because the stream reports its counts in parts.
    pub(crate) fn counts(&mut self, counts: Raw<'_>, adds: bool) {
        if self.options.details {
            if adds {
                self.effect.unique();
            } else {
                self.counts.clear();
            }
            self.counts.push(minified(counts));
        }
    }

    fn detail(&mut self, choice: u32, place: &'static str, json: String) {
        self.effect.unique();
        if self.started {
            self.out.emit(
                choice,
                Details {
                    place: place.into(),
                    data: Json::of(&json),
                },
            );
        } else if self.early.len() < MOST_MEMBERS {
            self.early.push((choice, place, json));
        }
    }

    /// Sets the response's id. Only the first id before the first event counts. Call ids are
    /// derived from it, so for providers without response ids another value that differs between
    /// responses is used.
    pub(crate) fn id(&mut self, id: Option<Raw<'_>>) {
        if !self.started && self.id.is_none() {
            let text = id.map(|id| id.str().unwrap_or(Cow::Borrowed(id.text())));
            self.id = text
                .filter(|id| !id.is_empty() && id != "null")
                .map(Cow::into_owned);
        }
    }

    /// Sets the model's name. Ignored after the first event.
    pub(crate) fn model(&mut self, model: Option<Raw<'_>>) {
        if !self.started && self.model.is_none() {
            self.model = model
                .and_then(Raw::str)
                .filter(|model| !model.is_empty())
                .map(Cow::into_owned);
        }
    }

    /// Sets the number of tools in the request that the client runs. Ignored after the first event.
    pub(crate) fn offered(&mut self, tools: Option<u32>) {
        if !self.started {
            self.offered = self.offered.or(tools);
        }
    }

    /// Registers a choice. The stream is then complete only once this choice has finished.
    pub(crate) fn choice(&mut self, choice: u32) {
        self.choices.of(choice);
    }

    /// Records that the decoder buffers `bytes` more bytes.
    pub(crate) fn keep(&mut self, bytes: usize) {
        if bytes > 0 {
            self.effect.unique();
        }
        self.kept += bytes;
    }

    /// Like [`EventWriter::keep`], for bytes of the piece that the decoder also keeps of a frame
    /// that repeats this one.
    pub(crate) fn keep_piece(&mut self, bytes: usize) {
        self.kept += bytes;
    }

    /// Records that the decoder buffers `bytes` fewer bytes.
    pub(crate) fn free(&mut self, bytes: usize) {
        if bytes > 0 {
            self.effect.unique();
        }
        self.kept = self.kept.saturating_sub(bytes);
    }

    /// Writes a piece of answer text. `piece` is still JSON, because a surrogate pair may be split
    /// between two pieces.
    pub(crate) fn text(&mut self, choice: u32, piece: Raw<'_>) {
        let mut text = std::mem::take(&mut self.scratch);
        self.choices.of(choice).text.push(piece, &mut text);
        let with_call = self.with_call;
        let kind = DeltaKind::Text { with_call };
        self.effect.piece(choice, kind, piece, &text);
        self.text_plain(choice, &text);
        text.clear();
        self.scratch = text;
    }

    /// Writes a piece of answer text.
    pub(crate) fn text_plain(&mut self, choice: u32, text: &str) {
        if !text.is_empty() {
            self.write(
                choice,
                ContentDelta {
                    text: text.into(),
                    with_call: self.with_call,
                },
            );
        }
    }

    /// Writes a piece of a refusal, still in JSON.
    pub(crate) fn refusal(&mut self, choice: u32, piece: Raw<'_>) {
        let mut text = std::mem::take(&mut self.scratch);
        self.choices.of(choice).refusal.push(piece, &mut text);
        self.effect.piece(choice, DeltaKind::Refusal, piece, &text);
        if !text.is_empty() {
            self.write(
                choice,
                RefusalDelta {
                    text: (&text).into(),
                },
            );
        }
        text.clear();
        self.scratch = text;
    }

    /// Writes a piece of reasoning, still in JSON.
    pub(crate) fn thinking(&mut self, choice: u32, piece: Raw<'_>) {
        let mut text = std::mem::take(&mut self.scratch);
        self.choices.of(choice).thinking.push(piece, &mut text);
        self.effect.piece(choice, DeltaKind::Thinking, piece, &text);
        self.thinking_plain(choice, &text, None);
        text.clear();
        self.scratch = text;
    }

    /// Writes a piece of reasoning. `provider` closes the block; it is a JSON object on one line
    /// with the API's name as its key.
    pub(crate) fn thinking_plain(&mut self, choice: u32, text: &str, provider: Option<&str>) {
        if !text.is_empty() || provider.is_some() {
            self.write(
                choice,
                Thinking {
                    text: text.into(),
                    provider: provider.map(Json::of),
                },
            );
        }
    }

    /// Writes a piece of a call. `arguments` is the provider's value and replaces the arguments in
    /// `delta`: a string is a fragment (a surrogate pair may be split between two), an object or
    /// array becomes its minified JSON text, and `null` and "" add nothing. An empty delta is
    /// dropped.
    pub(crate) fn call(
        &mut self,
        choice: u32,
        delta: &ToolCallDelta<'_>,
        arguments: Option<Raw<'_>>,
    ) {
        let mut delta = *delta;
        delta.tool_id = delta.tool_id.filter(|id| !id.is_empty());
        delta.tool_name = delta.tool_name.filter(|name| !name.is_empty());
        let mut text = std::mem::take(&mut self.scratch);
        let state = self.state.choices.of(choice);
        if state.index != delta.index {
            state.index = delta.index;
            state.arguments = Surrogates::default();
        }
        match arguments {
            Some(a) if a.is_str() => state.arguments.push(a, &mut text),
            Some(a) if !a.is_null() => {
                text.push_str(&minified(a));
            }
            _ => {}
        }
        let is_more = delta.tool_id.is_some()
            || delta.tool_name.is_some()
            || delta.provider.is_some()
            || delta.done;
        match arguments {
            Some(piece) if piece.is_str() && !is_more => {
                let kind = DeltaKind::Arguments(delta.index);
                self.state.effect.piece(choice, kind, piece, &text);
            }
            // The decoder has decoded the arguments, and reports their piece itself.
            None if delta.arguments.is_some() && !is_more => {}
            _ => self.state.effect.unique(),
        }
        if !text.is_empty() {
            delta.arguments = Some((&text).into());
        }
        delta.arguments = delta.arguments.filter(|a| !a.is_empty());
        // An id alone does not count as a call, because the call may never arrive.
        let is_call = delta.tool_name.is_some() || delta.arguments.is_some();
        state.calls |= is_call;
        if is_call || delta.tool_id.is_some() || delta.done || delta.provider.is_some() {
            self.write(choice, delta);
        }
        text.clear();
        self.scratch = text;
    }

    /// Writes the next piece of `delta`.
    pub(crate) fn delta(&mut self, delta: FrameDelta, piece: Raw<'_>) {
        let FrameDelta { choice, kind } = delta;
        match kind {
            DeltaKind::Text { with_call } => {
                self.with_call = with_call;
                self.text(choice, piece);
            }
            DeltaKind::Refusal => self.refusal(choice, piece),
            DeltaKind::Thinking => self.thinking(choice, piece),
            DeltaKind::Arguments(index) => {
                let delta = ToolCallDelta {
                    index,
                    ..ToolCallDelta::default()
                };
                self.call(choice, &delta, Some(piece));
            }
        }
    }

    /// Ends the call whose provider index is `index`. `arguments` is the rest of its arguments.
    pub(crate) fn end_call(&mut self, choice: u32, index: Option<i64>, arguments: &str) {
        let delta = ToolCallDelta {
            index,
            arguments: Some(arguments.into()),
            done: true,
            ..ToolCallDelta::default()
        };
        self.call(choice, &delta, None);
    }

    /// Closes a block of reasoning with data that must be sent back to the provider: `json` as the
    /// member `name`.
    pub(crate) fn goes_back(&mut self, choice: u32, name: &str, json: &str) {
        let api = self.api;
        let provider = event::object(|o| _ = o.object(api, |o| _ = o.minified(name, json)));
        self.thinking_plain(choice, "", Some(&provider));
    }

    /// Retracts the call whose provider index is `index`.
    pub(crate) fn retract(&mut self, choice: u32, index: i64, reason: RetractReason) {
        self.write(
            choice,
            Retract {
                index: Some(index),
                reason: reason.name().into(),
                ..Retract::default()
            },
        );
    }

    /// Writes an item that the provider ran itself. `data` is the provider's own object.
    pub(crate) fn server_item(&mut self, choice: u32, kind: &str, data: Raw<'_>) {
        let json = minified(data);
        self.write(
            choice,
            ServerItem {
                kind: kind.into(),
                data: Json::of(&json),
            },
        );
    }

    /// Writes a `warning`, which does not stop the stream. `raw` is the offending text.
    pub(crate) fn warning(&mut self, choice: u32, code: &str, message: &str, raw: Option<&str>) {
        let message = self.redacted(message);
        let raw = raw.map(|raw| self.redacted(raw));
        let warning = Warning::new(self.options.words.source, code, &message);
        let warning = match &raw {
            Some(raw) => warning.about(raw),
            None => warning,
        };
        self.write(choice, warning);
    }

    /// Writes an `error`. The stream has failed and will end with the reason `error`, but later
    /// content is still written. An error identical to the last one is dropped.
    pub(crate) fn error(&mut self, failure: &StreamFailure) {
        let native = self.options.tools_mode.as_deref() == Some("native");
        let failure = failure
            .clone()
            .advised(native, &self.options.words)
            .redacted(&self.options.redactor);
        let said = (failure.code.clone(), failure.message.clone());
        if self.error.as_ref() == Some(&said) {
            return;
        }
        self.write(
            0,
            Error {
                retryable: failure.retryable,
                provider: failure.provider.as_deref().map(Json::of),
                status: failure.status.map(u32::from),
                retry_after_ms: failure.status.and(self.retry_after_ms),
                ..Error::new(self.options.words.source, &failure.code, &failure.message)
            },
        );
        self.error = Some(said);
    }

    /// Replaces the provider's token counts. They are not added up, because many servers repeat the
    /// totals in each frame, and later totals may be smaller.
    pub(crate) fn usage(&mut self, counts: SessionStats) {
        let tokens = [
            counts.prompt_tokens,
            counts.completion_tokens,
            counts.total_tokens,
            counts.reasoning_tokens,
            counts.cached_tokens,
            counts.cache_write_tokens,
        ];
        if tokens.iter().any(Option::is_some) {
            self.stats = SessionStats {
                retries: self.stats.retries,
                fallbacks: self.stats.fallbacks,
                first_event_ms: self.stats.first_event_ms,
                duration_ms: self.stats.duration_ms,
                ..counts
            };
        }
    }

    /// Sets why a choice ended; `word` is the provider's own reason. A reason that marks a
    /// truncated answer is never overwritten.
    pub(crate) fn finish_reason(&mut self, choice: u32, reason: FinishReason, word: &str) {
        let finish = &mut self.choices.of(choice).finish;
        if finish
            .as_ref()
            .is_none_or(|(before, _)| before.is_whole() && !reason.is_whole())
        {
            *finish = Some((reason, word.to_owned()));
        }
    }

    /// Whether any choice has appeared.
    pub(crate) fn has_choice(&self) -> bool {
        !self.choices.is_empty()
    }

    /// Flushes text when no more frames follow: a surrogate that lacks its other half becomes
    /// U+FFFD.
    pub(crate) fn flush(&mut self) {
        let text = "\u{fffd}".into();
        for (choice, kind) in self.halves() {
            match kind {
                Kind::Thinking => self.write(
                    choice,
                    Thinking {
                        text,
                        provider: None,
                    },
                ),
                Kind::RefusalDelta => self.write(choice, RefusalDelta { text }),
                _ => self.write(
                    choice,
                    ContentDelta {
                        text,
                        with_call: false,
                    },
                ),
            }
        }
    }

    /// Writes `session_stats`, if any statistics are known, and `stream_end`. `how` overrides the
    /// provider's reason. An earlier `error` event overrides every reason except a truncated
    /// stream.
    pub(crate) fn end(&mut self, how: Option<FinishReason>) {
        let failed = self.choices.by_number().find_map(|(_, c)| {
            c.finish
                .clone()
                .filter(|(reason, _)| *reason == FinishReason::Error)
        });
        if let (Some((_, word)), None) = (failed, &self.error) {
            let failure = StreamFailure::new(
                "provider_error",
                format!("the provider ended the answer with \"{word}\""),
                true,
            );
            self.error(&failure);
        }
        let word = self
            .choices
            .by_number()
            .find_map(|(_, c)| c.finish.clone())
            .map(|(_, word)| word);
        if !self.started
            && how.is_none()
            && word.as_deref() == Some("model_context_window_exceeded")
        {
            // Z.ai sends an empty answer with this reason if the prompt alone exceeds the context.
            self.error(&StreamFailure::new(
                "context_overflow",
                "the prompt is longer than the model's context",
                false,
            ));
        }
        for counts in std::mem::take(&mut self.counts) {
            self.write(
                0,
                Details {
                    place: "usage".into(),
                    data: Json::of(&counts),
                },
            );
        }
        self.stats.total_tokens = self.stats.total();
        let price = self.options.price;
        self.stats.cost_microusd = price.and_then(|price| price.of(&self.stats));
        let stats = self.stats;
        let known = [
            stats.prompt_tokens,
            stats.completion_tokens,
            stats.total_tokens,
            stats.duration_ms.map(|time| time.micros),
            stats.retries,
            stats.fallbacks,
        ];
        if known.iter().any(Option::is_some) {
            self.write(0, stats);
        }
        let first = self
            .choices
            .by_number()
            .next()
            .map(|(_, choice)| std::mem::take(choice))
            .unwrap_or_default();
        let (reason, word) = first.finish.unzip();
        let reason = match (how, reason) {
            (Some(how), _) => how,
            (None, Some(FinishReason::Stop) | None) if first.calls => FinishReason::ToolCalls,
            (None, reason) => reason.unwrap_or(FinishReason::Stop),
        };
        let finish_reason = if self.error.is_some() && reason != FinishReason::Cut {
            FinishReason::Error
        } else {
            reason
        };
        let word = word.map(|word| self.redacted(&word).into_owned());
        let provider_finish_reason = word.as_ref().map(Into::into);
        self.write(
            0,
            StreamEnd {
                finish_reason,
                provider_finish_reason,
            },
        );
        self.ended = true;
    }

    /// Returns the (choice, event kind) pairs whose text ends in half a surrogate pair.
    fn halves(&mut self) -> Vec<(u32, Kind)> {
        let mut halves = Vec::new();
        let mut text = String::new();
        for (choice, state) in self.choices.by_number() {
            for (surrogates, kind) in [
                (&mut state.thinking, Kind::Thinking),
                (&mut state.text, Kind::ContentDelta),
                (&mut state.refusal, Kind::RefusalDelta),
            ] {
                surrogates.finish(&mut text);
                if !text.is_empty() {
                    halves.push((choice, kind));
                    text.clear();
                }
            }
        }
        halves
    }

    pub(crate) fn write<'p>(&mut self, choice: u32, payload: impl Into<Payload<'p>>) {
        self.effect.event();
        if !std::mem::replace(&mut self.started, true) {
            self.effect.unique();
            self.start();
            for (choice, place, json) in std::mem::take(&mut self.early) {
                self.detail(choice, place, json);
            }
        }
        self.out.emit(choice, payload);
    }

    /// Writes the `stream_start` read from a log. Its fields replace those of the options. `api` is
    /// the API's name, or `None` if it is unknown.
    pub(crate) fn start_as(&mut self, start: &StreamStart<'_>, api: Option<&'static str>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let text = |text: Option<Text<'_>>| text.map(|text| text.str().into_owned());
        let state = &mut *self.state;
        (state.id, state.model) = (text(start.id), text(start.model));
        if let Some(api) = api {
            state.api = api;
        }
        state.offered = start.tools_offered;
        state.options = StreamOptions {
            tools: start.tools.map(|tools| tools.text().into_owned()),
            system: text(start.system),
            tools_mode: text(start.tools_mode),
            dialect: text(start.dialect),
            prefill: text(start.prefill),
            attempt: start.attempt,
            fallback: start.fallback.is_some(),
            ..std::mem::take(&mut state.options)
        };
        self.start();
    }

    /// Writes the `stream_end` read from a log. Writes the counts first if `has_counts` is true,
    /// that is, if the log contains them.
    pub(crate) fn end_as(&mut self, end: StreamEnd<'_>, has_counts: bool) {
        if has_counts {
            let counts = self.stats;
            self.write(0, counts);
        }
        self.write(0, end);
        self.ended = true;
    }

    /// Writes `stream_start`.
    fn start(&mut self) {
        let state = &mut *self.state;
        for name in [&mut state.id, &mut state.model].into_iter().flatten() {
            if let Cow::Owned(clean) = state.options.redactor.text(name) {
                *name = clean;
            }
        }
        let o = &state.options;
        let traceparent = o.span.map(|span| span.to_string());
        let parent_span = o.caller.map(SpanContext::span_id);
        let system = o.system.as_deref().map(|text| o.redactor.text(text));
        let start = StreamStart {
            api: Some(state.api.into()),
            model: state.model.as_ref().or(o.model.as_ref()).map(Into::into),
            id: state.id.as_ref().or(o.id.as_ref()).map(Into::into),
            tools_mode: o.tools_mode.as_ref().map(Into::into),
            dialect: o.dialect.as_ref().map(Into::into),
            tools: o.tools.as_deref().map(Json::of),
            system: system.as_deref().map(Into::into),
            tools_offered: state.offered,
            prefill: o.prefill.as_ref().map(Into::into),
            attempt: o.attempt,
            fallback: o.fallback.then(|| "sync".into()),
            timestamp: o.timestamp,
            traceparent: traceparent.as_ref().map(Into::into),
            parent_span: parent_span.as_ref().map(Into::into),
            ..StreamStart::default()
        };
        self.out.emit(0, start);
    }
}

/// The decoder for one API: converts its frames into calls of [`EventWriter`].
///
/// A decoder never aborts a stream. It skips what it does not recognise, and reports problems as a
/// `warning` or `error`. Error objects (`{"error":…}` at the top level of a frame) and `[DONE]` are
/// handled before the decoder is called.
pub(crate) trait Decoder {
    /// Decodes the next frame: the data of a server-sent event (`name` is its `event` field), or
    /// one JSON value of a body that is a sequence of values. Sets [`TurnState::marked`] if the
    /// frame was the provider's end marker.
    fn frame(&mut self, name: Option<&str>, data: Raw<'_>, turn: &mut EventWriter<'_>);

    /// Whether a frame that repeats the previous one, except for the string in its delta, can be
    /// decoded as the same delta with the new string; see [`crate::template`]. If a frame changes
    /// other state, the decoder must report that with [`EventWriter::keep`].
    fn repeats(&self) -> bool {
        false
    }

    /// The members at the top of a frame that may differ in a frame that repeats the previous one.
    fn varying(&self) -> Varying {
        Varying::default()
    }

    /// Reads the token counts of a frame that repeats the previous one, after its delta.
    fn counts(&mut self, _counts: Counts, _turn: &mut EventWriter<'_>) {}

    /// Decodes a frame that repeats the previous one, which was `delta`. `piece` is the new string.
    fn delta(&mut self, delta: FrameDelta, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        turn.delta(delta, piece);
    }

    /// Whether the decoder also handles objects that contain an error.
    fn takes_errors(&self) -> bool {
        false
    }

    /// Whether `body` is a complete non-streaming response rather than a frame. Also false for APIs
    /// whose frames have the same shape as their complete response.
    fn is_whole(&self, _body: Raw<'_>) -> bool {
        false
    }

    /// Decodes a complete non-streaming response into the same events. The body ends after it.
    fn whole(&mut self, body: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.frame(None, body, turn);
    }

    /// Closes everything that is still open when the stream ends, with or without an end marker.
    /// `stream_end` is written afterwards.
    fn finish(&mut self, _turn: &mut EventWriter<'_>) {}
}

/// Settings for `stream_start` fields that the provider does not send, and limits.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The request's tools: a JSON array in OpenAI's shape, on one line.
    pub tools: Option<String>,
    /// The request's system prompt, if it is not one of the conversation's messages.
    pub system: Option<String>,
    /// `native`, `tag` or `none`.
    pub tools_mode: Option<String>,
    /// The dialect's name in tag mode.
    pub dialect: Option<String>,
    /// The requested model; used if the response does not name one.
    pub model: Option<String>,
    /// The end of the prompt, which the model's text continues.
    pub prefill: Option<String>,
    /// The number of this attempt, starting at 1.
    pub attempt: Option<u32>,
    /// Whether the non-streaming endpoint is used as a fallback.
    pub fallback: bool,
    /// A name to use if the response has no id; call ids are derived from it. See
    /// [`crate::Request::name`].
    pub id: Option<String>,
    /// Removes credentials from errors, warnings and names, because a server may echo the key that
    /// it received. The model's text is not changed.
    pub redactor: Redactor,
    /// The server name to use in errors. `Some` if errors are reported to a client of a service,
    /// which also sees the response's status.
    pub server: Option<String>,
    /// Whether to keep the ids of output items as `provider` data (OpenAI Responses), because a
    /// later request may refer to them.
    pub item_ids: bool,
    /// Whether to write `details` events with the members of the response that no other event
    /// contains.
    pub details: bool,
    /// The maximum size in bytes of one event or JSON value in the body; 64 MiB if `None`.
    pub max_frame: Option<usize>,
    /// The names to use in error messages.
    pub words: Words,
    /// The model's prices.
    pub price: Option<Price>,
    /// When the stream started, in milliseconds since 1970; `None` for a recording.
    pub timestamp: Option<u64>,
    /// The span of this stream, sent in the request's `traceparent`.
    pub span: Option<SpanContext>,
    /// The parent span.
    pub caller: Option<SpanContext>,
}

/// How the bytes of a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The body ended normally.
    Eof,
    /// The connection was lost. Holds a message for the user.
    Reset(String),
    /// No bytes arrived for too long. Holds a message for the user.
    Timeout(String),
    /// The stream was cancelled on our side.
    Cancelled,
}

/// The name of the message member that the open block of reasoning arrived in; empty if no block is
/// open.
#[derive(Debug, Default)]
pub(crate) struct ReasoningField(&'static str);

impl ReasoningField {
    /// Writes a piece of reasoning that arrived in the member `name`. First closes a block from
    /// another member.
    pub(crate) fn piece(&mut self, name: &'static str, text: Raw<'_>, turn: &mut EventWriter<'_>) {
        if !text.is_str() || text.text() == "\"\"" {
            return;
        }
        if self.0 != name {
            self.close(turn);
            self.0 = name;
        }
        turn.thinking(0, text);
    }

    /// Closes the open block and records the member that its text must be sent back in. Called when
    /// other content starts or the answer ends.
    pub(crate) fn close(&mut self, turn: &mut EventWriter<'_>) {
        let name = std::mem::take(&mut self.0);
        if !name.is_empty() {
            turn.goes_back(0, "field", &event::quoted(name));
        }
    }
}

/// Returns the count at `path` in `object`. Negative integers count as 0.
pub(crate) fn count(object: Raw<'_>, path: &[&str]) -> Option<u64> {
    let n = object.at(path)?;
    n.i64()
        .map(|n| n.max(0) as u64)
        .or_else(|| n.f64().filter(|n| *n >= 0.0).map(|n| n as u64))
}

/// Returns the sum of the known counts, or `None` if none is known.
pub(crate) fn sum(counts: &[Option<u64>]) -> Option<u64> {
    counts.iter().flatten().copied().reduce(u64::saturating_add)
}

/// Token counts of an API that reports them in parts: a later report replaces only the parts that
/// it contains.
///
/// Anthropic's `message_start` has all parts, and `message_delta` updates those that are only final
/// at the end (platform.claude.com/docs/en/build-with-claude/streaming). The input count excludes
/// tokens read from or written to the cache.
#[derive(Debug, Default)]
pub(crate) struct UsageParts([Option<u64>; 4]);

impl UsageParts {
    /// Reads the next report. `names` are the keys of the counts for input, cache reads, cache
    /// writes and output.
    pub(crate) fn take(&mut self, report: Raw<'_>, names: [&str; 4]) {
        for (part, name) in self.0.iter_mut().zip(names) {
            *part = count(report, &[name]).or(*part);
        }
    }

    /// Returns the counts so far.
    pub(crate) fn usage(&self) -> SessionStats {
        let [_, cache_read, cache_write, output] = self.0;
        SessionStats {
            prompt_tokens: sum(&self.0[..3]),
            completion_tokens: output,
            cached_tokens: cache_read.filter(|n| *n > 0),
            cache_write_tokens: cache_write.filter(|n| *n > 0),
            ..SessionStats::default()
        }
    }
}
