//! What another provider wants back, in the one text that a client keeps for the provider of its
//! own API: Claude Code and Codex send a signature and an encrypted content back as they are.
//! `upstream` reads it out of the next request (`carried.rs`).

use event::Raw;

/// What begins such a text.
const MARK: &str = "toolpipe:";

/// The APIs that refuse or forget reasoning which comes back without its data. Gemini's goes with
/// its calls, which have no place for it in these APIs; half of it would be worse than none.
const CARRIED: [&str; 2] = ["anthropic", "openai-responses"];

/// The text for `provider`, which is JSON by the name of the API, in an answer of the API `own`.
pub(super) fn carried(provider: &str, own: &str) -> Option<String> {
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
