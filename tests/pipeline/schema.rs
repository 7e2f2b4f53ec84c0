//! The schema of the protocol, `docs/events.schema.json`, which every line that the commands print
//! must fit.

use serde_json::Value;
use std::sync::LazyLock;

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let schema: Value =
        serde_json::from_str(&event::payload::schema()).expect("the schema is JSON");
    jsonschema::draft202012::new(&schema).expect("the schema is a schema")
});

/// The events among `lines` that do not fit the schema, each with the reason. Every event begins
/// with its type; a provider's whole response (`tc-accumulate --as`) does not.
pub(crate) fn misfits(lines: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(lines);
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("{\"type\":")) {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        for error in SCHEMA.iter_errors(&event) {
            wrong.push(format!(
                "docs/events.schema.json: {}: {error}: {line}",
                error.instance_path()
            ));
        }
    }
    wrong
}
