//! Which calls need approval, and the answers that people and policy rules give.

use serde::Deserialize;

/// Defines an enum of keywords used in options and files, with conversions from and to each word.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Returns the keyword for this value.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// Returns the value for a keyword, or `None` if the keyword is unknown.
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
    /// The tool classes that need approval, from the least strict level to the strictest.
    #[derive(Default, PartialOrd, Ord, Deserialize)]
    #[serde(rename_all = "lowercase")]
    ApprovalLevel {
        /// No class needs approval.
        None = "none",
        /// Only `danger` calls need approval.
        #[default]
        Danger = "danger",
        /// `write` and `danger` calls need approval.
        Write = "write",
        /// Every call needs approval.
        All = "all",
    }
}

impl ApprovalLevel {
    /// Whether calls of `class` need approval at this level.
    pub fn covers(self, class: Class) -> bool {
        match class {
            Class::Danger => self >= ApprovalLevel::Danger,
            Class::Write => self >= ApprovalLevel::Write,
            Class::Read => self >= ApprovalLevel::All,
        }
    }
}

words! {
    /// The source of an approval, as the `source` member of an `approval` event records it.
    AnswerSource {
        /// A person answered a prompt on the terminal.
        Terminal = "terminal",
        /// `--approve-call` or `--deny-call` was given.
        Option = "option",
        /// A rule of the policy answered.
        Policy = "policy",
        /// A person answered through the HTTP API of `tc-serve`.
        Http = "http",
    }
}

/// A person's answer to an approval prompt on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonAnswer {
    /// Run the call.
    Yes,
    /// Run this call, and in this run also every later call of the same tool that needs approval
    /// only because of its class.
    Always,
    /// Do not run the call.
    No,
    /// No answer: the terminal is gone or the prompt was interrupted. The call stays pending.
    Nothing,
}

/// Why a call needs approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The tool's class needs approval under `--ask`.
    Class(Class),
    /// A policy rule requires approval; holds the rule's reason.
    Rule(String),
    /// The arguments were repaired and the tool's class is `danger`.
    Repaired,
    /// An earlier run started the call, but its result was never recorded.
    Started,
}

impl Reason {
    /// Whether the prompt may offer to approve all later calls of the same tool.
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
    /// How a call may affect the outside world, which decides when the call may start. Only the
    /// tools file can set a class: hints from a tool server, such as MCP's `readOnlyHint`, are
    /// untrusted.
    #[derive(Default, PartialOrd, Ord)]
    Class {
        /// Only reads: the call may start before the turn is complete and may run again.
        Read = "read",
        /// Changes something: the call waits until the assistant's message is complete. The
        /// default.
        #[default]
        Write = "write",
        /// Waits for the message like a `write` call, and also needs a person's approval.
        Danger = "danger",
    }
}
