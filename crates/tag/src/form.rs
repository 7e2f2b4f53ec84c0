//! What the parts of a form say of where it begins and ends.

use crate::dialect::{Form, Part, Scope};

/// The markers that a call begins with.
pub(crate) fn first(call: &'static [Part]) -> &'static [&'static str] {
    match call.first() {
        Some(Part::Mark(marks)) => marks,
        Some(Part::Tag(tag)) => tag.open,
        _ => &[],
    }
}

/// Whether the end of a form's call can be told from the call alone: free text may go on to the end of all text.
pub(crate) fn ends_itself(form: &Form) -> bool {
    !form.call.iter().any(|part| matches!(part, Part::Free(_)))
}

/// Whether a form may begin inside a code fence, since it is one.
pub(crate) fn is_fence(form: &Form) -> bool {
    form.scope == Scope::Line && first(form.call).iter().any(|mark| mark.starts_with("```"))
}
