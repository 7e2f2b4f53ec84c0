//! The capabilities of a launch stage, which mounts, and of its command, which has none of that.

use rustix::thread::{
    CapabilitySet, capabilities, clear_ambient_capability_set, configure_capability_in_ambient_set,
    set_capabilities,
};

/// Lets the next program that this process starts mount in its user namespace: without the ambient
/// set (capabilities(7)) only user 0 keeps a capability over execve(2).
pub fn pass_on_mounting() -> std::io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets)?;
    Ok(configure_capability_in_ambient_set(
        CapabilitySet::SYS_ADMIN,
        true,
    )?)
}

/// Takes [`pass_on_mounting`] back: the command, and what it starts, get no capability from this
/// process.
pub fn keep_to_itself() {
    let _ = clear_ambient_capability_set(); // fails only on systems without it
    if let Ok(mut sets) = capabilities(None) {
        sets.inheritable -= CapabilitySet::SYS_ADMIN;
        let _ = set_capabilities(None, sets); // lowering is never refused
    }
}
