//! A PID namespace for the launch stage, and the command in it.

use super::capabilities;
use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid};

/// The namespaces of the children of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Those of this process: the system allows no others.
    None,
    /// A PID namespace.
    Pid,
    /// A PID namespace, in a user namespace where this user has the same number as outside.
    UserAndPid,
}

/// A user namespace was entered in which this process has no user: it cannot go back, and must not
/// go on.
#[derive(Debug)]
pub struct Unusable;

/// Gives the children of this process a PID namespace. Their first one is the init of it. This
/// process must have one thread only, and must not have called [`super::privacy::keep_private`]:
/// the system then gives the maps of its users to root.
///
/// # Errors
/// [`Unusable`]: a security module lets processes have a user namespace and nothing in it (AppArmor on Ubuntu since 23.10).
pub fn enter() -> Result<Namespaces, Unusable> {
    if unshare(CloneFlags::CLONE_NEWPID).is_ok() {
        return Ok(Namespaces::Pid);
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    if unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID).is_err() {
        return Ok(Namespaces::None);
    }
    // An ordinary user may map its group only where nobody can leave a group (user_namespaces(7)).
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        std::fs::write(format!("/proc/self/{file}"), text).map_err(|_| Unusable)?;
    }
    // Without it the launch stage mounts nothing, and reports that.
    let _ = capabilities::pass_on_mounting();
    Ok(Namespaces::UserAndPid)
}
