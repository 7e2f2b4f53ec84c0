//! What a process gives up before Landlock's rules apply: the network, and the powers of root.

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use rustix::process::{DumpableBehavior, getgid, getuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
};
use tool::Network;

/// Puts this process into a network namespace without any interface but an idle loopback: no
/// protocol leads out of it. Abstract UNIX sockets belong to it, too. Where the command may use a
/// part of the network, it keeps that of this process; where it may use no TCP, a namespace is
/// tried. System V shared memory and message queues get a namespace of their own where one can be
/// had: they would outlive the command.
///
/// # Errors
/// The network is to be off, and no such namespace can be had.
pub fn leave(network: &Network) -> Result<(), String> {
    let (both, ipc) = (
        CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC,
        CloneFlags::CLONE_NEWIPC,
    );
    match network {
        Network::Off => enter(both).map_err(|e| format!("a network namespace cannot be had: {e}")),
        // The rules about TCP hold without it.
        Network::NoTcp => enter(both).or(Ok(())),
        Network::On | Network::Ports(_) => enter(ipc).or(Ok(())),
    }
}

/// Enters new namespaces; an ordinary user needs a user namespace around them.
fn enter(namespaces: CloneFlags) -> Result<(), String> {
    match unshare(namespaces) {
        Ok(()) => return Ok(()),
        Err(Errno::EPERM) => {}
        Err(e) => return Err(e.to_string()),
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    // The files below belong to root in a process that is not dumpable.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(|e| e.to_string())?;
    unshare(CloneFlags::CLONE_NEWUSER | namespaces).map_err(|e| e.to_string())?;
    // The same user and group inside as outside (user_namespaces(7)).
    let map = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in map {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(|e| format!("/proc/self/{file}: {e}"))?;
    }
    Ok(())
}

/// Gives up every capability of root. What is executed next gains none, because
/// [`super::rules::restrict`] sets `no_new_privs`.
///
/// # Errors
/// When the system refuses.
pub fn drop_capabilities() -> Result<(), String> {
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
