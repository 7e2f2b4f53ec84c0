//! What one wait for the next bytes of a body gives.

use crate::Error;
use std::time::Duration;

/// What one wait for the next bytes of a body gives.
#[derive(Debug)]
pub struct BodyPiece<'a> {
    /// When it came, since the request was sent; `None` in a body without times.
    pub at: Option<Duration>,
    /// What came.
    pub what: PieceContent<'a>,
}

/// What came: see [`BodyPiece`].
#[derive(Debug)]
pub enum PieceContent<'a> {
    /// Bytes, at least one.
    Bytes(&'a [u8]),
    /// The body's own end.
    End,
    /// The rest does not come.
    Lost(Error),
}
