//! A control group for one call: limits on all of its processes together. It counts what no limit
//! on a single process counts: shared mappings, in-memory files (memfd, tmpfs), and processes that
//! the command's children start.
//!
//! Moving a process into a group takes about ten milliseconds, so a call has a group only if its
//! tool asks for a limit.

use group::descent::Process;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The prefix of all group names. The PID namespace, the process id and the start time of the owner
/// follow.
const PREFIX: &str = "tool-exec-";
/// How long to keep trying to remove a group whose processes were killed.
const REMOVAL: Duration = Duration::from_secs(1);
/// Time between two attempts.
const ROUND: Duration = Duration::from_millis(2);

/// Limits on all processes of a call together. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupLimits {
    /// Memory in bytes, including swap.
    pub memory: Option<u64>,
    /// Number of processes and threads.
    pub processes: Option<u64>,
}

/// A control group of this process, initially empty. On drop, its processes are killed and the
/// group is removed.
#[derive(Debug)]
pub(crate) struct CallGroup {
    folders: Vec<(Controller, GroupsVersion, PathBuf)>,
}

impl CallGroup {
    /// Creates a group with these limits. A limit that the system does not support is omitted.
    /// Returns `None` if all are omitted.
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

    /// Adds a process to the group; its children join it too. Returns whether every part of the
    /// group accepted the process.
    pub(crate) fn add(&self, pid: u32) -> bool {
        self.folders
            .iter()
            .all(|(_, _, folder)| write(&folder.join("cgroup.procs"), &pid.to_string()))
    }

    /// Whether the group limits this resource.
    pub(crate) fn limits(&self, controller: Controller) -> bool {
        self.folders
            .iter()
            .any(|(limited, _, _)| *limited == controller)
    }

    /// Kills all processes of the group.
    pub(crate) fn kill(&self) {
        self.folders
            .iter()
            .for_each(|(_, _, folder)| kill_all(folder));
    }

    /// Whether the system has killed a process of the group because the group ran out of memory.
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

/// Creates the folder of a group with one limit. Returns whether the limit is in force.
fn make(controller: Controller, version: GroupsVersion, folder: &Path, limit: u64) -> bool {
    // Both limits of a call may be in the same folder.
    if !folder.is_dir() && std::fs::create_dir(folder).is_err() {
        return false;
    }
    if !write(&folder.join(controller.file(version)), &limit.to_string()) {
        let _ = std::fs::remove_dir(folder); // fails if the folder holds the other limit
        return false;
    }
    if controller == Controller::Memory {
        // Without these, excess memory would go to swap. Systems without swap do not have these
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

/// Kills every process of a group: all at once if the system supports it (Linux 5.14), otherwise
/// the processes present now.
fn kill_all(folder: &Path) {
    if write(&folder.join("cgroup.kill"), "1") {
        return;
    }
    for pid in std::fs::read_to_string(folder.join("cgroup.procs"))
        .unwrap_or_default()
        .lines()
    {
        if let Some(pid) = pid.parse().ok().and_then(rustix::process::Pid::from_raw) {
            // Fails if the process has already exited.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Removes a group after killing its processes.
fn remove(folder: &Path) {
    let until = Instant::now() + REMOVAL;
    while std::fs::remove_dir(folder).is_err_and(|e| e.kind() != std::io::ErrorKind::NotFound)
        && Instant::now() < until
    {
        kill_all(folder);
        std::thread::sleep(ROUND);
    }
}

/// Returns an identifier of this process that stays unique while the system runs: PID namespace,
/// process id and start time.
fn owner() -> Option<String> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    Some(format!("{}-{pid}-{}", namespace()?, start(pid)?))
}

/// Returns the number of this process's PID namespace.
fn namespace() -> Option<String> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(
        link.to_str()?
            .trim_start_matches("pid:[")
            .trim_end_matches(']')
            .to_owned(),
    )
}

/// Returns the start time of a process, see [`Process::start`].
fn start(pid: i32) -> Option<u64> {
    Process::of(pid).map(|process| process.start)
}

/// Removes groups whose owners were killed before they could. Only groups of this PID namespace are
/// considered, since process ids of other namespaces mean nothing here.
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

/// Whether `name` is that of a group whose owner has ended.
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

// The places for control groups: the folders in /sys/fs/cgroup that belong to this process
// (cgroups(7)).

/// A resource that a group limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    /// Memory of all processes together, including shared mappings, in-memory files and file
    /// caches.
    Memory,
    /// Number of processes and threads.
    Processes,
}

/// The version of control groups. The versions use different files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupsVersion {
    /// One hierarchy per controller.
    One,
    /// One hierarchy for all controllers.
    Two,
}

impl Controller {
    /// Returns the kernel's name for the controller.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Processes => "pids",
        }
    }

    /// Returns the name of the file that holds the limit in this version.
    pub(crate) fn file(self, version: GroupsVersion) -> &'static str {
        match (self, version) {
            (Controller::Memory, GroupsVersion::One) => "memory.limit_in_bytes",
            (Controller::Memory, GroupsVersion::Two) => "memory.max",
            (Controller::Processes, _) => "pids.max",
        }
    }
}

/// Returns folders in which this process may be able to create a group, best first. Only an attempt
/// shows whether it can.
pub(crate) fn folders(controller: Controller) -> Vec<(GroupsVersion, PathBuf)> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    parse(
        controller,
        &read("/proc/self/mountinfo"),
        &read("/proc/self/cgroup"),
    )
}

/// Like [`folders`], from the contents of `/proc/self/mountinfo` (proc_pid_mountinfo(5)) and
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
            // A group that contains processes cannot pass its controllers on to child groups; its
            // siblings and ancestors can have them.
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
