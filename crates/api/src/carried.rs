//! What another provider wants back, in the place of a signature or of an encrypted content.

use serde_json::Value;

/// What begins a text that carries another provider's data, in the place of a signature or of an
/// encrypted content. `answer` writes it (`front/carried.rs`).
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

/// Whether the id of an item was made by `answer` (`front/responses/item.rs`): its kind, the 32
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
