//! What all decoders share: the stream that they write.

use crate::failure::{StreamFailure, Words};
use crate::members::minified;
use crate::price::Price;
use crate::template::{DeltaKind, FrameDelta, FrameEffect};
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

/// How many members of an answer are kept, and how many details wait for the first event.
const MOST_MEMBERS: usize = 256;

/// What one stream keeps on its way out, so that it begins lazily and ends once.
#[derive(Debug)]
pub(crate) struct TurnState {
    pub api: &'static str,
    pub options: StreamOptions,
    pub id: Option<String>,
    model: Option<String>,
    /// How many tools the request offered, if the response repeats it.
    offered: Option<u32>,
    pub started: bool,
    /// The provider's end mark came: nothing that follows matters.
    pub marked: bool,
    pub ended: bool,
    /// Code and message of the last error: some providers send an error twice, and it is written
    /// once.
    pub error: Option<(String, String)>,
    choices: Choices<TurnChoice>,
    pub stats: SessionStats,
    /// How long the provider asks to wait after an error, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The frame at hand has a call, which is noted before its text: clients that look at the
    /// first frame of an answer alone find such a call.
    pub with_call: bool,
    /// The bytes that the decoder keeps of what came.
    kept: usize,
    scratch: String,
    /// Details that came before the first other event, which they must not begin: a request may be
    /// tried again until then.
    early: Vec<(u32, &'static str, String)>,
    /// The members of the answer that were written, which some providers repeat in each frame.
    answer: HashMap<String, String>,
    /// The provider's counts as they came.
    counts: Vec<String>,
    /// What the frame at hand did.
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

    /// How many bytes are kept of what came, by the decoder and for each choice.
    pub(crate) fn kept(&self) -> usize {
        self.kept + self.choices.len() * size_of::<TurnChoice>()
    }

    /// Whether at least one choice appeared and every one has its finish reason.
    pub(crate) fn is_whole(&self) -> bool {
        !self.choices.is_empty() && self.choices.iter().all(|c| c.finish.is_some())
    }

    /// A provider's text without credentials.
    pub(crate) fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.options.redactor.text(text)
    }
}

/// A stream while it takes a piece of the body: what it keeps, and where its events go.
pub(crate) struct EventWriter<'t> {
    /// What the stream keeps.
    pub state: &'t mut TurnState,
    /// Takes the events.
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
    /// Takes the members of `object` whose names are not among `read`, at a place of [`Details`].
    /// Those without content are left out.
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

    /// Takes one member at a place of [`Details`].
    pub(crate) fn member(&mut self, choice: u32, place: &'static str, name: &str, json: &str) {
        if self.options.details && !matches!(json, "null" | "\"\"" | "[]" | "{}") {
            let object = event::object(|o| _ = o.minified(name, json));
            self.detail(choice, place, object);
        }
    }

    /// The text that came last ends, and another follows that is not to become one with it.
    pub(crate) fn text_ends(&mut self) {
        if self.options.details && self.started {
            self.detail(0, "text", "{}".to_owned());
        }
    }

    /// Takes the provider's counts as they are. Those of a stream that `adds` counts to earlier
    /// ones stay.
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

    /// Sets the response's id. The first id counts, and only before the first event. Ids of calls
    /// are made from it, so where a provider sends none, another value that differs from response
    /// to response takes its place.
    pub(crate) fn id(&mut self, id: Option<Raw<'_>>) {
        if !self.started && self.id.is_none() {
            let text = id.map(|id| id.str().unwrap_or(Cow::Borrowed(id.text())));
            self.id = text
                .filter(|id| !id.is_empty() && id != "null")
                .map(Cow::into_owned);
        }
    }

    /// Sets the name of the model that answers. The name counts only before the first event.
    pub(crate) fn model(&mut self, model: Option<Raw<'_>>) {
        if !self.started && self.model.is_none() {
            self.model = model
                .and_then(Raw::str)
                .filter(|model| !model.is_empty())
                .map(Cow::into_owned);
        }
    }

    /// Sets the number of tools in the request that the client runs. The number counts only before
    /// the first event.
    pub(crate) fn offered(&mut self, tools: Option<u32>) {
        if !self.started {
            self.offered = self.offered.or(tools);
        }
    }

    /// Notes that this choice exists, so that the stream is whole only when it has finished too.
    pub(crate) fn choice(&mut self, choice: u32) {
        self.choices.of(choice);
    }

    /// Notes that the decoder keeps so many more bytes of what came.
    pub(crate) fn keep(&mut self, bytes: usize) {
        if bytes > 0 {
            self.effect.unique();
        }
        self.kept += bytes;
    }

    /// Notes that the decoder keeps so many bytes less.
    pub(crate) fn free(&mut self, bytes: usize) {
        if bytes > 0 {
            self.effect.unique();
        }
        self.kept = self.kept.saturating_sub(bytes);
    }

    /// A piece of the answer's text, still in JSON (a surrogate pair may be cut between two
    /// pieces).
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

    /// A piece of the answer's text.
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

    /// A piece of a refusal, still in JSON.
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

    /// A piece of reasoning, still in JSON.
    pub(crate) fn thinking(&mut self, choice: u32, piece: Raw<'_>) {
        let mut text = std::mem::take(&mut self.scratch);
        self.choices.of(choice).thinking.push(piece, &mut text);
        self.effect.piece(choice, DeltaKind::Thinking, piece, &text);
        self.thinking_plain(choice, &text, None);
        text.clear();
        self.scratch = text;
    }

    /// A piece of reasoning. `provider` is JSON on one line, an object with the API's name as its
    /// key; it closes the block.
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

    /// A piece of a call. `arguments` is the provider's value: a string is a fragment (a surrogate
    /// pair may be cut between two), an object or array is taken as its JSON text without white
    /// space, `null` and "" are nothing; it takes the place of what `delta` has. A delta without
    /// content is dropped.
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
            _ => self.state.effect.unique(),
        }
        if !text.is_empty() {
            delta.arguments = Some((&text).into());
        }
        delta.arguments = delta.arguments.filter(|a| !a.is_empty());
        // An id alone may be the beginning of a call, and is none.
        let is_call = delta.tool_name.is_some() || delta.arguments.is_some();
        state.calls |= is_call;
        if is_call || delta.tool_id.is_some() || delta.done || delta.provider.is_some() {
            self.write(choice, delta);
        }
        text.clear();
        self.scratch = text;
    }

    /// The next piece of `delta`.
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

    /// The call with the provider's `index` ends, with these as the rest of its arguments.
    pub(crate) fn end_call(&mut self, choice: u32, index: Option<i64>, arguments: &str) {
        let delta = ToolCallDelta {
            index,
            arguments: Some(arguments.into()),
            done: true,
            ..ToolCallDelta::default()
        };
        self.call(choice, &delta, None);
    }

    /// Reasoning ends with what must go back to the provider: `json` as the member `name`.
    pub(crate) fn goes_back(&mut self, choice: u32, name: &str, json: &str) {
        let api = self.api;
        let provider = event::object(|o| _ = o.object(api, |o| _ = o.minified(name, json)));
        self.thinking_plain(choice, "", Some(&provider));
    }

    /// Retracts the call with the provider's `index`.
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

    /// Something the provider ran itself; `data` is the provider's own object.
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

    /// Writes a `warning`, which does not stop the stream; `raw` is the text that is wrong.
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

    /// Writes an `error`: the stream has failed, and its end will have the reason `error`. What
    /// follows is still written. The same error again is dropped.
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

    /// Sets the provider's counts, in place of all earlier ones: many servers repeat the totals in
    /// each frame, and later totals may be smaller.
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

    /// Sets why a choice ended, and the provider's own word for that. A reason that means a cut
    /// answer stays.
    pub(crate) fn finish_reason(&mut self, choice: u32, reason: FinishReason, word: &str) {
        let finish = &mut self.choices.of(choice).finish;
        if finish
            .as_ref()
            .is_none_or(|(before, _)| before.is_whole() && !reason.is_whole())
        {
            *finish = Some((reason, word.to_owned()));
        }
    }

    /// Whether any choice was seen.
    pub(crate) fn has_choice(&self) -> bool {
        !self.choices.is_empty()
    }

    /// Nothing more comes: half a surrogate pair at the end of a text is written as U+FFFD.
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

    /// Writes `session_stats`, if anything is known, and `stream_end`. `how` takes the place of the
    /// provider's reason; an error that was written goes before both.
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
            // Z.ai ends an empty answer like this where the prompt alone is too long.
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

    /// Choices that end in half a surrogate pair, and the events whose text does.
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

    /// Writes the `stream_start` of a log, whose fields take the place of those of the request.
    /// `api` is the name of its API, if that is known.
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

    /// Ends the stream as a log has it. The counts are those of the log, if it `has_counts`.
    pub(crate) fn end_as(&mut self, end: StreamEnd<'_>, has_counts: bool) {
        if has_counts {
            let counts = self.stats;
            self.write(0, counts);
        }
        self.write(0, end);
        self.ended = true;
    }

    /// Writes the `stream_start`.
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

/// The rules of one API: turns its frames into calls of [`EventWriter`].
///
/// A decoder never fails a stream. It drops what it does not recognise; what is wrong becomes a
/// `warning` or an `error`. Error objects `{"error":…}` at the top of a frame are taken before it
/// sees them, and so is `[DONE]`.
pub(crate) trait Decoder {
    /// The next frame: the data of a server-sent event (`name` is its `event` field), or a JSON
    /// value of a body that is a sequence of values. When it was the provider's end mark the
    /// decoder sets [`TurnState::marked`].
    fn frame(&mut self, name: Option<&str>, data: Raw<'_>, turn: &mut EventWriter<'_>);

    /// Whether the same frame again, with another string in its delta, is the same delta of that
    /// string, if nothing came in between; see [`crate::template`]. What the decoder keeps of a
    /// frame apart from the delta is noted by [`EventWriter::keep`].
    fn repeats(&self) -> bool {
        false
    }

    /// A frame that repeats the last one, which was `delta`, with `piece` as the string of it.
    fn delta(&mut self, delta: FrameDelta, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        turn.delta(delta, piece);
    }

    /// Whether an object with an error in it is for the decoder, too.
    fn takes_errors(&self) -> bool {
        false
    }

    /// Whether this JSON value is a whole response of the endpoint without streaming, not a frame.
    /// `false` also where frames have the shape of the whole response.
    fn is_whole(&self, _body: Raw<'_>) -> bool {
        false
    }

    /// A whole response of the endpoint without streaming, as the same events. The end of the body
    /// follows.
    fn whole(&mut self, body: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.frame(None, body, turn);
    }

    /// The stream ends, with an end mark or without: closes what the decoder keeps open.
    /// `stream_end` follows.
    fn finish(&mut self, _turn: &mut EventWriter<'_>) {}
}

/// Fields of `stream_start` that the provider does not send, and limits.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The tools of the request: a JSON array in OpenAI's shape, on one line.
    pub tools: Option<String>,
    /// The system prompt of the request, where no message of the conversation has it.
    pub system: Option<String>,
    /// `native`, `tag` or `none`.
    pub tools_mode: Option<String>,
    /// The dialect's name in tag mode.
    pub dialect: Option<String>,
    /// The requested model; used if the response names none.
    pub model: Option<String>,
    /// The end of the prompt that the model's text continues.
    pub prefill: Option<String>,
    /// Which attempt this is, from 1.
    pub attempt: Option<u32>,
    /// Whether the endpoint without streaming had to be used.
    pub fallback: bool,
    /// The name of a response that has no id; ids of calls are made from it. See
    /// [`crate::Request::name`].
    pub id: Option<String>,
    /// Takes credentials out of errors, warnings and names: a server may repeat the key that it
    /// received. The model's text stays.
    pub redactor: Redactor,
    /// The name of the server, where errors are for a client of a service, who sees the status of
    /// the response beside them.
    pub server: Option<String>,
    /// Whether the ids of output items go along as `provider` data (OpenAI Responses): a later
    /// request may refer to them.
    pub item_ids: bool,
    /// Whether `details` events hold the members of the answer that no other event has.
    pub details: bool,
    /// The most bytes of one event of the body, or one JSON value; 64 MiB by default.
    pub max_frame: Option<usize>,
    /// The words of messages.
    pub words: Words,
    /// The prices of the model.
    pub price: Option<Price>,
    /// When the stream began, in milliseconds since 1970; `None` for a recording.
    pub timestamp: Option<u64>,
    /// The span of this stream, which the request's `traceparent` names.
    pub span: Option<SpanContext>,
    /// The parent span of this stream.
    pub caller: Option<SpanContext>,
}

/// How the bytes of a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The body's regular end.
    Eof,
    /// The connection was lost; a sentence for people.
    Reset(String),
    /// No bytes came for too long; a sentence for people.
    Timeout(String),
    /// We stopped it.
    Cancelled,
}

/// The member of the message that the open block of reasoning came in; empty while none is open.
#[derive(Debug, Default)]
pub(crate) struct ReasoningField(&'static str);

impl ReasoningField {
    /// Writes a piece of reasoning that came in the member `name`. A block in another member is
    /// closed first.
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

    /// Something else begins, or the answer has ended: writes where the block must go back to.
    pub(crate) fn close(&mut self, turn: &mut EventWriter<'_>) {
        let name = std::mem::take(&mut self.0);
        if !name.is_empty() {
            turn.goes_back(0, "field", &event::quoted(name));
        }
    }
}

/// A count of an object, reached by several keys.
pub(crate) fn count(object: Raw<'_>, path: &[&str]) -> Option<u64> {
    let n = object.at(path)?;
    n.i64()
        .map(|n| n.max(0) as u64)
        .or_else(|| n.f64().filter(|n| *n >= 0.0).map(|n| n as u64))
}

/// The sum of the counts that are known.
pub(crate) fn sum(counts: &[Option<u64>]) -> Option<u64> {
    counts.iter().flatten().copied().reduce(u64::saturating_add)
}

/// The counts of an API that reports them in parts: a later report replaces the parts that it has,
/// and the others stay.
///
/// Anthropic's `message_start` has all of them, and its `message_delta` those that are known better
/// at the end (platform.claude.com/docs/en/build-with-claude/streaming). What came from the cache
/// or was written to it is not part of the input.
#[derive(Debug, Default)]
pub(crate) struct UsageParts([Option<u64>; 4]);

impl UsageParts {
    /// Takes the next report. `names` are the keys of the input, of what was read from the cache
    /// and written to it, and of the output.
    pub(crate) fn take(&mut self, report: Raw<'_>, names: [&str; 4]) {
        for (part, name) in self.0.iter_mut().zip(names) {
            *part = count(report, &[name]).or(*part);
        }
    }

    /// The counts so far.
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
