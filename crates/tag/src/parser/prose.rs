//! Text outside calls.

/// What text is that is neither a call nor a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prose {
    Answer,
    Reasoning,
}

/// The readings of the next byte that failed before. The byte is not read in these ways again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exclusion {
    #[default]
    Nothing,
    /// Forms without a marker, which may begin a message.
    Unmarked,
    /// Markers, too: the byte is text.
    All,
}
