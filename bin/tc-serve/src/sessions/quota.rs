//! How much of each thing a key may have: sessions, bytes of one, and followers.

use super::{IndexedSession, RunFile, Sessions};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use store::{SessionId, Store, StoreError};
use tokio::sync::Notify;

/// Limits of each key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    /// How many sessions.
    pub sessions: usize,
    /// How many bytes each.
    pub bytes: u64,
    /// How many clients that follow, at once.
    pub followers: usize,
}

/// The hash of a key in hexadecimal; `None` where no key is asked for.
type OwnerHash = Option<String>;

/// What each key has.
pub(super) struct Quota {
    pub limits: SessionLimits,
    /// How many sessions, as far as the folder was counted.
    counts: RefCell<HashMap<OwnerHash, usize>>,
    /// The changes since the running count began; `None` while no count runs. The count may have
    /// seen a changed session before or after its change.
    meanwhile: RefCell<Option<Meanwhile>>,
    followers: RefCell<HashMap<OwnerHash, usize>>,
    /// How many sessions began since the folder was looked at.
    news: Cell<usize>,
    /// The folder is to be looked at.
    pub is_due: Notify,
    /// Whether anything is to be removed from it. If not, new sessions are counted as they begin, and
    /// to read the names of all of them again and again would take memory and time for nothing.
    pub removes: Cell<bool>,
}

/// The sessions that began or were removed while the folder was counted.
#[derive(Default)]
struct Meanwhile {
    begun: Vec<IndexedSession>,
    removed: Vec<SessionId>,
}

/// After how many new sessions the folder is looked at, if anything is to be removed from it.
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

    /// A count of the folder begins.
    pub(super) fn begin_count(&self) {
        self.meanwhile.replace(Some(Meanwhile::default()));
        self.news.set(0);
    }

    /// What was counted.
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

    /// A session of this key has begun.
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

    /// A session of this key was removed.
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
    /// Whether the client whose key has this hash may begin one more session. Where not, the folder
    /// is counted again: sessions may have been removed by other means.
    pub(crate) fn may_begin(&self, key: Option<&str>) -> bool {
        let key = key.map(str::to_owned);
        let count = self.quota.counts.borrow().get(&key).copied();
        let may = count.unwrap_or_default() < self.quota.limits.sessions;
        if !may {
            self.quota.is_due.notify_one();
        }
        may
    }

    /// Notes that a session of this key has begun.
    pub(crate) fn begun(&self, id: SessionId, key: Option<&str>) {
        self.quota.begun(id, key);
    }

    /// Removes a session of this key.
    ///
    /// # Errors
    /// As [`Store::remove`]; [`StoreError::Busy`] also while a call of it waits for a person.
    pub(crate) fn remove(&self, id: SessionId, key: Option<&str>) -> Result<(), StoreError> {
        if RunFile::is_held(&self.store.path_of(id)) {
            return Err(StoreError::Busy);
        }
        self.store.remove(id)?;
        self.outlines.forget(id);
        self.quota.removed(id, key);
        Ok(())
    }

    /// Whether a session that ends at `end` may become longer.
    pub(crate) fn may_grow(&self, end: u64) -> bool {
        end < self.quota.limits.bytes
    }

    /// How many clients follow sessions.
    pub(crate) fn followers(&self) -> u64 {
        let all = self.quota.followers.borrow();
        all.values().sum::<usize>() as u64
    }

    /// A place for one more client with this key that follows; `None` where all are taken.
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

/// The place of a client that follows, which is free again when this is dropped.
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
