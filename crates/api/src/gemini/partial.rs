//! Assembles arguments that arrive in pieces, each with a JSON path (Gemini 3's `partialArgs`),
//! into one growing JSON text.
//!
//! Source of the format: `PartialArg` of Vertex AI
//! (googleapis.github.io/js-genai/release_docs/interfaces/types.PartialArg.html): `jsonPath`
//! according to RFC 9535, one of `stringValue`, `numberValue`, `boolValue` and `nullValue`, and
//! `willContinue` if the same string continues. Pieces nearly always arrive in text order, so each
//! piece is written as a fragment at once. If a path returns to a closed container, no valid
//! fragment exists: the text so far is then parsed into a tree, and the whole text is returned at
//! the end.

use event::{Raw, Surrogates, quoted};
use serde_json::Value;
use std::collections::HashSet;

/// The maximum path length. JSON with deeper nesting is rejected everywhere else as well.
const MAX_STEPS: usize = event::MAX_DEPTH as usize - 1;

/// The effect of a piece on the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The next fragment of the text; empty if the piece does not add anything yet.
    Fragment(String),
    /// The earlier fragments are no longer valid; [`PartialArguments::close`] will return the whole
    /// text.
    Restart,
    /// The piece is part of the whole text that [`PartialArguments::close`] will return.
    Held,
    /// The path or the value is invalid; nothing changed.
    Unreadable,
}

/// The arguments of one call.
#[derive(Debug, Default)]
pub(crate) struct PartialArguments {
    text: String,
    /// The open containers, outermost first. Their current members form the path of the last piece.
    open: Vec<OpenContainer>,
    /// Set while the string at the path of the last piece is open. Holds the half of a surrogate
    /// pair that it may end with.
    string: Option<Surrogates>,
    /// The paths of strings with `willContinue`.
    unfinished: HashSet<Vec<PathStep>>,
    tree: Option<(Value, Vec<PathStep>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum PathStep {
    Key(String),
    Index(usize),
}

#[derive(Debug)]
struct OpenContainer {
    current: PathStep,
    /// The keys already present in this object; empty for an array, whose `current` is an index.
    keys: HashSet<String>,
}

impl PartialArguments {
    /// Adds one `PartialArg`.
    pub(crate) fn push(&mut self, arg: Raw<'_>) -> Placement {
        let steps = arg.get_str("jsonPath").and_then(|path| steps(&path));
        let (Some(steps), Some(value)) = (steps, leaf(arg)) else {
            return Placement::Unreadable;
        };
        let placed = self.place(&steps, value);
        self.unfinished.remove(&steps);
        if arg.get("willContinue").and_then(Raw::bool) == Some(true) {
            self.unfinished.insert(steps);
        }
        placed
    }

    /// Adds a complete member of the arguments, for parts that contain `args` as well as pieces.
    pub(crate) fn member(&mut self, key: &str, value: Raw<'_>) -> Placement {
        self.place(&[PathStep::Key(key.to_owned())], value)
    }

    /// Ends the arguments. Returns the last fragment or, after [`Placement::Restart`], the whole
    /// text. The result is empty if there were no pieces.
    pub(crate) fn close(&mut self) -> String {
        if let Some((tree, _)) = &self.tree {
            return tree.to_string();
        }
        let from = self.text.len();
        self.close_to(0);
        self.text.split_off(from)
    }

    fn place(&mut self, steps: &[PathStep], value: Raw<'_>) -> Placement {
        if self.tree.is_some() {
            self.plant(steps, value);
            return Placement::Held;
        }
        let from = self.text.len();
        if self.write(steps, value) {
            return Placement::Fragment(self.text[from..].to_owned());
        }
        let path: Vec<PathStep> = self.open.iter().map(|f| f.current.clone()).collect();
        self.close_to(0);
        let tree = serde_json::from_str(&self.text)
            .unwrap_or_else(|_| Value::Object(serde_json::Map::new()));
        self.tree = Some((tree, path));
        self.plant(steps, value);
        Placement::Restart
    }

    /// Appends the piece to the text. Returns false if the piece does not belong there; the text is
    /// then still a prefix of the same value.
    fn write(&mut self, steps: &[PathStep], value: Raw<'_>) -> bool {
        let shared = self
            .open
            .iter()
            .zip(steps)
            .take_while(|(f, s)| f.current == **s)
            .count();
        if shared == steps.len() || (shared == self.open.len() && shared > 0) {
            // The same path again: only the continuation of an open string is valid.
            let continues = shared == steps.len() && shared == self.open.len() && value.is_str();
            let Some(half) = self.string.as_mut().filter(|_| continues) else {
                return false;
            };
            append(&mut self.text, half, value);
            return true;
        }
        let first = match self.open.get(shared) {
            None => true,
            Some(frame) => match (&frame.current, &steps[shared]) {
                (PathStep::Key(_), PathStep::Key(key)) if !frame.keys.contains(key) => false,
                (PathStep::Index(last), PathStep::Index(next)) if *next == last + 1 => false,
                _ => return false,
            },
        };
        if steps[shared + usize::from(!first)..]
            .iter()
            .any(|s| matches!(s, PathStep::Index(n) if *n > 0))
        {
            return false;
        }
        if !first {
            self.close_to(shared + 1);
            self.text.push(',');
            if let Some(frame) = self.open.last_mut() {
                frame.current = steps[shared].clone();
            }
            self.begin_member(&steps[shared]);
        }
        for step in &steps[shared + usize::from(!first)..] {
            self.text.push(if matches!(step, PathStep::Key(_)) {
                '{'
            } else {
                '['
            });
            self.open.push(OpenContainer {
                current: step.clone(),
                keys: HashSet::new(),
            });
            self.begin_member(step);
        }
        if value.is_str() {
            self.text.push('"');
            append(
                &mut self.text,
                self.string.insert(Surrogates::default()),
                value,
            );
        } else {
            self.text.push_str(value.text());
        }
        true
    }

    fn begin_member(&mut self, step: &PathStep) {
        if let PathStep::Key(key) = step {
            self.text.push_str(&quoted(key));
            self.text.push(':');
            if let Some(frame) = self.open.last_mut() {
                frame.keys.insert(key.clone());
            }
        }
    }

    /// Closes the open string and all containers except the `depth` outermost.
    fn close_to(&mut self, depth: usize) {
        if let Some(mut half) = self.string.take() {
            half.finish(&mut self.text);
            self.text.push('"');
        }
        for frame in self.open.drain(depth..).rev() {
            self.text
                .push(if matches!(frame.current, PathStep::Key(_)) {
                    '}'
                } else {
                    ']'
                });
        }
    }

    /// Sets the piece in the tree. Replaces values of another type on its path.
    fn plant(&mut self, steps: &[PathStep], value: Raw<'_>) {
        let Some((tree, last)) = &mut self.tree else {
            return;
        };
        let mut at = tree;
        for step in steps {
            at = match step {
                PathStep::Key(key) => {
                    if !at.is_object() {
                        *at = Value::Object(serde_json::Map::new());
                    }
                    let Value::Object(members) = at else { return };
                    members.entry(key.clone()).or_insert(Value::Null)
                }
                PathStep::Index(n) => {
                    if !at.is_array() {
                        *at = Value::Array(Vec::new());
                    }
                    let Value::Array(items) = at else { return };
                    while items.len() <= *n {
                        items.push(Value::Null);
                    }
                    &mut items[*n]
                }
            };
        }
        match (at, value.str()) {
            (Value::String(text), Some(more))
                if *last == steps || self.unfinished.contains(steps) =>
            {
                text.push_str(&more)
            }
            (at, _) => *at = serde_json::from_str(value.text()).unwrap_or(Value::Null),
        }
        *last = steps.to_vec();
    }
}

/// Returns the value of a piece as JSON. A piece without a value is an empty string that was
/// omitted.
fn leaf(arg: Raw<'_>) -> Option<Raw<'_>> {
    for (key, value) in arg.entries() {
        match key.as_ref() {
            "stringValue" if value.is_str() => return Some(value),
            "numberValue" | "boolValue" if !value.is_null() => return Some(value),
            // Protobuf serializes its null as the name or number of an enumeration's only value, or
            // as null.
            "nullValue" => return Raw::parse("null").ok(),
            _ => {}
        }
    }
    Raw::parse("\"\"").ok()
}

fn append(text: &mut String, half: &mut Surrogates, value: Raw<'_>) {
    let mut plain = String::new();
    half.push(value, &mut plain);
    let escaped = quoted(&plain);
    text.push_str(&escaped[1..escaped.len() - 1]);
}

/// Parses a singular path such as `$.a.b[0]['c d']`. Returns `None` if `path` is invalid or is the
/// root itself.
fn steps(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    if !rest.is_empty() && !rest.starts_with(['.', '[']) {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        steps.push(PathStep::Key(rest[..end].to_owned()));
        rest = &rest[end..];
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            steps.push(PathStep::Key(after[..end].to_owned()));
            rest = &after[end..];
        } else {
            let inside = rest.strip_prefix('[')?;
            let step;
            (step, rest) = match inside.chars().next()? {
                quote @ ('\'' | '"') => quoted_step(&inside[1..], quote)?,
                _ => {
                    let (digits, after) = inside.split_once(']')?;
                    // An index that leaves a gap of a million items is an error of the model.
                    (
                        PathStep::Index(digits.trim().parse().ok().filter(|n| *n < 1_000_000)?),
                        after,
                    )
                }
            };
            steps.push(step);
        }
    }
    (!steps.is_empty() && steps.len() <= MAX_STEPS && matches!(steps[0], PathStep::Key(_)))
        .then_some(steps)
}

/// Parses a quoted name. `text` starts after the opening quote. Returns the name and the text after
/// the closing bracket.
fn quoted_step(text: &str, quote: char) -> Option<(PathStep, &str)> {
    let mut end = None;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => {
                end = Some(i);
                break;
            }
            _ => {}
        }
    }
    let end = end?;
    let name = if text[..end].contains('\\') {
        // The escapes are those of JSON, except for the quote.
        let json = format!(
            "\"{}\"",
            text[..end]
                .replace("\\'", "'")
                .replace(if quote == '\'' { "\"" } else { "\u{0}" }, "\\\"")
        );
        Raw::parse(&json).ok()?.str()?.into_owned()
    } else {
        text[..end].to_owned()
    };
    Some((PathStep::Key(name), text[end + 1..].strip_prefix(']')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fragments, with `!` where the text restarted.
    fn run(pieces: &[&str]) -> Vec<String> {
        let mut partial = PartialArguments::default();
        let mut out: Vec<String> = pieces
            .iter()
            .map(|p| match partial.push(Raw::parse(p).unwrap()) {
                Placement::Fragment(f) => f,
                Placement::Restart => "!".to_owned(),
                Placement::Held => String::new(),
                Placement::Unreadable => "?".to_owned(),
            })
            .collect();
        out.push(partial.close());
        out
    }

    #[test]
    fn pieces_in_order_are_fragments_of_one_text() {
        let out = run(&[
            r#"{"jsonPath":"$.a","stringValue":"x\"","willContinue":true}"#,
            r#"{"jsonPath":"$.a","stringValue":"y\ud83d","willContinue":true}"#,
            r#"{"jsonPath":"$.a","stringValue":"\ude00"}"#,
            r#"{"jsonPath":"$.n","numberValue":12345678901234567890}"#,
            r#"{"jsonPath":"$.l[0].p","boolValue":true}"#,
            r#"{"jsonPath":"$.l[0].q","nullValue":"NULL_VALUE"}"#,
            r#"{"jsonPath":"$.l[1].p","boolValue":false}"#,
            r#"{"jsonPath":"$.m[0][0]","numberValue":1}"#,
            r#"{"jsonPath":"$.m[1][0]","numberValue":2}"#,
            r#"{"jsonPath":"$['o p']['it\\'s']","stringValue":""}"#,
        ]);
        assert_eq!(out[0], "{\"a\":\"x\\\"");
        assert_eq!(
            out.concat(),
            "{\"a\":\"x\\\"y\u{1f600}\",\"n\":12345678901234567890,\"l\":[{\"p\":true,\"q\":null},{\"p\":false}],\"m\":[[1],[2]],\"o p\":{\"it's\":\"\"}}"
        );
    }

    #[test]
    fn a_path_that_comes_back_gives_the_whole_at_the_end() {
        let out = run(&[
            r#"{"jsonPath":"$.a.x","stringValue":"1","willContinue":true}"#,
            r#"{"jsonPath":"$.b[0]","numberValue":2}"#,
            r#"{"jsonPath":"$.a.x","stringValue":"3"}"#,
            r#"{"jsonPath":"$.a.y","boolValue":true}"#,
            r#"{"jsonPath":"$.b[2]","numberValue":4}"#,
        ]);
        assert_eq!(
            out[2..],
            ["!", "", "", r#"{"a":{"x":"13","y":true},"b":[2,null,4]}"#]
        );
    }

    #[test]
    fn nothing_and_nonsense() {
        assert_eq!(run(&[]), [""]);
        for path in [
            "$",
            "$[0]",
            "$..a",
            "$.a[x]",
            "$.a[0",
            "$['a",
            "$.a[99999999999]",
        ] {
            assert_eq!(
                run(&[&format!(r#"{{"jsonPath":"{path}","numberValue":1}}"#)]),
                ["?", ""],
                "{path}"
            );
        }
        assert_eq!(
            run(&[r#"{"jsonPath":"a.b","numberValue":1}"#]).concat(),
            r#"{"a":{"b":1}}"#
        );
        assert_eq!(
            run(&[
                r#"{"jsonPath":"$.a","numberValue":1}"#,
                r#"{"jsonPath":"$.a.b","numberValue":2}"#
            ]),
            [r#"{"a":1"#, "!", r#"{"a":{"b":2}}"#]
        );
    }
}
