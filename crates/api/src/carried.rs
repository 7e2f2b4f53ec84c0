//! Data that must be sent back to another provider. Reasoning data travels in place of a signature
//! or of encrypted content, and call data in the call's id.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use event::Raw;
use serde_json::Value;
use std::borrow::Cow;

/// The prefix of a text that carries another provider's data in place of a signature or of
/// encrypted content. [`carry`] writes it.
const MARK: &str = "toolpipe:";

/// Whether a signature or encrypted content carries another provider's data.
pub(crate) fn is_carried(text: &str) -> bool {
    text.starts_with(MARK)
}

/// Returns the data in such a text, by API name.
pub(crate) fn carried(text: &str) -> Option<Value> {
    serde_json::from_str(text.strip_prefix(MARK)?)
        .ok()
        .filter(Value::is_object)
}

/// Whether an item's id was created here (`openai_responses/output.rs`): its kind, the response's
/// 32 hexadecimal digits, and its position. No provider stores data under such an id.
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

/// Replaces the signature of reasoning from another API that does not have to be sent back. Clients
/// such as pydantic-ai and the AI SDK send reasoning without a signature back as text, or not at
/// all.
pub(crate) const UNSIGNED: &str = "toolpipe:{}";

/// Returns the text that carries `provider` (JSON by API name) in a response of the API `own`, or
/// `None` if no other provider needs the data.
pub(crate) fn carry(provider: &str, own: &str) -> Option<String> {
    let data = Raw::parse(provider).ok()?;
    let is_wanted = |(api, data): (Cow<'_, str>, Raw<'_>)| {
        api != own
            && match &*api {
                // The ids and phases of messages are only useful to clients of the API itself.
                "openai-responses" => {
                    data.get("item").is_some() || data.get("server_item").is_some()
                }
                // A text's signature does not have to be sent back, and a call's signature is in
                // its id.
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

/// Separates a call's id from the data it carries. It only uses characters that every API allows.
const IN_ID: &str = "__toolpipe_";

/// The maximum size of the data in an id, in bytes.
const MOST_IN_ID: usize = 64 << 10;

/// Returns a call id for a client of the API `own` that also carries the data to be sent back to
/// the provider. Every client sends the id back, but may drop unknown members, and neither Messages
/// nor Responses has a member for the data. LiteLLM does the same
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

/// Splits a call id into the provider's id and the data it carries.
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
