//! Detects errors that report a conversation longer than the model's context.
//!
//! The sources are the messages that providers and servers send; each is a case in the test below.
//! There is no common error code.

/// Error codes and types that providers use only for this error.
const CODES: [&str; 9] = [
    "context_overflow",
    "context_length_exceeded",       // OpenAI, Groq, Cerebras, DeepSeek
    "exceed_context_size_error",     // llama.cpp
    "model_context_window_exceeded", // Z.ai
    "context_window_exceeded",
    "contextwindowexceedederror", // LiteLLM
    "request_too_large",          // Anthropic
    "tokens_limit_reached",       // GitHub Models
    "input_too_long",
];

/// Fragments of error messages: each entry matches if all its words occur.
const SENTENCES: [&[&str]; 34] = [
    &["maximum context length"], // OpenAI, vLLM, DeepSeek, OpenRouter, Mistral
    &["context length", "exceed"], // Ollama
    &["context length", "longer than"], // SGLang, Together
    &["context length", "greater than"], // LM Studio
    &["context length", "not enough"], // LM Studio
    &["context length", "too long"], // vLLM
    &["context window", "exceed"], // OpenAI's Responses, MiniMax, llama-cpp-python, Workers AI
    &["context size", "exceed"], // llama.cpp
    &["context limit", "exceed"], // Anthropic
    &["configured context size is"], // ds4
    &["maximum model length", "longer than"], // vLLM
    &["prompt is too long"],     // Anthropic, Fireworks
    &["prompt too long"],        // Ollama
    &["prompt exceeds max length"], // Z.ai
    &["maximum prompt length"],  // xAI
    &["prompt token count", "exceed"], // GitHub Copilot
    &["input token count", "exceed"], // Gemini
    &["input token count", "only supports"], // Vertex AI
    &["input tokens exceed"],    // Azure
    &["input length", "exceed"], // SGLang
    &["range of input length should be"], // DashScope
    &["input is too long"],      // Bedrock
    &["`inputs`", "`max_new_tokens` must be"], // Text Generation Inference
    &["`inputs` must have less than", "token"], // Text Generation Inference
    &["length of the messages"], // Groq
    &["exceeded model token limit"], // Moonshot
    &["exceed max message tokens"], // Volcano Engine
    &["tokens in request more than max"],
    &["greater than max_seq_len"],         // TabbyAPI
    &["request body too large", "tokens"], // GitHub Models
    &["tokens must be reduced"], // OpenAI, where one request is over the limit of a minute
    &["too many tokens", "cannot exceed"], // Cohere
    &["too many tokens", "size limit"], // Cohere
    &["string too long", "messages["], // OpenAI
];

/// Words that indicate a limit that resets with time, so that the same request succeeds later.
const LATER: [&str; 6] = [
    "rate limit",
    "rate_limit",
    "per minute",
    "please wait",
    "throttl",
    "quota",
];

/// Whether an error with this code reports an overflow in one of `texts`.
pub(crate) fn is_overflow<'t>(code: &str, texts: impl IntoIterator<Item = &'t str>) -> bool {
    // The body is too large. If a proxy rejected it, its page gives no reason.
    code == "http_413"
        || texts
            .into_iter()
            .any(|text| reports(&text.to_lowercase(), code == "http_429"))
}

fn reports(text: &str, later: bool) -> bool {
    let has = |words: &[&str]| words.iter().all(|word| text.contains(word));
    if later || LATER.iter().any(|word| text.contains(word)) {
        return has(&["tokens must be reduced"]);
    }
    CODES.contains(&text) || SENTENCES.iter().any(|words| has(words))
}

#[cfg(test)]
mod tests {
    use crate::failure::{StreamFailure, Words};

    /// HTTP statuses and bodies recorded from real servers.
    const OVERFLOWS: [(u16, &str); 42] = [
        // OpenAI, chat and responses
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a string with length 1500000 instead.","type":"invalid_request_error","param":"messages[1].content","code":"string_above_max_length"}}"#,
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-4 in organization org-x on tokens per min (TPM): Limit 10000, Requested 12000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens. Please reduce the length of the messages.","code":"context_length_exceeded"}}"#,
        ),
        // Anthropic
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again"}}"#,
        ),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ),
        // Gemini and Vertex AI
        (
            400,
            r#"{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1048576.","status":"INVALID_ARGUMENT"}}]"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"Unable to submit request because the input token count is 1200293 but model only supports up to 1048576. Reduce the input token count and try again.","status":"INVALID_ARGUMENT"}}"#,
        ),
        // Mistral
        (
            400,
            r#"{"object":"error","message":"Prompt contains 300000 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_error","param":null,"code":"3051"}"#,
        ),
        // Cohere
        (
            400,
            r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt, or enabling prompt truncating."}"#,
        ),
        (
            400,
            r#"{"id":"1","message":"too many tokens: size limit exceeded by 4096 tokens. Try using shorter or fewer inputs. The limit for this model is 288000 tokens."}"#,
        ),
        // Ollama
        (
            400,
            r#"{"error":"prompt too long; exceeded max context length by 4096 tokens"}"#,
        ),
        (
            400,
            r#"{"error":"the input length exceeds the context length"}"#,
        ),
        // llama.cpp, from old to new, and llama-cpp-python
        (
            500,
            r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4390,"n_ctx":4096}}"#,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
        ),
        (
            500,
            r#"{"error":{"message":"Requested tokens (2285) exceed context window of 2048","type":"internal_server_error"}}"#,
        ),
        // vLLM
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.","code":400}"#,
        ),
        (
            400,
            r#"{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}"#,
        ),
        // SGLang
        (
            400,
            r#"{"object":"error","message":"The input (61709 tokens) is longer than the model's context length (40960 tokens).","type":"BadRequestError","param":null,"code":400}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate.","code":400}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"Requested token count exceeds the model's maximum context length of 131072 tokens.","code":400}"#,
        ),
        // OpenRouter, by itself and with a provider's own words
        (
            400,
            r#"{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"Input is too long for requested model.\"}","provider_name":"Amazon Bedrock"}}}"#,
        ),
        // Groq, xAI, Moonshot, MiniMax, DashScope, Fireworks, Bedrock, Z.ai, LM Studio, GitHub,
        // Cerebras, Text Generation Inference, LiteLLM
        (
            400,
            r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ),
        (
            413,
            r#"{"error":{"message":"Request too large for model `x` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ),
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)","type":"invalid_request_error"}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)"}}"#,
        ),
        (
            400,
            r#"{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"}}"#,
        ),
        (
            400,
            r#"{"error":{"object":"error","type":"invalid_request_error","message":"The prompt is too long: 140000, model maximum context length: 131071"}}"#,
        ),
        (
            400,
            r#"{"message":"Input is too long for requested model."}"#,
        ),
        (
            400,
            r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
        ),
        (
            400,
            r#"{"error":"Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough."}"#,
        ),
        (
            413,
            r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}"#,
        ),
        (413, ""),
        (
            422,
            r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 `max_new_tokens`","error_type":"validation"}"#,
        ),
        (
            400,
            r#"{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: prompt is too long","type":null,"code":"400"}}"#,
        ),
    ];

    #[test]
    fn the_forms_in_use() {
        for (status, body) in OVERFLOWS {
            let failure = StreamFailure::of_body(status, body).advised(false, &Words::default());
            assert_eq!(
                (failure.code.as_str(), failure.retryable),
                ("context_overflow", false),
                "{body}"
            );
            assert!(
                failure.message.starts_with(&format!("HTTP {status}: ")),
                "{}",
                failure.message
            );
            assert!(
                failure.message.ends_with(Words::default().overflow),
                "{}",
                failure.message
            );
        }
    }

    #[test]
    fn another_reason_stays_another_error() {
        for (status, body) in [
            (
                429,
                r#"{"error":{"message":"Rate limit reached for gpt-4 on tokens per min (TPM): Limit 10000, Used 9000, Requested 2000. Please try again in 6s.","code":"rate_limit_exceeded"}}"#,
            ),
            (
                429,
                r#"{"message":"Too many tokens, please wait before trying again."}"#,
            ),
            (
                400,
                r#"{"message":"Throttling error: Too many tokens, please wait before trying again."}"#,
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota, please check your plan","code":"insufficient_quota"}}"#,
            ),
            (
                503,
                r#"{"error":{"message":"Rate limit: maximum context length jobs per minute exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"max_tokens is too large: 20000. This model supports at most 16384 completion tokens"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6 MB > 5242880 bytes"}}"#,
            ),
            (500, r#"{"error":{"message":"context canceled"}}"#),
            // The request, repeated in the response.
            (
                422,
                r#"{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":"prompt is too long"}]}"#,
            ),
            (401, r#"{"error":{"message":"Incorrect API key"}}"#),
        ] {
            let failure = StreamFailure::of_body(status, body).advised(true, &Words::default());
            assert_eq!(failure.code, format!("http_{status}"), "{body}");
        }
    }
}
