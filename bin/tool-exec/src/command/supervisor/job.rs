//! What a supervisor is sent: one command, and all that limits it.

use crate::command::confine::group::GroupLimits;
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// Limits that the system enforces on each process of a command. `None`: as `tool-exec` itself.
/// None of them is ever raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Processor time, in seconds.
    pub cpu: Option<u64>,
    /// Private memory (`RLIMIT_DATA`), in bytes.
    pub memory: Option<u64>,
    /// Open files.
    pub files: Option<u64>,
    /// Processes and threads of the user.
    pub processes: Option<u64>,
    /// Size of each file that it writes, in bytes.
    pub file_size: Option<u64>,
}

/// One command, and all that limits it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The file of the program.
    pub program: PathBuf,
    /// The command line; the first item is the name under which the program runs.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder that it starts in.
    pub folder: PathBuf,
    /// The folder that is made for it and removed after it; nothing may have that name yet.
    pub home: PathBuf,
    /// How much the home may hold, in bytes, where it can be a file system of its own.
    pub home_size: u64,
    /// What the system limits.
    pub limits: ProcessLimits,
    /// What its processes may use together, where a control group can be made.
    pub together: GroupLimits,
    /// How long it may run; `None`: until it is ended.
    pub deadline: Option<Duration>,
    /// How long it may take to end by itself after SIGTERM, before it is killed.
    pub grace: Duration,
    /// What its sandbox allows, in the form of the sandbox.
    pub confinement: Value,
}

impl Job {
    /// The job as bytes: a JSON object of numbers, then each text of the system (a path, an
    /// argument, a variable) as it is and with a NUL at its end. Those need not be UTF-8, and none
    /// of them can hold a NUL.
    pub fn to_bytes(&self) -> Vec<u8> {
        let limits = &self.limits;
        let head = json!({
            "arguments": self.argv.len(),
            "home_size": self.home_size,
            "limits": [limits.cpu, limits.memory, limits.files, limits.processes, limits.file_size],
            "together": [self.together.memory, self.together.processes],
            "deadline_us": self.deadline.map(micros),
            "grace_us": micros(self.grace),
            "confinement": self.confinement,
        });
        let mut bytes = head.to_string().into_bytes();
        let mut put = |text: &OsStr| {
            bytes.push(0);
            bytes.extend_from_slice(text.as_bytes());
        };
        [
            self.program.as_os_str(),
            self.folder.as_os_str(),
            self.home.as_os_str(),
        ]
        .into_iter()
        .for_each(&mut put);
        self.argv.iter().for_each(|item| put(item));
        for (name, value) in &self.environment {
            put(name);
            put(value);
        }
        bytes
    }

    /// Reads the bytes of [`Job::to_bytes`].
    ///
    /// # Errors
    /// When they are something else.
    pub fn read(bytes: &[u8]) -> std::io::Result<Job> {
        let bad = || Error::from(ErrorKind::InvalidData);
        let mut parts = bytes.split(|b| *b == 0);
        let head: Value = serde_json::from_slice(parts.next().ok_or_else(bad)?)?;
        let mut text = || parts.next().map(|bytes| OsString::from_vec(bytes.to_vec()));
        let [program, folder, home] =
            [text(), text(), text()].map(|path| path.map(PathBuf::from).ok_or_else(bad));
        let arguments = head["arguments"].as_u64().ok_or_else(bad)?;
        let argv = (0..arguments)
            .map(|_| text().ok_or_else(bad))
            .collect::<Result<_, _>>()?;
        let mut environment = Vec::new();
        while let Some(name) = text() {
            environment.push((name, text().ok_or_else(bad)?));
        }
        let limit = |at: usize| head["limits"][at].as_u64();
        Ok(Job {
            program: program?,
            argv,
            environment,
            folder: folder?,
            home: home?,
            home_size: head["home_size"].as_u64().ok_or_else(bad)?,
            limits: ProcessLimits {
                cpu: limit(0),
                memory: limit(1),
                files: limit(2),
                processes: limit(3),
                file_size: limit(4),
            },
            together: GroupLimits {
                memory: head["together"][0].as_u64(),
                processes: head["together"][1].as_u64(),
            },
            deadline: head["deadline_us"].as_u64().map(Duration::from_micros),
            grace: Duration::from_micros(head["grace_us"].as_u64().ok_or_else(bad)?),
            confinement: head["confinement"].clone(),
        })
    }
}

/// Microseconds, at most as many as 64 bits hold: 584,000 years.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_reads_back_as_it_was_written() {
        let raw = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let job = Job {
            program: "/bin/sh".into(),
            argv: vec!["sh".into(), "-c".into(), raw(b"a\n\xff"), "".into()],
            environment: vec![
                ("PATH".into(), raw(b"\xfe:/bin")),
                ("EMPTY".into(), "".into()),
            ],
            folder: "/".into(),
            home: raw(b"/tmp/\xfd").into(),
            home_size: 1 << 40,
            limits: ProcessLimits {
                cpu: Some(3),
                file_size: Some(u64::MAX),
                ..ProcessLimits::default()
            },
            together: GroupLimits {
                memory: Some(7),
                processes: None,
            },
            deadline: Some(Duration::from_micros(1_500_001)),
            grace: Duration::from_millis(500),
            confinement: json!({"read": ["a\u{0}b"]}),
        };
        assert_eq!(Job::read(&job.to_bytes()).unwrap(), job);
        let endless = Job {
            deadline: None,
            environment: vec![],
            ..job
        };
        assert_eq!(Job::read(&endless.to_bytes()).unwrap(), endless);
        for bad in [&b""[..], b"{}", b"{\"arguments\":9}\0a\0b\0c\0d", b"\xff\0"] {
            assert!(Job::read(bad).is_err());
        }
    }
}
