//! A control group for one call: limits for all of its processes together. The system counts in it
//! what no limit of a single process counts: shared mappings, files in memory (memfd, tmpfs), and
//! processes that the command's children start.
//!
//! To move a process into a group takes the system about ten milliseconds, so a call has one only
//! if its tool asks for a limit.

use group::descent::Process;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The beginning of the names of all groups. The namespace, the number and the start of the process
/// that owns it follow.
const PREFIX: &str = "tool-exec-";
/// How long to try to remove a group whose processes were killed.
const REMOVAL: Duration = Duration::from_secs(1);
/// How long to wait before trying again.
const ROUND: Duration = Duration::from_millis(2);

/// Limits for all processes of a call together. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupLimits {
    /// Memory, in bytes; swapped memory counts.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
}

/// A control group of this process, empty at first. It is removed, with what runs in it, when this
/// is dropped.
#[derive(Debug)]
pub(crate) struct CallGroup {
    folders: Vec<(Controller, GroupsVersion, PathBuf)>,
}

impl CallGroup {
    /// Makes a group under these limits. A limit that no group can have here is left out; `None`:
    /// all of them are.
    pub(crate) fn make(limits: &GroupLimits) -> Option<Self> {
        let mut group = CallGroup {
            folders: Vec::new(),
        };
        let name = format!("{PREFIX}{}", owner()?);
        for (controller, limit) in [
            (Controller::Memory, limits.memory),
            (Controller::Processes, limits.processes),
        ] {
            let Some(limit) = limit else { continue };
            let made = folders(controller)
                .into_iter()
                .find_map(|(version, above)| {
                    let folder = above.join(&name);
                    make(controller, version, &folder, limit)
                        .then_some((controller, version, folder))
                });
            group.folders.extend(made);
        }
        (!group.folders.is_empty()).then_some(group)
    }

    /// Puts a process into the group; what it starts is in it, too. Returns whether each part of
    /// the group has it.
    pub(crate) fn add(&self, pid: u32) -> bool {
        self.folders
            .iter()
            .all(|(_, _, folder)| write(&folder.join("cgroup.procs"), &pid.to_string()))
    }

    /// Whether the group has a limit of this.
    pub(crate) fn limits(&self, controller: Controller) -> bool {
        self.folders
            .iter()
            .any(|(limited, _, _)| *limited == controller)
    }

    /// Kills what is in the group.
    pub(crate) fn kill(&self) {
        self.folders
            .iter()
            .for_each(|(_, _, folder)| kill_all(folder));
    }

    /// Whether the system has killed a process of the group because its memory was used up.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let counts = self
            .folders
            .iter()
            .filter(|(controller, _, _)| *controller == Controller::Memory);
        counts.into_iter().any(|(_, version, folder)| {
            let file = if *version == GroupsVersion::One {
                "memory.oom_control"
            } else {
                "memory.events"
            };
            let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            text.lines().any(|line| {
                line.strip_prefix("oom_kill ")
                    .is_some_and(|count| count.trim() != "0")
            })
        })
    }
}

impl Drop for CallGroup {
    fn drop(&mut self) {
        self.folders
            .iter()
            .for_each(|(_, _, folder)| remove(folder));
    }
}

/// Makes the folder of a group with one limit.
fn make(controller: Controller, version: GroupsVersion, folder: &Path, limit: u64) -> bool {
    // Both limits of one call may be in one folder.
    if !folder.is_dir() && std::fs::create_dir(folder).is_err() {
        return false;
    }
    if !write(&folder.join(controller.file(version)), &limit.to_string()) {
        let _ = std::fs::remove_dir(folder); // fails where the other limit is in it
        return false;
    }
    if controller == Controller::Memory {
        // Without these the rest would go to the swap space. Systems without one do not have the
        // files.
        match version {
            GroupsVersion::One => write(
                &folder.join("memory.memsw.limit_in_bytes"),
                &limit.to_string(),
            ),
            GroupsVersion::Two => {
                write(&folder.join("memory.swap.max"), "0")
                    && write(&folder.join("memory.oom.group"), "1")
            }
        };
    }
    true
}

fn write(file: &Path, text: &str) -> bool {
    std::fs::OpenOptions::new()
        .write(true)
        .open(file)
        .is_ok_and(|mut f| std::io::Write::write_all(&mut f, text.as_bytes()).is_ok())
}

/// Kills every process of a group: all at once where the system can (Linux 5.14), else those that
/// are there now.
fn kill_all(folder: &Path) {
    if write(&folder.join("cgroup.kill"), "1") {
        return;
    }
    for pid in std::fs::read_to_string(folder.join("cgroup.procs"))
        .unwrap_or_default()
        .lines()
    {
        if let Some(pid) = pid.parse().ok().and_then(rustix::process::Pid::from_raw) {
            // Fails where it has ended.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Removes a group, and ends what is in it.
fn remove(folder: &Path) {
    let until = Instant::now() + REMOVAL;
    while std::fs::remove_dir(folder).is_err_and(|e| e.kind() != std::io::ErrorKind::NotFound)
        && Instant::now() < until
    {
        kill_all(folder);
        std::thread::sleep(ROUND);
    }
}

/// What tells this process from all others while the system runs: its PID namespace, its number
/// there, and when it started.
fn owner() -> Option<String> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    Some(format!("{}-{pid}-{}", namespace()?, start(pid)?))
}

/// The number of the PID namespace of this process.
fn namespace() -> Option<String> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(
        link.to_str()?
            .trim_start_matches("pid:[")
            .trim_end_matches(']')
            .to_owned(),
    )
}

/// The start time of a process, see [`Process::start`].
fn start(pid: i32) -> Option<u64> {
    Process::of(pid).map(|process| process.start)
}

/// Removes the groups of owners that were killed before they could: those of this PID namespace
/// alone, since the numbers of others mean nothing here.
pub(crate) fn sweep() {
    let Some(namespace) = namespace() else { return };
    for controller in [Controller::Memory, Controller::Processes] {
        for (_, above) in folders(controller) {
            let entries = std::fs::read_dir(above).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| {
                entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| is_left(name, &namespace))
            }) {
                remove(&entry.path());
            }
        }
    }
}

/// Whether this is the name of a group whose owner has ended.
fn is_left(name: &str, namespace: &str) -> bool {
    let Some(owner) = name.strip_prefix(PREFIX) else {
        return false;
    };
    let parts: Vec<&str> = owner.split('-').collect();
    let [theirs, pid, began] = parts[..] else {
        return false;
    };
    let (Ok(pid), Ok(began)) = (pid.parse::<i32>(), began.parse::<u64>()) else {
        return false;
    };
    theirs == namespace && start(pid) != Some(began)
}

// Where control groups can be made: the folders of /sys/fs/cgroup that belong to this process
// (cgroups(7)).

/// What a group limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    /// Memory of all processes together, with shared mappings, files in memory and the system's
    /// caches of files.
    Memory,
    /// How many processes and threads there are.
    Processes,
}

/// The version of control groups: its files differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupsVersion {
    /// A hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

impl Controller {
    /// Its name in the system.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Processes => "pids",
        }
    }

    /// The file in which a group of that version has the limit.
    pub(crate) fn file(self, version: GroupsVersion) -> &'static str {
        match (self, version) {
            (Controller::Memory, GroupsVersion::One) => "memory.limit_in_bytes",
            (Controller::Memory, GroupsVersion::Two) => "memory.max",
            (Controller::Processes, _) => "pids.max",
        }
    }
}

/// Folders in which a group of this process may be made, the best first. Whether one can be made
/// there is known once it is tried.
pub(crate) fn folders(controller: Controller) -> Vec<(GroupsVersion, PathBuf)> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    parse(
        controller,
        &read("/proc/self/mountinfo"),
        &read("/proc/self/cgroup"),
    )
}

/// As [`folders`], from the texts of `/proc/self/mountinfo` (proc_pid_mountinfo(5)) and
/// `/proc/self/cgroup` (cgroups(7)).
fn parse(controller: Controller, mounts: &str, groups: &str) -> Vec<(GroupsVersion, PathBuf)> {
    let own = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            let path = parts.next()?;
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
            "cgroup" if has(options) => (GroupsVersion::One, own(&|list| has(list))),
            "cgroup2" => (GroupsVersion::Two, own(&str::is_empty)),
            _ => continue,
        };
        let Some(path) = path.and_then(|path| Path::new(path).strip_prefix(root).ok()) else {
            continue;
        };
        let folder = Path::new(point).join(path);
        match version {
            GroupsVersion::One => found.insert(0, (version, folder)),
            // A group with processes cannot give its controllers to groups below it; a group beside
            // it can have them.
            GroupsVersion::Two => found.extend(
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
    fn a_group_is_left_when_its_owner_has_ended() {
        let own = owner().unwrap();
        let namespace = namespace().unwrap();
        assert!(!is_left(&format!("{PREFIX}{own}"), &namespace));
        let pid = std::process::id();
        assert!(is_left(&format!("{PREFIX}{namespace}-{pid}-1"), &namespace));
        assert!(
            !is_left(&format!("{PREFIX}1-{pid}-1"), &namespace),
            "another namespace"
        );
        assert!(!is_left("tool-exec-x", &namespace) && !is_left("user.slice", &namespace));
    }
}

#[cfg(test)]
mod hierarchy_tests {
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
