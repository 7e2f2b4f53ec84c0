//! What commands keep on disk, so that it outlives them: folders that this user alone can use,
//! files to which whole lines are appended, and sessions, which are such files.
//!
//! What it is: [`PrivateFolder`], whose files are complete or not there; [`AppendedFile`], which
//! one process at a time appends to, and whose last line is healed when it is opened; [`Store`],
//! what has to hold sessions, and [`FolderStore`], which holds them in a folder. What it is not: it
//! knows no event but the first of a session, and waits for nothing.

mod files;
mod folder;
mod scan;
mod session;
mod trust;

pub use files::{AppendedFile, FailedAppend, FileId, Locks, is_locked, lines, lock};
pub use folder::{PrivateFolder, StoreEntry};
pub use scan::SessionScan;
pub use session::{
    Change, Changes, FolderStore, Lease, SessionId, Store, StoreError, StoredSession,
};
pub use trust::{Distrust, distrust};

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time since 1970.
pub fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}
