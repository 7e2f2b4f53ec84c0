//! The names under which the tools of servers are offered to a model.

use crate::canonical::{digest, hex};

/// The longest name that every provider accepts
/// (<https://platform.openai.com/docs/api-reference/chat/create>).
const LONGEST: usize = 64;

/// How many digits of a digest a name ends with that could not stay as it is.
const DIGITS: usize = 8;

/// The name of a tool of a server: `server__tool`.
///
/// Providers accept at most 64 of `A-Z a-z 0-9 _ -`. Where the plain name has other characters or
/// is longer, `_` replaces those characters, the name is cut, and it ends with `_` and eight digits
/// of a digest of both names. The same is done where the server's name has `__` in it or ends with
/// `_`, since another server and another tool could then have the same plain name.
pub fn offered_name(server: &str, tool: &str) -> String {
    let plain = format!("{server}__{tool}");
    let is_accepted = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_ambiguous =
        server.contains("__") || server.ends_with('_') || server.is_empty() || tool.is_empty();
    if plain.len() <= LONGEST && plain.chars().all(is_accepted) && !is_ambiguous {
        return plain;
    }
    let kept = plain
        .chars()
        .map(|c| if is_accepted(c) { c } else { '_' })
        .take(LONGEST - DIGITS - 1);
    let hash = hex(&digest([server.as_bytes(), tool.as_bytes()]));
    kept.chain(['_']).chain(hash.chars().take(DIGITS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_by_every_provider_and_differ() {
        assert_eq!(offered_name("git", "log"), "git__log");
        assert_eq!(offered_name("a", "_b"), "a___b");
        let pairs = [
            ("a", "b__c"),
            ("a__b", "c"),
            ("a_", "b"),
            ("a", "_b"),
            ("My Server", "über.tool/x"),
            ("My_Server", "über.tool/x"),
            ("git", &*"x".repeat(200)),
            ("git", &*"x".repeat(201)),
            ("", "x"),
            ("x", ""),
        ];
        let names: std::collections::HashSet<_> = pairs
            .iter()
            .map(|(server, tool)| offered_name(server, tool))
            .collect();
        assert_eq!(names.len(), pairs.len(), "{names:?}");
        for name in &names {
            assert!(
                name.len() <= 64 && json::is_name(name) && !name.contains('.'),
                "{name}"
            );
        }
        assert_eq!(offered_name("a.b", "c"), offered_name("a.b", "c"));
    }
}
