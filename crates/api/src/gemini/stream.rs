//! Decodes Google's Gemini API. Each response is a piece of the whole answer, with candidates that
//! consist of parts.
//!
//! Source of the format: `GenerateContentResponse` in the Gemini API reference
//! (ai.google.dev/api/generate-content) and, for `partialArgs`, in Vertex AI's. A non-streaming
//! response, an element of the JSON array and an event of the stream all have the same shape.
//! Clients of Cloud Code receive each inside `{"response":…}`.

use crate::failure::StreamFailure;
use crate::gemini::partial::{PartialArguments, Placement};
use crate::template::{Counts, Varying};
use crate::turn::{Decoder, EventWriter};
use event::payload::{FinishReason, RetractReason, SessionStats, ToolCallDelta};
use event::{Json, Raw};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The members of a candidate that are parsed.
const CANDIDATE: [&str; 6] = [
    "index",
    "content",
    "finishReason",
    "finishMessage",
    "groundingMetadata",
    "urlContextMetadata",
];

/// The token counts of `usageMetadata` that are parsed.
const COUNTS: [&str; 6] = [
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "totalTokenCount",
    "cachedContentTokenCount",
];

/// Decodes Gemini's streams.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    candidates: BTreeMap<u32, GeminiCandidate>,
}

#[derive(Debug, Default)]
struct GeminiCandidate {
    /// The number of calls so far, used as their index because calls have none.
    labels: i64,
    /// The call whose arguments are arriving in pieces.
    open: Option<PartialCall>,
}

#[derive(Debug)]
struct PartialCall {
    label: i64,
    id: Option<String>,
    name: String,
    signature: Option<String>,
    arguments: PartialArguments,
    /// The size of the call's pieces, in bytes.
    bytes: usize,
}

impl Decoder for Gemini {
    fn frame(&mut self, _name: Option<&str>, data: Raw<'_>, turn: &mut EventWriter<'_>) {
        let data = data
            .get("response")
            .filter(|r| r.is_object())
            .unwrap_or(data);
        turn.id(data.get("responseId"));
        turn.model(data.get("modelVersion"));
        turn.details(
            0,
            "answer",
            data,
            &[
                "candidates",
                "responseId",
                "modelVersion",
                "usageMetadata",
                "promptFeedback",
            ],
        );
        for candidate in data.list("candidates") {
            let choice = candidate
                .get("index")
                .and_then(Raw::i64)
                .and_then(|i| u32::try_from(i).ok())
                .unwrap_or(0);
            turn.choice(choice);
            turn.details(choice, "choice", candidate, &CANDIDATE);
            let parts = || {
                candidate
                    .at(&["content", "parts"])
                    .into_iter()
                    .flat_map(Raw::items)
            };
            turn.with_call =
                parts().nth(1).is_some() && parts().any(|part| part.get("functionCall").is_some());
            for part in parts() {
                self.part(choice, part, turn);
            }
            for key in ["groundingMetadata", "urlContextMetadata"] {
                if let Some(found) = candidate.get(key).filter(|f| f.entries().next().is_some()) {
                    turn.server_item(choice, key, found);
                }
            }
            if let Some(reason) = candidate.get("finishReason") {
                self.finish_reason(choice, reason, candidate.get("finishMessage"), turn);
            }
        }
        if let Some(reason) = data.at(&["promptFeedback", "blockReason"]) {
            let word = word(reason);
            turn.warning(
                0,
                "prompt_blocked",
                &format!("the provider blocked the prompt: {word}"),
                None,
            );
            turn.finish_reason(0, FinishReason::ContentFilter, &word);
        }
        if let Some(counts) = data.get("usageMetadata") {
            self.counts(COUNTS.map(|name| crate::turn::count(counts, &[name])), turn);
        }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn varying(&self) -> Varying {
        Varying {
            unread: &[],
            counts: Some(("usageMetadata", COUNTS)),
        }
    }

    fn counts(&mut self, counts: Counts, turn: &mut EventWriter<'_>) {
        let [prompt, of_tools, text, reasoning, total, cached] = counts;
        turn.usage(SessionStats {
            // The model also read the output of the provider's own tools.
            prompt_tokens: crate::turn::sum(&[prompt, of_tools]),
            completion_tokens: crate::turn::sum(&[text, reasoning]),
            total_tokens: total,
            reasoning_tokens: reasoning,
            cached_tokens: cached,
            ..SessionStats::default()
        });
    }
}

impl Gemini {
    fn part(&mut self, choice: u32, part: Raw<'_>, turn: &mut EventWriter<'_>) {
        let signature = part.get_str("thoughtSignature");
        if let Some(call) = part.get("functionCall") {
            return self.call(choice, call, signature.as_deref(), turn);
        }
        if let Some(text) = part.get("text") {
            let thought = part.get("thought").and_then(Raw::bool) == Some(true);
            if thought {
                turn.thinking(choice, text);
            } else {
                turn.text(choice, text);
            }
            if signature.is_some() {
                // The part that a signature arrived with must be kept: reasoning without a
                // signature may precede a signed text.
                let of = (!thought).then_some("text");
                let wanted = provider(&[("thoughtSignature", signature.as_deref()), ("of", of)]);
                turn.thinking_plain(choice, "", wanted.as_deref());
            }
            return;
        }
        let member = part.entries().find(|(key, _)| {
            !matches!(
                key.as_ref(),
                "thought" | "thoughtSignature" | "partMetadata"
            )
        });
        let Some((kind, _)) = member else {
            let wanted = provider(&[("thoughtSignature", signature.as_deref())]);
            return turn.thinking_plain(choice, "", wanted.as_deref());
        };
        turn.server_item(choice, &kind, part);
        if matches!(
            kind.as_ref(),
            "executableCode" | "codeExecutionResult" | "toolCall" | "toolResponse"
        ) {
            turn.goes_back(choice, "part", part.text());
        }
    }

    /// Decodes a `functionCall`: a complete call, or the start, a piece or the end of one.
    fn call(
        &mut self,
        choice: u32,
        call: Raw<'_>,
        signature: Option<&str>,
        turn: &mut EventWriter<'_>,
    ) {
        let candidate = self.candidates.entry(choice).or_default();
        let id = call.get_str("id").filter(|id| !id.is_empty());
        let name = call.get_str("name").filter(|name| !name.is_empty());
        let pieces = call.get("partialArgs").filter(|p| p.is_array());
        let goes_on = call.get("willContinue").and_then(Raw::bool) == Some(true);
        let args = call.get("args").filter(|a| a.is_object());
        let same = candidate
            .open
            .as_ref()
            .is_some_and(|open| match (&id, &name) {
                (Some(id), _) if open.id.is_some() => open.id.as_deref() == Some(id),
                (_, Some(_)) => false,
                _ => true,
            });
        if !same {
            candidate.close(choice, turn);
            let Some(name) = name.as_deref().or(pieces.map(|_| "")) else {
                // An empty part after a call that its last piece already closed.
                return;
            };
            let label = candidate.labels;
            candidate.labels += 1;
            let provider = of_call(id.as_deref(), signature);
            let delta = ToolCallDelta {
                index: Some(label),
                tool_id: id.as_ref().map(Into::into),
                tool_name: Some(name.into()),
                provider: provider.as_deref().map(Json::of),
                ..ToolCallDelta::default()
            };
            if pieces.is_none() && !goes_on {
                return turn.call(
                    choice,
                    &ToolCallDelta {
                        done: true,
                        ..delta
                    },
                    args,
                );
            }
            turn.call(choice, &delta, None);
            candidate.open = Some(PartialCall {
                label,
                id: id.map(Cow::into_owned),
                name: name.to_owned(),
                signature: signature.map(str::to_owned),
                arguments: PartialArguments::default(),
                bytes: 0,
            });
        } else if let (Some(open), Some(signature)) = (&mut candidate.open, signature) {
            // The signature may arrive with a later part, and then applies to the whole call.
            open.signature = Some(signature.to_owned());
            let provider = of_call(open.id.as_deref(), Some(signature));
            let delta = ToolCallDelta {
                index: Some(open.label),
                provider: provider.as_deref().map(Json::of),
                ..ToolCallDelta::default()
            };
            turn.call(choice, &delta, None);
        }
        for (key, value) in args
            .into_iter()
            .flat_map(Raw::entries)
            .filter(|_| pieces.is_none())
        {
            candidate.placed(
                choice,
                |arguments| arguments.member(&key, value),
                value,
                turn,
            );
        }
        for piece in pieces.into_iter().flat_map(Raw::items) {
            candidate.placed(choice, |arguments| arguments.push(piece), piece, turn);
        }
        if !goes_on {
            candidate.close(choice, turn);
        }
    }

    /// Returns why a candidate ended: a name, or the number that some client libraries use.
    fn finish_reason(
        &mut self,
        choice: u32,
        reason: Raw<'_>,
        said: Option<Raw<'_>>,
        turn: &mut EventWriter<'_>,
    ) {
        let word = word(reason);
        let said = said.and_then(Raw::str).unwrap_or_default();
        let reason = match word.as_ref() {
            "" | "0" | "FINISH_REASON_UNSPECIFIED" => return,
            "STOP" | "1" => FinishReason::Stop,
            "MAX_TOKENS" | "2" => FinishReason::Length,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                FinishReason::ContentFilter
            }
            "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "MISSING_THOUGHT_SIGNATURE" => {
                let message = if said.is_empty() {
                    "the provider could not read what the model wrote"
                } else {
                    &said
                };
                // The model may write the call correctly on a retry, but the request will still
                // lack what is missing.
                let failure = StreamFailure::new(
                    &word.to_ascii_lowercase(),
                    message,
                    word.starts_with("MALFORMED"),
                );
                turn.error(&failure);
                FinishReason::Error
            }
            // The answer was dropped for another reason (`UNEXPECTED_TOOL_CALL`, `LANGUAGE`,
            // `OTHER`, …), so the content is incomplete.
            _ => {
                let message = format!(
                    "the provider dropped the answer: {}",
                    if said.is_empty() { &word } else { &said }
                );
                turn.warning(choice, "abnormal_finish", &message, None);
                FinishReason::ContentFilter
            }
        };
        if reason.is_whole()
            && let Some(candidate) = self.candidates.get_mut(&choice)
        {
            candidate.close(choice, turn);
        }
        turn.finish_reason(choice, reason, &word);
    }
}

impl GeminiCandidate {
    /// Adds one piece to the open call and writes the resulting fragment.
    fn placed(
        &mut self,
        choice: u32,
        place: impl FnOnce(&mut PartialArguments) -> Placement,
        piece: Raw<'_>,
        turn: &mut EventWriter<'_>,
    ) {
        let Some(open) = &mut self.open else { return };
        open.bytes += piece.text().len();
        turn.keep(piece.text().len());
        match place(&mut open.arguments) {
            Placement::Fragment(text) => {
                let arguments = Some((&text).into());
                turn.call(
                    choice,
                    &ToolCallDelta {
                        index: Some(open.label),
                        arguments,
                        ..ToolCallDelta::default()
                    },
                    None,
                );
            }
            Placement::Held => {}
            Placement::Restart => {
                // The pieces arrived out of order: the call restarts with the same index, and its
                // arguments are written at its end.
                turn.retract(choice, open.label, RetractReason::ArgumentsReordered);
                let provider = of_call(open.id.as_deref(), open.signature.as_deref());
                let delta = ToolCallDelta {
                    index: Some(open.label),
                    tool_id: open.id.as_ref().map(Into::into),
                    tool_name: Some((&open.name).into()),
                    provider: provider.as_deref().map(Json::of),
                    ..ToolCallDelta::default()
                };
                turn.call(choice, &delta, None);
            }
            Placement::Unreadable => {
                let message =
                    "a piece of a call's arguments has a path that cannot be read: it is left out";
                turn.warning(choice, "bad_json_path", message, Some(piece.text()));
            }
        }
    }

    /// Closes the call whose arguments are arriving in pieces, if one is open.
    fn close(&mut self, choice: u32, turn: &mut EventWriter<'_>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        turn.free(open.bytes);
        let arguments = open.arguments.close();
        turn.end_call(choice, Some(open.label), &arguments);
    }
}

/// Returns the data that must be sent back with a call, including the id if the provider assigned
/// one. Other ids are not sent to it.
fn of_call(id: Option<&str>, signature: Option<&str>) -> Option<String> {
    provider(&[("id", id), ("thoughtSignature", signature)])
}

/// Returns the data that must be sent back in the next request, under this API's name; `None` if
/// all members are absent.
fn provider(members: &[(&str, Option<&str>)]) -> Option<String> {
    if members.iter().all(|(_, value)| value.is_none()) {
        return None;
    }
    Some(event::object(|o| {
        o.object("gemini", |o| {
            for (key, value) in members {
                o.maybe_str(key, *value);
            }
        });
    }))
}

/// Returns the name or number of an enumeration value.
fn word(value: Raw<'_>) -> Cow<'_, str> {
    value.str().unwrap_or(Cow::Borrowed(value.text()))
}

#[cfg(test)]
mod tests {
    use crate::Api::Gemini;
    use crate::support::brief;

    fn parts(parts: &str) -> String {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}}}}]}}"#)
    }

    fn run(frames: &[&str]) -> Vec<String> {
        let frames: Vec<String> = frames.iter().map(|f| parts(f)).collect();
        let mut frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        frames.push(r#"{"candidates":[{"finishReason":"STOP"}]}"#);
        brief(Gemini, &frames)
    }

    #[test]
    fn each_part_is_a_call_and_keeps_its_signature() {
        let out = run(&[
            r#"{"functionCall":{"name":"f","args":{ "a": 1.0 },"id":"i"},"thoughtSignature":"s"},{"functionCall":{"name":"f"}}"#,
            r#"{"text":"hm","thought":true},{"text":"x","thoughtSignature":"t"}"#,
        ]);
        assert_eq!(
            out[0],
            r#"#0 id:i f {"a":1.0} done {"gemini":{"id":"i","thoughtSignature":"s"}}"#
        );
        assert_eq!(out[1..4], ["#1 f done", "~\"hm\"", "\"x\""]);
        assert_eq!(
            out[4..],
            [
                r#"~""{"gemini":{"thoughtSignature":"t","of":"text"}}"#,
                "end tool_calls STOP"
            ]
        );
    }

    #[test]
    fn pieces_of_a_call_end_with_it() {
        let last = r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.b","boolValue":true}]}}"#;
        let first = r#"{"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}]}}"#;
        let want = [
            "#0 f",
            "#0 {\"a\":\"x",
            "#0 \",\"b\":true",
            "#0 } done",
            "end tool_calls STOP",
        ];
        assert_eq!(run(&[first, last]), want);
        // The closing empty part has no effect.
        assert_eq!(run(&[first, last, r#"{"functionCall":{}}"#]), want);
        // Without a last piece, the call is closed by the next call or by the end of the answer.
        assert_eq!(run(&[first])[2..], ["#0 \"} done", "end tool_calls STOP"]);
        assert_eq!(
            run(&[first, r#"{"functionCall":{"name":"g","args":{}}}"#])[2..4],
            ["#0 \"} done", "#1 g {} done"]
        );
    }

    #[test]
    fn pieces_of_one_call_are_told_by_its_id_where_the_name_is_repeated() {
        let piece = |text: &str, more: bool| {
            format!(
                r#"{{"functionCall":{{"name":"f","id":"i","willContinue":{more},"partialArgs":[{{"jsonPath":"$.a","stringValue":"{text}"}}]}}}}"#
            )
        };
        let out = run(&[&piece("San ", true), &piece("Francisco", false)]);
        assert_eq!(
            out[1..4],
            ["#0 {\"a\":\"San ", "#0 Francisco", "#0 \"} done"]
        );
    }

    #[test]
    fn a_call_that_was_cut_is_not_done() {
        let first = parts(
            r#"{"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$.a","numberValue":1}]}}"#,
        );
        let out = brief(
            Gemini,
            &[&first, r#"{"candidates":[{"finishReason":"MAX_TOKENS"}]}"#],
        );
        assert_eq!(out, ["#0 f", "#0 {\"a\":1", "end length MAX_TOKENS"]);
    }

    #[test]
    fn ends_of_all_kinds() {
        let end = |reason: &str| {
            brief(
                Gemini,
                &[&format!(
                    r#"{{"candidates":[{{"finishReason":{reason}}}]}}"#
                )],
            )
        };
        assert_eq!(end("1"), ["end stop 1"]);
        assert_eq!(end("\"SPII\""), ["end content_filter SPII"]);
        assert_eq!(
            end("\"UNEXPECTED_TOOL_CALL\""),
            [
                "warning abnormal_finish",
                "end content_filter UNEXPECTED_TOOL_CALL"
            ]
        );
        assert_eq!(
            end("\"MALFORMED_FUNCTION_CALL\"")[0],
            "error malformed_function_call"
        );
        let blocked =
            r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3}}"#;
        assert_eq!(
            brief(Gemini, &[blocked]),
            [
                "warning prompt_blocked",
                "tokens 3+",
                "end content_filter SAFETY"
            ]
        );
    }
}
