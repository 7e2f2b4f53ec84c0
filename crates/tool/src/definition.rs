//! One tool, as its file defines it.

use crate::argv::Template;
use crate::canonical::Hash;
use std::time::Duration;

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

/// Limits that the system enforces on every process of a call. `None`: the runner's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Processor time of each process.
    pub cpu: Option<Duration>,
    /// Private memory of each process, in bytes.
    pub memory: Option<u64>,
    /// Open files of each process.
    pub files: Option<u64>,
    /// Processes and threads of the user.
    pub processes: Option<u64>,
}

/// How a tool is run.
#[derive(Clone, Debug)]
pub struct Exec {
    /// The command line.
    pub command: Template,
    /// What the call may do.
    pub class: Class,
    /// How long it may take; `None`: the runner's default.
    pub timeout: Option<Duration>,
    /// How long a result stays good; `None`: results are not kept.
    pub cache: Option<Duration>,
    /// Names of environment variables that are let through.
    pub env: Vec<String>,
    /// Whether a successful result ends the turn as its answer.
    pub return_directly: bool,
    /// The folder it runs in, seen from the tools file's folder; `None`: the runner's own.
    pub cwd: Option<String>,
    /// How much it may write to each of its two outputs, in bytes; `None`: the runner's default.
    pub max_output: Option<usize>,
    /// What the system enforces.
    pub limits: Limits,
}

/// One tool.
#[derive(Debug)]
pub struct Tool {
    /// Its name, see [`crate::is_name`].
    pub name: String,
    /// The entry for a request, as JSON in OpenAI's shape: without `exec`.
    pub listed: String,
    /// Its parameters' schema, as JSON on one line.
    pub parameters: String,
    /// The schema, ready to check with.
    pub schema: json::Schema,
    /// How it is run; `None`: it is listed for the model, and calls of it fail.
    pub exec: Option<Exec>,
    /// The digest of the whole definition: whoever changes the tool, changes this.
    pub hash: Hash,
}
