//! Splits streams by their source repository, so that no table is tested on streams that resemble
//! those it was learned from.

use score::Label;

/// A way to split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folds {
    /// The number of parts.
    pub count: u64,
    /// The seed of the split: another number splits in another way.
    pub seed: u64,
}

impl Folds {
    /// The part of a stream, from 0 to below the count. Streams of one repository are in one part.
    pub(super) fn part(&self, label: &Label) -> usize {
        let source = label.source.as_deref().map_or(label.id.as_str(), |source| {
            source.split(':').next().unwrap_or(source)
        });
        // FNV-1a, finished as in MurmurHash3: every platform splits alike.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in self.seed.to_le_bytes().into_iter().chain(source.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        usize::try_from(hash % self.count).unwrap_or_default()
    }
}
