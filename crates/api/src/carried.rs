//! What another provider wants back, in the place of a signature or of an encrypted content.

use event::Raw;
use serde_json::Value;

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

/// The APIs that refuse or forget reasoning which comes back without its data. Gemini's goes with
/// its calls, which have no place for it in these APIs; half of it would be worse than none.
const CARRIED: [&str; 2] = ["anthropic", "openai-responses"];

/// The text for `provider`, which is JSON by the name of the API, in an answer of the API `own`.
pub(crate) fn carry(provider: &str, own: &str) -> Option<String> {
    let data = Raw::parse(provider).ok()?;
    let foreign = CARRIED
        .into_iter()
        .filter(|api| *api != own)
        .find_map(|api| data.get(api))?;
    let is_empty = foreign
        .get_str("signature")
        .is_some_and(|signature| signature.is_empty());
    (!is_empty).then(|| {
        let mut text = MARK.as_bytes().to_vec();
        event::minify(&mut text, provider);
        String::from_utf8_lossy(&text).into_owned()
    })
}
