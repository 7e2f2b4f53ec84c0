//! What of the events no client gets.

/// Counts of what is in no part of an answer that did not fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Events of choices that the client did not ask for.
    pub other_choices: u64,
    /// Calls that were cut before the client got anything of them.
    pub cut_calls: u64,
    /// Calls and pieces of text behind a call that was cut, which stays open.
    pub behind_cut: u64,
    /// Events with content behind the end of the answer.
    pub late: u64,
    /// Members of the provider's answer, and items that it ran itself, that the client's API has no
    /// place for.
    pub members: Vec<String>,
    /// The upstream's name of the model, where the answer has the one that the client asked for.
    pub model: Option<String>,
}

/// How many names of members are kept, and how many bytes of one.
const NAMES: (usize, usize) = (32, 48);

impl Dropped {
    /// Takes the name of a member.
    pub(crate) fn member(&mut self, name: &str) {
        let name = event::cut(name, NAMES.1);
        if self.members.len() < NAMES.0 && !self.members.iter().any(|other| other == name) {
            self.members.push(name.to_owned());
        }
    }

    /// Each count that is not 0, with a sentence for people.
    pub fn notes(&self) -> impl Iterator<Item = (String, u64)> {
        let members = (!self.members.is_empty()).then(|| {
            format!(
                "dropped of the answer, since the client's API has no place for it: {}",
                self.members.join(", ")
            )
        });
        let model = self
            .model
            .as_ref()
            .map(|model| format!("the upstream names the model {model}"));
        let counts = [
            (
                "dropped an event of a choice that the client did not ask for",
                self.other_choices,
            ),
            ("dropped a call that was cut", self.cut_calls),
            (
                "dropped a call or text behind a call that was cut",
                self.behind_cut,
            ),
            (
                "dropped an event with content behind the end of the answer",
                self.late,
            ),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0);
        counts
            .map(|(what, count)| (what.to_owned(), count))
            .chain(members.into_iter().chain(model).map(|note| (note, 1)))
    }
}
