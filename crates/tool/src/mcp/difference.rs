//! What has changed in the tools of a server since they were locked, in words for a person.

use super::definition::Definition;
use crate::visible::is_unclear;
use serde_json::Value;
use std::fmt::Write;

/// A tool that is not as it was locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The server has it, and the lock file does not.
    New(Definition),
    /// The lock file has it, and the server does not.
    Removed(Definition),
    /// Its definition is another one.
    Changed {
        /// As it was locked.
        old: Definition,
        /// As the server describes it now.
        new: Definition,
    },
}

/// What differs between the tools that were locked and those that a server has now.
pub fn differences(locked: &[Definition], now: &[Definition]) -> Vec<Change> {
    let find = |list: &[Definition], tool: &str| list.iter().find(|d| d.tool == tool).cloned();
    let mut changes = Vec::new();
    for new in now {
        match find(locked, &new.tool) {
            None => changes.push(Change::New(new.clone())),
            Some(old) if old.hash() != new.hash() => changes.push(Change::Changed {
                old,
                new: new.clone(),
            }),
            Some(_) => {}
        }
    }
    changes.extend(
        locked
            .iter()
            .filter(|old| find(now, &old.tool).is_none())
            .cloned()
            .map(Change::Removed),
    );
    changes
}

impl Change {
    /// The change as lines for a person: what was, after `-`, and what is, after `+`. No line has a
    /// character that a screen does not show.
    pub fn lines(&self) -> Vec<String> {
        let (sign, of) = match self {
            Change::New(of) => ("new", of),
            Change::Removed(of) => ("removed", of),
            Change::Changed { new, .. } => ("changed", new),
        };
        let mut lines = vec![format!(
            "{sign}: the tool {} of the server {}",
            shown(&of.tool),
            shown(&of.server)
        )];
        let empty = Definition {
            description: None,
            schema: String::new(),
            annotations: None,
            ..of.clone()
        };
        let (old, new) = match self {
            Change::New(new) => (&empty, new),
            Change::Removed(_) => return lines,
            Change::Changed { old, new } => (old, new),
        };
        let description = |of: &Definition| of.description.clone().unwrap_or_default();
        let pretty = |json: Option<&str>| {
            // Of a new tool each part is one line; of a changed one, the lines that differ are of
            // interest.
            if matches!(self, Change::New(_)) {
                return json.map(str::to_owned).unwrap_or_default();
            }
            let value = json.and_then(|json| serde_json::from_str::<Value>(json).ok());
            value
                .and_then(|value| serde_json::to_string_pretty(&value).ok())
                .unwrap_or_default()
        };
        for (what, old, new) in [
            ("description", description(old), description(new)),
            (
                "inputSchema",
                pretty(Some(&old.schema)),
                pretty(Some(&new.schema)),
            ),
            (
                "annotations",
                pretty(old.annotations.as_deref()),
                pretty(new.annotations.as_deref()),
            ),
        ] {
            if old != new {
                lines.push(format!("  {what}:"));
                push_difference(&mut lines, &old, &new);
            }
        }
        if new.has_hidden() {
            lines.push(
                "  warning: it has characters that a screen does not show, written as \\u{…} here"
                    .to_owned(),
            );
        }
        lines
    }
}

/// The lines of `old` and `new` between those that both begin and end with.
fn push_difference(out: &mut Vec<String>, old: &str, new: &str) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let begin = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[begin..]
        .iter()
        .rev()
        .zip(new[begin..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    out.extend(
        old[begin..old.len() - end]
            .iter()
            .map(|line| format!("    - {}", shown(line))),
    );
    out.extend(
        new[begin..new.len() - end]
            .iter()
            .map(|line| format!("    + {}", shown(line))),
    );
}

/// A line for a screen.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\t' && is_unclear(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, description: &str, kind: &str) -> Definition {
        let schema =
            json!({"type":"object","properties":{"a":{"type":kind},"b":{"type":"string"}}});
        Definition::read(
            "s",
            &json!({"name":name,"description":description,"inputSchema":schema}),
        )
        .unwrap()
    }

    #[test]
    fn new_changed_and_removed_tools_are_shown_line_by_line() {
        let old = [
            tool("a", "one\ntwo\nthree", "string"),
            tool("b", "b", "string"),
            tool("same", "s", "string"),
        ];
        let new = [
            tool("a", "one\nTWO \u{e0041}\u{1b}[2J\nthree", "number"),
            tool("same", "s", "string"),
            tool("c", "new", "string"),
        ];
        let changes = differences(&old, &new);
        let lines: Vec<String> = changes.iter().flat_map(Change::lines).collect();
        let text = lines.join("\n");
        for want in [
            "changed: the tool a of the server s\n  description:\n    - two\n    + TWO \\u{e0041}\\u{1b}[2J\n",
            "    -       \"type\": \"string\"\n    +       \"type\": \"number\"\n",
            "  warning: it has characters that a screen does not show",
            "new: the tool c of the server s\n  description:\n    + new\n",
            "removed: the tool b of the server s",
        ] {
            assert!(text.contains(want), "{want}: {text}");
        }
        assert!(
            !text.contains("same") && !text.contains('\u{1b}') && !text.contains('\u{e0041}'),
            "{text}"
        );
        assert!(differences(&old, &old).is_empty());
    }
}
