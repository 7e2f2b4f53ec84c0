//! Who answers.

use nix::unistd::{Uid, User};

/// The name of the user who runs this process, or the user's number where the system knows no name.
pub fn name() -> String {
    let user = Uid::current();
    User::from_uid(user)
        .ok()
        .flatten()
        .map_or_else(|| user.to_string(), |user| user.name)
}
