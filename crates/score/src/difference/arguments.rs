//! Arguments of calls, compared value by value, each named by its path.

use super::found::{Side, What};
use super::recording::Arguments;
use super::text;
use super::value::Value;
use super::walk::Walk;
use event::quoted;

/// Compares the arguments of two calls, which come from the lines `lines`.
pub(super) fn compare(walk: &mut Walk<'_>, a: &Arguments, b: &Arguments, lines: [u64; 2]) {
    match (a, b) {
        (Arguments::Json(a), Arguments::Json(b)) => values(walk, &mut String::new(), a, b, lines),
        (Arguments::Text(a), Arguments::Text(b)) => {
            walk.string(What::Argument(String::new()), a, b, lines)
        }
        _ => {
            let side = |arguments: &Arguments, line| match arguments {
                Arguments::Json(value) => Side::of(text::json(&value.json()), Some(line)),
                Arguments::Text(text) => Side::of(
                    format!("{}, which is not JSON,", text::beginning(text)),
                    Some(line),
                ),
            };
            walk.add(
                What::Argument(String::new()),
                side(a, lines[0]),
                side(b, lines[1]),
            );
        }
    }
}

/// Compares two values at `path`. A path is as deep as values may be nested.
fn values(walk: &mut Walk<'_>, path: &mut String, a: &Value, b: &Value, lines: [u64; 2]) {
    if walk.is_full() || a == b {
        return;
    }
    let length = path.len();
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for (key, a) in x {
                push_key(path, key);
                pair(walk, path, Some(a), y.get(key), lines);
                path.truncate(length);
            }
            for (key, b) in y.iter().filter(|(key, _)| !x.contains_key(*key)) {
                push_key(path, key);
                pair(walk, path, None, Some(b), lines);
                path.truncate(length);
            }
        }
        (Value::Array(x), Value::Array(y)) => {
            for at in 0..x.len().max(y.len()) {
                path.push_str(&format!("[{at}]"));
                pair(walk, path, x.get(at), y.get(at), lines);
                path.truncate(length);
            }
        }
        (Value::String(a), Value::String(b)) => {
            walk.string(What::Argument(path.clone()), a, b, lines)
        }
        (Value::Number(x), Value::Number(y))
            if text::first_difference(&x.text, &y.text, walk.settings).is_none() => {}
        _ => pair_of_values(walk, path, Some(a), Some(b), lines),
    }
}

fn pair(
    walk: &mut Walk<'_>,
    path: &mut String,
    a: Option<&Value>,
    b: Option<&Value>,
    lines: [u64; 2],
) {
    match (a, b) {
        (Some(a), Some(b)) => values(walk, path, a, b, lines),
        _ => pair_of_values(walk, path, a, b, lines),
    }
}

fn pair_of_values(
    walk: &mut Walk<'_>,
    path: &str,
    a: Option<&Value>,
    b: Option<&Value>,
    lines: [u64; 2],
) {
    if walk.is_full() {
        return;
    }
    let side = |value: Option<&Value>, line| {
        value.map_or_else(Side::default, |value| {
            Side::of(text::json(&value.json()), Some(line))
        })
    };
    walk.add(
        What::Argument(path.to_owned()),
        side(a, lines[0]),
        side(b, lines[1]),
    );
}

/// Appends a key: after a dot if it is a plain word, else in brackets and quotes.
fn push_key(path: &mut String, key: &str) {
    if !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
    } else {
        path.push('[');
        path.push_str(&quoted(key));
        path.push(']');
    }
}
