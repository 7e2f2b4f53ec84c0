//! Describes the first difference between two values for people.

use serde_json::Value;

/// The maximum number of characters shown of a value.
const SHOWN: usize = 80;

/// How many of the shown characters precede the place where two texts differ.
const LEAD: usize = 20;

/// Returns where two values first differ: the path, such as `messages[1].content`, and each value's
/// content there, shortened to fit on a line. The order of keys in an object is ignored.
pub fn difference(a: &Value, b: &Value) -> (String, String, String) {
    let (path, a, b) = descend(String::new(), Some(a), Some(b));
    let (a, b) = match (a, b) {
        (Some(Value::String(a)), Some(Value::String(b))) => {
            let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
            (text(a, same), text(b, same))
        }
        (a, b) => (a.map_or_else(nothing, brief), b.map_or_else(nothing, brief)),
    };
    (path, a, b)
}

fn descend<'v>(
    path: String,
    a: Option<&'v Value>,
    b: Option<&'v Value>,
) -> (String, Option<&'v Value>, Option<&'v Value>) {
    let next = match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut keys = a.keys().chain(b.keys());
            let key = keys.find(|key| a.get(*key) != b.get(*key));
            let dot = if path.is_empty() { "" } else { "." };
            key.map(|key| (format!("{path}{dot}{key}"), a.get(key), b.get(key)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            let at = (0..a.len().max(b.len())).find(|at| a.get(*at) != b.get(*at));
            at.map(|at| (format!("{path}[{at}]"), a.get(at), b.get(at)))
        }
        _ => None,
    };
    match next {
        Some((path, a, b)) => descend(path, a, b),
        None => (path, a, b),
    }
}

fn nothing() -> String {
    "nothing".to_owned()
}

/// Returns the part of a text around the end of its first `same` characters.
fn text(text: &str, same: usize) -> String {
    let from = if same > SHOWN - LEAD { same - LEAD } else { 0 };
    let start = if from > 0 { "…" } else { "" };
    let shown: String = text.chars().skip(from).take(SHOWN).collect();
    let end = if text.chars().count() > from + SHOWN {
        "…"
    } else {
        ""
    };
    format!("{start}{}{end}", event::quoted(&shown))
}

fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_path_and_both_values_are_named() {
        let long = |end: &str| json!({"a": [{"b": format!("{}{end}", "x".repeat(500))}]});
        for (a, b, path, here, there) in [
            (json!({"a": [1, 2]}), json!({"a": [1, 3]}), "a[1]", "2", "3"),
            (json!({"a": 1}), json!({}), "a", "1", "nothing"),
            (json!({}), json!({"b": null}), "b", "nothing", "null"),
            (json!("x"), json!("y"), "", "\"x\"", "\"y\""),
            (
                long("end"),
                long("other"),
                "a[0].b",
                "…\"xxxxxxxxxxxxxxxxxxxxend\"",
                "…\"xxxxxxxxxxxxxxxxxxxxother\"",
            ),
        ] {
            let found = difference(&a, &b);
            assert_eq!((&*found.0, &*found.1, &*found.2), (path, here, there));
        }
        let (_, here, _) = difference(&json!([vec![0; 100]]), &json!([]));
        assert_eq!(here.chars().count(), SHOWN + 1);
    }
}
