//! How alike the streams of one source are, which decides how wide an interval must be.

use crate::add_up::AddUp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Right and wrong answers by source, in constant memory.
///
/// A corpus may have millions of sources. They are put into a fixed number of random groups by a
/// hash of their name. The variance that the groups show is an unbiased estimate of the variance
/// between sources, since what is independent stays independent when it is added up (the method of
/// random groups: Wolter, *Introduction to Variance Estimation*, 2nd edition 2007, chapter 2). With
/// few sources nearly each has a group of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Clusters {
    /// How many groups there are.
    size: u16,
    /// The groups that hold a stream: how many of each [`Cell`].
    groups: BTreeMap<u16, [u32; 6]>,
}

/// One cell of the confusion matrix, with the undecided answers on their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// A yes to a stream with a call.
    TruePositive,
    /// A yes to a stream without.
    FalsePositive,
    /// A no to a stream without a call.
    TrueNegative,
    /// A no to a stream with a call.
    FalseNegative,
    /// No answer to a stream with a call.
    UndecidedCall,
    /// No answer to a stream without.
    UndecidedText,
}

/// A share, as sums over random groups of sources: what an interval is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClusteredShare {
    /// How many groups there are, empty ones included.
    pub groups: u64,
    /// How many groups hold a stream that counts.
    pub used: u64,
    /// Streams that count, and those of them that have the property.
    pub total: f64,
    /// See `total`.
    pub hits: f64,
    /// The sums over groups of total², total × hits, and hits².
    pub total_squared: f64,
    /// See `total_squared`.
    pub total_hits: f64,
    /// See `total_squared`.
    pub hits_squared: f64,
}

impl Clusters {
    /// No answers; `size` random groups, at least 1.
    #[must_use]
    pub(crate) fn new(size: u16) -> Self {
        Self {
            size: size.max(1),
            groups: BTreeMap::new(),
        }
    }

    /// Counts one answer to a stream whose source has this hash (see [`hash`]).
    pub(crate) fn add(&mut self, source: u64, cell: Cell) {
        let group = u16::try_from(source % u64::from(self.size.max(1))).unwrap_or(0);
        let count = &mut self.groups.entry(group).or_default()[cell as usize];
        *count = count.saturating_add(1);
    }

    /// Of the streams in the cells `of`, the share in the cells `hits`.
    #[must_use]
    pub(crate) fn share(&self, hits: &[Cell], of: &[Cell]) -> ClusteredShare {
        let mut share = ClusteredShare {
            groups: u64::from(self.size),
            ..ClusteredShare::default()
        };
        for cells in self.groups.values() {
            let sum = |which: &[Cell]| {
                which
                    .iter()
                    .map(|cell| f64::from(cells[*cell as usize]))
                    .sum::<f64>()
            };
            let y = sum(hits);
            let x = sum(of);
            share.used += u64::from(x > 0.0);
            share.total += x;
            share.hits += y;
            share.total_squared += x * x;
            share.total_hits += x * y;
            share.hits_squared += y * y;
        }
        share
    }
}

impl AddUp for Clusters {
    fn add_up(&mut self, other: &Self) {
        self.groups.add_up(&other.groups);
    }
}

/// The hash of a source's name: FNV-1a with 64 bits, its bits mixed once more by the last step of
/// MurmurHash3. It is part of the format of partial counts, so that all parts of a corpus group
/// their sources alike.
#[must_use]
pub(crate) fn hash(source: &str) -> u64 {
    let mut hash = source
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
