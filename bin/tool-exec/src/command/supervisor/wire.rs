//! Frames on a socket: a four-byte length, then that many bytes. Descriptors are sent with a frame
//! as SCM_RIGHTS (unix(7)).

use super::messages::{read, to_bytes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use signal_hook::consts::SIGCHLD;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The maximum number of descriptors sent with one frame.
const FILES: usize = 3;
/// The maximum size of a frame, in bytes. Linux accepts at most 6 MiB of arguments and environment
/// (execve(2)).
const LONGEST: usize = 64 << 20;

/// Encodes `body` as a frame. If the body is too long, the frame is rejected by its reader.
pub(super) fn frame(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes(), body].concat()
}

/// Sends the start of `bytes`, with `files`; returns how many bytes were sent.
///
/// # Errors
/// If the other end has closed, or if the socket is nonblocking and full.
pub(super) fn send_files(
    socket: impl AsFd,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> std::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(ErrorKind::InvalidInput.into());
    }
    Ok(sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?)
}

/// Sends a frame with `files`, blocking until the socket has accepted it.
///
/// # Errors
/// If the other end has closed.
pub(super) fn send(
    mut socket: &UnixStream,
    body: &[u8],
    files: &[BorrowedFd<'_>],
) -> std::io::Result<()> {
    let frame = frame(body);
    let sent = send_files(socket, &frame, files)?;
    socket.write_all(&frame[sent..])
}

/// Sends a message without descriptors; see [`send`].
///
/// # Errors
/// If the other end has closed.
pub(super) fn report(socket: &UnixStream, message: &impl Serialize) -> std::io::Result<()> {
    send(socket, &to_bytes(message), &[])
}

/// Waits for one frame and returns it with its descriptors.
///
/// # Errors
/// If the other end closes first.
pub(super) fn receive(mut socket: &UnixStream) -> std::io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut length = [0; 4];
    let (n, files) = read_files(socket, &mut length)?;
    if n == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    socket.read_exact(&mut length[n..])?;
    let mut body = vec![0; body_length(length)?];
    socket.read_exact(&mut body)?;
    Ok((body, files))
}

/// Reads once. Returns how many bytes were read, and the descriptors received with them.
///
/// # Errors
/// If the system refuses, for example because the socket is nonblocking and empty.
pub(super) fn read_files(
    socket: impl AsFd,
    bytes: &mut [u8],
) -> std::io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let came = recvmsg(
        socket,
        &mut [IoSliceMut::new(bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            files.extend(more);
        }
    }
    Ok((came.bytes, files))
}

/// Makes `socket` the standard input of this process, replacing the one inherited from its parent.
///
/// # Errors
/// If the system refuses.
pub(super) fn take_over(socket: impl AsFd) -> std::io::Result<()> {
    Ok(rustix::stdio::dup2_stdin(socket)?)
}

/// Returns the socket on standard input, which leads to the process above this one.
///
/// # Errors
/// If the system allows no more open files.
pub(super) fn upstream() -> std::io::Result<UnixStream> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    Ok(UnixStream::from(stdin))
}

/// Decodes the length at the start of a frame.
fn body_length(length: [u8; 4]) -> std::io::Result<usize> {
    usize::try_from(u32::from_le_bytes(length))
        .ok()
        .filter(|n| *n <= LONGEST)
        .ok_or_else(|| Error::new(ErrorKind::InvalidData, "a frame is too long"))
}

/// A decoder of frames that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Frames(Vec<u8>);

impl Frames {
    /// Reads once from a nonblocking socket. Returns false if the other end has closed or its bytes
    /// are not frames.
    pub(super) fn read(&mut self, mut socket: &UnixStream) -> bool {
        let mut bytes = [0; 4096];
        match socket.read(&mut bytes) {
            Ok(0) => false,
            Ok(n) => self.push(&bytes[..n]),
            Err(e) => matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Appends bytes. Returns false if they are not frames.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        self.0.extend_from_slice(bytes);
        self.0
            .first_chunk()
            .is_none_or(|length| body_length(*length).is_ok())
    }

    /// Returns the messages of all complete frames. Frames with other content are skipped.
    pub(super) fn messages<M: DeserializeOwned>(&mut self) -> Vec<M> {
        std::iter::from_fn(|| self.next())
            .filter_map(|body| read(&body))
            .collect()
    }

    /// Returns the next complete frame.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let length = body_length(*self.0.first_chunk()?).ok()?;
        let body = self.0.get(4..4 + length)?.to_vec();
        self.0.drain(..4 + length);
        Some(body)
    }
}

// SIGCHLD as a descriptor that poll(2) can wait for.

/// Reports when children of this process end.
#[derive(Debug)]
pub(super) struct ChildSignals(UnixStream);

impl ChildSignals {
    /// Installs a handler for SIGCHLD.
    ///
    /// # Errors
    /// If the system allows no more open files.
    pub(super) fn new() -> std::io::Result<Self> {
        let (wake, write) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, write)?;
        Ok(ChildSignals(wake))
    }

    /// Waits until a child ends, or one of `sockets` is readable or closed, but at most for `most`.
    pub(super) fn wait(&mut self, sockets: &[&UnixStream], most: Option<Duration>) {
        let most = most.and_then(|time| Timespec::try_from(time).ok());
        let mut all: Vec<PollFd<'_>> = vec![PollFd::new(&self.0, PollFlags::IN)];
        all.extend(
            sockets
                .iter()
                .map(|socket| PollFd::new(*socket, PollFlags::IN)),
        );
        let _ = poll(&mut all, most.as_ref()); // if interrupted, the caller's loop checks again
        let mut drop = [0; 64];
        while matches!((&self.0).read(&mut drop), Ok(n) if n > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_frame_and_its_files_arrive_and_longer_frames_are_refused() {
        let (one, other) = UnixStream::pair().unwrap();
        let long = vec![7; 1 << 20];
        let sender = std::thread::spawn(move || {
            let file = File::open("/dev/null").unwrap();
            send(&one, b"first", &[file.as_fd(), file.as_fd(), file.as_fd()]).unwrap();
            send(&one, &long, &[]).unwrap();
            (&one).write_all(&u32::MAX.to_le_bytes()).unwrap();
        });
        let (body, files) = receive(&other).unwrap();
        assert_eq!((body.as_slice(), files.len()), (&b"first"[..], 3));
        assert_eq!(receive(&other).unwrap().0.len(), 1 << 20);
        assert_eq!(receive(&other).unwrap_err().kind(), ErrorKind::InvalidData);
        sender.join().unwrap();
        assert_eq!(
            receive(&other).unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn frames_come_in_any_pieces() {
        let bytes = [frame(b"one"), frame(b""), frame(b"three")].concat();
        let mut frames = Frames::default();
        let mut all = Vec::new();
        for byte in &bytes {
            assert!(frames.push(&[*byte]));
            all.extend(frames.next());
        }
        assert_eq!(all, [&b"one"[..], b"", b"three"]);
        assert!(!frames.push(&[0xff; 4]));
    }
}
