//! What a call may do to the world.

/// What a call may do to the world, which decides when it may start. Only the tools file grants a
/// class: a hint of a server of tools, such as MCP's `readOnlyHint`, comes from a stranger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Reads and changes nothing: may start before the turn is complete, and may run again.
    Read,
    /// Changes something: waits until the assistant's message is complete. The default.
    #[default]
    Write,
    /// Waits for the message as a write call does, and needs a person's approval.
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
        [Class::Read, Class::Write, Class::Danger]
            .into_iter()
            .find(|class| class.name() == word)
    }
}
