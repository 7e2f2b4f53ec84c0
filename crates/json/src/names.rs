//! Finds the tool that a model means by a name that nearly matches a tool's name.
//!
//! Models and servers add framing to names: a token of the chat template after the name
//! (`find<|channel|>commentary`, <https://github.com/vllm-project/vllm/issues/32587>), the
//! namespace of Harmony, Kimi K2 or Gemini before the name (`functions.find`, `default_api.find`),
//! and Kimi's counter in several spellings (`functions.find:0`, `functions_find_1`,
//! `functionsfind5`, <https://github.com/sgl-project/sglang/issues/21377>).

use crate::ToolList;

/// Namespaces that models write before the names of tools.
pub const NAMESPACES: [&str; 3] = ["functions.", "default_api.", "default_api:"];

/// Returns a name without its namespace, or `None` if it has no namespace.
pub fn without_namespace(name: &str) -> Option<&str> {
    NAMESPACES.iter().find_map(|space| name.strip_prefix(space))
}

impl ToolList {
    /// Returns the name of the tool that a model means by `written`: the tool with exactly that
    /// name, or the tool whose name remains after the framing is removed. Returns `None` if no tool
    /// matches, or if several do.
    pub fn meant(&self, written: &str) -> Option<&str> {
        self.listed(written).or_else(|| self.framed(written))
    }

    #[cold]
    fn framed(&self, written: &str) -> Option<&str> {
        let name = without_token(written).trim();
        let plain = name.rsplit_once(':').filter(|(_, n)| is_number(n));
        let plain = plain.map_or(name, |(name, _)| name);
        // These framings never occur in a tool's name by accident, so the first listed name is the
        // tool.
        let exact = [Some(name), without_namespace(name), Some(plain)];
        let bare = without_namespace(plain);
        if let Some(found) = exact
            .into_iter()
            .chain([bare])
            .flatten()
            .find_map(|name| self.listed(name))
        {
            return Some(found);
        }
        // Other spellings could be part of a tool's name, so exactly one tool must match. A counter
        // without a colon is accepted only after a namespace, because `load_2` may be a tool that
        // is missing.
        let rest = plain.strip_prefix("functions")?;
        let rest = rest.strip_prefix(['_', '.', ':', '-', '/']).unwrap_or(rest);
        let digits = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        let uncounted = (digits.len() < rest.len()).then_some(digits);
        let separated = uncounted.and_then(|rest| rest.strip_suffix(['_', '.', '-']));
        let mut found = [Some(rest), uncounted, separated]
            .into_iter()
            .flatten()
            .filter_map(|name| self.listed(name));
        found.next().filter(|_| found.next().is_none())
    }
}

/// Returns the text before the first special token of a chat template: `<|channel|>`,
/// `<｜tool▁sep｜>`.
pub fn without_token(text: &str) -> &str {
    let at = ["<|", "<\u{ff5c}"]
        .iter()
        .filter_map(|mark| text.find(mark));
    &text[..at.min().unwrap_or(text.len())]
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_framing_is_the_one_tool_that_is_left() {
        let tools = |names: &[&str]| {
            let list: Vec<_> = names
                .iter()
                .map(|name| format!(r#"{{"name":"{name}"}}"#))
                .collect();
            ToolList::read(&format!("[{}]", list.join(","))).unwrap()
        };
        let one = tools(&["find_hut", "ping"]);
        for written in [
            "find_hut",
            "find_hut<|channel|>commentary",
            "find_hut <|constrain|>json",
            "find_hut<\u{ff5c}tool\u{2581}sep\u{ff5c}>",
            "functions.find_hut",
            "functions.find_hut<|channel|>analysis",
            "default_api.find_hut",
            "default_api:find_hut",
            "find_hut:0",
            "functions.find_hut:12",
            "functions_find_hut_1",
            "functionsfind_hut5",
            "functions.find_hut5",
            "functions.find_hut_1",
            "functions.find_hut.1",
            "functions_find_hut",
            "functions:find_hut:0",
        ] {
            assert_eq!(one.meant(written), Some("find_hut"), "{written}");
        }
        for written in [
            "",
            "<|channel|>commentary",
            "find",
            "find_hut2",
            "find_hut_2",
            "find_huts",
            "my_find_hut",
            "other.find_hut",
            "find_hut.ping",
            "Find_Hut",
            "find_hut:x",
            "functions",
            "functions.",
            "functions_1",
            "functions.find_huts",
        ] {
            assert_eq!(one.meant(written), None, "{written}");
        }
        let several = tools(&["x", "x_1", "functions.y", "y"]);
        for (written, meant) in [
            ("functions.x:0", Some("x")),
            ("functions.x_1", Some("x_1")),
            ("functions.x_1:0", Some("x_1")),
            ("functions_x_1", None),
            ("functions_x_2", Some("x")),
            ("functions.y", Some("functions.y")),
            ("functions.y:3", Some("functions.y")),
        ] {
            assert_eq!(several.meant(written), meant, "{written}");
        }
    }
}
