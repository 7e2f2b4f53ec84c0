//! Where a form begins and ends.

use crate::dialect::{CallPart, Form, Scope};

/// The markers that a call begins with.
pub(crate) fn first(call: &'static [CallPart]) -> &'static [&'static str] {
    match call.first() {
        Some(CallPart::Mark(marks)) => marks,
        Some(CallPart::Tag(tag)) => tag.open,
        _ => &[],
    }
}

/// Whether a call of this form ends by itself. Free text may go on to the end of all text.
pub(crate) fn ends_itself(form: &Form) -> bool {
    !form.call.iter().any(|part| matches!(part, CallPart::Free(_)))
}

/// Whether a form is a code fence, so that its marker may be in code.
pub(crate) fn is_fence(form: &Form) -> bool {
    form.scope == Scope::Line && first(form.call).iter().any(|mark| mark.starts_with("```"))
}
