//! What a command may read besides its lists: what programs need to run at all, the program itself
//! and its working folder.

use super::place::Place;
use std::path::{Path, PathBuf};
use tool::{Network, SandboxKind};

/// Programs, libraries and their settings.
const SYSTEM: [&str; 10] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix",
];
/// Devices without a state. Under bubblewrap a command has its own.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// What every command may read and execute under this kind of sandbox.
pub fn system(kind: SandboxKind, network: &Network) -> Vec<Place> {
    let devices = DEVICES.iter().filter(|_| kind == SandboxKind::Landlock);
    // The file with the name servers, which is often a link to a file of a service.
    let servers = ["/etc/resolv.conf"]
        .into_iter()
        .filter(|_| matches!(network, Network::On | Network::Ports(_)));
    let all = SYSTEM.iter().chain(devices).copied().chain(servers);
    all.filter_map(|path| Place::find(Path::new(path)).ok())
        .collect()
}

/// What a command may read of where it is: its program, the folder of a program that its tool names
/// by a path, and its working folder. A folder that holds a person's home is not among them: a
/// command that needs one names what it reads.
pub fn surroundings(program: &Path, is_path: bool, cwd: &Path) -> Vec<Place> {
    let folder = program.parent().filter(|_| is_path);
    let folders = folder
        .into_iter()
        .chain([cwd])
        .filter(|folder| !holds_home(folder));
    [program]
        .into_iter()
        .chain(folders)
        .filter_map(|path| Place::find(path).ok())
        .collect()
}

/// Whether the home of this user is in `folder`, or is it.
fn holds_home(folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute());
    let folder = real(folder);
    folder == Path::new("/")
        || folder == Path::new("/home")
        || home.is_some_and(|home| real(&home).starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_what_they_need_and_no_home() {
        let names = |places: Vec<Place>| {
            places
                .into_iter()
                .map(|place| place.name)
                .collect::<Vec<_>>()
        };
        assert!(names(system(SandboxKind::Landlock, &Network::Off)).contains(&"/dev/null".into()));
        assert!(!names(system(SandboxKind::Bwrap, &Network::Off)).contains(&"/dev/null".into()));
        let around = surroundings(Path::new("/bin/sh"), false, Path::new("/"));
        assert_eq!(names(around), [PathBuf::from("/bin/sh")]);
        let around = surroundings(Path::new("/bin/sh"), true, Path::new("/etc"));
        assert_eq!(
            names(around),
            ["/bin/sh", "/bin", "/etc"].map(PathBuf::from)
        );
    }
}
