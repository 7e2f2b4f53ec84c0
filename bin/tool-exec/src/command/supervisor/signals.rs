//! SIGCHLD as something that a wait sees.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::SIGCHLD;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The ends of children of this process.
#[derive(Debug)]
pub struct ChildSignals(UnixStream);

impl ChildSignals {
    /// Takes over SIGCHLD.
    ///
    /// # Errors
    /// When the system allows no more files.
    pub fn new() -> std::io::Result<Self> {
        let (wake, write) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, write)?;
        Ok(ChildSignals(wake))
    }

    /// Waits until a child ends or one of `sockets` has something to read or is closed, for `most`
    /// at the most.
    pub fn wait(&mut self, sockets: &[&UnixStream], most: Option<Duration>) {
        let most = most.and_then(|time| Timespec::try_from(time).ok());
        let mut all: Vec<PollFd<'_>> = vec![PollFd::new(&self.0, PollFlags::IN)];
        all.extend(
            sockets
                .iter()
                .map(|socket| PollFd::new(*socket, PollFlags::IN)),
        );
        let _ = poll(&mut all, most.as_ref()); // interrupted: the next round looks again
        let mut drop = [0; 64];
        while matches!((&self.0).read(&mut drop), Ok(n) if n > 0) {}
    }
}
