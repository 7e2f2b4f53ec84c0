//! Measures how similar the streams of the same source are, which determines the width of
//! intervals.

use crate::add_up::AddUp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Answer counts by source, in constant memory.
///
/// A corpus may have millions of sources. They are assigned to a fixed number of random groups by a
/// hash of their name. The variance between the groups is an unbiased estimate of the variance
/// between sources, because sums of independent values are independent (the method of random
/// groups: Wolter, *Introduction to Variance Estimation*, 2nd edition 2007, chapter 2). With few
/// sources, nearly every source has its own group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Clusters {
    /// The number of groups.
    size: u16,
    /// The number of answers in each [`Cell`], for each group that has any.
    groups: BTreeMap<u16, [u32; 6]>,
}

/// A cell of the confusion matrix, with separate cells for undecided answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// A yes for a stream with a call.
    TruePositive,
    /// A yes for a stream without a call.
    FalsePositive,
    /// A no for a stream without a call.
    TrueNegative,
    /// A no for a stream with a call.
    FalseNegative,
    /// An undecided answer for a stream with a call.
    UndecidedCall,
    /// An undecided answer for a stream without a call.
    UndecidedText,
}

/// A proportion, as sums over random groups of sources, from which its interval is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClusteredShare {
    /// The number of groups, including empty ones.
    pub groups: u64,
    /// The number of groups with at least one stream in the denominator.
    pub used: u64,
    /// The number of streams in the denominator.
    pub total: f64,
    /// The number of streams in the numerator, a subset of `total`.
    pub hits: f64,
    /// The sum over groups of total²; the next two fields are the sums of total × hits and of
    /// hits².
    pub total_squared: f64,
    /// See `total_squared`.
    pub total_hits: f64,
    /// See `total_squared`.
    pub hits_squared: f64,
}

impl Clusters {
    /// Returns empty counts with `size` random groups, at least 1.
    #[must_use]
    pub(crate) fn new(size: u16) -> Self {
        Self {
            size: size.max(1),
            groups: BTreeMap::new(),
        }
    }

    /// Counts one answer for a stream whose source has this hash (see [`hash`]).
    pub(crate) fn add(&mut self, source: u64, cell: Cell) {
        let group = u16::try_from(source % u64::from(self.size.max(1))).unwrap_or(0);
        let count = &mut self.groups.entry(group).or_default()[cell as usize];
        *count = count.saturating_add(1);
    }

    /// Returns the fraction of the streams in the cells `of` that are in the cells `hits`.
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

/// Returns the hash of a source's name: 64-bit FNV-1a, followed by the final mixing step of
/// MurmurHash3. The hash is part of the format of partial counts, so that all parts of a corpus
/// group their sources alike.
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
