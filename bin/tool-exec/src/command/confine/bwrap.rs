//! The command line of bubblewrap (bwrap(1)), which gives a command a root folder with only what it
//! may access.

use super::{Confined, Confinement, HostPath};
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::Path;
use tool::CommandNetwork;

/// Returns the options that confine `confined`; its command line follows them. Standard streams,
/// environment and limits are inherited unchanged. `filter` is the descriptor of an open file with
/// the system call filter.
pub(super) fn arguments(
    confinement: &Confinement,
    confined: &Confined<'_>,
    filter: RawFd,
) -> Vec<OsString> {
    let mut line = CommandLine(Vec::new());
    line.words(&["--seccomp", &filter.to_string()]);
    line.words(&[
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]);
    if confinement.network == CommandNetwork::On {
        line.words(&["--share-net"]);
    }
    // Later mounts cover earlier ones: the in-memory folders come before the listed paths, which
    // may be inside them.
    line.words(&["--proc", "/proc", "--dev", "/dev"]);
    for folder in ["/dev/shm", "/tmp"] {
        line.words(&["--size", &confined.room.to_string(), "--tmpfs", folder]);
    }
    line.words(&["--bind"]);
    line.path(confined.home);
    line.path(confined.home);
    for (how, places) in [
        ("--ro-bind", &confinement.read),
        ("--bind", &confinement.write),
    ] {
        for (real, name) in mounts(places, confinement) {
            line.words(&[how]);
            line.path(real);
            line.path(name);
        }
    }
    // A working folder that the command may not read exists, but is empty.
    let cwd = confined
        .cwd
        .canonicalize()
        .unwrap_or_else(|_| confined.cwd.to_owned());
    line.words(&["--dir"]);
    line.path(&cwd);
    line.words(&["--chdir"]);
    line.path(&cwd);
    // The root and /dev are in memory too, without a size limit. A command run by root could write
    // to the system's settings in /proc/sys, because bubblewrap covers only a part of /proc.
    line.words(&[
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/proc",
        "--remount-ro",
        "/",
        "--",
    ]);
    line.0
}

/// Returns what to mount and where: each place at its own path, and at the name by which the
/// command knows it, unless that name is a link in a folder that is mounted anyway. Each folder
/// precedes its content, because bubblewrap mounts in the given order.
fn mounts<'a>(places: &'a [HostPath], confinement: &Confinement) -> Vec<(&'a Path, &'a Path)> {
    let all = || confinement.read.iter().chain(&confinement.write);
    let is_shown = |path: &Path| {
        let above = |folder: &Path| {
            path.parent()
                .is_some_and(|parent| parent.starts_with(folder))
        };
        all().any(|place| above(&place.real) || above(&place.name))
    };
    let names = places
        .iter()
        .filter(|place| place.name != place.real && !is_shown(&place.name));
    let names = names.map(|place| (place.real.as_path(), place.name.as_path()));
    let mut found: Vec<_> = places
        .iter()
        .map(|place| (place.real.as_path(), place.real.as_path()))
        .chain(names)
        .collect();
    found.sort_unstable_by_key(|(_, shown)| *shown);
    found.dedup();
    found
}

/// A command line under construction.
struct CommandLine(Vec<OsString>);

impl CommandLine {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn path(&mut self, path: &Path) {
        self.0.push(path.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_mounted_before_what_is_below_it_and_a_link_only_where_it_is_not_shown() {
        let place = |name: &str, real: &str| HostPath {
            name: name.into(),
            real: real.into(),
        };
        let read = vec![
            place("/bin", "/usr/bin"),
            place("/etc/a", "/run/a"),
            place("/etc", "/etc"),
            place("/usr", "/usr"),
        ];
        let confinement = Confinement {
            read: read.clone(),
            ..Confinement::default()
        };
        let shown: Vec<_> = mounts(&read, &confinement)
            .into_iter()
            .map(|(real, name)| (real.to_str(), name.to_str()))
            .collect();
        let want = [
            ("/usr/bin", "/bin"),
            ("/etc", "/etc"),
            ("/run/a", "/run/a"),
            ("/usr", "/usr"),
            ("/usr/bin", "/usr/bin"),
        ];
        assert_eq!(shown, want.map(|(real, name)| (Some(real), Some(name))));
    }
}
