//! The run times of each tool's calls.

use super::times::{TimeForm, Times};
use super::words::{OTHER, labels, place};
use event::payload::Status;
use std::collections::BTreeMap;

/// Maximum number of tool names used as labels.
const NAMES: usize = 100;

/// Maximum length of a tool name in a label, in bytes. OpenAI and Anthropic allow 64 and 128.
const NAME: usize = 128;

/// The run times of each tool's calls, by status. A tool that has not run gets the label `other`,
/// since a model may have made up its name; so do all names after the first [`NAMES`].
#[derive(Debug, Default)]
pub(super) struct ToolTimes {
    /// The names used as labels, each with its times per [`Status`] and for any other status.
    tools: BTreeMap<Box<str>, [Option<Box<Times>>; Status::WORDS.len() + 1]>,
}

impl ToolTimes {
    /// Allows this name as the value of the label `tool`: a tool of this name runs, or is in the
    /// tools file.
    pub(super) fn know(&mut self, name: &str) {
        if self.tools.len() < NAMES && is_plain(name) && !self.tools.contains_key(name) {
            self.tools.insert(name.into(), Default::default());
        }
    }

    pub(super) fn add(&mut self, name: &str, status: &str, micros: u64, form: &mut TimeForm) {
        if !self.tools.contains_key(name) {
            self.tools.entry(OTHER.into()).or_default();
        }
        let known = if self.tools.contains_key(name) {
            name
        } else {
            OTHER
        };
        let times = self.tools.get_mut(known);
        if let Some(times) = times.and_then(|tool| tool.get_mut(place(Status::WORDS, status))) {
            let times = times.get_or_insert_with(|| Box::new(Times::new(form)));
            times.add(micros, form);
        }
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Times> {
        let all = self.tools.values_mut().flatten().flatten();
        all.map(|times| &mut **times)
    }

    /// Returns the labels of each series with its times.
    pub(super) fn series(&self) -> impl Iterator<Item = (String, &Times)> {
        self.tools.iter().flat_map(|(name, statuses)| {
            let statuses = labels(Status::WORDS).zip(statuses);
            statuses.filter_map(move |(status, times)| {
                let labels = format!("tool=\"{name}\",status=\"{status}\"");
                times.as_deref().map(|times| (labels, times))
            })
        })
    }
}

/// Whether a name can be a label value: short, without characters that need escaping.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.:/".contains(c);
    !name.is_empty() && name.len() <= NAME && name.chars().all(is_plain)
}
