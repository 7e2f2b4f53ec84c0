//! Which calls need a person's yes, and what a person or a rule answered.

use serde::Deserialize;

/// Which classes need a person's yes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalLevel {
    /// None of them.
    None,
    /// `danger`.
    #[default]
    Danger,
    /// `write` and `danger`.
    Write,
    /// All of them.
    All,
}

impl ApprovalLevel {
    /// All levels, from the least strict to the strictest.
    pub const ALL: [ApprovalLevel; 4] = [
        ApprovalLevel::None,
        ApprovalLevel::Danger,
        ApprovalLevel::Write,
        ApprovalLevel::All,
    ];

    /// The word for it in options and policies.
    pub fn name(self) -> &'static str {
        match self {
            ApprovalLevel::None => "none",
            ApprovalLevel::Danger => "danger",
            ApprovalLevel::Write => "write",
            ApprovalLevel::All => "all",
        }
    }

    /// The level of that word.
    pub fn of(word: &str) -> Option<ApprovalLevel> {
        Self::ALL.into_iter().find(|level| level.name() == word)
    }

    /// Whether calls of that class need a person's yes.
    pub fn covers(self, class: Class) -> bool {
        match class {
            Class::Danger => self >= ApprovalLevel::Danger,
            Class::Write => self >= ApprovalLevel::Write,
            Class::Read => self >= ApprovalLevel::All,
        }
    }
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    /// A person, asked on the terminal.
    Terminal,
    /// `--approve-call` or `--deny-call`.
    Option,
    /// A rule of the policy.
    Policy,
}

impl AnswerSource {
    /// The value of `source` in an `approval` event.
    pub fn name(self) -> &'static str {
        match self {
            AnswerSource::Terminal => "terminal",
            AnswerSource::Option => "option",
            AnswerSource::Policy => "policy",
        }
    }
}

/// What a person answers to a question on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonAnswer {
    /// The call runs.
    Yes,
    /// The call runs, and so do the further calls of the same tool in this run that need a yes for
    /// their class alone.
    Always,
    /// The call does not run.
    No,
    /// The person gave no answer: the terminal is gone, or the question was interrupted. The call
    /// stays pending.
    Nothing,
}

/// Why a call needs a person's yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its class, under `--approve`.
    Class(Class),
    /// A rule of the policy, with the reason that it gives.
    Rule(String),
    /// Its arguments were repaired, and its class is `danger`.
    Repaired,
    /// An earlier run started it, and its result is not known.
    Started,
}

impl Reason {
    /// Whether a person may answer for all further calls of the tool at once.
    pub fn allows_always(&self) -> bool {
        matches!(self, Reason::Class(Class::Read | Class::Write))
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Class(class) => write!(f, "the tool is of class {}", class.name()),
            Reason::Rule(rule) => write!(f, "a rule of the policy asks for a person's yes: {rule}"),
            Reason::Repaired => f.write_str("the tool is of class danger, and the arguments were repaired"),
            Reason::Started => f.write_str(
                "the call was started before and its result was never recorded, so it may have done its work",
            ),
        }
    }
}

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
