//! What a supervisor is sent: one command, and all that limits it.

use crate::command::confine::groups::GroupLimits;
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

// What goes over the socket between `tool-exec` and a supervisor, and between a supervisor and its
// launch stage.

/// The first argument of a supervisor.
pub const SUPERVISE: &str = "--supervise";
/// The second argument of a supervisor that tries no namespaces.
pub const PLAIN: &str = "plain";
/// The first argument of a launch stage.
pub const LAUNCH: &str = "--launch";
/// The second argument of a launch stage that is the init of a PID namespace.
pub const INIT: &str = "init";

/// What the supervisor receives after its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// End the command: SIGTERM, and SIGKILL after the grace.
    End,
    /// Kill the command.
    Kill,
}

impl Order {
    /// The body of its frame.
    pub fn to_bytes(self) -> &'static [u8] {
        match self {
            Order::End => b"end",
            Order::Kill => b"kill",
        }
    }

    /// Reads the body of a frame.
    pub fn read(body: &[u8]) -> Option<Order> {
        [Order::End, Order::Kill]
            .into_iter()
            .find(|order| order.to_bytes() == body)
    }
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
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

impl Notice {
    /// The body of its frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        let value = match self {
            Notice::Started(in_force) => json!({"started": in_force.to_json()}),
            Notice::NotStarted(why) => json!({"not_started": why}),
            Notice::Unusable => json!({"unusable": true}),
            Notice::Exited(status) => json!({"exited": status}),
            Notice::Ended(ended) => {
                let Ended {
                    status,
                    is_timeout,
                    is_out_of_memory,
                    left,
                } = ended;
                json!({"ended": {"status": status, "is_timeout": is_timeout, "is_out_of_memory": is_out_of_memory, "left": left}})
            }
        };
        value.to_string().into_bytes()
    }

    /// Reads the body of a frame.
    pub fn read(body: &[u8]) -> Option<Notice> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let (kind, value) = value.as_object()?.iter().next()?;
        let number = |value: &Value| value.as_i64().and_then(|n| i32::try_from(n).ok());
        Some(match kind.as_str() {
            "started" => Notice::Started(InForce::read(value)),
            "not_started" => Notice::NotStarted(value.as_str()?.to_owned()),
            "unusable" => Notice::Unusable,
            "exited" => Notice::Exited(number(value)?),
            "ended" => Notice::Ended(Ended {
                status: number(&value["status"]),
                is_timeout: value["is_timeout"] == true,
                is_out_of_memory: value["is_out_of_memory"] == true,
                left: value["left"]
                    .as_array()?
                    .iter()
                    .filter_map(number)
                    .collect(),
            }),
            _ => return None,
        })
    }
}

// What keeps a command and its processes together, and what it sees of others.

/// What keeps the processes of a command together. Each value holds all that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A PID namespace: the command sees and signals its own processes alone, and all of them end
    /// with their init.
    Namespace,
    /// Landlock's signal scope (Linux 6.12): the command sees other processes, and signals its own
    /// alone.
    SignalScope,
    /// A subreaper inherits what the command leaves behind. The command may signal every process of
    /// its user.
    Subreaper,
}

/// What the system enforces for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
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

/// The words for [`Containment`] in messages between processes.
const WORDS: [(Containment, &str); 3] = [
    (Containment::Namespace, "namespace"),
    (Containment::SignalScope, "signal_scope"),
    (Containment::Subreaper, "subreaper"),
];

impl InForce {
    /// What is in force where the system allows nothing.
    pub const LEAST: InForce = InForce {
        containment: Containment::Subreaper,
        user_namespace: false,
        own_proc: false,
        own_terminals: false,
        home_limit: false,
        memory_limit: false,
        process_limit: false,
    };

    /// As JSON.
    pub fn to_json(self) -> Value {
        let word = WORDS
            .iter()
            .find(|(value, _)| *value == self.containment)
            .map(|(_, word)| *word);
        let InForce {
            user_namespace,
            own_proc,
            own_terminals,
            home_limit,
            memory_limit,
            process_limit,
            ..
        } = self;
        json!({"containment": word, "user_namespace": user_namespace, "own_proc": own_proc,
            "own_terminals": own_terminals, "home_limit": home_limit,
            "memory_limit": memory_limit, "process_limit": process_limit})
    }

    /// Reads the JSON of [`InForce::to_json`]; what is missing is not in force.
    pub fn read(value: &Value) -> InForce {
        let is = |key: &str| value[key] == true;
        InForce {
            containment: WORDS
                .iter()
                .find(|(_, word)| value["containment"] == *word)
                .map_or(Containment::Subreaper, |(value, _)| *value),
            user_namespace: is("user_namespace"),
            own_proc: is("own_proc"),
            own_terminals: is("own_terminals"),
            home_limit: is("home_limit"),
            memory_limit: is("memory_limit"),
            process_limit: is("process_limit"),
        }
    }
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

#[cfg(test)]
mod control_tests {
    use super::*;

    #[test]
    fn notices_and_orders_read_back() {
        let ended = Ended {
            status: Some(143),
            is_timeout: true,
            is_out_of_memory: true,
            left: vec![7, 8],
        };
        for notice in [
            Notice::Started(InForce::LEAST),
            Notice::NotStarted("it is \"text\"".to_owned()),
            Notice::Unusable,
            Notice::Exited(137),
            Notice::Ended(ended),
            Notice::Ended(Ended::default()),
        ] {
            assert_eq!(Notice::read(&notice.to_bytes()), Some(notice));
        }
        assert_eq!(Notice::read(b"{}"), None);
        assert_eq!(
            [Order::End, Order::Kill].map(|order| Order::read(order.to_bytes())),
            [Some(Order::End), Some(Order::Kill)]
        );
    }
}

#[cfg(test)]
mod in_force_tests {
    use super::*;

    #[test]
    fn what_is_in_force_reads_back() {
        for (containment, _) in WORDS {
            let all = InForce {
                containment,
                user_namespace: true,
                memory_limit: true,
                ..InForce::LEAST
            };
            assert_eq!(InForce::read(&all.to_json()), all);
        }
        assert_eq!(InForce::read(&Value::Null), InForce::LEAST);
    }
}
