//! What of a client's parameters was left out, by the reason.

use crate::Api;

/// Why a parameter was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The API has no such parameter.
    Lacks,
    /// OpenAI's own server rejects it; other servers of chat completions take it.
    NotOpenai,
    /// Only OpenAI's own server is sure to take it (Groq and others reject what they do not know).
    OnlyOpenai,
    /// The API cannot have this value of it.
    Value,
    /// The API has it in a form that its decoder here does not read in answers.
    Unread,
    /// Another parameter of the request means the same.
    Twice,
    /// The model that is asked takes none.
    Model,
}

impl Why {
    const ALL: [Why; 7] = [
        Why::Lacks,
        Why::NotOpenai,
        Why::OnlyOpenai,
        Why::Value,
        Why::Unread,
        Why::Twice,
        Why::Model,
    ];

    /// The end of the sentence "left out, since".
    fn text(self, api: Api) -> String {
        let api = api.name();
        match self {
            Why::Lacks => format!("{api} has no such parameter"),
            Why::NotOpenai => "OpenAI's own server rejects the parameter".to_owned(),
            Why::OnlyOpenai => "other servers than OpenAI's reject the parameter".to_owned(),
            Why::Value => format!("{api} cannot have this value of it"),
            Why::Unread => format!("what {api} answers to it is not read"),
            Why::Twice => "another parameter says the same".to_owned(),
            Why::Model => "the model does not take it".to_owned(),
        }
    }
}

/// The names of what was left out.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Vec<(Why, String)>);

impl LeftOut {
    pub fn add(&mut self, why: Why, name: &str) {
        self.0.push((why, name.to_owned()));
    }

    /// Takes out a name for which something else was done.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(_, other)| other != name);
    }

    /// A sentence for each reason.
    pub fn sentences(&self, api: Api) -> Vec<String> {
        let names = |why| {
            self.0
                .iter()
                .filter(move |(other, _)| *other == why)
                .map(|(_, name)| name.as_str())
        };
        let sentence = |why: Why| {
            let names: Vec<&str> = names(why).collect();
            (!names.is_empty())
                .then(|| format!("left out, since {}: {}", why.text(api), names.join(", ")))
        };
        Why::ALL.into_iter().filter_map(sentence).collect()
    }
}
