//! `null` for an argument that the model leaves out.
//!
//! Models send it to schemas that do not allow it: those on Groq emit every declared property
//! (<https://github.com/vierisid/jarvis/pull/199>), and OpenAI's strict mode requires every
//! property (<https://github.com/livekit/agents-js/pull/2308>). So a declared member that is `null`
//! although the schema does not allow `null` counts as missing. This holds for the validation only:
//! the arguments stay as they came.

use crate::{JsonType, ValueType};
use serde_json::Value;

/// How many members are looked up: each costs a walk over the schema. Members beyond these stay.
const LOOKED_UP: u32 = 100_000;

/// Removes the members that count as missing from a value, at any depth. Returns whether there were
/// any.
pub(super) fn leave_out_nulls(value: &mut Value, typed: &ValueType<'_>) -> bool {
    Nulls {
        left: LOOKED_UP,
        found: false,
    }
    .leave_out(value, typed)
}

struct Nulls {
    left: u32,
    found: bool,
}

impl Nulls {
    fn leave_out(mut self, value: &mut Value, typed: &ValueType<'_>) -> bool {
        self.visit(value, typed);
        self.found
    }

    fn visit(&mut self, value: &mut Value, typed: &ValueType<'_>) {
        match value {
            Value::Object(members) => members.retain(|key, member| {
                if !matches!(member, Value::Null | Value::Object(_) | Value::Array(_))
                    || self.left == 0
                {
                    return true;
                }
                self.left -= 1;
                if !member.is_null() {
                    self.visit(member, &typed.property(key));
                    return true;
                }
                let stays = !typed.declares(key) || typed.property(key).allows(JsonType::Null);
                self.found |= !stays;
                stays
            }),
            Value::Array(items) => {
                let typed = typed.items();
                if typed.is_known() {
                    items.iter_mut().for_each(|item| self.visit(item, &typed));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_null_that_is_declared_and_not_allowed_counts_as_missing() {
        let schema = json!({
            "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}, "label": {"type": ["string", "null"]}}}},
            "properties": {
                "unit": {"enum": ["C", "F"]}, "note": {"type": "string", "nullable": true}, "any": {}, "at": {"$ref": "#/$defs/point"},
                "path": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]}},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "by": {"additionalProperties": {"$ref": "#/$defs/point"}},
            },
            "oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}],
        });
        for (before, after) in [
            (
                json!({"unit": null, "note": null, "any": null, "maybe": null, "other": null}),
                json!({"note": null, "any": null, "maybe": null, "other": null}),
            ),
            (
                json!({"at": {"x": null, "label": null}}),
                json!({"at": {"label": null}}),
            ),
            (json!({"at": null, "path": null}), json!({})),
            (
                json!({"path": [{"x": null}, null, {"x": 1}]}),
                json!({"path": [{}, null, {"x": 1}]}),
            ),
            (
                json!({"by": {"p": {"x": null}, "q": null}}),
                json!({"by": {"p": {}, "q": null}}),
            ),
            (json!({"a": "x", "b": null}), json!({"a": "x"})),
        ] {
            let mut value = before.clone();
            assert_eq!(
                leave_out_nulls(&mut value, &ValueType::new(&schema)),
                before != after
            );
            assert_eq!(value, after, "{before}");
        }
    }
}
