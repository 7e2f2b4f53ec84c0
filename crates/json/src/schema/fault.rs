//! Descriptions of what does not fit a schema.

use super::size::{TYPES, cut};
use serde_json::Value;

/// The maximum length of a quoted value, in characters.
const QUOTED: usize = 60;

/// One thing that does not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The JSON pointer of the value.
    pub(super) path: String,
    /// What is wrong with the value.
    pub(super) message: String,
    /// The members that the fault is about.
    pub(super) about: About,
}

/// Members that a message lists separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// No members.
    Value,
    /// A required member is missing.
    Missing(String),
    /// Members that are not allowed.
    Unexpected(Vec<String>),
}

/// Returns the JSON pointer of a member.
pub(super) fn member(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Describes a value of a wrong type.
pub(super) fn not_of_type<'n>(names: impl Iterator<Item = &'n str>, value: &Value) -> String {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable_by_key(|name| TYPES.iter().position(|known| known == name));
    format!("must be {}, not {}", names.join(" or "), quote(value))
}

/// Describes a value that equals none of the options.
pub(super) fn not_one_of(options: &Value, value: &Value) -> String {
    format!(
        "must be one of {}, not {}",
        quoted(options, 2 * QUOTED),
        quote(value)
    )
}

/// Describes a value that differs from a constant.
pub(super) fn not_constant(constant: &Value, value: &Value) -> String {
    format!("must be {}, not {}", quote(constant), quote(value))
}

/// Describes a value that no alternative allows; `why` contains the alternatives' reasons.
pub(super) fn none_of(why: impl Iterator<Item = String>) -> String {
    let forms: Vec<_> = why.take(3).map(|message| cut(&message, QUOTED)).collect();
    format!("fits none of the allowed forms ({})", forms.join("; or "))
}

/// Describes any other fault of a value.
pub(super) fn given(fault: &str, value: &Value) -> String {
    format!("{}, given {}", cut(fault, 2 * QUOTED), quote(value))
}

/// Describes a value beyond the limit of a keyword.
pub(super) fn beyond(keyword: &str, limit: &str) -> String {
    let many = |one: &str, many: &str| format!("{limit} {}", if limit == "1" { one } else { many });
    let what = match keyword {
        "minimum" => format!("is less than the minimum of {limit}"),
        "maximum" => format!("is greater than the maximum of {limit}"),
        "exclusiveMinimum" => format!("is less than or equal to the minimum of {limit}"),
        "exclusiveMaximum" => format!("is greater than or equal to the maximum of {limit}"),
        "minLength" => format!("is shorter than {}", many("character", "characters")),
        "maxLength" => format!("is longer than {}", many("character", "characters")),
        "minItems" => format!("has less than {}", many("item", "items")),
        "maxItems" => format!("has more than {}", many("item", "items")),
        "minProperties" => format!("has less than {}", many("property", "properties")),
        "maxProperties" => format!("has more than {}", many("property", "properties")),
        _ => format!("is not a multiple of {limit}"),
    };
    format!("value {what}")
}

/// Describes members that are not allowed.
pub(super) fn unexpected(names: &[String]) -> String {
    let were = if names.len() == 1 { "was" } else { "were" };
    format!(
        "Additional properties are not allowed ('{}' {were} unexpected)",
        names.join("', '")
    )
}

/// Returns the JSON of a value, truncated.
pub(super) fn quote(value: &Value) -> String {
    quoted(value, QUOTED)
}

fn quoted(value: &Value, length: usize) -> String {
    /// Accepts only as many bytes as may be shown, so that the rest of the value is not serialized.
    struct Start(Vec<u8>, usize);

    impl std::io::Write for Start {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0.len() > self.1 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.0
                .extend_from_slice(&bytes[..bytes.len().min(self.1 + 8)]);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    // A character has at most four bytes.
    let mut start = Start(Vec::new(), 4 * length + 4);
    let _ = serde_json::to_writer(&mut start, value);
    cut(&String::from_utf8_lossy(&start.0), length)
}
