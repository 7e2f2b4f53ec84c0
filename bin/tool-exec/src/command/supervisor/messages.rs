//! The messages on the sockets between `tool-exec`, a supervisor and its launch stage: the job, the
//! orders to end it, and the notices about it.

use crate::command::confine::Confinement;
use crate::command::confine::groups::GroupLimits;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// This program, even if its file has been replaced since it started.
pub(super) const OWN_PROGRAM: &str = "/proc/self/exe";

/// The first argument of a zygote.
pub(super) const SUPERVISE: &str = "--supervise";

/// Limits that the system enforces on each process of a command. `None` keeps the limit of
/// `tool-exec` itself. No limit is ever raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessLimits {
    /// Processor time, in seconds.
    pub cpu: Option<u64>,
    /// Private memory (`RLIMIT_DATA`), in bytes.
    pub memory: Option<u64>,
    /// Open files.
    pub files: Option<u64>,
    /// Number of processes and threads of the user.
    pub processes: Option<u64>,
    /// Size of each file that the process writes, in bytes.
    pub file_size: Option<u64>,
}

/// One command and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The path of the program.
    #[serde(skip)]
    pub program: PathBuf,
    /// The command line; the first item is passed to the program as its name.
    #[serde(skip)]
    pub argv: Vec<OsString>,
    /// The complete environment.
    #[serde(skip)]
    pub environment: Vec<(OsString, OsString)>,
    /// The working folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The folder that is created for the command and removed afterwards. The path must be unused.
    #[serde(skip)]
    pub home: PathBuf,
    /// The size limit of the home in bytes, applied if the home can be its own file system.
    pub home_size: u64,
    /// The limits on each process.
    pub limits: ProcessLimits,
    /// The limits on all processes together, applied if a control group can be created.
    pub together: GroupLimits,
    /// How long the command may run. `None` means until it is ended.
    pub deadline: Option<Duration>,
    /// How long the command may take to exit after SIGTERM before it is killed.
    pub grace: Duration,
    /// The sandbox of the command.
    pub confinement: Confinement,
}

impl Job {
    /// Encodes the job: a JSON object, then each system string (the number of arguments, the paths,
    /// arguments and variables) unchanged, each preceded by a NUL. These strings need not be UTF-8,
    /// and cannot contain a NUL.
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

    /// Decodes the bytes of [`Job::to_bytes`].
    ///
    /// # Errors
    /// If the bytes are invalid.
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

/// An order to a supervisor, sent after its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EndOrder {
    /// End the command: SIGTERM, and SIGKILL after the grace period.
    End,
    /// Kill the command.
    Kill,
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// The exit status, or 128 plus the signal number if a signal ended the command. `None` if
    /// unknown, because the command was ended from outside.
    pub status: Option<i32>,
    /// Whether the deadline ended the command.
    pub is_timeout: bool,
    /// Whether the system killed a process of the command because its processes exceeded their
    /// shared memory limit.
    pub is_out_of_memory: bool,
    /// The processes that could not be ended, by their process ids outside the namespace; only the
    /// first ones.
    pub left: Vec<i32>,
}

/// A notice from a launch stage to its supervisor, or from a supervisor to `tool-exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Notice {
    /// The supervisor is running, with this process id. A descriptor of its process (pidfd_open(2))
    /// is sent along.
    Forked(u32),
    /// The command is running.
    Started(InForce),
    /// The command did not run. The reason is text for the answer.
    NotStarted(String),
    /// Entering the namespaces failed halfway. Nothing ran; a supervisor without namespaces would
    /// work.
    Unusable,
    /// The command has exited with this status; processes that it started may still run. Sent only
    /// by the launch stage.
    Exited(i32),
    /// The command and all its descendants have ended. Sent only by the supervisor.
    Ended(Ended),
}

/// How the processes of a command are kept together, strongest first. Each level includes the ones
/// after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Containment {
    /// A PID namespace. The command sees and signals only its own processes, and all of them end
    /// with their init.
    Namespace,
    /// Landlock's signal scope (Linux 6.12). The command sees other processes, but signals only its
    /// own.
    SignalScope,
    /// A subreaper adopts the processes that the command leaves behind. The command may signal
    /// every process of its user.
    #[default]
    Subreaper,
}

/// What the system enforces for one command. The default is for a system that supports none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InForce {
    /// How the processes are kept together.
    pub containment: Containment,
    /// Whether the command is in a user namespace, so that no program can give it rights beyond
    /// this user's.
    pub user_namespace: bool,
    /// Whether the command has a `/proc` that shows only its own processes.
    pub own_proc: bool,
    /// Whether the command has a `/dev/pts` without this user's terminals.
    pub own_terminals: bool,
    /// Whether the home is a file system of limited size.
    pub home_limit: bool,
    /// Whether a control group limits the total memory of the processes. False if the job requests
    /// no such limit.
    pub memory_limit: bool,
    /// Whether a control group limits the number of processes. False if the job requests no such
    /// limit.
    pub process_limit: bool,
}

/// Encodes a message as the body of a frame.
pub(super) fn to_bytes(message: &impl Serialize) -> Vec<u8> {
    // A message that cannot be encoded becomes an empty body, which the reader rejects.
    serde_json::to_vec(message).unwrap_or_default()
}

/// Decodes the body of a frame. Returns `None` if it is invalid.
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
            Notice::Forked(7),
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
