//! Landlock: rules of the kernel about what a process and all that it starts may reach
//! (landlock(7)).
//!
//! What each version of it ("ABI") covers: 1 files, 2 renaming between folders, 3 truncation, 4
//! TCP, 5 device ioctls, 6 signals and abstract UNIX sockets, 9 UNIX sockets with a path. It knows
//! ports, not hosts. UDP is covered by 10, which is not used: a network namespace covers all
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

/// What every sandbox needs: before it a command could truncate any file.
const FILES: ABI = ABI::V3;
/// What rules about TCP need.
const TCP: ABI = ABI::V4;
/// What is used where the kernel has it.
const MOST: ABI = ABI::V9;

/// The version of Landlock in this kernel, as far as this program knows it; 0 without.
pub(crate) fn version() -> i32 {
    // Without a flag this asks for the version and restricts nothing.
    let status = RestrictSelf::default().no_new_privs(false).apply();
    match status.map(|status| status.landlock) {
        Ok(LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        }) => kernel_abi.unwrap_or(effective_abi as i32),
        _ => 0,
    }
}

/// Why Landlock cannot confine a command that may use `network`; `None`: it can.
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

/// Confines this process, and all that it starts, to the files of `confinement`, `home` and what
/// belongs to the process itself.
///
/// # Errors
/// A rule that cannot be had, in words. None is left out.
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

/// Puts the rules into force: what is `allowed` of files, and what `network` allows.
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
        // The network namespace has no way out; with this rule a connection fails as one that is
        // not allowed.
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
        // These hold where the kernel has them.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(MOST))?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .create()?
        .add_rules(allowed.into_iter().map(Ok::<_, RulesetError>))?
        .add_rules(ports.iter().map(connect))?
        .restrict_self()
}

/// A rule that allows `access` to a file, or to a folder and all below it.
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

/// Opens a place as it was when it was checked: a symbolic link that was put there since is an
/// error. `/proc/self` is one by nature.
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

/// What a command may read of /proc: all of one that shows only its own processes; else its own
/// folder, and what describes the machine.
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

// What a process gives up before Landlock's rules apply: the network, and the powers of root.

/// Puts this process into a network namespace without any interface but an idle loopback: no
/// protocol leads out of it. Abstract UNIX sockets belong to it, too. Where the command may use a
/// part of the network, it keeps that of this process; where it may use no TCP, a namespace is
/// tried. System V shared memory and message queues get a namespace of their own where one can be
/// had: they would outlive the command.
///
/// # Errors
/// The network is to be off, and no such namespace can be had.
pub(super) fn leave(network: &CommandNetwork) -> Result<(), String> {
    let (both, ipc) = (
        CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC,
        CloneFlags::CLONE_NEWIPC,
    );
    match network {
        CommandNetwork::Off => {
            enter(both).map_err(|e| format!("network namespaces are unavailable: {e}"))
        }
        // The rules about TCP hold without it.
        CommandNetwork::NoTcp => enter(both).or(Ok(())),
        CommandNetwork::On | CommandNetwork::Ports(_) => enter(ipc).or(Ok(())),
    }
}

/// Enters new namespaces; an ordinary user needs a user namespace around them.
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

/// Gives up every capability of root. What is executed next gains none, because
/// [`restrict`] sets `no_new_privs`.
///
/// # Errors
/// When the system refuses.
pub(super) fn drop_capabilities() -> Result<(), String> {
    let none = CapabilitySet::empty();
    // Empty with the permitted ones, where the system knows no ambient ones.
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
