//! A PID namespace for the launch stage, and the command in it.

use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, getegid, geteuid, getppid, set_dumpable_behavior, test_kill_process,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
};
use std::path::Path;

/// The namespaces of the children of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespaces {
    /// Those of this process: the system allows no others.
    None,
    /// A PID namespace.
    Pid,
    /// A PID namespace, in a user namespace where this user has the same number as outside.
    UserAndPid,
}

/// This process entered a user namespace in which it has no user: it cannot go back, and must not
/// go on.
#[derive(Debug)]
pub(super) struct Unusable;

/// Gives a user and a group the same numbers inside of a new user namespace as outside
/// (user_namespaces(7)). An ordinary user may map its group only where nobody can leave a group.
/// Undoes [`keep_private`].
///
/// # Errors
/// The file that cannot be written.
pub(crate) fn map_user(user: u32, group: u32) -> Result<(), String> {
    // The files below belong to root in a process that is not dumpable.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(|e| e.to_string())?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        let file = format!("/proc/self/{file}");
        std::fs::write(&file, text).map_err(|e| format!("{file}: {e}"))?;
    }
    Ok(())
}

/// Gives the children of this process a PID namespace; the first child is its init. This process
/// must have one thread only. May undo [`keep_private`].
///
/// # Errors
/// [`Unusable`]: a security module lets processes have a user namespace and nothing in it (AppArmor on Ubuntu since 23.10).
pub(super) fn enter_namespaces() -> Result<Namespaces, Unusable> {
    if unshare(CloneFlags::CLONE_NEWPID).is_ok() {
        return Ok(Namespaces::Pid);
    }
    let user = geteuid().as_raw();
    let group = getegid().as_raw();
    if unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID).is_err() {
        return Ok(Namespaces::None);
    }
    map_user(user, group).map_err(|_| Unusable)?;
    if user != 0 {
        keep_mounting().map_err(|_| Unusable)?;
    }
    Ok(Namespaces::UserAndPid)
}

// The mounts that the init of a PID namespace makes for its command.

const NOTHING: Option<&str> = None;

/// Gives this process a mount namespace of its own. Later mounts in it are not seen outside of it;
/// later mounts outside are still seen in it.
pub(super) fn enter_mounts() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(
        NOTHING,
        "/",
        NOTHING,
        MsFlags::MS_REC | MsFlags::MS_SLAVE,
        NOTHING,
    )
}

/// Mounts a `/proc` that shows the processes of this PID namespace alone. Needs [`enter_mounts`].
pub(super) fn own_proc() -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let fresh = || mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING);
    fresh()?;
    // Root could unmount the new `/proc`, and look at the old one below it. Where that is possible
    // here, it is done now.
    if umount2("/proc", MntFlags::MNT_DETACH).is_ok() {
        // Refused in a user namespace: then the command may not unmount it either.
        let _ = umount2("/proc", MntFlags::MNT_DETACH);
        fresh()?;
    }
    Ok(())
}

/// Mounts a `/dev/pts` without any terminal: the command cannot write to the terminals of this
/// user. `/dev/ptmx` opens new terminals in this `/dev/pts`. Needs [`enter_mounts`].
pub(super) fn own_terminals() -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(
        Some("devpts"),
        "/dev/pts",
        Some("devpts"),
        flags,
        Some("newinstance,ptmxmode=0666,mode=0620"),
    )
}

/// Mounts an empty file system of `size` bytes over the folder `home`, for this user alone. It is
/// removed with the namespace. Needs [`enter_mounts`].
pub(super) fn own_home(home: &Path, size: u64) -> nix::Result<()> {
    let options = format!("size={size},mode=0700");
    mount(
        Some("tmpfs"),
        home,
        Some("tmpfs"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some(options.as_str()),
    )
}

/// Limits the numbers that processes in this PID namespace can get, and so the count of these
/// processes. This is for root, for whom the system's limit of processes (`RLIMIT_NPROC`) does not
/// count. Needs [`own_proc`].
pub(super) fn limit_processes(most: u64) {
    // Before Linux 6.14 the file is that of the whole system.
    if kernel() >= Some((6, 14)) {
        let numbers = most.saturating_add(RESERVED); // the first 300 are given out once
        // An ordinary user may not write this file.
        let _ = std::fs::write("/proc/sys/kernel/pid_max", numbers.to_string());
    }
}

/// The first numbers of processes, which the system does not use a second time (`RESERVED_PIDS`).
const RESERVED: u64 = 301;

/// The version of the kernel: "6.18.44-x" is (6, 18).
fn kernel() -> Option<(u32, u32)> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut parts = release.trim().split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

// The capabilities of a launch stage, which mounts, and of its command, which has none of an
// ordinary user's (capabilities(7)).

/// Gives up all capabilities in a new user namespace but the one to mount. With the others, files
/// could give them to a command.
fn keep_mounting() -> std::io::Result<()> {
    let mounting = CapabilitySet::SYS_ADMIN;
    let sets = CapabilitySets {
        effective: mounting,
        permitted: mounting,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

/// The command, and the processes that it starts, get no capability that this process passes on.
pub(super) fn keep_to_itself() {
    let _ = clear_ambient_capability_set(); // fails only on systems without it
}

// Landlock's signal scope (landlock(7), Linux 6.12): which processes a process may signal.

/// Lets this process, and the processes that it starts, send signals to each other alone. Returns
/// whether that is in force, which a trial on the parent of this process shows.
pub(super) fn enter_signal_scope() -> bool {
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.restrict_self());
    let is_enforced = restricted.is_ok_and(|status| status.ruleset == RulesetStatus::FullyEnforced);
    is_enforced && getppid().is_some_and(|parent| test_kill_process(parent) == Err(Errno::PERM))
}

// Keeps the memory and the files of this process from other processes of its user.

/// Denies other processes of this user access to the files `/proc/PID/{environ,fd,mem,…}` of this
/// process, and to ptrace(2) on it. Also turns off core dumps. Root still has access.
pub(crate) fn keep_private() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable); // never fails for this value
}
