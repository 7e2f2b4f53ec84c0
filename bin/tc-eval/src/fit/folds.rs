//! Splits streams by their source repository, so that no table is tested on streams that are
//! similar to those from which it was learned.

use score::Label;

/// The parameters of a split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folds {
    /// The number of parts.
    pub count: u64,
    /// The seed of the split: a different seed gives a different split.
    pub seed: u64,
}

impl Folds {
    /// Returns the part of a stream, from 0 to the count (excluded). All streams of a repository
    /// are in the same part.
    pub(super) fn part(&self, label: &Label) -> usize {
        let source = label.source.as_deref().map_or(label.id.as_str(), |source| {
            source.split(':').next().unwrap_or(source)
        });
        // FNV-1a with the finalizer of MurmurHash3: the split is the same on every platform.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in self.seed.to_le_bytes().into_iter().chain(source.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        usize::try_from(hash % self.count).unwrap_or_default()
    }
}
