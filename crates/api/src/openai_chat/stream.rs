//! Decodes Chat Completions, as documented by OpenAI
//! (platform.openai.com/docs/api-reference/chat-streaming) and with the deviations of the many
//! compatible servers: a chunk contains choices, a choice contains a delta, and a delta contains
//! text, reasoning and pieces of calls.
//!
//! Mistral's stream (docs.mistral.ai/api) is the same, with a list of parts as content.
//! docs/deviations.md lists the deviations, each with its source and fixture.

use crate::failure::StreamFailure;
use crate::members::minified;
use crate::template::Varying;
use crate::turn::{Decoder, EventWriter};
use event::payload::{FinishReason, SessionStats, ToolCallDelta};
use event::{Choices, Json, Raw, Text};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The members of a chunk, a choice and a message that are parsed. `obfuscation` is meaningless
/// text that hides the chunk's length
/// (<https://platform.openai.com/docs/api-reference/chat-streaming>).
const ANSWER: [&str; 8] = [
    "id",
    "object",
    "created",
    "model",
    "choices",
    "usage",
    "error",
    "obfuscation",
];
const CHOICE: [&str; 7] = [
    "index",
    "delta",
    "message",
    "finish_reason",
    "usage",
    "error",
    "text",
];
const MESSAGE: [&str; 7] = [
    "role",
    "content",
    "refusal",
    "tool_calls",
    "function_call",
    "reasoning_content",
    "reasoning",
];

/// Decodes this API's streams.
#[derive(Debug, Default)]
pub(crate) struct OpenaiChat {
    choices: Choices<ChatChoice>,
}

/// The open parts of one choice.
#[derive(Debug, Default)]
struct ChatChoice {
    index: u32,
    reasoning: OpenReasoning,
    /// The provider's index of each open call of a custom tool, whose input is text instead of
    /// JSON.
    customs: BTreeSet<Option<i64>>,
}

impl OpenaiChat {
    fn choice(&mut self, index: u32) -> &mut ChatChoice {
        let at = self.choices.place(index, || ChatChoice {
            index,
            ..ChatChoice::default()
        });
        &mut self.choices[at]
    }
}

impl Decoder for OpenaiChat {
    fn frame(&mut self, _name: Option<&str>, data: Raw<'_>, turn: &mut EventWriter<'_>) {
        let [choices, counts, x_groq] = data.fields(["choices", "usage", "x_groq"]);
        // Every chunk repeats these members, but they only count before the first event.
        let [id, model, created] = if turn.started {
            [None; 3]
        } else {
            data.fields(["id", "model", "created"])
        };
        turn.id(id);
        turn.model(model);
        if let Some(x_groq) = x_groq {
            groq(x_groq, turn);
        }
        turn.details(0, "answer", data, &ANSWER);
        for item in choices.into_iter().flat_map(Raw::items) {
            turn.id(created);
            self.item(item, turn);
        }
        // Read after the counts of single choices, because these are the totals.
        if let Some(counts) = counts {
            usage(counts, turn);
        }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn varying(&self) -> Varying {
        Varying {
            unread: &["obfuscation"],
            ..Varying::default()
        }
    }

    fn is_whole(&self, body: Raw<'_>) -> bool {
        let item = body.get("choices").and_then(|c| c.items().next());
        item.is_some_and(|item| item.get("message").is_some() && item.get("delta").is_none())
    }

    fn finish(&mut self, turn: &mut EventWriter<'_>) {
        for choice in self.choices.iter_mut() {
            choice.reasoning.close(choice.index, turn);
        }
    }
}

impl OpenaiChat {
    /// Decodes one item of `choices`.
    fn item(&mut self, item: Raw<'_>, turn: &mut EventWriter<'_>) {
        let [index, delta, finish, counts, error] =
            item.fields(["index", "delta", "finish_reason", "usage", "error"]);
        let index = index
            .and_then(Raw::i64)
            .and_then(|i| u32::try_from(i).ok())
            .unwrap_or(0);
        let [delta, error] = [delta, error].map(|v| v.filter(|v| v.is_object()));
        let finish = finish.and_then(Raw::str).filter(|word| !word.is_empty());
        if let Some(counts) = counts {
            usage(counts, turn);
        }
        if let Some(error) = error {
            turn.error(&StreamFailure::of(error, None));
        }
        turn.choice(index);
        turn.details(index, "choice", item, &CHOICE);
        if let Some(delta) = delta {
            self.delta(index, delta, false, turn);
        } else if let Some(message) = item.get("message").filter(|m| m.is_object()) {
            self.delta(index, message, true, turn);
        } else if let Some(text) = item.get("text") {
            turn.text(index, text);
        }
        if let Some(word) = finish {
            let choice = self.choice(index);
            choice.reasoning.close(index, turn);
            for index in std::mem::take(&mut choice.customs) {
                turn.end_call(choice.index, index, "\"}");
            }
            turn.finish_reason(index, reason(&word), &word);
        }
    }

    /// Decodes a delta or a complete message. Reasoning is written before text, and text before
    /// calls, whatever the order of the members.
    fn delta(&mut self, index: u32, delta: Raw<'_>, whole: bool, turn: &mut EventWriter<'_>) {
        let [
            content,
            refusal,
            calls,
            legacy,
            ran,
            audio,
            reasoning_content,
            reasoning,
            details,
        ] = delta.fields([
            "content",
            "refusal",
            "tool_calls",
            "function_call",
            "executed_tools",
            "audio",
            "reasoning_content",
            "reasoning",
            "reasoning_details",
        ]);
        turn.details(index, "message", delta, &MESSAGE);
        let choice = self.choice(index);
        if let Some(details) = details {
            choice.reasoning.details(details, turn);
        }
        choice
            .reasoning
            .flow(index, [reasoning_content, reasoning], turn);
        let calls = || {
            calls
                .into_iter()
                .flat_map(|c| c.items().chain(Some(c).filter(|c| c.is_object())))
        };
        let legacy = legacy.filter(|call| call.is_object());
        turn.with_call = legacy.is_some() || calls().next().is_some();
        if let Some(content) = content {
            self.content(index, content, turn);
        }
        // For speech, the transcript becomes the text and the audio becomes an item.
        if let Some(audio) = audio.filter(|audio| audio.is_object()) {
            if let Some(words) = audio.get("transcript").filter(|words| words.is_str()) {
                self.content(index, words, turn);
            }
            if audio.get("data").is_some() {
                turn.server_item(index, "audio", audio);
            }
        }
        if let Some(refusal) = refusal {
            self.refusal(index, refusal, turn);
        }
        for item in ran.into_iter().flat_map(Raw::items) {
            let kind = item
                .get_str("type")
                .unwrap_or(Cow::Borrowed("executed_tool"));
            turn.server_item(index, &kind, item);
        }
        for (position, call) in calls().enumerate() {
            self.call(index, call, whole.then_some(position as i64), turn);
        }
        if let Some(call) = legacy {
            self.function(
                index,
                ToolCallDelta {
                    done: whole,
                    ..ToolCallDelta::default()
                },
                call,
                turn,
            );
        }
    }

    /// Decodes content: a string or parts.
    fn content(&mut self, index: u32, content: Raw<'_>, turn: &mut EventWriter<'_>) {
        if content.is_str() {
            if content.text().len() > 2 {
                self.choice(index).reasoning.close(index, turn);
                turn.text(index, content);
            }
            return;
        }
        for part in content
            .items()
            .chain(Some(content).filter(|c| c.is_object()))
        {
            if part.is_str() {
                self.content(index, part, turn);
                continue;
            }
            let kind = part.get_str("type").unwrap_or(Cow::Borrowed("text"));
            match kind.as_ref() {
                "text" | "output_text" => {
                    if let Some(text) = part.get("text").filter(|t| t.is_str()) {
                        self.content(index, text, turn);
                    }
                }
                "refusal" => {
                    if let Some(refusal) = part.get("refusal") {
                        self.refusal(index, refusal, turn);
                    }
                }
                "thinking" | "reasoning" => {
                    let Some(thinking) = part.get(&kind).or_else(|| part.get("text")) else {
                        continue;
                    };
                    let reasoning = &mut self.choice(index).reasoning;
                    for text in thinking
                        .items()
                        .filter_map(|t| t.get("text"))
                        .chain(Some(thinking))
                    {
                        reasoning.part(index, text, turn);
                    }
                }
                kind => turn.server_item(index, kind, part),
            }
        }
    }

    /// Writes a piece of a refusal, or all of it.
    fn refusal(&mut self, index: u32, refusal: Raw<'_>, turn: &mut EventWriter<'_>) {
        if refusal.is_str() && refusal.text().len() > 2 {
            self.choice(index).reasoning.close(index, turn);
            turn.refusal(index, refusal);
        }
    }

    /// Decodes one item of `tool_calls`. `position` is set if it is a complete call in a complete
    /// message.
    fn call(
        &mut self,
        index: u32,
        call: Raw<'_>,
        position: Option<i64>,
        turn: &mut EventWriter<'_>,
    ) {
        let [label, id, function, custom, extra, specific] = call.fields([
            "index",
            "id",
            "function",
            "custom",
            "extra_content",
            "provider_specific_fields",
        ]);
        let [function, custom] = [function, custom].map(|v| v.filter(|v| v.is_object()));
        let mut delta = ToolCallDelta {
            index: label
                .and_then(|v| v.i64().or_else(|| v.str()?.parse().ok()))
                .or(position),
            tool_id: id.and_then(Text::of),
            done: position.is_some(),
            ..ToolCallDelta::default()
        };
        let goes_back = |value: &Raw<'_>| value.is_object();
        let provider = extra.filter(goes_back).or(specific.filter(goes_back));
        let provider = provider.map(|_| {
            event::object(|o| {
                o.object(turn.api, |own| {
                    for (key, value) in call.entries().filter(|(_, value)| goes_back(value)) {
                        if matches!(&*key, "extra_content" | "provider_specific_fields") {
                            own.minified(&key, value.text());
                        }
                    }
                });
            })
        });
        delta.provider = provider.as_deref().map(Json::of);
        match custom {
            Some(custom) => self.custom(index, delta, custom, turn),
            // Some servers omit the wrapper.
            None => self.function(index, delta, function.unwrap_or(call), turn),
        }
    }

    fn function<'a>(
        &mut self,
        index: u32,
        mut delta: ToolCallDelta<'a>,
        function: Raw<'a>,
        turn: &mut EventWriter<'_>,
    ) {
        let [name, arguments] = function.fields(["name", "arguments"]);
        if let Some(name) = name {
            delta.tool_name = Text::of(name);
        }
        self.choice(index).reasoning.close(index, turn);
        turn.call(index, &delta, arguments);
    }

    /// Decodes a piece of a custom tool's input, which is text. It is wrapped in the arguments
    /// `{"input":"…"}`, which are closed at the finish reason.
    fn custom(
        &mut self,
        index: u32,
        delta: ToolCallDelta<'_>,
        custom: Raw<'_>,
        turn: &mut EventWriter<'_>,
    ) {
        let wrapped = format!("{{\"{}\":{{\"custom\":true}}}}", turn.api);
        let mut delta = delta;
        let choice = self.choice(index);
        choice.reasoning.close(index, turn);
        let begun =
            choice.customs.contains(&delta.index) && delta.tool_id.is_none_or(|id| id.is_empty());
        let mut text = String::new();
        if !begun {
            text.push_str("{\"input\":\"");
            delta.tool_name = custom.get("name").and_then(Text::of);
            delta.provider = delta.provider.or(Some(Json::of(&wrapped)));
        }
        if let Some(input) = custom.get_str("input") {
            let quoted = event::quoted(&input);
            text.push_str(&quoted[1..quoted.len() - 1]);
        }
        if delta.done {
            text.push_str("\"}");
        } else if !begun {
            choice.customs.insert(delta.index);
        }
        delta.arguments = Some((&text).into());
        turn.call(index, &delta, None);
    }
}

fn usage(usage: Raw<'_>, turn: &mut EventWriter<'_>) {
    if !usage.is_object() {
        return;
    }
    turn.counts(usage, false);
    let n = |path: &[&str]| crate::turn::count(usage, path);
    turn.usage(SessionStats {
        prompt_tokens: n(&["prompt_tokens"]),
        completion_tokens: n(&["completion_tokens"]),
        total_tokens: n(&["total_tokens"]),
        reasoning_tokens: n(&["completion_tokens_details", "reasoning_tokens"])
            .or_else(|| n(&["reasoning_tokens"])),
        cached_tokens: n(&["prompt_tokens_details", "cached_tokens"])
            .or_else(|| n(&["prompt_cache_hit_tokens"]))
            .or_else(|| n(&["cached_tokens"])),
        cache_write_tokens: n(&["prompt_tokens_details", "cache_write_tokens"]).filter(|n| *n > 0),
        ..SessionStats::default()
    });
}

/// Decodes Groq's `x_groq`, which contains the final usage and errors.
fn groq(x: Raw<'_>, turn: &mut EventWriter<'_>) {
    if let Some(counts) = x.get("usage") {
        usage(counts, turn);
    }
    if let Some(error) = x.get("error").filter(|e| e.is_object() || e.is_str()) {
        turn.error(&StreamFailure::of(error, None));
    }
}

/// Converts a finish reason of this family's servers. Unknown reasons count as a normal end.
pub(crate) fn reason(word: &str) -> FinishReason {
    match word.to_ascii_lowercase().as_str() {
        "tool_calls" | "tool_call" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_length"
        | "context_length"
        | "context_window_exceeded"
        | "model_context_window_exceeded" => FinishReason::Length,
        "content_filter" | "content_filtered" | "safety" | "recitation" | "sensitive"
        | "blocklist" | "prohibited_content" => FinishReason::ContentFilter,
        "error" | "failed" | "abort" | "network_error" | "insufficient_system_resource" => {
            FinishReason::Error
        }
        _ => FinishReason::Stop,
    }
}

/// The open reasoning of one choice, until text or a call closes it.
///
/// The field is called `reasoning_content` (DeepSeek, SiliconFlow, llama.cpp, vLLM) or `reasoning`
/// (OpenRouter, Groq, vLLM), and some servers send both with the same text. OpenRouter adds
/// `reasoning_details`, which must be sent back unchanged
/// (openrouter.ai/docs/use-cases/reasoning-tokens). Their pieces are joined here and written once,
/// when the block is closed.
#[derive(Debug, Default)]
pub(crate) struct OpenReasoning {
    /// The field that contained the open block; empty if no block is open.
    field: &'static str,
    details: Vec<Detail>,
    /// The text of this delta's details, for servers that send it nowhere else.
    detail_text: String,
    /// The size of the details, in bytes.
    bytes: usize,
}

/// One entry of `reasoning_details`, with its pieces joined.
#[derive(Debug)]
struct Detail {
    kind: String,
    /// The name and text of the member that grows.
    text: Option<(&'static str, String)>,
    /// The other members as JSON. If a member is repeated, the last value is kept.
    members: Vec<(String, String)>,
}

const FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

impl OpenReasoning {
    /// Processes the `reasoning_details` of a delta.
    pub(crate) fn details(&mut self, value: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.bytes += value.text().len();
        turn.keep(value.text().len());
        value.items().for_each(|item| self.detail(item));
    }

    /// Writes a delta's reasoning. `fields` are its `reasoning_content` and `reasoning`.
    pub(crate) fn flow(
        &mut self,
        choice: u32,
        fields: [Option<Raw<'_>>; 2],
        turn: &mut EventWriter<'_>,
    ) {
        let says = |v: &Raw<'_>| v.is_str() && v.text() != "\"\"";
        if let Some((field, text)) = FIELDS
            .into_iter()
            .zip(fields)
            .find_map(|(f, v)| Some((f, v.filter(says)?)))
        {
            self.field = field;
            turn.thinking(choice, text);
        } else if !self.detail_text.is_empty() {
            turn.thinking_plain(choice, &self.detail_text, None);
        }
        self.detail_text.clear();
    }

    /// Writes a content part that is reasoning (Mistral).
    pub(crate) fn part(&mut self, choice: u32, text: Raw<'_>, turn: &mut EventWriter<'_>) {
        if text.is_str() {
            self.field = "thinking";
            turn.thinking(choice, text);
        }
    }

    /// Closes the block when text or a call starts or the choice ends, and writes the data that
    /// must be sent back, if any.
    pub(crate) fn close(&mut self, choice: u32, turn: &mut EventWriter<'_>) {
        let field = std::mem::take(&mut self.field);
        let details = std::mem::take(&mut self.details);
        turn.free(std::mem::take(&mut self.bytes));
        if field.is_empty() && details.is_empty() {
            return;
        }
        let provider = event::object(|o| {
            o.object(turn.api, |o| {
                if !field.is_empty() {
                    o.str("field", field);
                }
                if !details.is_empty() {
                    o.array("reasoning_details", |a| {
                        for d in &details {
                            a.object(|o| d.write(o));
                        }
                    });
                }
            });
        });
        turn.thinking_plain(choice, "", Some(&provider));
    }

    fn detail(&mut self, item: Raw<'_>) {
        let kind = item.get_str("type").unwrap_or_default();
        let grown = ["text", "summary"]
            .into_iter()
            .find_map(|key| Some((key, item.get_str(key)?)));
        if let Some((_, text)) = &grown {
            self.detail_text.push_str(text);
        }
        let index = item.get("index").map(Raw::text);
        let same = |d: &Detail| {
            d.kind == kind
                && d.text.is_some()
                && index.is_none_or(|i| d.member("index").is_none_or(|before| before == i))
        };
        let at = match self.details.last() {
            Some(last) if grown.is_some() && same(last) => self.details.len() - 1,
            // A signature may arrive in a separate entry without text.
            Some(last) if grown.is_none() && item.get("signature").is_some() && same(last) => {
                self.details.len() - 1
            }
            _ => {
                self.details.push(Detail {
                    kind: kind.into_owned(),
                    text: None,
                    members: Vec::new(),
                });
                self.details.len() - 1
            }
        };
        let detail = &mut self.details[at];
        for (key, value) in item.entries() {
            match key.as_ref() {
                "type" => {}
                "text" | "summary" if value.is_str() => {}
                _ => detail.set(&key, value),
            }
        }
        if let Some((key, text)) = grown {
            detail
                .text
                .get_or_insert_with(|| (key, String::new()))
                .1
                .push_str(&text);
        }
    }
}

impl Detail {
    fn member(&self, key: &str) -> Option<&str> {
        self.members
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    fn set(&mut self, key: &str, value: Raw<'_>) {
        let json = minified(value);
        match self.members.iter_mut().find(|(k, _)| k == key) {
            Some((_, before)) if json != "null" => *before = json,
            Some(_) => {}
            None => self.members.push((key.to_owned(), json)),
        }
    }

    fn write(&self, o: &mut event::Object<'_>) {
        if !self.kind.is_empty() {
            o.str("type", &self.kind);
        }
        if let Some((key, text)) = &self.text {
            o.str(key, text);
        }
        for (key, json) in &self.members {
            o.raw(key, json);
        }
    }
}
