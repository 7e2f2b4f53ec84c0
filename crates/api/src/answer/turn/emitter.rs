//! Where the steps of one choice go.

use crate::answer::step::Step;

/// Takes the upstream's name of the model, the number of a choice, and its next step.
pub(super) type TakeStep<'t> = dyn FnMut(&str, u32, &Step<'_>) + 't;

/// Emits the steps of one choice, and notes that the answer has begun.
pub(super) struct Emitter<'e, 't> {
    pub model: &'e str,
    pub number: u32,
    pub has_begun: &'e mut bool,
    pub has_content: &'e mut bool,
    pub take: &'e mut TakeStep<'t>,
}

impl Emitter<'_, '_> {
    pub fn emit(&mut self, step: &Step<'_>) {
        *self.has_begun = true;
        *self.has_content |= *step != Step::Begin;
        (self.take)(self.model, self.number, step);
    }
}
