//! How the tests of builders make a request: a conversation as text, the body as a value.

use super::{RequestOptions, request};
use crate::{Api, Conversation};
use json::ToolList;
use serde_json::Value;
use std::sync::Arc;

/// The body for the messages of `talk` (JSON objects, one after the other) with the tools of the
/// JSON text `tools`. The model is `m` unless the options name one.
pub(crate) fn body(api: Api, options: &RequestOptions, tools: &str, talk: &str) -> Value {
    let log: String = serde_json::Deserializer::from_str(talk)
        .into_iter::<Value>()
        .map(|m| format!("{}\n", m.expect("JSON")))
        .collect();
    let (talk, problems) = Conversation::read(&log);
    assert_eq!(problems, []);
    let mut options = options.clone();
    if options.model.is_empty() {
        options.model = "m".to_owned();
    }
    options.tools = list(tools);
    let request = request(api, &talk, &options).expect("a request");
    serde_json::from_str(&request.body).expect("JSON")
}

/// The tools of a JSON text; `null` for none.
pub(crate) fn list(text: &str) -> Option<Arc<ToolList>> {
    (text != "null").then(|| Arc::new(ToolList::read(text).expect("a list of tools")))
}
