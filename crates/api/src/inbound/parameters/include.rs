//! The list `include` of OpenAI Responses, as members that other APIs have.

use crate::Api;
use serde_json::{Map, Value, json};

/// The word that asks for log probabilities.
const LOGPROBS: &str = "message.output_text.logprobs";

/// Makes of the list an object, whose member `logprobs` the table has; what else it asks for is
/// `include.WORD`.
pub(super) fn read(from: Api, params: &mut Map<String, Value>) {
    if from != Api::OpenaiResponses {
        return;
    }
    // `top_logprobs` alone asks for nothing of chat completions.
    let mut members = Map::new();
    if params
        .get("top_logprobs")
        .and_then(Value::as_u64)
        .is_some_and(|count| count > 0)
    {
        members.insert("logprobs".to_owned(), true.into());
    }
    if let Some(Value::Array(words)) = params.get("include") {
        for word in words.iter().filter_map(Value::as_str) {
            members.insert(
                if word == LOGPROBS { "logprobs" } else { word }.to_owned(),
                true.into(),
            );
        }
    }
    if !members.is_empty() {
        params.insert("include".to_owned(), members.into());
    }
}

/// Makes the list again.
pub(super) fn write(to: Api, members: &mut Map<String, Value>) {
    if to == Api::OpenaiResponses && members.shift_remove("include").is_some() {
        members.insert("include".to_owned(), json!([LOGPROBS]));
    }
}
