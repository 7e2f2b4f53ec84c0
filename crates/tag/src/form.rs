//! Where a form begins and ends.

use crate::dialect::params::Style;
use crate::dialect::{CallPart, Form, Scope};

/// The markers that a call begins with.
pub(crate) fn first(call: &'static [CallPart]) -> &'static [&'static str] {
    match call.first() {
        Some(CallPart::Mark(marks)) => marks,
        Some(CallPart::Tag(tag)) => tag.open,
        _ => &[],
    }
}

/// The markers that these parts may begin with: those of a parameter, and those that end a call
/// without any.
pub(crate) fn beginnings(parts: &'static [CallPart]) -> Vec<&'static str> {
    let mut marks = Vec::new();
    for part in parts {
        match part {
            CallPart::Params(form) => match form.style {
                Style::Equals { open, .. } => marks.push(open),
                Style::Attribute { open, .. } => marks.extend(open),
                Style::Pair { key, .. } => marks.push(key.0),
                Style::Element { prefix } => {
                    marks.push(if prefix.is_empty() { "<" } else { prefix })
                }
            },
            CallPart::Mark(spellings) => {
                marks.extend(*spellings);
                return marks;
            }
            CallPart::Maybe {
                marks: spellings, ..
            } => marks.extend(*spellings),
            _ => {}
        }
    }
    marks
}

/// Whether a call of this form ends by itself. Free text may go on to the end of all text.
pub(crate) fn ends_itself(form: &Form) -> bool {
    !form
        .call
        .iter()
        .any(|part| matches!(part, CallPart::Free(_)))
}

/// Whether a form is a code fence, so that its marker may be in code.
pub(crate) fn is_fence(form: &Form) -> bool {
    form.scope == Scope::Line && first(form.call).iter().any(|mark| mark.starts_with("```"))
}
