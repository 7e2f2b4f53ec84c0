//! How often calls have been started.

use crate::call::CallKey;
use event::Event;
use event::payload::ToolUse;
use std::collections::{HashMap, HashSet};

/// How often calls have been started, by stream and id.
#[derive(Debug, Default)]
pub(crate) struct Starts(HashMap<CallKey, Count>);

#[derive(Debug, Default)]
struct Count {
    /// The times of those that have one. A log and a journal hold the same start with the same
    /// time.
    times: HashSet<u64>,
    /// How many have none.
    untimed: u32,
}

impl Starts {
    /// Takes a `tool_use` event. Returns whether it is a start that was not known.
    pub fn event(&mut self, event: &Event<'_>) -> bool {
        let ToolUse {
            tool_id, timestamp, ..
        } = ToolUse::read(event);
        !tool_id.is_empty()
            && self.count(
                (
                    event.stream().map(|s| s.text().into()),
                    tool_id.str().into(),
                ),
                timestamp,
            )
    }

    /// Counts a start at this time, in milliseconds since 1970, if it is known. Returns whether it
    /// is a new one.
    pub fn count(&mut self, call: CallKey, time: Option<u64>) -> bool {
        let count = self.0.entry(call).or_default();
        match time {
            Some(time) => count.times.insert(time),
            None => {
                count.untimed += 1;
                true
            }
        }
    }

    /// How often this call has been started.
    pub fn of(&self, call: &CallKey) -> u32 {
        let count = |count: &Count| {
            u32::try_from(count.times.len())
                .unwrap_or(u32::MAX)
                .saturating_add(count.untimed)
        };
        self.0.get(call).map_or(0, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    #[test]
    fn a_start_in_two_logs_is_one() {
        let mut starts = Starts::default();
        let mut take = |line: &str| starts.event(&Scanner::default().read(line).unwrap());
        let line = r#"{"type":"tool_use","tool_id":"a","tool_name":"w","timestamp":7}"#;
        assert!(take(line) && !take(line));
        take(&line.replace('7', "8"));
        take(&line.replace("\"a\"", "\"b\""));
        take(&line.replace("\"type\"", "\"stream\":\"s\",\"type\""));
        take(r#"{"type":"tool_use","tool_id":"b","tool_name":"w"}"#);
        take(r#"{"type":"tool_use","tool_name":"w"}"#);
        let key = |id: &str| (None, id.into());
        assert_eq!(
            (
                starts.of(&key("a")),
                starts.of(&key("b")),
                starts.of(&key("c"))
            ),
            (2, 2, 0)
        );
    }
}
