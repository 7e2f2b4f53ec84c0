//! The users that a test runs as: this one, and where that is root an ordinary one too.

use super::{Dir, needs};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// An ordinary user of every system: nobody.
const NOBODY: &str = "65534";

/// Who a test runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    This,
    Nobody,
}

pub(crate) fn is_root() -> bool {
    String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout)
        .unwrap()
        .trim()
        == "0"
}

/// A folder that every user may use.
pub(crate) fn open_dir() -> Dir {
    let dir = Dir::new();
    std::fs::set_permissions(dir.path("."), PermissionsExt::from_mode(0o777)).unwrap();
    dir
}

/// The same command as another user; with a copy of the program, which that user can reach.
pub(crate) fn as_user(user: User, dir: &Dir, mut command: Command) -> Command {
    // The folder is open to every user, so that nothing but a sandbox keeps a command out.
    command.arg("--trust");
    if user == User::This {
        return command;
    }
    let program = dir.path("tool-exec");
    // By a process of its own: a file that this one writes is busy while another test forks.
    assert!(
        Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_tool-exec"))
            .arg(&program)
            .status()
            .unwrap()
            .success()
    );
    let mut other = Command::new("setpriv");
    other
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(program)
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        other.env(name, value.unwrap_or_default());
    }
    other.current_dir(command.get_current_dir().unwrap());
    other
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    other
}

/// The users that a test can run as. Root of a user namespace cannot become another one.
pub(crate) fn users() -> Vec<User> {
    let becomes = |mut command: Command| command.output().is_ok_and(|out| out.status.success());
    let mut trial = Command::new("setpriv");
    trial.args([
        "--reuid",
        NOBODY,
        "--regid",
        NOBODY,
        "--clear-groups",
        "true",
    ]);
    if is_root() && needs::programs(&["setpriv"]) && becomes(trial) {
        vec![User::This, User::Nobody]
    } else {
        vec![User::This]
    }
}
