//! Detects errors that say that the server or the model does not support tools.
//!
//! The sources are messages that servers really send; each is a case in the test below. An error
//! counts if it names tools or function calling and rejects them. It does not count if it rejects a
//! schema, a tool choice, or the number of tools.

use event::Raw;

/// Returns the server's message if this HTTP response rejects tools in general, otherwise `None`.
///
/// Old versions of llama.cpp use status 500 for this error. From other servers, a 5xx status does
/// not concern the request.
pub fn refuses_tools(status: u16, body: &str) -> Option<String> {
    if !matches!(status, 400 | 403 | 404 | 405 | 415 | 422 | 500 | 501) {
        return None;
    }
    let mut sentences = Vec::new();
    match Raw::parse(body) {
        Ok(value) => texts(value, &mut sentences),
        Err(_) => sentences.push(body.to_owned()),
    }
    let said = sentences
        .iter()
        .find(|text| refuses(&text.to_lowercase()))?;
    let words: Vec<&str> = said.split_whitespace().collect();
    Some(format!(
        "HTTP {status}: {}",
        words.join(" ").chars().take(LONGEST).collect::<String>()
    ))
}

/// The maximum length of a stored server message, in characters.
const LONGEST: usize = 300;

/// Members of an error that echo the request.
const ECHOES: [&str; 6] = [
    "input",
    "body",
    "request",
    "ctx",
    "failed_generation",
    "param",
];

/// Collects all strings in an error that may be sentences.
pub(crate) fn texts(value: Raw<'_>, out: &mut Vec<String>) {
    if let Some(text) = value.str() {
        out.push(text.into_owned());
    }
    value.items().for_each(|item| texts(item, out));
    if let (Some(at), Some(said)) = (
        value.get("loc").and_then(|loc| loc.items().last()),
        value.get_str("msg"),
    ) {
        // Pydantic errors have the location and the problem in separate members.
        out.push(format!("{}: {said}", at.str().unwrap_or_default()));
    }
    let member = |key: &str| value.get_str(key).unwrap_or_default();
    if member("param") == "tools"
        && matches!(
            &*member("code"),
            "unsupported_parameter" | "unknown_parameter"
        )
    {
        out.push(format!(
            "{} (unsupported parameter: tools)",
            member("message")
        ));
    }
    for (key, value) in value.entries() {
        if !ECHOES.contains(&key.as_ref()) && !matches!(key.as_ref(), "loc" | "msg") {
            texts(value, out);
        }
    }
}

/// The names for tools in error messages. Longer words that contain one of these names
/// (`tool_choice`, `parallel_tool_calls`, `--tool-call-parser`) mean something else.
const NAMES: [&str; 9] = [
    "tools",
    "tool use",
    "tool calling",
    "tool calls",
    "tool-calling",
    "function calling",
    "function-calling",
    "function calls",
    "functions",
];

/// Phrases that express a rejection, before or after the rejected name.
const WORDS: [&str; 14] = [
    "not support",
    "n't support",
    "unsupported",
    "not enabled",
    "not available",
    "not allowed",
    "not permitted",
    "not implemented",
    "no endpoints found that support",
    "unknown name",
    "unknown parameter",
    "unrecognized",
    "unexpected keyword argument",
    "requires --jinja",
];

/// Messages of vLLM and SGLang that name the option that the operator must enable.
const WHOLE: [&str; 3] = [
    "requires --enable-auto-tool-choice",
    "requires --tool-call-parser",
    "unsupported tool_call_parser: none",
];

/// llama.cpp generates a parser from the chat template for requests with tools. It reports the same
/// error if it cannot parse a tool's schema.
const NO_PARSER: &str = "unable to generate parser for this template";

/// Words before a name which show that a property or a neighbour of it is rejected instead.
const OTHERS: [&str; 4] = ["parallel", "strict", " with", " using"];

/// Words after which the subject of a rejection changes, or the rejection becomes conditional.
const TURNS: [&str; 8] = [
    " when ", " with ", " while ", " using ", " if ", " must ", ". ", "; ",
];

/// The maximum number of bytes from a rejection to the name after it, and from a name to the
/// rejection after it.
const BETWEEN: (usize, usize) = (40, 24);

fn refuses(text: &str) -> bool {
    WHOLE.iter().any(|whole| text.contains(whole))
        || (text.contains(NO_PARSER) && !text.contains("schema"))
        || NAMES
            .iter()
            .flat_map(|name| text.match_indices(name))
            .any(|(at, name)| {
                let before = &text[..at];
                let after = &text[at + name.len()..];
                stands_alone(before, after) && (refused_before(before) || refused_after(after))
            })
}

/// Whether a name is a separate word that means tools in general.
fn stands_alone(before: &str, after: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut next = after.chars();
    !before.ends_with(|c: char| part(c) || c == '-')
        && !OTHERS
            .iter()
            .any(|other| before.trim_end().ends_with(other))
        && !before.trim_end().ends_with(|c: char| c.is_ascii_digit())
        && match next.next() {
            // An index into the list, or a member of a tool.
            Some('[' | '-') => false,
            Some('.') => !next.next().is_some_and(part),
            Some(c) => !part(c),
            None => true,
        }
        && !after.trim_start().starts_with("in stream")
}

/// Matches "does not support … tools".
fn refused_before(before: &str) -> bool {
    let last = WORDS
        .iter()
        .filter_map(|word| Some(before.rfind(word)? + word.len()))
        .max();
    last.is_some_and(|end| {
        let between = &before[end..];
        between.len() <= BETWEEN.0
            && !between.contains("choice")
            && !TURNS.iter().any(|turn| between.contains(turn))
    })
}

/// Matches "tools … is not supported".
fn refused_after(after: &str) -> bool {
    let first = WORDS.iter().filter_map(|word| after.find(word)).min();
    first.is_some_and(|start| {
        let between = &after[..start];
        start <= BETWEEN.1
            && !["choice", "mode"].iter().any(|other| between.contains(other))
            && !TURNS.iter().any(|turn| between.contains(turn))
            // A temporary error must not be remembered.
            && !["right now", "at the moment", "temporarily"].iter().any(|soon| after.contains(soon))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_in_use() {
        for (status, body) in [
            // Ollama, by itself and in its OpenAI shape.
            (
                400,
                r#"{"error":"registry.ollama.ai/library/deepseek-r1:8b does not support tools"}"#,
            ),
            (
                400,
                r#"{"error":{"message":"registry.ollama.ai/library/gemma3:4b does not support tools","type":"api_error","param":null,"code":null}}"#,
            ),
            // vLLM
            (
                400,
                r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}"#,
            ),
            (
                400,
                r#"{"error":{"message":"tool_choice=\"required\" requires --tool-call-parser to be set"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"2 validation errors for ChatCompletionRequest\ntools\n  Extra inputs are not permitted [type=extra_forbidden, input_value=[]]"}"#,
            ),
            (
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","tools"],"msg":"Extra inputs are not permitted","input":[]}]}"#,
            ),
            // OpenRouter
            (
                404,
                r#"{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}"#,
            ),
            (
                404,
                r#"{"error":{"message":"No endpoints found that support tool use. Try disabling \"question\". To learn more","code":404}}"#,
            ),
            // llama.cpp, from old to new
            (
                500,
                r#"{"error":{"code":500,"message":"Unsupported param: tools","type":"server_error"}}"#,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"Unable to generate parser for this template. Automatic parser generation failed: Conversation roles must alternate","type":"invalid_request_error"}}"#,
            ),
            // SGLang
            (
                400,
                r#"{"object":"error","message":"Unsupported tool_call_parser: None","type":"BadRequestError","param":null,"code":400}"#,
            ),
            // DeepInfra, Novita behind OpenRouter, and a server that gives the reason only in its
            // code.
            (
                405,
                r#"{"status":"failure","message":"deepinfra error: Tool calling is not supported for model: NousResearch/Hermes-3-Llama-3.1-70B"}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"code\":400, \"message\":\"model features function calling not support\"}","provider_name":"Novita"}}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Tool use is not wired up for this model yet.","type":"invalid_request_error","param":"tools","code":"unsupported_parameter"}}"#,
            ),
            // LiteLLM
            (
                400,
                r#"{"error":{"message":"litellm.UnsupportedParamsError: together_ai does not support parameters: ['tools'], for model=x. To drop these, set `litellm.drop_params=True`","code":"400"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"litellm.UnsupportedParamsError: nvidia_nim does not support parameters: {'tools': [{'type': 'function'}]}, for model=x"}}"#,
            ),
            // Groq, old and new
            (
                400,
                r#"{"error":{"message":"`tools` is not supported with this model","type":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"tool calling is not supported with this model","type":"invalid_request_error","param":"tool calling"}}"#,
            ),
            // OpenAI and Azure
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'tools' is not supported with this model.","type":"invalid_request_error","param":"tools","code":"unsupported_parameter"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Unrecognized request argument supplied: tools","type":"invalid_request_error"}}"#,
            ),
            // DeepSeek, Together, xAI, Mistral, Google, Bedrock
            (
                400,
                r#"{"error":{"message":"deepseek-reasoner does not support Function Calling","type":"invalid_request_error","code":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"meta-llama/x is not supported for JSON mode/function calling","type":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"{"code":"Client specified an invalid argument","error":"Invalid request content: The model does not support tool use or function calling but tools or tool_choice have been specified on the request."}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"Function calling is not enabled for this model","type":"invalid_request_invalid_args","code":"3051"}"#,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-12b-it","status":"INVALID_ARGUMENT"}}]"#,
            ),
            (400, r#"{"message":"This model doesn't support tool use."}"#),
            (400, "Tools are not supported by this server\n"),
        ] {
            let said = refuses_tools(status, body);
            assert!(
                said.as_ref()
                    .is_some_and(|s| s.starts_with(&format!("HTTP {status}: "))),
                "{said:?} {body}"
            );
        }
        let long = format!("tools are not supported {}", "x\n".repeat(1000));
        assert_eq!(
            refuses_tools(400, &long).map(|s| s.len()),
            Some(LONGEST + "HTTP 400: ".len())
        );
    }

    #[test]
    fn another_reason_stays_an_error() {
        for (status, body) in [
            // Recorded from llama.cpp.
            (
                400,
                r#"{"error":{"code":400,"message":"Unable to generate parser for this template. Automatic parser generation failed: JSON schema conversion failed:\nUnrecognized schema: {\"type\":\"strang\"}","type":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"Cannot use custom grammar constraints with tools.","type":"invalid_request_error"}}"#,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"Failed to parse tools: Expected 'tools' to be an array, got {\"name\":\"x\"}; tools = {\n  \"name\": \"x\"\n}","type":"server_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Invalid schema for function 'f': 'oneOf' is not supported","param":"tools[0].function.parameters"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"tools[0].function.strict is not supported"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Unknown name \"const\" at 'tools[0].function_declarations[0]': Cannot find field."}}"#,
            ),
            (
                404,
                r#"{"error":{"message":"No endpoints found that support the provided 'tool_choice' value.","code":404}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"azure does not support parameters: ['tool_choice'], for model=gpt-5-chat"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"deepseek-reasoner does not support this tool_choice"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'parallel_tool_calls' is not supported with this model."}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"This model does not support parallel tool calls"}}"#,
            ),
            (
                400,
                r#"{"message":"This model doesn't support tool use in streaming mode."}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"Function calling mode `ANY` is not enabled for api version v1beta"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Function calling with a response mime type: 'application/json' is unsupported"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"'messages.1' : property 'tool_calls' is unsupported, did you mean 'tool_call_id'?"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"tools are not supported"}}"#,
            ),
            (
                422,
                r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required","input":{"tools":"tools not supported"}}]}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model."}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"The model `x` does not support images. Remove them, and use tools."}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"This model does not support more than 128 tools"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"'temperature' is not supported when using tools"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"System messages are not supported when tools are given"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"stream_options is not supported with tools"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Structured outputs with tools are not supported"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"tools with images are not supported"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"strict tools are not supported"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"'tools' must be an array; unsupported type null"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"tools are not available right now, retry later"}}"#,
            ),
            (404, r#"{"error":{"message":"model 'tools' not found"}}"#),
            (401, r#"{"error":"does not support tools"}"#),
            (429, r#"{"error":"does not support tools"}"#),
            (400, ""),
        ] {
            assert_eq!(refuses_tools(status, body), None, "{body}");
        }
    }
}
