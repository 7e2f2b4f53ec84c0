//! Detects the API of a body.

use crate::Api;
use crate::failure::{StreamFailure, Words, sentence};
use crate::framing::{Frame, Framing};
use crate::tape::is_tape;
use event::payload::{Error, Message};
use event::{Event, Kind, Raw, Scanner};

/// Returns the API of a body that starts with `bytes` (a few KiB are enough; the last frame may be
/// truncated), or `None` if it is unknown. `all` means that the caller will not read more bytes. If
/// it is false, `None` may also mean that the next frame is needed to decide between two APIs.
///
/// The first frame that is specific to one API decides. The format shared by many servers counts as
/// [`Api::OpenaiChat`]. If there are only error objects, their envelope decides.
pub fn recognise(bytes: &[u8], all: bool) -> Option<Api> {
    let mut found = None;
    let mut shared = None;
    let mut error = None;
    let mut on = |frame: Frame<'_>| {
        let (name, text) = match frame {
            Frame::Event { name, data } => (name, data),
            Frame::Value(text) | Frame::Broken(text) => (None, text),
            Frame::Foreign { .. } | Frame::Damaged(_) | Frame::TooLong => return,
        };
        if found.is_some() {
            return;
        }
        match Raw::parse(text) {
            Ok(data) => {
                found = by_frame(name, data);
                if found == Some(Api::OpenaiChat) && may_be_mistral(data) {
                    (shared, found) = (found, None);
                }
                error = error.or_else(|| by_error(data));
            }
            // The value is incomplete; if `all` is false, its rest may follow.
            Err(_) if all && shared.is_none() => found = by_beginning(text),
            Err(_) => {}
        }
    };
    let mut framing = Framing::new(usize::MAX);
    framing.push(bytes, &mut on);
    framing.finish(&mut on);
    let array = bytes.trim_ascii_start().starts_with(b"[");
    let last = if array && error.is_some() {
        Some(Api::Gemini)
    } else {
        error
    };
    // A truncated frame may become complete with the next bytes.
    found.or(if all {
        shared.or(last)
    } else {
        last.filter(|_| shared.is_none())
    })
}

/// Returns the API that a frame is specific to; `None` if several APIs could have sent it.
fn by_frame(name: Option<&str>, data: Raw<'_>) -> Option<Api> {
    let has = |key: &str| data.get(key).is_some();
    if let Some(choices) = data.get("choices").filter(|c| c.is_array()) {
        return Some(if is_mistral(data, choices) {
            Api::Mistral
        } else {
            Api::OpenaiChat
        });
    }
    // Google's Cloud Code wraps each response in an object.
    if data.at(&["response", "candidates"]).is_some() {
        return Some(Api::Gemini);
    }
    if has("candidates") || has("usageMetadata") || has("promptFeedback") {
        return Some(Api::Gemini);
    }
    if data.get_str("object").is_some_and(|o| o == "response") {
        return Some(Api::OpenaiResponses);
    }
    if has("messageStart") || has("contentBlockStart") || has("contentBlockDelta") {
        return Some(Api::Anthropic);
    }
    if has("done") && (has("message") || has("response")) && has("model") {
        return Some(Api::Ollama);
    }
    let kind = data.get_str("type");
    match kind.as_deref().or(name) {
        Some(
            "message_start"
            | "message_delta"
            | "message_stop"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "ping",
        ) => Some(Api::Anthropic),
        Some("message") if has("content") => Some(Api::Anthropic),
        Some(
            "message-start" | "content-start" | "content-delta" | "tool-plan-delta"
            | "tool-call-start" | "message-end",
        ) => Some(Api::Cohere),
        Some(kind) if kind.starts_with("response.") => Some(Api::OpenaiResponses),
        None if data.at(&["message", "role"]).is_some() && has("finish_reason") => {
            Some(Api::Cohere)
        }
        _ => None,
    }
}

/// Whether an answer may start with this frame: `None` if not, otherwise whether such a frame
/// occurs only at the start. `is_behind` means that the previous answer has its end marker.
pub(crate) fn begins(name: Option<&str>, data: Raw<'_>, is_behind: bool) -> Option<bool> {
    let kind = data.get_str("type");
    let kind = kind.as_deref().or(name);
    let only_here = |is: bool| is.then_some(true);
    match by_frame(name, data)? {
        Api::OpenaiChat | Api::Mistral => {
            let may = |choice: Raw<'_>| {
                // Token counts may come after all finish reasons, with the role and the reason
                // repeated.
                let has_ended = choice.get("finish_reason").is_some_and(Raw::is_str);
                is_behind
                    || choice.get("message").is_some()
                    || choice.at(&["delta", "role"]).is_some() && !has_ended
            };
            data.list("choices").any(may).then_some(false)
        }
        Api::Gemini | Api::Ollama => Some(false),
        Api::Anthropic => only_here(
            matches!(kind, Some("message_start" | "message")) || data.get("messageStart").is_some(),
        ),
        Api::OpenaiResponses => {
            only_here(data.get("object").is_some() || kind == Some("response.created"))
        }
        Api::Cohere => only_here(kind.is_none_or(|kind| kind == "message-start")),
    }
}

/// Returns the id of the response that a frame belongs to, or `None` if it contains no id.
pub(crate) fn answer_id(data: Raw<'_>) -> Option<std::borrow::Cow<'_, str>> {
    let paths: [&[&str]; 4] = [
        &["id"],
        &["responseId"],
        &["response", "id"],
        &["message", "id"],
    ];
    let mut ids = paths.into_iter().filter_map(|path| data.at(path)?.str());
    ids.next()
}

/// Explains from its first frame why a body of `api` produced no events: an error without a common
/// envelope (Cohere, FastAPI), or a frame of another API. Returns `None` if the frame belongs to
/// this API, because then the body was truncated.
pub(crate) fn mismatch(
    api: Api,
    name: Option<&str>,
    text: &str,
    words: &Words,
) -> Option<StreamFailure> {
    let data = Raw::parse(text).ok()?;
    match by_frame(name, data) {
        Some(other)
            if other == api
                || [api, other]
                    .iter()
                    .all(|a| matches!(a, Api::OpenaiChat | Api::Mistral)) =>
        {
            None
        }
        Some(other) => {
            let message = format!(
                "this is a stream of {}, not of {}: {} {}",
                other.name(),
                api.name(),
                words.other_api,
                other.name()
            );
            Some(StreamFailure::new("wrong_api", message, false))
        }
        None if ["message", "detail"]
            .iter()
            .any(|key| data.get(key).is_some_and(|v| v.is_str() || v.is_array())) =>
        {
            Some(StreamFailure::of(data, None))
        }
        None => {
            let message = match unread(text.as_bytes()) {
                Some(what) => format!("the provider answered with {what}, which is not read"),
                None => format!(
                    "the provider answered with JSON that is nothing of {}: {}",
                    api.name(),
                    sentence(text)
                ),
            };
            Some(StreamFailure::new("not_a_stream", message, false))
        }
    }
}

/// Whether a chat frame comes from Mistral's own service. Other services that host its models
/// (OpenRouter, vLLM, Venice) use their own format, also with ids of nine characters, so neither
/// the model's name nor a call's id is conclusive.
fn is_mistral(data: Raw<'_>, choices: Raw<'_>) -> bool {
    // Mistral pads each content chunk to hide its length
    // (https://docs.mistral.ai/resources/changelogs, May 2026). Amazon's Bedrock pads with the same
    // member.
    let is_padded = || {
        data.get_str("p")
            .is_some_and(|p| !p.is_empty() && PADDING.starts_with(p.as_ref()))
    };
    let has_parts = |c: Raw<'_>, part| c.at(&[part, "content"]).is_some_and(Raw::is_array);
    is_mistral_model(&data.get_str("model").unwrap_or_default())
        && (is_padded()
            || is_hex(&data.get_str("id").unwrap_or_default())
            || choices
                .items()
                .any(|c| has_parts(c, "delta") || has_parts(c, "message")))
}

/// The text that Mistral uses for padding, truncated to the needed length.
const PADDING: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

/// Whether an id has 32 hexadecimal digits, like Mistral's response ids.
fn is_hex(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether this is a Mistral model: mistral, ministral, magistral, codestral, devstral, pixtral,
/// voxtral, mixtral, …
fn is_mistral_model(model: &str) -> bool {
    model.contains("tral")
}

/// Whether a chat frame may still turn out to be Mistral's: its first chunks have no content and no
/// padding.
fn may_be_mistral(data: Raw<'_>) -> bool {
    let is_empty = |value: Raw<'_>| matches!(value.text(), "null" | "\"\"" | "[]");
    let says_something = |choice: Raw<'_>| {
        let mut members = choice.get("delta").into_iter().flat_map(Raw::entries);
        members.any(|(key, value)| key != "role" && !is_empty(value))
            || choice.get("message").is_some()
            || choice
                .get("finish_reason")
                .is_some_and(|reason| !is_empty(reason))
    };
    is_mistral_model(&data.get_str("model").unwrap_or_default())
        && !data.list("choices").any(says_something)
}

/// Detects the API from the envelope of an error.
fn by_error(data: Raw<'_>) -> Option<Api> {
    let is_error = data.get_str("type").is_some_and(|t| t == "error");
    let error = data.get("error");
    match error {
        Some(_) if is_error => Some(Api::Anthropic),
        Some(error) if error.is_str() => Some(Api::Ollama),
        Some(error) if error.get("status").is_some_and(Raw::is_str) => Some(Api::Gemini),
        Some(_) => Some(Api::OpenaiChat),
        None if is_error => Some(Api::OpenaiResponses),
        None => None,
    }
}

/// Detects the API of an incomplete value from the first of these names in it. Quotation marks
/// inside a string are escaped, so the content of a string cannot match.
fn by_beginning(text: &str) -> Option<Api> {
    let names = [
        ("\"choices\"", Api::OpenaiChat),
        ("\"candidates\"", Api::Gemini),
        ("\"response\"", Api::OpenaiResponses),
        ("\"type\":\"message\"", Api::Anthropic),
        ("\"type\": \"message\"", Api::Anthropic),
        ("\"created_at\"", Api::Ollama),
        ("\"tool_plan\"", Api::Cohere),
    ];
    let first = names
        .into_iter()
        .filter_map(|(name, api)| Some((text.find(name)?, api)))
        .min_by_key(|(at, _)| *at);
    let mistral = || {
        member(text, "\"model\"").is_some_and(is_mistral_model)
            && member(text, "\"id\"").is_some_and(is_hex)
    };
    match first?.1 {
        Api::OpenaiChat if mistral() => Some(Api::Mistral),
        api => Some(api),
    }
}

/// Returns the string value of the first member `name`, given with its quotes.
fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text[text.find(name)? + name.len()..]
        .trim_ascii_start()
        .strip_prefix(':')?;
    rest.trim_ascii_start().strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_has_its_mark() {
        for (body, api) in [
            (
                ": hello\n\ndata: {\"id\":\"x\",\"choices\":[]}\n\n",
                Api::OpenaiChat,
            ),
            (
                "data: {\"id\":\"0123456789abcdef0123456789abcdef\",\"model\":\"mistral-small\",\"choices\":[]}\n\n",
                Api::Mistral,
            ),
            (
                "event: response.created\ndata: {\"type\":\"response.created\"}\n\n",
                Api::OpenaiResponses,
            ),
            (
                "event: message_start\ndata: {\"type\":\"message_start\"}\n\n",
                Api::Anthropic,
            ),
            (
                "event: message-start\ndata: {\"type\":\"message-start\",\"id\":\"1\"}\n\n",
                Api::Cohere,
            ),
            ("data: {\"candidates\":[]}\r\n\r\n", Api::Gemini),
            (
                "[{\n  \"candidates\": [\n    {\"content\": {\"parts\": [",
                Api::Gemini,
            ),
            (
                "[{\"error\":{\"code\":400,\"message\":\"m\"}}]",
                Api::Gemini,
            ),
            (
                "{\"model\":\"m\",\"created_at\":\"t\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n",
                Api::Ollama,
            ),
            (
                "{\"id\":\"x\",\"object\":\"response\",\"output\":[",
                Api::OpenaiResponses,
            ),
            (
                "{\"id\":\"x\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[",
                Api::Anthropic,
            ),
            (
                "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}",
                Api::Anthropic,
            ),
            (
                "{\"error\":{\"message\":\"m\",\"type\":\"t\"}}",
                Api::OpenaiChat,
            ),
            (
                "{\"id\":\"x\",\"finish_reason\":\"COMPLETE\",\"message\":{\"role\":\"assistant\"}}",
                Api::Cohere,
            ),
        ] {
            assert_eq!(recognise(body.as_bytes(), true), Some(api), "{body}");
        }
        // Google's Cloud Code, and incomplete values.
        for (body, api) in [
            (
                "data: {\"response\":{\"candidates\":[]},\"traceId\":\"t\"}\n\n",
                Api::Gemini,
            ),
            (
                "{\"id\":\"x\",\"model\":\"mistral-small\",\"choices\":[{\"message\":{",
                Api::OpenaiChat,
            ),
            (
                "{\"id\": \"0123456789abcdef0123456789abcdef\", \"model\": \"mistral-small\", \"choices\":[{\"message\":{",
                Api::Mistral,
            ),
        ] {
            assert_eq!(recognise(body.as_bytes(), true), Some(api), "{body}");
        }
        for body in ["", "<html>", "data: [DONE]\n\n", "{\"a\":1}"] {
            assert_eq!(recognise(body.as_bytes(), true), None, "{body}");
        }
    }

    /// Returns a chat chunk for `model` with this delta and these additional members.
    fn chunk(model: &str, delta: &str, more: &str) -> String {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"model\":\"{model}\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]{more}}}\n\n"
        )
    }

    #[test]
    fn the_padding_of_its_chunks_tells_mistral_from_its_models_elsewhere() {
        let role = r#"{"role":"assistant","content":""}"#;
        let text = r#"{"content":"Hi"}"#;
        let call =
            r#"{"tool_calls":[{"id":"D681PevKs","function":{"name":"f","arguments":"{}"}}]}"#;
        let thought = r#"{"reasoning_content":"hm"}"#;
        let small = "mistral-small-latest";
        let padded = r#","p":"abcdefgh""#;
        let start = chunk(small, role, "");
        assert_eq!(
            recognise(start.as_bytes(), false),
            None,
            "the next chunk may tell"
        );
        assert_eq!(recognise(start.as_bytes(), true), Some(Api::OpenaiChat));
        for (rest, api) in [
            (chunk(small, text, padded), Api::Mistral),
            (chunk(small, call, padded), Api::Mistral),
            (
                chunk(small, role, "") + &chunk(small, text, padded),
                Api::Mistral,
            ),
            (chunk(small, text, ""), Api::OpenaiChat),
            (chunk(small, call, ""), Api::OpenaiChat),
            (chunk(small, thought, ""), Api::OpenaiChat),
            (chunk(small, text, r#","p":"xyz""#), Api::OpenaiChat),
            (chunk(small, text, r#","p":0.5"#), Api::OpenaiChat),
        ] {
            for all in [false, true] {
                assert_eq!(
                    recognise((start.clone() + &rest).as_bytes(), all),
                    Some(api),
                    "{rest}"
                );
            }
            let cut = start.clone() + &rest[..rest.len() - 3];
            assert_eq!(recognise(cut.as_bytes(), false), None, "{rest}");
        }
        assert_eq!(
            recognise(chunk("gpt-5", role, "").as_bytes(), false),
            Some(Api::OpenaiChat)
        );
        assert_eq!(
            recognise(chunk("gpt-oss", text, padded).as_bytes(), false),
            Some(Api::OpenaiChat)
        );
    }
}

/// How many bytes from the start of a file are examined to detect its form.
pub const LOOKED_AT: usize = 64 * 1024;

/// The form of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingForm {
    /// Recorded requests and responses; see [`crate::tape`].
    Tape,
    /// Events from our commands, one per line.
    Log,
    /// Any other data, such as the body of a provider's response, whose API
    /// [`recognise`](crate::recognise()) detects.
    Body,
}

impl RecordingForm {
    /// Detects the form of a file from its first bytes. Only the first [`LOOKED_AT`] bytes count.
    pub fn of(start: &[u8]) -> RecordingForm {
        let start = &start[..start.len().min(LOOKED_AT)];
        if is_tape(start) {
            RecordingForm::Tape
        } else if LineCount::of(start).is_log() {
            RecordingForm::Log
        } else {
            RecordingForm::Body
        }
    }

    /// Same as [`RecordingForm::of`], but if the user named an API, the file is a
    /// [`Body`](Self::Body) unless it is a tape or a log with the start of a stream.
    pub fn of_named(start: &[u8], api: Option<Api>) -> RecordingForm {
        let form = RecordingForm::of(start);
        let is_stream = || LineCount::of(&start[..start.len().min(LOOKED_AT)]).has_start;
        if form == RecordingForm::Log && api.is_some() && !is_stream() {
            return RecordingForm::Body;
        }
        form
    }
}

/// Counts the kinds of lines that contain objects. A body of server-sent events has none.
#[derive(Debug, Default)]
struct LineCount {
    /// The number of our events.
    ours: usize,
    /// Whether one of the events starts a stream.
    has_start: bool,
    others: usize,
}

impl LineCount {
    /// After a stream has started, counting stops once our lines are ahead by this number.
    const AHEAD: usize = 16;

    fn of(start: &[u8]) -> LineCount {
        let mut count = LineCount::default();
        let mut scanner = Scanner::default();
        let mut from = 0;
        let ends = memchr::memchr_iter(b'\n', start).chain([start.len()]);
        for end in ends {
            let line = &start[from..end];
            from = end + 1;
            if count.has_start && count.ours >= count.others + LineCount::AHEAD {
                break;
            }
            if !line.trim_ascii_start().starts_with(b"{") {
                continue;
            }
            let is_ours = match std::str::from_utf8(line).map(|line| scanner.read(line)) {
                Ok(Ok(event)) => {
                    count.has_start |= event.kind() == Kind::StreamStart;
                    is_ours(&event)
                }
                // The line is longer than the examined part. Our commands write `type` first.
                _ => begins_as_ours(&String::from_utf8_lossy(line)),
            };
            *(if is_ours {
                &mut count.ours
            } else {
                &mut count.others
            }) += 1;
        }
        count
    }

    /// Whether most object lines are ours. A single line does not decide: provider lines may have a
    /// `type` as well, and a log may contain a line of another program.
    fn is_log(&self) -> bool {
        self.ours > 0 && self.ours >= self.others
    }
}

fn is_ours(event: &Event<'_>) -> bool {
    match event.kind() {
        Kind::Other => false,
        // Providers use this `type` as well.
        Kind::Message => Message::read(event)
            .message
            .with(|message| !message.is_null()),
        Kind::Error => !Error::read(event).source.is_empty(),
        _ => true,
    }
}

fn begins_as_ours(line: &str) -> bool {
    let kind = line
        .strip_prefix("{\"type\":\"")
        .and_then(|rest| rest.split('"').next())
        .map(Kind::of);
    match kind {
        None | Some(Kind::Other | Kind::Error) => false,
        Some(Kind::Message) => line.starts_with("{\"type\":\"message\",\"message\""),
        Some(_) => true,
    }
}

/// Returns the reason why no API was detected in a body that starts with `start`, and what to do,
/// for a message.
pub fn unrecognised(start: &[u8]) -> String {
    let start = &start[..start.len().min(LOOKED_AT)];
    if start.trim_ascii().is_empty() {
        return "the body is empty".to_owned();
    }
    if let Some(what) = unread(start) {
        return format!("this is {what}, which is not read; give the body of one response");
    }
    let mut is_json = false;
    let mut framing = Framing::new(usize::MAX);
    let mut on = |frame: Frame<'_>| {
        is_json |= matches!(
            frame,
            Frame::Event { .. } | Frame::Value(_) | Frame::Broken(_)
        );
    };
    framing.push(start, &mut on);
    framing.finish(&mut on);
    if is_json {
        "the body does not show its API, name it with --api".to_owned()
    } else {
        "this is neither an event stream nor JSON; give the body of one response".to_owned()
    }
}

/// Returns the name of a known but unsupported format of a file or body; `None` for any other
/// format.
pub(crate) fn unread(start: &[u8]) -> Option<&'static str> {
    let has = |text: &str| {
        start
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    let first = |text: &str| start.trim_ascii_start().starts_with(text.as_bytes());
    // See docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html for the frames.
    if start.first() == Some(&0) && (has(":event-type") || has(":exception-type")) {
        return Some("Amazon's binary event stream, as Bedrock sends it");
    }
    if first("{") {
        if has("\"log\"") && has("\"entries\"") {
            return Some("a HAR file");
        }
        if has("\"http_interactions\"") || has("\"interactions\"") && has("\"request\"") {
            return Some("a cassette of VCR");
        }
        if has("\"custom_id\"") {
            return Some("the result of a batch");
        }
    }
    if first("interactions:") || has("\ninteractions:") || has("http_interactions:") {
        return Some("a cassette of VCR");
    }
    if first("<") {
        return Some("a page of HTML or a file of XML");
    }
    let mut found = None;
    let mut framing = Framing::new(usize::MAX);
    framing.push(start, &mut |frame| {
        let (Frame::Event { data: text, .. } | Frame::Value(text)) = frame else {
            return;
        };
        let Ok(data) = Raw::parse(text) else { return };
        let kind = data.get_str("type");
        found = found.or(match kind.as_deref() {
            Some("RUN_STARTED") => Some("a stream of AG-UI"),
            Some("start" | "start-step") => Some("a UI message stream of the AI SDK"),
            _ if data.get("request_id").is_some()
                && data.get("output").is_some_and(Raw::is_object) =>
            {
                Some("an answer of DashScope's own API")
            }
            _ => None,
        });
    });
    found
}

#[cfg(test)]
mod recording_tests {
    use super::*;

    #[test]
    fn each_form_shows_in_the_first_lines() {
        for (start, form) in [
            ("# a comment\n{\"tape\":1}\n", RecordingForm::Tape),
            ("{\"type\":\"stream_start\",\"v\":1}\n", RecordingForm::Log),
            (
                "a line of another program\n{\"type\":\"content_delta\",\"text\":\"x\"}\n",
                RecordingForm::Log,
            ),
            (
                "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a line that is cut he",
                RecordingForm::Log,
            ),
            (
                "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}",
                RecordingForm::Body,
            ),
            (
                "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
                RecordingForm::Body,
            ),
            (
                "data: {\"type\":\"message_start\"}\n\n",
                RecordingForm::Body,
            ),
            ("", RecordingForm::Body),
            // One line of ours among those of a provider, and one of another program in a log.
            (
                "{\"model\":\"m\",\"done\":false}\n{\"type\":\"warning\",\"code\":\"x\"}\n{\"model\":\"m\",\"done\":true}\n",
                RecordingForm::Body,
            ),
            (
                "{\"level\":\"info\"}\n{\"type\":\"stream_start\",\"v\":1}\n",
                RecordingForm::Log,
            ),
        ] {
            assert_eq!(RecordingForm::of(start.as_bytes()), form, "{start}");
        }
    }

    #[test]
    fn what_follows_the_beginning_of_a_log_does_not_matter() {
        let start = "{\"type\":\"stream_start\",\"v\":1}\n";
        let ours = "{\"type\":\"content_delta\",\"text\":\"x\"}\n".repeat(LineCount::AHEAD);
        let others = "{\"model\":\"m\"}\n".repeat(99);
        for (text, form) in [
            ([start, &ours, &others].concat(), RecordingForm::Log),
            ([&ours, &others].map(|s| &**s).concat(), RecordingForm::Body),
            ([&others, start, &ours].concat(), RecordingForm::Body),
        ] {
            assert_eq!(RecordingForm::of(text.as_bytes()), form, "{text}");
        }
    }

    #[test]
    fn a_named_api_decides_but_for_the_log_of_a_stream() {
        let api = Some(Api::Ollama);
        for (start, form) in [
            (
                "{\"type\":\"tool_result\",\"output\":\"x\"}\n",
                RecordingForm::Body,
            ),
            ("{\"type\":\"stream_start\",\"v\":1}\n", RecordingForm::Log),
            ("{\"tape\":1}\n", RecordingForm::Tape),
        ] {
            assert_eq!(RecordingForm::of_named(start.as_bytes(), api), form);
            let unnamed = RecordingForm::of_named(start.as_bytes(), None);
            assert_eq!(unnamed, RecordingForm::of(start.as_bytes()));
        }
    }

    #[test]
    fn a_file_that_is_not_read_is_named_and_a_name_is_asked_for_where_it_helps() {
        for (start, says) in [
            (
                &b"\0\0\0\x7b\0\0\0\x45\0\0\0\0\x0b:event-type\x07\0\x05chunk"[..],
                "Bedrock",
            ),
            (
                b"{\"log\":{\"version\":\"1.2\",\"creator\":{},\"entries\":[]}}",
                "HAR",
            ),
            (b"---\nhttp_interactions:\n- request:\n", "VCR"),
            (b"interactions:\n- request:\n    body: x\n", "VCR"),
            (
                b"{\"version\": 1, \"interactions\": [{\"request\": {}}]}",
                "VCR",
            ),
            (
                b"data:{\"output\":{\"text\":\"x\"},\"request_id\":\"r\"}\n\n",
                "DashScope",
            ),
            (
                b"{\"id\":\"b\",\"custom_id\":\"c\",\"response\":{}}\n",
                "batch",
            ),
            (
                b"data: {\"type\":\"RUN_STARTED\",\"runId\":\"r\"}\n\n",
                "AG-UI",
            ),
            (
                b"data: {\"type\":\"start\",\"messageId\":\"r\"}\n\n",
                "AI SDK",
            ),
            (b"<!doctype html>", "HTML"),
            (b"Internal Server Error", "neither"),
            (b"\n\n", "empty"),
        ] {
            let why = unrecognised(start);
            assert!(why.contains(says) && !why.contains("--api"), "{why}");
        }
        for start in ["{\"a\":1}", "data: {\"a\":1}\n\n", "{\"message\":\"no\"}"] {
            let why = unrecognised(start.as_bytes());
            assert!(why.contains("name it with --api"), "{why}");
        }
    }
}
