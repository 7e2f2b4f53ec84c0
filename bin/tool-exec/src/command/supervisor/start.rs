//! Starts a command under a supervisor, from the event loop of `tool-exec`.

use super::LISTED;
use super::messages::{EndOrder, Ended, InForce, Job, Notice, read, to_bytes};
use super::wire;
use super::wire::Frames;
use crate::command::scratch::ScratchFolder;
use group::descent::{self, GIVE_UP, ROUND, adopt_orphans, kill_orphans, spare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, pidfd_send_signal};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;

/// How long to wait for a supervisor to remove the home of its command. After that the supervisor
/// continues alone.
const TIDY: Duration = Duration::from_secs(1);

/// How long a supervisor may take to report whether its command runs.
const START: Duration = Duration::from_secs(5);

/// Whether entering namespaces fails halfway on this system. The first supervisor that tries finds
/// out.
static NAMESPACES_ARE_UNUSABLE: AtomicBool = AtomicBool::new(false);

/// Why a command could not be started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartError {
    /// The command did not run, for this reason.
    NotStarted(String),
    /// The supervisor ended before it reported: the command may have run.
    Unknown,
}

/// A running command. On drop, its supervisor ends the command.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    /// The command's standard output.
    pub stdout: Receiver,
    /// The command's standard error.
    pub stderr: Receiver,
    /// The limits and isolation in force for the command.
    pub in_force: InForce,
    /// The supervisor of the command.
    pub supervisor: Supervisor,
}

/// Starts the command of `job` under a supervisor, with `stdin` as its standard input, and returns
/// once it is running. Without a deadline in the job, it runs until it exits or is ended. The
/// supervisor ends the command and all its descendants when the returned value or this future is
/// dropped, or when this process ends in any way.
///
/// # Errors
/// [`StartError`].
pub(crate) async fn start(job: &Job, stdin: OwnedFd) -> Result<RunningCommand, StartError> {
    // This process adopts the processes left behind by a supervisor that was killed.
    adopt_orphans(true);
    let failed = |e: std::io::Error| StartError::NotStarted(e.to_string());
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed(e.into()));
    let ((out, stdout), (err, stderr)) = (pipe()?, pipe()?);
    let files = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    // Everything that can fail here is done before the command may run.
    let out = Receiver::from_owned_fd(out).map_err(failed)?;
    let err = Receiver::from_owned_fd(err).map_err(failed)?;
    for _ in 0..2 {
        let mut supervisor = Supervisor::fork().map_err(failed)?;
        if let Some(in_force) = supervisor.begin(job, files).await? {
            return Ok(RunningCommand {
                stdout: out,
                stderr: err,
                in_force,
                supervisor,
            });
        }
    }
    Err(StartError::Unknown)
}

/// The supervisor of one command.
#[derive(Debug)]
pub(crate) struct Supervisor {
    socket: Rc<UnixStream>,
    frames: Frames,
    /// The process id of the zygote that was asked to fork the supervisor.
    zygote: u32,
    /// The process id of the supervisor, once it has reported that it is running; it reads its job
    /// after that.
    forked: Option<u32>,
    /// The supervisor's process, received with that report.
    process: Option<OwnedFd>,
    /// How the command ended, once reported.
    ended: Option<Ended>,
    /// The home of the command, or an empty path before the job is sent.
    home: PathBuf,
    /// When the supervisor was requested, see [`descent::now`].
    since: u64,
}

impl Supervisor {
    fn fork() -> std::io::Result<Self> {
        let since = descent::now();
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = Rc::new(UnixStream::from_std(ours)?);
        let is_plain = NAMESPACES_ARE_UNUSABLE.load(Ordering::Relaxed);
        let zygote = zygote::fork(is_plain, theirs.as_fd())?;
        Ok(Supervisor {
            socket,
            frames: Frames::default(),
            zygote,
            forked: None,
            process: None,
            ended: None,
            home: PathBuf::new(),
            since,
        })
    }

    /// Sends the job to the supervisor and returns what is in force for the running command.
    /// Returns `None` if nothing ran and another supervisor would work.
    async fn begin(
        &mut self,
        job: &Job,
        files: [BorrowedFd<'_>; 3],
    ) -> Result<Option<InForce>, StartError> {
        self.home.clone_from(&job.home);
        let bytes = wire::frame(&job.to_bytes());
        let started = async {
            // Fails if the supervisor has ended; its notice, or the end of its socket, is read
            // next.
            let _ = self.send(&bytes, &files).await;
            self.notice().await
        };
        // The command may have stopped its supervisor before the start was reported.
        let mut notice = tokio::time::timeout(START, started).await;
        if self.forked.is_none() && !matches!(notice, Ok(Some(_))) {
            // The zygote has ended or may be stopped, and must not act on this request later. A
            // supervisor that it has already forked reports now.
            zygote::end(self.zygote);
            notice = tokio::time::timeout(TIDY, self.notice()).await;
        }
        match notice {
            Ok(Some(Notice::Started(in_force))) => return Ok(Some(in_force)),
            Ok(Some(Notice::Unusable)) => {
                NAMESPACES_ARE_UNUSABLE.store(true, Ordering::Relaxed);
                return Ok(None);
            }
            Ok(Some(Notice::NotStarted(why))) => {
                self.tidy().await;
                return Err(StartError::NotStarted(why));
            }
            Ok(Some(Notice::Ended(_) | Notice::Exited(_))) => {}
            Ok(None) if self.forked.is_none() => return Ok(None),
            Ok(Some(Notice::Forked(_)) | None) | Err(_) => drop(self.end_orphans().await),
        }
        Err(StartError::Unknown)
    }

    async fn send(&mut self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> std::io::Result<()> {
        let send = || wire::send_files(&*self.socket, bytes, files);
        let mut sent = self.socket.async_io(Interest::WRITABLE, send).await?;
        while sent < bytes.len() {
            self.socket.writable().await?;
            match self.socket.try_write(&bytes[sent..]) {
                Ok(n) => sent += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Returns the next notice after [`Notice::Forked`], or `None` if the supervisor has ended.
    /// Cancel-safe.
    async fn notice(&mut self) -> Option<Notice> {
        loop {
            if let Some(body) = self.frames.next() {
                match read(&body) {
                    Some(Notice::Forked(number)) => {
                        self.forked = Some(number);
                        // This process adopts it if its zygote is ended.
                        spare(number);
                    }
                    None => {}
                    notice => return notice,
                }
                continue;
            }
            self.socket.readable().await.ok()?;
            let mut bytes = [0; 4096];
            let read = || wire::read_files(&*self.socket, &mut bytes);
            match self.socket.try_io(Interest::READABLE, read) {
                Ok((n, files)) if n > 0 && self.frames.push(&bytes[..n]) => {
                    self.process = self.process.take().or(files.into_iter().next());
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                _ => {
                    self.spare_no_longer();
                    return None;
                }
            }
        }
    }

    /// Notes that the supervisor has ended: the system may use its process id again.
    fn spare_no_longer(&self) {
        self.forked.into_iter().for_each(descent::spare_no_longer);
    }

    /// Waits until the command and all its descendants have ended. Cancel-safe, and may be called
    /// again.
    pub(crate) async fn ended(&mut self) -> Ended {
        while self.ended.is_none() {
            match self.notice().await {
                Some(Notice::Ended(ended)) => self.ended = Some(ended),
                Some(_) => {}
                None => {
                    return Ended {
                        left: self.end_orphans().await,
                        ..Ended::default()
                    };
                }
            }
        }
        self.tidy().await;
        self.ended.clone().unwrap_or_default()
    }

    /// Kills a supervisor that does not respond, and all its descendants.
    pub(crate) async fn give_up(&mut self) -> Ended {
        Ended {
            left: self.end_orphans().await,
            ..Ended::default()
        }
    }

    /// Returns a handle that can end the command while another task waits for it.
    pub(crate) fn control(&self) -> Control {
        Control(Rc::downgrade(&self.socket))
    }

    /// Waits up to [`TIDY`] for the supervisor itself, which removes the home of its command.
    async fn tidy(&mut self) {
        let end = async { while self.notice().await.is_some() {} };
        let _ = tokio::time::timeout(TIDY, end).await;
    }

    /// Kills the supervisor and its orphans, after the supervisor failed; returns the processes
    /// that cannot be killed.
    async fn end_orphans(&mut self) -> Vec<i32> {
        if let Some(process) = &self.process {
            let _ = pidfd_send_signal(process, Signal::KILL); // it may be stopped
            let mut end = [PollFd::new(process, PollFlags::IN)];
            // This process adopts the supervisor's children once the supervisor ends.
            while poll(&mut end, Some(&Timespec::default())) == Ok(0) {
                tokio::time::sleep(ROUND).await;
            }
        }
        self.spare_no_longer();
        let left = end_all(self.since).await;
        if left.is_empty() {
            remove(self.home.clone()).await;
        }
        left
    }
}

/// Ends a command while another task waits for its [`RunningCommand`].
#[derive(Clone, Debug)]
pub(crate) struct Control(Weak<UnixStream>);

impl Control {
    /// Requests the end of the command, at once or after a grace period, without waiting.
    pub(crate) fn end(&self, at_once: bool) {
        let order = if at_once {
            EndOrder::Kill
        } else {
            EndOrder::End
        };
        if let Some(socket) = self.0.upgrade() {
            // At most a few orders are ever pending, so the socket has room. Fails if the
            // supervisor has ended.
            let _ = socket.try_write(&wire::frame(&to_bytes(&order)));
        }
    }
}

/// Removes the home of a command whose supervisor is gone. Uses a separate thread, because the
/// command may have filled the home with many files.
async fn remove(home: PathBuf) {
    let (send, done) = tokio::sync::oneshot::channel();
    let work = move || {
        drop(ScratchFolder::adopt(home));
        let _ = send.send(()); // the receiver is gone after a timeout
    };
    if std::thread::Builder::new().spawn(work).is_ok() {
        let _ = tokio::time::timeout(TIDY, done).await;
    }
}

/// The process that supervisors are forked from. It ends with this process.
mod zygote {
    use super::wire;
    use crate::command::supervisor::messages::{OWN_PROGRAM, SUPERVISE, to_bytes};
    use group::descent::spare;
    use std::cell::RefCell;
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    thread_local! {
        // Belongs to the thread of the event loop.
        static RUNNING: RefCell<Option<(Child, UnixStream)>> = const { RefCell::new(None) };
    }

    /// Requests a fork that uses this socket, starting a new zygote if none runs. Returns the
    /// zygote's process id. With `is_plain`, the supervisor tries no namespaces.
    pub(super) fn fork(is_plain: bool, socket: BorrowedFd<'_>) -> std::io::Result<u32> {
        let ask = |zygote: &UnixStream| wire::send(zygote, &to_bytes(&is_plain), &[socket]);
        if let Some((number, is_asked)) = RUNNING.with_borrow(|one| {
            one.as_ref()
                .map(|(p, zygote)| (p.id(), ask(zygote).is_ok()))
        }) {
            if is_asked {
                return Ok(number);
            }
            end(number); // the zygote was ended from outside
        }
        let (ours, theirs) = UnixStream::pair()?;
        // A stopped zygote must not block this process.
        ours.set_nonblocking(true)?;
        let mut command = Command::new(OWN_PROGRAM);
        command
            .arg0("tool-exec")
            .arg(SUPERVISE)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn()?;
        let number = process.id();
        spare(number);
        let asked = ask(&ours);
        RUNNING.set(Some((process, ours)));
        asked.map(|()| number)
    }

    /// Ends the zygote with this process id, if it is running. Its supervisors continue.
    pub(super) fn end(number: u32) {
        let ended =
            RUNNING.with_borrow_mut(|one| one.take_if(|(process, _)| process.id() == number));
        if let Some((mut process, _)) = ended {
            let _ = process.kill(); // fails if the zygote has already exited
            let _ = process.wait();
        }
    }
}

/// Kills the orphans that `tool-exec` adopted from a supervisor that was killed from outside: those
/// that started at `since` or later. Returns the first of those that could not be killed.
pub(super) async fn end_all(since: u64) -> Vec<i32> {
    let mut until = None;
    loop {
        let left = kill_orphans(since);
        let now = tokio::time::Instant::now();
        // Counted from the end of the first kill, because this process may have been stopped.
        if left.is_empty() || now > *until.get_or_insert(now + GIVE_UP) {
            return left.iter().map(|p| p.pid).take(LISTED).collect();
        }
        tokio::time::sleep(ROUND).await;
    }
}
