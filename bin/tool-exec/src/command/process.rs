//! A process as `/proc/PID/stat` shows it.

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The number of its parent.
    pub parent: i32,
    /// Its start time, in clock ticks since the system was booted. With the number it names one
    /// process: numbers are used again.
    pub start: u64,
    /// Whether it has ended and its parent has not waited for it.
    pub is_zombie: bool,
}

impl Process {
    /// Reads the process with this number. `None` if no process has it, or if /proc is not mounted.
    pub fn of(pid: i32) -> Option<Process> {
        // "pid (name) state parent …" (proc_pid_stat(5)); the name may hold anything, even
        // brackets.
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let name_end = stat.iter().rposition(|b| *b == b')')?;
        let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Process {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
            is_zombie: *fields.first()? == "Z",
        })
    }
}
