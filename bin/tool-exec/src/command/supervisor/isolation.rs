//! The PID namespace of the launch stage and its command.

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

/// The namespaces that the children of this process are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespaces {
    /// The namespaces of this process: the system allows no new ones.
    None,
    /// A new PID namespace.
    Pid,
    /// A new PID namespace, inside a new user namespace in which this user keeps its user id.
    UserAndPid,
}

/// This process entered a user namespace in which its user is not mapped. It cannot leave the
/// namespace, and must not continue.
#[derive(Debug)]
pub(super) struct Unusable;

/// Maps a user and a group to the same ids in a new user namespace (user_namespaces(7)). An
/// unprivileged process may map its group only after setgroups(2) has been denied. Undoes
/// [`keep_private`].
///
/// # Errors
/// If one of the files cannot be written.
pub(crate) fn map_user(user: u32, group: u32) -> Result<(), String> {
    // In a process that is not dumpable, the files below belong to root.
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

/// Gives the children of this process a new PID namespace; the first child is its init. This
/// process must be single-threaded. May undo [`keep_private`].
///
/// # Errors
/// [`Unusable`]: a security module allows user namespaces but denies every capability in them
/// (AppArmor on Ubuntu since 23.10).
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

/// Gives this process its own mount namespace. Later mounts in it are not visible outside; later
/// mounts outside are still visible in it.
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

/// Mounts a `/proc` that shows only the processes of this PID namespace, by way of the folder
/// `aside`. Needs [`enter_mounts`].
pub(super) fn own_proc(aside: &Path) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), aside, Some("proc"), flags, NOTHING)?;
    // Root could unmount the new `/proc` and see the old one beneath. If this process can do so, it
    // unmounts the old one now. Not permitted in a user namespace; then the command cannot unmount
    // the old one either.
    let _ = umount2("/proc", MntFlags::MNT_DETACH);
    mount(Some(aside), "/proc", NOTHING, MsFlags::MS_MOVE, NOTHING)
}

/// Mounts a `/dev/pts` without terminals, so that the command cannot write to this user's
/// terminals. `/dev/ptmx` opens new terminals in it. Needs [`enter_mounts`].
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

/// Mounts an empty file system of `size` bytes on the folder `home`, accessible only to this user.
/// It disappears with the namespace. Needs [`enter_mounts`].
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

/// Limits the process ids in this PID namespace, and thereby the number of processes. Meant for
/// root, to whom the limit of processes (`RLIMIT_NPROC`) does not apply. Needs [`own_proc`].
pub(super) fn limit_processes(most: u64) {
    // Before Linux 6.14 the file applies to the whole system.
    if kernel() >= Some((6, 14)) {
        let numbers = most.saturating_add(RESERVED); // the first 300 are used only once
        // Fails for an ordinary user, who may not write this file.
        let _ = std::fs::write("/proc/sys/kernel/pid_max", numbers.to_string());
    }
}

/// The first process ids, which the kernel does not reuse (`RESERVED_PIDS`).
const RESERVED: u64 = 301;

/// Returns the kernel version: "6.18.44-x" is (6, 18).
fn kernel() -> Option<(u32, u32)> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut parts = release.trim().split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

// The capabilities of a launch stage, which mounts file systems, and of its command, which gets
// none if the user is not root (capabilities(7)).

/// Drops all capabilities of a new user namespace except the one to mount. Otherwise executable
/// files could pass the others on to a command.
fn keep_mounting() -> std::io::Result<()> {
    let mounting = CapabilitySet::SYS_ADMIN;
    let sets = CapabilitySets {
        effective: mounting,
        permitted: mounting,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

/// Keeps the command and its children from inheriting capabilities of this process.
pub(super) fn keep_to_itself() {
    let _ = clear_ambient_capability_set(); // fails only on systems without ambient capabilities
}

// Landlock's signal scope (landlock(7), Linux 6.12), which restricts whom a process may signal.

/// Restricts this process and its children to signalling each other. Returns whether the
/// restriction is in force, verified with a test signal to the parent process.
pub(super) fn enter_signal_scope() -> bool {
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.restrict_self());
    let is_enforced = restricted.is_ok_and(|status| status.ruleset == RulesetStatus::FullyEnforced);
    is_enforced && getppid().is_some_and(|parent| test_kill_process(parent) == Err(Errno::PERM))
}

// Protects the memory and descriptors of this process from other processes of the same user.

/// Denies other processes of this user access to the files `/proc/PID/{environ,fd,mem,…}` of this
/// process, and ptrace(2) on it. Also turns off core dumps. Root still has access.
pub(crate) fn keep_private() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable); // never fails for this value
}
