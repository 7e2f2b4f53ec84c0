//! How far one step of a reader came.

/// Where reading goes on, in bytes of the text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Advance {
    On(usize),
    /// The rest has to be seen together with what follows it.
    Hold(usize),
    End(usize),
}

/// One step, or why the text breaks the notation.
pub(super) type Outcome = Result<Advance, &'static str>;
