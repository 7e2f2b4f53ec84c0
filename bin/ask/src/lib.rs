//! One turn with a provider, as `llm-stream` and `tc-serve` ask for it: the options that name a provider, the request that is made of
//! them and a conversation, and its attempts.
