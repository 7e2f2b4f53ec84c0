//! Where control groups can be made: the folders of /sys/fs/cgroup that belong to this process
//! (cgroups(7)).

use std::path::{Path, PathBuf};

/// What a group limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Memory of all processes together, with shared mappings, files in memory and the system's
    /// caches of files.
    Memory,
    /// How many processes and threads there are.
    Processes,
}

/// The version of control groups: its files differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

impl Controller {
    /// Its name in the system.
    pub fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Processes => "pids",
        }
    }

    /// The file in which a group of that version has the limit.
    pub fn file(self, version: Version) -> &'static str {
        match (self, version) {
            (Controller::Memory, Version::One) => "memory.limit_in_bytes",
            (Controller::Memory, Version::Two) => "memory.max",
            (Controller::Processes, _) => "pids.max",
        }
    }
}

/// Folders in which a group of this process may be made, the best first. Whether one can be made
/// there is known once it is tried.
pub fn folders(controller: Controller) -> Vec<(Version, PathBuf)> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    parse(
        controller,
        &read("/proc/self/mountinfo"),
        &read("/proc/self/cgroup"),
    )
}

/// As [`folders`], from the texts of `/proc/self/mountinfo` (proc_pid_mountinfo(5)) and
/// `/proc/self/cgroup` (cgroups(7)).
fn parse(controller: Controller, mounts: &str, groups: &str) -> Vec<(Version, PathBuf)> {
    let own = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then_some(path)
        })
    };
    let has = |list: &str| list.split(',').any(|name| name == controller.name());
    let mut found = Vec::new();
    for line in mounts.lines() {
        // "id parent device root point options … - type source super-options"
        let Some((mount, kind)) = line.split_once(" - ") else {
            continue;
        };
        let (mount, kind): (Vec<&str>, Vec<&str>) =
            (mount.split(' ').collect(), kind.split(' ').collect());
        let (Some(root), Some(point), Some(name), Some(options)) =
            (mount.get(3), mount.get(4), kind.first(), kind.get(2))
        else {
            continue;
        };
        let (version, path) = match *name {
            "cgroup" if has(options) => (Version::One, own(&|list| has(list))),
            "cgroup2" => (Version::Two, own(&str::is_empty)),
            _ => continue,
        };
        let Some(path) = path.and_then(|path| Path::new(path).strip_prefix(root).ok()) else {
            continue;
        };
        let folder = Path::new(point).join(path);
        match version {
            Version::One => found.insert(0, (version, folder)),
            // A group with processes cannot give its controllers to groups below it; a group beside
            // it can have them.
            Version::Two => found.extend(
                folder
                    .ancestors()
                    .take_while(|above| above.starts_with(point))
                    .map(|above| (version, above.to_owned())),
            ),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found_where_they_are_mounted() {
        let mounts = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
            36 31 0:33 /docker/1 /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,cpu,pids\n\
            37 31 0:34 / /proc rw - proc proc rw\nnot a mount\n";
        let groups = "8:pids,cpu:/docker/1/app\n4:memory:/user\n0::/\n";
        let paths = |controller, mounts, groups| {
            parse(controller, mounts, groups)
                .into_iter()
                .map(|(_, path)| path.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            paths(Controller::Memory, mounts, groups),
            ["/sys/fs/cgroup/memory/user"]
        );
        assert_eq!(
            paths(Controller::Processes, mounts, groups),
            ["/sys/fs/cgroup/pids/app"]
        );
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let groups = "0::/user.slice/app.slice/x.scope\n";
        let want = [
            "/sys/fs/cgroup/user.slice/app.slice/x.scope",
            "/sys/fs/cgroup/user.slice/app.slice",
            "/sys/fs/cgroup/user.slice",
            "/sys/fs/cgroup",
        ];
        assert_eq!(paths(Controller::Memory, mounts, groups), want);
        assert!(paths(Controller::Memory, "", "").is_empty());
    }
}
