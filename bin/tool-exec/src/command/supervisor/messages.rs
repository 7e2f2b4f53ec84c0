//! What goes over the sockets between `tool-exec`, a supervisor and its launch stage: the job, what
//! ends it, and what comes of it.

use crate::command::confine::Confinement;
use crate::command::confine::groups::GroupLimits;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// This program, even when its file was replaced while it runs.
pub(super) const OWN_PROGRAM: &str = "/proc/self/exe";

/// The first argument of a zygote.
pub(super) const SUPERVISE: &str = "--supervise";

/// Limits that the system enforces on each process of a command. `None`: as `tool-exec` itself.
/// None of them is ever raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessLimits {
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The file of the program.
    #[serde(skip)]
    pub program: PathBuf,
    /// The command line; the first item is the name under which the program runs.
    #[serde(skip)]
    pub argv: Vec<OsString>,
    /// The whole environment.
    #[serde(skip)]
    pub environment: Vec<(OsString, OsString)>,
    /// The folder that it starts in.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The folder that is made for it and removed after it; nothing may have that name yet.
    #[serde(skip)]
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
    /// What its sandbox allows.
    pub confinement: Confinement,
}

impl Job {
    /// The job as bytes: a JSON object, then each text of the system (the number of arguments, a
    /// path, an argument, a variable) as it is and with a NUL before it. Those need not be UTF-8,
    /// and none of them can hold a NUL.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = to_bytes(self);
        let count = OsString::from(self.argv.len().to_string());
        let paths = [&self.program, &self.folder, &self.home].map(|path| path.as_os_str());
        let variables = self
            .environment
            .iter()
            .flat_map(|(name, value)| [name, value]);
        let rest = self.argv.iter().chain(variables).map(OsString::as_os_str);
        for text in [count.as_os_str()].into_iter().chain(paths).chain(rest) {
            bytes.push(0);
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// Reads the bytes of [`Job::to_bytes`].
    ///
    /// # Errors
    /// When they are something else.
    pub(crate) fn read(bytes: &[u8]) -> std::io::Result<Job> {
        let bad = || Error::from(ErrorKind::InvalidData);
        let mut parts = bytes.split(|b| *b == 0);
        let job: Job = serde_json::from_slice(parts.next().ok_or_else(bad)?)?;
        let texts: Vec<OsString> = parts
            .map(|text| OsString::from_vec(text.to_vec()))
            .collect();
        let [count, program, folder, home, rest @ ..] = &texts[..] else {
            return Err(bad());
        };
        let count = OsStr::to_str(count).and_then(|count| count.parse().ok());
        let (argv, variables) = count
            .and_then(|count| rest.split_at_checked(count))
            .filter(|(_, variables)| variables.len() % 2 == 0)
            .ok_or_else(bad)?;
        let variable = |pair: &[OsString]| (pair[0].clone(), pair[1].clone());
        Ok(Job {
            program: program.into(),
            argv: argv.to_vec(),
            environment: variables.chunks_exact(2).map(variable).collect(),
            folder: folder.into(),
            home: home.into(),
            ..job
        })
    }
}

/// What the supervisor receives after its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EndOrder {
    /// End the command: SIGTERM, and SIGKILL after the grace.
    End,
    /// Kill the command.
    Kill,
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// Its exit status, 128 plus the signal's number if a signal ended it; `None`: unknown, it was
    /// ended from outside.
    pub status: Option<i32>,
    /// Whether its deadline ended it.
    pub is_timeout: bool,
    /// Whether the system killed one of its processes because they used more memory than they may
    /// together.
    pub is_out_of_memory: bool,
    /// Its processes that could not be ended, by their numbers outside of its namespace; the first
    /// of them.
    pub left: Vec<i32>,
}

/// What a launch stage reports to its supervisor, and that to `tool-exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Notice {
    /// The supervisor is there; its own process (pidfd_open(2)) is the file that comes with this.
    Forked,
    /// The command runs.
    Started(InForce),
    /// The command did not run, and why: text for the answer.
    NotStarted(String),
    /// Namespaces were begun and could not be finished: nothing ran, and a supervisor that tries
    /// none would do.
    Unusable,
    /// The command has ended with this status; what it started may still run. From the launch stage
    /// alone.
    Exited(i32),
    /// The command and all that it started have ended. From the supervisor alone.
    Ended(Ended),
}

/// What keeps the processes of a command together. Each value holds all that follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Containment {
    /// A PID namespace: the command sees and signals its own processes alone, and all of them end
    /// with their init.
    Namespace,
    /// Landlock's signal scope (Linux 6.12): the command sees other processes, and signals its own
    /// alone.
    SignalScope,
    /// A subreaper inherits what the command leaves behind. The command may signal every process of
    /// its user.
    #[default]
    Subreaper,
}

/// What the system enforces for one command. The default is what is in force where the system
/// allows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InForce {
    /// What keeps its processes together.
    pub containment: Containment,
    /// Whether it is in a user namespace: it has this user's rights, and no program gives it
    /// others.
    pub user_namespace: bool,
    /// Whether it has a `/proc` that shows its own processes alone.
    pub own_proc: bool,
    /// Whether it has a `/dev/pts` without the terminals of this user.
    pub own_terminals: bool,
    /// Whether its home is a file system of limited size.
    pub home_limit: bool,
    /// Whether a control group limits the memory that its processes use together. False where its
    /// job asks for no such limit.
    pub memory_limit: bool,
    /// Whether a control group limits its processes. False where its job asks for no such limit.
    pub process_limit: bool,
}

/// The body of the frame of a message.
pub(super) fn to_bytes(message: &impl Serialize) -> Vec<u8> {
    // What cannot be written is refused as it is read.
    serde_json::to_vec(message).unwrap_or_default()
}

/// Reads the body of a frame.
pub(super) fn read<'b, M: Deserialize<'b>>(body: &'b [u8]) -> Option<M> {
    serde_json::from_slice(body).ok()
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
            confinement: Confinement {
                bwrap: "a\u{0}b".into(),
                ..Confinement::default()
            },
        };
        assert_eq!(Job::read(&job.to_bytes()).unwrap(), job);
        let endless = Job {
            deadline: None,
            environment: vec![],
            ..job
        };
        let bytes = endless.to_bytes();
        assert_eq!(Job::read(&bytes).unwrap(), endless);
        let (head, _) = bytes.split_at(bytes.iter().position(|b| *b == 0).unwrap());
        for texts in [
            &b""[..],
            b"\09\0a\0b\0c\0d",
            b"\0-1\0a\0b\0c",
            b"\x000\0a\0b\0c\0name",
        ] {
            assert!(Job::read(&[head, texts].concat()).is_err());
        }
        for bad in [&b""[..], b"{}", b"{\"home_size\":9}\0a\0b\0c\0d", b"\xff\0"] {
            assert!(Job::read(bad).is_err());
        }
    }

    #[test]
    fn notices_and_orders_read_back() {
        let ended = Ended {
            status: Some(143),
            is_timeout: true,
            is_out_of_memory: true,
            left: vec![7, 8],
        };
        let started = [
            Containment::Namespace,
            Containment::SignalScope,
            Containment::Subreaper,
        ]
        .map(|containment| {
            Notice::Started(InForce {
                containment,
                user_namespace: true,
                memory_limit: true,
                ..InForce::default()
            })
        });
        for notice in started.into_iter().chain([
            Notice::Started(InForce::default()),
            Notice::NotStarted("it is \"text\"".to_owned()),
            Notice::Forked,
            Notice::Unusable,
            Notice::Exited(137),
            Notice::Ended(ended),
            Notice::Ended(Ended::default()),
        ]) {
            assert_eq!(read(&to_bytes(&notice)), Some(notice));
        }
        assert_eq!(read::<Notice>(b"{}"), None);
        for order in [EndOrder::End, EndOrder::Kill] {
            assert_eq!(read(&to_bytes(&order)), Some(order));
        }
    }
}
