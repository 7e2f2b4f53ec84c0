//! One rule of a policy.

use super::condition::{Condition, Quantity};
use crate::argument::Arguments;
use event::Glob;
use std::time::Duration;

/// What a rule does with the calls that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They run without a person's yes.
    Allow,
    /// They need a person's yes.
    Ask,
    /// They do not run.
    Deny,
}

impl Effect {
    /// The effect of that word.
    pub fn of(word: &str) -> Option<Effect> {
        match word {
            "allow" => Some(Effect::Allow),
            "ask" => Some(Effect::Ask),
            "deny" => Some(Effect::Deny),
            _ => None,
        }
    }
}

/// How many calls may start in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many calls.
    pub calls: u64,
    /// In which time.
    pub time: Duration,
}

impl Rate {
    /// Reads `10/1m`: a number above 0, and a time.
    pub fn read(text: &str) -> Option<Rate> {
        let (calls, time) = text.split_once('/')?;
        let calls = calls.parse().ok().filter(|calls| *calls > 0)?;
        Some(Rate {
            calls,
            time: event::unit::time(time)
                .ok()
                .filter(|time| !time.is_zero())?,
        })
    }
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The tools that it is about.
    pub tool: Glob,
    /// The arguments that must fit, all of them.
    pub when: Vec<(String, Condition)>,
    /// What it does with a call that it matches; `None`: it only limits.
    pub then: Option<Effect>,
    /// Why, for the model and for people.
    pub reason: Option<String>,
    /// How fast calls that it matches may start.
    pub rate: Option<Rate>,
    /// How many calls that it matches may start in a conversation.
    pub limit: Option<u64>,
    /// The line of the policy that it begins in.
    pub line: usize,
}

impl Rule {
    /// Whether it matches a call of the tool `name`, whose paths are relative to `folder`.
    pub fn matches(&self, name: &str, arguments: &Arguments, folder: &str) -> bool {
        let quantity = if self.then == Some(Effect::Allow) {
            Quantity::All
        } else {
            Quantity::Any
        };
        let holds = |(key, condition): &(String, Condition)| {
            condition.holds(arguments.get(key), quantity, folder)
        };
        self.tool.matches(name) && self.when.iter().all(holds)
    }

    /// Its reason, or its place.
    pub fn why(&self) -> String {
        self.reason
            .clone()
            .unwrap_or_else(|| format!("the rule in line {} of the policy", self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(
            Rate::read("10/1m"),
            Some(Rate {
                calls: 10,
                time: Duration::from_secs(60)
            })
        );
        for bad in [
            "10", "0/1m", "10/0s", "10/", "/1m", "10/m", "-1/1m", "1/1m/1m",
        ] {
            assert_eq!(Rate::read(bad), None, "{bad}");
        }
    }
}
