//! What a dialect is.

/// How one family of models writes its tool calls, and how it is told to.
#[derive(Debug)]
pub struct Dialect {
    /// Its name, as `--dialect` and `stream_start` have it.
    pub name: &'static str,
    /// Other usual names.
    pub aliases: &'static [&'static str],
    /// The models that write it.
    pub models: &'static str,
}

/// The dialect of prompts that name none.
pub const DEFAULT: &str = "tool-name-tag";

static ALL: &[Dialect] = &[Dialect { name: DEFAULT, aliases: &[], models: "any model that follows instructions" }];

impl Dialect {
    /// The dialect of this name or alias.
    pub fn named(name: &str) -> Option<&'static Dialect> {
        ALL.iter().find(|d| d.name == name || d.aliases.contains(&name))
    }

    /// The whole table.
    pub fn all() -> &'static [Dialect] {
        ALL
    }
}
