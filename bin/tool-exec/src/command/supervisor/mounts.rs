//! What the init of a PID namespace mounts for its command.

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use std::path::Path;

const NOTHING: Option<&str> = None;

/// Gives this process a mount namespace of its own. What is mounted in it from now on is seen
/// nowhere else; what is mounted or unmounted outside is still seen in it.
pub fn enter() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(
        NOTHING,
        "/",
        NOTHING,
        MsFlags::MS_REC | MsFlags::MS_SLAVE,
        NOTHING,
    )
}

/// Mounts a `/proc` that shows the processes of this PID namespace alone. Needs [`enter`].
pub fn own_proc() -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let fresh = || mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING);
    fresh()?;
    // Root could unmount it again and look at the one below. Where that can be done here, it is
    // done now.
    if umount2("/proc", MntFlags::MNT_DETACH).is_ok() {
        // Refused in a user namespace: nobody in it may do that either.
        let _ = umount2("/proc", MntFlags::MNT_DETACH);
        fresh()?;
    }
    Ok(())
}

/// Mounts a `/dev/pts` without any terminal: those of this user cannot be written to from the
/// command. `/dev/ptmx` opens new ones in it. Needs [`enter`].
pub fn own_terminals() -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(
        Some("devpts"),
        "/dev/pts",
        Some("devpts"),
        flags,
        Some("newinstance,ptmxmode=0666,mode=0620"),
    )
}

/// Mounts an empty file system over the folder `home`, for this user alone, that holds `size`
/// bytes. It goes with the namespace. Needs [`enter`].
pub fn own_home(home: &Path, size: u64) -> nix::Result<()> {
    let options = format!("size={size},mode=0700");
    mount(
        Some("tmpfs"),
        home,
        Some("tmpfs"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some(options.as_str()),
    )
}

/// Limits the numbers of processes in this PID namespace, and with them how many there are. This is
/// for root, for whom the system's limit of processes (`RLIMIT_NPROC`) does not count. Needs
/// [`own_proc`].
pub fn limit_processes(most: u64) {
    // Before Linux 6.14 the file is that of the whole system.
    if kernel() >= Some((6, 14)) {
        let numbers = most.saturating_add(RESERVED); // the first 300 are given out once
        // An ordinary user may not.
        let _ = std::fs::write("/proc/sys/kernel/pid_max", numbers.to_string());
    }
}

/// The first numbers of processes, which the system does not give out again (`RESERVED_PIDS`).
const RESERVED: u64 = 301;

/// The version of the kernel: "6.18.44-x" is (6, 18).
fn kernel() -> Option<(u32, u32)> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut parts = release.trim().split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
