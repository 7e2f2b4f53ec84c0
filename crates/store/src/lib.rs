//! Files that commands keep on disk between runs: private folders, append-only files of lines, and
//! sessions, which are such files.
//!
//! [`PrivateFolder`] makes each file appear complete or not at all. [`AppendedFile`] is appended to
//! by one process at a time; opening it repairs a truncated last line. [`Store`] is the interface
//! to stored sessions, and [`FolderStore`] stores them in a folder. The crate parses no event
//! except the first of a session, and never blocks to wait for new data.

mod files;
mod folder;
mod scan;
mod session;
mod trust;

pub use files::{AppendedFile, FailedAppend, FileId, Locks, lines, lock, may_be_locked};
pub use folder::{PrivateFolder, StoreEntry};
pub use scan::SessionScan;
pub use session::{
    Change, Changes, FolderStore, Lease, SessionId, Store, StoreError, StoredSession,
};
pub use trust::{Distrust, distrust};

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the time since 1970.
pub fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns the time since 1970 in milliseconds.
pub fn now() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}
