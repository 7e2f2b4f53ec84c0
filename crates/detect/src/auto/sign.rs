//! The signs of a call, by their strength.

/// What the text so far shows of a call to come; a later one is a stronger sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sign {
    /// Nothing.
    Plain,
    /// The model speaks of itself, or agrees to do something.
    Person,
    /// A tool, the name of one, or a step of a plan.
    Tool,
    /// The model announces that it will do something.
    Intent,
}

impl Sign {
    /// All signs, by their place in tables.
    pub const ALL: [Sign; 4] = [Sign::Plain, Sign::Person, Sign::Tool, Sign::Intent];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        ["plain", "person", "tool", "intent"][self as usize]
    }
}
