//! Landlock: kernel rules about what a process and its descendants may access (landlock(7)).
//!
//! Coverage by version ("ABI"): 1 files, 2 renaming between folders, 3 truncation, 4 TCP, 5 device
//! ioctls, 6 signals and abstract UNIX sockets, 9 UNIX sockets with a path. Network rules are about
//! ports, not hosts. Version 10 covers UDP but is not used: a network namespace covers all
//! protocols.

use super::Confinement;
use crate::command::supervisor::map_user;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, RestrictSelf, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
};
use std::os::fd::OwnedFd;
use std::path::Path;
use tool::CommandNetwork;

/// The minimum for every sandbox. Before this version a command could truncate any file.
const FILES: ABI = ABI::V3;
/// The minimum for rules about TCP.
const TCP: ABI = ABI::V4;
/// The version used where the kernel supports it.
const MOST: ABI = ABI::V9;

/// Returns the kernel's Landlock version, as far as known to this program, or 0 if unavailable.
pub(crate) fn version() -> i32 {
    // Without flags this queries the version and restricts nothing.
    let status = RestrictSelf::default().no_new_privs(false).apply();
    match status.map(|status| status.landlock) {
        Ok(LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        }) => kernel_abi.unwrap_or(effective_abi as i32),
        _ => 0,
    }
}

/// Returns why Landlock cannot confine a command with access to `network`, or `None` if it can.
pub(super) fn lacks(network: &CommandNetwork) -> Option<String> {
    let (needed, what) = match network {
        CommandNetwork::NoTcp | CommandNetwork::Ports(_) => (TCP, "rules about TCP"),
        CommandNetwork::Off | CommandNetwork::On => (FILES, "rules about all changes of files"),
    };
    match version() {
        0 => Some("this kernel has no Landlock, or it is not enabled".to_owned()),
        has if has < needed as i32 => Some(format!(
            "this kernel has version {has} of Landlock, and {what} need version {}",
            needed as i32
        )),
        _ => None,
    }
}

/// Confines this process and its descendants to the files of `confinement`, to `home`, and to the
/// process's own entries in /proc.
///
/// # Errors
/// If any rule is unavailable. No rule is silently omitted.
pub(super) fn restrict(confinement: &Confinement, home: &Path) -> Result<(), String> {
    let mut allowed = Vec::new();
    for place in &confinement.read {
        allowed.push(beneath(&place.real, AccessFs::from_read(MOST))?);
    }
    let written = confinement.write.iter().map(|place| place.real.as_path());
    for path in written.chain([home, Path::new("/dev/null")]) {
        allowed.push(beneath(path, AccessFs::from_all(MOST))?);
    }
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let own = own_proc().iter().map(|path| beneath(Path::new(path), read));
    allowed.extend(own.flatten());
    let status = enforce(&confinement.network, allowed).map_err(|e| format!("Landlock: {e}"))?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err("Landlock: the rules did not come into force".to_owned());
    }
    Ok(())
}

/// Applies the rules: the files `allowed` and the allowed parts of `network`.
fn enforce(
    network: &CommandNetwork,
    allowed: Vec<PathBeneath<OwnedFd>>,
) -> Result<RestrictionStatus, RulesetError> {
    let tcp = AccessNet::BindTcp | AccessNet::ConnectTcp;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(FILES))?;
    match network {
        CommandNetwork::On => {}
        CommandNetwork::NoTcp | CommandNetwork::Ports(_) => rules = rules.handle_access(tcp)?,
        // The network namespace has no way out. With this rule, connecting fails with a permission
        // error.
        CommandNetwork::Off => {
            rules = rules
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(tcp)?;
        }
    }
    let ports = match network {
        CommandNetwork::Ports(ports) => &ports[..],
        _ => &[],
    };
    let connect = |port: &u16| Ok::<_, RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp));
    rules
        // These apply where the kernel supports them.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(MOST))?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .create()?
        .add_rules(allowed.into_iter().map(Ok::<_, RulesetError>))?
        .add_rules(ports.iter().map(connect))?
        .restrict_self()
}

/// Returns a rule that allows `access` to a file, or to a folder and everything below it.
fn beneath(path: &Path, access: BitFlags<AccessFs>) -> Result<PathBeneath<OwnedFd>, String> {
    let error = |e: Errno| format!("{}: {e}", path.display());
    let fd = open(path).map_err(error)?;
    let stat = rustix::fs::fstat(&fd).map_err(error)?;
    let is_folder =
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory;
    let access = if is_folder {
        access
    } else {
        access & AccessFs::from_file(MOST)
    };
    Ok(PathBeneath::new(fd, access).set_compatibility(CompatLevel::BestEffort))
}

/// Opens a path that was checked before; a symbolic link put there since is an error. `/proc/self`
/// is always a link.
fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let links = if path.starts_with("/proc") {
        ResolveFlags::empty()
    } else {
        ResolveFlags::NO_SYMLINKS
    };
    openat2(
        rustix::fs::CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        links,
    )
}

/// Returns what a command may read in /proc: everything if its /proc shows only its own processes,
/// otherwise its own folder and the files that describe the machine.
fn own_proc() -> &'static [&'static str] {
    match std::fs::read_link("/proc/self") {
        Ok(number) if number == Path::new("1") => &["/proc"],
        _ => &[
            "/proc/self",
            "/proc/cpuinfo",
            "/proc/meminfo",
            "/proc/stat",
            "/proc/uptime",
            "/proc/loadavg",
            "/proc/version",
        ],
    }
}

// What a process gives up before Landlock's rules apply: the network and root's capabilities.

/// Moves this process into a network namespace with only an unused loopback interface, which no
/// protocol can leave. Abstract UNIX sockets are separated too. A command that may use part of the
/// network keeps the network of this process; for one that may use no TCP, a namespace is tried.
/// System V shared memory and message queues would outlive the command, so they get their own
/// namespace where possible.
///
/// # Errors
/// If the network must be off and a network namespace is unavailable.
pub(super) fn leave(network: &CommandNetwork) -> Result<(), String> {
    let (both, ipc) = (
        CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC,
        CloneFlags::CLONE_NEWIPC,
    );
    match network {
        CommandNetwork::Off => {
            enter(both).map_err(|e| format!("network namespaces are unavailable: {e}"))
        }
        // The rules about TCP apply even without the namespace.
        CommandNetwork::NoTcp => enter(both).or(Ok(())),
        CommandNetwork::On | CommandNetwork::Ports(_) => enter(ipc).or(Ok(())),
    }
}

/// Enters new namespaces, inside a new user namespace if this user lacks the privilege.
fn enter(namespaces: CloneFlags) -> Result<(), String> {
    match unshare(namespaces) {
        Ok(()) => return Ok(()),
        Err(nix::Error::EPERM) => {}
        Err(e) => return Err(e.to_string()),
    }
    let user = getuid().as_raw();
    let group = getgid().as_raw();
    unshare(CloneFlags::CLONE_NEWUSER | namespaces).map_err(|e| e.to_string())?;
    map_user(user, group)
}

/// Drops all capabilities. A program executed next gains none, because [`restrict`] sets
/// `no_new_privs`.
///
/// # Errors
/// If the system refuses.
pub(super) fn drop_capabilities() -> Result<(), String> {
    let none = CapabilitySet::empty();
    // Without support for ambient capabilities, clearing the permitted ones is enough.
    let _ = clear_ambient_capability_set();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
    .map_err(|e| format!("the capabilities cannot be dropped: {e}"))
}
