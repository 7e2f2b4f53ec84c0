//! A report card: how often each deviation was seen, by API, provider and model.

use super::finder::DeviationPlace;
use super::table::{DEVIATIONS, deviation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of a saved card: a group of streams, and one deviation that they show. People may edit
/// it: of the members that are compared (`--expect`) none counts anything.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct CardLine {
    /// The group.
    #[serde(flatten)]
    pub key: GroupKey,
    /// How many streams the group has.
    pub streams: u64,
    /// The code of the deviation; `None` for a group that has none.
    pub deviation: Option<String>,
    /// How many of the streams show it.
    #[serde(skip_serializing_if = "is_zero")]
    pub seen: u64,
    /// Its row in docs/deviations.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// What it is, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
    /// The first stream that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Example>,
}

/// Where a deviation was seen first.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Example {
    /// The recording.
    pub file: String,
    /// Which stream of it, from 1 on; absent where it holds one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// The number of the event in its stream; absent where the deviation shows in the bytes alone.
    #[serde(skip_serializing_if = "is_zero")]
    pub event: u64,
    /// The bytes of the recording up to the end of that event or line.
    pub offset: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What groups streams. Compared in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(default)]
pub struct GroupKey {
    /// The API of the streams.
    pub api: String,
    /// Who served the model; empty where nobody knows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The model; empty where nobody knows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
}

#[derive(Clone, Debug, Default)]
struct DeviationGroup {
    streams: u64,
    /// By the place in the table of deviations, which is the order of reports.
    seen: BTreeMap<usize, (u64, Example)>,
}

/// The counts of all groups.
#[derive(Clone, Debug, Default)]
pub struct Card {
    groups: BTreeMap<GroupKey, DeviationGroup>,
    /// All streams.
    pub streams: u64,
}

impl Card {
    /// Adds one stream: its group, where it is, and what it shows.
    pub fn add(
        &mut self,
        key: GroupKey,
        file: &str,
        part: Option<u64>,
        found: &BTreeMap<&'static str, DeviationPlace>,
    ) {
        self.streams += 1;
        let group = self.groups.entry(key).or_default();
        group.streams += 1;
        for (code, place) in found {
            let Some(at) = DEVIATIONS.iter().position(|d| d.code == *code) else {
                continue;
            };
            let example = || Example {
                file: file.to_owned(),
                part,
                event: place.event,
                offset: place.offset,
            };
            group.seen.entry(at).or_insert_with(|| (0, example())).0 += 1;
        }
    }

    /// The lines of the card: groups in the order of their names, deviations in that of the table.
    pub fn lines(&self) -> Vec<CardLine> {
        let mut lines = Vec::new();
        for (key, group) in &self.groups {
            let line = CardLine {
                key: key.clone(),
                streams: group.streams,
                ..CardLine::default()
            };
            if group.seen.is_empty() {
                lines.push(line);
                continue;
            }
            lines.extend(group.seen.iter().map(|(at, (seen, example))| {
                let deviation = DEVIATIONS.get(*at);
                CardLine {
                    deviation: deviation.map(|d| d.code.to_owned()),
                    seen: *seen,
                    row: deviation
                        .and_then(|d| d.row)
                        .map(|row| format!("row-{row:02}")),
                    meaning: deviation.map(|d| d.meaning.to_owned()),
                    example: Some(example.clone()),
                    ..line.clone()
                }
            }));
        }
        lines
    }
}

impl CardLine {
    /// What the deviation is, in words; its code where this version has no such deviation.
    pub fn words(&self) -> String {
        let code = self.deviation.as_deref().unwrap_or_default();
        deviation(code).map_or_else(|| code.to_owned(), |d| d.meaning.to_owned())
    }
}
