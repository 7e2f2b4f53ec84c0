//! What another provider wants back, in the place of a signature or of an encrypted content.

use serde_json::Value;

/// What begins a text that carries another provider's data, in the place of a signature or of an encrypted content. `answer` writes it
/// (`front/carried.rs`).
const MARK: &str = "toolpipe:";

/// Whether a signature or an encrypted content carries another provider's data.
pub(crate) fn is_carried(text: &str) -> bool {
    text.starts_with(MARK)
}

/// The data that such a text carries, by the name of the API.
pub(crate) fn carried(text: &str) -> Option<Value> {
    serde_json::from_str(text.strip_prefix(MARK)?).ok().filter(Value::is_object)
}
