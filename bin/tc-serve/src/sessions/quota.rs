//! The limits of each key: the number of sessions, the bytes of each session, and the followers.

use super::{IndexedSession, RunFile, Sessions};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use store::{SessionId, Store, StoreError};
use tokio::sync::Notify;

/// The limits of each key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    /// The most sessions.
    pub sessions: usize,
    /// The most bytes in one session.
    pub bytes: u64,
    /// The most clients that follow sessions at once.
    pub followers: usize,
}

/// The hash of a key in hexadecimal; `None` if the service requires no key.
type OwnerHash = Option<String>;

/// What each key currently uses.
pub(super) struct Quota {
    pub limits: SessionLimits,
    /// The number of sessions as of the last count of the folder, with later changes.
    counts: RefCell<HashMap<OwnerHash, usize>>,
    /// The changes since the running count began; `None` if no count is running. The count may have
    /// seen a changed session before or after its change.
    meanwhile: RefCell<Option<Meanwhile>>,
    followers: RefCell<HashMap<OwnerHash, usize>>,
    /// How many sessions began since the last count.
    news: Cell<usize>,
    /// Wakes the background task, so that it counts the folder.
    pub is_due: Notify,
    /// Whether old sessions are removed. If not, counting new sessions as they begin is enough, and
    /// reading the names of all sessions repeatedly would waste memory and time.
    pub removes: Cell<bool>,
}

/// The sessions that began or were removed during a count of the folder.
#[derive(Default)]
struct Meanwhile {
    begun: Vec<IndexedSession>,
    removed: Vec<SessionId>,
}

/// How many new sessions trigger a count, if old sessions are removed.
const DUE: usize = 256;

impl Quota {
    pub(super) fn new(limits: SessionLimits) -> Quota {
        Quota {
            limits,
            counts: RefCell::default(),
            meanwhile: RefCell::default(),
            followers: RefCell::default(),
            news: Cell::new(0),
            is_due: Notify::new(),
            removes: Cell::new(false),
        }
    }

    /// Starts a count of the folder.
    pub(super) fn begin_count(&self) {
        self.meanwhile.replace(Some(Meanwhile::default()));
        self.news.set(0);
    }

    /// Takes the sessions that the count found.
    pub(super) fn counted(&self, mut found: Vec<IndexedSession>) {
        let Meanwhile { mut begun, removed } = self.meanwhile.take().unwrap_or_default();
        found.append(&mut begun);
        found.sort_unstable_by_key(|session| session.id);
        found.dedup_by_key(|session| session.id);
        found.retain(|session| !removed.contains(&session.id));
        let mut counts = HashMap::new();
        for session in found {
            *counts.entry(session.key).or_default() += 1;
        }
        *self.counts.borrow_mut() = counts;
    }

    /// Counts a new session of this key.
    fn begun(&self, id: SessionId, key: Option<&str>) {
        let key = key.map(str::to_owned);
        if let Some(meanwhile) = &mut *self.meanwhile.borrow_mut() {
            let (key, created) = (key.clone(), 0);
            meanwhile.begun.push(IndexedSession { id, key, created });
        }
        *self.counts.borrow_mut().entry(key).or_default() += 1;
        self.news.set(self.news.get() + 1);
        if self.removes.get() && self.news.get() >= DUE {
            self.is_due.notify_one();
        }
    }

    /// Subtracts a removed session of this key.
    fn removed(&self, id: SessionId, key: Option<&str>) {
        if let Some(meanwhile) = &mut *self.meanwhile.borrow_mut() {
            meanwhile.removed.push(id);
        }
        if let Some(count) = self.counts.borrow_mut().get_mut(&key.map(str::to_owned)) {
            *count = count.saturating_sub(1);
        }
    }
}

impl Sessions {
    /// Whether the client whose key has this hash may begin another session. If not, starts another
    /// count of the folder, because sessions may have been removed by other means.
    pub(crate) fn may_begin(&self, key: Option<&str>) -> bool {
        let key = key.map(str::to_owned);
        let count = self.quota.counts.borrow().get(&key).copied();
        let may = count.unwrap_or_default() < self.quota.limits.sessions;
        if !may {
            self.quota.is_due.notify_one();
        }
        may
    }

    /// Counts a new session of this key.
    pub(crate) fn begun(&self, id: SessionId, key: Option<&str>) {
        self.quota.begun(id, key);
    }

    /// Removes a session of this key.
    ///
    /// # Errors
    /// As [`Store::remove`], and [`StoreError::Busy`] while one of the session's calls waits for
    /// approval.
    pub(crate) fn remove(&self, id: SessionId, key: Option<&str>) -> Result<(), StoreError> {
        if RunFile::is_held(&self.store.path_of(id)) {
            return Err(StoreError::Busy);
        }
        self.store.remove(id)?;
        self.outlines.forget(id);
        self.quota.removed(id, key);
        Ok(())
    }

    /// Whether a session that ends at `end` may grow.
    pub(crate) fn may_grow(&self, end: u64) -> bool {
        end < self.quota.limits.bytes
    }

    /// Returns how many clients follow sessions.
    pub(crate) fn followers(&self) -> u64 {
        let all = self.quota.followers.borrow();
        all.values().sum::<usize>() as u64
    }

    /// Returns a place for another follower with this key, or `None` if all places are taken.
    pub(crate) fn follower(sessions: &Rc<Sessions>, key: Option<&str>) -> Option<FollowerPlace> {
        let mut all = sessions.quota.followers.borrow_mut();
        let key = key.map(str::to_owned);
        let count = all.entry(key.clone()).or_default();
        if *count >= sessions.quota.limits.followers {
            return None;
        }
        *count += 1;
        let sessions = Rc::clone(sessions);
        Some(FollowerPlace { sessions, key })
    }
}

/// The place of a follower. Dropping it frees the place.
pub(crate) struct FollowerPlace {
    sessions: Rc<Sessions>,
    key: OwnerHash,
}

impl Drop for FollowerPlace {
    fn drop(&mut self) {
        let mut all = self.sessions.quota.followers.borrow_mut();
        if let Some(count) = all.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_begins_or_ends_during_a_count_is_counted_once_or_not_at_all() {
        let quota = Quota::new(SessionLimits {
            sessions: 9,
            bytes: 9,
            followers: 9,
        });
        let id = |n: u32| SessionId::of(&format!("{n:032x}")).expect("an id");
        let session = |n| IndexedSession {
            id: id(n),
            key: None,
            created: 0,
        };
        let count = || quota.counts.borrow().get(&None).copied();
        quota.begin_count();
        quota.begun(id(3), None);
        quota.begun(id(4), None);
        quota.begun(id(5), None);
        quota.removed(id(1), None);
        quota.removed(id(4), None);
        // The count found session 1 before it was removed, and session 3 after it had begun.
        quota.counted(vec![session(1), session(2), session(3)]);
        assert_eq!(count(), Some(3));
        quota.removed(id(2), None);
        assert_eq!(count(), Some(2));
    }
}
