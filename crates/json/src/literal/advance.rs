//! The result of one step of a reader.

/// Where reading goes on, in bytes of the text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Advance {
    On(usize),
    /// The rest must be read together with the text that follows it.
    Hold(usize),
    End(usize),
}

/// The result of one step, or why the text breaks the notation.
pub(super) type Outcome = Result<Advance, &'static str>;
