//! Landlock's signal scope (landlock(7), Linux 6.12): whom a process may signal.

use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};
use rustix::io::Errno;
use rustix::process::{getppid, test_kill_process};

/// Lets this process, and all that it starts, signal nobody but itself and what it starts. Returns
/// whether that is in force, which is tried out on the parent of this process.
pub fn enter() -> bool {
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.restrict_self());
    let is_enforced = restricted.is_ok_and(|status| status.ruleset == RulesetStatus::FullyEnforced);
    is_enforced && getppid().is_some_and(|parent| test_kill_process(parent) == Err(Errno::PERM))
}
