//! The model and the tools of a stream, read from its first event.

use event::payload::StreamStart;
use event::{Event, Kind, Raw, Text};

/// What is known about the tools of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OfferedTools {
    /// The tools are unknown, which differs from an empty list.
    #[default]
    Unknown,
    /// The request had no tools that the client runs.
    None,
    /// The request had at least one tool.
    Some,
}

impl OfferedTools {
    /// Returns the name used in tables; `None` if the tools are unknown, in which case all streams
    /// count.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            OfferedTools::Unknown => None,
            OfferedTools::None => Some("none"),
            OfferedTools::Some => Some("some"),
        }
    }
}

/// The API, model family and tools of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamOrigin {
    /// The provider's API; empty if unknown.
    pub api: Box<str>,
    /// The family of the model, such as `claude`; empty if unknown.
    pub family: Box<str>,
    pub offered: OfferedTools,
    /// The names of the known tools in lower case, sorted.
    pub tools: Box<[Box<str>]>,
}

impl StreamOrigin {
    /// Reads the first event of a stream; all fields stay empty if it is not `stream_start`.
    pub(crate) fn read(first: &Event<'_>) -> Self {
        if first.kind() != Kind::StreamStart {
            return StreamOrigin::default();
        }
        let start = StreamStart::read(first);
        let tools = start.tools.map(|tools| tools.with(names));
        let is_none = start.tools_mode.map(Text::str).as_deref() == Some("none");
        let offered = match (&tools, start.tools_offered) {
            (Some(tools), _) if !tools.is_empty() => OfferedTools::Some,
            (Some(_), _) | (_, Some(0)) => OfferedTools::None,
            (None, Some(_)) => OfferedTools::Some,
            (None, None) if is_none => OfferedTools::None,
            (None, None) => OfferedTools::Unknown,
        };
        let word = |text: Option<Text<'_>>| table_word(&text.map(Text::str).unwrap_or_default());
        StreamOrigin {
            api: word(start.api),
            family: family(&start.model.map(Text::str).unwrap_or_default()),
            offered,
            tools: tools.unwrap_or_default().into(),
        }
    }
}

/// Returns the names in a tool list in OpenAI's format, in lower case and sorted.
fn names(tools: Raw<'_>) -> Vec<Box<str>> {
    let name = |tool: Raw<'_>| {
        let name = tool
            .at(&["function", "name"])
            .or_else(|| tool.get("name"))
            .and_then(Raw::str);
        name.unwrap_or_default().to_lowercase().into()
    };
    let mut names: Vec<Box<str>> = tools.items().map(name).collect();
    names.sort_unstable();
    names
}

/// Returns the family of a model: the leading letters of its name, without the name of the server.
/// `us.anthropic.claude-3` and `anthropic/claude-3` are both `claude`.
fn family(model: &str) -> Box<str> {
    let name = model.rsplit('/').next().unwrap_or_default();
    let mut name = name
        .strip_prefix("ft:")
        .unwrap_or(name)
        .trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    while let Some((server, rest)) = name.split_once(['.', ':']) {
        if !server.bytes().all(|b| b.is_ascii_alphabetic())
            || !rest.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            break;
        }
        name = rest;
    }
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    table_word(&name[..letters])
}

/// Returns a word that a table can hold: at most 24 ASCII letters, digits and hyphens, in lower
/// case.
fn table_word(text: &str) -> Box<str> {
    let word = text
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(24);
    word.map(|c| c.to_ascii_lowercase())
        .collect::<String>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::family;

    #[test]
    fn the_family_is_what_all_servers_call_it() {
        for (model, want) in [
            ("claude-sonnet-4-5-20250929", "claude"),
            ("us.anthropic.claude-3-haiku", "claude"),
            ("anthropic/claude-sonnet-4", "claude"),
            ("gpt-4.1-2025-04-14", "gpt"),
            ("ft:gpt-4o:org", "gpt"),
            ("models/gemini-2.5-pro", "gemini"),
            ("qwen2.5-coder", "qwen"),
            ("z-ai/glm-4.5v", "glm"),
            ("o3-mini", "o"),
            ("@cf/meta/llama-3", "llama"),
            ("qwen3:free", "qwen"),
            ("", ""),
            ("\u{1b}[31m<script>", "m"),
        ] {
            assert_eq!(&*family(model), want, "{model}");
        }
    }
}
