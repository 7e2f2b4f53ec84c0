//! What keeps a command and its processes together, and what it sees of others.

use serde_json::{Value, json};

/// What keeps the processes of a command together. Each value holds all that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A PID namespace: the command sees and signals its own processes alone, and all of them end
    /// with their init.
    Namespace,
    /// Landlock's signal scope (Linux 6.12): the command sees other processes, and signals its own
    /// alone.
    SignalScope,
    /// A subreaper inherits what the command leaves behind. The command may signal every process of
    /// its user.
    Subreaper,
}

/// What the system enforces for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// What keeps its processes together.
    pub containment: Containment,
    /// Whether it is in a user namespace: it has this user's rights, and no program gives it
    /// others.
    pub user_namespace: bool,
    /// Whether it has a `/proc` that shows its own processes alone.
    pub own_proc: bool,
    /// Whether it has a `/dev/pts` without the terminals of this user.
    pub own_terminals: bool,
    /// Whether its home is a file system of limited size.
    pub home_limit: bool,
    /// Whether a control group limits the memory that its processes use together. False where its
    /// job asks for no such limit.
    pub memory_limit: bool,
    /// Whether a control group limits its processes. False where its job asks for no such limit.
    pub process_limit: bool,
}

/// The words for [`Containment`] in messages between processes.
const WORDS: [(Containment, &str); 3] = [
    (Containment::Namespace, "namespace"),
    (Containment::SignalScope, "signal_scope"),
    (Containment::Subreaper, "subreaper"),
];

impl InForce {
    /// What is in force where the system allows nothing.
    pub const LEAST: InForce = InForce {
        containment: Containment::Subreaper,
        user_namespace: false,
        own_proc: false,
        own_terminals: false,
        home_limit: false,
        memory_limit: false,
        process_limit: false,
    };

    /// As JSON.
    pub fn to_json(self) -> Value {
        let word = WORDS
            .iter()
            .find(|(value, _)| *value == self.containment)
            .map(|(_, word)| *word);
        let InForce {
            user_namespace,
            own_proc,
            own_terminals,
            home_limit,
            memory_limit,
            process_limit,
            ..
        } = self;
        json!({"containment": word, "user_namespace": user_namespace, "own_proc": own_proc,
            "own_terminals": own_terminals, "home_limit": home_limit,
            "memory_limit": memory_limit, "process_limit": process_limit})
    }

    /// Reads the JSON of [`InForce::to_json`]; what is missing is not in force.
    pub fn read(value: &Value) -> InForce {
        let is = |key: &str| value[key] == true;
        InForce {
            containment: WORDS
                .iter()
                .find(|(_, word)| value["containment"] == *word)
                .map_or(Containment::Subreaper, |(value, _)| *value),
            user_namespace: is("user_namespace"),
            own_proc: is("own_proc"),
            own_terminals: is("own_terminals"),
            home_limit: is("home_limit"),
            memory_limit: is("memory_limit"),
            process_limit: is("process_limit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_reads_back() {
        for (containment, _) in WORDS {
            let all = InForce {
                containment,
                user_namespace: true,
                memory_limit: true,
                ..InForce::LEAST
            };
            assert_eq!(InForce::read(&all.to_json()), all);
        }
        assert_eq!(InForce::read(&Value::Null), InForce::LEAST);
    }
}
