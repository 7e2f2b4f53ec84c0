//! The system prompt, for APIs that take it apart from the messages.

use super::options::RequestOptions;
use crate::conversation::Conversation;

/// The user's own system prompt and those of the conversation, with a blank line between them.
/// `None` if neither exists.
pub(crate) fn system(talk: &Conversation, options: &RequestOptions) -> Option<String> {
    let mut texts: Vec<String> = options.system.iter().cloned().collect();
    texts.extend(
        talk.messages
            .iter()
            .filter(|m| is_system(m.role()))
            .map(|m| m.text()),
    );
    texts.retain(|text| !text.trim().is_empty());
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Whether messages of this role are part of the system prompt.
pub(crate) fn is_system(role: &str) -> bool {
    matches!(role, "system" | "developer")
}
