//! Keeps the memory and the files of this process from other processes of its user.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Denies other processes of this user access to the files `/proc/PID/{environ,fd,mem,…}` of this
/// process, and to ptrace(2) on it. Also turns off core dumps. Root still has access.
pub fn keep_private() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable); // never fails for this value
}
