//! What another provider wants back: of reasoning in the place of a signature or of an encrypted
//! content, and of a call in its id.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use event::Raw;
use serde_json::Value;
use std::borrow::Cow;

/// What begins a text that carries another provider's data, in the place of a signature or of an
/// encrypted content. [`carry`] writes it.
const MARK: &str = "toolpipe:";

/// Whether a signature or an encrypted content carries another provider's data.
pub(crate) fn is_carried(text: &str) -> bool {
    text.starts_with(MARK)
}

/// The data that such a text carries, by the name of the API.
pub(crate) fn carried(text: &str) -> Option<Value> {
    serde_json::from_str(text.strip_prefix(MARK)?)
        .ok()
        .filter(Value::is_object)
}

/// Whether the id of an item was made here (`openai_responses/output.rs`): its kind, the 32
/// hexadecimal digits of the answer, and its place. A provider has nothing under such an id.
pub(crate) fn is_made_here(id: &str) -> bool {
    let Some((answer, place)) = id
        .split_once('_')
        .and_then(|(_, rest)| rest.split_once('_'))
    else {
        return false;
    };
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    answer.len() == 32
        && answer.bytes().all(is_hex)
        && !place.is_empty()
        && place.bytes().all(|b| b.is_ascii_digit())
}

/// In the place of a signature: the reasoning is not the API's own, and nobody wants anything back
/// with it. Clients such as pydantic-ai and the AI SDK send back reasoning without a signature as
/// text, or not at all.
pub(crate) const UNSIGNED: &str = "toolpipe:{}";

/// The text for `provider`, which is JSON by the name of the API, in an answer of the API `own`.
pub(crate) fn carry(provider: &str, own: &str) -> Option<String> {
    let data = Raw::parse(provider).ok()?;
    let is_wanted = |(api, data): (Cow<'_, str>, Raw<'_>)| {
        api != own
            && match &*api {
                // Ids and phases of messages are for clients of the API itself.
                "openai-responses" => {
                    data.get("item").is_some() || data.get("server_item").is_some()
                }
                // The signature of a text need not go back, and that of a call goes with its id.
                "gemini" => data.get("of").is_none(),
                _ => data
                    .get_str("signature")
                    .is_none_or(|signature| !signature.is_empty()),
            }
    };
    data.entries().any(is_wanted).then(|| {
        let mut text = MARK.as_bytes().to_vec();
        event::minify(&mut text, provider);
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Between the id of a call and what it carries, in the characters that every API takes in an id.
const IN_ID: &str = "__toolpipe_";

/// The most bytes of data that an id carries.
const MOST_IN_ID: usize = 64 << 10;

/// The id of a call for a client of the API `own`, with what must go back to the provider with the
/// call. Every client sends the id back, while it may drop members that it does not know, and
/// neither Messages nor Responses has a member for it. LiteLLM does the same
/// (github.com/BerriAI/litellm/pull/16895).
pub(crate) fn id_with(id: &str, provider: &str, own: &str) -> Option<String> {
    let data = Raw::parse(provider).ok()?;
    let has = |path: &[&str]| data.at(path).is_some_and(|v| v.str_len() > 0);
    let is_wanted = has(&["gemini", "thoughtSignature"])
        || has(&[
            "openai-chat",
            "extra_content",
            "google",
            "thought_signature",
        ])
        || (own != "openai-responses" && has(&["openai-responses", "kind"]));
    let mut json = Vec::new();
    event::minify(&mut json, provider);
    (is_wanted && json.len() <= MOST_IN_ID)
        .then(|| format!("{id}{IN_ID}{}", URL_SAFE_NO_PAD.encode(json)))
}

/// The id as the provider knows it, and the data that it carries.
pub(crate) fn id_without(id: &str) -> (&str, Option<Value>) {
    let found = id.rsplit_once(IN_ID).and_then(|(id, text)| {
        let json = URL_SAFE_NO_PAD.decode(text).ok()?;
        let data = serde_json::from_slice(&json).ok().filter(Value::is_object);
        Some((id, Some(data?)))
    });
    found.unwrap_or((id, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_carries_what_goes_back_and_nothing_else() {
        let signed = r#"{"gemini":{"id":"a","thoughtSignature":"s+/="}}"#;
        let id = id_with("call_1", signed, "anthropic").unwrap();
        assert!(
            id.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'),
            "{id}"
        );
        let (bare, data) = id_without(&id);
        assert_eq!(
            (bare, data.unwrap().to_string().as_str()),
            ("call_1", signed)
        );
        for other in ["call_1", "a__toolpipe_", "a__toolpipe_!", "a__toolpipe_MQ"] {
            assert_eq!(id_without(other), (other, None));
        }
        for unwanted in [
            r#"{"gemini":{"id":"a"}}"#,
            r#"{"openai-responses":{"custom":true}}"#,
        ] {
            assert_eq!(id_with("call_1", unwanted, "anthropic"), None);
        }
        let kind = r#"{"openai-responses":{"kind":"shell_call"}}"#;
        assert_eq!(id_with("call_1", kind, "openai-responses"), None);
        assert!(id_with("call_1", kind, "openai-chat").is_some());
    }
}
