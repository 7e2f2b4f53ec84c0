//! What does not fit a schema, in short messages that a model can act on.

use crate::JsonError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// How many violations are listed.
const TOLD: usize = 5;
/// The longest quote of a value, in characters.
const QUOTED: usize = 60;
/// The longest message, in characters.
const MESSAGE: usize = 240;

/// One violation of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where, as a JSON pointer into the arguments; empty for the arguments as a whole.
    pub path: String,
    /// What the value must be.
    pub message: String,
}

/// Why arguments do not fit: at most five violations. Its `Display` is one line:
/// `/city: is required; /days: must be …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The first violations.
    pub violations: Vec<Violation>,
    /// How many further violations there are.
    pub more: usize,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, v) in self.violations.iter().enumerate() {
            let (comma, colon) = (
                if n > 0 { "; " } else { "" },
                if v.path.is_empty() { "" } else { ": " },
            );
            write!(f, "{comma}{}{colon}{}", v.path, v.message)?;
        }
        if self.more > 0 {
            write!(f, "; and {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Misfit {}

impl Misfit {
    pub(super) fn at_root(message: &str) -> Misfit {
        Misfit {
            violations: vec![Violation {
                path: String::new(),
                message: cut(message, MESSAGE),
            }],
            more: 0,
        }
    }

    pub(super) fn json(error: &JsonError) -> Misfit {
        Misfit::at_root(&error.to_string())
    }

    /// Why `value` is not valid; `known` are the parameters' names.
    pub(super) fn explain(validator: &Validator, value: &Value, known: Vec<&str>) -> Misfit {
        let mut misfit = Misfit {
            violations: Vec::new(),
            more: 0,
        };
        for error in validator.iter_errors(value) {
            for violation in violations(&error, &known) {
                if misfit.violations.len() < TOLD {
                    misfit.violations.push(violation);
                } else {
                    misfit.more += 1;
                }
            }
        }
        misfit
    }
}

fn violations(error: &ValidationError<'_>, known: &[&str]) -> Vec<Violation> {
    let path = error.instance_path().to_string();
    let at = |name: &str, message: String| Violation {
        path: cut(
            &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")),
            MESSAGE,
        ),
        message,
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            vec![at(
                property.as_str().unwrap_or_default(),
                "is required".to_owned(),
            )]
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let hint = if path.is_empty() && !known.is_empty() {
                format!(", known are {}", known.join(", "))
            } else {
                String::new()
            };
            unexpected
                .iter()
                .map(|name| at(name, cut(&format!("is not a parameter{hint}"), MESSAGE)))
                .collect()
        }
        _ => vec![Violation {
            path: cut(&path, MESSAGE),
            message: cut(&message(error), MESSAGE),
        }],
    }
}

fn message(error: &ValidationError<'_>) -> String {
    let given = cut(&error.instance().to_string(), QUOTED);
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(many) => many
                    .iter()
                    .map(|t| t.to_string())
                    .collect::<Vec<_>>()
                    .join(" or "),
            };
            format!("must be {wanted}, not {given}")
        }
        ValidationErrorKind::Enum { options } => {
            format!(
                "must be one of {}, not {given}",
                cut(&options.to_string(), 2 * QUOTED)
            )
        }
        ValidationErrorKind::Constant { expected_value } => {
            format!(
                "must be {}, not {given}",
                cut(&expected_value.to_string(), QUOTED)
            )
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let forms: Vec<_> = context
                .iter()
                .filter_map(|errors| errors.first())
                .take(3)
                .map(|e| cut(&message(e), QUOTED))
                .collect();
            format!("fits none of the allowed forms ({})", forms.join("; or "))
        }
        _ => format!(
            "{}, given {given}",
            cut(&error.masked().to_string(), 2 * QUOTED)
        ),
    }
}

/// The first 300 characters of a text.
pub(super) fn short(text: &str) -> String {
    cut(text, 300)
}

/// The first `max` characters of a text, with `…` if there are more.
pub(super) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
