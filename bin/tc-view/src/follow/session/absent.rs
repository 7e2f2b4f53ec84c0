//! Replaces `session.rs` in a build without the feature `network`: following a session fails with a
//! message that names the feature.

use super::{Piece, Source};
use crate::args::ServiceArgs;
use anyhow::{Result, bail};
use stdio::Filter;

/// A session of a service, which this build cannot follow.
pub(super) enum Session {}

impl Session {
    /// Fails. The URL may contain a key, so the message does not repeat it.
    ///
    /// # Errors
    /// Always fails with one line.
    pub(super) fn open(_: &str, _: &ServiceArgs, _: &Filter) -> Result<Session> {
        bail!(
            "a session of a service cannot be followed, this build has no network; build it \
             with the feature \"network\" (on by default)"
        )
    }
}

impl Source for Session {
    fn next(&mut self) -> Result<Piece<'_>> {
        match *self {}
    }
}
