//! Which calls need approval, and what a person or a rule answered.

use serde::Deserialize;

/// Makes an enum whose values are words of options and files, each with its word.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Its word.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// The value of that word.
            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Which classes need approval, from the least strict to the strictest.
    #[derive(Default, PartialOrd, Ord, Deserialize)]
    #[serde(rename_all = "lowercase")]
    ApprovalLevel {
        /// None of them.
        None = "none",
        /// `danger`.
        #[default]
        Danger = "danger",
        /// `write` and `danger`.
        Write = "write",
        /// All of them.
        All = "all",
    }
}

impl ApprovalLevel {
    /// Whether calls of that class need approval.
    pub fn covers(self, class: Class) -> bool {
        match class {
            Class::Danger => self >= ApprovalLevel::Danger,
            Class::Write => self >= ApprovalLevel::Write,
            Class::Read => self >= ApprovalLevel::All,
        }
    }
}

words! {
    /// Where an answer came from, as `source` of an `approval` event has it.
    AnswerSource {
        /// A person, asked on the terminal.
        Terminal = "terminal",
        /// `--approve-call` or `--deny-call`.
        Option = "option",
        /// A rule of the policy.
        Policy = "policy",
        /// A person, who asked `tc-serve` over HTTP.
        Http = "http",
    }
}

/// What a person answers to a question on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonAnswer {
    /// The call runs.
    Yes,
    /// The call runs, and so do the further calls of the same tool in this run that need approval for
    /// their class alone.
    Always,
    /// The call does not run.
    No,
    /// The person gave no answer: the terminal is gone, or the question was interrupted. The call
    /// stays pending.
    Nothing,
}

/// Why a call needs approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its class, under `--ask`.
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
            Reason::Rule(rule) => write!(f, "a rule of the policy requires approval: {rule}"),
            Reason::Repaired => f.write_str("the tool is of class danger, and the arguments were repaired"),
            Reason::Started => f.write_str(
                "the call was started before and its result was never recorded, so it may have done its work",
            ),
        }
    }
}

words! {
    /// What a call may do to the world, which decides when it may start. Only the tools file grants
    /// a class: a hint of a server of tools, such as MCP's `readOnlyHint`, comes from a stranger.
    #[derive(Default, PartialOrd, Ord)]
    Class {
        /// Reads and changes nothing: may start before the turn is complete, and may run again.
        Read = "read",
        /// Changes something: waits until the assistant's message is complete. The default.
        #[default]
        Write = "write",
        /// Waits for the message as a write call does, and needs a person's approval.
        Danger = "danger",
    }
}
