//! What a call may do to the world.

/// What a call may do to the world, and so when it may start. Only the tools file says so; nothing a provider or a server of
/// tools writes (such as MCP's `readOnlyHint`) grants a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Looks, and changes nothing: may start before the turn is complete, and may run again.
    Read,
    /// Changes something: waits until the assistant's message is complete. The default.
    #[default]
    Write,
    /// Needs a person's yes besides.
    Danger,
}

impl Class {
    /// The word in the tools file.
    pub fn name(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::Write => "write",
            Class::Danger => "danger",
        }
    }

    /// The class of that word.
    pub fn of(word: &str) -> Option<Class> {
        [Class::Read, Class::Write, Class::Danger].into_iter().find(|class| class.name() == word)
    }
}
