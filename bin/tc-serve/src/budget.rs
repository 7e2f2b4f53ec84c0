//! The memory budget: how many bytes all requests and responses together may hold in memory.

use api::FailedAnswer;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How long a client is asked to wait when the service is full, in milliseconds.
pub(crate) const FULL_MS: u64 = 1000;

/// The memory budget of the service. All clones share one count.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    most: usize,
    /// The bytes of all shares together.
    kept: AtomicUsize,
}

/// The part of the budget that one request or one response uses. Dropping the share frees its
/// bytes.
#[derive(Debug)]
pub struct Share {
    budget: MemoryBudget,
    bytes: usize,
}

/// Why the budget rejects an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// Other requests and responses currently use the budget.
    Now,
    /// The allocation of `bytes` exceeds the whole budget of `most` bytes, so a retry cannot
    /// succeed.
    Ever { bytes: usize, most: usize },
}

impl NoRoom {
    /// Returns the failure to report to the client.
    pub(crate) fn failure(self) -> FailedAnswer {
        let (status, code, wait) = match self {
            NoRoom::Now => (503, "memory_full", Some(FULL_MS)),
            NoRoom::Ever { .. } => (413, "memory_exceeded", None),
        };
        FailedAnswer {
            status,
            code: code.to_owned(),
            message: self.to_string(),
            retry_after_ms: wait,
            ..FailedAnswer::default()
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoom::Now => f.write_str(
                "the open requests and answers use all of --max-memory; try again later",
            ),
            NoRoom::Ever { bytes, most } => write!(
                f,
                "this takes at least {bytes} bytes of memory, and --max-memory allows {most}; \
                 begin another session, send less, ask for a shorter answer, or raise --max-memory"
            ),
        }
    }
}

impl std::error::Error for NoRoom {}

/// The granularity of shares in bytes. Rounding up means that most events do not touch the shared
/// counter.
const BLOCK: usize = 4 << 10;

impl MemoryBudget {
    /// Creates a budget of `most` bytes.
    pub fn new(most: usize) -> MemoryBudget {
        MemoryBudget(Arc::new(BudgetState {
            most,
            kept: AtomicUsize::new(0),
        }))
    }

    /// Returns the size of the whole budget in bytes.
    pub fn most(&self) -> usize {
        self.0.most
    }

    /// Returns an empty share.
    pub fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            bytes: 0,
        }
    }
}

impl Share {
    /// Returns the budget that the share belongs to.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// Returns how many bytes the share uses.
    pub fn kept(&self) -> usize {
        self.bytes
    }

    /// Sets how many bytes the share uses. The request also needs `beside` bytes in other shares.
    ///
    /// # Errors
    /// If the budget has no room. The share is then unchanged.
    pub(crate) fn reserve(&mut self, bytes: usize, beside: usize) -> Result<(), NoRoom> {
        match self.keep(bytes) {
            true => Ok(()),
            false => Err(self.no_room(bytes.saturating_add(beside))),
        }
    }

    /// Returns why this many bytes do not fit the budget.
    pub(crate) fn no_room(&self, bytes: usize) -> NoRoom {
        match self.budget.most() {
            most if bytes > most => NoRoom::Ever { bytes, most },
            _ => NoRoom::Now,
        }
    }

    /// Sets how many bytes the share uses. Returns false, and leaves the share unchanged, if the
    /// budget does not allow it.
    pub fn keep(&mut self, bytes: usize) -> bool {
        let bytes = bytes.div_ceil(BLOCK).saturating_mul(BLOCK);
        let BudgetState { most, kept } = &*self.budget.0;
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            let fits = |all: usize| all.checked_add(more).filter(|all| all <= most);
            if kept
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
                .is_err()
            {
                return false;
            }
        } else if bytes < self.bytes {
            kept.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.keep(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_give_back() {
        let budget = MemoryBudget::new(10 * BLOCK);
        let mut one = budget.share();
        let mut other = budget.share();
        assert!(one.keep(6 * BLOCK) && other.keep(4 * BLOCK));
        assert!(!other.keep(4 * BLOCK + 1), "it is full");
        assert!(one.keep(5 * BLOCK + 1), "the same blocks");
        assert!(one.keep(1) && other.keep(9 * BLOCK));
        drop(other);
        assert!(one.keep(10 * BLOCK) && !one.keep(usize::MAX));
        let mut other = budget.share();
        assert_eq!(other.reserve(10 * BLOCK, 0), Err(NoRoom::Now));
        let most = 10 * BLOCK;
        let bytes = most + 1;
        assert_eq!(other.reserve(most, 1), Err(NoRoom::Ever { bytes, most }));
        drop(one);
        assert_eq!(budget.0.kept.load(Ordering::Relaxed), 0);
    }
}
