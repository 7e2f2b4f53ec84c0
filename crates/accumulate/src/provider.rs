//! Provider data that must be sent back with a call.

use event::{Object, Raw};

/// Maximum number of merges per call. A provider repeats the data a few times; without a limit, a
/// hostile provider could make each delta cost as much as all deltas before it.
const MOST_MERGES: u8 = 64;

/// The data that providers need back with a call, by the name of their API. The data may arrive
/// more than once: Gemini and its gateways repeat a call without its signature
/// (github.com/allenhutchison/obsidian-gemini/issues/230), or send an empty `extra_content`.
#[derive(Debug, Default)]
pub(crate) struct ProviderData {
    /// A JSON object on one line.
    text: Option<String>,
    merges: u8,
}

impl ProviderData {
    /// Returns the data, a JSON object on one line; `None` if no data has arrived.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Merges data that arrived later. Its members are added, and replace earlier ones unless they
    /// are empty.
    pub(crate) fn take(&mut self, later: &str) {
        let Some(before) = &self.text else {
            self.text = Some(later.to_owned());
            return;
        };
        if before == later || self.merges == MOST_MERGES {
            return;
        }
        self.merges += 1;
        if let (Ok(old), Ok(new)) = (Raw::parse(before), Raw::parse(later)) {
            self.text = Some(event::object(|o| merge(old, new, o)));
        }
    }
}

/// Writes the merged members of both objects.
fn merge(old: Raw<'_>, new: Raw<'_>, o: &mut Object<'_>) {
    for (name, value) in old.entries() {
        match new.get(&name).filter(|later| !is_empty(*later)) {
            Some(later) if value.is_object() && later.is_object() => {
                o.object(&name, |o| merge(value, later, o));
            }
            Some(later) => _ = o.raw(&name, later.text()),
            None => _ = o.raw(&name, value.text()),
        }
    }
    for (name, value) in new.entries() {
        if old.get(&name).is_none() {
            o.raw(&name, value.text());
        }
    }
}

fn is_empty(value: Raw<'_>) -> bool {
    match value.text() {
        "null" | "\"\"" => true,
        _ => {
            (value.is_object() && value.entries().next().is_none())
                || (value.is_array() && value.items().next().is_none())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProviderData;

    #[test]
    fn later_data_is_merged_and_nothing_empty_replaces_what_came() {
        let signed = r#"{"gemini":{"id":"a","thoughtSignature":"s"}}"#;
        for (parts, want) in [
            (vec![signed, r#"{"gemini":{"id":"a"}}"#], signed),
            (
                vec![signed, r#"{"gemini":{"thoughtSignature":""}}"#],
                signed,
            ),
            (vec![signed, r#"{"gemini":{}}"#, "{}"], signed),
            (
                vec![signed, r#"{"gemini":{"thoughtSignature":"t"}}"#],
                r#"{"gemini":{"id":"a","thoughtSignature":"t"}}"#,
            ),
            (
                vec![
                    r#"{"openai-chat":{"extra_content":{"google":{"thought_signature":"s"}}}}"#,
                    r#"{"openai-chat":{"extra_content":{ }}}"#,
                    r#"{"openai-chat":{"extra_content":{"other":1}}}"#,
                ],
                r#"{"openai-chat":{"extra_content":{"google":{"thought_signature":"s"},"other":1}}}"#,
            ),
        ] {
            let mut data = ProviderData::default();
            parts.iter().for_each(|part| data.take(part));
            assert_eq!(data.text(), Some(want), "{parts:?}");
        }
    }

    #[test]
    fn merging_has_an_end() {
        let mut data = ProviderData::default();
        for n in 0..10_000 {
            data.take(&format!(r#"{{"a":{{"{n}":1}}}}"#));
        }
        assert!(data.text().unwrap().len() < 1024);
    }
}
