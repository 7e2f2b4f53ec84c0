//! What providers count.

use event::Raw;

/// Tokens as the provider counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub prompt: Option<u64>,
    pub completion: Option<u64>,
    pub total: Option<u64>,
    pub reasoning: Option<u64>,
    pub cached: Option<u64>,
}

impl Usage {
    /// A count of an object, reached by several keys.
    pub(crate) fn count(object: Raw<'_>, path: &[&str]) -> Option<u64> {
        let n = object.at(path)?;
        n.i64().map(|n| n.max(0) as u64).or_else(|| n.f64().filter(|n| *n >= 0.0).map(|n| n as u64))
    }
}
